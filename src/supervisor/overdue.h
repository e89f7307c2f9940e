#ifndef SUPERVISOR_OVERDUE_H
#define SUPERVISOR_OVERDUE_H

/* What the supervisor requests for one overdue task. Pure, except for the decoding of its row. */

#include "base/buf.h"
#include "core/decide.h"

/* How long after a request its task is checked again, in case it was not carried out. */
#define REMINDER_MS INT64_C(10000)

struct verdict {
    bool request;    /* there is something to do; `text` says what, as JSON */
    bool release;    /* nothing else of the task runs: any scheduler may take it */
    int64_t wake_at; /* when to check next; 0: nothing to wait for */
};

/* [{"step":"charge","direction":"forward","attempt":2,"do":"retry"}, {"do":"deadline"}], or
 * {"do":"extend","until":MS} if the task's complete-by fell into lost time. */
void overdue_judge(const struct workflow *w, const struct task *t, int64_t now,
                   const struct lost_time *lost, struct buf *text, struct verdict *ret);

#endif
