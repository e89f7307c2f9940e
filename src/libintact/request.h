#ifndef LIBINTACT_REQUEST_H
#define LIBINTACT_REQUEST_H

/*
 * A request that an agent holds: from the answer of the server that brought it until the server
 * has acknowledged its result, or nobody wants one any more.
 *
 * A request belongs to one thread at a time: the comms thread, or the worker that runs its handler.
 * Only `stopped` is written by the one and read by the other.
 */

#include <intact/agent.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/list.h"
#include "json/json.h"

/* The memory of one answer of the server. All of its requests point into it; it goes with the last.
 */
struct delivery {
    struct buf text;
    struct arena arena;
    uint32_t uses; /* by the comms thread alone */
};

struct delivery *delivery_new(void); /* one use, the caller's */
void delivery_unuse(struct delivery *d);

struct intact_request {
    struct link link; /* in a queue of the pool, or the results of a peer or call */
    struct delivery *delivery;
    struct peer *peer; /* from which it came, and to which its result goes */
    struct call *call; /* that carries its result now; NULL: none */
    const struct intact_handler *handler;
    struct slice token;
    const char *task, *step, *action, *idempotency_key, *input, *forward, *forward_key,
        *traceparent;
    enum intact_direction direction;
    unsigned attempt;
    int64_t deadline; /* CLOCK_BOOTTIME, ms */
    atomic_bool stopped;
    bool answered;         /* the handler spoke, even if it was to say nothing */
    struct buf result;     /* what goes into `results`; empty: nothing is to be said */
    struct link beat_link; /* in the agent's heartbeats, while `beat` waits to be sent */
    struct buf beat;
    uint32_t refused; /* how often a call with this result alone was refused */
};

/* A result longer than this is refused here: a server would refuse all the call with it. */
enum { RESULT_MAX = 1 << 20 };

/* Reads one of `requests`. NULL: it lacks a field; it cannot be worked on. `base` is the moment on
 * our clock at which the server's time_left_ms began to count. */
struct intact_request *request_read(struct delivery *d, const struct json *j, int64_t base);
void request_free(struct intact_request *r);

/* Runs the handler unless the deadline has passed; afterwards `result` is what is to be said. */
void request_run(struct intact_request *r);

#endif
