/* Alerts in the simulation: real watches on the nodes, two sinks that may fail, and the checks. See
 * bell.h. */

#include "sim/bell.h"

#include <stdio.h>
#include <stdlib.h>

#include "alerts/watch.h"
#include "sim/coverage.h"
#include "sim/disk.h"
#include "sim/weather.h"
#include "sim/world.h"
#include "json/json.h"

enum {
    DESKS = 2,
    GROUP_WAIT_MS = 2000,
    RESOLVE_AFTER_MS = 10000,
    LOOK_MS = 3000,
    PACE_MAX_MS = 8000,
    SWEEP_MAX_MS = 15000,
    ROWS = 5, /* per page: a look takes several pages */
    SLOW_DESK_MS = 4000,
    DESK_FAILS = 300,
    TAKEN_MAX = 20000,
};

static const struct alert_sink desks[DESKS] = {{.name = "one"}, {.name = "two"}};

/* What a desk accepted, and from which process. */
struct taken {
    char id[ALERT_ID_SIZE];
    uint32_t notice, desk, name; /* node slots are reused */
    uint64_t boot, term;
};

static struct {
    struct taken *list;
    size_t count;
} taken;

/* A delivery in progress. */
struct parcel {
    struct node *node;
    uint64_t boot, term;
    uint32_t desk, name;
    size_t count;
    struct {
        char id[ALERT_ID_SIZE];
        uint32_t notice;
        enum notice_kind kind;
    } list[ALERTS_A_DELIVERY];
};

void bell_begin(void)
{
    free(taken.list);
    taken.list = calloc(TAKEN_MAX, sizeof *taken.list);
    ASSERT(taken.list);
    taken.count = 0;
}

/* ---- sinks ---- */

/* While it leads, a node sends no notice again that it knows was accepted. */
static void take(const struct parcel *p, size_t i)
{
    for (size_t k = 0; k < taken.count; k++) {
        const struct taken *t = &taken.list[k];
        if (strcmp(t->id, p->list[i].id) != 0 || t->notice != p->list[i].notice
            || t->desk != p->desk)
            continue;
        if (t->name == p->node->name && t->boot == p->boot && t->term == p->term)
            broken("nobody is told twice", "%s/%u by %s", t->id, t->notice, p->node->me);
        covered(COVER_ALERT_AGAIN);
    }
    if (taken.count == TAKEN_MAX)
        return;
    struct taken *t = &taken.list[taken.count++];
    memcpy(t->id, p->list[i].id, sizeof t->id);
    t->notice = p->list[i].notice;
    t->desk = p->desk;
    t->name = p->node->name; /* each process of a name has its own boot */
    t->boot = p->boot;
    t->term = p->term;
    covered(p->list[i].kind == NOTICE_RESOLVED ? COVER_ALERT_RESOLVED : COVER_ALERT_TOLD);
}

static void answers(void *arg, uint64_t number)
{
    struct parcel *p = arg;
    struct node *n = p->node;
    bool took = world.calm || !chance(DESK_FAILS);

    if (n->boot != p->boot || n->name != p->name || n->dead || !n->up
        || node_sleeps(n, answers, arg, number))
        return;
    trace("desk %u %s %zu alerts of %s", p->desk, took ? "takes" : "does not take", p->count,
          n->me);
    for (size_t i = 0; took && i < p->count; i++)
        take(p, i);
    if (!took)
        covered(COVER_ALERT_NOT_TAKEN);
    n->deeds++;
    watch_delivered(n->watch, p->desk, took, "simulated");
    node_turn_soon(n);
}

static void deliver(void *arg, size_t sink, const struct alert *const *list, size_t count)
{
    struct node *n = arg;
    struct parcel *p = arena_alloc(&world.arena, sizeof *p);

    p->node = n;
    p->boot = n->boot;
    p->name = n->name;
    p->term = watch_term(n->watch);
    p->desk = (uint32_t)sink;
    p->count = count;
    for (size_t i = 0; i < count; i++) {
        memcpy(p->list[i].id, list[i]->id, sizeof p->list[i].id);
        p->list[i].notice = list[i]->notice;
        p->list[i].kind = list[i]->kind;
    }
    later(between(1, SLOW_DESK_MS), answers, p, 0);
}

/* ---- the nodes ---- */

static int64_t clock_now(void *arg)
{
    return node_now(arg);
}

static bool leads(void *arg, uint64_t *ret)
{
    const struct node *n = arg;
    struct fence fence = {0};
    int64_t until = 0;

    if (n->draining || !supervisor_leads(n->supervisor, &fence, &until)
        || (nodes.shared && node_steady(n) >= until))
        return false;
    *ret = fence.epoch;
    return true;
}

static bool store_works(void *arg)
{
    const struct node *n = arg;

    return !n->troubled;
}

static void see(void *arg, struct alerts *a, bool all, int64_t now)
{
    const struct node *n = arg;
    const struct sighting s = {.condition = CONDITION_STORE_TROUBLE,
                               .labels = {{"node", text_of("n%u", n->name + 1)}},
                               .count = 1};
    (void)all;

    if (n->troubled)
        alerts_see(a, &s, now);
}

void bell_boot(struct node *n)
{
    struct watch_config c = {.alerts = alerts_config_default(),
                             .shared = nodes.shared,
                             .look_ms = LOOK_MS,
                             .sweep_max_ms = SWEEP_MAX_MS,
                             .page = ROWS};
    const struct watch_outside outside = {.arg = n,
                                          .now = clock_now,
                                          .leads = leads,
                                          .store_works = store_works,
                                          .see = see,
                                          .deliver = deliver};

    c.alerts.group_wait_ms = GROUP_WAIT_MS;
    c.alerts.resolve_after_ms = RESOLVE_AFTER_MS;
    c.alerts.pace_max_ms = PACE_MAX_MS;
    c.alerts.sinks = desks;
    c.alerts.sink_count = DESKS;
    n->troubled = false;
    n->watch = watch_new(&c, &n->disk.queue, &outside);
}

