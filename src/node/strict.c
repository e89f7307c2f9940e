/*
 * Rejects what a request says that nobody understands: unknown members and parameters, with a
 * suggestion, content types, and texts that are not JSON.
 */

#include "node/strict.h"

#include "config/config_reader.h"
#include "http/http.h"

/* ---- names ---- */

enum { NAME_SHOWN_MAX = 80 };

static bool is_one_of(struct slice name, const char *const *known)
{
    for (; *known; known++)
        if (slice_is(name, *known))
            return true;
    return false;
}

static const char *nearest(struct slice name, const char *const *known)
{
    for (; *known; known++)
        if (name_is_near(name, slice_of(*known)))
            return *known;
    return NULL;
}

/* Goes on behind `there is no member "x" in y`. */
static void write_known(struct buf *b, struct slice name, const char *const *known)
{
    const char *near = nearest(name, known);

    if (near) {
        buf_fmt(b, ", did you mean \"%s\"?", near);
        return;
    }
    buf_str(b, known[0] ? ", expected " : ", none is expected");
    for (size_t i = 0; known[i]; i++)
        buf_fmt(b, "%s%s", i == 0 ? "" : known[i + 1] ? ", " : " or ", known[i]);
}

bool members_known(const struct json *object, const char *const *known, const char *where,
                   struct buf *ret_story)
{
    for (const struct json *m = object->child; m; m = m->next) {
        if (is_one_of(m->key, known))
            continue;
        buf_fmt(ret_story, "there is no member \"%.*s\" in %s",
                SLICE_ARG(slice_cut(m->key, NAME_SHOWN_MAX)), where);
        write_known(ret_story, m->key, known);
        return false;
    }
    return true;
}

bool members_ok(struct http_request *r, const struct json *object, const char *const *known,
                const char *where)
{
    CLEANUP(buf_fini) struct buf story = {0};

    if (members_known(object, known, where, &story))
        return true;
    http_problem(r, 422, "unknown-member", "%s", story.ptr);
    return false;
}

static bool stands_before(struct http_request *r, size_t end, struct slice name)
{
    struct slice other;
    struct slice value;

    for (size_t at = 0; http_query_next(r, &at, &other, &value) && at < end;)
        if (slice_eq(other, name))
            return true;
    return false;
}

void answer_unknown_parameter(struct http_request *r, struct slice name, const char *const *known)
{
    CLEANUP(buf_fini) struct buf story = {0};

    buf_fmt(&story, "there is no parameter \"%.*s\" here",
            SLICE_ARG(slice_cut(name, NAME_SHOWN_MAX)));
    write_known(&story, name, known);
    http_problem(r, 422, "unknown-parameter", "%s", story.ptr);
}

bool parameters_ok(struct http_request *r, const char *const *known)
{
    struct slice name;
    struct slice value;

    for (size_t at = 0; http_query_next(r, &at, &name, &value);) {
        if (!is_one_of(name, known)) {
            answer_unknown_parameter(r, name, known);
            return false;
        }
        if (stands_before(r, at, name)) {
            http_problem(r, 422, "repeated-parameter", "%.*s is given twice", SLICE_ARG(name));
            return false;
        }
    }
    return true;
}

/* ---- texts that are no JSON ---- */

static bool is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

void refusal_write(struct buf *b, struct slice text, const struct json_fault *f, uint32_t line)
{
    enum { SHOWN_MAX = 20 };
    size_t end = f->offset;

    buf_fmt(b, "line %" PRIu32 ", column %" PRIu32 ": %s", line + f->line - 1, f->column, f->what);
    if (f->offset >= text.len)
        return;
    while (end < text.len && end - f->offset < SHOWN_MAX && is_printable(text.ptr[end]))
        end++;
    if (end > f->offset)
        buf_fmt(b, ", at %.*s", (int)(end - f->offset), text.ptr + f->offset);
    else
        buf_fmt(b, ", at the byte 0x%02x", (unsigned char)text.ptr[f->offset]);
}

/* ---- content types ---- */

static struct slice trimmed(struct slice s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = (struct slice){s.ptr + 1, s.len - 1};
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* The part before the next ';'; *rest is the part after it. */
static struct slice part(struct slice *rest)
{
    const char *end = memchr(rest->ptr, ';', rest->len);
    struct slice s = *rest;

    if (end)
        s.len = (size_t)(end - s.ptr);
    size_t used = s.len + (end != NULL);
    *rest = (struct slice){rest->ptr + used, rest->len - used};
    return trimmed(s);
}

/* JSON has no parameters; a charset that repeats the default does no harm. */
static bool is_harmless(struct slice parameter)
{
    return parameter.len == 0 || http_slice_is_like(parameter, "charset=utf-8")
           || http_slice_is_like(parameter, "charset=\"utf-8\"");
}

bool content_type_is(const struct http_request *r, const char *type)
{
    struct slice rest = http_header(r, "content-type");

    if (!rest.ptr || !http_slice_is_like(part(&rest), type))
        return false;
    while (rest.len > 0)
        if (!is_harmless(part(&rest)))
            return false;
    return true;
}

void answer_content_type(struct http_request *r, const char *expected)
{
    struct slice found = http_header(r, "content-type");

    if (found.len > 0)
        http_problem(r, 415, "content-type", "the Content-Type is %.*s, expected %s",
                     SLICE_ARG(slice_cut(found, NAME_SHOWN_MAX)), expected);
    else
        http_problem(r, 415, "content-type", "the request has no Content-Type, expected %s",
                     expected);
}

bool content_encoding_ok(struct http_request *r)
{
    struct slice coding = http_header(r, "content-encoding");

    if (coding.len == 0 || http_slice_is_like(trimmed(coding), "identity"))
        return true;
    http_problem(r, 415, "content-encoding", "the Content-Encoding is %.*s, expected none",
                 SLICE_ARG(slice_cut(coding, NAME_SHOWN_MAX)));
    return false;
}
