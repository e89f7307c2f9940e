/* Definitions of workflows of the store in memory, each with all its versions. Injects no faults:
 * the operations of the interface, in stored.c, do that and then call these functions. */

#include "store/memory/workflow.h"

#include <stdlib.h>

#include "store/row.h"

void mem_workflows_fini(struct mem_workflows *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->list[i].arena);
    free(m->list);
    *m = (struct mem_workflows){0};
}

static int workflow_order(const void *a, const void *b)
{
    const struct workflow_row *x = &((const struct mem_workflow *)a)->row;
    const struct workflow_row *y = &((const struct mem_workflow *)b)->row;
    int order = slice_order(x->name, y->name);

    return order ? order : (x->version > y->version) - (x->version < y->version);
}

void mem_workflow_describe(struct mem_workflows *m, const struct workflow_inputs *w)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->list[i].row.version == w->version && slice_eq(m->list[i].row.name, w->name))
            m->list[i].row.described = true;
}

const struct workflow_row *mem_workflow_find(const struct mem_workflows *m, struct slice name,
                                             int64_t version)
{
    for (size_t i = m->count; i-- > 0;) {
        const struct workflow_row *row = &m->list[i].row;
        if (slice_eq(row->name, name) && (version == 0 || row->version == version))
            return row;
    }
    return NULL;
}

struct workflow_row mem_workflow_copy(struct arena *a, const struct workflow_row *row)
{
    return (struct workflow_row){arena_copy(a, row->name), row->version, arena_copy(a, row->text),
                                 row->created_at, row->described};
}

void mem_workflow_add(struct mem_workflows *m, const struct workflow_row *row)
{
    m->list = reallocarray(m->list, m->count + 1, sizeof *m->list);
    ASSERT(m->list);
    struct mem_workflow *w = &m->list[m->count++];
    *w = (struct mem_workflow){.generation = ++m->generation};
    w->row = mem_workflow_copy(&w->arena, row);
    qsort(m->list, m->count, sizeof *m->list, workflow_order);
}

void mem_workflow_list(const struct mem_workflows *m, uint64_t after, struct arena *a,
                       struct workflow_row **ret, size_t *ret_count)
{
    struct workflow_row *rows = m->count ? arena_alloc(a, m->count * sizeof *rows) : NULL;
    size_t count = 0;

    for (size_t i = 0; i < m->count; i++)
        if (m->list[i].generation > after)
            rows[count++] = mem_workflow_copy(a, &m->list[i].row);
    *ret = rows;
    *ret_count = count;
}
