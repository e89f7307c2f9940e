#ifndef DISPATCH_WORK_H
#define DISPATCH_WORK_H

/*
 * A work call of an agent's instance (POST /v1/agents/{agent}/work): results that it hands in,
 * and room for requests. The server makes it from a message, the scheduler answers it: once its
 * results are durable, or there is a request for it, or its wait is over.
 */

#include "base/arena.h"
#include "base/heap.h"
#include "base/list.h"
#include "core/decide.h"

enum { WORK_MAX = 1000 /* places and results of one call */ };

/* What became of a result: the words of the protocol. */
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
    bool elsewhere;            /* neither: the result will come from somewhere else */
    uint32_t tries;            /* calls that the attempt made to the service behind; 0: not told */
    struct slice resume;       /* JSON for the next attempt; NONE */
    enum result_status status; /* out */
};

/* A request for the agent, as it goes out. */
struct work_request {
    struct slice token, task, step, action;
    enum direction direction;
    uint32_t attempt;
    struct slice idempotency_key, input, traceparent;
    int64_t complete_by;
    int64_t heartbeat_ms; /* the longest silence; 0: any */
    struct slice resume;  /* what an attempt before left for it, or NONE */
    /* With direction UNDO, what is to be undone: */
    struct slice forward_key, forward_input, forward_output; /* output NONE: null */
    uint32_t forward_attempts;
    bool forward_in_doubt;
};

struct agent;
struct instance;

struct work {
    /* Set by whoever makes it. */
    struct arena arena; /* holds the work itself and all it points to */
    void *user;         /* the server's; it clears this when the client has gone */
    struct slice agent_name, instance_name;
    uint32_t max; /* places; 0: results only */
    int64_t wait_ms;
    bool instead; /* of the calls of this instance that are parked: they come home */
    bool says_holding;
    struct slice *holding; /* tokens */
    size_t holding_count;
    struct work_result *results;
    size_t result_count;

    /* The answer. */
    bool failed; /* the store did not take it: try again */
    struct work_request *requests;
    size_t request_count;
    struct slice *stop; /* tokens of attempts to be stopped */
    size_t stop_count;
    int64_t waited_ms;

    /* Dispatch's and the scheduler's own. */
    struct agent *agent;
    struct instance *instance;
    struct link turn;       /* in agent.calls while it has room */
    struct heap_node timer; /* the end of its wait */
    struct link assigned;   /* of the scheduler's elements: attempts it is to carry */
    uint32_t assigned_count;
    uint32_t unsettled; /* results and attempts of it that are not durable yet */
    int64_t arrived_at;
    bool parked, closed, gone;
};

struct work *work_new(void);
void work_free(struct work *w);
const char *result_status_text(enum result_status s);

#endif
