#ifndef BASE_ARENA_H
#define BASE_ARENA_H

/*
 * Memory that is freed all at once: a request or a task has an arena for everything it needs.
 * Chunks double from 1 KiB to 64 KiB; a zeroed arena is empty. Allocation never fails (it aborts),
 * so sizes that a client chooses must be checked against a limit first.
 */

#include "base/base.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunk; /* the newest */
    size_t used, cap;          /* of the newest chunk */
    size_t total;              /* bytes taken from the heap */
};

void arena_fini(struct arena *a);
void arena_take(struct arena *a, struct arena *from);     /* what `from` has, which is empty then */
void *arena_alloc(struct arena *a, size_t size);          /* zeroed, aligned to 16 */
char *arena_bytes(struct arena *a, size_t size);          /* not zeroed, not aligned */
struct slice arena_copy(struct arena *a, struct slice s); /* NONE stays NONE; terminated by a NUL */

#endif
