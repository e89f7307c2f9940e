/* Replaces a secret in a text, plain or in any escaped form (secret_hide.h). The HTTP agent and the
 * webhooks call it with what a service answered, because a service may repeat what it was sent. */

#include "config/secret_hide.h"

#include <string.h>

enum { HIDE_MIN = 4 /* bytes: shorter texts occur everywhere */ };

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
static size_t match(struct slice text, struct slice secret)
{
    size_t at = 0;
    size_t i = 0;

    while (i < secret.len && at < text.len) {
        char bytes[4];
        size_t count = 0;
        size_t size = is_escape(text.ptr[at])
                          ? unescape((struct slice){text.ptr + at, text.len - at}, bytes, &count)
                          : 0;
        if (size > 0 && secret.len - i >= count && memcmp(secret.ptr + i, bytes, count) == 0) {
            at += size;
            i += count;
        } else if (text.ptr[at] == secret.ptr[i]) {
            at++;
            i++;
        } else {
            return 0;
        }
    }
    return i == secret.len ? at : 0;
}

static size_t match_plain(struct slice text, struct slice secret)
{
    return text.len >= secret.len && memcmp(text.ptr, secret.ptr, secret.len) == 0 ? secret.len : 0;
}

/* Where a match may begin. */
static size_t skip(struct slice text, struct slice secret, bool has_escapes)
{
    size_t i = 0;

    if (!has_escapes) {
        const char *at = memchr(text.ptr, secret.ptr[0], text.len);
        return at ? (size_t)(at - text.ptr) : text.len;
    }
    while (i < text.len && text.ptr[i] != secret.ptr[0] && !is_escape(text.ptr[i]))
        i++;
    return i;
}

void secret_hide(struct buf *text, struct slice secret)
{
    bool has_escapes =
        text->len > 0 && (memchr(text->ptr, '\\', text->len) || memchr(text->ptr, '%', text->len));
    size_t to = 0;

    if (secret.len < HIDE_MIN)
        return;
    for (size_t from = 0; from < text->len;) {
        struct slice rest = {text->ptr + from, text->len - from};
        size_t plain = skip(rest, secret, has_escapes);
        memmove(text->ptr + to, rest.ptr, plain);
        from += plain;
        to += plain;
        if (from == text->len)
            break;
        rest = (struct slice){text->ptr + from, text->len - from};
        size_t len = match_plain(rest, secret);
        if (len == 0 && has_escapes)
            len = match(rest, secret);
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
