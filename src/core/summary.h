#ifndef CORE_SUMMARY_H
#define CORE_SUMMARY_H

/*
 * The state of a task as a whole, derived from its steps. decide() uses it to find whether the task
 * has ended or turns to undo. Nothing here changes anything.
 */

#include "core/task.h"

/* Codes of a task that stopped in error because children did: it cannot go on without them; or it
 * is to be undone, but the child of a pivot may have taken effect. */
#define CODE_CHILD "child"
#define CODE_PIVOT "pivot"

bool anything_open(const struct task *t); /* some step has a current attempt */
bool all_ended(const struct workflow *w, const struct task *t); /* except steps of on_undo */

/* Whether the step has failed and its `on_failure` stops the task. */
bool step_failure_stops(const struct workflow_step *ws, const struct step *s);

/* The same in the task's direction: a forward failure does not stop a task that is being undone. */
bool step_stops_task(const struct workflow *w, const struct task *t, uint16_t i);
bool any_step_stops_task(const struct workflow *w, const struct task *t);

/* Also a child that cannot turn back any more. */
bool pivot_completed(const struct workflow *w, const struct task *t, uint16_t i);
bool any_pivot_completed(const struct workflow *w, const struct task *t);

/* Whether pivots allow undo. UNRESOLVED: not known yet, because an attempt runs or will be retried.
 * IN_DOUBT: one is in doubt, and nothing in the task will resolve it. */
enum pivots { PIVOTS_CLEAR, PIVOTS_UNRESOLVED, PIVOTS_COMPLETED, PIVOTS_IN_DOUBT };
enum pivots pivots_check(const struct workflow *w, const struct task *t);

/* UNRESOLVED: whether a call is, not only children, which can be asked. */
bool any_pivot_call_unresolved(const struct workflow *w, const struct task *t);

/* Whether undo is impossible now: a pivot took effect, or may have, and nothing will resolve it
 * while the task is in its present state. */
bool pivots_rule_out_undo(const struct workflow *w, const struct task *t);

/* Whether the task stopped in error only because children did: it goes on as soon as one of them
 * does, in its direction (STOP_NONE), or to undo (STOP_UNDO), which is *ret. */
bool stopped_by_children(const struct workflow *w, const struct task *t, enum stop *ret);

/* The unit of the first child that stopped in error and is waited for: by a task that goes on in
 * its direction, or (STOP_UNDO) by one that is to be undone, but for its pivots. -1: none. */
int stopped_child(const struct workflow *w, const struct task *t, enum stop stop);

#endif
