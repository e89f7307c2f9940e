/* The operator's verbs as events: what retry, skip, undo, correct, supply, resolve, pause and
 * close do to a task. Each is refused where it makes no sense, or where one idempotency key would
 * denote two requests. Pure; decide.c calls it. operator.c predicts the refusals for user
 * interfaces. */

#include "core/decision.h"

#include "core/items.h"
#include "core/summary.h"
#include "core/undo.h"

/* A step of on_undo does not affect how a task goes forward. */
static bool affects_direction(const struct decision *d)
{
    return !d->w->steps[d->ev->step].on_undo || d->t->direction == DIRECTION_UNDO;
}

void continue_stopped(struct decision *d)
{
    struct task *t = d->t;
    int64_t at = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;

    if (t->state != TASK_ERROR)
        return;
    if (at != 0 && at <= d->now) /* the passed deadline must not undo now */
        t->deadline_passed = true;
    error_over(d);
    t->ended_at = 0;
    t->stop = STOP_NONE;
    t->error = (struct fault_note){0};
    if (t->direction == DIRECTION_FORWARD)
        t->cause = (struct cause){0};
    task_move(t, t->direction == DIRECTION_UNDO ? TASK_COMPENSATING : TASK_PROCESSING);
}

void continue_to_undo(struct decision *d)
{
    struct task *t = d->t;
    const struct cause cause = t->cause;

    ASSERT(t->direction == DIRECTION_FORWARD);
    continue_stopped(d);
    t->cause = cause;
    t->error = cause.error;
    t->stop = STOP_UNDO;
}

void renew_rounds(struct step *s)
{
    if (s->attempt_count == 0 || s->attempts[s->attempt_count - 1].outcome != OUTCOME_COMPLETED)
        return;
    s->round += s->round_at != 0;
    s->round_at = s->repeat_until = 0;
}

void begin_anew(struct step *s)
{
    s->begun_at = s->complete_by = 0;
    s->child.state = CHILD_NONE;
    s->child.wish = WISH_NONE;
}

/* The same for an item. That its step goes on is found afterwards. */
static bool retry_item(struct decision *d, uint16_t i)
{
    struct step *s = &d->t->steps[i];
    bool back = d->t->direction == DIRECTION_UNDO;

    if (s->slot == SLOT_RESTING && (d->ev->step != i || !item_may_be_repaired(d->w, d->t, i)))
        return false; /* what is not stored yet is as what is */
    if (s->slot != (back ? SLOT_BACK : SLOT_TAKEN) && (back || s->slot != SLOT_RESTING))
        return false;
    if (step_is_open(s))
        return false;
    if (s->state == STEP_FAILED && d->t->state == TASK_ERROR && s->direction == d->t->direction)
        return item_retry(d, i);
    if (s->wait_until <= task_clock(d))
        return false;
    s->wait_until = 0;
    return true;
}

/* Gives new attempts to a step that failed for good or waits for its retry. */
static bool retry_step(struct decision *d, uint16_t i)
{
    struct step *s = &d->t->steps[i];

    if (unit_is_slot(d->w, i))
        return retry_item(d, i);
    if (d->t->state == TASK_ERROR && step_stops_task(d->w, d->t, i)) {
        if (s->items && s->begun_at != 0)
            return items_retry(d, i);
        if (step_is_repeated(&d->w->steps[i]))
            renew_rounds(s);
        if (s->direction == DIRECTION_FORWARD)
            begin_anew(s);
        step_move(s, s->direction == DIRECTION_UNDO ? STEP_UNDOING : STEP_WAITING);
        s->failure_count = 0;
        s->spared_count = 0;
        s->wait_until = 0;
        if (d->w->steps[i].kind == KIND_APPROVE)
            votes_void(d->t, i);
        return true;
    }
    if (step_is_open(s) || s->direction != step_next_direction(d->w, d->t, i)
        || (s->begun_at != 0 && s->direction == DIRECTION_FORWARD)
        || s->wait_until <= task_clock(d))
        return false;
    s->wait_until = 0;
    return true;
}

