#ifndef CORE_SUMMARY_H
#define CORE_SUMMARY_H

/*
 * The state of a task as a whole, derived from its steps. decide() uses it to find whether the task
 * has ended or turns to undo. Nothing here changes anything.
 */

#include "core/task.h"

bool anything_open(const struct task *t); /* some step has a current attempt */
bool all_ended(const struct workflow *w, const struct task *t); /* except steps of on_undo */

/* Whether the step has failed and its `on_failure` stops the task. */
bool step_failure_stops(const struct workflow_step *ws, const struct step *s);

/* The same in the task's direction: a forward failure does not stop a task that is being undone. */
bool step_stops_task(const struct workflow *w, const struct task *t, uint16_t i);
bool any_step_stops_task(const struct workflow *w, const struct task *t);

bool any_pivot_completed(const struct workflow *w, const struct task *t);

/* Whether pivots allow undo. UNRESOLVED: not known yet, because an attempt runs or will be retried.
 * IN_DOUBT: one is in doubt, and nothing in the task will resolve it. */
enum pivots { PIVOTS_CLEAR, PIVOTS_UNRESOLVED, PIVOTS_COMPLETED, PIVOTS_IN_DOUBT };
enum pivots pivots_check(const struct workflow *w, const struct task *t);

#endif
