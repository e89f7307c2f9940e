/* Parses the URLs of webhooks strictly, and checks whether one is below a URL of the
 * configuration (url.h). The texts come from submitters, so everything that two programs could
 * read differently is refused. Pure; net/address.c checks the address to which the name leads. */

#include "webhook/url.h"

#include <strings.h>

#include "net/steps.h"

static const char digits[] = "0123456789";
static const char labels[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

static bool is_one_of(char c, const char *list)
{
    return c && strchr(list, c);
}

static struct slice cut_at(struct slice s, const char *ends)
{
    size_t len = 0;

    while (len < s.len && !is_one_of(s.ptr[len], ends))
        len++;
    return (struct slice){s.ptr, len};
}

static struct slice behind(struct slice s, size_t len)
{
    return (struct slice){s.ptr + len, s.len - len};
}

/* "*.example.org": '*' is a whole label, and the last label is not one. */
static bool is_host(struct slice host, bool is_pattern)
{
    struct slice rest = host;
    bool was_star = false;

    if (host.len > 2 && host.ptr[0] == '[') {
        for (size_t i = 1; i + 1 < host.len; i++)
            if (!is_one_of(host.ptr[i], "0123456789abcdefABCDEF:."))
                return false;
        return host.ptr[host.len - 1] == ']';
    }
    while (rest.ptr) {
        struct slice label = cut_at(rest, ".");
        if (label.len == 0 || label.len > 63)
            return false;
        was_star = is_pattern && slice_is(label, "*");
        for (size_t i = 0; i < label.len && !was_star; i++)
            if (!is_one_of(label.ptr[i], labels))
                return false;
        rest = label.len < rest.len ? behind(rest, label.len + 1) : SLICE_NONE;
    }
    return host.len <= 253 && !was_star;
}

static bool read_port(struct slice text, uint32_t *ret)
{
    uint32_t port = 0;

    if (text.len == 0 || text.len > 5)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_one_of(text.ptr[i], digits))
            return false;
        port = port * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    *ret = port;
    return port >= 1 && port <= 65535;
}

/* Whether each "%" stands for a byte. */
static bool is_encoded_well(struct slice path)
{
    for (size_t i = 0; i < path.len; i++)
        if (path.ptr[i] == '%'
            && (path.len - i < 3 || hex_digit(path.ptr[i + 1]) < 0
                || hex_digit(path.ptr[i + 2]) < 0))
            return false;
    return true;
}

const char *url_parse(struct slice text, bool is_pattern, struct url *ret)
{
    static const char example[] = "a URL such as https://shop.example.org/hooks/";
    struct url u = {0};

    if (!text.ptr || text.len > URL_MAX)
        return text.ptr ? "a URL of at most 2048 bytes" : example;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 0x7f || is_one_of(text.ptr[i], "\\\"<>^`{|}"))
            return "a URL without blanks, quotes, brackets and other letters: %XX stands for them";
    u.is_https = text.len > 8 && strncasecmp(text.ptr, "https://", 8) == 0;
    if (!u.is_https && (text.len <= 7 || strncasecmp(text.ptr, "http://", 7) != 0))
        return example;
    struct slice rest = behind(text, u.is_https ? 8 : 7);
    struct slice place = cut_at(rest, "/?#");
    u.path = behind(rest, place.len);
    if (memchr(place.ptr, '@', place.len))
        return "a URL without a user and a password";
    if (memchr(text.ptr, '#', text.len))
        return "a URL without #";
    if (is_pattern && memchr(text.ptr, '?', text.len))
        return "a URL without ?";
    bool is_v6 = place.len > 0 && place.ptr[0] == '[';
    u.host = is_v6 ? cut_at(place, "]") : cut_at(place, ":");
    if (is_v6 && u.host.len < place.len)
        u.host.len++;
    struct slice port = behind(place, u.host.len);
    u.port = u.is_https ? 443 : 80;
    if (!is_host(u.host, is_pattern))
        return is_pattern ? "a host such as shop.example.org or *.example.org" : example;
    if (port.len > 0 && (port.ptr[0] != ':' || !read_port(behind(port, 1), &u.port)))
        return "a port from 1 to 65535";
    if (u.path.len == 0)
        u.path = SLICE("/");
    else if (u.path.ptr[0] != '/')
        return "a URL with a / before the ?";
    struct slice way = cut_at(u.path, "?");
    if (!is_encoded_well(way) || path_has_steps(way))
        return "a path without \".\", \"..\" and a % that means nothing";
    *ret = u;
    return NULL;
}

static bool is_same_host(struct slice host, struct slice pattern)
{
    while (host.ptr && pattern.ptr) {
        struct slice one = cut_at(host, ".");
        struct slice other = cut_at(pattern, ".");
        if (!slice_is(other, "*")
            && (one.len != other.len || strncasecmp(one.ptr, other.ptr, one.len) != 0))
            return false;
        host = one.len < host.len ? behind(host, one.len + 1) : SLICE_NONE;
        pattern = other.len < pattern.len ? behind(pattern, other.len + 1) : SLICE_NONE;
    }
    return host.ptr == pattern.ptr;
}

bool url_is_below(const struct url *u, const struct url *pattern)
{
    struct slice top = pattern->path;

    if (u->is_https != pattern->is_https || u->port != pattern->port
        || !is_same_host(u->host, pattern->host))
        return false;
    if (u->path.len < top.len || memcmp(u->path.ptr, top.ptr, top.len) != 0)
        return false;
    return top.ptr[top.len - 1] == '/' || u->path.len == top.len
           || is_one_of(u->path.ptr[top.len], "/?");
}

void url_origin(const struct url *u, struct buf *b)
{
    buf_fmt(b, "%s://", u->is_https ? "https" : "http");
    for (size_t i = 0; i < u->host.len; i++) {
        char c = u->host.ptr[i];
        buf_byte(b, c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c);
    }
    buf_fmt(b, ":%u", u->port);
}
