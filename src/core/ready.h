#ifndef CORE_READY_H
#define CORE_READY_H

/* Which steps are next, and their next attempts: see task_ready in decide.h. */

#include "core/decide.h"

/* Whether this step may be started now (if there is also time left for it: task_next_attempt). */
bool step_is_ready(const struct workflow *w, const struct task *t, uint16_t i, int64_t now);

/* The same for evaluating its `if` and its input, which needs no owner and no agent. */
bool step_may_be_decided(const struct workflow *w, const struct task *t, uint16_t i, int64_t now);

/* Whether this wait may begin now or, if it has begun, has ended; or the step may begin to wait for
 * a signal (or people, or a child) or, if it has begun, may take one. */
bool wait_is_ready(const struct workflow *w, const struct task *t, uint16_t i, int64_t now);

/* Whether it may be decided now if the answer to this repeated step satisfies it. */
bool answer_is_ready(const struct workflow *w, const struct task *t, uint16_t i, int64_t now);

/* Whether this step of on_undo may be started, now or later, without another event first. Only
 * meaningful once nothing is left to compensate. */
bool on_undo_may_start(const struct workflow *w, const struct task *t, uint16_t i);

/* Whether some step starts, now or later, without another event first. */
bool task_may_go_forward(const struct workflow *w, const struct task *t);

#endif
