/* What an event means for the whole task: it ends, stops, or turns to undo. Also the only writers
 * of states. Part of decide(): see decision.h. */
#include "core/decision.h"

#include "core/items.h"
#include "core/ready.h"
#include "core/summary.h"
#include "core/undo.h"

/* If a complete-by had passed when the task was paused and was not handled yet (time was lost, so
 * there was grace), this much remains after the pause. */
#define PAUSE_GRACE_MS INT64_C(10000)

void task_move(struct task *t, enum task_state next)
{
    ASSERT(task_state_can(t->state, next));
    t->state = next;
}

void step_move(struct step *s, enum step_state next)
{
    ASSERT(step_state_can(s->state, next));
    s->state = next;
}

void note(struct fault_note *n, const char *code, const char *message)
{
    *n = (struct fault_note){slice_of(code), slice_of(message)};
}

/* ---- clocks ---- */

int64_t task_clock(const struct decision *d)
{
    return d->t->paused_at ? d->t->paused_at : d->now;
}

/* A wait for a moment ends at that moment, whatever happens meanwhile. */
static bool is_fixed(const struct workflow_step *ws)
{
    return ws->kind == KIND_WAIT && ws->wait_ms == 0;
}

/* The times since `from` do not count. `retries`: the waits before retries move as well. What had
 * passed by then has passed. */
static void waits_move(struct decision *d, int64_t from, int64_t length, bool retries)
{
    for (uint16_t i = 0; i < task_unit_count(d->t); i++) {
        const struct workflow_step *ws = &d->w->steps[i];
        struct step *s = &d->t->steps[i];
        if (s->wait_until > from && !is_fixed(ws) && (retries || step_has_begun(s)))
            s->wait_until += length;
        if (s->repeat_until > from)
            s->repeat_until += length;
        if (s->complete_by > from && s->state == STEP_WAITING)
            s->complete_by += length;
    }
}

void error_over(struct decision *d)
{
    waits_move(d, d->t->ended_at, max_i64(d->now - d->t->ended_at, 0), false);
}

void pause_over(struct decision *d)
{
    struct task *t = d->t;
    int64_t *by = t->direction == DIRECTION_UNDO ? &t->undo_complete_by : &t->complete_by;
    int64_t from = t->paused_at;
    int64_t length = max_i64(d->now - from, 0);

    if (from == 0)
        return;
    t->paused_at = 0;
    if (*by != 0 && !t->deadline_passed)
        *by = *by > from ? *by + length : d->now + PAUSE_GRACE_MS;
    if (t->not_before > from)
        t->not_before += length;
    waits_move(d, from, length, true);
}

/* ---- ends, and the turn to undo ---- */

/* A task that an operator continued may stop in error again because of an earlier failure. Its
 * error names that failure. */
static void find_error(const struct decision *d)
{
    struct task *t = d->t;

    for (uint16_t i = 0; i < task_unit_count(t); i++) {
        const struct step *s = &t->steps[i];
        if (!step_stops_task(d->w, t, i))
            continue;
        if (!t->error.code.ptr)
            t->error = s->error;
        if (!t->cause.error.code.ptr)
            t->cause = (struct cause){s->error, unit_step(d->w, i)};
    }
}

static void end_in(struct decision *d, enum task_state end)
{
    struct task *t = d->t;

    pause_over(d);
    task_move(t, end);
    if (end == TASK_ERROR)
        find_error(d);
    if (end == TASK_ERROR && d->w->child_step_count > 0)
        children_find_error(d);
    if (end == TASK_COMPENSATED && !t->error.code.ptr)
        t->error = t->cause.error; /* the operator's retry of the undo had cleared the error */
    if (end == TASK_PROCESSED)
        t->error = (struct fault_note){0};
    t->ended_at = d->now;
    t->locked_by = SLICE_NONE;
    if (task_state_is_end(end)) /* a task in error keeps its lock */
        t->lock_since = 0;
    t->stop = STOP_NONE;
    d->fx->ended |= task_state_is_end(end);
    d->fx->alert |= end == TASK_ERROR;
}

/* The remaining work of a task that is undone. */
struct rest {
    bool any;      /* there is some */
    bool possible; /* and some of it may start, now or later */
};

static bool may_be_undone(const struct workflow_step *ws, const struct step *s)
{
    return ws->kind == KIND_EACH ? items_may_be_undone(ws, s) : !step_undo_is_stuck(s);
}

static struct rest compensations_left(const struct decision *d)
{
    const struct task *t = d->t;
    struct undo_order order;
    struct rest rest = {false, false};

