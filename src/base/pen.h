#ifndef BASE_PEN_H
#define BASE_PEN_H

/*
 * Writes texts of known length into room that was reserved once in a buf. For the few texts that
 * are made thousands of times a second; other code appends to the buf itself.
 *
 *     char *at = pen_begin(b, 20 + id.len);
 *     at = PEN(at, "{\"id\":\"");
 *     at = pen_slice(at, id);
 *     at = PEN(at, "\"}");
 *     pen_end(b, at);
 */

#include "base/buf.h"

/* The buf must have no maximum. */
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
