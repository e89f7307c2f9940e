#ifndef NODE_TASK_READ_H
#define NODE_TASK_READ_H

/* Reading tasks from the store with all that their records show. On the store thread or the reading
 * thread. */

#include "node/access.h"

/* Reads several, as far as they fit into so many bytes (`left`). ERR_NOT_FOUND: `gone` tells
 * whether the task was deleted. */
void task_records_read(struct store *store, struct task_record *list, size_t count,
                       size_t bytes_max);
/* The same of one, to whatever the caller keeps. */
enum err task_read(struct store *store, struct slice id, struct arena *a, struct task_row *ret,
                   struct audit_page *ret_operations, struct reservation *ret_gone,
                   struct error *e);
/* Makes a task that `grant` may not see one that does not exist. So is a row that cannot be read,
 * unless the grant covers all tasks. */
void task_hide(const struct grant *grant, const struct task_row *row, enum err *err,
               struct reservation *gone);

#endif
