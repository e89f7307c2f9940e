#ifndef STORE_ROWS_ALERT_H
#define STORE_ROWS_ALERT_H

/* Alerts as the store holds them. */

#include "store/rows/node.h"

/* An alert: see alerts/alerts.h. */
struct alert_row {
    int64_t seq; /* given by the store; newer ones have higher ones */
    struct slice id;
    struct slice key; /* of its group. Live alerts each have a group of their own */
    struct slice doc; /* JSON, into which the store does not look */
    int64_t opened_at, resolved_at;
    int64_t acknowledged_at; /* with the next two: changed by alert_acknowledge */
    struct slice acknowledged_by, acknowledged_why;
    bool live; /* something may come of it yet */
    bool lift; /* in: it is not acknowledged any more */
    /* In, may be NULL: ERR_CONFLICT if that lease has another epoch. */
    const struct fence *fence;
};

/* The columns of the table `alert` behind its seq. Those of an acknowledgement are written apart.
 * What X, S and the types are: rows/task.h. */
/* clang-format off */
#define ALERT_PUT_COLUMNS(X, S)   \
    X(id,               text)   S \
    X(key,              text)   S \
    X(doc,              text)   S \
    X(opened_at,        number) S \
    X(resolved_at,      time)   S \
    X(live,             flag)
#define ALERT_COLUMNS(X, S)       \
    ALERT_PUT_COLUMNS(X, S)     S \
    X(acknowledged_at,  time)   S \
    X(acknowledged_by,  text)   S \
    X(acknowledged_why, text)
/* clang-format on */

/* So many alerts are kept that are over. */
enum { ALERTS_KEPT = 10000 };

struct alert_query {
    bool live;          /* those only */
    int64_t before_seq; /* newest first, seq below this one; 0: from the newest */
    size_t limit;
};

struct alert_page {
    struct alert_row *rows;
    size_t count;
    bool more;
};

#endif
