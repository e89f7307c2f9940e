/* The state of a task as a whole, derived from its steps: whether anything is open, all steps
 * have ended, a step stops the task, or a pivot rules out the undo (summary.h). Pure, and changes
 * nothing: settle.c draws the conclusions. */

#include "core/summary.h"

#include "core/undo.h"

bool anything_open(const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (step_is_open(&t->steps[i]))
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

    return s->direction == step_next_direction(w, t, i) && step_failure_stops(&w->steps[i], s);
}

bool any_step_stops_task(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (step_stops_task(w, t, i))
            return true;
    return false;
}

static bool is_pivot(const struct workflow *w, uint16_t i)
{
    return w->steps[i].undo_kind == UNDO_PIVOT;
}

bool any_pivot_completed(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (is_pivot(w, i) && t->steps[i].state == STEP_COMPLETED)
            return true;
    return false;
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
        if (step_is_open(s) || s->state == STEP_WAITING)
            found = found == PIVOTS_IN_DOUBT ? found : PIVOTS_UNRESOLVED;
        else
            found = PIVOTS_IN_DOUBT;
    }
    return found;
}
