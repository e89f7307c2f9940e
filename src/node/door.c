/*
 * Which requests are let in by their path, query and headers, before any token is looked at, and
 * how many may wait. The address itself is opened by server/listen.c; who may use which route is
 * decided by api/routes.c.
 */

#include "node/door.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "node/access.h"
#include "node/node.h"
#include "node/quota.h"

/* ---- names ---- */

/* "127.0.0.1" and the like. The whole text must be an address: a name that only begins like one may
 * belong to another's DNS. */
static bool is_loopback_address(struct slice s)
{
    char text[16] = "";
    struct in_addr address;

    if (s.len == 0 || s.len >= sizeof text)
        return false;
    memcpy(text, s.ptr, s.len);
    return inet_pton(AF_INET, text, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

/* Cuts a ":7420" off, if there is one. */
static struct slice port_cut(struct slice *host)
{
    size_t len = host->len;

    while (len > 0 && host->ptr[len - 1] >= '0' && host->ptr[len - 1] <= '9')
        len--;
    if (len == 0 || len == host->len || host->ptr[len - 1] != ':')
        return SLICE_NONE;
    struct slice port = {host->ptr + len, host->len - len};
    host->len = len - 1;
    return port;
}

/* The port does not matter: a proxy, or a forwarded port, may be in front of ours. */
static bool is_our_host(const struct server *sv, struct slice host)
{
    struct slice listens = slice_of(sv->config.listen);

    (void)port_cut(&host);
    (void)port_cut(&listens);
    if (http_slice_is_like(host, "[::1]") || is_loopback_address(host)
        || http_slice_is_like(host, "localhost"))
        return true;
    for (size_t i = 0; i < sv->config.host_count; i++)
        if (http_slice_is_like(host, sv->config.hosts[i]))
            return true;
    return host.len == listens.len && host.len > 0
           && strncasecmp(host.ptr, listens.ptr, host.len) == 0;
}

static bool same_authority(struct slice a, struct slice b, const char *default_port)
{
    struct slice port_a = port_cut(&a);
    struct slice port_b = port_cut(&b);

    if (!port_a.ptr)
        port_a = slice_of(default_port);
    if (!port_b.ptr)
        port_b = slice_of(default_port);
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0 && slice_eq(port_a, port_b);
}

/* Does the page come from this server? Behind a proxy the scheme is unknown. */
static bool is_our_origin(const struct server *sv, struct slice origin, struct slice host)
{
    static const struct {
        const char *scheme, *port;
    } kinds[] = {{"http://", "80"}, {"https://", "443"}};
    bool is_secure = http_is_secure(sv->http);

    for (unsigned i = 0; i < COUNT_OF(kinds); i++) {
        size_t len = strlen(kinds[i].scheme);
        if (!sv->config.behind_proxy && is_secure != (i == 1))
            continue;
        if (origin.len > len && strncasecmp(origin.ptr, kinds[i].scheme, len) == 0)
            return same_authority((struct slice){origin.ptr + len, origin.len - len}, host,
                                  kinds[i].port);
    }
    return false;
}

bool door_host_is_foreign(const struct server *sv, const struct http_request *r)
{
    struct slice host = http_header(r, "host");

    return host.ptr && !is_our_host(sv, host);
}

bool door_is_foreign(const struct server *sv, const struct http_request *r)
{
    struct slice host = http_header(r, "host");
    struct slice origin = http_header(r, "origin");
    struct slice site = http_header(r, "sec-fetch-site");

    if (door_host_is_foreign(sv, r))
        return true;
    /* A browser reports that another page sends the request, even without an Origin. */
    if (site.ptr && !http_slice_is_like(site, "same-origin") && !http_slice_is_like(site, "none"))
        return true;
    return origin.ptr && !(host.ptr && is_our_origin(sv, origin, host));
}

/* ---- paths and queries ---- */

static bool is_of_token(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
           || c == '-';
}

/* A whole word. Ids may look like one, so it must be known. */
static bool has_token(struct access *a, struct slice s)
{
    for (size_t i = 0; i < s.len;) {
        size_t from = i;
        while (i < s.len && is_of_token(s.ptr[i]))
            i++;
        if (access_knows(a, (struct slice){s.ptr + from, i - from}))
            return true;
        i += i < s.len;
    }
    return false;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = memchr(digits, c | 0x20, sizeof digits - 1);

    return at ? (int)(at - digits) : -1;
}

/* Percent-encodings are well formed (http/http.h). */
static struct slice decoded(struct http_request *r, struct slice s)
{
    char *text = arena_alloc(&r->arena, s.len);
    size_t len = 0;

    for (size_t i = 0; i < s.len; i++) {
        text[len] = s.ptr[i];
        if (s.ptr[i] == '%' && i + 2 < s.len) {
            text[len] = (char)(16 * hex_digit(s.ptr[i + 1]) + hex_digit(s.ptr[i + 2]));
            i += 2;
        }
        len++;
    }
    return (struct slice){text, len};
}

static bool hides_token(const struct server *sv, struct http_request *r, struct slice s)
{
    if (s.len < ACCESS_TOKEN_SIZE)
        return false;
    return has_token(sv->access, s)
           || (memchr(s.ptr, '%', s.len) && has_token(sv->access, decoded(r, s)));
}

bool door_has_token(const struct server *sv, struct http_request *r)
{
    return hides_token(sv, r, r->path) || hides_token(sv, r, r->query);
}

/* ---- requests that wait ---- */

bool door_may_wait(const struct server *sv)
{
    return http_request_count(sv->http) <= sv->limits.waiting_max;
}

/* A quarter of the places is left to others, at least one if there are two. */
static size_t readers_max(const struct server *sv)
{
    size_t all = sv->limits.waiting_max < sv->limits.http.connection_max
                     ? sv->limits.waiting_max
                     : sv->limits.http.connection_max;

    return all - (all > 4 ? all / 4 : all > 1);
}

bool door_may_park(const struct server *sv, const struct http_request *r)
{
    size_t others = quota_open(r->account);

    return door_may_wait(sv)
           && quota_share_has_room(sv->quotas, r->account, others > 0 ? others - 1 : 0,
                                   sv->limits.waiting_max);
}

bool door_may_read(struct server *sv, struct http_request *r)
{
    if (r->is_reader)
        return true;
    if (!door_may_park(sv, r) || sv->load.readers_open >= readers_max(sv)
        || !quota_share_has_room(sv->quotas, r->account, quota_readers(r->account),
                                 readers_max(sv)))
        return false;
    r->is_reader = true;
    sv->load.readers_open++;
    quota_reads(r->account, true);
    return true;
}

void door_left(struct server *sv, const struct http_request *r)
{
    if (!r->is_reader)
        return;
    ASSERT(sv->load.readers_open > 0);
    sv->load.readers_open--;
    quota_reads(r->account, false);
}

void door_refuse_to_wait(const struct server *sv, struct http_request *r)
{
    if (door_may_wait(sv) && sv->load.readers_open < readers_max(sv))
        http_problem(r, 503, "busy",
                     "too many requests of this token are waiting: the remaining places are "
                     "reserved for other tokens");
    else if (door_may_wait(sv))
        http_problem(r, 503, "busy",
                     "%zu requests are waiting for events or results: the remaining places are "
                     "reserved for agents",
                     sv->load.readers_open);
    else
        http_problem(r, 503, "busy",
                     "%zu requests are waiting, which is the maximum of this server",
                     sv->limits.waiting_max);
}
