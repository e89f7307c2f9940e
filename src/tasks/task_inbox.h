#ifndef TASKS_TASK_INBOX_H
#define TASKS_TASK_INBOX_H

/* Commands on their way to a task: they gather in its inbox until they can be decided. */

#include "tasks/tasks.h"

void inbox_post(struct tasks *ts, struct slice id, struct command *c);
void inbox_post_event(struct tasks *ts, struct slice id, const struct event *e);
void inbox_rewind(struct live *l); /* what was applied is decided again, before later commands */
void command_discard(struct command *c);

#endif