static enum answer on_retry(struct decision *d)
{
    enum stop stop = STOP_NONE;
    bool any = d->t->state == TASK_ERROR && d->ev->step < 0; /* only a deadline stopped it */

    if (task_state_is_end(d->t->state))
        return ANSWER_REFUSED;
    if (stopped_by_children(d->w, d->t, &stop) && stopped_child(d->w, d->t, stop) >= 0)
        any = false; /* it goes on when they do */
    for (uint16_t i = 0; i < task_unit_count(d->t); i++)
        if (d->ev->step < 0 || d->ev->step == i)
            any |= retry_step(d, i);
    if (!any)
        return ANSWER_REFUSED;
    if (d->ev->step >= 0 && unit_is_slot(d->w, d->ev->step))
        item_repaired(d);
    if (d->t->state == TASK_ERROR && d->t->direction == DIRECTION_UNDO)
        d->t->undo_complete_by = 0; /* an operator's undo has no deadline */
    continue_stopped(d);
    return ANSWER_ACCEPTED;
}

/* The direction of the event's step. */
static enum direction goes(const struct decision *d)
{
    return step_next_direction(d->w, d->t, (uint16_t)d->ev->step);
}

/* Whether it may have an effect that would have to be undone. Then its key stays. */
static bool may_matter(const struct workflow_step *ws, const struct step *s)
{
    return step_in_doubt(s) || (ws->undo_kind != UNDO_NONE && step_has_effect(s));
}

/* What its items did would be forgotten: they have to be skipped or supplied one by one. A pivot
 * has nothing to undo, and its doubts stay on record. */
static bool is_held_by_items(const struct decision *d, const struct step *s)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];

    if (goes(d) == DIRECTION_FORWARD && ws->undo_kind == UNDO_PIVOT)
        return s->items->tally.doubts > 0;
    return goes(d) == DIRECTION_UNDO || may_matter(ws, s);
}

static bool may_skip(const struct decision *d, const struct step *s)
{
    if (task_state_is_end(d->t->state) || step_is_open(s) || step_child_runs(s))
        return false;
    if (s->items && is_held_by_items(d, s))
        return false;
    if (goes(d) == DIRECTION_UNDO)
        return step_needs_undo(&d->w->steps[d->ev->step], s);
    if (!item_may_be_repaired(d->w, d->t, (uint16_t)d->ev->step))
        return false;
    return (s->state == STEP_WAITING || s->state == STEP_FAILED)
           && (d->t->stop != STOP_UNDO || d->w->steps[d->ev->step].on_undo);
}

/* The step goes on without its child, which stopped in error, or its items. */
static void leave_rest(struct decision *d, struct step *s)
{
    if (child_is_open(&s->child))
        s->child.wish = WISH_CLOSE;
    if (s->items)
        items_leave(d, (uint16_t)d->ev->step);
}

static enum answer on_skip(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (!may_skip(d, s))
        return ANSWER_REFUSED;
    leave_rest(d, s);
    s->wait_until = 0;
    if (goes(d) == DIRECTION_UNDO) {
        begin_undo(s);
        step_move(s, STEP_UNDONE);
    } else {
        step_move(s, STEP_SKIPPED);
        s->output = d->ev->output;
    }
    if (unit_is_slot(d->w, d->ev->step))
        item_repaired(d);
    if (affects_direction(d) && !any_step_stops_task(d->w, d->t))
        continue_stopped(d);
    return ANSWER_ACCEPTED;
}

/* An undone task has no output any more. */
void undo_processed(struct decision *d, struct fault_note why)
{
    struct task *t = d->t;

    t->error = why;
    t->cause = (struct cause){t->error, -1};
    t->output = (struct value){0};
    t->ended_at = 0;
    t->lock_since = t->lock.ptr ? d->now : 0; /* the store refuses the change if it is taken */
    d->fx->ended = false;                     /* it may have ended since the last commit */
    turn_back(d);
}

