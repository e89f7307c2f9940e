#ifndef SUPERVISOR_OVERDUE_H
#define SUPERVISOR_OVERDUE_H

/* What the supervisor requests for one overdue task. Pure. */

#include "core/decide.h"
#include "store/row_request.h"

/* A step does not give up its signal while a notice of its task waits that was inserted in time;
 * but one that cannot be decided holds it up no longer. */
#define NOTICE_HOLD_MS INT64_C(10000)

/* How long after a request its task is checked again, in case it was not carried out. */
#define REMINDER_MS INT64_C(10000)

struct verdict {
    struct request request; /* empty: nothing is to be done */
    bool release;           /* nothing else of the task runs: any scheduler may take it */
    int64_t wake_at;        /* when to check next; 0: nothing to wait for */
};

/* One item for each overdue attempt, and one if the task is overdue, or if its complete-by fell
 * into lost time. The request lies in `a` and points into the workflow. `told_at`: when the first
 * of its notices was inserted, by a read that began at `now` or later; 0: there is none. */
void overdue_judge(const struct workflow *w, const struct task *t, int64_t now, int64_t told_at,
                   const struct lost_time *lost, struct arena *a, struct verdict *ret);

#endif
