/* The scheduler's construction, turns and public functions. The order of a turn's parts matters
 * (scheduler_turn). Design: scheduler.h; shared state: internal.h. */

#include "scheduler/scheduler.h"

#include <stdio.h>
#include <stdlib.h>

#include "scheduler/internal.h"

enum {
    SWEEP_MS = 500,
    LEASE_MS = 3000,
    GRACE_MS = 10000,
    SCRATCH_KEPT = 65536,
    SPARE_MAX = 256, /* tasks in memory beyond the limit: one page of the supervisor */
};

int64_t scheduler_now(const struct scheduler *s)
{
    return s->held_now ? s->held_now : s->clock.now(s->clock.arg);
}

void scheduler_hold_now(struct scheduler *s)
{
    s->held_now = s->clock.now(s->clock.arg);
}

void scheduler_let_now_go(struct scheduler *s)
{
    s->held_now = 0;
}

struct buf *scheduler_scratch(struct scheduler *s)
{
    if (s->scratch.cap > SCRATCH_KEPT)
        buf_fini(&s->scratch);
    buf_clear(&s->scratch);
    return &s->scratch;
}

struct scheduler *scheduler_new(const struct scheduler_config *c, struct store_queue *store,
                                struct registry *workflows, struct token_key *key,
                                const struct clock *clock, const struct outside *outside)
{
    struct scheduler *s = calloc(1, sizeof *s);

    ASSERT(s);
    s->config = *c;
    s->config.live_max = c->live_max ? c->live_max : 50000;
    s->config.batch_max = c->batch_max ? c->batch_max : 2048;
    s->config.batch_bytes = c->batch_bytes ? c->batch_bytes : 16 << 20;
    s->config.lease_ms = c->lease_ms ? c->lease_ms : LEASE_MS;
    s->config.grace_ms = c->grace_ms ? c->grace_ms : GRACE_MS;
    s->store = store;
    s->workflows = workflows;
    s->key = key;
    s->clock = *clock;
    s->outside = *outside;
    (void)snprintf(s->me_text, sizeof s->me_text, "%.*s/%" PRIu64, SLICE_ARG(c->node), c->boot);
    s->me = slice_of(s->me_text);
    list_init(&s->dirty);
    list_init(&s->loads);
    list_init(&s->inboxes);
    list_init(&s->answerable);
    list_init(&s->puzzled);
    list_init(&s->undecided);
    effort_begin(s);
    list_init(&s->lost);
    /* where limits are shared, the number of nodes is not known yet */
    dispatch_init(&s->dispatch, (struct share){.nodes = !c->shared}, scheduler_now(s));
    list_init(&s->answers);
    list_init(&s->untold);
    list_init(&s->shut);
    list_init(&s->unsaved);
    s->agents_stale = true;
    s->definitions.told = live_definitions_read;
    overruns_read(s, c->overruns, c->overrun_count);
    s->config.overruns = NULL;
    s->taking_over = s->uncounted = true;
    s->time_next_at = s->among_next_at = 1; /* unknown: claim at once */
    return s;
}

static void drop_all_lives(struct scheduler *s)
{
    for (;;) {
        size_t i = 0;
        struct live *l = map_next(&s->lives, &i);
        if (!l)
            return;
        inbox_fail(s, l, &l->applied, ERR_BUSY, "the server ends");
        inbox_fail(s, l, &l->inbox, ERR_BUSY, "the server ends");
        l->in_flight = false;
        live_drop(s, l);
    }
}

static void drop_all_calls(struct scheduler *s)
{
    for (struct heap_node *n = NULL; (n = heap_min(&s->waits));) {
        struct work *w = CONTAINER_OF(n, struct work, timer);
        heap_remove(&s->waits, n);
        w->gone = true;
        call_close(s, w);
    }
    call_answer_ready(s);
}

void scheduler_free(struct scheduler *s)
{
    if (!s)
        return;
    ASSERT(!scheduler_is_busy(s));
    inbox_answer(s);
    drop_all_lives(s);
    drop_all_calls(s);
    flush_forget(s);
    link_remove(&s->definitions.link);
    heap_fini(&s->waits);
    limits_forget_lost(s);
    heap_fini(&s->naps);
    heap_fini(&s->silences);
    map_fini(&s->lives);
    overruns_free(s);
    dispatch_fini(&s->dispatch);
    buf_fini(&s->scratch);
    free(s);
}

void scheduler_ask(struct scheduler *s, struct ask *a)
{
    struct command *c = calloc(1, sizeof *c);

    ASSERT(c);
    c->kind = COMMAND_ASK;
    c->ask = a;
    c->owned = true;
    inbox_post(s, a->id, c);
}

/* Nothing is claimed while memory is full, which may last. Overdue tasks do not wait for that: they
 * are read by id, as for an operator's ask. */
static bool reads_what_is_overdue(const struct scheduler *s)
{
    return s->stats.live >= s->config.live_max && s->stats.live < 2 * s->config.live_max + SPARE_MAX
           && !s->draining && shared_may_claim(s);
}

void scheduler_requested(struct scheduler *s, struct slice id, bool released)
{
    struct live *l = live_find(s, id);

    if (l && l->in_flight)
        l->reload = true;
    else if (l && l->loaded)
        live_reload(s, l);
    else if (!l && (released ? reads_what_is_overdue(s) : !s->config.shared))
        live_read(s, id); /* ours, but elsewhere: then it is overdue */
    if (released)
        s->time_next_at = scheduler_now(s);
}

bool scheduler_has(const struct scheduler *s, struct slice id)
{
    const struct live *l = map_get(&s->lives, id);

    return l && l->loaded && live_is_ours(s, l);
}

