#ifndef SIMULATION_RUN_H
#define SIMULATION_RUN_H

/*
 * One simulated run: a test of the file is played among faults, which are a given list or drawn
 * from a seed, and the rules are looked at. The faults that struck are a list that gives the same
 * run again.
 */

#include "base/prng.h"
#include "simulation/rules.h"

/* How faults are drawn. */
struct draw {
    struct prng prng;
    uint32_t per_million; /* of the places, so many are struck */
    uint32_t max;         /* not more faults than that */
    unsigned kinds;       /* bits by enum fault_kind: those of this run */
    /* That of a run with two nodes, which is drawn beforehand, as its number of nodes is fixed.
     * FAULT_NONE: it has one node. */
    struct fault of_nodes;
};

struct run_config {
    const struct suite *suite;
    const struct test_case *test;
    const struct rules *rules;
    struct coverage *coverage; /* NULL: not wanted */
    /* One of the two; both NULL: nothing goes wrong. */
    const struct fault_list *faults;
    struct draw *draw;
    bool tells;  /* the timeline is wanted */
    bool points; /* the places are wanted */
};

/* How a run ended. */
struct run_end {
    bool is_end; /* false: nothing more happens, and the task has not ended */
    enum task_state state;
    struct slice code, message; /* of the error; NONE: there is none */
    struct slice steps;         /* JSON object: the state of each step */
    struct slice waits;         /* what it waits for, if it has not ended */
};

/* A place that a run came by. */
struct run_point {
    struct fault_point point;
    enum fault_kind struck; /* FAULT_NONE: it was not */
};

struct run {
    struct run_config config;
    struct trial trial; /* its arena has all that is below */
    struct run_end end;
    int64_t took_ms;
    struct rule_verdict broken_rule; /* the first one that was not kept */
    bool deadline_passed;            /* the task's complete-by */
    uint32_t attempts; /* the most that a step made; of the first fault's step, if it has one */
    bool after_pivot;  /* a pivot had completed when the first fault struck */
    struct slice stays, gap; /* names of steps: their effects stay; they failed, and it went on */
    struct slice unclear;    /* members of the world that the default rule cannot compare */
    struct slice broken;     /* the file is wrong: an effect failed, ... NONE: it is not */
    uint32_t broken_at;      /* its place in the file */
    struct fault_list struck;
    size_t struck_cap;
    struct run_point *points;
    size_t point_count, point_cap;
    uint64_t visits;   /* places in all, also those at which an earlier fault lasts */
    size_t after_last; /* points from this one on came after the last fault of the list struck */
    /* While it runs: */
    struct fault_source source;
    struct trial_watch watch;
    struct slice task; /* JSON of .task, if a rule needs it */
    /* If it is told, and the task stopped or waits: what `intact why` says. */
    struct slice summary, moves;
};

/* Plays it. r: uninitialised. */
void run_play(struct run *r, const struct run_config *c);
void run_close(struct run *r);

/* The same end: state, error, states of steps. */
bool run_end_equal(const struct run_end *a, const struct run_end *b);

#endif
