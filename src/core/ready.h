#ifndef CORE_READY_H
#define CORE_READY_H

/* Which steps are next, and what their next attempt looks like: see task_ready in decide.h. */

#include "core/decide.h"

/* May this step be started now? (If there is also time left for it: task_next_attempt.) */
bool step_is_ready(const struct workflow *w, const struct task *t, uint16_t i, int64_t now);

/* The same of its `if`, and of what it is asked for: these need no owner, nor anybody to do it. */
bool step_may_be_decided(const struct workflow *w, const struct task *t, uint16_t i, int64_t now);

/* Once nothing is left to compensate: may this step of on_undo be started, sooner or later, without
 * anything else happening first? */
bool on_undo_may_start(const struct workflow *w, const struct task *t, uint16_t i);

/* Is there a step that starts now or later without anything else happening first? */
bool task_may_go_forward(const struct workflow *w, const struct task *t);

#endif
