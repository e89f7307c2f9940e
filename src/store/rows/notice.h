#ifndef STORE_ROWS_NOTICE_H
#define STORE_ROWS_NOTICE_H

/* What tasks are told from outside their own changes: a row of the table `notice`, insert-only,
 * written in the transaction that it tells of. The change that is decided on it deletes it. */

#include "base/base.h"

/* `kind`: a signal that an application inserted (view and function `signal`). Its body is {"id",
 * "name", "data"}; nothing of it was checked, and data is a text that should be JSON. */
#define NOTICE_SIGNAL SLICE("signal")

/* From a task of the same family, which is the sender. "child": a child tells its parent what
 * became of it, {"step", "number", "state", "output", "error"}. "parent": a parent tells its child
 * what it wants of it, {"wish", "error"}, or {"paused_at"}, which is null once the parent goes on.
 */
#define NOTICE_CHILD  SLICE("child")
#define NOTICE_PARENT SLICE("parent")

struct notice_row {
    int64_t seq;                     /* given by the store, never twice */
    struct slice task, sender, kind; /* to whom; from whom ("sql"); what it is */
    int64_t at;                      /* by the store's clock, where it has one */
    struct slice body;               /* JSON */
    int64_t refused_at;              /* 0: it is to be decided */
    struct slice reason;             /* why it was refused */
    /* Read beside it: */
    bool has_task;      /* its task exists ... */
    struct slice owner; /* ... and is locked by this owner; NONE: it is not */
    bool is_submitted;  /* it does not, but a submission of that id waits */
    bool is_of_other;   /* it is for another node, and waited for so long that we read it, too */
};

/* What X, S and the types are: rows/task.h. */
/* clang-format off */
#define NOTICE_COLUMNS(X, S) \
    X(task,       text)   S  \
    X(sender,     text)   S  \
    X(kind,       text)   S  \
    X(at,         number) S  \
    X(body,       text)   S  \
    X(refused_at, time)   S  \
    X(reason,     text)
/* clang-format on */

/* The next ones to be decided, by seq. Numbers become visible out of order: the reader goes round.
 * Those of a task of which one up to after_seq waits are left out: it comes first. */
struct notice_read {
    int64_t after_seq; /* 0: from the first */
    size_t limit;
    size_t bytes_max; /* of their bodies; one is read whatever it has. 0: any */
    /* Where nodes share the store, what is for others is not read: a notice is for the owner of its
     * task; else for the part that a hash of the task names, which has distance 0. A part with
     * another distance reads what has waited for so many patiences, as have all earlier ones of
     * its task: nodes whose clocks differ wrote them. So who reads a notice reads these, too. If
     * the task has another owner, each distance is one larger, and NOTICE_OWNER_PATIENCES times as
     * many. */
    uint32_t parts, part; /* parts <= 1: all */
    struct slice me;      /* an owner */
    int64_t patience_ms;
    int64_t now;             /* for a body without a clock */
    struct notice_row *rows; /* out */
    size_t count;            /* out */
    bool more;               /* out */
};

/* What becomes of a notice that changed nothing. */
struct notice_verdict {
    int64_t seq;
    int64_t refused_at; /* 0: it is deleted; else it is kept, with the reason */
    struct slice reason;
};

enum {
    /* Each change of a parent writes all its children at work, up to a thousand. */
    NOTICES_OF_CHANGE_MAX = 256,
    NOTICE_OWNER_PATIENCES = 4, /* one that lives takes its own, unless it is stuck */
};

#endif
