#ifndef SIMULATION_EXPLAIN_H
#define SIMULATION_EXPLAIN_H

/* What `intact why` would say of a task that stopped, or waits, in a simulated run. */

#include "base/buf.h"
#include "core/task.h"

void explain(const struct workflow *w, const struct task *t, int64_t now, struct buf *ret_summary,
             struct buf *ret_moves);

#endif
