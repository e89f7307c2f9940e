#ifndef CORE_STAND_H
#define CORE_STAND_H

/*
 * Where a task as a whole stands: what decide() looks at to find out whether it has come to an end,
 * or to a turn. Pure looks: nothing here changes anything.
 */

#include "core/task.h"

bool anything_open(const struct task *t); /* some step has a current attempt */
bool all_ended(const struct workflow *w, const struct task *t); /* but those of on_undo */

/* A step whose failure stops the task: one that its `on_failure` does not let pass. */
bool stands_failed(const struct workflow_step *ws, const struct step *s);

/* The same, in the direction in which the task goes: what failed before it turned stops it no more.
 */
bool step_stops_task(const struct workflow *w, const struct task *t, uint16_t i);
bool any_step_stops_task(const struct workflow *w, const struct task *t);

bool any_pivot_completed(const struct workflow *w, const struct task *t);

/* Do pivots allow that the task turns back? UNRESOLVED: not yet known, an attempt is running or
 * another one will tell. STAND: one is in doubt, and nothing of ours will ever resolve it. */
enum pivots { PIVOTS_CLEAR, PIVOTS_UNRESOLVED, PIVOTS_COMPLETED, PIVOTS_STAND };
enum pivots pivots_look(const struct workflow *w, const struct task *t);

#endif
