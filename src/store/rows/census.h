#ifndef STORE_ROWS_CENSUS_H
#define STORE_ROWS_CENSUS_H

/* How much there is of what is not over. */

#include "core/task.h"

/* How much there is of what is not over: for who looks after it. Counting ends at `most`, so that
 * it costs the same however much is stored. */
struct census_agent {
    struct slice agent;
    uint64_t tasks;             /* unlocked, for when it has a place; at most `agents_most` */
    int64_t first_submitted_at; /* of the one that is claimed next */
};

struct census {
    uint64_t tasks[TASK_ERROR + 1]; /* at most `most` of each state; those processed: 0 */
    uint64_t sleeping;              /* of those pending: until a time; at most `agents_most` */
    uint64_t overdue;               /* rows with wake_at <= now; at most `most` */
    int64_t overdue_since;          /* the least of these; 0: there is none */
    struct census_agent *agents;    /* the first CENSUS_AGENTS by name */
    size_t agents_most;             /* what `most` is for each of them: they share it */
    size_t agent_count;
};

enum { CENSUS_AGENTS = 200 };

#endif
