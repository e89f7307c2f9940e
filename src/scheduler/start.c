/* From ready to running: queues steps, decides conditions, assigns steps to calls with free places,
 * and finds what to release and what it waits for. flush.c stores the result; calls.c sends the
 * requests. */

#include "scheduler/internal.h"

#include <stdlib.h>

int64_t task_rank(const struct task *t)
{
    return max_i64(t->submitted_at, t->not_before) - t->priority * AGING_MS;
}

static const struct call_spec *spec_of(const struct live *l, uint16_t step)
{
    const struct workflow *w = &l->definition->workflow;
    bool undo = step_goes(w, &l->task, step) == DIRECTION_UNDO;

    return undo ? &w->steps[step].undo : &w->steps[step].call;
}

struct lane *start_lane(struct scheduler *s, const struct live *l, uint16_t step)
{
    const struct call_spec *spec = spec_of(l, step);

    return dispatch_lane(dispatch_agent(&s->dispatch, spec->agent), spec->action);
}

/* The rank of a step in its agent's queue. A step that failed in an outage goes behind those that
 * were not tried: otherwise the oldest steps would be the only trials, and if they fail and not the
 * service, the breaker would never close. A bulk operation ranks its tasks as of its time, with one
 * level of priority less: they are older than all new tasks, and there may be very many. */
static int64_t step_rank(const struct live *l, uint16_t step)
{
    const struct task *t = &l->task;
    int64_t spared = t->steps[step].spared_at;
    int64_t bulk = l->bulk_at ? l->bulk_at + AGING_MS : 0;

    if (!spared && !bulk)
        return task_rank(t);
    return max_i64(task_rank(t), max_i64(spared, bulk) - t->priority * AGING_MS);
}

static void queue_step(struct scheduler *s, struct live_step *ls, struct lane *lane)
{
    live_stir(ls);
    ls->queue_of = lane;
    ls->bulk = ls->live->bulk_at != 0;
    lane_push(&s->dispatch, lane, &ls->want, step_rank(ls->live, ls->step));
    s->stats.waiting++;
    s->stats.bulk_waiting += ls->bulk;
    lane->agent->bulk += ls->bulk;
}

void start_leave_queue(struct scheduler *s, struct live_step *ls)
{
    struct lane *lane = ls->queue_of;

    if (!lane)
        return;
    lane_remove(lane, &ls->want);
    s->stats.waiting--;
    s->stats.bulk_waiting -= ls->bulk;
    lane->agent->bulk -= ls->bulk;
    ls->queue_of = NULL;
    ls->bulk = false;
}

size_t scheduler_bulk_room(struct scheduler *s, size_t most)
{
    int64_t now = scheduler_now(s);

    LIST_FOREACH (link, after, &s->dispatch.busy) {
        struct agent *a = CONTAINER_OF(link, struct agent, busy);
        if (a->bulk > 0 && a->bulk >= dispatch_places(a, now))
            return 0;
    }
    return s->stats.bulk_waiting < most ? most - s->stats.bulk_waiting : 0;
}

/* The ready steps of a task, not before the task's own not_before. */
static size_t ready_of(struct scheduler *s, struct live *l, struct ready **ret)
{
    static struct ready list[STEPS_MAX]; /* single-threaded; too large for the stack */
    size_t count = task_ready(&l->definition->workflow, &l->task, scheduler_now(s), list);

    if (l->task.direction == DIRECTION_FORWARD)
        for (size_t i = 0; i < count; i++)
            list[i].at = max_i64(list[i].at, l->task.not_before);
    *ret = list;
    return count;
}

void start_unqueue(struct scheduler *s, struct live *l)
{
    LIST_FOREACH (link, after, &l->astir)
        start_leave_queue(s, CONTAINER_OF(link, struct live_step, astir));
    heap_remove(&s->naps, &l->nap);
}

static void bad_input(struct scheduler *s, struct live *l, uint16_t step, const struct error *e)
{
    const struct event bad = {
        .kind = EVENT_BAD_INPUT,
        .step = step,
        .error = {SLICE("expression"), arena_copy(&l->arena, slice_of(e->text))},
    };
    enum answer answer = live_decide(s, l, &bad);

    ASSERT(answer == ANSWER_ACCEPTED);
}