void bell_end(struct node *n)
{
    watch_free(n->watch);
    n->watch = NULL;
}

int64_t bell_turn(struct node *n)
{
    return watch_turn(n->watch);
}

void bell_hint(struct node *n)
{
    watch_hint(n->watch);
}

/* ---- the final check ---- */

static bool was_told(const struct json *doc)
{
    int64_t notice = json_get_int(doc, "notice", -1);

    for (size_t i = 0; i < DESKS; i++)
        if (json_get_int(json_get(doc, "told"), desks[i].name, 0) != notice)
            return false;
    return true;
}

/* The number of tasks of that workflow and direction that open alerts count. */
static uint64_t counted(const struct alert_page *page, struct slice workflow, bool undo,
                        struct arena *a)
{
    uint64_t count = 0;

    for (size_t i = 0; i < page->count; i++) {
        struct json *doc = NULL;
        if (json_parse(a, page->rows[i].doc, &doc, NULL) != ERR_OK)
            broken("alerts are JSON", "%.*s", SLICE_ARG(page->rows[i].doc));
        struct slice condition = json_get_text(doc, "condition");
        if (page->rows[i].resolved_at != 0 || json_get_int(doc, "over_since", 0) != 0
            || !slice_is(condition, undo ? "compensation_failed" : "task_error")
            || !slice_eq(json_get_text(json_get(doc, "labels"), "workflow"), workflow))
            continue;
        if (!was_told(doc))
            broken("who has to know is told in bounded time", "%.*s", SLICE_ARG(page->rows[i].doc));
        count += (uint64_t)json_get_int(doc, "count", 0);
    }
    return count;
}

static bool is_of(const struct task_row *row, const struct task_row *like)
{
    return row->closed_at == 0 && slice_eq(row->workflow, like->workflow)
           && row->direction == like->direction;
}

/* Its error may be that of a child, and a child of it needs help: the alert may be of that alone.
 */
static bool may_be_of_child(const struct row_page *tasks, const struct task_row *row,
                            struct arena *a)
{
    struct json *doc = NULL;
    bool found = false;

    for (size_t i = 0; i < tasks->count && !found; i++)
        found = tasks->rows[i].closed_at == 0 && slice_eq(tasks->rows[i].parent, row->id);
    if (!found)
        return false;
    enum err err = json_parse(a, row->doc, &doc, NULL);
    ASSERT(err == ERR_OK);
    struct slice code = json_get_text(json_get(doc, "error"), "code");
    return slice_is(code, "child") || slice_is(code, "pivot");
}

static void check_group(const struct row_page *tasks, const struct task_row *like,
                        const struct alert_page *alerts, struct arena *a)
{
    uint64_t least = 0;
    uint64_t most = 0;

    for (size_t i = 0; i < tasks->count; i++) {
        bool counts = is_of(&tasks->rows[i], like);
        most += counts;
        least += counts && !may_be_of_child(tasks, &tasks->rows[i], a);
    }
    uint64_t told = counted(alerts, like->workflow, like->direction == DIRECTION_UNDO, a);
    bool right = told >= least && told <= most;
    for (size_t i = 0; !right && i < alerts->count; i++)
        fprintf(stderr, "    alert %.*s\n", SLICE_ARG(alerts->rows[i].doc));
    if (!right)
        broken("alerts count what stopped in error and stays so",
               "%.*s %s: %" PRIu64 " of %" PRIu64 " to %" PRIu64, SLICE_ARG(like->workflow),
               direction_text(like->direction), told, least, most);
    covered(COVER_ALERT_STANDS);
}

/* False: the last node that could send drains, or never existed. */
static bool somebody_leads(void)
{
    uint64_t epoch = 0;

    NODES_FOREACH (n)
        if (node_is_up(n) && leads(n, &epoch) && watch_leads(n->watch))
            return true;
    return false;
}

void check_bell(void)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct list_query all = {.states = 1U << TASK_ERROR, .limit = 1000, .scan_max = 100000};
    const struct alert_query live = {.live = true, .limit = 1000};
    struct row_page tasks = {0};
    struct alert_page alerts = {0};
    struct error e = {0};

    if (!somebody_leads())
        return;
    enum err err = inner->ops->list(inner, &all, &a, &tasks, &e);
    if (err == ERR_OK)
        err = inner->ops->alerts->list(inner, &live, &a, &alerts, &e);
    ASSERT(err == ERR_OK);
    for (size_t i = 0; i < tasks.count; i++)
        if (tasks.rows[i].closed_at == 0)
            check_group(&tasks, &tasks.rows[i], &alerts, &a);
    for (size_t i = 0; i < alerts.count; i++) {
        struct json *doc = NULL;
        err = json_parse(&a, alerts.rows[i].doc, &doc, NULL);
        ASSERT(err == ERR_OK);
        struct slice workflow = json_get_text(json_get(doc, "labels"), "workflow");
        const struct task_row like = {.workflow = workflow,
                                      .direction = slice_is(json_get_text(doc, "condition"),
                                                            "compensation_failed")
                                                       ? DIRECTION_UNDO
                                                       : DIRECTION_FORWARD};
        if (workflow.ptr)
            check_group(&tasks, &like, &alerts, &a);
    }
}
