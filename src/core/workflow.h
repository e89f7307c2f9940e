#ifndef CORE_WORKFLOW_H
#define CORE_WORKFLOW_H

/*
 * A workflow: the steps of a task, their order, deadlines, retries and compensations, compiled from
 * a definition. Immutable; shared by all its tasks.
 *
 * The core knows the graph and the rules. The inputs of steps belong to definition/, which keeps
 * its compiled templates in `templates`.
 */

#include "base/base.h"

enum {
    STEPS_MAX = 1000,              /* of one workflow */
    APPROVE_PEOPLE_MAX = 20,       /* who have to agree */
    APPROVE_REMIND_MIN_MS = 60000, /* each reminder is a notice to every sink */
    VOTES_MAX = 1000,              /* of one task; all its steps need no more */
    APPROVE_GROUPS_MAX = 20,       /* that are asked, and to whom it escalates */
    ITEMS_MAX = 10000,             /* of one list */
    ITEMS_AT_WORK_MAX = 100,       /* of one step at a time */
    ITEMS_AT_WORK_ALL_MAX = 1000,  /* of all steps of a workflow together */
    SLOTS_MAX = 3000,              /* of one workflow: each_slots() of those at most */
};

/* What happens to a task when one of its steps has failed for good. */
enum on_failure { ON_FAILURE_UNDO, ON_FAILURE_HOLD, ON_FAILURE_CONTINUE };

/*
 * How often and when a step is retried. `attempts` counts the first one; the waits between them
 * grow from `wait_ms` by `factor_milli`/1000 up to `max_wait_ms`. Then come `defers` more attempts,
 * each after the extended wait `defer_ms`. Then on_failure applies.
 */
struct retry_rule {
    uint32_t attempts;
    uint32_t factor_milli;
    int64_t wait_ms, max_wait_ms;
    uint32_t defers;
    int64_t defer_ms;
    bool jitter;
};

/* One request to an agent: the step itself, or its compensation. */
struct call_spec {
    struct slice agent, action;
    int64_t complete_by_ms; /* length of each attempt */
    int64_t heartbeat_ms;   /* the longest silence of an attempt, less than its length; 0:
                             * unlimited */
    struct retry_rule retry;
};

/*
 * A step of one call may be repeated in rounds, until an answer satisfies it. Each round is a
 * request of its own. The gaps between an answer and the next round grow from `every_ms` by
 * `factor_milli`/1000 up to `max_every_ms`. A round that begins `for_ms` or more after the first
 * one is the last. See repeat.h.
 */
struct repeat_rule {
    int64_t for_ms; /* 0: the step is not repeated */
    int64_t every_ms, max_every_ms;
    uint32_t factor_milli;
    bool input_varies; /* its input depends on the round */
};

/* How a step is undone. UNDO_CHILD: its child is undone; only of KIND_TASK. */
enum undo_kind { UNDO_CALL, UNDO_NONE, UNDO_PIVOT, UNDO_CHILD };

/* What a step does. Only a call has attempts going forward; only a call and a child have an effect,
 * and perhaps an undo. */
enum step_kind {
    KIND_CALL,    /* requests something of an agent */
    KIND_WAIT,    /* waits for a length of time, or for a moment */
    KIND_SIGNAL,  /* waits for a signal from outside */
    KIND_APPROVE, /* people decide */
    KIND_TASK,    /* starts a child, a task of its own, and waits for its end */
    KIND_EACH,    /* does the same for each item of a list: see struct each_spec */
};

/*
 * A step with `for_each`. Of its items, those at work are in slots: units like steps, which follow
 * the steps of the workflow and of the task. The others wait for their turn, or are at rest in rows
 * of their own (struct items). The spec of a slot is that of the step, but for `kind`, what is done
 * for an item, and `repeat`, which only the slot has.
 *
 * A step has twice as many slots as items may be at work: one whose end is not durable yet keeps
 * its slot, and another begins in the same change. One more is there when all of these have items
 * that failed, and others at work: for what happens to one at rest.
 */
struct each_spec {
    uint32_t max_items;   /* a longer list is a mistake */
    uint16_t concurrency; /* items at work at a time; 0: the step has no for_each, and is no slot */
    bool goes_on;         /* all items are tried, whatever fails */
    uint16_t tolerate;    /* so many of 10 000 may fail: the others are still tried */
    uint16_t slots_at;    /* its slots: units from there on ... */
    uint16_t slot_count;  /* ... 0: it is a slot itself ... */
    uint16_t step;        /* ... of this step */
};

