/* Lanes of an agent: queues, limits, claim sizes, and the health of instances. Touches nothing but
 * struct agent and what is in it. Design: dispatch.h. */

#include <stdlib.h>

#include "dispatch/dispatch.h"

enum {
    AHEAD_MS = 2000, /* tasks that a rate lets start within this time are worth having in memory */
    KEPT_LOOSE = 1024,
    KEPT_LIMITED = 256,
};

/* ---- lanes ---- */

static int64_t line_of(struct slice action)
{
    uint64_t n = hash_stable(action.ptr, action.len) & ((UINT64_C(1) << LINE_BITS) - 1);

    return (int64_t)(n ? n : 1) << LINE_SHIFT;
}

struct lane *dispatch_lane(struct agent *a, struct slice action)
{
    struct lane *l = map_get(&a->lanes, action);

    if (l)
        return l;
    l = calloc(1, sizeof *l + action.len + 1);
    ASSERT(l);
    char *name = (char *)(l + 1);
    memcpy(name, action.ptr, action.len);
    l->action = (struct slice){name, action.len};
    l->agent = a;
    l->line = line_of(action);
    map_put(&a->lanes, l->action, l);
    return l;
}

/* Moves the lane to its position among the lanes with room. */
static void take_turn(struct lane *l)
{
    const struct heap_node *first = heap_min(&l->queue);
    struct heap *ready = &l->agent->ready;

    if (!first || l->held) {
        heap_remove(ready, &l->turn);
    } else if (l->turn.pos == 0 || l->turn.key != first->key) {
        heap_remove(ready, &l->turn);
        heap_push(ready, &l->turn, first->key);
    }
}

void lane_push(struct dispatch *d, struct lane *l, struct heap_node *want, int64_t rank)
{
    struct agent *a = l->agent;

    ASSERT(want->pos == 0);
    heap_push(&l->queue, want, rank);
    take_turn(l);
    a->loose += !l->limited;
    if (a->waiting++ == 0)
        list_push(&d->busy, &a->busy);
}

void lane_remove(struct lane *l, struct heap_node *want)
{
    struct agent *a = l->agent;

    ASSERT(a->waiting > 0);
    heap_remove(&l->queue, want);
    take_turn(l);
    a->loose -= !l->limited;
    if (--a->waiting == 0)
        link_remove(&a->busy);
}

void lane_open(struct lane *l)
{
    l->limiter.open++;
    l->agent->limiter.open++;
    ASSERT(l->agent->limiter.open >= l->limiter.open);
}

static void let_go_on(struct lane *l)
{
    l->held = false;
    take_turn(l);
}

void lane_close(struct lane *l)
{
    ASSERT(l->limiter.open > 0);
    ASSERT(l->agent->limiter.open > 0);
    l->limiter.open--;
    l->agent->limiter.open--;
    if (l->held)
        let_go_on(l);
}

/* ---- limits ---- */

static void wake_agent_at(struct dispatch *d, struct agent *a, int64_t at)
{
    if (at == 0 || (a->wake.pos != 0 && a->wake.key <= at))
        return;
    heap_remove(&d->wakes, &a->wake);
    heap_push(&d->wakes, &a->wake, at);
}

static bool agent_has_room(struct dispatch *d, struct agent *a, int64_t now)
{
    bool room = !limiter_is_on(&a->limiter) || limiter_has_room(&a->limiter, now);

    a->times_held += !room && !a->held;
    a->held = !room;
    if (!room)
        wake_agent_at(d, a, limiter_ready_at(&a->limiter, now));
    return room;
}

static void hold(struct dispatch *d, struct lane *l, int64_t now)
{
    int64_t at = limiter_ready_at(&l->limiter, now);

    l->held = true;
    l->agent->times_held++;
    take_turn(l);
    heap_remove(&d->lane_wakes, &l->wake);
    if (at != 0)
        heap_push(&d->lane_wakes, &l->wake, at);
}

struct lane *dispatch_next_lane(struct dispatch *d, struct agent *a, int64_t now)
{
    if (a->ready.len == 0 || !agent_has_room(d, a, now))
        return NULL;
    for (struct heap_node *n = NULL; (n = heap_min(&a->ready));) {
        struct lane *l = CONTAINER_OF(n, struct lane, turn);
        if (!l->limited || limiter_has_room(&l->limiter, now))
            return l;
        hold(d, l, now);
    }
    return NULL;
}

void lane_begin(struct lane *l, int64_t now)
{
    limiter_begin(&l->limiter, now);
    limiter_begin(&l->agent->limiter, now);
}

