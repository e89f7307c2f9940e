/* Locks of tasks, of the body in memory: who holds which, and which are to be looked at. claim.c
 * has what changes and claims do to them. */
#include "store/memory/lock.h"

#include <stdlib.h>

static void lock_free(struct mem_lock *l)
{
    free(l->holders);
    arena_fini(&l->arena);
    free(l);
}

void mem_locks_fini(struct mem_locks *m)
{
    for (size_t i = 0; i < m->count; i++)
        lock_free(m->list[i]);
    free(m->list);
    *m = (struct mem_locks){0};
}

struct mem_lock *mem_lock_find(const struct mem_locks *m, struct slice lock)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->list[i]->lock, lock))
            return m->list[i];
    return NULL;
}

struct mem_lock *mem_lock_get(struct mem_locks *m, struct slice lock)
{
    struct mem_lock *l = mem_lock_find(m, lock);
    size_t at = m->count;

    if (l)
        return l;
    m->list = reallocarray(m->list, m->count + 1, sizeof(struct mem_lock *));
    l = calloc(1, sizeof *l);
    ASSERT(m->list && l);
    l->lock = arena_copy(&l->arena, lock);
    for (; at > 0 && slice_order(m->list[at - 1]->lock, lock) > 0; at--)
        m->list[at] = m->list[at - 1];
    m->list[at] = l;
    m->count++;
    return l;
}

void mem_lock_hold(struct mem_locks *m, struct slice lock, int64_t task, int64_t since)
{
    struct mem_lock *l = mem_lock_get(m, lock);

    l->holders = reallocarray(l->holders, l->held + 1, sizeof *l->holders);
    ASSERT(l->holders);
    l->holders[l->held++] = (struct mem_holder){task, since};
}

void mem_lock_later(struct mem_locks *m, struct mem_lock *l)
{
    l->look = ++m->looks;
}

void mem_lock_look(struct mem_locks *m, struct mem_lock *l)
{
    if (l->look == 0)
        mem_lock_later(m, l);
}

struct mem_lock *mem_lock_next(const struct mem_locks *m, uint64_t until)
{
    struct mem_lock *next = NULL;

    for (size_t i = 0; i < m->count; i++) {
        struct mem_lock *l = m->list[i];
        if (l->look != 0 && l->look <= until && (!next || l->look < next->look))
            next = l;
    }
    return next;
}

void mem_lock_leave(struct mem_locks *m, struct slice lock, int64_t task)
{
    struct mem_lock *l = mem_lock_find(m, lock);
    size_t i = 0;

    while (l && i < l->held && l->holders[i].task != task)
        i++;
    if (!l || i == l->held)
        return;
    for (l->held--; i < l->held; i++)
        l->holders[i] = l->holders[i + 1];
    mem_lock_look(m, l);
}

void mem_lock_seen(struct mem_locks *m, struct mem_lock *l)
{
    size_t i = 0;

    l->look = 0;
    if (l->held > 0)
        return;
    while (m->list[i] != l)
        i++;
    for (m->count--; i < m->count; i++)
        m->list[i] = m->list[i + 1];
    lock_free(l);
}
