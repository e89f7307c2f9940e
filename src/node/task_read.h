#ifndef NODE_TASK_READ_H
#define NODE_TASK_READ_H

/* Reading one task from the store with all that its record shows. */

#include "node/access.h"

/* On the store thread or the reading thread. ERR_NOT_FOUND: *ret_gone tells whether the task was
 * deleted. */
enum err task_read(struct store *store, struct slice id, struct arena *a, struct task_row *ret,
                   struct audit_page *ret_operations, struct reservation *ret_gone,
                   struct error *e);
/* Makes a task that `grant` may not see one that does not exist. So is a row that cannot be read,
 * unless the grant covers all tasks. */
void task_hide(const struct grant *grant, const struct task_row *row, enum err *err,
               struct reservation *gone);

#endif
