/* Checks the head of a request by the rules of RFC 9112 and 9110 that llhttp leaves open or
 * tolerates (head.h): where the request ends, and for which host it is. Refuses every ambiguity.
 * Pure functions on a struct http_message; request_reader.c is the caller. */

#include "http/head.h"

#include <strings.h>

static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"};

static bool refuse(struct http_fault *f, int status, const char *type, const char *reason)
{
    *f = (struct http_fault){status, type, reason};
    return false;
}

static bool malformed(struct http_fault *f, const char *reason)
{
    return refuse(f, 400, "malformed", reason);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool version_check(struct slice v, struct http_fault *f)
{
    if (v.len != 8 || memcmp(v.ptr, "HTTP/", 5) != 0 || !is_digit(v.ptr[5]) || v.ptr[6] != '.'
        || !is_digit(v.ptr[7]))
        return malformed(f, "the request line does not end in a version of HTTP");
    if (!slice_is(v, "HTTP/1.1") && !slice_is(v, "HTTP/1.0"))
        return refuse(f, 505, "version", "only HTTP/1.1 and HTTP/1.0 are spoken here");
    return true;
}

static bool method_check(struct slice method, struct http_fault *f)
{
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (slice_is(method, methods[i]))
            return true;
    return malformed(f, "the method is not known here");
}

bool http_head_line(struct http_message *m, struct slice line, struct http_fault *f)
{
    const char *end = line.ptr + line.len;
    const char *first = memchr(line.ptr, ' ', line.len);
    const char *last = memrchr(line.ptr, ' ', line.len);

    if (!first || first == last)
        return malformed(f, "the request line needs a method, a target and a version");
    m->request.method = (struct slice){line.ptr, (size_t)(first - line.ptr)};
    m->target = (struct slice){first + 1, (size_t)(last - first) - 1};
    m->version = (struct slice){last + 1, (size_t)(end - last) - 1};
    if (m->target.len == 0 || memchr(m->target.ptr, ' ', m->target.len))
        return malformed(f, "single spaces part the request line into three");
    return version_check(m->version, f) && method_check(m->request.method, f);
}

/* The characters of an authority in RFC 3986, without user information. */
static bool host_is_valid(struct slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];
        bool is_alnum = is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        if (!is_alnum && !strchr("-._~%:[]!$&'()*+,;=", c))
            return false;
    }
    return host.len > 0;
}

static bool host_check(const struct http_message *m, const struct http_field *host, unsigned count,
                       struct http_fault *f)
{
    if (count > 1)
        return malformed(f, "more than one Host");
    if (count == 0 && !http_message_is_1_0(m))
        return malformed(f, "HTTP/1.1 requires a Host");
    if (count == 1 && !host_is_valid(host->value))
        return malformed(f, "the Host is not valid");
    return true;
}

/* RFC 9112, 6.1: chunked comes last and once. Other codings are not supported. */
static bool coding_check(struct slice codings, struct http_fault *f)
{
    if (http_slice_is_like(codings, "chunked"))
        return true;
    if (codings.len == 0)
        return malformed(f, "Transfer-Encoding is empty");
    if (codings.len > 7 && strncasecmp(codings.ptr, "chunked", 7) == 0
        && strchr(", \t", codings.ptr[7]))
        return malformed(f, "chunked must be the last transfer coding, and only once");
    return refuse(f, 501, "not-implemented", "the only transfer coding known here is chunked");
}

static bool length_check(struct slice length, struct http_fault *f)
{
    for (size_t i = 0; i < length.len; i++)
        if (!is_digit(length.ptr[i]))
            return malformed(f, "Content-Length is not a number");
    return length.len > 0 ? true : malformed(f, "Content-Length is empty");
}

static bool expect_check(struct http_message *m, struct slice expect, struct http_fault *f)
{
    if (http_message_is_1_0(m))
        return true; /* RFC 9110, 10.1.1: ignored there */
    if (!http_slice_is_like(expect, "100-continue"))
        return refuse(f, 417, "expectation", "the only expectation known here is 100-continue");
    m->expects_continue = true;
    return true;
}

/* Only visible ASCII without a fragment, and each '%' precedes two hexadecimal digits that do not
 * encode NUL. */
