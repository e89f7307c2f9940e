/* Checks that no place stays idle: if a step is ready and an instance of its agent has had a free
 * place at a node for a while, it starts, whatever other steps of its task wait for. Checked in
 * quiet times only, when nothing else may hold it back: no limit, breaker, health or pause, no
 * full memory, no wrong clock. check_world.c calls it; check.h lists all checkers. */

#include "sim/agents.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/outage.h"
#include "sim/world.h"

/* An interval of the supervisor, one of the survey, and the time for a claim and its commit. */
enum { IDLE_MS = 4000 };

/* Has that time passed on every clock? */
static bool passed(int64_t at)
{
    return at + IDLE_MS <= store_now();
}

static bool is_ready_forward(const struct subject *t, uint32_t i)
{
    const struct seen_step *s = &t->seen.steps[i];
    uint32_t past = t->flow->steps[i].past;

    if (s->state != STEP_WAITING || t->seen.stop != STOP_NONE || !passed(t->seen.not_before))
        return false;
    for (uint32_t p = 0; p < t->seen.step_count; p++)
        if (past & BIT(p) && !seen_passed(&t->flow->steps[p], &t->seen.steps[p]))
            return false;
    return true;
}

/* Something of the step runs, or is to be undone: its predecessors wait for that. */
static bool holds_back(const struct subject *t, uint32_t q)
{
    const struct seen_step *s = &t->seen.steps[q];

    return seen_runs(s) || seen_needs_undo(&t->flow->steps[q], s);
}

static bool is_ready_backward(const struct subject *t, uint32_t i)
{
    const struct flow_step *f = &t->flow->steps[i];
    const struct seen_step *s = &t->seen.steps[i];

    if (f->undo != UNDO_CALL || !seen_needs_undo(f, s) || seen_child_is_open(s)
        || t->seen.stop != STOP_NONE || (s->direction == DIRECTION_UNDO && s->state == STEP_FAILED))
        return false;
    for (uint32_t q = 0; q < t->seen.step_count; q++)
        if (f->future & BIT(q) && holds_back(t, q))
            return false;
    return passed(seen_doubt_until(s) + MARGIN_MS);
}

static bool is_ready_on_undo(const struct subject *t, uint32_t i)
{
    if (t->seen.direction == DIRECTION_FORWARD || !is_ready_forward(t, i))
        return false;
    for (uint32_t q = 0; q < t->seen.step_count; q++)
        if (!t->flow->steps[q].on_undo && holds_back(t, q))
            return false;
    return true;
}

static bool is_ready(const struct subject *t, uint32_t i)
{
    const struct seen *s = &t->seen;
    bool back = s->direction == DIRECTION_UNDO;
    int64_t by = back ? s->undo_complete_by : s->complete_by;

    bool on_undo = t->flow->steps[i].on_undo;
    if (seen_open(&s->steps[i]) || (by != 0 && by <= store_now() + IDLE_MS)
        || ((on_undo || s->steps[i].direction == s->direction) && !passed(s->steps[i].wait_until)))
        return false;
    if (on_undo)
        return is_ready_on_undo(t, i);
    return back ? is_ready_backward(t, i) : is_ready_forward(t, i);
}

/* No recent event concerns it, and only a step holds it back. */
static bool is_at_rest(const struct subject *t)
{
    const struct seen *s = &t->seen;

    return s->revision != 0 && !seen_is_end(s) && s->paused_at == 0 && !s->requested
           && t->changed_at + IDLE_MS <= world.now;
}

/* Has its breaker been closed for a while? */
static bool is_let_through(const struct node *n, const struct agent *a)
{
    return a->breaker.state == BREAKER_CLOSED && a->breaker.since + IDLE_MS <= node_now(n);
}

/* May the node start the step for which its agent has a place? */
static bool may_start(struct node *n, const struct subject *t, struct slice agent)
{
    const struct agent *a = map_get(&scheduler_dispatch(n->scheduler)->agents, agent);

    return node_schedules(n) && node_knows(n, t->flow) && a && is_let_through(n, a)
           && agent_has_call(a, node_now(n)) && (!t->seen.locked || node_owns(n, t->seen.owner));
}

