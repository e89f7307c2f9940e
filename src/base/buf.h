#ifndef BASE_BUF_H
#define BASE_BUF_H

/*
 * A growing byte string. Once anything was appended, `ptr` is terminated by a NUL that does not
 * count. Every buf has a maximum: appending beyond it sets `overflow` and drops the bytes, so a
 * writer checks once, at the end.
 *
 *     CLEANUP(buf_fini) struct buf b = {.max = 1 << 20};
 *
 * A zeroed buf has no maximum (SIZE_MAX). A failed allocation aborts.
 */

#include "base/base.h"

struct buf {
    char *ptr;
    size_t len, cap, max;
    bool overflow;
};

void buf_fini(struct buf *b);  /* frees; the buf is empty and usable again */
void buf_clear(struct buf *b); /* keeps the memory */
void buf_end(struct buf *b);   /* as if more had been appended than fits */
void buf_str(struct buf *b, const char *s);
void buf_i64(struct buf *b, int64_t v);
void buf_fmt(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

char *buf_grow(struct buf *b, size_t len); /* the slow path of buf_room */

/* Room for len more bytes at the end and a NUL; NULL on overflow. Inline, because output is written
 * in small pieces. */
static inline char *buf_room(struct buf *b, size_t len)
{
    if (b->cap - b->len > len)
        return b->ptr + b->len;
    return buf_grow(b, len);
}

static inline void buf_add(struct buf *b, const void *ptr, size_t len)
{
    char *at = buf_room(b, len);

    if (!at)
        return;
    if (len > 0)
        memcpy(at, ptr, len);
    at[len] = 0;
    b->len += len;
}

static inline void buf_byte(struct buf *b, char c)
{
    buf_add(b, &c, 1);
}

static inline void buf_slice(struct buf *b, struct slice s)
{
    buf_add(b, s.ptr, s.len);
}

static inline struct slice buf_view(const struct buf *b)
{
    return (struct slice){b->ptr ? b->ptr : "", b->len};
}

#endif
