/* Counts, by task, of evaluations that took far too long, of the store in memory. Injects no
 * faults: stored.c does that for the operations, and memory.c deletes the count of a task whose
 * change asks for it. */

#include "store/memory/overrun.h"

#include <stdlib.h>

void mem_overruns_fini(struct mem_overruns *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->list[i].arena);
    free(m->list);
    *m = (struct mem_overruns){0};
}

static struct mem_overrun *find(const struct mem_overruns *m, struct slice task)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->list[i].row.task, task))
            return &m->list[i];
    return NULL;
}

static void delete_at(struct mem_overruns *m, struct mem_overrun *o)
{
    arena_fini(&o->arena);
    *o = m->list[--m->count];
}

static struct mem_overrun *add(struct mem_overruns *m, struct slice task)
{
    m->list = reallocarray(m->list, m->count + 1, sizeof *m->list);
    ASSERT(m->list);
    struct mem_overrun *o = &m->list[m->count++];
    *o = (struct mem_overrun){0};
    o->row.task = arena_copy(&o->arena, task);
    return o;
}

void mem_overrun_count(struct mem_overruns *m, const struct overrun_count *c)
{
    struct mem_overrun *o = find(m, c->task);

    if (!o && c->by > 0)
        o = add(m, c->task);
    if (!o)
        return;
    o->row.times += c->by;
    if (c->by > 0)
        o->row.at = c->at;
    if (o->row.times <= 0)
        delete_at(m, o);
}

void mem_overrun_delete(struct mem_overruns *m, struct slice task)
{
    struct mem_overrun *o = find(m, task);

    if (o)
        delete_at(m, o);
}

void mem_overrun_sweep(struct mem_overruns *m, int64_t before,
                       bool (*keeps)(void *arg, struct slice task), void *arg)
{
    for (size_t i = m->count; i-- > 0;)
        if (m->list[i].row.at < before && !keeps(arg, m->list[i].row.task))
            delete_at(m, &m->list[i]);
}

static int latest_first(const void *a, const void *b)
{
    const struct overrun *x = a;
    const struct overrun *y = b;

    if (x->at != y->at)
        return x->at < y->at ? 1 : -1;
    return slice_order(x->task, y->task);
}

void mem_overrun_list(const struct mem_overruns *m, struct arena *a, struct overrun **ret,
                      size_t *ret_count)
{
    *ret = arena_alloc(a, (m->count + 1) * sizeof **ret);
    for (size_t i = 0; i < m->count; i++) {
        (*ret)[i] = m->list[i].row;
        (*ret)[i].task = arena_copy(a, m->list[i].row.task);
    }
    qsort(*ret, m->count, sizeof **ret, latest_first);
    *ret_count = m->count < OVERRUNS_MAX ? m->count : OVERRUNS_MAX;
}
