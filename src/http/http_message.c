/* Requests: their memory, and access to headers, query and path segments. See http_message.h and
 * http.h. */
#include "http/http_message.h"

#include <strings.h>

struct http_message *http_message_new(unsigned field_max, struct slice head, struct slice *ret_head)
{
    struct arena a = {0};
    struct http_message *m = arena_alloc(&a, sizeof *m);

    m->fields = arena_alloc(&a, field_max * sizeof *m->fields);
    m->field_max = field_max;
    *ret_head = arena_copy(&a, head);
    m->request.arena = a;
    return m;
}

void http_message_free(struct http_message *m)
{
    if (!m)
        return;
    buf_fini(&m->body);
    if (m->request.let_go)
        m->request.let_go(m->request.kept);
    struct arena a = m->request.arena; /* moved out: *m is in it */
    arena_fini(&a);
}

/* A body that came in one piece is in the arena. */
struct buf http_take_body(struct http_request *r)
{
    struct http_message *m = http_message_of(r);
    struct buf taken = m->body;

    m->body = (struct buf){0};
    if (taken.len == 0 && r->body.len > 0)
        buf_slice(&taken, r->body);
    r->body = buf_view(&taken);
    return taken;
}

void http_return_body(struct http_request *r, struct buf body)
{
    struct http_message *m = http_message_of(r);

    ASSERT(m->body.cap == 0);
    m->body = body;
    r->body = buf_view(&m->body);
}

bool http_slice_is_like(struct slice s, const char *text)
{
    return s.ptr && s.len == strlen(text) && strncasecmp(s.ptr, text, s.len) == 0;
}

int http_hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

struct slice http_header(const struct http_request *r, const char *name)
{
    const struct http_message *m = http_message_of(r);

    for (unsigned i = 0; i < m->field_count; i++)
        if (http_slice_is_like(m->fields[i].name, name))
            return m->fields[i].value;
    return SLICE_NONE;
}

unsigned http_header_count(const struct http_request *r, const char *name)
{
    const struct http_message *m = http_message_of(r);
    unsigned count = 0;

    for (unsigned i = 0; i < m->field_count; i++)
        count += http_slice_is_like(m->fields[i].name, name);
    return count;
}

/* Splits `s` at the first `c`: returns the part before it and sets *s to the part after it, NONE if
 * there is no `c`. */
static struct slice cut(struct slice *s, char c)
{
    struct slice before = *s;
    const char *at = s->len ? memchr(s->ptr, c, s->len) : NULL;

    *s = SLICE_NONE;
    if (at) {
        size_t len = (size_t)(at - before.ptr);
        *s = (struct slice){at + 1, before.len - len - 1};
        before.len = len;
    }
    return before;
}

/* Percent-decodes, into the arena unless nothing is encoded. NONE if the encoding is invalid or
 * contains NUL. A '+' means a space in queries, and itself in paths. */
static struct slice decode(struct arena *a, struct slice s, bool is_query)
{
    if (s.len == 0)
        return s;
    if (!memchr(s.ptr, '%', s.len) && !(is_query && memchr(s.ptr, '+', s.len)))
        return s;

    char *out = arena_bytes(a, s.len);
    size_t len = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '+' && is_query)
            c = ' ';
        if (c == '%') {
            int high = i + 2 < s.len ? http_hex_digit(s.ptr[i + 1]) : -1;
            int low = high >= 0 ? http_hex_digit(s.ptr[i + 2]) : -1;
            if (low < 0 || high * 16 + low == 0)
                return SLICE_NONE;
            c = (char)(high * 16 + low);
            i += 2;
        }
        out[len++] = c;
    }
    return (struct slice){out, len};
}

bool http_query_next(struct http_request *r, size_t *at, struct slice *ret_name,
                     struct slice *ret_value)
{
    while (r->query.ptr && *at < r->query.len) {
        struct slice rest = {r->query.ptr + *at, r->query.len - *at};
        struct slice value = cut(&rest, '&');
        *at = rest.ptr ? (size_t)(rest.ptr - r->query.ptr) : r->query.len;
        if (value.len == 0)
            continue;
        struct slice name = cut(&value, '=');
        *ret_name = decode(&r->arena, name, true);
        *ret_value = value.ptr ? decode(&r->arena, value, true) : SLICE("");
        return true;
    }
    return false;
}

struct slice http_query(struct http_request *r, const char *name)
{
    struct slice found;
    struct slice value;

    for (size_t at = 0; http_query_next(r, &at, &found, &value);)
        if (slice_is(found, name))
            return value;
    return SLICE_NONE;
}

unsigned http_segment_count(const struct http_request *r)
{
    unsigned count = 0;

    if (r->path.len <= 1)
        return 0;
    for (size_t i = 0; i < r->path.len; i++)
        count += r->path.ptr[i] == '/';
    return count;
}

struct slice http_segment(struct http_request *r, unsigned n)
{
    struct slice rest = r->path;

    if (n >= http_segment_count(r))
        return SLICE_NONE;
    (void)cut(&rest, '/'); /* the empty part before the first one */
    while (n-- > 0)
        (void)cut(&rest, '/');
    return decode(&r->arena, cut(&rest, '/'), false);
}
