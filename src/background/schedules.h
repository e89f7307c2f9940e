#ifndef BACKGROUND_SCHEDULES_H
#define BACKGROUND_SCHEDULES_H

/*
 * Submits the tasks of schedules, on the node that leads: the node's side of schedule/ticker.h.
 */

#include "base/base.h"
#include "node/part.h"
#include "schedule/ticker.h"

struct server;

void schedules_changed(struct server *sv); /* one was stored, or changed */
void schedules_task_ended(struct server *sv, struct slice task);

int64_t schedules_due_at(const struct server *sv); /* the next moment; 0: none is known */
void schedules_stats(const struct server *sv, struct ticker_stats *ret);

extern const struct part schedules_part;

#endif
