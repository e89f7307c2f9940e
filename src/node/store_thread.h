#ifndef NODE_STORE_THREAD_H
#define NODE_STORE_THREAD_H

/* The thread on which the store is used: runs jobs one at a time, in order, and returns them to the
 * event loop. While it commits one batch, the loop gathers the next. */

#include <uv.h>

#include "store/job.h"

struct store_thread;

struct store_thread_config {
    struct store *store;
    /* Called when there is nothing to do, with idle = true after a quiet while. True: call again
     * soon. */
    bool (*maintain)(struct store *s, bool idle);
};

/* 0, or why the system does not let us have a thread, as libuv's (negative) code: then the loop is
 * to run once more, to let go of a handle. */
int store_thread_start(uv_loop_t *loop, const struct store_thread_config *c,
                       struct store_thread **ret);
struct store_queue *store_thread_queue(struct store_thread *t);

/*
 * A part of a long job that is not urgent: it runs when there is nothing else to do, or when the
 * other jobs have had `patience` times the time that the last such part took (0: after each round
 * of other jobs). Several of them take turns.
 */
void store_thread_background(struct store_thread *t, struct store_job *j, unsigned patience);

/* Since when the job at work, or the maintaining, has been so, on the monotonic clock; 0: none is.
 */
int64_t store_thread_busy_since_ms(struct store_thread *t);

/* Finishes what it was given, then ends the thread; `done` of those jobs is not called any more.
 * The memory is freed when libuv has let go of the handle. */
void store_thread_stop(struct store_thread *t);

#endif
