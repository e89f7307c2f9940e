#ifndef BACKGROUND_RETENTION_H
#define BACKGROUND_RETENTION_H

/* How long ended tasks are kept, and what happens to them then: the rules, and the job that applies
 * them on the node that leads. */

#include "archive/archive.h"
#include "node/part.h"
#include "store/store.h"

/* The first rule that matches a task's workflow and state applies. A task is kept if either limit
 * covers it: it ended less than `keep_ms` ago, or is among the newest `keep_last` of its workflow.
 */
struct retention_rule {
    struct slice workflow; /* NONE: any */
    uint32_t states;       /* as in struct retire_rule */
    int64_t keep_ms;       /* KEEP_FOR_EVER */
    int64_t keep_last;     /* by when they were submitted */
    bool archive;          /* archived before they are deleted */
};

#define KEEP_FOR_EVER INT64_MAX

enum { RETENTION_RULES_MAX = 1000, KEEP_LAST_MAX = 100000 };

/* What rules without states are for: an operator may still continue a task that stopped in error,
 * unless it was closed. */
#define RETENTION_STATES   (1U << TASK_PROCESSED | 1U << TASK_COMPENSATED | RETIRE_CLOSED)

#define RESERVE_MS_DEFAULT (INT64_C(90) * 86400000)

struct retention {
    const struct retention_rule *rules;
    size_t rule_count;
    int64_t reserve_ms; /* how long ids of deleted tasks are not given to others; 0: they are */
    struct archive_config archive; /* without a folder none is kept, and no rule asks for it */
};

enum {
    RETIRE_ROWS = 500,        /* that one part examines */
    RETIRE_BUDGET_US = 2000,  /* about how long a part may delay a change */
    RETIRE_PATIENCE = 4,      /* other jobs get so many times as long; also beside alerts, outbox */
    RETIRE_AGE_MIN_MS = 60000 /* younger ones are not deleted */
};

struct retention_job;
struct server;
/* What keeps tasks from being deleted or archived; false: nothing. Either may be NULL. */
bool retention_trouble(const struct server *sv, struct slice *ret_story, int64_t *ret_since);

extern const struct part retention_part;

#endif
