/* Implements buf.h: a byte string that grows up to its maximum. Appending beyond the maximum sets
 * `overflow`; the short operations are inline in the header, and only what has to grow or to
 * format is here. */

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void buf_fini(struct buf *b)
{
    free(b->ptr);
    *b = (struct buf){.max = b->max};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    b->overflow = false;
    if (b->ptr)
        b->ptr[0] = 0;
}

void buf_end(struct buf *b)
{
    b->overflow = true;
    b->cap = b->len; /* so that buf_room calls buf_grow each time */
}

char *buf_grow(struct buf *b, size_t len)
{
    size_t max = b->max ? b->max : SIZE_MAX / 4;

    if (b->overflow || len > max - b->len) {
        buf_end(b);
        return NULL;
    }
    if (b->len + len + 1 > b->cap) {
        size_t cap = b->cap ? b->cap : 128;
        while (cap < b->len + len + 1)
            cap *= 2;
        if (cap > max + 1)
            cap = max + 1; /* so that buf_room need not check the maximum */
        b->ptr = realloc(b->ptr, cap);
        if (!b->ptr)
            out_of_memory(cap);
        b->cap = cap;
    }
    return b->ptr + b->len;
}

void buf_str(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

enum { DIGITS_MAX = 24, FORMATTED = 64 };

void buf_i64(struct buf *b, int64_t v)
{
    static const char pairs[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    char digits[2 * DIGITS_MAX] = {0};
    size_t at = DIGITS_MAX;
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

    for (; u >= 100; u /= 100) {
        at -= 2;
        memcpy(digits + at, &pairs[u % 100 * 2], 2);
    }
    if (u >= 10)
        digits[--at] = (char)('0' + u % 10);
    digits[--at] = (char)('0' + (u >= 10 ? u / 10 : u));
    if (v < 0)
        digits[--at] = '-';
    if (b->max) {
        buf_add(b, digits + at, DIGITS_MAX - at);
        return;
    }
    /* Always copies DIGITS_MAX bytes, with trailing zeros: a few moves instead of a call. */
    memcpy(buf_room(b, DIGITS_MAX), digits + at, DIGITS_MAX);
    b->len += DIGITS_MAX - at;
}

/* Formats into the available room. That is seldom too small; then it is done again. */
void buf_fmt(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    va_list again;

    if (!b->ptr && b->max == 0 && !b->overflow)
        (void)buf_grow(b, FORMATTED);
    size_t room = b->ptr && !b->overflow ? b->cap - b->len : 0;
    va_start(ap, fmt);
    va_copy(again, ap);
    int len = vsnprintf(room > 0 ? b->ptr + b->len : NULL, room, fmt, ap);
    va_end(ap);
    ASSERT(len >= 0);
    if ((size_t)len < room) {
        b->len += (size_t)len;
        va_end(again);
        return;
    }
    if (room > 0)
        b->ptr[b->len] = 0;
    char *at = buf_room(b, (size_t)len);
    if (at) {
        (void)vsnprintf(at, (size_t)len + 1, fmt, again); /* measured above */
        b->len += (size_t)len;
    }
    va_end(again);
}