/* Is its `if` still to be evaluated? */
static bool is_undecided(const struct scheduler *s, const struct live *l, const struct ready *r)
{
    const struct workflow *w = &l->definition->workflow;

    return l->definition->steps[r->step].condition && r->at <= scheduler_now(s)
           && step_goes(w, &l->task, r->step) == DIRECTION_FORWARD && !l->steps[r->step].holds
           && !step_was_tried(&l->task.steps[r->step]);
}

/* The outcome of a condition. */
enum look {
    LOOK_HOLDS,
    LOOK_SKIPPED, /* that may make other steps ready */
    LOOK_FAILED,  /* the task goes another way */
    LOOK_SPENT,   /* left for the next turn */
};

static enum look condition_of(struct scheduler *s, struct live *l, uint16_t step)
{
    const struct event skip = {.kind = EVENT_CONDITION, .step = step};
    struct error e = {0};

    if (!effort_may(s, EFFORT_CONDITIONS))
        return LOOK_SPENT;
    if (input_condition(s, l, step, &l->steps[step].holds, &e) != ERR_OK) {
        l->steps[step].holds = false;
        bad_input(s, l, step, &e);
        return LOOK_FAILED;
    }
    if (l->steps[step].holds)
        return LOOK_HOLDS;
    enum answer answer = live_decide(s, l, &skip);
    ASSERT(answer == ANSWER_ACCEPTED);
    return LOOK_SKIPPED;
}

/* Evaluates each `if` of the ready steps once: a skipped step makes others ready, and leaves ready
 * ones as they are. */
static enum look conditions_of(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;
    size_t count = ready_of(s, l, &ready);
    enum look all = LOOK_HOLDS;

    for (size_t i = 0; i < count; i++) {
        if (!is_undecided(s, l, &ready[i]))
            continue;
        enum look one = condition_of(s, l, ready[i].step);
        if (one == LOOK_FAILED || one == LOOK_SPENT)
            return one;
        all = one == LOOK_SKIPPED ? one : all;
    }
    return all;
}

void start_conditions(struct scheduler *s, struct live *l)
{
    enum look look = LOOK_HOLDS;

    link_remove(&l->undecided);
    if (!l->definition->has_conditions)
        return;
    do
        look = conditions_of(s, l);
    while (look == LOOK_SKIPPED || look == LOOK_FAILED);
    inputs_evaluated(s);
    if (look == LOOK_SPENT)
        list_push(&s->undecided, &l->undecided);
}

/* Tasks take turns: one that is not done moves behind the others. */
void start_decide_more(struct scheduler *s)
{
    struct link waiting;

    list_init(&waiting);
    list_take_all(&waiting, &s->undecided);
    while (!list_empty(&waiting) && effort_may(s, EFFORT_CONDITIONS)) {
        struct link *first = list_pop(&waiting);
        ASSERT(first); /* it is not empty */
        struct live *l = CONTAINER_OF(first, struct live, undecided);
        if (!l->loaded || l->in_flight)
            continue; /* its load or commit continues with it */
        if (live_is_ours(s, l))
            start_go_on(s, l);
        else if (l->fresh)
            submit_go_on(s, l);
    }
    list_take_all(&waiting, &s->undecided);
    list_take_all(&s->undecided, &waiting);
}

/* With no attempt open: will none of the ready steps start here soon? */
static bool is_for_others(struct scheduler *s, const struct live *l, const struct ready *ready,
                          size_t count)
{
    int64_t now = scheduler_now(s);

    if (l->task.paused_at != 0)
        return true;
    for (size_t i = 0; i < count; i++) {
        const struct lane *lane = start_lane(s, l, ready[i].step);
        if (s->draining)
            continue;
        if (ready[i].at > now ? ready[i].at - now <= NAP_MS
                              : lane_is_served(lane, now) && !lane_is_too_long(lane, now))
            return false;
    }
    return count > 0 || s->draining;
}

static bool may_be_released(const struct scheduler *s, const struct live *l)
{
    return live_is_ours(s, l) && !live_any_open(l) && !task_state_is_end(l->task.state)
           && !link_is_in(&l->undecided);
}

bool start_should_release(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;

    if (!may_be_released(s, l))
        return false;
    size_t count = ready_of(s, l, &ready);
    return is_for_others(s, l, ready, count);
}

