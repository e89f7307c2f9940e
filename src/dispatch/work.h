#ifndef DISPATCH_WORK_H
#define DISPATCH_WORK_H

/*
 * A work call of an agent's instance (POST /v1/agents/{agent}/work): its results, and places for
 * requests. The server makes it from an HTTP request, and the scheduler answers it once its results
 * are durable, there is a request for it, or its wait is over.
 */

#include "base/arena.h"
#include "base/heap.h"
#include "base/list.h"
#include "core/decide.h"

enum { WORK_MAX = 1000 /* limit of places and results per call */ };

/* The outcome of a result, in the words of the protocol. */
#define RESULT_STATUSES(X)  \
    X(ACCEPTED, "accepted") \
    X(REPEATED, "repeated") \
    X(LATE, "late")         \
    X(UNKNOWN, "unknown")

enum result_status {
#define X(name, text) RESULT_##name,
    RESULT_STATUSES(X)
#undef X
};

struct work_result {
    struct slice token;
    struct slice output; /* JSON; NONE with an error */
    bool failed;
    struct fault_note error;
    bool retryable;
    enum effect effect;
    int64_t retry_after_ms;
    bool elsewhere;            /* neither output nor error: the result will come from elsewhere */
    uint32_t tries;            /* calls that the attempt made to its service; 0: not reported */
    struct slice resume;       /* JSON for the next attempt, or NONE */
    enum result_status status; /* out */
    bool undecided;            /* out: instead of a status; the agent sends it again */
};

/* A request for the agent, as it is sent. */
struct work_request {
    struct slice token, task, step, action;
    enum direction direction;
    uint32_t attempt;
    struct slice idempotency_key, input, traceparent;
    int64_t complete_by;
    int64_t heartbeat_ms; /* longest allowed silence; 0: no limit */
    struct slice resume;  /* details left by an earlier attempt, or NONE */
    /* with direction UNDO, the step to undo: */
    struct slice forward_key, forward_input, forward_output; /* output NONE: null */
    uint32_t forward_attempts;
    bool forward_in_doubt;
};

struct agent;
struct instance;

struct work {
    /* set by its maker */
    struct arena arena; /* contains the work itself and everything it points to */
    void *user;         /* the server's; cleared when the client is gone */
    struct slice agent_name, instance_name;
    uint64_t by;  /* hash of the name of its token; 0: none */
    uint32_t max; /* places; 0: only results */
    int64_t wait_ms;
    bool instead; /* replaces this instance's parked calls: they are answered */
    bool says_holding;
    struct slice *holding; /* tokens */
    size_t holding_count;
    struct work_result *results;
    size_t result_count;

    /* the response */
    bool failed; /* the store did not take it: the client must try again */
    struct work_request *requests;
    size_t request_count;
    struct slice *stop; /* tokens of attempts to stop */
    size_t stop_count;
    int64_t waited_ms;

    /* owned by dispatch and the scheduler */
    struct agent *agent;
    struct instance *instance;
    struct link turn;       /* in agent.calls while it has room */
    struct heap_node timer; /* the end of its wait */
    struct link assigned;   /* of the scheduler's elements: attempts it will carry */
    uint32_t assigned_count;
    uint32_t unsettled; /* its results and attempts that are not durable yet */
    int64_t arrived_at;
    bool parked, closed, gone;
};

struct work *work_new(void);
void work_free(struct work *w);
const char *result_status_text(enum result_status s);

#endif