static enum answer on_undo_processed(struct decision *d)
{
    struct task *t = d->t;
    int64_t until = task_undo_until(d->w, t);
    struct fault_note why = d->ev->error;

    if (!why.message.ptr || t->parent.ptr || pivots_check(d->w, t) != PIVOTS_CLEAR
        || (until != 0 && d->now >= until))
        return ANSWER_REFUSED;
    if (!why.code.ptr)
        why.code = SLICE("undo");
    undo_processed(d, why);
    return ANSWER_ACCEPTED;
}

void want_undo(struct decision *d, struct fault_note why)
{
    struct task *t = d->t;

    if (!t->error.code.ptr)
        t->error = why;
    if (!t->cause.error.code.ptr)
        t->cause = (struct cause){t->error, -1};
    t->stop = STOP_UNDO;
    pause_over(d);
    if (t->state != TASK_ERROR)
        return;
    if (pivots_check(d->w, t) == PIVOTS_CLEAR) {
        t->ended_at = 0;
        turn_back(d);
    } else {
        continue_to_undo(d);
    }
}

static enum answer on_undo(struct decision *d)
{
    struct task *t = d->t;
    struct fault_note why = d->ev->error;

    if (t->state == TASK_PROCESSED)
        return on_undo_processed(d);
    if (task_state_is_end(t->state) || (t->parent.ptr && t->paused_at != 0))
        return ANSWER_REFUSED; /* a paused child goes on with its root only */
    if (t->direction == DIRECTION_UNDO || t->stop == STOP_UNDO) {
        bool paused = t->paused_at != 0;
        pause_over(d); /* a request for undo also ends the pause */
        return paused ? ANSWER_ACCEPTED : ANSWER_REPEATED;
    }
    if (pivots_rule_out_undo(d->w, d->t))
        return ANSWER_REFUSED;
    if (!why.code.ptr)
        note(&why, "undo", "requested by an operator");
    want_undo(d, why);
    return ANSWER_ACCEPTED;
}

/* ---- another request ---- */

/* The step's next request differs: it gets another key if the present one was used. */
static void renew_key(struct step *s)
{
    s->generation += step_was_tried(s);
    s->resume = SLICE_NONE; /* it belonged to the previous request */
}

static bool may_correct(const struct decision *d, uint16_t i)
{
    const struct workflow_step *ws = &d->w->steps[i];
    const struct step *s = &d->t->steps[i];

    if ((ws->kind != KIND_CALL && ws->kind != KIND_TASK) || step_is_open(s)
        || child_is_open(&s->child) || may_matter(ws, s) || !item_may_be_repaired(d->w, d->t, i))
        return false;
    return s->state == STEP_WAITING || step_failure_stops(ws, s);
}

/* The input of a compensation is derived from what was done and cannot be corrected. */
static bool is_too_late_to_correct(const struct decision *d)
{
    bool on_undo = d->ev->step >= 0 && d->w->steps[d->ev->step].on_undo;

    return !on_undo && (d->t->direction == DIRECTION_UNDO || d->t->stop == STOP_UNDO);
}

static enum answer on_correct(struct decision *d)
{
    struct task *t = d->t;
    bool all = d->ev->step < 0;
    struct value *input = all ? &t->input : &t->steps[d->ev->step].input;

    if (task_state_is_end(t->state) || is_too_late_to_correct(d))
        return ANSWER_REFUSED;
    if (!all && !may_correct(d, (uint16_t)d->ev->step))
        return ANSWER_REFUSED;
    if (slice_eq(input->json, d->ev->input.json))
        return ANSWER_REPEATED;
    if (!all) {
        renew_key(&t->steps[d->ev->step]);
        t->steps[d->ev->step].corrected = step_is_repeated(&d->w->steps[d->ev->step]);
    }
    *input = d->ev->input;
    if (all)
        approvals_ask_anew(d);
    return ANSWER_ACCEPTED;
}

