/* From ready to running: queues ready steps, and assigns them to calls with free places. change.c
 * stores it; work.c sends the requests. */

#include "core/attempts.h"
#include "scheduler/internal.h"

/* Those that could not be read are tried again later. */
static bool awaits_outputs(struct scheduler *s, struct live *l)
{
    if (l->task.slot_count == 0 || !items_await_outputs(s, l))
        return false;
    heap_remove(&s->tasks.naps, &l->nap);
    if (l->items_at)
        heap_push(&s->tasks.naps, &l->nap, l->items_at);
    return true;
}

void start_refresh(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;
    int64_t now = scheduler_now(s);
    int64_t nap_until = 0;

    ASSERT(l->loaded);
    if (l->in_flight)
        return;
    queue_leave_all(&s->tasks, l);
    if (overrun_hold(s, l))
        return;
    if (awaits_outputs(s, l))
        return;
    decisions_make(s, l);
    if (awaits_outputs(s, l)) /* of a list that ended by what was decided */
        return;
    if (!live_is_ours(&s->tasks, l))
        return;
    if (l->task.slot_count > 0)
        items_bring(s, l);
    if (task_lacks_lock(&l->task)) {
        if (release_is_due(s, l))
            live_dirty(&s->tasks, l); /* it waits for its lock in the store */
        return;
    }
    size_t count = queue_ready(&s->tasks, l, &ready);
    for (size_t i = 0; i < count; i++) {
        struct live_step *ls = &l->steps[ready[i].step];
        if (ready[i].at > now) {
            nap_until = nap_until ? min_i64(nap_until, ready[i].at) : ready[i].at;
            continue;
        }
        if (decision_is_open(s, l, &ready[i]))
            continue;
        queue_step(&s->tasks, ls, queue_lane(&s->tasks, l, ready[i].step));
    }
    int64_t stale = shared_stale_at(s, l);
    if (stale != 0) {
        stale = max_i64(stale, now + STALE_MS);
        nap_until = nap_until ? min_i64(nap_until, stale) : stale;
    }
    nap_until = earlier(nap_until, l->items_at);
    if (nap_until)
        heap_push(&s->tasks.naps, &l->nap, nap_until);
    if (release_is_due_for(s, l, ready, count))
        live_dirty(&s->tasks, l); /* the next batch releases it */
}

/* Are all its open attempts elsewhere, and nothing else near? Then it need not be in memory: it is
 * read when something happens to it. There may be many such tasks, for days. */
static bool rests(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;
    bool any = false;

    if (!l->loaded || l->in_flight || l->reload || link_is_in(&l->dirty_link)
        || !list_empty(&l->inbox) || link_is_in(&l->undecided) || l->awaits_items
        || !live_is_ours(&s->tasks, l))
        return false;
    if (s->checking_owned)
        return false; /* a task that is not in memory then counts as new */
    LIST_FOREACH (link, after, &l->active) {
        uint16_t i = CONTAINER_OF(link, struct live_step, active)->step;
        const struct attempt *a = step_open_attempt(&l->task.steps[i]);
        if (a && !a->elsewhere)
            return false;
        any |= a != NULL;
    }
    return any && queue_ready(&s->tasks, l, &ready) == 0;
}

void start_continue(struct scheduler *s, struct live *l)
{
    start_refresh(s, l);
    if (rests(s, l))
        live_drop(&s->tasks, l);
}

static void grow_attempts(struct live *l, struct step *st)
{
    if (!step_needs_room(st))
        return;
    uint16_t cap = st->attempt_cap ? (uint16_t)(st->attempt_cap * 2) : 2;
    if (cap > ATTEMPTS_KEPT)
        cap = ATTEMPTS_KEPT;
    ASSERT(cap > st->attempt_count);
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

    ASSERT(l->loaded);
    ASSERT(!l->in_flight);
    ASSERT(live_is_ours(&s->tasks, l));
    ASSERT(!ls->instance);
    ASSERT(!w->closed);
    if (overruns_too_often(&s->tasks.overruns, l->id)) { /* it may overrun since it was queued */
        start_refresh(s, l);
        return false;
    }
    if (!input_of_step(s, l, ls->step, &start.input, &e)) {
        decision_bad_input(s, l, ls->step, evaluation_code(&e), &e);
        start_refresh(s, l);
        return false;
    }
    struct attempt next =
        task_next_attempt(&l->definition->workflow, &l->task, ls->step, scheduler_now(s));
    start.direction = next.direction;
    start.attempt = next.number;
    start.instance = arena_copy(&l->arena, w->instance_name);
    grow_attempts(l, st);
    if (live_decide(&s->tasks, l, &start) != ANSWER_ACCEPTED)
        return false; /* its deadline passed while it was in the queue */
    ASSERT(step_open_attempt(st));
    ls->free_at = 0;
    limits_open(&s->tasks, ls, lane, w->instance);
    lane_begin(lane, scheduler_now(s));
    health_begun(&w->instance->health, scheduler_now(s));
    call_assign(w, ls);
    breakers_end_trial(l, ls->step); /* of an ended attempt that is not durable yet */
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
           && (lane = dispatch_next_lane(&s->tasks.dispatch, a, now))
           && (w = dispatch_next_call(&s->tasks.dispatch, a, now))) {
        if (!effort_may(&s->tasks.effort, EFFORT_INPUTS)) {
            a->left_out = s->tasks.effort.turn + 1;
            return any;
        }
        any = true;
        struct live_step *ls = CONTAINER_OF(lane->queue.nodes[0], struct live_step, want);
        ASSERT(lane->agent == a);
        ASSERT(w->agent == a);
        queue_leave(&s->tasks, ls);
        ASSERT(w->assigned_count < w->max);
        if (start_step(s, ls, lane, w)) {
            link_remove(&w->turn); /* instances take turns */
            if (w->assigned_count < w->max)
                list_push(&a->calls, &w->turn);
        }
    }
    return true;
}

static bool may_start(const struct scheduler *s, const struct agent *a)
{
    bool full = s->tasks.counts.live >= 2 * s->config.live_max; /* nothing is taken over */

    return !a->limited || ((full || !s->uncounted) && (!s->config.shared || shared_may_claim(s)));
}

void start_match(struct scheduler *s)
{
    struct link seen;
    struct link first_next; /* at the next turn */

    if (s->draining || !s->tasks.agents_known)
        return;
    list_init(&first_next);
    list_init(&seen); /* starts, and refused starts, change the list of busy agents */
    for (struct link *first = NULL; (first = list_first(&s->tasks.dispatch.busy));) {
        struct agent *a = CONTAINER_OF(first, struct agent, busy);
        link_remove(first);
        list_push(&seen, first);
        if (!may_start(s, a) || match_agent(s, a))
            continue;
        link_remove(first);
        list_push(&first_next, first);
    }
    list_take_all(&s->tasks.dispatch.busy, &first_next);
    list_take_all(&s->tasks.dispatch.busy, &seen);
}