void start_refresh(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;
    int64_t now = scheduler_now(s);
    int64_t nap_until = 0;

    ASSERT(l->loaded);
    if (l->in_flight)
        return;
    start_unqueue(s, l);
    if (overruns_hold(s, l))
        return;
    start_conditions(s, l);
    if (!live_is_ours(s, l))
        return;
    size_t count = ready_of(s, l, &ready);
    for (size_t i = 0; i < count; i++) {
        struct live_step *ls = &l->steps[ready[i].step];
        if (ready[i].at > now) {
            nap_until = nap_until ? min_i64(nap_until, ready[i].at) : ready[i].at;
            continue;
        }
        if (is_undecided(s, l, &ready[i]))
            continue;
        queue_step(s, ls, start_lane(s, l, ready[i].step));
    }
    int64_t stale = shared_stale_at(s, l);
    if (stale != 0) {
        stale = max_i64(stale, now + STALE_MS);
        nap_until = nap_until ? min_i64(nap_until, stale) : stale;
    }
    if (nap_until)
        heap_push(&s->naps, &l->nap, nap_until);
    if (may_be_released(s, l) && is_for_others(s, l, ready, count))
        live_dirty(s, l); /* the next batch releases it */
}

bool start_has_room(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;
    int64_t now = scheduler_now(s);
    size_t count = ready_of(s, l, &ready);

    if (s->draining || s->stats.live >= s->config.live_max || !shared_may_claim(s))
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct lane *lane = start_lane(s, l, ready[i].step);
        struct backlog backlog = lane->limited ? lane->backlog : lane->agent->backlog;
        if (ready[i].at <= now && !backlog_any(backlog) && lane_room(lane, now) > 0)
            return true;
    }
    return false;
}

/* Are all its open attempts elsewhere, and nothing else near? Then it need not be in memory: it is
 * read when something happens to it. There may be many such tasks, for days. */
static bool rests(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;
    bool any = false;

    if (!l->loaded || l->in_flight || l->reload || link_is_in(&l->dirty_link)
        || !list_empty(&l->inbox) || !live_is_ours(s, l))
        return false;
    if (s->looking)
        return false; /* a task that is not in memory then counts as new */
    LIST_FOREACH (link, after, &l->astir) {
        uint16_t i = CONTAINER_OF(link, struct live_step, astir)->step;
        const struct attempt *a = step_open_attempt(&l->task.steps[i]);
        if (a && !a->elsewhere)
            return false;
        any |= a != NULL;
    }
    return any && ready_of(s, l, &ready) == 0;
}

void start_go_on(struct scheduler *s, struct live *l)
{
    start_refresh(s, l);
    if (rests(s, l))
        live_drop(s, l);
}

/* ---- what a task without owner waits for ---- */

/* An agent once for each of its lines, and "time". */
struct waits {
    struct task_wait list[STEPS_MAX + 1];
    struct lane *lanes[STEPS_MAX + 1]; /* NULL: "time" */
    size_t count;
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
    w->lanes[w->count] = lane;
    w->list[w->count++] = (struct task_wait){agent, rank};
}

static void find_waits(struct scheduler *s, struct live *l, struct waits *ret)
{
    struct ready *ready = NULL;
    size_t count = ready_of(s, l, &ready);
    int64_t now = scheduler_now(s);

    ret->count = 0;
    for (size_t i = 0; i < count; i++) {
        struct lane *lane = start_lane(s, l, ready[i].step);
        if (ready[i].at > now)
            add_wait(ret, NULL, SLICE("time"), ready[i].at);
        else
            add_wait(ret, lane, lane->agent->name, lane_rank(lane, step_rank(l, ready[i].step)));
    }
    if (ret->count == 0) /* its deadline has passed: the supervisor's request is due */
        add_wait(ret, NULL, SLICE("time"), now);
}

