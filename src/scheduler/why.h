#ifndef SCHEDULER_WHY_H
#define SCHEDULER_WHY_H

/*
 * "Why is my task stuck?": the reasons of core/reason.h in plain words, and what a scheduler knows
 * of queues and agents beside the task's record.
 *
 * The words name no moments: those are fields of their own, and whoever shows them knows the
 * reader's clock.
 */

#include "core/reason.h"
#include "scheduler/scheduler.h"

/* What this scheduler knows: owner, queues, agents, heartbeats. What it does not (the store's
 * trouble, the supervisor's business, acts) is left zero for the caller. All that *ret points to
 * lies in `a`, or is the scheduler's and good until the loop goes on. */
void scheduler_facts(const struct scheduler *s, const struct task *t, const struct task_row *row,
                     struct arena *a, struct facts *ret);

/* A task and why it is there. */
struct why {
    const struct workflow *workflow;
    const struct task *task;
    const struct facts *facts;
    const struct reasons *reasons;
};

/* One or two sentences: where the task stands, and the most important reason. */
void why_summary(struct buf *b, const struct why *y);

/* What is so / what would move it. The latter may go on in further lines, each of them a command,
 * ready to be copied. */
void why_text(struct buf *b, const struct why *y, const struct reason *r);
void why_moves(struct buf *b, const struct why *y, const struct reason *r);

#endif
