#ifndef TASKS_LIMITS_H
#define TASKS_LIMITS_H

/* Counts open attempts against limits; see limits.c. */

#include "tasks/tasks.h"

/* An attempt begins; ends. */
void limits_open(struct tasks *ts, struct live_step *ls, struct lane *lane, struct instance *i);
void limits_close(struct live_step *ls);
void limits_keep(struct live *l);                   /* its row is about to be read */
void limits_kept(struct tasks *ts, struct live *l); /* its row was read */
void limits_forget(struct live *l);                 /* its row does not exist */
void limits_forget_lost(struct tasks *ts);
void limits_expire(struct tasks *ts, int64_t now);
int64_t limits_next(const struct tasks *ts); /* 0: never */

#endif
