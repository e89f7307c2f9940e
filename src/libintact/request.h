#ifndef LIBINTACT_REQUEST_H
#define LIBINTACT_REQUEST_H

/*
 * A request that an agent holds: from the server's answer that delivered it until the server has
 * acknowledged its result, or needs none.
 *
 * A request belongs to one thread at a time: the one that drives the agent; while it is in work,
 * the one that runs its handler and, if it is kept, the one that answers it. Atomic fields are
 * shared.
 */

#include <intact/agent.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/list.h"
#include "json/json.h"

/* The memory of one answer of the server. Its requests point into it; it is freed with the last. */
struct delivery {
    struct buf text;
    struct arena arena;
    atomic_uint uses;
};

struct delivery *delivery_new(void); /* one reference, the caller's */
void delivery_unuse(struct delivery *d);

/* The progress of a request. The thread that sees both ANSWERED and RETURNED on a kept request
 * finishes it. */
enum request_state {
    REQUEST_KEPT = 1,     /* it will be answered outside its handler */
    REQUEST_CLAIMED = 2,  /* an answer is being written: others come too late */
    REQUEST_ANSWERED = 4, /* it is written */
    REQUEST_RETURNED = 8, /* the handler has returned, and kept the request */
};

struct outbox;

/* Retry parameters of intact_retry_wait_ms. */
struct retry_rule {
    unsigned tries_max;
    int64_t wait_ms, max_wait_ms;
};

/* Called when the agent drops a request. `status`: the server's answer to its result, which is
 * durable by then; NONE: the server has none. Not called for requests that are freed after their
 * agent. */
typedef void request_released_fn(void *arg, struct slice status);

struct intact_request {
    struct link link; /* in a queue of the pool, or the results of a peer or call */
    struct delivery *delivery;
    struct peer *peer; /* its source, and the destination of its result */
    struct call *call; /* that carries its result now; NULL: none */
    struct outbox *outbox;
    intact_handler *run; /* NULL: its action has no handler */
    void *arg;
    intact_stopper *on_stop; /* NULL: none, or it was called; under the outbox's lock */
    void *stop_arg;
    struct slice token;
    const char *task, *step, *action, *idempotency_key, *input, *forward, *forward_key,
        *traceparent, *resume;
    enum intact_direction direction;
    unsigned attempt;
    int64_t deadline; /* CLOCK_BOOTTIME, ms */
    atomic_bool stopped;

    /* Heartbeats, see heartbeat.h and pulse.h. */
    int64_t heartbeat_ms;      /* 0: not required */
    _Atomic int64_t beat_by;   /* when the next acknowledgement is due */
    atomic_bool lost;          /* it did not come in time, and the handler was told */
    atomic_bool is_beaten_for; /* by the library */
    int64_t pulse_at;          /* the next automatic heartbeat, if they are on */
    struct peer *beat_peer;    /* the server that gets them */
    struct peer *beat_on;      /* whose call carries one now; NULL: none */
    struct link beat_link;     /* in the agent's heartbeats, while `beat` waits to be sent */
    struct buf beat;           /* the latest one */
    struct buf left_resume;    /* the resume details for the next attempt */

    struct retry_rule rule;
    atomic_uint tries;                /* begun */
    int64_t tried_at;                 /* start of the latest; used by the trying thread */
    bool begun;                       /* it has a place; used by the driving thread */
    atomic_uint state;                /* of enum request_state */
    bool in_work;                     /* not done; used by the driving thread */
    struct buf result;                /* its entry in `results`; empty: none */
    uint32_t refused;                 /* how often a call with this result alone was refused */
    uint32_t left_out;                /* how often an answer had no outcome for it ... */
    int64_t send_at;                  /* ... and when it is sent again */
    request_released_fn *on_released; /* may be NULL */
    void *released_arg;
};

enum { PULSES = 3 }; /* automatic heartbeats in one interval */

/* Longer results are refused here: a server would refuse the whole call. */
enum { RESULT_MAX = 1 << 20 };

/* Reads one of `requests`. NULL: a field is missing, so it cannot be executed. `base` is the local
 * time at which the server's time_left_ms began to count. */
struct intact_request *request_read(struct delivery *d, const struct json *j, int64_t base);
void request_free(struct intact_request *r);

/* Runs the handler unless the deadline has passed. True: it is done, with its answer in `result`.
 * False: it is kept, and may be freed already. */
bool request_run(struct intact_request *r) MUST_USE;

bool request_is_over(const struct intact_request *r);    /* its deadline has passed, or no heartbeat
                                                          * was acknowledged in time */
int64_t request_stop_at(const struct intact_request *r); /* when that will be, in the present
                                                          * state */
void request_tell_stop(struct intact_request *r);        /* on the server's request; by the driving
                                                          * thread */
void request_drop_if_late(struct intact_request *r);     /* drops its result */

/* Replaces a result that the server cannot read by an error that says so. By the driving thread. */
void request_replace(struct intact_request *r);

/* From the handler of a kept request. The function is called by the thread that drives the
 * agent. */
void request_on_released(struct intact_request *r, request_released_fn *fn, void *arg);

/* Like intact_answer, with the members of a result except the token: an object with one of
 * "output", "error" and "elsewhere". JSON of at most RESULT_MAX bytes. */
void request_answer_members(struct intact_request *r, const struct json *object);

bool request_is_kept(const struct intact_request *r); /* and its handler has returned */

#endif
