/* Loads the secrets of the HTTP agent, fills them into requests, and hides them in everything
 * that is logged, reported or stored, in any escaped form (http_secrets.h). Freed values are
 * wiped. http_job.c is the main caller. */

#include "agents/http/http_secrets.h"

#include <stdlib.h>

#include "json/text.h"

enum { HIDE_MIN = 4 /* bytes: shorter texts occur everywhere */ };

struct value {
    struct slice name; /* in the configuration */
    char *text;
    size_t len;
};

struct secrets {
    struct secrets *before; /* the previous values, which requests in progress may use */
    size_t count;
    struct value values[];
};

void secrets_free(struct secrets *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->count; i++)
        secret_wipe(s->values[i].text, s->values[i].len);
    secrets_free(s->before);
    free(s);
}

void secrets_replace(struct secrets **s, struct secrets *fresh)
{
    secrets_free((*s)->before);
    (*s)->before = NULL;
    fresh->before = *s;
    *s = fresh;
}

static const char *value_fault(struct slice text)
{
    if (text.len == 0)
        return "it is empty";
    if (text_utf8_end(text) != text.len || !header_value_is_sound(text))
        return "it is not one line of text of at most 8 KiB";
    return NULL;
}

static const char *load(struct value *v, const struct secret *s)
{
    char *text = NULL;
    size_t len = 0;
    const char *fault = secret_place_load(&s->place, &text, &len);

    v->name = s->name;
    if (!fault)
        fault = value_fault((struct slice){text, len});
    if (fault) {
        secret_wipe(text, len);
        return fault;
    }
    v->text = text;
    v->len = len;
    return NULL;
}

struct secrets *secrets_load(const struct http_config *c, struct buf *ret_faults)
{
    size_t count = 0;
    bool ok = true;

    for (const struct secret *one = c->secrets; one; one = one->next)
        count++;
    struct secrets *s = calloc(1, sizeof *s + count * sizeof s->values[0]);
    ASSERT(s);
    for (const struct secret *one = c->secrets; one; one = one->next) {
        const char *fault = load(&s->values[s->count++], one);
        if (fault) {
            buf_fmt(ret_faults, "secret %.*s: ", SLICE_ARG(one->name));
            secret_place_fault(&one->place, fault, ret_faults);
            buf_byte(ret_faults, '\n');
        }
        ok = ok && !fault;
    }
    if (ok)
        return s;
    secrets_free(s);
    return NULL;
}

static const struct value *find(const struct secrets *s, struct slice name)
{
    for (size_t i = 0; i < s->count; i++)
        if (slice_eq(s->values[i].name, name))
            return &s->values[i];
    return NULL;
}

void secrets_fill(const struct secrets *s, struct slice value, struct buf *b)
{
    struct slice plain;
    struct slice name;

    for (size_t at = 0; setting_next(value, &at, &plain, &name);) {
        const struct value *v = name.ptr ? find(s, name) : NULL;
        buf_slice(b, plain);
        if (v) /* always, because the configuration was checked */
            buf_add(b, v->text, v->len);
    }
}

/* ---- hiding ---- */

/* Parses `digits` hexadecimal digits; -1: they are none. */
static int hex_of(struct slice text, size_t digits)
{
    int value = 0;

    if (text.len < digits)
        return -1;
    for (size_t i = 0; i < digits; i++) {
        char c = text.ptr[i];
        int lower = c | 0x20;
        if (c >= '0' && c <= '9')
            value = value * 16 + (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = value * 16 + (lower - 'a' + 10);
        else
            return -1;
    }
    return value;
}

static size_t write_utf8(unsigned long c, char ret[4])
{
    static const unsigned char first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = len - 1; i > 0; i--, c >>= 6)
        ret[i] = (char)(0x80 | (c & 0x3f));
    ret[0] = (char)(first[len] | c);
    return len;
}

