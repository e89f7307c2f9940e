#ifndef STORE_ROWS_LOCK_H
#define STORE_ROWS_LOCK_H

/* Locks: at most `max` tasks with the same lock ("NAME/KEY") are between their first step and their
 * end. Holders are recorded; waiting tasks are in the lock's queue (WAITING_LOCK). */

#include "base/base.h"

/* What a change of a task does to its lock. */
enum lock_move {
    LOCK_STAYS,
    LOCK_TAKE, /* it takes it: ERR_TAKEN if there is no room, and nothing of the change is done */
    LOCK_DROP, /* it gives it back */
    LOCK_QUIT, /* it leaves the queue without it: who is behind it is looked at */
};

/* A task that holds a lock. */
struct lock_holder {
    struct slice lock;
    struct slice task;
    int64_t seq;      /* of the task */
    int64_t since;    /* ms UTC */
    uint64_t waiting; /* how many wait for this lock; at most LOCK_WAITING_MOST are counted */
};

enum { LOCK_WAITING_MOST = 1000 };

/* Holders by the numbers of their tasks. */
struct lock_query {
    struct slice lock; /* NONE: any */
    int64_t after_seq; /* those behind it; 0: from the first */
    size_t limit;
};

/* The holders of one lock. */
struct lock_held {
    uint64_t count;    /* how many hold it */
    struct slice task; /* which of them has done so for longest ... */
    int64_t since;     /* ... and since when. 0: no task holds it */
};

struct lock_page {
    struct lock_holder *holders;
    size_t count;
    bool more;
};

#endif
