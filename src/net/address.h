#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

/*
 * Which addresses may be called. A service's name does not say where it leads: the address that is
 * about to be connected to is checked, so no DNS response can lead into a network that was not
 * intended.
 */

#include <sys/socket.h>

#include "base/base.h"

enum { NETWORKS_MAX = 32 };

struct network {
    unsigned char address[16]; /* IPv4 in its IPv6 form, ::ffff:0:0/96 */
    unsigned bits;             /* of 128 */
};

struct networks {
    struct network list[NETWORKS_MAX];
    size_t count;
};

/* "10.0.0.0/8", "127.0.0.1", "fd00::/8" */
bool network_parse(struct slice text, struct network *ret) MUST_USE;

/* Whether the address is public or in one of those networks. An IPv6 address that stands for an
 * IPv4 one (mapped, NAT64, 6to4) is treated as the latter. Other families are not allowed. */
bool address_is_allowed(const struct sockaddr *to, const struct networks *allowed) MUST_USE;

/* The same for a host in a URL; names are always allowed here. */
bool host_is_allowed(const char *host, const struct networks *allowed) MUST_USE;

/* "10.1.2.3" or "fd00::1", for messages. */
void address_write(const struct sockaddr *to, char *ret, size_t size);

#endif
