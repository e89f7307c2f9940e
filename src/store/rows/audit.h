#ifndef STORE_ROWS_AUDIT_H
#define STORE_ROWS_AUDIT_H

/* What people did by hand. */

#include "base/base.h"

/* A change made by a person, kept for ever: a row of the audit table. It is written in the same
 * transaction as the change it records, or not at all. */
struct audit {
    int64_t at;
    struct slice actor, verb;        /* the token's name; "retry", "token.create", ... */
    struct slice task, step, reason; /* NONE: does not apply, or was not given */
    struct slice detail; /* JSON: what was replaced, and by what, in short; NONE: nothing was. It is
                          * kept of changes of tasks only */
    struct slice address; /* the client's address, and ' for ' the one that a proxy reports; NONE:
                           * no client */
};

/* The columns of the table `audit` behind its seq; `detail` is set for changes of tasks only. What
 * X, S and the types are: rows/task.h. */
/* clang-format off */
#define AUDIT_COLUMNS(X, S) AUDIT_BRIEF_COLUMNS(X, S) S X(detail, text)
#define AUDIT_BRIEF_COLUMNS(X, S) \
    X(at,      number) S          \
    X(actor,   text)   S          \
    X(verb,    text)   S          \
    X(task,    text)   S          \
    X(step,    text)   S          \
    X(reason,  text)   S          \
    X(address, text)
/* clang-format on */

/* A task's record shows so many of the latest. */
enum { TASK_OPERATIONS_MAX = 100 };

struct audit_query {
    struct slice task;  /* NONE: any */
    int64_t before_seq; /* newest first, seq below this one; 0: from the newest */
    size_t limit;
};

struct audit_page {
    struct audit *entries;
    int64_t *seqs; /* of the entries */
    size_t count;
    bool more;
};

#endif
