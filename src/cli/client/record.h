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

/* For a step with for_each that has begun: "17 of 20 items completed, 1 failed, 2 at work". Empty
 * for others. */
void record_items(struct buf *b, const struct json *step);

/* The items that the record of a step has one by one: at work, or failed and to be retried. Failed
 * ones first, then by number. Returns how many. */
enum { RECORD_UNITS_MAX = 200 };
size_t record_units(const struct json *step, const struct json *ret[RECORD_UNITS_MAX]);

#endif
