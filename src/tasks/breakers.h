#ifndef TASKS_BREAKERS_H
#define TASKS_BREAKERS_H

/* The breakers and settings of agents; see breakers.c. */

#include "tasks/tasks.h"

struct agent *agent_of_attempts(struct tasks *ts, const struct live *l, uint16_t step,
                                enum direction d);
void breakers_tick(struct tasks *ts, int64_t now);
int64_t breakers_next(const struct tasks *ts); /* when a breaker changes by itself; 0: never */
/* Does the event report a failure during an outage? */
bool breakers_spare(struct tasks *ts, const struct live *l, const struct event *e);
/* The step's attempt no longer occupies a trial. */
void breakers_end_trial(struct live *l, uint16_t step);
/* The step's `end` is durable. */
void breakers_count(struct tasks *ts, struct agent *a, struct live *l, uint16_t step);
void breakers_handed_over(struct tasks *ts, struct agent *a, const struct handed_over *h);
/* Another node stored agents up to this generation. */
void breakers_stored_elsewhere(struct tasks *ts, uint64_t generation);
void breakers_read(struct tasks *ts, const struct agent_row *rows, size_t count,
                   uint64_t generation);
void breakers_stored(struct tasks *ts, const struct agent_row *row); /* here, or read */
/* Breaker states to be stored, in `a`; and the outcome of storing one. */
size_t breakers_to_save(struct tasks *ts, struct arena *a, struct agent_change *ret, size_t max);
void breakers_saved(struct tasks *ts, const struct agent_change *c, enum err err);
/* The agent_row.breaker to store if a person opens or closes the breaker now. */
void breakers_by_hand(const struct tasks *ts, struct slice name, bool open, struct slice reason,
                      struct buf *ret);

#endif
