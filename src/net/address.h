#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

/*
 * Which addresses may be called. A service's name says nothing of where it leads: what is looked at
 * is the address that is about to be connected to, so that no DNS answer leads into a network that
 * was not meant.
 */

#include <sys/socket.h>

#include "base/base.h"

enum { NETWORKS_MAX = 32 };

struct network {
    unsigned char address[16]; /* of IPv4 in its IPv6 form, ::ffff:0:0/96 */
    unsigned bits;             /* of 128 */
};

struct networks {
    struct network list[NETWORKS_MAX];
    size_t count;
};

/* "10.0.0.0/8", "127.0.0.1", "fd00::/8" */
bool network_parse(struct slice text, struct network *ret) MUST_USE;

/* Public, or in one of those networks? Of an IPv6 address that stands for one of IPv4 (mapped,
 * NAT64, 6to4) that one counts. What is neither IPv4 nor IPv6 is not allowed. */
bool address_is_allowed(const struct sockaddr *to, const struct networks *allowed) MUST_USE;

/* The same of a host as it stands in a URL; a name may be anything, and is. */
bool host_is_allowed(const char *host, const struct networks *allowed) MUST_USE;

/* "10.1.2.3" or "fd00::1"; for messages. */
void address_write(const struct sockaddr *to, char *ret, size_t size);

#endif
