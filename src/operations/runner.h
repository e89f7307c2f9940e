#ifndef OPERATIONS_RUNNER_H
#define OPERATIONS_RUNNER_H

/*
 * Works on the operations of the store: asks the scheduler, task by task, and writes down how far
 * it is. One node of a cluster does so, by a lease (OPERATION_LEASE); the fence of each operation's
 * revision keeps what is written right should two believe that they may.
 *
 * It stands back for everybody else: few asks are in flight, pages are read and written in the
 * background, and after each page it rests for as long as that took.
 *
 * It lives on the loop's thread, and is called turn by turn.
 */

#include "operations/operation.h"

struct runner;

struct runner_config {
    struct slice holder; /* "node/boot", for the lease */
    bool shared;         /* others may work on operations, too */
    int64_t lease_ms;    /* default 10 s */
    int64_t look_ms;     /* how often others' operations are looked for; default 3 s */
};

struct runner_outside {
    void *arg;
    int64_t (*now)(void *arg);    /* the store's time */
    int64_t (*steady)(void *arg); /* ms that never jump */
    /* How many asks more may be in flight now: 0 while others need the place. */
    size_t (*room)(void *arg);
    /* Hands it to the scheduler. Its first answer goes to runner_answered. */
    void (*ask)(void *arg, struct ask *a);
    /* How an operation stands has become durable. NULL: nobody is to be told. */
    void (*told)(void *arg, const struct operation *op);
};

/* `background`: of jobs of which nobody waits for the next. */
struct runner *runner_new(const struct runner_config *c, struct store_queue *queue,
                          struct store_queue *background, const struct registry *workflows,
                          const struct runner_outside *outside);
void runner_free(struct runner *r); /* no job of it is with the store, no ask with the scheduler */

/* Does what is due. Returns in how many ms to call again; -1: not before something arrives. */
int64_t runner_turn(struct runner *r);

/* An operation was stored or changed here: it is looked for at once. */
void runner_look(struct runner *r);

bool runner_owns(const struct runner *r, const struct ask *a);
void runner_answered(struct runner *r, struct ask *a);

/* From now on nothing is begun; the lease is given up when all is back. */
void runner_stop(struct runner *r);
bool runner_is_busy(const struct runner *r); /* something of it is with store or scheduler */

bool runner_has_jobs(const struct runner *r); /* with the store */

struct runner_stats {
    size_t running; /* operations at work here */
    uint64_t asked, done, refused, failed, gone;
    int64_t lead_until; /* steady: until then something may be begun; 0: nothing may */
};
void runner_stats(const struct runner *r, struct runner_stats *ret);

#endif