/* The length of a JSON or URL escape at the beginning; 0: none. *ret gets its meaning. */
static size_t unescape(struct slice text, char ret[4], size_t *ret_len)
{
    struct slice rest = {text.ptr + 2, text.len - 2};
    const char *names = "\"\\/bfnrt";
    const char *means = "\"\\/\b\f\n\r\t";

    if (text.len < 2)
        return 0;
    *ret_len = 1;
    if (text.ptr[0] == '%') {
        int byte = hex_of((struct slice){text.ptr + 1, text.len - 1}, 2);
        ret[0] = (char)byte;
        return byte < 0 ? 0 : 3;
    }
    const char *name = text.ptr[1] ? strchr(names, text.ptr[1]) : NULL;
    if (text.ptr[0] == '\\' && name) {
        ret[0] = means[name - names];
        return 2;
    }
    long c = text.ptr[0] == '\\' && text.ptr[1] == 'u' ? hex_of(rest, 4) : -1;
    if (c < 0)
        return 0;
    bool is_half =
        c >= 0xd800 && c < 0xdc00 && rest.len >= 10 && memcmp(rest.ptr + 4, "\\u", 2) == 0;
    long low = is_half ? hex_of((struct slice){rest.ptr + 6, rest.len - 6}, 4) : -1;
    if (low >= 0xdc00 && low < 0xe000)
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    *ret_len = write_utf8((unsigned long)c, ret);
    return c >= 0x10000 ? 12 : 6;
}

static bool is_escape(char c)
{
    return c == '\\' || c == '%';
}

/* The length of this secret at the beginning, in any escaped form; 0: not there. */
static size_t match(struct slice text, const struct value *v)
{
    size_t at = 0;
    size_t i = 0;

    while (i < v->len && at < text.len) {
        char bytes[4];
        size_t count = 0;
        size_t size = is_escape(text.ptr[at])
                          ? unescape((struct slice){text.ptr + at, text.len - at}, bytes, &count)
                          : 0;
        if (size > 0 && v->len - i >= count && memcmp(v->text + i, bytes, count) == 0) {
            at += size;
            i += count;
        } else if (text.ptr[at] == v->text[i]) {
            at++;
            i++;
        } else {
            return 0;
        }
    }
    return i == v->len ? at : 0;
}

static size_t match_plain(struct slice text, const struct value *v)
{
    return text.len >= v->len && memcmp(text.ptr, v->text, v->len) == 0 ? v->len : 0;
}

/* Where a match may begin. */
static size_t skip(struct slice text, const struct value *v, bool has_escapes)
{
    size_t i = 0;

    if (!has_escapes) {
        const char *at = memchr(text.ptr, v->text[0], text.len);
        return at ? (size_t)(at - text.ptr) : text.len;
    }
    while (i < text.len && text.ptr[i] != v->text[0] && !is_escape(text.ptr[i]))
        i++;
    return i;
}

static void hide_one(struct buf *text, const struct value *v, bool has_escapes)
{
    size_t to = 0;

    if (v->len < HIDE_MIN)
        return;
    for (size_t from = 0; from < text->len;) {
        struct slice rest = {text->ptr + from, text->len - from};
        size_t plain = skip(rest, v, has_escapes);
        memmove(text->ptr + to, rest.ptr, plain);
        from += plain;
        to += plain;
        if (from == text->len)
            break;
        rest = (struct slice){text->ptr + from, text->len - from};
        size_t len = match_plain(rest, v);
        if (len == 0 && has_escapes)
            len = match(rest, v);
        if (len > 0)
            memcpy(text->ptr + to, "***", 3); /* the match was at least as long */
        else
            text->ptr[to] = *rest.ptr;
        to += len > 0 ? 3 : 1;
        from += len > 0 ? len : 1;
    }
    text->len = to;
    if (text->ptr)
        text->ptr[to] = 0;
}

void secrets_hide(const struct secrets *s, struct buf *text)
{
    bool has_escapes =
        text->len > 0 && (memchr(text->ptr, '\\', text->len) || memchr(text->ptr, '%', text->len));

    for (; s; s = s->before)
        for (size_t i = 0; i < s->count; i++)
            hide_one(text, &s->values[i], has_escapes);
}