void dispatch_wake(struct dispatch *d, int64_t now)
{
    for (struct heap_node *n = NULL; (n = heap_min(&d->lane_wakes)) && n->key <= now;) {
        heap_remove(&d->lane_wakes, n);
        let_go_on(CONTAINER_OF(n, struct lane, wake));
    }
    for (struct heap_node *n = NULL; (n = heap_min(&d->wakes)) && n->key <= now;)
        heap_remove(&d->wakes, n); /* every turn checks all busy agents */
}

int64_t dispatch_wakes_at(const struct dispatch *d)
{
    const struct heap_node *lane = heap_min(&d->lane_wakes);
    const struct heap_node *agent = heap_min(&d->wakes);

    if (!lane || !agent)
        return lane ? lane->key : agent ? agent->key : 0;
    return min_i64(lane->key, agent->key);
}

static bool is_a_limit(const struct limit *l)
{
    return l->concurrency > 0 || l->rate_count > 0;
}

static int line_order(const void *x, const void *y)
{
    const struct lane *a = *(struct lane *const *)x;
    const struct lane *b = *(struct lane *const *)y;

    return (a->line > b->line) - (a->line < b->line);
}

static void line_up(struct agent *a)
{
    struct lane *l = NULL;

    a->lines = reallocarray(a->lines, a->lanes.len + 1, sizeof(struct lane *));
    ASSERT(a->lines);
    a->line_count = a->loose = a->claim_line = 0;
    for (size_t i = 0; (l = map_next(&a->lanes, &i));) {
        l->backlog = l->more = BACKLOG_UNKNOWN;
        if (l->limited)
            a->lines[a->line_count++] = l;
        else
            a->loose += l->queue.len;
    }
    qsort(a->lines, a->line_count, sizeof(struct lane *), line_order);
    a->backlog = BACKLOG_UNKNOWN;
    a->limited = a->line_count > 0 || is_a_limit(&a->limit);
}

/* Computes this node's shares. */
static void divide(struct dispatch *d, struct agent *a, int64_t now)
{
    struct lane *l = NULL;

    limiter_set(&a->limiter, &a->limit, d->share, d->since, now);
    for (size_t i = 0; (l = map_next(&a->lanes, &i));) {
        limiter_set(&l->limiter, &l->limit, d->share, d->since, now);
        let_go_on(l); /* it is checked anew */
    }
}

void dispatch_limit(struct dispatch *d, struct agent *a, int64_t now)
{
    const struct agent_settings *st = &a->settings;
    struct lane *l = NULL;

    a->limit = st->limit;
    for (size_t i = 0; (l = map_next(&a->lanes, &i));) {
        l->limit = (struct limit){0};
        l->limited = false;
    }
    for (size_t i = 0; i < st->action_count; i++) {
        if (!is_a_limit(&st->actions[i].limit))
            continue;
        l = dispatch_lane(a, st->actions[i].action);
        l->limit = st->actions[i].limit;
        l->limited = true;
    }
    line_up(a);
    divide(d, a, now);
}

void dispatch_share(struct dispatch *d, struct share share, int64_t now)
{
    struct agent *a = NULL;

    if (share.nodes == d->share.nodes && share.place == d->share.place)
        return;
    d->share = share;
    for (size_t i = 0; (a = map_next(&d->agents, &i));)
        if (a->limited)
            divide(d, a, now);
}

/* ---- how much is worth having in memory ---- */

bool lane_is_served(const struct lane *l, int64_t now)
{
    return dispatch_may_start(l->agent, now) && !limiter_is_shut(&l->agent->limiter)
           && !limiter_is_shut(&l->limiter);
}

static size_t fits(const struct lane *l, int64_t now)
{
    size_t most = limiter_fits(&l->agent->limiter, AHEAD_MS);
    size_t own = limiter_fits(&l->limiter, AHEAD_MS);
    size_t places = lane_is_served(l, now) ? dispatch_places(l->agent, now) : 0;

    most = own < most ? own : most;
    most = 2 * (places < most ? places : most);
    size_t trials = breaker_room(&l->agent->breaker, &l->agent->settings.breaker);
    return trials < most ? trials : most;
}

static size_t line_length(const struct lane *l)
{
    return l->limited ? l->queue.len : l->agent->loose;
}

size_t lane_room(const struct lane *l, int64_t now)
{
    size_t room = fits(l, now);
    size_t len = line_length(l);

    return room > len ? room - len : 0;
}

/* How many started tasks are kept if they arrive faster than they can continue: to release a task
 * and claim it again costs two writes. */
