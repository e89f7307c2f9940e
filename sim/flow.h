#ifndef SIM_FLOW_H
#define SIM_FLOW_H

/*
 * Workflows drawn from the seed: written as JSON for the definition parser, and kept here for the
 * checkers. Both are made side by side, so that neither is derived from the other.
 */

#include "definition/registry.h"

enum { FLOWS_MAX = 4, FLOW_STEPS_MAX = 12, FLOW_STEPS_FEW = 7, SERVICES_MAX = 3 };

enum { FLOW_SATISFIES = 80 /* of the numbers of a repeated step: all above end it */ };

struct flow_retry {
    uint32_t attempts, defers;
    int64_t wait_ms, max_wait_ms, defer_ms; /* the factor is 2 */
};

struct flow_step {
    uint32_t service, undo_service; /* agents, by number */
    enum undo_kind undo;
    enum on_failure on_failure;
    uint32_t before; /* bits: direct predecessors */
    uint32_t past;   /* all steps that must end before it */
    uint32_t future; /* all steps before which it must end */
    int64_t complete_by_ms, undo_complete_by_ms;
    int64_t heartbeat_ms, undo_heartbeat_ms; /* longest allowed silence; 0: no limit */
    struct flow_retry retry, undo_retry;
    bool on_undo;   /* runs when the task turned back and everything is undone */
    bool may_break; /* an expression of it may fail, or skip it */
    bool is_wait;
    int64_t wait_ms;      /* its length; 0: until the submission ... */
    int64_t wait_plus_ms; /* ... and this, which may be negative */
    bool is_repeated; /* until a round of this number, or an output that happens to satisfy it */
    uint32_t rounds;
    bool says_round; /* in its input, if it has one of its own */
    uint32_t factor;
    int64_t every_ms, max_every_ms, for_ms;
    bool is_signal; /* then is_wait is true, too */
    char signal_name;
    bool takes_all;    /* else only those that are ok */
    int64_t signal_ms; /* until when it waits; 0: without limit */
    bool has_default;
    bool is_approval; /* then is_wait is true, too. Who may vote: voters.h */
    uint32_t people;
    bool not_submitter;
    int64_t escalate_ms; /* 0: it asks nobody else later */
    int64_t asks_ms;     /* until when it asks; 0: without limit */
    bool is_child;       /* it, or each of its items, starts a task of ... (family.h). Then is_wait
                            is true, too */
    const struct flow *child;
    int64_t child_ms; /* how long that may take; 0: without limit */
    enum { INPUT_SAME, INPUT_OWN, INPUT_BAD } child_input;
    bool is_each; /* it has items (items.h). Then is_wait is true, too */
    uint32_t concurrency, items_max;
    uint32_t items_fixed; /* so many are in the definition; 0: the input has the list */
    bool items_go_on;     /* whatever fails */
    uint32_t tolerated;   /* so many of 10 000 may fail */
    bool items_break;     /* an expression fails for some */
    bool item_rounds;     /* its items are repeated: see is_repeated */
};

struct flow {
    char name[16];
    struct flow_step steps[FLOW_STEPS_MAX];
    uint32_t step_count;
    enum on_failure on_failure;
    int64_t complete_by_ms, undo_complete_by_ms; /* 0: none */
    int64_t undo_until_ms;                       /* 0: as long as the task is kept */
    uint32_t lock_keys, lock_max;                /* keys: 0: it has no lock */
    bool lock_shared;                            /* with all that are */
    bool lock_replaces;                          /* of those that wait the newest stays */
    bool lock_refuses;                           /* nobody waits: who finds no room is refused */
    bool fixed;                                  /* made for a scene: nothing is drawn */
    const struct definition *definition;         /* for the checkers; each node has its own */
    struct slice text;
    bool stored;
    bool undo_signal; /* signal u has its tasks undone */
};

/* It starts one child; else none, or one for each item. */
static inline bool flow_has_one_child(const struct flow_step *f)
{
    return f->is_child && !f->is_each;
}

/* Draws `count` workflows into flows[], parsed and registered. */
void flows_draw(struct flow *flows, uint32_t count, struct registry *r);

/* Does this run have steps of on_undo, and undo of processed tasks? */
bool flows_go_back(void);

/* Does this run have steps that wait for signals? */
bool flows_signal(void);

/* Does this run have steps in which people decide? */
bool flows_approve(void);

/* Does one of its steps exclude the submitter, who has to be known then? */
bool flow_excludes(const struct flow *f);

/* Does this run have steps that wait? */
bool flows_wait(void);

/* Does this run have steps that are repeated? */
bool flows_repeat(void);
void flow_draw_repeated(struct flow *f, uint32_t number);

/* Does an output with this number satisfy a repeated step in this round? */
bool flow_is_satisfied(const struct flow_step *f, uint32_t round, uint32_t number);

/* How long after an answer in this round the next one begins. */
int64_t flow_round_gap(const struct flow_step *f, uint32_t round);

/* Does this run have workflows with locks? */
bool flows_lock(void);

/* Are its steps so many, and its outputs so long, that some are stored outside the tasks'
 * documents? */
bool flow_is_long(const struct flow *f);

/* Gives the task's undo the time that the attempts of each undo take: otherwise the definition is
 * refused. For who lets a step be undone by a call. */
void flow_fit_undo(struct flow *f);

uint32_t flow_step_number(struct slice name); /* by its name, or that of its item */

/* Stores it; nodes must find it themselves. */
void flow_store(struct flow *f);

/* Fills in what a scene left out (deadlines of a second, one attempt), parses and registers it.
 * Each undo refers to its step's output, null if there is none. */
void flow_fix(struct flow *f, const char *name, struct registry *r);

#endif
