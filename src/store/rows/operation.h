#ifndef STORE_ROWS_OPERATION_H
#define STORE_ROWS_OPERATION_H

/* Operations on many tasks. */

#include "base/base.h"

/* Something that is done to many tasks, one after the other: a row of the operation table. */
struct operation_row {
    int64_t seq; /* order of insertion; given by the store */
    struct slice id;
    uint64_t revision; /* 1 at insertion */
    bool open;         /* "running" or "stopped"; false: nothing is left to be done */
    struct slice state, verb, actor, reason;
    int64_t started_at, ended_at;
    struct slice doc; /* JSON, into which the store does not look */
};

/* The columns of the table `operation` between its seq and its id. What X, S and the types are:
 * rows/task.h. */
/* clang-format off */
#define OPERATION_COLUMNS(X, S) \
    X(revision,   number) S     \
    X(open,       flag)   S     \
    X(state,      text)   S     \
    X(verb,       text)   S     \
    X(actor,      text)   S     \
    X(reason,     text)   S     \
    X(started_at, number) S     \
    X(ended_at,   time)   S     \
    X(doc,        text)
/* clang-format on */

struct operation_query {
    struct slice id;    /* NONE: any */
    bool open;          /* only those that are */
    int64_t before_seq; /* newest first, seq below this one; 0: from the newest */
    size_t limit;
};

struct operation_page {
    struct operation_row *rows;
    size_t count;
    bool more;
};

/* Held, as "node/boot", by the node that works on operations. */
#define OPERATION_LEASE "operations"

#endif
