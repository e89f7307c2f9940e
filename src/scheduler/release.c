/* What goes back to the store, so that any node can claim it: which tasks, and what they then wait
 * for. change.c stores it. */

#include "scheduler/internal.h"

enum { SWEEP_MS = 500 };

/* What is decided next of the step needs no agent: it waits, or an answer may end its rounds. */
static bool needs_no_agent(const struct live *l, uint16_t step)
{
    return !step_calls(&l->definition->workflow, &l->task, step)
           || step_is_answered(&l->task.steps[step]);
}

static bool starts_soon(struct scheduler *s, const struct live *l, uint16_t step, int64_t now)
{
    if (needs_no_agent(l, step))
        return true;
    const struct lane *lane = queue_lane(&s->tasks, l, step);
    return lane_is_served(lane, now) && !lane_is_too_long(lane, now);
}

static bool awaits_signal(const struct scheduler *s, const struct live *l)
{
    return l->definition->has_signals
           && task_awaits_signal(&l->definition->workflow, &l->task, scheduler_now(s));
}

/* No claim finds it: what it waits for comes to it. */
static bool awaits_others(const struct scheduler *s, const struct live *l)
{
    return awaits_signal(s, l) || family_awaits(l);
}

/* With no open attempt: will no ready step start here soon? */
static bool is_for_others(struct scheduler *s, const struct live *l, const struct ready *ready,
                          size_t count)
{
    int64_t now = scheduler_now(s);

    if (l->task.paused_at != 0 || task_lacks_lock(&l->task))
        return true;
    if (!s->draining && decisions_any_offers_left(s, l))
        return false;
    for (size_t i = 0; i < count && !s->draining; i++)
        if (ready[i].at > now ? ready[i].at - now <= NAP_MS : starts_soon(s, l, ready[i].step, now))
            return false;
    return count > 0 || s->draining || awaits_others(s, l);
}

static bool may_be_released(const struct scheduler *s, const struct live *l)
{
    return live_is_ours(&s->tasks, l) && !live_any_open(l) && !task_state_is_end(l->task.state)
           && !link_is_in(&l->undecided) && !l->awaits_items
           && (l->task.slot_count == 0 || !items_will_be_undone(l));
}

bool release_is_due_for(struct scheduler *s, const struct live *l, const struct ready *ready,
                        size_t count)
{
    return may_be_released(s, l) && is_for_others(s, l, ready, count);
}

bool release_is_due(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;

    if (!may_be_released(s, l))
        return false;
    size_t count = queue_ready(&s->tasks, l, &ready);
    return is_for_others(s, l, ready, count);
}

/* The latest arrivals are near the end, as far as a heap is ordered. */
static void sweep_lane(struct scheduler *s, const struct lane *lane, int64_t now)
{
    size_t most = lane_is_served(lane, now) ? lane_excess(lane, now) : lane->queue.len;

    for (size_t k = lane->queue.len; k > 0 && most > 0; k--) {
        struct live *l = CONTAINER_OF(lane->queue.nodes[k - 1], struct live_step, want)->live;
        if (!release_is_due(s, l))
            continue;
        live_dirty(&s->tasks, l);
        most--;
    }
}

/* Tasks that wait in vain go back to the store, where another node can claim them. */
void release_sweep(struct scheduler *s, int64_t now)
{
    if (now < s->sweep_at)
        return;
    s->sweep_at = now + SWEEP_MS;
    LIST_FOREACH (link, after, &s->tasks.dispatch.busy) {
        struct agent *a = CONTAINER_OF(link, struct agent, busy);
        struct lane *lane = NULL;
        if (!a->limited && dispatch_may_start(a, now))
            continue;
        for (size_t i = 0; (lane = map_next(&a->lanes, &i));)
            sweep_lane(s, lane, now);
    }
    dispatch_sweep(&s->tasks.dispatch, now);
}

void scheduler_drain(struct scheduler *s)
{
    struct live *l = NULL;
    struct agent *a = NULL;

    s->draining = true;
    for (size_t i = 0; (l = map_next(&s->tasks.lives, &i));)
        if (l->loaded && !l->in_flight && release_is_due(s, l))
            live_dirty(&s->tasks, l);
    for (size_t i = 0; (a = map_next(&s->tasks.dispatch.agents, &i));)
        for (struct link *first = NULL; (first = list_first(&a->calls));)
            call_close(&s->tasks, CONTAINER_OF(first, struct work, turn));
}

/* ---- what a task without owner waits for ---- */

/* An agent once for each of its lines, and a time. */
struct waits {
    struct task_wait list[STEPS_MAX + 1];
    struct lane *lanes[STEPS_MAX + 1]; /* NULL: a time */
    size_t count;
    enum due due;   /* which claims find it by its time */
    bool by_signal; /* no claim finds it */
};

static bool is_same_line(const struct lane *a, const struct lane *b)
{
    return a && b && a->agent == b->agent && (a == b || (!a->limited && !b->limited));
}

