#ifndef BASE_PEN_H
#define BASE_PEN_H

/*
 * Writes texts of known length one after another into the room that a buf was asked for once. For
 * the few texts of which thousands are made in a second; others append to the buf itself.
 *
 *     char *at = pen_begin(b, 20 + id.len);
 *     at = PEN(at, "{\"id\":\"");
 *     at = pen_slice(at, id);
 *     at = PEN(at, "\"}");
 *     pen_end(b, at);
 */

#include "base/buf.h"

/* Of a buf without a maximum. */
static inline char *pen_begin(struct buf *b, size_t room)
{
    char *at = buf_room(b, room);

    ASSERT(at);
    return at;
}

static inline char *pen_slice(char *at, struct slice s)
{
    if (s.len > 0)
        memcpy(at, s.ptr, s.len);
    return at + s.len;
}

#define PEN(at, text) pen_slice(at, (struct slice){"" text, sizeof(text) - 1})

static inline void pen_end(struct buf *b, char *at)
{
    *at = 0;
    b->len = (size_t)(at - b->ptr);
    ASSERT(b->len < b->cap);
}

#endif
