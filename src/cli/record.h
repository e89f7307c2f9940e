#ifndef CLI_RECORD_H
#define CLI_RECORD_H

/* What several verbs show of a task's record, in the same words. */

#include "base/buf.h"
#include "json/json.h"

/* Of a task's record or summary: "pending (undo), paused". That a task goes back is said where its
 * state does not. */
void record_state(struct buf *b, const struct json *task);

/* Of a step: "2", or "1+3" if three attempts to undo it followed. Nothing if there was none. */
void record_attempts(struct buf *b, const struct json *step);

#endif
