#ifndef STORE_ROWS_MESSAGE_H
#define STORE_ROWS_MESSAGE_H

/* The outbox: notifications about tasks. */

#include "store/rows/audit.h"
#include "store/rows/node.h"

/* A notification about a task: a row of the outbox. It is written in the same transaction as the
 * change it reports, or not at all, and kept until it is delivered. Most are sent at once. One that
 * cannot be sent is set aside, into a table of its own, where it is found by its target. */
struct message {
    int64_t seq;       /* rises, for each task in the order of what happened; given by the store */
    struct slice task; /* its id */
    struct slice name; /* which one of the task's: "12/processed" */
    struct slice target; /* as in reply_to */
    struct slice body;   /* the CloudEvent, JSON. NONE: it is made of its data when it is wanted
                            (store/codec/envelope.h). All that are read from a store have it */
    struct slice data, source;
    struct slice trace; /* W3C traceparent, or NONE: then there is none */
    uint64_t sequence;
    int64_t created_at;
    /* Only if set aside: */
    bool aside, dead;   /* dead: not retried until an operator revives it */
    uint32_t tries;     /* that failed */
    int64_t retry_at;   /* 0: at once */
    int64_t since;      /* from when on it counts how long it is tried: created_at, or revived */
    struct slice story; /* of the last try; NONE: there was none */
};

/* The columns of a message behind its seq, and those that it has in the table `outbox_aside`. A
 * `standing` is read into `aside` and `dead`. What X, S and the other types are: rows/task.h. */
/* clang-format off */
#define MESSAGE_COLUMNS(X, S)       \
    X(task,       text)           S \
    X(name,       text)           S \
    X(target,     text)           S \
    X(body,       text)           S \
    X(created_at, number)
#define MESSAGE_ASIDE_COLUMNS(X, S) \
    X(state,      standing)       S \
    X(tries,      number)         S \
    X(retry_at,   time)           S \
    X(since,      number)         S \
    X(story,      text)
/* clang-format on */

/* A page of messages that wait, the oldest first. */
struct outbox_read {
    struct slice
        target;        /* NONE: those that were not set aside; otherwise those that were, for it */
    int64_t after_seq; /* the highest that was read. Older ones that are not set aside are looked
                          for as well, where rows do not become visible in their order ... */
    const int64_t *known; /* ... but for these, which the caller has already; rising */
    size_t known_count;
    const struct fence *fence; /* may be NULL. If the lease has another epoch, nothing is read */
    size_t limit, bytes_max;   /* a page ends behind the message with which it becomes as large */
    struct message *messages;  /* out */
    size_t count;
    bool more;
};

enum settle_kind {
    SETTLE_DELETE, /* it was delivered */
    SETTLE_ASIDE,  /* not now */
    SETTLE_DEAD,   /* never */
};

/* What became of a message. Nothing is written for a message that no longer exists. */
struct settlement {
    int64_t seq;
    bool aside; /* where it is */
    enum settle_kind kind;
    uint32_t tries;
    int64_t retry_at;
    struct slice story; /* NONE: what is there stays */
};

/* Messages that are set aside for one target. */
struct outbox_target {
    struct slice target;
    uint64_t count;     /* at most `most` */
    int64_t oldest_at;  /* when the first of them came to be */
    struct slice story; /* of its last try, or NONE */
};

/* The targets with messages that were set aside, in the order of their names. */
struct target_query {
    bool dead;          /* those with dead messages instead of those with waiting ones */
    struct slice after; /* NONE: from the first */
    size_t limit;
    size_t most; /* messages that are counted of each */
};

/* A listing, the oldest first. */
struct outbox_query {
    bool waiting, dead;        /* which of them; not both */
    struct slice target, task; /* NONE: any; not both */
    int64_t after_seq;
    size_t limit;
};

struct message_page {
    struct message *messages;
    size_t count;
    bool more;
};

/* What a person does to messages that are set aside: those of a target, of a task, one, or all. */
struct outbox_verb {
    bool drop; /* deletes those that are dead; otherwise all of them are tried, at once */
    struct slice target, task, name; /* NONE: any; name: of the task's */
    int64_t now;
    size_t limit;              /* of one call */
    int64_t after_seq;         /* in: 0 at first; out: where the next part goes on */
    const struct audit *audit; /* written if anything was done; may be NULL */
    uint64_t count;            /* out */
    bool more;                 /* out */
};

struct outbox_census {
    uint64_t waiting, dead; /* at most `most` each; waiting: set aside or not */
    int64_t oldest_at;      /* of those that wait; 0: none does */
};

#endif
