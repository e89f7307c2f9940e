/* Which addresses may be called: parses networks and compares addresses with them. See
 * address.h. */
#include "net/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

/* Networks that are not public. An IPv4 address counts as ::ffff:A.B.C.D. All public IPv6 addresses
 * are in 2000::/3. */
static const char *const closed[] = {
    "0.0.0.0/8",                                           /* this network */
    "10.0.0.0/8",                                          /* private */
    "100.64.0.0/10",                                       /* shared by providers */
    "127.0.0.0/8",                                         /* this machine */
    "169.254.0.0/16",                                      /* link-local; cloud metadata services */
    "172.16.0.0/12",                                       /* private */
    "192.0.0.0/24",                                        /* protocol assignments */
    "192.0.2.0/24",                                        /* documentation, like the next two */
    "198.51.100.0/24", "203.0.113.0/24", "192.88.99.0/24", /* 6to4 relays */
    "192.168.0.0/16",                                      /* private */
    "198.18.0.0/15",                                       /* benchmarks */
    "224.0.0.0/4",                                         /* multicast */
    "240.0.0.0/4",                                         /* reserved, and broadcast */
    "2001::/23",                                           /* protocols such as Teredo */
    "2001:db8::/32",                                       /* documentation, like the next one */
    "3fff::/20",
};

bool network_parse(struct slice text, struct network *ret)
{
    char host[64] = "";
    const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    size_t len = slash ? (size_t)(slash - text.ptr) : text.len;
    struct network n = {.bits = 128};
    struct in_addr v4;

    if (len == 0 || len >= sizeof host)
        return false;
    memcpy(host, text.ptr, len);
    bool is_v4 = inet_pton(AF_INET, host, &v4) == 1;
    if (is_v4) {
        memcpy(n.address, mapped, sizeof mapped);
        memcpy(n.address + sizeof mapped, &v4, 4);
    } else if (inet_pton(AF_INET6, host, n.address) != 1) {
        return false;
    }
    if (slash) {
        unsigned most = is_v4 ? 32 : 128;
        unsigned bits = 0;
        size_t digits = text.len - len - 1;
        if (digits == 0 || digits > 3)
            return false;
        for (size_t i = len + 1; i < text.len; i++) {
            if (text.ptr[i] < '0' || text.ptr[i] > '9')
                return false;
            bits = bits * 10 + (unsigned)(text.ptr[i] - '0');
        }
        if (bits > most)
            return false;
        n.bits = bits + (128 - most);
    }
    *ret = n;
    return true;
}

static bool is_in(const struct network *n, const unsigned char address[16])
{
    unsigned whole = n->bits / 8;
    unsigned rest = n->bits % 8;
    unsigned char mask = (unsigned char)(0xff00U >> rest);

    return memcmp(n->address, address, whole) == 0
           && (rest == 0 || ((n->address[whole] ^ address[whole]) & mask) == 0);
}

static bool is_closed(const unsigned char address[16])
{
    if (memcmp(address, mapped, sizeof mapped) != 0 && address[0] >> 5 != 1)
        return true;
    for (size_t i = 0; i < COUNT_OF(closed); i++) {
        struct network n;
        bool ok = network_parse(slice_of(closed[i]), &n);
        ASSERT(ok);
        if (is_in(&n, address))
            return true;
    }
    return false;
}

/* The IPv4 address that an IPv6 address finally leads to, in its mapped form. */
static bool find_inner(const unsigned char address[16], unsigned char ret[16])
{
    static const unsigned char nat64[12] = {0, 0x64, 0xff, 0x9b};
    static const unsigned char six_to_four[2] = {0x20, 0x02};

    memcpy(ret, mapped, sizeof mapped);
    if (memcmp(address, nat64, sizeof nat64) == 0)
        memcpy(ret + sizeof mapped, address + 12, 4);
    else if (memcmp(address, six_to_four, sizeof six_to_four) == 0)
        memcpy(ret + sizeof mapped, address + 2, 4);
    else
        return false;
    return true;
}

static bool is_allowed(const unsigned char address[16], const struct networks *allowed)
{
    unsigned char inner[16];

    for (size_t i = 0; i < allowed->count; i++)
        if (is_in(&allowed->list[i], address))
            return true;
    if (find_inner(address, inner))
        return is_allowed(inner, allowed);
    return !is_closed(address);
}

bool address_is_allowed(const struct sockaddr *to, const struct networks *allowed)
{
    unsigned char address[16];
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (to->sa_family == AF_INET) {
        memcpy(&v4, to, sizeof v4);
        memcpy(address, mapped, sizeof mapped);
        memcpy(address + sizeof mapped, &v4.sin_addr, 4);
    } else if (to->sa_family == AF_INET6) {
        memcpy(&v6, to, sizeof v6);
        memcpy(address, &v6.sin6_addr, 16);
    } else {
        return false;
    }
    return is_allowed(address, allowed);
}

bool host_is_allowed(const char *host, const struct networks *allowed)
{
    struct slice text = slice_of(host);
    struct network n;

    if (text.len > 2 && text.ptr[0] == '[') {
        text = (struct slice){text.ptr + 1, text.len - 2};
        const char *zone = memchr(text.ptr, '%', text.len);
        text.len = zone ? (size_t)(zone - text.ptr) : text.len;
    }
    if (slice_is(text, "localhost"))
        text = SLICE("127.0.0.1");
    return !network_parse(text, &n) || is_allowed(n.address, allowed);
}

void address_write(const struct sockaddr *to, char *ret, size_t size)
{
    char text[INET6_ADDRSTRLEN] = "";
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (to->sa_family == AF_INET) {
        memcpy(&v4, to, sizeof v4);
        (void)inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text); /* stays empty on failure */
    } else if (to->sa_family == AF_INET6) {
        memcpy(&v6, to, sizeof v6);
        (void)inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text); /* the same */
    }
    (void)snprintf(ret, size, "%s", text[0] ? text : "an address of another kind");
}