static enum answer on_supply(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (goes(d) == DIRECTION_UNDO || !may_skip(d, s))
        return ANSWER_REFUSED;
    leave_rest(d, s);
    step_move(s, STEP_COMPLETED);
    s->supplied = true;
    s->output = d->ev->output;
    if (!s->output.json.ptr)
        s->output.json = SLICE("null");
    s->error = (struct fault_note){0};
    s->resume = SLICE_NONE;
    s->wait_until = 0;
    if (unit_is_slot(d->w, d->ev->step))
        item_repaired(d);
    if (affects_direction(d) && !any_step_stops_task(d->w, d->t))
        continue_stopped(d);
    return ANSWER_ACCEPTED;
}

/* False if an attempt began after the operator looked. */
static bool looked_at_all(const struct event *ev, const struct step *s)
{
    const struct attempt *last = s->attempt_count ? &s->attempts[s->attempt_count - 1] : NULL;

    if (ev->attempt != 0 && ev->attempt != s->attempt)
        return false;
    return ev->until == 0 || !last || last->started_at <= ev->until;
}

/* An effect that may still come must not be resolved away. A compensation that began is completed,
 * which is right whether there was an effect or not. */
static enum answer on_resolve(struct decision *d)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];
    struct step *s = &d->t->steps[d->ev->step];
    bool effect = ws->undo_kind != UNDO_NONE && step_has_effect(s);

    if (task_state_is_end(d->t->state) || step_is_open(s) || s->direction == DIRECTION_UNDO
        || s->items || !looked_at_all(d->ev, s))
        return ANSWER_REFUSED;
    if (step_is_resolved(s))
        return ANSWER_REPEATED;
    if (!step_in_doubt(s))
        return ANSWER_REFUSED;
    if (effect || d->now < step_doubt_until(s) + CLOCK_MARGIN_MS)
        return ANSWER_REFUSED;
    s->resolved = s->attempt;
    return ANSWER_ACCEPTED;
}

/* Marks the step and all its direct and indirect successors. */
static void mark_from(const struct workflow *w, uint16_t step, bool *ret)
{
    for (uint16_t k = 0; k < w->step_count; k++) {
        uint16_t i = w->order[k];
        const struct workflow_step *ws = &w->steps[i];
        ret[i] = i == step;
        for (uint16_t n = 0; n < ws->before_count; n++)
            ret[i] = ret[i] || ret[ws->before[n]];
    }
}

/* Whether the step has not begun in any way and waits for nothing. */
static bool is_new(const struct step *s)
{
    return s->state == STEP_WAITING && s->failure_count == 0 && s->spared_count == 0
           && s->begun_at == 0 && s->wait_until == 0 && !s->input.json.ptr && !s->resume.ptr
           && !step_was_tried(s);
}

/* A step that had begun without an attempt (a wait, one with a child, or one that was skipped or
 * supplied) also gets another key, which shows that it had begun. */
static void start_anew(struct step *s)
{
    s->generation += (s->state != STEP_WAITING || s->begun_at != 0) && !step_was_tried(s);
    renew_key(s);
    if (s->state != STEP_WAITING)
        step_move(s, STEP_WAITING);
    s->failure_count = 0;
    s->spared_count = 0;
    s->spared_at = 0;
    begin_anew(s);
    s->wait_until = 0;
    s->round = 0;
    s->round_at = s->repeat_until = 0;
    s->corrected = false;
    s->input = s->output = (struct value){0};
    s->error = (struct fault_note){0};
    s->supplied = false;
}

static enum answer on_retry_from(struct decision *d)
{
    struct task *t = d->t;
    bool marked[STEPS_MAX] = {false};
    bool any = false;

