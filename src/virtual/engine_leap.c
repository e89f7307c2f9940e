/* Nodes that share a store survey it each second, for ever. Where nothing changes, all surveys
 * between two moments find the same: they are left out, as if they had been made. */

#include "virtual/engine_node.h"

/* After the last change each node has surveyed the store, and leases have run out. */
enum { QUIET_MS = 6000, WORTH_MS = 2000 };

static int64_t sooner(int64_t a, int64_t b)
{
    return b > 0 && b < a ? b : a;
}

/* The first moment at which something else than a survey is due; INT64_MAX: never. */
static int64_t due_at(struct engine *g)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct row_page page = {0};
    struct error e = {0};
    int64_t at = agenda_next_at(&g->agenda);

    for (unsigned i = 0; i < g->node_count; i++) {
        struct engine_node *n = &g->nodes[i];
        at = sooner(min_i64(at, n->family_at), scheduler_due_at(n->scheduler));
    }
    enum err err = g->store->ops->overdue(g->store, INT64_MAX, 0, 0, 1, &a, &page, &e);
    ASSERT(err == ERR_OK);
    return page.count > 0 ? min_i64(at, page.rows[0].wake_at) : at;
}

static bool is_quiet(const struct engine *g)
{
    for (unsigned i = 0; i < g->node_count; i++) {
        const struct engine_node *n = &g->nodes[i];
        if (!n->scheduler || n->is_hung || n->is_woken || scheduler_is_busy(n->scheduler)
            || supervisor_is_busy(n->supervisor))
            return false;
    }
    return g->now >= g->active_at + QUIET_MS;
}

static void renew(struct engine_node *n, struct slice name, int64_t until)
{
    struct engine *g = n->engine;
    CLEANUP(arena_fini) struct arena a = {0};
    struct lease ignored = {0};
    struct error e = {0};
    const struct lease_try want = {.name = name,
                                   .holder = slice_of(n->me),
                                   .now = g->now,
                                   .length_ms = until - g->now};

    if (until <= g->now)
        return;
    enum err err = g->store->ops->lease(g->store, &want, &a, &ignored, &e);
    ASSERT(err == ERR_OK);
}

static void left_out(struct engine_node *n, int64_t by_ms)
{
    struct scheduler_stats stats;
    struct fence fence;
    int64_t until = 0;
    CLEANUP(buf_fini) struct buf name = {0};

    scheduler_left_out(n->scheduler, by_ms);
    supervisor_surveys_left_out(n->supervisor, by_ms);
    scheduler_stats(n->scheduler, &stats);
    buf_fmt(&name, "%s%s", NODE_LEASE, n->name);
    renew(n, buf_view(&name), stats.lease_until);
    if (supervisor_leads(n->supervisor, &fence, &until))
        renew(n, SLICE(SUPERVISOR_LEASE), until);
    n->due_at += by_ms; /* a survey */
}

bool engine_leap(struct engine *g, int64_t until)
{
    if (!engine_is_several(g) || !is_quiet(g))
        return false;
    int64_t at = min_i64(due_at(g), until);
    if (at == INT64_MAX || at - g->now < WORTH_MS)
        return false;
    int64_t by_ms = at - g->now;
    g->now = at;
    for (unsigned i = 0; i < g->node_count; i++)
        left_out(&g->nodes[i], by_ms);
    return true;
}