static void wake_naps(struct scheduler *s, int64_t now)
{
    for (struct heap_node *n = NULL; (n = heap_min(&s->naps)) && n->key <= now;) {
        struct live *l = CONTAINER_OF(n, struct live, nap);
        int64_t stale = shared_stale_at(s, l);
        if (stale != 0 && stale <= now)
            live_reload(s, l);
        else
            start_refresh(s, l);
    }
}

static void process_inboxes(struct scheduler *s)
{
    LIST_FOREACH (link, after, &s->inboxes) {
        inbox_process(s, CONTAINER_OF(link, struct live, inbox_link));
    }
}

/* The latest arrivals are near the end, as far as a heap is ordered. */
static void sweep_lane(struct scheduler *s, const struct lane *lane, int64_t now)
{
    size_t most = lane_is_served(lane, now) ? lane_excess(lane, now) : lane->queue.len;

    for (size_t k = lane->queue.len; k > 0 && most > 0; k--) {
        struct live *l = CONTAINER_OF(lane->queue.nodes[k - 1], struct live_step, want)->live;
        if (!start_should_release(s, l))
            continue;
        live_dirty(s, l);
        most--;
    }
}

/* Tasks that wait in vain go back to the store, where another node can claim them. */
static void sweep(struct scheduler *s, int64_t now)
{
    if (now < s->sweep_at)
        return;
    s->sweep_at = now + SWEEP_MS;
    LIST_FOREACH (link, after, &s->dispatch.busy) {
        struct agent *a = CONTAINER_OF(link, struct agent, busy);
        struct lane *lane = NULL;
        if (!a->limited && dispatch_may_start(a, now))
            continue;
        for (size_t i = 0; (lane = map_next(&a->lanes, &i));)
            sweep_lane(s, lane, now);
    }
    dispatch_sweep(&s->dispatch, now);
}

static int64_t next_turn(const struct scheduler *s)
{
    const struct heap_node *wait = heap_min(&s->waits);
    const struct heap_node *nap = heap_min(&s->naps);
    int64_t at = earlier(wait ? wait->key : 0, nap ? nap->key : 0);

    at = earlier(at, silence_next(s));
    at = earlier(at, earlier(dispatch_wakes_at(&s->dispatch), limits_next(s)));
    at = earlier(at, breakers_next(s));
    if (s->stats.waiting > 0)
        at = earlier(at, s->sweep_at);
    if (!list_empty(&s->answers) || !list_empty(&s->undecided) || s->starts_left)
        return scheduler_now(s);
    if (s->job)
        return at;                      /* its completion is a turn */
    if (s->retry_at > scheduler_now(s)) /* no store access before */
        return earlier(at, s->retry_at);
    at = earlier(at, shared_next(s));
    if (!s->draining && s->stats.live < s->config.live_max && shared_may_claim(s))
        at = earlier(at, earlier(s->time_next_at, s->among_next_at));
    bool more = !list_empty(&s->dirty) || !list_empty(&s->loads) || !list_empty(&s->inboxes)
                || !list_empty(&s->unsaved) || s->agents_stale || s->overruns_stale || s->looking
                || s->troubled;
    return more ? scheduler_now(s) : at;
}

int64_t scheduler_turn(struct scheduler *s)
{
    scheduler_hold_now(s);
    int64_t now = scheduler_now(s);

    breakers_tick(s, now);
    wake_naps(s, now);
    silence_look(s, now);
    start_decide_more(s);
    process_inboxes(s);
    sweep(s, now);
    limits_expire(s, now);
    limits_look(s);
    dispatch_wake(&s->dispatch, now);
    start_match(s);
    call_expire(s, now); /* after start_match: a call that does not wait takes what there is */
    (void)flush(s);
    inbox_answer(s);
    call_answer_ready(s);
    flush_tell(s);
    process_inboxes(s); /* attempts that were not sent are decided now, and committed next */
    scheduler_let_now_go(s);
    s->starts_left = effort_left_out(s, EFFORT_INPUTS);
    effort_turn_over(s);
    if (s->outside.turn_over)
        s->outside.turn_over(s->outside.arg);
    return next_turn(s);
}

void scheduler_drain(struct scheduler *s)
{
    struct live *l = NULL;
    struct agent *a = NULL;

    s->draining = true;
    for (size_t i = 0; (l = map_next(&s->lives, &i));)
        if (l->loaded && !l->in_flight && start_should_release(s, l))
            live_dirty(s, l);
    for (size_t i = 0; (a = map_next(&s->dispatch.agents, &i));)
        for (struct link *first = NULL; (first = list_first(&a->calls));)
            call_close(s, CONTAINER_OF(first, struct work, turn));
}

bool scheduler_is_busy(const struct scheduler *s)
{
    return s->job || s->leaving;
}

void scheduler_leave(struct scheduler *s)
{
    shared_leave(s);
}

bool scheduler_is_drained(const struct scheduler *s)
{
    return s->draining && !s->job && list_empty(&s->dirty) && list_empty(&s->inboxes)
           && list_empty(&s->loads) && list_empty(&s->puzzled) && list_empty(&s->undecided)
           && list_empty(&s->answerable) && list_empty(&s->answers) && list_empty(&s->untold)
           && !s->looking;
}

static size_t parked_calls(const struct scheduler *s)
{
    const struct agent *a = NULL;
    size_t parked = 0;

    for (size_t i = 0; (a = map_next(&s->dispatch.agents, &i));)
        parked += a->parked;
    return parked;
}

void scheduler_stats(const struct scheduler *s, struct scheduler_stats *ret)
{
    *ret = s->stats;
    ret->parked = parked_calls(s);
    ret->lease_until = s->lease_until;
    ret->leased = !s->config.shared || s->lease_until > scheduler_now(s);
}

const struct dispatch *scheduler_dispatch(const struct scheduler *s)
{
    return &s->dispatch;
}
