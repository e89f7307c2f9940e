#ifndef BASE_BUF_H
#define BASE_BUF_H

/*
 * A byte string that grows. `ptr` is always terminated by a NUL that does not
 * count, once anything was appended. Every buf has a maximum: appending beyond it
 * sets `overflow` and drops the bytes, so a writer checks once, at the end.
 *
 *     CLEANUP(buf_fini) struct buf b = {.max = 1 << 20};
 *
 * A zeroed buf has no maximum (SIZE_MAX). Small allocations that fail abort.
 */

#include "base/base.h"

struct buf {
    char *ptr;
    size_t len, cap, max;
    bool overflow;
};

void buf_fini(struct buf *b);  /* frees; the buf is empty and usable again */
void buf_clear(struct buf *b); /* keeps the memory */
char *buf_room(struct buf *b,
               size_t len); /* room for len more bytes at the end, or NULL on overflow */
void buf_add(struct buf *b, const void *ptr, size_t len);
void buf_slice(struct buf *b, struct slice s);
void buf_str(struct buf *b, const char *s);
void buf_byte(struct buf *b, char c);
void buf_i64(struct buf *b, int64_t v);
void buf_fmt(struct buf *b, const char *fmt, ...) PRINTF(2, 3);

static inline struct slice buf_view(const struct buf *b)
{
    return (struct slice){b->ptr ? b->ptr : "", b->len};
}

#endif
