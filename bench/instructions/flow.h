#ifndef INSTRUCTIONS_FLOW_H
#define INSTRUCTIONS_FLOW_H

/*
 * Whole tasks in one thread: the scheduler over a store, a client that submits, agents that do at
 * once what they are asked, and a courier whose messages get there. Time goes on by 1 ms a turn.
 *
 * An action "fail" fails for good; all others are done.
 */

#include "definition/registry.h"
#include "store/store.h"

struct flow;

struct flow_config {
    struct store *store;                          /* empty; it becomes the flow's */
    bool (*maintain)(struct store *s, bool idle); /* after each job; may be NULL */
    struct slice definition;
    const char *reply_to; /* NULL: nobody is told */
};

struct flow *flow_new(const struct flow_config *c);
void flow_free(struct flow *f);

/* Submits so many tasks, with at most `at_once` in work at a time, and goes on until all have
 * ended, and all their messages are delivered. */
void flow_run(struct flow *f, long tasks, long at_once);

const struct definition *flow_definition(const struct flow *f);
/* The row of some task that ended, in `a`. */
void flow_row(struct flow *f, struct arena *a, struct task_row *ret);
/* How many messages were delivered so far. */
long flow_told(const struct flow *f);

#endif