/* Since when a call of that agent that may get work was there at each look. A call of an unhealthy
 * instance may wait for long beside one that has just arrived. */
static struct callable {
    uint64_t boot;
    int64_t since; /* 0: there is none */
} callable[NODES_MAX][SERVICES_MAX];

void check_idle_begin(void)
{
    memset(callable, 0, sizeof callable);
}

static void look_for_calls(void)
{
    NODES_FOREACH (n)
        for (uint32_t service = 0; service < SERVICES_MAX; service++) {
            struct callable *c = &callable[n->slot][service];
            const struct agent *a =
                n->scheduler
                    ? map_get(&scheduler_dispatch(n->scheduler)->agents, text_of("a%u", service))
                    : NULL;
            if (!a || !agent_has_call(a, node_now(n)))
                *c = (struct callable){0};
            else if (c->since == 0 || c->boot != n->boot)
                *c = (struct callable){n->boot, world.now};
        }
}

/* A step that has begun to wait for a signal goes on only with one that is not late, and one that
 * asks people when they have decided. */
static bool awaits(const struct subject *t, uint32_t i)
{
    const struct flow_step *f = &t->flow->steps[i];
    int64_t by = t->seen.steps[i].complete_by;

    if (f->is_each)
        return true; /* see check_items.c */
    if (f->is_approval)
        return t->seen.steps[i].begun_at != 0 && !votes_decide_it(t, &t->seen, i);
    if (f->is_child) /* it does not know how that ends */
        return t->seen.steps[i].begun_at != 0 && t->seen.direction == DIRECTION_FORWARD;
    if (!f->is_signal || t->seen.steps[i].begun_at == 0)
        return false;
    for (uint32_t k = 0; k < t->seen.signal_count; k++) {
        const struct seen_signal *s = &t->seen.signals[k];
        if (s->state == SIGNAL_KEPT && signal_fits(f, s) && (by == 0 || s->at <= by))
            return false;
    }
    return true;
}

/* A wait that is to begin, or that is over, needs no agent, and neither does an answer. */
static void check_wait(const struct subject *t, uint32_t i)
{
    NODES_FOREACH (n)
        if (node_schedules(n) && node_knows(n, t->flow)
            && (!t->seen.locked || node_owns(n, t->seen.owner))) {
            describe(t);
            broken("a wait goes on when its time has come, and a round when it is answered",
                   "%s/s%u: begun at %" PRId64, t->id, i, t->seen.steps[i].begun_at);
        }
}

static void check_step(const struct subject *t, uint32_t i)
{
    const struct flow_step *f = &t->flow->steps[i];
    bool undo = t->seen.direction == DIRECTION_UNDO && !f->on_undo;
    uint32_t service = undo ? f->undo_service : f->service;

    NODES_FOREACH (n) {
        int64_t since = wire_idle_since(n, service);
        int64_t callable_since = callable[n->slot][service].since;
        if (since == 0 || callable_since == 0 || callable_since + IDLE_MS > world.now
            || since + IDLE_MS > world.now || !may_start(n, t, text_of("a%u", service)))
            continue;
        describe(t);
        broken("who has a place gets what is ready",
               "%s/s%u: an instance of a%u waits at %s since "
               "%" PRId64,
               t->id, i, service, n->me, since);
    }
}

void check_idle(void)
{
    look_for_calls();
    if (!nodes_are_well() || nodes_quiet_since() + IDLE_MS > world.now || nodes.skew_max > 0
        || world.set_back || nodes_are_narrow() || outage_limits())
        return;
    check_locks_idle();
    for (uint32_t i = 0; i < subjects.count; i++) {
        const struct subject *t = &subjects.list[i];
        if (t->flow->lock_keys > 0 && t->seen.lock_since == 0)
            continue; /* it waits for its lock */
        for (uint32_t k = 0; is_at_rest(t) && k < t->seen.step_count; k++)
            if (is_ready(t, k) && !awaits(t, k)) {
                covered(COVER_LOOKED_IDLE);
                bool back = t->seen.direction == DIRECTION_UNDO;
                if ((t->flow->steps[k].is_wait && !back) || seen_answered(&t->seen.steps[k]))
                    check_wait(t, k);
                else
                    check_step(t, k);
            }
    }
}
