/* The facts about a task that only the scheduler knows: queues, agents, limits, heartbeats. Changes
 * nothing. Words for them: text.c, moves.c. */

#include "why/why.h"

#include "base/when.h"
#include "config/config_reader.h"
#include "store/row.h"
#include "tasks/live.h"
#include "tasks/pulses.h"

/* What the callbacks below use. */
struct witness {
    const struct scheduler *scheduler;
    const struct tasks *tasks;
    const struct live *live;         /* NULL: the task is only in the store */
    const struct workflow *workflow; /* NULL: not known here */
    bool undo;
    struct slice task;
    int64_t now;
    struct arena *arena;
};

enum { WHO_MAX = 8 /* instances that are named */ };

static uint32_t open_of(const struct instance *in)
{
    uint32_t n = 0;

    for (const struct link *l = in->sent.next; l != &in->sent; l = l->next)
        n++;
    return n;
}

/* The instances that occupy its places: "i-1 (3), i-2 (1)". */
static void look_at_instances(const struct witness *y, const struct agent *a,
                              struct agent_view *ret)
{
    CLEANUP(buf_fini) struct buf who = {0};
    const struct instance *in = NULL;
    int named = 0;

    for (size_t k = 0; (in = map_next(&a->instances, &k));) {
        uint32_t open = open_of(in);
        int64_t seen_at = max_i64(in->seen_at, in->heartbeat_at);
        if (seen_at > ret->seen_at || !ret->seen.ptr) {
            ret->seen_at = seen_at;
            ret->seen = in->name;
        }
        ret->taken += open;
        if (open == 0 || ++named > WHO_MAX)
            continue;
        buf_fmt(&who, "%s%.*s (%u)", who.len ? ", " : "", SLICE_ARG(in->name), open);
    }
    if (named > WHO_MAX)
        buf_fmt(&who, " and %d more", named - WHO_MAX);
    ret->who = arena_copy(y->arena, buf_view(&who));
}

/* Counts the steps ahead of it: in memory, by the order of the queue; tasks in the store come
 * later, or are unknown here. */
static void look_at_queue(const struct witness *y, const struct agent *a, int step,
                          struct agent_view *ret)
{
    const struct live_step *ls = y->live && y->live->loaded ? &y->live->steps[step] : NULL;

    if (!ls || !ls->queue_of || ls->queue_of->agent != a) {
        ret->ahead = a->waiting;
        ret->ahead_at_least = backlog_any(a->backlog);
        return;
    }
    ASSERT(!ls->instance);
    const struct heap *queue = &ls->queue_of->queue; /* of the same action */
    for (size_t i = 0; i < queue->len; i++) {
        const struct heap_node *n = queue->nodes[i];
        ret->ahead += n->key < ls->want.key || (n->key == ls->want.key && n->seq < ls->want.seq);
    }
}

static void look_at_breaker(const struct witness *y, const struct agent *a, struct agent_view *ret)
{
    const struct breaker *b = &a->breaker;

    if (b->state == BREAKER_CLOSED || breaker_room(b, &a->settings.breaker) > 0)
        return;
    ret->held = b->state == BREAKER_OPEN ? HELD_BY_BREAKER : HELD_BY_TRIALS;
    ret->held_since = b->since;
    ret->held_until = b->until;
    if (b->reason[0])
        ret->held_why = arena_copy(y->arena, slice_of(b->reason));
}

static void say_limit(struct buf *b, const struct limit *whole, const struct limiter *l,
                      struct slice name, const char *what)
{
    static const char *const units[] = {"second", "minute", "hour"};
    size_t unit = whole->rate_ms > MS_PER_MIN ? 2 : whole->rate_ms > MS_PER_S ? 1 : 0;
    bool full = l->by_concurrency && l->open >= l->most;

    if (full && l->most == whole->concurrency)
        buf_fmt(b, "%s %.*s runs at most %u at a time", what, SLICE_ARG(name), whole->concurrency);
    else if (full)
        buf_fmt(b, "%s %.*s runs at most %u at a time, %u of them on this node", what,
                SLICE_ARG(name), whole->concurrency, l->most);
    else
        buf_fmt(b, "%s %.*s starts at most %u per %s", what, SLICE_ARG(name), whole->rate_count,
                units[unit]);
}

static void look_at_limits(const struct witness *y, const struct agent *a, int step,
                           struct agent_view *ret)
{
    const struct workflow_step *ws = y->workflow ? &y->workflow->steps[step] : NULL;
    CLEANUP(buf_fini) struct buf b = {0};

