#ifndef TASKS_CALLS_H
#define TASKS_CALLS_H

/* Work calls, parked: the attempts assigned to them, and when they can be answered. */

#include "tasks/tasks.h"

void call_assign(struct work *w, struct live_step *ls);
void call_unassign(struct work *w, struct live_step *ls);
void call_settle(struct tasks *ts, struct work *w, uint32_t count); /* so many items are durable */
void call_close(struct tasks *ts, struct work *w);        /* answered as soon as it is settled */
void call_stop(struct live_step *ls);                     /* its agent must stop it */
void call_stop_forward(struct tasks *ts, struct live *l); /* all that the undo makes useless */
void call_wake(struct tasks *ts, struct instance *i);     /* so that it reports what it holds */
void call_wake_all(struct tasks *ts, struct live *l);     /* all instances that work on the task */
void call_expire(struct tasks *ts, int64_t now);

#endif
