/* The heap of occurrences in virtual time (agenda.h). Pure but for the heap's memory: it reads no
 * clock and draws nothing at random. */

#include "virtual/agenda.h"

#include <stdlib.h>

static void recycle(struct agenda *g, struct occurrence *o)
{
    if (g->spare_count < COUNT_OF(g->spare))
        g->spare[g->spare_count++] = o;
    else
        free(o);
}

void agenda_fini(struct agenda *g)
{
    for (struct heap_node *n = NULL; (n = heap_min(&g->heap));) {
        heap_remove(&g->heap, n);
        free(CONTAINER_OF(n, struct occurrence, node));
    }
    heap_fini(&g->heap);
    while (g->spare_count > 0)
        free(g->spare[--g->spare_count]);
    g->heap = (struct heap){0};
}

void agenda_add(struct agenda *g, int64_t at, happen_fn *happen, void *arg, uint64_t n)
{
    struct occurrence *o = g->spare_count > 0 ? g->spare[--g->spare_count] : malloc(sizeof *o);

    ASSERT(o);
    *o = (struct occurrence){.happen = happen, .arg = arg, .n = n};
    heap_push(&g->heap, &o->node, at);
}

int64_t agenda_next_at(const struct agenda *g)
{
    const struct heap_node *n = heap_min(&g->heap);

    return n ? n->key : INT64_MAX;
}

bool agenda_take(struct agenda *g, int64_t until, struct occurrence *ret)
{
    struct heap_node *n = heap_min(&g->heap);

    if (!n || n->key > until)
        return false;
    heap_remove(&g->heap, n);
    struct occurrence *o = CONTAINER_OF(n, struct occurrence, node);
    *ret = *o;
    ret->node.key = n->key;
    recycle(g, o);
    return true;
}
