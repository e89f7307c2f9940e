#ifndef TASKS_COUNTS_H
#define TASKS_COUNTS_H

/* What is counted of tasks, for metrics and limits. An attempt that ended is first noted in its
 * task, and counted once its end is durable. */

#include "core/task.h"
#include "tasks/heartbeat.h"

enum { ATTEMPT_ENDS = OUTCOME_LATE + 1 };

struct task_counts {
    size_t live, open_attempts, waiting;
    size_t bulk_waiting; /* of `waiting`: of tasks in bulk operations */
    int64_t others_at;   /* when a task without a bulk operation was last written; 0: never */
    uint64_t changes, batches, conflicts, claims, submitted, ended;
    uint64_t unreadable; /* rows, each time one was met */
    uint64_t beats[BEAT_STATUS_COUNT];
    uint64_t attempts[2][ATTEMPT_ENDS]; /* ended here, by direction and outcome */
};

struct live;
struct tasks;

/* The latest attempt of the step has ended. */
void counts_attempt_ended(struct live *l, uint16_t step);
/* All ends noted in the task are durable: they count, for its agents and instances, too. */
void counts_durable(struct tasks *ts, struct live *l);

#endif