static bool target_is_clean(struct slice t)
{
    for (size_t i = 0; i < t.len; i++) {
        char c = t.ptr[i];
        if (c <= ' ' || c > '~' || c == '#')
            return false;
        if (c != '%')
            continue;
        int high = i + 2 < t.len ? http_hex_digit(t.ptr[i + 1]) : -1;
        int low = high >= 0 ? http_hex_digit(t.ptr[i + 2]) : -1;
        if (low < 0 || high + low == 0) /* no valid name contains NUL, and JSON cannot hold it */
            return false;
    }
    return true;
}

/* RFC 9112, 3.2.2: every server must accept "GET http://host/path". That host overrides the Host
 * field; a difference between them can only be meant to deceive. */
static bool authority_skip(struct slice *target, struct slice host, struct http_fault *f)
{
    size_t at = 0;

    if (target->len > 7 && strncasecmp(target->ptr, "http://", 7) == 0)
        at = 7;
    else if (target->len > 8 && strncasecmp(target->ptr, "https://", 8) == 0)
        at = 8;
    else
        return malformed(f, "the target is neither a path nor a URL");

    size_t end = at;
    while (end < target->len && target->ptr[end] != '/' && target->ptr[end] != '?')
        end++;
    if (!host.ptr || end - at != host.len || strncasecmp(target->ptr + at, host.ptr, host.len) != 0)
        return malformed(f, "the target names another host than the Host field");
    *target = (struct slice){target->ptr + end, target->len - end};
    return true;
}

static bool target_split(struct http_message *m, struct slice host, struct http_fault *f)
{
    struct slice t = m->target;

    if (!target_is_clean(t))
        return malformed(f, "the target holds a character or an encoding that it may not");
    if (slice_is(t, "*") && slice_is(m->request.method, "OPTIONS")) {
        m->request.path = t;
        return true;
    }
    if (t.ptr[0] != '/' && !authority_skip(&t, host, f))
        return false;

    const char *mark = t.len ? memchr(t.ptr, '?', t.len) : NULL;
    m->request.path = t;
    if (mark) {
        m->request.path.len = (size_t)(mark - t.ptr);
        m->request.query = (struct slice){mark + 1, t.len - m->request.path.len - 1};
    }
    if (m->request.path.len == 0)
        m->request.path = SLICE("/"); /* RFC 9110, 4.2.3: "http://host" is "http://host/" */
    return true;
}

/* The fields that http_head_check needs. */
enum { HOST, LENGTH, CODING, EXPECT, LOOKED_FOR };
static const char *const looked_for[LOOKED_FOR] = {"Host", "Content-Length", "Transfer-Encoding",
                                                   "Expect"};

static void look(const struct http_message *m, const struct http_field *found[LOOKED_FOR],
                 unsigned count[LOOKED_FOR])
{
    for (unsigned i = 0; i < m->field_count; i++)
        for (unsigned k = 0; k < LOOKED_FOR; k++)
            if (http_slice_is_like(m->fields[i].name, looked_for[k])) {
                found[k] = &m->fields[i];
                count[k]++;
            }
}

bool http_head_check(struct http_message *m, struct http_framing *ret, struct http_fault *f)
{
    const struct http_field *found[LOOKED_FOR] = {NULL};
    unsigned count[LOOKED_FOR] = {0};

    look(m, found, count);
    if (!host_check(m, found[HOST], count[HOST], f))
        return false;
    if (count[LENGTH] > 1 || count[CODING] > 1)
        return malformed(f, "more than one Content-Length or Transfer-Encoding");
    if (count[LENGTH] && count[CODING])
        return malformed(f, "both Content-Length and Transfer-Encoding");
    if (count[CODING] && http_message_is_1_0(m))
        return malformed(f, "HTTP/1.0 has no Transfer-Encoding");
    if (count[CODING] && !coding_check(found[CODING]->value, f))
        return false;
    if (count[LENGTH] && !length_check(found[LENGTH]->value, f))
        return false;
    if (count[EXPECT] && !expect_check(m, found[EXPECT]->value, f))
        return false;
    *ret = (struct http_framing){count[CODING] > 0, count[LENGTH] > 0};
    return target_split(m, count[HOST] ? found[HOST]->value : SLICE_NONE, f);
}
