#ifndef INSTRUCTIONS_FLOW_H
#define INSTRUCTIONS_FLOW_H

/*
 * Whole tasks in one thread: the scheduler over a store, a client that submits, agents that answer
 * at once, and a courier whose deliveries succeed. Time advances by 1 ms per turn.
 *
 * An action "fail" fails for good; all others succeed.
 */

#include "definition/registry.h"
#include "store/store.h"

struct flow;

struct flow_config {
    struct store *store;                          /* empty; owned by the flow */
    bool (*maintain)(struct store *s, bool idle); /* after each job; may be NULL */
    struct slice definition;
    struct slice input;   /* of each task; NONE: payload_in */
    const char *reply_to; /* NULL: no messages */
};

struct flow *flow_new(const struct flow_config *c);
void flow_free(struct flow *f);

/* Submits `tasks` tasks, at most `at_once` of them unfinished at a time, and runs until all have
 * ended and all their messages are delivered. */
void flow_run(struct flow *f, long tasks, long at_once);

const struct definition *flow_definition(const struct flow *f);
/* The row of one task that has ended, in `a`. */
void flow_row(struct flow *f, struct arena *a, struct task_row *ret);
/* The number of messages delivered so far. */
long flow_told(const struct flow *f);

#endif
