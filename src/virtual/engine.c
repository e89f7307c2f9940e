/* One node or two in memory and in virtual time (engine.h): opening and closing, what arrives, and
 * how time passes. The nodes are engine_node.c. */

#include "virtual/engine.h"

#include <stdio.h>
#include <stdlib.h>

#include "store/codec/codec.h"
#include "store/memory/memory.h"
#include "virtual/engine_node.h"

enum {
    INTERVAL_MS = ENGINE_INTERVAL_MS,
    GRACE_MS = 60000,   /* a node that starts gives everything more time: it started before */
    ROUNDS_MAX = 20000, /* turns at one moment */
};

/* ---- opening and closing ---- */

static void node_init(struct engine *g, unsigned number)
{
    struct engine_node *n = &g->nodes[number];

    n->engine = g;
    n->number = number;
    n->due_at = n->family_at = INT64_MAX;
    list_init(&n->jobs);
    if (engine_is_several(g))
        (void)snprintf(n->name, sizeof n->name, "n%u", number + 1);
    else
        (void)snprintf(n->name, sizeof n->name, "test");
    engine_node_open(n);
}

struct engine *engine_new(const struct engine_config *c)
{
    struct engine *g = calloc(1, sizeof *g);

    ASSERT(g);
    ASSERT(c->nodes <= ENGINE_NODES_MAX);
    g->config = *c;
    g->now = c->now - GRACE_MS;
    g->store = memory_store_new();
    g->node_count = c->nodes > 1 ? c->nodes : 1;
    list_init(&g->served);
    list_init(&g->asked);
    list_init(&g->sent);
    g->key = token_key_new(g->store->ops->secret(g->store));
    for (unsigned i = 0; i < g->node_count; i++)
        node_init(g, i);
    while (engine_step(g, c->now))
        ;
    if (c->commits)
        engine_node_may_die(g);
    return g;
}

void engine_free(struct engine *g)
{
    if (!g)
        return;
    for (unsigned i = 0; i < g->node_count; i++)
        if (g->nodes[i].scheduler)
            engine_node_close(&g->nodes[i]);
    for (struct link *l = NULL; (l = list_first(&g->sent));)
        sent_free(CONTAINER_OF(l, struct sent, link));
    for (struct link *l = NULL; (l = list_pop(&g->asked));)
        free(CONTAINER_OF(l, struct asked, link));
    map_fini(&g->homes);
    map_fini(&g->reported);
    token_key_free(g->key);
    g->store->ops->close(g->store);
    agenda_fini(&g->agenda);
    arena_fini(&g->arena);
    free(g);
}

int64_t engine_now(const struct engine *g)
{
    return g->now;
}

int64_t engine_clock(const struct engine *g)
{
    return g->now + g->ahead;
}

int64_t engine_moment(const struct engine *g, int64_t at)
{
    return at - g->ahead;
}

struct agenda *engine_agenda(struct engine *g)
{
    return &g->agenda;
}

bool engine_is_stuck(const struct engine *g)
{
    return g->is_stuck;
}

bool engine_awaits_node(const struct engine *g)
{
    for (unsigned i = 0; i < g->node_count; i++)
        if (engine_is_several(g) && (!g->nodes[i].scheduler || g->nodes[i].is_hung))
            return true;
    return false;
}

/* ---- what arrives ---- */

void engine_serve(struct engine *g, struct slice agent)
{
    LIST_FOREACH (l, after, &g->served)
        if (slice_eq(CONTAINER_OF(l, struct served, link)->name, agent))
            return;
    for (unsigned i = 0; i < g->node_count; i++) {
        struct served *s = arena_alloc(&g->arena, sizeof *s);
        s->node = &g->nodes[i];
        s->name = arena_copy(&g->arena, agent);
        list_push(&g->served, &s->link);
        engine_node_park(s, s->node->life);
    }
}

void engine_look(struct engine *g, struct slice id)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = {0};
    struct task task = {0};
    struct error e = {0};

    if (g->store->ops->get(g->store, id, &a, &row, &e) != ERR_OK)
        return;
    const struct definition *d = registry_find(g->config.workflows, row.workflow, row.version);
    ASSERT(d); /* all are known */
    enum err err = task_decode(&d->workflow, &row, &a, &task, &e);
    ASSERT(err == ERR_OK);
    if (engine_node_reports(g, &task))
        g->config.changed(g->config.arg, &d->workflow, &task);
}

/* ---- time ---- */

/* INT64_MAX stays: never. */
static int64_t moment_of(const struct engine *g, int64_t at)
{
    return at == INT64_MAX ? at : engine_moment(g, at);
}

/* The first scan that finds an overdue row; INT64_MAX: there is none to come. */
static int64_t next_scan(struct engine *g, int64_t until)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct row_page page = {0};
    struct error e = {0};
    int64_t before = until == INT64_MAX ? until : until + g->ahead;

    if (before <= g->scan_at || !g->nodes[0].scheduler || engine_is_several(g))
        return INT64_MAX;
    enum err err = g->store->ops->overdue(g->store, before, 0, 0, 1, &a, &page, &e);
    ASSERT(err == ERR_OK);
    if (page.count == 0)
        return INT64_MAX;
    int64_t late = max_i64(page.rows[0].wake_at - g->scan_at, 1);
    return engine_moment(g, g->scan_at + (late + INTERVAL_MS - 1) / INTERVAL_MS * INTERVAL_MS);
}

/* Scans before this one would have found nothing. */
static void scan(struct engine *g)
{
    if (engine_clock(g) - g->scan_at > INTERVAL_MS)
        supervisor_left_out(g->nodes[0].supervisor);
    g->scan_at = engine_clock(g);
    (void)supervisor_turn(g->nodes[0].supervisor);
}

static bool is_woken(const struct engine *g)
{
    for (unsigned i = 0; i < g->node_count; i++)
        if (g->nodes[i].is_woken && !g->nodes[i].is_hung)
            return true;
    return false;
}

/* Turns until nothing is due at this moment. */
static void settle(struct engine *g)
{
    for (int rounds = 0;; rounds++) {
        bool any = false;
        for (unsigned i = 0; i < g->node_count; i++)
            any |= engine_node_turn(&g->nodes[i]);
        if (!any && !is_woken(g))
            return;
        if (rounds == ROUNDS_MAX) {
            g->is_stuck = true;
            return;
        }
    }
}

static int64_t next_due(const struct engine *g)
{
    int64_t at = agenda_next_at(&g->agenda);

    for (unsigned i = 0; i < g->node_count; i++)
        if (!g->nodes[i].is_hung)
            at = min_i64(at, moment_of(g, g->nodes[i].due_at));
    return at;
}

bool engine_step(struct engine *g, int64_t until)
{
    struct occurrence o;

    if (g->is_stuck)
        return false;
    if (is_woken(g)) {
        settle(g);
        return true;
    }
    if (engine_leap(g, until))
        return true;
    int64_t next = next_due(g);
    int64_t scan_at = next_scan(g, min_i64(next, until));
    next = min_i64(next, scan_at);
    if (next > until) {
        g->now = until == INT64_MAX ? g->now : until;
        return false;
    }
    g->now = max_i64(g->now, next);
    if (scan_at <= g->now)
        scan(g);
    while (agenda_take(&g->agenda, g->now, &o))
        o.happen(o.arg, o.n);
    settle(g);
    return true;
}
