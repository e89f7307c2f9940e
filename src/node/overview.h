#ifndef NODE_OVERVIEW_H
#define NODE_OVERVIEW_H

/*
 * What this node has done in the last hour, in periods of ten seconds: tasks accepted and ended,
 * and how long those that ended had taken. In memory alone: it begins anew with each start.
 *
 * Adding is a few additions. Durations are counted in bins, four for each power of two, so a
 * percentile is right to within an eighth. Event loop only.
 */

#include "base/buf.h"
#include "core/task.h"

enum { OVERVIEW_PERIOD_MS = 10000, OVERVIEW_PERIODS = 360 };

struct overview;

struct overview *overview_new(int64_t now);
void overview_free(struct overview *o); /* NULL is fine */

void overview_submitted(struct overview *o, int64_t now);
void overview_ended(struct overview *o, enum task_state state, int64_t took_ms, int64_t now);

/* "at", "since", "window", "resolution" and "series", as members of the object that is open. The
 * series has all periods of the last hour since the start, the oldest first; the last one is not
 * over. */
void overview_write(const struct overview *o, int64_t now, struct buf *b);

#endif