static inline uint16_t each_slots(uint16_t concurrency)
{
    return (uint16_t)(2 * concurrency + 1);
}

struct workflow_step {
    struct slice name;
    enum step_kind kind;
    struct call_spec call;     /* of KIND_CALL, and of KIND_EACH: that of its slots */
    struct repeat_rule repeat; /* of KIND_CALL, and only if undo_kind is UNDO_NONE */
    int64_t wait_ms;           /* of KIND_WAIT: its length; 0: it waits for a moment, which is given
                                * when it begins */
    struct signal_spec {
        const struct slice *names; /* it takes a signal of any of these names */
        uint16_t count;
        int64_t complete_by_ms; /* how long it waits; 0: without limit */
        struct slice otherwise; /* JSON: its output if none arrives in time; NONE: it fails */
    } signal;                   /* of KIND_SIGNAL */
    struct approve_spec {
        const struct slice *by; /* groups of persons who are asked */
        const struct slice *to; /* those who are asked, too, once escalate_ms have passed */
        uint16_t by_count, to_count;
        uint16_t people;        /* so many have to agree */
        bool not_submitter;     /* not the person who submitted the task */
        int64_t remind_ms;      /* how often they are reminded; 0: as other alerts */
        int64_t escalate_ms;    /* 0: nobody else is asked */
        int64_t complete_by_ms; /* as of a signal, ... */
        struct slice otherwise; /* ... if they have not decided by then */
    } approve;                  /* of KIND_APPROVE */
    struct child_spec {
        struct slice workflow;  /* of the child. Its version is that of the family */
        struct slice tags;      /* JSON object; NONE: those of its parent */
        int64_t complete_by_ms; /* after that the child is told to stop; 0: without limit */
    } child;                    /* of KIND_TASK */
    struct each_spec each;      /* of KIND_EACH, and of its slots */
    enum undo_kind undo_kind;
    struct call_spec undo; /* if undo_kind is UNDO_CALL */
    enum on_failure on_failure;
    /* It runs only when the task is undone, after the last compensation, but as a step: forward,
     * under a key of its own. It has no undo itself. */
    bool on_undo;
    const uint16_t *before; /* its predecessors: they end before it starts */
    const uint16_t *after;  /* its successors */
    uint16_t before_count, after_count;
};

/* What a task does whose lock has no room when it is submitted. */
enum if_taken { IF_TAKEN_WAIT, IF_TAKEN_REFUSE, IF_TAKEN_REPLACE };

/* At most `max` tasks with the same lock name and key are between their first step and their end.
 * The key is the task's: struct task. */
struct lock_rule {
    struct slice name; /* that of the workflow, or one that workflows share; NONE: no lock */
    int64_t max;
    enum if_taken if_taken;
};

struct workflow {
    struct slice name;
    int64_t version;
    int64_t complete_by_ms;      /* of the whole task; 0: none */
    int64_t undo_complete_by_ms; /* of the whole undo; 0: none */
    int64_t undo_until_ms;       /* how long after its end a processed task can be undone; 0: as
                                  * long as it is kept */
    enum on_failure on_failure;  /* when the task's complete-by passes */
    const struct slice *undo_signals; /* names: such a signal has the task undone */
    uint16_t undo_signal_count;
    struct lock_rule lock;
    uint16_t child_step_count;         /* how many units are of KIND_TASK */
    const struct workflow_step *steps; /* after them the slots of those with for_each */
    const uint16_t *order;             /* all steps, each after its predecessors */
    uint16_t step_count, slot_count;
    const void *templates; /* of definition/; opaque to the core */
};

static inline bool step_is_repeated(const struct workflow_step *ws)
{
    return ws->repeat.for_ms != 0;
}

/* Whether this unit is no step, but a slot for an item of one. */
static inline bool unit_is_slot(const struct workflow *w, int unit)
{
    return unit >= w->step_count;
}

/* The step of a unit: itself, or that of the item. */
static inline uint16_t unit_step(const struct workflow *w, uint16_t unit)
{
    return unit_is_slot(w, unit) ? w->steps[unit].each.step : unit;
}

/* Whether the graph is in order and all rules are within their limits. Tested after reading a
 * definition, asserted everywhere else. */
bool workflow_valid(const struct workflow *w);

/* The index of the step with that name, or -1. */
int workflow_step_index(const struct workflow *w, struct slice name);

#endif