size_t lane_excess(const struct lane *l, int64_t now)
{
    size_t kept = 2 * fits(l, now) + (l->limited ? KEPT_LIMITED : KEPT_LOOSE);
    size_t len = line_length(l);

    return len > kept ? len - kept : 0;
}

bool lane_is_too_long(const struct lane *l, int64_t now)
{
    size_t least = l->limited ? KEPT_LIMITED : KEPT_LOOSE;

    return line_length(l) > least && lane_excess(l, now) > 0; /* the cheap check first */
}

int64_t lane_rank(const struct lane *l, int64_t rank)
{
    const int64_t most = (INT64_C(1) << LINE_SHIFT) - 1;

    return l->limited ? l->line + min_i64(max_i64(rank, 0), most) : rank;
}

static bool is_full(const struct limiter *l, int64_t now)
{
    struct limiter copy = *l;

    return limiter_is_on(l) && !limiter_has_room(&copy, now);
}

enum held_by lane_held_by(const struct lane *l, int64_t now)
{
    if (is_full(&l->limiter, now))
        return HELD_BY_ACTION;
    return is_full(&l->agent->limiter, now) ? HELD_BY_AGENT : HELD_BY_NO_LIMIT;
}

/* ---- health ---- */

/* Lower is better. A breaker has few trials, and one that fails opens it again: they go to an
 * instance whose last attempt failed only if all failed. Otherwise one bad instance would keep the
 * breaker open, and too few attempts would end to find the cause. */
static int standing(const struct instance *i)
{
    bool trial = i->agent->breaker.state != BREAKER_CLOSED;

    return 2 * (int)i->health.state + (trial && i->health.failed);
}

/* An instance with all places taken does not call. While it is waited for, the others get trials;
 * trials of a breaker only if it has been silent for long. */
static bool is_there(const struct instance *i, int64_t now)
{
    bool trial = i->agent->breaker.state != BREAKER_CLOSED;

    return instance_is_connected(i, now)
           || (i->open > 0
               && (!trial || now - max_i64(i->seen_at, i->heartbeat_at) < HEALTH_TRIAL_MAX_MS));
}

/* Among all present instances. */
static int best_standing(const struct agent *a, int64_t now)
{
    int best = 2 * HEALTH_STATE_COUNT;
    const struct instance *i = NULL;

    for (size_t k = 0; best > 0 && (i = map_next(&a->instances, &k));)
        if (standing(i) < best && is_there(i, now))
            best = standing(i);
    return best;
}

bool instance_is_last(const struct instance *i, int64_t now)
{
    return i->health.state != HEALTH_GOOD
           && best_standing(i->agent, now) / 2 >= (int)i->health.state;
}

void instance_moved(struct instance *i, int64_t now)
{
    struct agent *a = i->agent;

    health_moved(&i->health, now);
    if (a->mover != i)
        a->moved_before = a->moved_at;
    a->mover = i;
    a->moved_at = now;
}

int64_t others_moved_at(const struct instance *i)
{
    return i->agent->mover == i ? i->agent->moved_before : i->agent->moved_at;
}

uint32_t instance_places(const struct instance *i, int64_t now)
{
    return health_places(&i->health, i->places, instance_is_last(i, now));
}

/* `best`: best_standing, or -1 until it is needed, because it walks through all instances. */
static bool may_begin(const struct instance *i, int *best, int64_t now)
{
    bool trial = i->agent->breaker.state != BREAKER_CLOSED;

    if (i->health.state == HEALTH_GOOD && !trial)
        return true;
    if (*best < 0)
        *best = best_standing(i->agent, now);
    if (trial)
        return standing(i) <= *best;
    return health_may_begin(&i->health, i->places, i->open, *best / 2 >= (int)i->health.state, now);
}

struct work *dispatch_next_call(struct dispatch *d, struct agent *a, int64_t now)
{
    const struct link *first_passed = NULL;
    struct link *next = NULL;
    int best = -1;

    while ((next = list_first(&a->calls)) && next != first_passed) {
        struct work *w = CONTAINER_OF(next, struct work, turn);
        if (may_begin(w->instance, &best, now))
            return w;
        if (w->instance->health.state == HEALTH_ILL && w->instance->health.trial_at > now)
            wake_agent_at(d, a, w->instance->health.trial_at);
        first_passed = first_passed ? first_passed : next;
        link_remove(next);
        list_push(&a->calls, next);
    }
    return NULL;
}

bool agent_has_call(const struct agent *a, int64_t now)
{
    int best = -1;

    for (struct link *l = a->calls.next; l != &a->calls; l = l->next)
        if (may_begin(CONTAINER_OF(l, struct work, turn)->instance, &best, now))
            return true;
    return false;
}