/* The store will hold the task: the next claims must know. */
static void note_backlog(struct scheduler *s, struct lane *lane, int64_t rank, bool among)
{
    struct backlog *b = NULL;

    if (!lane) {
        int64_t *next_at = among ? &s->among_next_at : &s->time_next_at;
        *next_at = earlier(*next_at, rank);
        return;
    }
    lane->agent->stored = true;
    b = lane->limited ? &lane->backlog : &lane->agent->backlog;
    *(among ? &b->among : &b->alone) = true;
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

void start_wait_fields(struct scheduler *s, struct live *l, struct arena *a, struct task_row *row)
{
    static struct waits w; /* single-threaded; too large for the stack */

    find_waits(s, l, &w);
    for (size_t i = 0; i < w.count; i++)
        note_backlog(s, w.lanes[i], w.list[i].rank, w.count > 1);
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

static void grow_attempts(struct live *l, struct step *st)
{
    if (!step_needs_room(st))
        return;
    uint16_t cap = st->attempt_cap ? (uint16_t)(st->attempt_cap * 2) : 2;
    if (cap > ATTEMPTS_KEPT)
        cap = ATTEMPTS_KEPT;
    struct attempt *more = arena_alloc(&l->arena, cap * sizeof *more);
    if (st->attempt_count > 0)
        memcpy(more, st->attempts, st->attempt_count * sizeof *more);
    st->attempts = more;
    st->attempt_cap = cap;
}

/* Assigns a ready step to a call with a free place. False: it did not start. */
static bool start_step(struct scheduler *s, struct live_step *ls, struct lane *lane, struct work *w)
{
    struct live *l = ls->live;
    struct step *st = &l->task.steps[ls->step];
    struct error e = {0};
    struct event start = {.kind = EVENT_START, .step = ls->step};

    if (overruns_too_often(s, l->id)) { /* it may overrun since it was queued */
        start_refresh(s, l);
        return false;
    }
    if (!input_of_step(s, l, ls->step, &start.input, &e)) {
        bad_input(s, l, ls->step, &e);
        start_refresh(s, l);
        return false;
    }
    struct attempt next =
        task_next_attempt(&l->definition->workflow, &l->task, ls->step, scheduler_now(s));
    start.direction = next.direction;
    start.attempt = next.number;
    start.instance = arena_copy(&l->arena, w->instance_name);
    grow_attempts(l, st);
    if (live_decide(s, l, &start) != ANSWER_ACCEPTED)
        return false; /* its deadline passed while it was in the queue */
    limits_open(s, ls, lane, w->instance);
    lane_begin(lane, scheduler_now(s));
    health_begun(&w->instance->health, scheduler_now(s));
    call_assign(s, w, ls);
    breakers_trial_over(l, ls->step); /* of an ended attempt that is not durable yet */
    ls->tries = w->agent;
    ls->trial = breaker_start(&w->agent->breaker, &w->agent->settings.breaker, scheduler_now(s));
    ls->pending = true;
    w->unsettled++;
    return true;
}

/* False: the turn's limit was reached before any step started. */
static bool match_agent(struct scheduler *s, struct agent *a)
{
    int64_t now = scheduler_now(s);
    struct lane *lane = NULL;
    struct work *w = NULL;
    bool any = false;

    while (!list_empty(&a->calls) && breaker_room(&a->breaker, &a->settings.breaker) > 0
           && (lane = dispatch_next_lane(&s->dispatch, a, now))
           && (w = dispatch_next_call(&s->dispatch, a, now))) {
        if (!effort_may(s, EFFORT_INPUTS)) {
            a->left_out = s->effort.turn + 1;
            return any;
        }
        any = true;
        struct live_step *ls = CONTAINER_OF(lane->queue.nodes[0], struct live_step, want);
        start_leave_queue(s, ls);
        ASSERT(w->assigned_count < w->max);
        if (start_step(s, ls, lane, w)) {
            link_remove(&w->turn); /* instances take turns */
            if (w->assigned_count < w->max)
                list_push(&a->calls, &w->turn);
        }
    }
    return true;
}

void start_match(struct scheduler *s)
{
    struct link seen;
    struct link first_next; /* at the next turn */

    if (s->draining || !s->agents_known)
        return;
    list_init(&first_next);
    list_init(&seen); /* starts, and refused starts, change the list of busy agents */
    for (struct link *first = NULL; (first = list_first(&s->dispatch.busy));) {
        struct agent *a = CONTAINER_OF(first, struct agent, busy);
        link_remove(first);
        list_push(&seen, first);
        if (!limits_may_start(s, a) || match_agent(s, a))
            continue;
        link_remove(first);
        list_push(&first_next, first);
    }
    list_take_all(&s->dispatch.busy, &first_next);
    list_take_all(&s->dispatch.busy, &seen);
}
