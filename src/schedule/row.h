#ifndef SCHEDULE_ROW_H
#define SCHEDULE_ROW_H

/* A schedule and its state, from and to the row of the store. */

#include "schedule/plan.h"
#include "store/rows/schedule.h"

/* *ret_schedule is owned by the caller. ERR_CORRUPT: it was not written by us. */
enum err schedule_decode(const struct schedule_row *row, struct arena *a,
                         struct schedule **ret_schedule, struct schedule_state *ret_state,
                         struct error *e) MUST_USE;

/* Sets what follows from the state in the row, and raises its revision. Its doc is in `doc`. */
void schedule_encode(const struct schedule *s, const struct schedule_state *st, int64_t now,
                     struct buf *doc, struct schedule_row *row);

/* The person who stored this version of the schedule; NONE: nobody knows. A node that knows no
 * persons keeps the column when it stores another version, so the column names its version. */
struct slice schedule_person(const struct schedule_row *row);
/* What the column holds for that person. NONE stays NONE. */
struct slice schedule_person_text(int64_t version, struct slice person, struct arena *a);

/* The submission of a run; its texts are those that are passed in, and those of the schedule. */
struct submission_row run_submission(const struct schedule *s, struct slice person, struct slice id,
                                     struct slice input, int64_t now);

#endif