    undo_order_make(d->w, t, &order);
    for (uint16_t i = 0; i < t->step_count; i++)
        if (step_needs_undo(&d->w->steps[i], &t->steps[i])) {
            /* a child turns back whenever it is told */
            bool turn = !order.blocked[i] || step_has_open_child(&t->steps[i]);
            rest.any = true;
            rest.possible |= turn && may_be_undone(&d->w->steps[i], &t->steps[i]);
        }
    return rest;
}

static struct rest on_undo_left(const struct decision *d)
{
    const struct task *t = d->t;
    struct rest rest = {false, false};

    for (uint16_t i = 0; i < t->step_count; i++)
        if (d->w->steps[i].on_undo && !step_has_ended(&d->w->steps[i], &t->steps[i])) {
            rest.any = true;
            rest.possible |= on_undo_may_start(d->w, t, i);
        }
    return rest;
}

static void settle_undo(struct decision *d)
{
    if (d->w->child_step_count > 0)
        children_turn(d);
    if (d->w->slot_count > 0)
        items_settle(d);
    if (anything_open(d->t))
        return;
    struct rest rest = compensations_left(d);
    if (!rest.any)
        rest = on_undo_left(d);
    if (!rest.any)
        end_in(d, TASK_COMPENSATED);
    else if (!rest.possible || d->t->stop == STOP_HOLD)
        end_in(d, TASK_ERROR);
}

void turn_back(struct decision *d)
{
    struct task *t = d->t;

    ASSERT(t->direction == DIRECTION_FORWARD);
    t->direction = DIRECTION_UNDO;
    d->others = true;
    t->stop = STOP_NONE;
    t->deadline_passed = false;
    t->undo_complete_by = d->w->undo_complete_by_ms ? task_clock(d) + d->w->undo_complete_by_ms : 0;
    task_move(t, TASK_COMPENSATING);
    d->fx->stop_running |= anything_open(t);
    settle_undo(d);
}

static void settle_hold(struct decision *d)
{
    if (!anything_open(d->t))
        end_in(d, TASK_ERROR);
}

static void settle_forward(struct decision *d)
{
    struct task *t = d->t;

    if (d->w->slot_count > 0)
        items_settle(d);
    switch (t->stop) {
    case STOP_NONE:
        if (d->ev->step >= 0 && step_is_open(&t->steps[d->ev->step]))
            return; /* the step runs, so no other step needs to be checked */
        if (anything_open(t))
            return;
        if (all_ended(d->w, d->t) && signals_undo_at_end(d))
            settle_forward(d);
        else if (all_ended(d->w, d->t))
            end_in(d, TASK_PROCESSED);
        else if (!task_may_go_forward(d->w, t))
            end_in(d, TASK_ERROR); /* one step was retried, another is still failed */
        return;
    case STOP_HOLD:
        settle_hold(d);
        return;
    case STOP_UNDO:
        break;
    }
    switch (pivots_check(d->w, d->t)) {
    case PIVOTS_UNRESOLVED:
        if (d->w->child_step_count > 0)
            pivot_children_stop(d);
        return;
    case PIVOTS_CLEAR:
        turn_back(d);
        return;
    case PIVOTS_IN_DOUBT: /* a late result may resolve it while something still runs */
        settle_hold(d);
        return;
    case PIVOTS_COMPLETED: /* undo is refused: the task goes forward, or stops in error */
        t->stop = any_step_stops_task(d->w, d->t) ? STOP_HOLD : STOP_NONE;
        if (t->stop == STOP_NONE)
            t->cause = (struct cause){0};
        settle_forward(d);
        /* It continues although undo was wanted: an operator should know. */
        d->fx->alert |=
            (t->state == TASK_PROCESSING || t->state == TASK_PENDING) && t->stop == STOP_NONE;
        return;
    }
    UNREACHABLE();
}

void settle(struct decision *d)
{
    if (task_state_is_end(d->t->state) || d->t->state == TASK_ERROR)
        return;
    if (d->t->direction == DIRECTION_FORWARD)
        settle_forward(d);
    else
        settle_undo(d);
}

void begin_undo(struct step *s)
{
    if (s->direction == DIRECTION_UNDO)
        return;
    s->direction = DIRECTION_UNDO;
    s->attempt = 0;
    s->failure_count = 0;
    s->spared_count = 0;
    s->spared_at = 0;
    s->wait_until = 0;
    s->resume = SLICE_NONE;
}