    if (!ws || ret->held != HELD_BY_NOTHING)
        return;
    const struct lane *l =
        map_get(&a->lanes, y->undo && !ws->on_undo ? ws->undo.action : ws->call.action);
    enum held_by by = l ? lane_held_by(l, y->now) : HELD_BY_NO_LIMIT;
    if (by == HELD_BY_ACTION)
        say_limit(&b, &l->limit, &l->limiter, l->action, "action");
    else if (by == HELD_BY_AGENT)
        say_limit(&b, &a->limit, &a->limiter, a->name, "agent");
    if (by != HELD_BY_NO_LIMIT) {
        ret->held = HELD_BY_LIMIT;
        ret->held_why = arena_copy(y->arena, buf_view(&b));
    } else if (ret->free && !agent_has_call(a, y->now)) {
        ret->held = HELD_BY_HEALTH;
    }
}

static struct slice name_like(const struct witness *y, struct slice name)
{
    const struct agent *a = NULL;

    for (size_t i = 0; (a = map_next(&y->tasks->dispatch.agents, &i));)
        if (dispatch_is_connected(a, y->now) && !slice_eq(a->name, name)
            && name_is_near(name, a->name))
            return a->name;
    return SLICE_NONE;
}

static void see_agent(void *arg, int step, struct slice name, struct agent_view *ret)
{
    const struct witness *y = arg;
    struct agent *a = map_get(&y->tasks->dispatch.agents, name);

    ASSERT(!y->workflow || step < y->workflow->step_count + y->workflow->slot_count);
    *ret = (struct agent_view){0};
    if (a) {
        ret->connected = dispatch_is_connected(a, y->now);
        ret->free = !list_empty(&a->calls);
        ret->places = dispatch_places(a, y->now);
        ret->seen_at = a->seen_at;
        look_at_instances(y, a, ret);
        look_at_queue(y, a, step, ret);
        look_at_breaker(y, a, ret);
        look_at_limits(y, a, step, ret);
    }
    if (!ret->connected)
        ret->alike = name_like(y, name);
}

static void see_attempt(void *arg, int step, const struct attempt *at, struct attempt_view *ret)
{
    const struct witness *y = arg;
    const struct pulse *p =
        scheduler_pulse(y->scheduler, y->task, (uint16_t)step, at->direction, at->number);
    const struct live_step *ls = y->live && y->live->loaded ? &y->live->steps[step] : NULL;

    *ret = (struct attempt_view){0};
    if (p)
        *ret = (struct attempt_view){.heartbeat_at = p->at,
                                     .progress = p->progress,
                                     .message = p->message,
                                     .seen_at = p->at};
    ret->silent_by = scheduler_silent_by(y->scheduler, y->task, (uint16_t)step);
    if (ls && ls->instance)
        ret->seen_at = max_i64(ls->instance->seen_at, ls->instance->heartbeat_at);
}

static enum owner owner_of(struct slice me, struct slice locked_by)
{
    if (!locked_by.ptr)
        return OWNER_NONE;
    if (slice_eq(locked_by, me))
        return OWNER_US;
    if (!slice_eq(owner_node(locked_by), owner_node(me)))
        return OWNER_OTHER;
    return owner_boot(locked_by) < owner_boot(me) ? OWNER_BEFORE_US : OWNER_OTHER;
}

void scheduler_facts(const struct scheduler *s, const struct task *t, const struct task_row *row,
                     struct arena *a, struct facts *ret)
{
    const struct tasks *ts = scheduler_tasks(s);
    const struct live *l = live_find(ts, t->id);
    const struct definition *d = registry_find(ts->workflows, row->workflow, row->version);
    struct witness *y = arena_alloc(a, sizeof *y);

    *y = (struct witness){.scheduler = s,
                          .tasks = ts,
                          .live = l,
                          .workflow = d ? &d->workflow : NULL,
                          .undo = t->direction == DIRECTION_UNDO,
                          .task = t->id,
                          .now = tasks_now(ts),
                          .arena = a};
    ASSERT(ts->me.len > 0);
    *ret = (struct facts){
        .now = y->now,
        .owner = owner_of(ts->me, row->locked_by),
        .owner_name = row->locked_by,
        .live = l != NULL,
        .draining = scheduler_is_draining(s),
        .full = ts->counts.live >= ts->live_max,
        .agent = see_agent,
        .attempt = see_attempt,
        .arg = y,
    };
}
