/* When attempts and tasks are overdue. A deadline that fell into lost time gets a grace period: see
 * struct lost_time in decide.h. Pure functions. */
#include "core/decide.h"

/* Until when the step waits for a signal. 0: it does not, or without limit, or nothing is decided
 * then: its clock stands, or the task stops. Until it has stopped, its clock runs. */
static int64_t waits_until(const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];
    bool is_decided = s->state == STEP_WAITING && t->paused_at == 0 && t->stop == STOP_NONE
                      && t->direction == DIRECTION_FORWARD;

    return is_decided ? s->complete_by : 0;
}

int64_t task_wake_at(const struct task *t)
{
    int64_t at = 0;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR)
        return 0;
    if (!t->deadline_passed && t->paused_at == 0)
        at = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
    for (uint16_t i = 0; i < task_unit_count(t); i++) {
        const struct attempt *a = step_open_attempt(&t->steps[i]);
        int64_t by = a ? a->complete_by : t->steps[i].complete_by ? waits_until(t, i) : 0;
        if (by != 0 && (at == 0 || by < at))
            at = by;
    }
    return at;
}

int64_t deadline_at(int64_t complete_by, const struct lost_time *lost)
{
    int64_t grace_end = lost->until + lost->grace_ms;

    if (lost->until == 0 || complete_by < lost->from || complete_by >= grace_end)
        return complete_by;
    return grace_end;
}

int64_t step_overdue_at(const struct step *s, const struct lost_time *lost)
{
    const struct attempt *a = step_open_attempt(s);

    if (!a)
        return 0;
    if (a->started_at >= lost->until)
        return a->complete_by; /* it began after the lost time */
    return deadline_at(a->complete_by, lost);
}

int64_t signal_overdue_at(const struct task *t, uint16_t i, const struct lost_time *lost)
{
    int64_t at = waits_until(t, i);

    if (task_state_is_end(t->state) || t->state == TASK_ERROR || at == 0)
        return 0;
    return t->steps[i].begun_at >= lost->until ? at : deadline_at(at, lost);
}

/* When the time allowed to the task in its present direction began. */
static int64_t began_at(const struct workflow *w, const struct task *t)
{
    return t->direction == DIRECTION_UNDO ? t->undo_complete_by - w->undo_complete_by_ms
                                          : max_i64(t->submitted_at, t->not_before);
}

/* The task's own deadline. 0: it has none, or its clock stands, or the deadline has passed. */
static int64_t own_deadline(const struct workflow *w, const struct task *t,
                            const struct lost_time *lost)
{
    if (task_state_is_end(t->state) || t->state == TASK_ERROR || t->deadline_passed
        || t->paused_at != 0)
        return 0;
    int64_t at = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
    if (at == 0 || began_at(w, t) >= lost->until)
        return at; /* it began after the lost time */
    return deadline_at(at, lost);
}

int64_t task_extended_to(const struct workflow *w, const struct task *t,
                         const struct lost_time *lost)
{
    struct lost_time of_task = *lost;

    if (lost->until_of_tasks) {
        of_task.from = lost->from_of_tasks;
        of_task.until = lost->until_of_tasks;
    }
    return own_deadline(w, t, &of_task);
}

int64_t task_overdue_at(const struct workflow *w, const struct task *t,
                        const struct lost_time *lost)
{
    return max_i64(own_deadline(w, t, lost), task_extended_to(w, t, lost));
}

bool step_is_overdue(const struct step *s, int64_t now, const struct lost_time *lost)
{
    int64_t at = step_overdue_at(s, lost);

    return at != 0 && at <= now;
}

bool task_is_overdue(const struct workflow *w, const struct task *t, int64_t now,
                     const struct lost_time *lost)
{
    int64_t at = task_overdue_at(w, t, lost);

    return at != 0 && at <= now;
}