    if (task_state_is_end(t->state) || t->direction == DIRECTION_UNDO || t->stop != STOP_NONE)
        return ANSWER_REFUSED;
    mark_from(d->w, (uint16_t)d->ev->step, marked);
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];
        if (marked[i]
            && (step_is_open(s) || step_has_open_child(s) || items_left_children(s)
                || may_matter(&d->w->steps[i], s)))
            return ANSWER_REFUSED;
        any |= marked[i] && !is_new(s);
    }
    if (!any)
        return ANSWER_REFUSED;
    for (uint16_t i = 0; i < t->step_count; i++)
        if (marked[i] && !is_new(&t->steps[i])) {
            signal_put_back(t, i);
            if (t->steps[i].items)
                items_forget(d, i);
            start_anew(&t->steps[i]);
            if (d->w->steps[i].kind == KIND_APPROVE)
                votes_void(t, i);
        }
    if (affects_direction(d))
        continue_stopped(d);
    return ANSWER_ACCEPTED;
}

/* ---- the whole task ---- */

static bool is_active(const struct task *t)
{
    return !task_state_is_end(t->state) && t->state != TASK_ERROR;
}

static enum answer on_pause(struct decision *d)
{
    if (!is_active(d->t))
        return ANSWER_REFUSED;
    if (d->t->paused_at != 0)
        return ANSWER_REPEATED;
    d->t->paused_at = d->now;
    return ANSWER_ACCEPTED;
}

static enum answer on_resume(struct decision *d)
{
    if (!is_active(d->t))
        return ANSWER_REFUSED;
    if (d->t->paused_at == 0)
        return ANSWER_REPEATED;
    pause_over(d);
    return ANSWER_ACCEPTED;
}

void task_close(struct decision *d, struct slice reason)
{
    d->t->closed_at = d->now;
    d->t->closed_reason = reason;
    d->t->lock_since = 0;
    if (d->w->child_step_count > 0)
        children_close(d);
}

void task_reopen(struct decision *d)
{
    struct task *t = d->t;

    t->closed_at = 0;
    t->closed_reason = SLICE_NONE;
    t->lock_since = t->lock.ptr ? d->now : 0; /* the store refuses the change if it is taken */
    if (d->w->child_step_count > 0)
        children_reopen(d);
}

static bool any_child_runs(const struct task *t)
{
    for (uint16_t i = 0; i < task_unit_count(t); i++)
        if (child_runs(&t->steps[i].child))
            return true;
    return false;
}

static enum answer on_close(struct decision *d)
{
    if (d->t->state != TASK_ERROR || any_child_runs(d->t))
        return ANSWER_REFUSED;
    if (d->t->closed_at != 0)
        return ANSWER_REPEATED;
    task_close(d, d->ev->error.message);
    return ANSWER_ACCEPTED;
}

static enum answer on_reopen(struct decision *d)
{
    if (d->t->state != TASK_ERROR)
        return ANSWER_REFUSED;
    if (d->t->closed_at == 0)
        return ANSWER_REPEATED;
    task_reopen(d);
    return ANSWER_ACCEPTED;
}

/* These belong to the root of a family. */
static bool is_for_root(enum event_kind k)
{
    return k == EVENT_PAUSE || k == EVENT_RESUME || k == EVENT_CLOSE || k == EVENT_REOPEN;
}

enum answer verb_apply(struct decision *d)
{
    static enum answer (*const acts[EVENT_KINDS])(struct decision * d) = {
        [EVENT_RETRY] = on_retry,   [EVENT_SKIP] = on_skip,
        [EVENT_UNDO] = on_undo,     [EVENT_PAUSE] = on_pause,
        [EVENT_RESUME] = on_resume, [EVENT_CORRECT] = on_correct,
        [EVENT_SUPPLY] = on_supply, [EVENT_RESOLVE] = on_resolve,
        [EVENT_CLOSE] = on_close,   [EVENT_RETRY_FROM] = on_retry_from,
        [EVENT_REOPEN] = on_reopen,
    };
    bool closed = d->t->closed_at != 0;

    ASSERT(acts[d->ev->kind]);
    if ((closed && d->ev->kind != EVENT_CLOSE && d->ev->kind != EVENT_REOPEN)
        || (d->t->parent.ptr && is_for_root(d->ev->kind)))
        return ANSWER_REFUSED;
    return acts[d->ev->kind](d);
}