static void add_wait(struct waits *w, struct lane *lane, struct slice agent, int64_t rank)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->lanes[i] == lane || is_same_line(w->lanes[i], lane)) {
            w->list[i].rank = min_i64(w->list[i].rank, rank);
            return;
        }
    ASSERT(w->count <= STEPS_MAX);
    w->lanes[w->count] = lane;
    w->list[w->count++] = (struct task_wait){agent, rank};
}

static void find_waits(struct scheduler *s, struct live *l, struct waits *ret)
{
    struct ready *ready = NULL;
    size_t count = queue_ready(&s->tasks, l, &ready);
    int64_t now = scheduler_now(s);
    bool only_waits = count > 0;

    ret->count = 0;
    for (size_t i = 0; i < count; i++) {
        only_waits &= !step_calls(&l->definition->workflow, &l->task, ready[i].step);
        if (needs_no_agent(l, ready[i].step) || ready[i].at > now) {
            /* 0 means none: what is decided without an agent is due now */
            add_wait(ret, NULL, WAITING_TIME, ready[i].at ? ready[i].at : now);
            continue;
        }
        struct lane *lane = queue_lane(&s->tasks, l, ready[i].step);
        add_wait(ret, lane, lane->agent->name, lane_rank(lane, queue_rank(l, ready[i].step)));
    }
    /* This node could not: another one has to. */
    if (decisions_any_offers_left(s, l) || items_are_wanted_back(l)) {
        only_waits = false;
        add_wait(ret, NULL, WAITING_TIME, now);
    }
    ret->by_signal = ret->count == 0 && awaits_others(s, l);
    if (ret->by_signal)
        add_wait(ret, NULL, WAITING_SIGNAL, now);
    if (ret->count == 0) /* its deadline has passed: the supervisor's request is due */
        add_wait(ret, NULL, WAITING_TIME, now);
    ret->due = ret->count > 1 ? DUE_AMONG : only_waits ? DUE_WAIT : DUE_TIME;
    if (ret->due == DUE_WAIT)
        ret->list[0].agent = WAITING_WAIT;
}

/* The store will hold the task: the next claims must know. */
static void note_backlog(struct scheduler *s, struct lane *lane, int64_t rank, enum due due)
{
    struct backlog *b = NULL;

    if (!lane) {
        s->due_at[due] = earlier(s->due_at[due], rank);
        return;
    }
    ASSERT(lane->agent);
    lane->agent->stored = true;
    b = lane->limited ? &lane->backlog : &lane->agent->backlog;
    *(due == DUE_AMONG ? &b->among : &b->alone) = true;
}

/* Each name once, as long as there is room. */
static struct slice names_of(struct scheduler *s, const struct waits *w, struct arena *a)
{
    struct buf *b = scheduler_scratch(s);

    for (size_t i = 0; i < w->count; i++) {
        const struct task_row so_far = {.waiting_for = buf_view(b)};
        struct slice name = w->list[i].agent;
        if ((i > 0 && row_waits_for(&so_far, name)) || b->len + 1 + name.len > WAITING_FOR_MAX)
            continue;
        buf_byte(b, ',');
        buf_slice(b, name);
    }
    return arena_copy(a, buf_view(b));
}

/* Before its start time a task does not wait for its lock. It ranks by its submission, not as part
 * of a bulk operation: others wait as long for this lock. */
static void wait_for_lock(struct scheduler *s, const struct live *l, struct arena *a,
                          struct task_row *row)
{
    struct buf *b = scheduler_scratch(s);
    int64_t from = l->task.direction == DIRECTION_FORWARD ? l->task.not_before : 0;

    if (from > scheduler_now(s)) {
        row->waiting_for = WAITING_TIME;
        row->rank = from;
        s->due_at[DUE_TIME] = earlier(s->due_at[DUE_TIME], from);
        return;
    }
    buf_str(b, WAITING_LOCK);
    buf_slice(b, l->task.lock);
    row->waiting_for = arena_copy(a, buf_view(b));
    row->rank = task_rank(&l->task);
    s->locks = true;
}

void release_wait_fields(struct scheduler *s, struct live *l, struct arena *a, struct task_row *row)
{
    static _Thread_local struct waits w; /* too large for the stack */

    ASSERT(l->task.state == TASK_PENDING);
    ASSERT(!l->task.locked_by.ptr);
    if (task_lacks_lock(&l->task)) {
        wait_for_lock(s, l, a, row);
        return;
    }
    find_waits(s, l, &w);
    for (size_t i = 0; i < w.count && !w.by_signal; i++)
        note_backlog(s, w.lanes[i], w.list[i].rank, w.due);
    ASSERT(w.count > 0);
    if (w.count == 1) {
        row->waiting_for = arena_copy(a, w.list[0].agent); /* the agent may be forgotten */
        row->rank = w.list[0].rank;
        return;
    }
    struct task_wait *waits = arena_alloc(a, w.count * sizeof *waits);
    for (size_t i = 0; i < w.count; i++)
        waits[i] = (struct task_wait){arena_copy(a, w.list[i].agent), w.list[i].rank};
    row->waiting_for = names_of(s, &w, a);
    row->waits = waits;
    row->wait_count = w.count;
}
