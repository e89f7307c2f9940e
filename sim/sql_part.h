#ifndef SIM_SQL_PART_H
#define SIM_SQL_PART_H

/* A node's part in submissions (sql.h) and signals (notices.h) by SQL, and in schedules. */

#include "sim/node.h"

void sql_part_new(struct node *n);
void sql_part_free(struct node *n);
int64_t sql_part_turn(struct node *n); /* when the next is due; 0: none is */
void sql_part_surveyed(struct node *n, const struct survey *v);
/* A batch of the node inserted something for tasks of a family. */
void sql_part_family_told(void *arg);
void sql_part_task_ended(const struct node *n, struct slice task);
void sql_part_drain(struct node *n);
bool sql_part_is_busy(const struct node *n);
bool sql_part_asked(const struct ask *a); /* was it asked by this part? Then: */
void sql_part_answered(struct node *n, struct ask *a);

#endif
