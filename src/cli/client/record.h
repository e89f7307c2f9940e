#ifndef CLI_CLIENT_RECORD_H
#define CLI_CLIENT_RECORD_H

/* Parts of a task's record that several verbs show. */

#include "base/buf.h"
#include "json/json.h"

/* For a task's record or summary: "pending (undo), paused". The direction is shown if the state
 * does not imply it. */
void record_state(struct buf *b, const struct json *task);

/* Whether its waits continue: it goes forward, and has neither ended nor stopped, nor is it paused.
 */
bool record_goes_forward(const struct json *task);

/* For a step: "2", or "1+3" with three attempts to undo it. Empty without attempts. */
void record_attempts(struct buf *b, const struct json *step);

/* For a step that has a child: "its child d-1@parcel is running". Empty for others. */
void record_child(struct buf *b, const struct json *step);

#endif
