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
    uint64_t locked;                /* ... until a lock is given back; at most `most` */
    uint64_t overdue;               /* rows with wake_at <= now; at most `most` */
    int64_t overdue_since;          /* the least of these; 0: there is none */
    struct census_agent *agents;    /* the first CENSUS_AGENTS by name */
    size_t agents_most;             /* what `most` is for each of them: they share it */
    size_t agent_count;
};

enum { CENSUS_AGENTS = 200 };

/* To whom the tasks belong that go on (pending, processing, compensating). They are read in parts,
 * for a count that need not be exact: tasks change between two of these. It begins with
 * TASK_PENDING, 0. */
struct owners_part {
    enum task_state state; /* where it goes on: behind that row. It is moved */
    int64_t after_seq;
    size_t most;          /* rows that are looked at */
    struct slice *owners; /* out: of each of these rows that has an owner */
    size_t count;
    bool over; /* out: there are no more */
};

#endif
