#ifndef TASKS_SILENCE_H
#define TASKS_SILENCE_H

/* Limits how long an attempt may go without a heartbeat; see silence.c. */

#include "tasks/tasks.h"

void silence_begin(struct tasks *ts, struct live_step *ls);      /* its request was sent */
void silence_begin_anew(struct tasks *ts, struct live_step *ls); /* after time without contact */
void silence_broken(struct tasks *ts, struct live_step *ls);     /* a heartbeat arrived */
void silence_end(struct tasks *ts, struct live_step *ls);
bool silence_is_too_long(const struct tasks *ts, const struct live_step *ls);
/* Posts an event for each attempt that was silent for too long. */
void silence_check(struct tasks *ts, int64_t now);
int64_t silence_next(const struct tasks *ts); /* 0: nothing to check */

#endif
