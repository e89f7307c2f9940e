#ifndef LIBINTACT_REQUEST_H
#define LIBINTACT_REQUEST_H

/*
 * A request that an agent holds: from the answer of the server that brought it until the server
 * has acknowledged its result, or nobody wants one any more.
 *
 * A request belongs to one thread at a time: the one that drives the agent; while it is in work,
 * the one that runs its handler and, if it is kept, the one that answers it. What is atomic is
 * shared.
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
    atomic_uint uses;
};

struct delivery *delivery_new(void); /* one use, the caller's */
void delivery_unuse(struct delivery *d);

/* How far the work is. Whoever finds both ANSWERED and RETURNED true of a kept request is done with
 * it. */
enum request_state {
    REQUEST_KEPT = 1,     /* it is answered by somebody else than its handler */
    REQUEST_CLAIMED = 2,  /* an answer is being written: others come too late */
    REQUEST_ANSWERED = 4, /* it is written */
    REQUEST_RETURNED = 8, /* the handler has returned and left a kept request behind */
};

struct outbox;

/* How to try again, as intact_retry_wait_ms takes it. */
struct retry_rule {
    unsigned tries_max;
    int64_t wait_ms, max_wait_ms;
};

/* The agent has forgotten a request. `status`: what the server said of its result, by now durable;
 * NONE: it has not heard of one. Not called for what an agent leaves behind that is freed. */
typedef void request_released_fn(void *arg, struct slice status);

struct intact_request {
    struct link link; /* in a queue of the pool, or the results of a peer or call */
    struct delivery *delivery;
    struct peer *peer; /* from which it came, and to which its result goes */
    struct call *call; /* that carries its result now; NULL: none */
    struct outbox *outbox;
    intact_handler *run; /* NULL: there is none for its action */
    void *arg;
    intact_stopper *on_stop; /* NULL: nobody asks, or it was called; under the outbox's lock */
    void *stop_arg;
    struct slice token;
    const char *task, *step, *action, *idempotency_key, *input, *forward, *forward_key,
        *traceparent, *resume;
    enum intact_direction direction;
    unsigned attempt;
    int64_t deadline; /* CLOCK_BOOTTIME, ms */
    atomic_bool stopped;

    /* Heartbeats, see heartbeat.h and pulse.h. */
    int64_t heartbeat_ms;      /* 0: none are wanted */
    _Atomic int64_t beat_by;   /* until then the next one has to be acknowledged */
    atomic_bool lost;          /* it was not, and somebody was told so */
    atomic_bool is_beaten_for; /* by the library */
    int64_t pulse_at;          /* when the library beats by itself, if it does */
    struct peer *beat_peer;    /* to whom they go */
    struct peer *beat_on;      /* whose call carries one now; NULL: none */
    struct link beat_link;     /* in the agent's heartbeats, while `beat` waits to be sent */
    struct buf beat;           /* the latest one */
    struct buf left_resume;    /* what is left for the next attempt */

    struct retry_rule rule;
    atomic_uint tries;                /* that were begun */
    int64_t tried_at;                 /* when the latest was; of the thread that tries */
    bool begun;                       /* it has a place, as the driving thread knows */
    atomic_uint state;                /* of enum request_state */
    bool in_work;                     /* as the driving thread knows it: not done */
    struct buf result;                /* what goes into `results`; empty: nothing is to be said */
    uint32_t refused;                 /* how often a call with this result alone was refused */
    request_released_fn *on_released; /* NULL: nobody wants to know */
    void *released_arg;
};

enum { PULSES = 3 }; /* beats in the time of one */

/* A result longer than this is refused here: a server would refuse all the call with it. */
enum { RESULT_MAX = 1 << 20 };

/* Reads one of `requests`. NULL: it lacks a field; it cannot be worked on. `base` is the moment on
 * our clock at which the server's time_left_ms began to count. */
struct intact_request *request_read(struct delivery *d, const struct json *j, int64_t base);
void request_free(struct intact_request *r);

/* Runs the handler unless the deadline has passed. True: it is done, `result` is what is to be
 * said. False: it is kept, and may be gone. */
bool request_run(struct intact_request *r) MUST_USE;

bool request_is_over(const struct intact_request *r);    /* past its deadline, or out of touch */
int64_t request_stop_at(const struct intact_request *r); /* when it will be, as it looks now */
void request_tell_stop(struct intact_request *r); /* the server wishes so; by the driving thread */
void request_drop_if_late(struct intact_request *r); /* what was to be said */

/* In place of a result that the server cannot take: an error that says so. By the driving thread.
 */
void request_replace(struct intact_request *r);

/* From the handler of a request, which is kept. Called by the thread that drives the agent. */
void request_on_released(struct intact_request *r, request_released_fn *fn, void *arg);

/* As intact_answer, with what is in a result beside its token: the members of an object, one of
 * "output", "error" and "elsewhere" among them. It is JSON, of at most RESULT_MAX bytes. */
void request_answer_members(struct intact_request *r, const struct json *object);

bool request_is_kept(const struct intact_request *r); /* and its handler has returned */

#endif
