#include "core/reason.h"

/*
 * What an operator may do, for those who tell him so. decide.c is what decides; history_test.c
 * compares the two in every state of every history.
 */

static bool pivot_completed(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (w->steps[i].undo_kind == UNDO_PIVOT && t->steps[i].state == STEP_COMPLETED)
            return true;
    return false;
}

static bool may_undo(const struct workflow *w, const struct task *t)
{
    if (task_state_is_end(t->state) || pivot_completed(w, t))
        return false;
    if (t->direction == DIRECTION_UNDO || t->stop == STOP_UNDO)
        return false; /* it is so already */
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];
        if (w->steps[i].undo_kind != UNDO_PIVOT || !(step_is_open(s) || pivot_stands(s)))
            continue;
        bool will_tell = step_is_open(s) || s->state == STEP_WAITING;
        if (!will_tell || t->state == TASK_ERROR)
            return false;
    }
    return true;
}

static bool may_retry(const struct workflow *w, const struct task *t, uint16_t i, int64_t now)
{
    const struct step *s = &t->steps[i];

    if (s->state == STEP_FAILED && t->state == TASK_ERROR && s->direction == t->direction
        && !step_has_ended(&w->steps[i], s))
        return true;
    return !step_is_open(s) && s->direction == t->direction && s->wait_until > now;
}

static bool may_skip(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    if (step_is_open(s))
        return false;
    if (t->direction == DIRECTION_UNDO)
        return step_needs_undo(&w->steps[i], s);
    return (s->state == STEP_WAITING || s->state == STEP_FAILED) && t->stop != STOP_UNDO;
}

static bool may_retry_any(const struct workflow *w, const struct task *t, int64_t now)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (may_retry(w, t, i, now))
            return true;
    return t->state == TASK_ERROR;
}

bool operator_may(const struct workflow *w, const struct task *t, enum event_kind verb, int step,
                  int64_t now)
{
    ASSERT(step < t->step_count);
    if (task_state_is_end(t->state))
        return false;
    if (verb == EVENT_UNDO)
        return may_undo(w, t);
    if (verb == EVENT_SKIP)
        return step >= 0 && may_skip(w, t, (uint16_t)step);
    ASSERT(verb == EVENT_RETRY);
    return step < 0 ? may_retry_any(w, t, now) : may_retry(w, t, (uint16_t)step, now);
}
