/*
 * Operations on many tasks in memory. No faults are injected here; told.c has the operations of the
 * store.
 */
#include "store/memory/operation.h"

#include <stdlib.h>

#include "store/memory/page.h"
#include "store/row.h"

void mem_operations_fini(struct mem_operations *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->list[i].arena);
    free(m->list);
    *m = (struct mem_operations){0};
}

static struct mem_operation *find(const struct mem_operations *m, struct slice id)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->list[i].row.id, id))
            return &m->list[i];
    return NULL;
}

bool mem_operation_fits(const struct mem_operations *m, const struct operation_row *row)
{
    const struct mem_operation *o = find(m, row->id);

    return row->revision == 1 ? !o : o && o->row.revision == row->revision - 1;
}

void mem_operation_put(struct mem_operations *m, const struct operation_row *row)
{
    struct mem_operation *o = find(m, row->id);
    struct mem_operation fresh = {0};

    if (!o) {
        m->list = reallocarray(m->list, m->count + 1, sizeof *m->list);
        ASSERT(m->list);
        o = &m->list[m->count++];
        *o = (struct mem_operation){.row.seq = (int64_t)m->count};
    }
    fresh.row = operation_copy(&fresh.arena, row);
    fresh.row.seq = o->row.seq;
    arena_fini(&o->arena);
    *o = fresh;
}

static bool wants(const struct operation_query *q, const struct operation_row *row)
{
    return (!q->id.ptr || slice_eq(q->id, row->id)) && (!q->open || row->open)
           && (q->before_seq == 0 || row->seq < q->before_seq);
}

void mem_operation_list(const struct mem_operations *m, const struct operation_query *q,
                        struct arena *a, struct operation_page *ret)
{
    *ret = (struct operation_page){
        .rows = arena_alloc(a, mem_page_room(q->limit, m->count) * sizeof *ret->rows)};
    for (size_t i = m->count; i-- > 0 && !ret->more;) {
        if (!wants(q, &m->list[i].row))
            continue;
        ret->more = ret->count == q->limit;
        if (!ret->more)
            ret->rows[ret->count++] = operation_copy(a, &m->list[i].row);
    }
}
