#ifndef OPERATIONS_RUNNER_H
#define OPERATIONS_RUNNER_H

/*
 * Runs the operations in the store: asks the scheduler, task by task, and stores the progress. One
 * node of an installation does so, by a lease (OPERATION_LEASE). If two nodes believe that they
 * hold it, the fence of each operation's revision keeps the stored progress correct.
 *
 * It gives way to all other work: few asks are in flight, pages are read and written in the
 * background, and after each page it rests for as long as that took.
 *
 * It runs on the event loop, turn by turn.
 */

#include "operations/operation.h"

struct runner;

struct runner_config {
    struct slice holder; /* "node/boot", for the lease */
    bool shared;         /* other nodes may run operations, too */
    int64_t lease_ms;    /* default 10 s */
    int64_t refresh_ms;  /* how often other nodes' operations are read; default 3 s */
};

struct runner_outside {
    void *arg;
    int64_t (*now)(void *arg);    /* the store's time */
    int64_t (*steady)(void *arg); /* ms, without jumps */
    /* How many more asks may be in flight now: 0 while others need the room. */
    size_t (*room)(void *arg);
    /* Passes it to the scheduler. Its first answer goes to runner_answered. */
    void (*ask)(void *arg, struct ask *a);
    /* The progress of an operation is durable. May be NULL. */
    void (*progressed)(void *arg, const struct operation *op);
};

/* `background`: a queue for jobs that nothing waits for. */
struct runner *runner_new(const struct runner_config *c, struct store_queue *queue,
                          struct store_queue *background, const struct registry *workflows,
                          const struct runner_outside *outside);
void runner_free(struct runner *r); /* no job is at the store, no ask at the scheduler */

/* Does what is due. Returns in how many ms to call again; -1: not before something arrives. */
int64_t runner_turn(struct runner *r);

/* An operation was stored or changed here: it is read at once. */
void runner_refresh(struct runner *r);

bool runner_owns(const struct runner *r, const struct ask *a);
void runner_answered(struct runner *r, struct ask *a);

/* Nothing is begun from now on; the lease is given up when everything is back. */
void runner_stop(struct runner *r);
bool runner_is_busy(const struct runner *r); /* something is at the store or the scheduler */

bool runner_has_jobs(const struct runner *r); /* something is at the store */

struct runner_stats {
    size_t running; /* operations in progress here */
    uint64_t asked, done, refused, failed, gone;
    int64_t lead_until; /* steady: until then work may begin; 0: none may */
};
void runner_stats(const struct runner *r, struct runner_stats *ret);

#endif
