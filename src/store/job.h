#ifndef STORE_JOB_H
#define STORE_JOB_H

/*
 * Work for the store that must not hold up the loop: `run` is called where the store lives (its
 * thread; in the simulation after a delay), `done` later on the loop. Jobs run one at a time, in
 * the order in which they were handed over, so what one wrote the next one reads. One that is
 * urgent does not wait for others that are not.
 *
 * Embed struct store_job in what the job works on; no other code may access that in between.
 */

#include "base/list.h"
#include "store/store.h"

struct store_job {
    struct link link; /* of the queue */
    void (*run)(struct store_job *j, struct store *s);
    void (*done)(struct store_job *j);
    bool urgent;       /* a lease hangs on it */
    unsigned patience; /* of one in the background; for its thread */
    void *line;        /* of a reading that waits for its turn; for its thread */
    void *account;   /* of a reading: whose time `done` takes; of a change: whose it is; or NULL */
    size_t bytes;    /* out, of a reading: what it holds until `done` */
    int64_t took_us; /* out: how long `run` took; 0 if it is not measured */
};

struct store_queue {
    void (*submit)(struct store_queue *q, struct store_job *j);
};

#endif
