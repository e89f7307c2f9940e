#include "store/memory_node.h"

#include <stdlib.h>

#include "base/buf.h"
#include "store/row.h"

void mem_nodes_fini(struct mem_nodes *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->nodes[i].arena);
    free(m->nodes);
    *m = (struct mem_nodes){0};
}

static struct node_row row_in(struct arena *a, const struct node_row *row)
{
    struct node_row copy = *row;

    copy.name = arena_copy(a, row->name);
    copy.url = arena_copy(a, row->url);
    copy.version = arena_copy(a, row->version);
    return copy;
}

/* Its place, or that where it would be. */
static size_t place_of(const struct mem_nodes *m, struct slice name)
{
    size_t i = 0;

    while (i < m->count && slice_order(m->nodes[i].row.name, name) < 0)
        i++;
    return i;
}

void mem_node_put(struct mem_nodes *m, const struct node_row *row)
{
    size_t i = place_of(m, row->name);
    bool known = i < m->count && slice_eq(m->nodes[i].row.name, row->name);
    struct mem_node fresh = {0};

    if (known && m->nodes[i].row.boot > row->boot)
        return;
    if (!known) {
        m->nodes = reallocarray(m->nodes, m->count + 1, sizeof *m->nodes);
        ASSERT(m->nodes);
        memmove(&m->nodes[i + 1], &m->nodes[i], (m->count++ - i) * sizeof *m->nodes);
        m->nodes[i] = (struct mem_node){0};
    }
    fresh.row = row_in(&fresh.arena, row);
    arena_fini(&m->nodes[i].arena);
    m->nodes[i] = fresh;
}

void mem_node_list(const struct mem_nodes *m, struct arena *a, struct node_row **ret,
                   size_t *ret_count)
{
    *ret_count = m->count;
    *ret = arena_alloc(a, (m->count + 1) * sizeof **ret);
    for (size_t i = 0; i < m->count; i++)
        (*ret)[i] = row_in(a, &m->nodes[i].row);
}

void mem_node_judge(struct node_row *row, const struct lease *own, const struct lease *leads,
                    int64_t now)
{
    CLEANUP(buf_fini) struct buf me = {0};

    buf_fmt(&me, "%.*s/%" PRIu64, SLICE_ARG(row->name), row->boot);
    row->lease_until = own ? own->until : 0;
    row->alive = own && own->until > now;
    row->leads = leads && leads->until > now && slice_eq(leads->holder, buf_view(&me));
}
