/* Implements arena.h: memory that is freed all at once. The chunks of an arena form a list. New
 * ones grow up to 64 KiB; what is large has one of its own. Nothing is shared between arenas, so
 * each belongs to the thread that uses it. */

#include "base/arena.h"

#include <stdlib.h>

enum { CHUNK_MAX = 65536 };

struct arena_chunk {
    struct arena_chunk *next;
    size_t pad; /* keeps the data aligned to 16 */
};

static struct arena_chunk *chunk_new(struct arena *a, size_t cap)
{
    struct arena_chunk *c = malloc(sizeof *c + cap);

    if (!c)
        out_of_memory(sizeof *c + cap);
    a->total += sizeof *c + cap;
    return c;
}

/* Behind the newest chunk, whose room is left to others. */
static void *take_alone(struct arena *a, size_t size)
{
    struct arena_chunk *c = chunk_new(a, size);

    c->next = a->chunk->next;
    a->chunk->next = c;
    return c + 1;
}

static void *take(struct arena *a, size_t size, size_t align)
{
    size_t at = (a->used + align - 1) & ~(align - 1);

    if (!a->chunk || at > a->cap || size > a->cap - at) {
        size_t cap = a->cap ? a->cap * 2 : 1024 - sizeof(struct arena_chunk);
        if (cap > CHUNK_MAX)
            cap = CHUNK_MAX;
        if (a->chunk && size > CHUNK_MAX / 4)
            return take_alone(a, size);
        if (cap < size)
            cap = size;
        struct arena_chunk *c = chunk_new(a, cap);
        c->next = a->chunk;
        a->chunk = c;
        a->cap = cap;
        at = 0;
    }
    a->used = at + size;
    return (char *)(a->chunk + 1) + at;
}

void arena_fini(struct arena *a)
{
    struct arena_chunk *c = a->chunk;

    while (c) {
        struct arena_chunk *next = c->next;
        free(c);
        c = next;
    }
    *a = (struct arena){0};
}

void arena_take(struct arena *a, struct arena *from)
{
    struct arena_chunk *last = from->chunk;

    if (!last)
        return;
    if (!a->chunk) {
        *a = *from;
    } else {
        while (last->next)
            last = last->next;
        last->next = a->chunk->next; /* behind the newest chunk, which still has room */
        a->chunk->next = from->chunk;
        a->total += from->total;
    }
    *from = (struct arena){0};
}

void *arena_alloc(struct arena *a, size_t size)
{
    void *ptr = take(a, size, 16);

    memset(ptr, 0, size);
    return ptr;
}

char *arena_bytes(struct arena *a, size_t size)
{
    return take(a, size, 1);
}

struct slice arena_copy(struct arena *a, struct slice s)
{
    if (!s.ptr)
        return s;
    char *ptr = take(a, s.len + 1, 1);
    memcpy(ptr, s.ptr, s.len);
    ptr[s.len] = 0;
    return (struct slice){ptr, s.len};
}
