#ifndef TESTING_TRIAL_H
#define TESTING_TRIAL_H

/*
 * One test while it runs: the engine with its task, the world, and what is on record of both.
 * trial.c runs it, agent_player.c acts for the agents, acts.c for operators, senders and voters,
 * observer.c watches the tasks, verdict.c compares with what is expected.
 */

#include "base/list.h"
#include "base/map.h"
#include "testing/coverage.h"
#include "testing/suite.h"
#include "testing/timeline.h"
#include "testing/world.h"
#include "virtual/engine.h"

/* Something that is not as the test says, and where it says so. */
struct problem {
    uint32_t at;
    struct slice text;
};

struct problems {
    struct problem *list;
    size_t count, cap;
};

/* An effect, or its undo. */
struct effect_event {
    struct slice name; /* "charge", "undo charge" */
    int64_t at;
};

/* A task, as it was last seen. */
struct seen_task {
    struct slice id;
    const struct workflow *workflow;
    enum task_state state;
    uint16_t count; /* of units */
    struct seen_unit {
        enum step_state state;
        uint32_t item;
        bool was_open, has_begun;
    } * units;
};

/* Looks at a run whenever the world or the task has changed. */
struct trial_watch {
    void *arg;
    /* `task`: the root, if it has changed; otherwise NULL: the world has. */
    void (*changed)(void *arg, const struct workflow *w, const struct task *task);
};

struct trial {
    const struct suite *suite;
    const struct test_case *test;
    struct coverage *coverage;         /* NULL: not wanted */
    bool has_nodes;                    /* several: they are named */
    bool fills_in;                     /* "?" is no problem: update.h */
    const struct fault_source *faults; /* what goes wrong; NULL: nothing does */
    struct fault_source own_faults;    /* that of the test */
    const struct trial_watch *watch;   /* NULL: nobody watches */
    bool does_not_end;                 /* what was wrong with it */
    uint32_t commits, stops;           /* so far */
    struct outage *outages;
    struct arena arena;
    struct engine *engine;
    struct world_state world;
    struct timeline timeline;
    struct problems problems;
    struct map tasks;    /* seen_task by id */
    struct map counters; /* of requests: uint32_t by step and direction */
    struct effect_event *effects;
    size_t effect_count, effect_cap;
    size_t acts_left;              /* planned, and not answered yet */
    size_t plays_left;             /* requests that agents work at */
    struct link jobs;              /* the same: agent_player.c */
    const struct json *input_tree; /* of the task; NULL: nobody has looked at it */
    /* The task itself: */
    struct ask submission;
    bool is_refused;
    enum task_state state;
    int64_t ended_at; /* when it was last at an end, or in error; 0: not yet */
    struct slice error_code, error_message, output;
    struct slice waits; /* what it waits for, if nothing more happens; NONE */
    struct slice steps; /* JSON object: the state of each step */
};

#define TRIAL_ID SLICE("test")

void trial_open(struct trial *t, const struct suite *s, const struct test_case *test,
                struct coverage *coverage);
/* The same among faults of that source (NULL: those of the test). */
void trial_open_among(struct trial *t, const struct suite *s, const struct test_case *test,
                      struct coverage *coverage, const struct fault_source *faults);
/* Lets it happen, and compares nothing. */
void trial_play(struct trial *t);
/* Runs it to its end; what is wrong then is in t->problems. */
void trial_run(struct trial *t);
void trial_close(struct trial *t);

void trial_problem(struct trial *t, uint32_t at, const char *fmt, ...) PRINTF(3, 4);
void trial_effect(struct trial *t, const char *prefix, struct slice name);

static inline void trial_changed(struct trial *t, const struct workflow *w, const struct task *task)
{
    if (t->watch)
        t->watch->changed(t->watch->arg, w, task);
}

static inline int64_t trial_now(const struct trial *t)
{
    return engine_now(t->engine);
}

/* agent_player.c */
void player_serve_all(struct trial *t);
void player_request(void *arg, struct slice agent, const struct work_request *r);
void player_close(struct trial *t);
void player_result(void *arg, struct slice token, enum result_status status);

/* acts.c */
void acts_submit(struct trial *t);
void acts_plan(struct trial *t);
void acts_add(struct trial *t, const struct act *a, int64_t at); /* one that no test has */

/* observer.c */
void observer_changed(void *arg, const struct workflow *w, const struct task *task);

/* verdict.c: adds what differs from the expectations to t->problems. */
void verdict_find(struct trial *t);

#endif
