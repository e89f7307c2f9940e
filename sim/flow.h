#ifndef SIM_FLOW_H
#define SIM_FLOW_H

/*
 * Workflows drawn from the seed: written as JSON for the definition parser, and kept here as the
 * checkers see them. The two are made side by side, so that neither is derived from the other.
 */

#include "definition/registry.h"

enum { FLOWS_MAX = 4, FLOW_STEPS_MAX = 12, FLOW_STEPS_FEW = 7, SERVICES_MAX = 3 };

struct flow_retry {
    uint32_t attempts, defers;
    int64_t wait_ms, max_wait_ms, defer_ms; /* the factor is 2 */
};

struct flow_step {
    uint32_t service, undo_service; /* agents, by number */
    enum undo_kind undo;
    enum on_failure on_failure;
    uint32_t before; /* bits: direct predecessors */
    uint32_t past;   /* all that have to end before it */
    uint32_t future; /* all that it has to end before */
    int64_t complete_by_ms, undo_complete_by_ms;
    int64_t heartbeat_ms, undo_heartbeat_ms; /* the longest silence; 0: any */
    struct flow_retry retry, undo_retry;
    bool on_undo;   /* it runs when the task goes back, after all that is undone */
    bool may_break; /* one of its expressions may fail, or skip it */
};

struct flow {
    char name[16];
    struct flow_step steps[FLOW_STEPS_MAX];
    uint32_t step_count;
    enum on_failure on_failure;
    int64_t complete_by_ms, undo_complete_by_ms; /* 0: none */
    int64_t undo_until_ms;                       /* 0: as long as a task is kept */
    bool fixed;                                  /* made for a scene: nothing of it is drawn */
    const struct definition *definition; /* as the checkers know it; each node has its own */
    struct slice text;
    bool stored;
};

/* Draws `count` of them into flows[], parsed and registered. */
void flows_draw(struct flow *flows, uint32_t count, struct registry *r);

/* Is this a run in which workflows have steps that run on undo, and processed tasks are undone? */
bool flows_go_back(void);

/* Has it so many steps, and outputs so long, that some of them leave the documents of its tasks? */
bool flow_is_long(const struct flow *f);

uint32_t flow_step_number(struct slice name); /* by what a flow calls it */

/* Somebody stores it: nodes have to learn of it by themselves. */
void flow_store(struct flow *f);

/* Fills in what a scene left out (deadlines of a second, one attempt), parses and registers it.
 * Each undo refers to its step's output, which is null where there is none. */
void flow_fix(struct flow *f, struct registry *r);

#endif
