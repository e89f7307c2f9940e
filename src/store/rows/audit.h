#ifndef STORE_ROWS_AUDIT_H
#define STORE_ROWS_AUDIT_H

/* What people did by hand. */

#include "base/base.h"

/* What somebody did by hand, to be kept for ever: a row of the audit table. It is written in the
 * same transaction as the change that it tells of, or not at all. */
struct audit {
    int64_t at;
    struct slice actor, verb;        /* the token's name; "retry", "token.create", ... */
    struct slice task, step, reason; /* NONE: does not apply, or was not said */
    struct slice detail; /* JSON: what was replaced, and by what, in short; NONE: nothing was. It is
                          * kept of changes of tasks only */
    struct slice address; /* of who called, and ' for ' whom, as a proxy says; NONE: nobody did */
};

/* The columns of the table `audit` behind its seq; `detail` only tells of changes of tasks. What X,
 * S and the types are: rows/task.h. */
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
