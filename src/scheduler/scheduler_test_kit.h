#ifndef SCHEDULER_SCHEDULER_TEST_KIT_H
#define SCHEDULER_SCHEDULER_TEST_KIT_H

/* A scheduler on a memory store, in one thread and virtual time, for its tests. */

#include "base/test.h"

#include "scheduler/scheduler.h"

enum { ASKS_MAX = 40 };

struct client {
    struct ask ask;
    char id[32];
    enum err expected; /* its outcome */
    bool answered;
};

struct stage {
    struct store *store;
    struct store_queue queue;
    struct store_job *job;
    struct registry registry;
    struct token_key *key;
    struct scheduler *scheduler;
    struct client clients[ASKS_MAX];
    size_t client_count;
    size_t requests; /* sent to agents */
    bool call_answered;
    bool client_gone; /* answers to work calls do not arrive */
    size_t ended;
    enum task_state ended_in; /* the last one */
    int troubles;             /* reports that the store failed, less those that it works again */
    struct arena arena;       /* of what is copied below */
    struct slice token;       /* of the first request */
    struct slice *tokens;     /* of the requests of the last answer */
    size_t token_count;
    struct slice idempotency_key, input; /* of the last one ... */
    uint32_t attempt;
    enum result_status status; /* of the last result ... */
    bool undecided;            /* ... which has none */
    int64_t now;
    bool asleep; /* until an event arrives */
    uint64_t turns;
};

void stage_begin(struct stage *s);
void stage_end(struct stage *s);
/* A node whose store others share. */
void stage_begin_shared(struct stage *s);
/* Another node joins it, and dies between two store jobs. */
void stage_join(struct stage *s, const struct stage *other);
void stage_leave(struct stage *s);
/* The process dies between two store jobs, and its node starts again. */
void stage_restart(struct stage *s);
struct scheduler_stats stage_stats(const struct stage *s);

/* Runs one turn and its store job; checks that the turn stays within its limit. */
void stage_turn(struct stage *s);
/* The two parts of it. True: the store has a job now. */
bool stage_turn_without_store(struct stage *s);
void stage_store(struct stage *s);

/* Lets that time pass, and runs turns until nothing is due. */
void stage_pass(struct stage *s, int64_t ms);

/* `rest`: what comes after the name of the workflow, in JSON. */
void stage_define(struct stage *s, const char *name, const char *rest);
struct client *stage_ask(struct stage *s, const struct ask *a);
struct client *stage_submit(struct stage *s, const char *workflow, struct slice input);
void stage_until_answered(struct stage *s, const struct client *c);

struct work *stage_call_of(const char *agent, uint32_t places);
/* Calls, and runs turns until the call is answered. */
void stage_call(struct stage *s, struct work *w);
/* Calls repeatedly until `count` requests have arrived. */
void stage_take_requests(struct stage *s, const char *agent, size_t count);

#endif
