#ifndef STORE_ROWS_SUBMISSION_H
#define STORE_ROWS_SUBMISSION_H

/* Submissions by SQL or from a queue that wait to become tasks. */

#include "store/rows/audit.h"

/*
 * A submission that an application inserted by SQL (view `submit`), or that came from a queue and
 * was refused: a row of table submission. It waits to become a task, with which it is deleted, or
 * was refused and then stays until an operator drops it. Nothing of it was checked: each value is a
 * text as received, NONE if it was omitted.
 */
#define CHILD_SOURCE SLICE("task") /* of a submission that a change of its parent inserted */

struct submission_row {
    int64_t seq;         /* given by the store, never twice */
    struct slice source; /* "sql", "amqp:QUEUE", "schedule", "task" */
    struct slice id, workflow, version, priority, not_before, reply_to, tags, input;
    int64_t submitted_at;
    int64_t refused_at; /* 0: it waits */
    struct slice reason;
    struct slice submitter; /* of a schedule: its author, as a person; NONE: unknown */
    struct slice child;     /* of a child: JSON object that says whose child it is, written by the
                             * change of its parent (scheduler/family.c). NONE: it is none */
    struct slice key; /* only inserted: each is kept once for a source. NONE: repetitions are not
                       * recognized */
};

/* The columns of the table `submission` behind its seq and source; its key is only written. A
 * column `any` is what the application put in: SQLite reads it as a text, whatever it is. What X, S
 * and the other types are: rows/task.h. */
/* clang-format off */
#define SUBMISSION_COLUMNS(X, S)  \
    X(submitted_at, number) S     \
    X(refused_at,   time)   S     \
    X(id,           any)    S     \
    X(workflow,     any)    S     \
    X(version,      any)    S     \
    X(priority,     any)    S     \
    X(not_before,   any)    S     \
    X(reply_to,     any)    S     \
    X(tags,         any)    S     \
    X(input,        any)    S     \
    X(reason,       text)   S     \
    X(submitter,    text)   S     \
    X(child,        text)
/* clang-format on */

/* The oldest of those that wait. Nodes that share a store divide them by seq, so that no two work
 * on the same one; those of a node that does not do its part belong to all after a while. */
struct submission_take {
    int64_t now;          /* for a body without a clock */
    uint32_t parts, part; /* seq % parts == part ... */
    int64_t patience_ms;  /* ... or submitted longer ago than that. parts <= 1: all */
    size_t limit;
    size_t bytes_max;            /* of all that they hold; one is taken whatever it holds. 0: any */
    struct submission_row *rows; /* out */
    size_t count;                /* out */
    bool more;                   /* out: there are more than these */
    uint64_t refused;            /* out: how many were refused, at most SUBMISSIONS_COUNTED */
    uint64_t signals_refused;    /* out: the same of signals by SQL, if no survey reports them */
    bool notices;   /* out: some are to be decided; only where nothing else reports them */
    bool unsettled; /* out: another writer is about to commit, and there may be more at once */
};

enum { SUBMISSIONS_COUNTED = 10000 };

/* What became of one that waited without a new task. */
struct submission_verdict {
    int64_t seq;
    int64_t refused_at; /* 0: its task was there already; the row is deleted */
    struct slice reason;
};

struct submission_query {
    bool refused;        /* false: those that wait */
    struct slice source; /* NONE: any */
    int64_t before_seq;  /* newest first, seq below this one; 0: from the newest */
    size_t limit;
    bool brief; /* of refused ones only seq and source may be read: for who counts them */
};

struct submission_page {
    struct submission_row *rows;
    size_t count;
    bool more;
};

/* The operator's: refused ones are tried again, or dropped. */
struct submission_verb {
    bool drop;
    int64_t seq;               /* 0: all of them, SUBMISSION_VERB_MAX at a time, oldest first */
    struct slice source;       /* NONE: any */
    int64_t up_to_seq;         /* none that came later; 0: any */
    const struct audit *audit; /* written if anything is done; may be NULL */
    uint64_t count;            /* out */
    bool more;                 /* out: there are more */
};

enum { SUBMISSION_VERB_MAX = 1000 };

#endif
