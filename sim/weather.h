#ifndef SIM_WEATHER_H
#define SIM_WEATHER_H

/*
 * What goes wrong in a run, and how often: drawn from its seed, each thing by itself, so that runs
 * differ in kind (some have only lost messages, some only a bad disk, some everything). Chances are
 * per mille.
 */

#include "base/base.h"

struct weather {
    /* messages */
    uint32_t call_lost, call_doubled, call_slow;
    uint32_t answer_lost, answer_slow;
    uint32_t gone_noticed; /* the server learns that a client has gone */
    /* agents, of each request */
    uint32_t refuses, fails_none, fails_unknown, refuses_unknown, silent, hangs, slow, dies;
    bool records;                      /* they know what was begun before they were started */
    uint32_t transactions, rolls_back; /* effects that take time to be committed; that are not */
    uint32_t undo_refuses, names_retry_after, ignores_stop,
        deaf;                    /* deaf: dies before it reads the answer */
    uint32_t limits;             /* of agents and actions: how likely each is */
    int64_t limits_ms;           /* mean time between changes of them; 0: none */
    bool breakers;               /* that open sooner than by default */
    int64_t service_ms, hand_ms; /* mean times between outages of services; of hands on breakers */
    /* the store, of each transaction */
    uint32_t store_fails, store_unknown, store_stalls, store_refuses, read_fails;
    uint32_t store_ms; /* what a transaction takes at most, if it does not stall */
    /* the node: mean times between, in ms; 0: never */
    int64_t crash_ms, suspend_ms, drain_ms;
    uint32_t crash_inside;             /* at one of the bad moments inside a transaction's life */
    int64_t outage_max_ms;             /* the longest a node is away */
    int64_t blackout_ms;               /* all nodes at once */
    int64_t usurp_ms, cut_ms, deaf_ms; /* two processes of a name; no way to the store, to agents */
    int64_t failover_ms;               /* the database goes, a standby comes */
    uint32_t standby_clock;            /* has another clock */
    uint32_t clock_jumps;              /* of each start */
    int64_t clock_jump_max_ms;
    /* workflows */
    bool alone; /* one node, with a store for itself */
    bool wild_clocks;
    bool roles;                   /* not every node does everything */
    uint32_t deposes;             /* leaders, in mid-scan */
    bool pivots, bad_expressions; /* many of them */
    /* people */
    int64_t operator_ms;
    uint32_t operator_answers; /* alerts that a person reacts to */
};

extern struct weather weather;

void weather_draw(void);
void weather_theme(void); /* after it: sometimes one thing goes wrong above all */
void weather_calm(void);  /* from now on nothing goes wrong */

#endif
