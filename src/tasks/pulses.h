#ifndef TASKS_PULSES_H
#define TASKS_PULSES_H

/*
 * The latest heartbeat of each open attempt, kept in memory beside the task and nowhere else: a
 * heartbeat decides nothing, stores nothing and moves no complete-by. So heartbeats may be lost,
 * late or duplicated without harm, and a restarted node has none until the next one arrives. A step
 * may still limit how long an attempt may be silent: see silence.h.
 */

#include "tasks/tasks.h"

void pulses_keep(struct live *l, const struct heartbeat *b, int64_t now);
/* Does the heartbeat report progress that the previous one did not? */
bool pulses_is_progress(const struct live *l, const struct heartbeat *b);
void pulses_forget(struct live *l, uint16_t step); /* its attempt has ended */
void pulses_forget_all(struct live *l);
/* The latest heartbeat of this attempt; NULL: none. Valid until its next heartbeat. */
const struct pulse *pulses_find(const struct live *l, uint16_t step, enum direction d,
                                uint32_t attempt);
/* The resume details of an attempt for the next one, or NONE. Valid as above. */
struct slice pulses_resume(const struct live *l, uint16_t step, enum direction d, uint32_t attempt);
void pulses_copy_all(const struct live *l, struct arena *a, struct pulses *ret);

#endif
