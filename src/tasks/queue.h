#ifndef TASKS_QUEUE_H
#define TASKS_QUEUE_H

/* Steps that wait for a place, in the lanes of their agents, by rank. */

#include "core/ready.h"
#include "tasks/tasks.h"

struct lane *queue_lane(struct tasks *ts, const struct live *l, uint16_t step);
int64_t task_rank(const struct task *t); /* lower ones come first */
int64_t queue_rank(const struct live *l, uint16_t step);
void queue_step(struct tasks *ts, struct live_step *ls, struct lane *lane);
void queue_leave(struct tasks *ts, struct live_step *ls); /* if it is in one */
void queue_leave_all(struct tasks *ts, struct live *l);   /* all steps of the task; its nap, too */
/* The ready steps of a task, not before the task's own not_before. Valid until the next call. */
size_t queue_ready(struct tasks *ts, struct live *l, struct ready **ret);
/* The number of bulk asks there is room for; see scheduler_bulk_room. */
size_t queue_bulk_room(const struct tasks *ts, size_t most);

#endif
