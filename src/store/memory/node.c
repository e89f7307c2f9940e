/* Leases and rows of nodes of the store in memory: who holds a lease, when it expires, which
 * owners live. Injects no faults: the operations of the interface, in memory.c, do that and then
 * call these functions. */

#include "store/memory/node.h"

#include <stdlib.h>

#include "base/buf.h"
#include "store/row.h"

void mem_nodes_fini(struct mem_nodes *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->nodes[i].arena);
    for (size_t i = 0; i < m->lease_count; i++)
        arena_fini(&m->leases[i].arena);
    free(m->nodes);
    free(m->leases);
    *m = (struct mem_nodes){0};
}

/* ---- leases ---- */

static struct mem_lease *lease_find(const struct mem_nodes *m, struct slice name)
{
    for (size_t i = 0; i < m->lease_count; i++)
        if (slice_eq(m->leases[i].name, name))
            return &m->leases[i];
    return NULL;
}

const struct lease *mem_lease_find(const struct mem_nodes *m, struct slice name)
{
    const struct mem_lease *l = lease_find(m, name);

    return l ? &l->lease : NULL;
}

static bool lease_runs(const struct lease *l, int64_t now)
{
    return l->until > now && l->until <= now + LEASE_MAX_MS;
}

static const struct lease *lease_of_node(const struct mem_nodes *m, struct slice node)
{
    CLEANUP(buf_fini) struct buf name = {0};

    buf_str(&name, NODE_LEASE);
    buf_slice(&name, node);
    return mem_lease_find(m, buf_view(&name));
}

bool mem_owner_lives(const struct mem_nodes *m, struct slice owner, int64_t now)
{
    struct slice node = owner_node(owner);
    const struct lease *l =
        lease_of_node(m, (struct slice){node.ptr, node.len - 1}); /* without its slash */

    return l && slice_eq(l->holder, owner) && lease_runs(l, now);
}

static void lease_give(struct mem_lease *l, const struct lease_try *want)
{
    struct arena fresh = {0};
    struct slice name = arena_copy(&fresh, l->name);
    struct lease lease = l->lease;

    lease.epoch += !slice_eq(lease.holder, want->holder);
    lease.holder = arena_copy(&fresh, want->holder);
    lease.until = want->now + want->length_ms;
    arena_fini(&l->arena); /* after what is kept of it was copied */
    *l = (struct mem_lease){fresh, name, lease};
}

static struct mem_lease *lease_make(struct mem_nodes *m, struct slice name)
{
    m->leases = reallocarray(m->leases, m->lease_count + 1, sizeof *m->leases);
    ASSERT(m->leases);
    struct mem_lease *l = &m->leases[m->lease_count++];
    *l = (struct mem_lease){0};
    l->name = arena_copy(&l->arena, name);
    return l;
}

struct lease mem_lease_try(struct mem_nodes *m, const struct lease_try *want)
{
    struct mem_lease *found = lease_find(m, want->name);
    struct mem_lease *l = found ? found : lease_make(m, want->name);

    ASSERT(want->length_ms >= 0 && want->length_ms <= LEASE_MAX_MS);
    if (!lease_runs(&l->lease, want->now) || want->seize || slice_eq(l->lease.holder, want->holder))
        lease_give(l, want);
    return l->lease;
}

static bool schedules(const struct mem_nodes *m, struct slice name)
{
    for (size_t i = 0; i < m->count; i++)
        if (slice_eq(m->nodes[i].row.name, name))
            return m->nodes[i].row.roles & NODE_SCHEDULER;
    return true; /* it has not written its roles yet */
}

void mem_schedulers(const struct mem_nodes *m, struct survey *v)
{
    const size_t prefix = sizeof NODE_LEASE - 1;

    v->schedulers = 1;
    v->schedulers_before = 0;
    for (size_t i = 0; i < m->lease_count; i++) {
        const struct mem_lease *l = &m->leases[i];
        if (l->name.len <= prefix || memcmp(l->name.ptr, NODE_LEASE, prefix) != 0
            || slice_eq(l->name, v->lease) || !lease_runs(&l->lease, v->now))
            continue;
        if (!schedules(m, (struct slice){l->name.ptr + prefix, l->name.len - prefix}))
            continue;
        v->schedulers++;
        v->schedulers_before += slice_order(l->name, v->lease) < 0;
    }
}

/* ---- nodes ---- */

static struct node_row row_in(struct arena *a, const struct node_row *row)
{
    struct node_row copy = *row;

    copy.name = arena_copy(a, row->name);
    copy.url = arena_copy(a, row->url);
    copy.version = arena_copy(a, row->version);
    copy.agents = arena_copy(a, row->agents);
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

static bool owner_is(struct slice owner, const struct node_row *row)
{
    CLEANUP(buf_fini) struct buf me = {0};

    buf_fmt(&me, "%.*s/%" PRIu64, SLICE_ARG(row->name), row->boot);
    return slice_eq(owner, buf_view(&me));
}

void mem_node_list(const struct mem_nodes *m, int64_t now, struct arena *a, struct node_row **ret,
                   size_t *ret_count)
{
    const struct lease *leads = mem_lease_find(m, SLICE(SUPERVISOR_LEASE));

    *ret_count = 0;
    *ret = arena_alloc(a, (m->count + 1) * sizeof **ret);
    for (size_t i = 0; i < m->count; i++) {
        const struct node_row *row = &m->nodes[i].row;
        const struct lease *own = lease_of_node(m, row->name);
        struct node_row *shown = &(*ret)[*ret_count];
        if ((own ? own->until : row->started_at) <= now - NODE_FORGOTTEN_MS)
            continue;
        *shown = row_in(a, row);
        shown->lease_until = own ? own->until : 0;
        shown->alive = own && own->until > now;
        shown->leads = leads && leads->until > now && owner_is(leads->holder, row);
        ++*ret_count;
    }
}
