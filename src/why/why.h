#ifndef WHY_WHY_H
#define WHY_WHY_H

/*
 * "Why is my task stuck?": the reasons of core/reason.h in plain words, and what a scheduler knows
 * of queues and agents beyond the task's record.
 *
 * The words contain no times: times are fields of their own, because only the caller knows the
 * reader's clock.
 */

#include "core/reason.h"
#include "scheduler/scheduler.h"

/* Sets what this scheduler knows: owner, queues, agents, heartbeats. The rest (the store's failure,
 * the supervisor's data, acts) is zero, for the caller to set. Everything *ret points to lies in
 * `a`, or belongs to the scheduler and is valid until the next turn. */
void scheduler_facts(const struct scheduler *s, const struct task *t, const struct task_row *row,
                     struct arena *a, struct facts *ret);

/* A task and the reasons for its state. */
struct why {
    const struct workflow *workflow;
    const struct task *task;
    const struct facts *facts;
    const struct reasons *reasons;
};

/* The name of a step, or of an item: "pack", "pack.3". */
void why_unit(struct buf *b, const struct why *y, int unit);

/* One or two sentences: the task's state and the most important reason. */
void why_summary(struct buf *b, const struct why *y);

/* What is the case; what would change it. The latter may have further lines, each a command that
 * can be copied. */
void why_text(struct buf *b, const struct why *y, const struct reason *r);
void why_moves(struct buf *b, const struct why *y, const struct reason *r);

#endif
