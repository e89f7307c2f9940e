#ifndef TASKS_FAMILY_H
#define TASKS_FAMILY_H

/* What a task has told the others of its family, as of its last durable change: what is told next
 * follows from the difference (scheduler/family.c). */

#include "tasks/tasks.h"

/* The id of the child of that number, from 1, in `a`. */
struct slice child_id(struct slice parent, struct slice step, uint32_t number, struct arena *a);

/* Does the task have a parent, or steps that start children? */
static inline bool family_has(const struct live *l)
{
    return l->task.parent.ptr || l->definition->workflow.child_step_count > 0;
}

/* All that the task would tell now is told. */
void family_told_of(struct live *l);

/* An item at rest is put into that slot: what it has told is in its row. */
void family_told_item(struct live *l, uint16_t unit, struct child child);

/* Does any step wait for what its child tells, and for nothing else? */
bool family_awaits(const struct live *l);

#endif
