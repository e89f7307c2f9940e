/* The state of a task as a whole, derived from its steps: whether anything is open, all steps
 * have ended, a step stops the task, or a pivot rules out the undo (summary.h). Pure, and changes
 * nothing: settle.c draws the conclusions. */

#include "core/summary.h"

#include "core/undo.h"

bool anything_open(const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (step_is_open(&t->steps[i])) /* or an item of it is */
            return true;
    return false;
}

bool all_ended(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (!w->steps[i].on_undo && !step_has_ended(&w->steps[i], &t->steps[i]))
            return false;
    return true;
}

bool step_failure_stops(const struct workflow_step *ws, const struct step *s)
{
    return s->state == STEP_FAILED && !step_has_ended(ws, s);
}

bool step_stops_task(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    if (unit_is_slot(w, i)) /* going forward, its step counts; a child that stopped is not it */
        return s->slot == SLOT_BACK && s->state == STEP_FAILED && s->direction == DIRECTION_UNDO;
    return s->direction == step_next_direction(w, t, i) && step_failure_stops(&w->steps[i], s);
}

bool any_step_stops_task(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < task_unit_count(t); i++)
        if (step_stops_task(w, t, i))
            return true;
    return false;
}

static bool is_pivot(const struct workflow *w, uint16_t i)
{
    return w->steps[i].undo_kind == UNDO_PIVOT;
}

bool pivot_completed(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    return is_pivot(w, i)
           && (step_took_effect(s) || s->child.state == CHILD_STANDS
               || s->child.state == CHILD_PROCESSED || (s->items && s->items->tally.standing > 0));
}

bool any_pivot_completed(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (pivot_completed(w, t, i))
            return true;
    return false;
}

/* Whether this pivot, which prevents undo, will tell. */
static bool pivot_will_tell(const struct step *s)
{
    if (s->items)
        return s->items->tally.telling > 0;
    if (child_is_open(&s->child))
        return s->child.state != CHILD_STUCK;
    return step_is_open(s) || s->state == STEP_WAITING;
}

enum pivots pivots_check(const struct workflow *w, const struct task *t)
{
    enum pivots found = PIVOTS_CLEAR;

    if (any_pivot_completed(w, t))
        return PIVOTS_COMPLETED;
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];
        if (!is_pivot(w, i) || !(step_is_open(s) || pivot_prevents_undo(s)))
            continue;
        if (pivot_will_tell(s))
            found = found == PIVOTS_IN_DOUBT ? found : PIVOTS_UNRESOLVED;
        else
            found = PIVOTS_IN_DOUBT;
    }
    return found;
}

/* What it does, or does for each item, is a request to an agent. */
static bool calls(const struct workflow *w, uint16_t i)
{
    const struct workflow_step *ws = &w->steps[i];

    return ws->kind == KIND_CALL
           || (ws->kind == KIND_EACH && w->steps[ws->each.slots_at].kind == KIND_CALL);
}

bool any_pivot_call_unresolved(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];
        if (is_pivot(w, i) && calls(w, i)
            && (step_is_open(s) || (s->state == STEP_WAITING && pivot_prevents_undo(s))))
            return true;
    }
    return false;
}

/* In error nothing of a call goes on, but a child can be asked. */
bool pivots_rule_out_undo(const struct workflow *w, const struct task *t)
{
    enum pivots p = pivots_check(w, t);

    return p == PIVOTS_COMPLETED || p == PIVOTS_IN_DOUBT
           || (p == PIVOTS_UNRESOLVED && t->state == TASK_ERROR && any_pivot_call_unresolved(w, t));
}

static bool child_holds_up(const struct workflow *w, const struct task *t, uint16_t i,
                           enum stop stop)
{
    const struct step *s = &t->steps[i];

    if (!child_has_stopped(&s->child) || s->slot == SLOT_RESTING)
        return false;
    if (t->direction == DIRECTION_UNDO)
        return step_undo_is_stuck(s) && step_needs_undo(&w->steps[i], s);
    return stop == STOP_UNDO ? s->child.state == CHILD_STUCK && is_pivot(w, i)
                             : s->state == STEP_WAITING;
}

int stopped_child(const struct workflow *w, const struct task *t, enum stop stop)
{
    for (uint16_t i = 0; w->child_step_count > 0 && i < task_unit_count(t); i++)
        if (child_holds_up(w, t, i, stop))
            return i;
    return -1;
}

static bool is_same(const struct fault_note *a, const struct fault_note *b)
{
    return slice_eq(a->code, b->code) && slice_eq(a->message, b->message);
}

/* An agent may have given its error one of these codes. Then the step that failed tells. */
bool stopped_by_children(const struct workflow *w, const struct task *t, enum stop *ret)
{
    if (w->child_step_count == 0 || t->state != TASK_ERROR)
        return false;
    *ret = STOP_NONE;
    if (slice_is(t->error.code, CODE_CHILD))
        return !any_step_stops_task(w, t);
    *ret = STOP_UNDO;
    return t->direction == DIRECTION_FORWARD && slice_is(t->error.code, CODE_PIVOT)
           && !is_same(&t->error, &t->cause.error);
}
