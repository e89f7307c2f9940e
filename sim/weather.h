#ifndef SIM_WEATHER_H
#define SIM_WEATHER_H

/*
 * The faults of a run and their frequency: each is drawn from the seed separately, so that runs
 * differ in kind (only lost messages, only a bad disk, everything). Chances are per mille.
 */

#include "base/base.h"

struct weather {
    /* messages */
    uint32_t call_lost, call_doubled, call_slow;
    uint32_t answer_lost, answer_slow;
    uint32_t gone_noticed; /* the server detects that a client is gone */
    /* agents, per request */
    uint32_t refuses, fails_none, fails_unknown, refuses_unknown, silent, hangs, slow, dies;
    bool records;                      /* they know what was begun before their start */
    uint32_t transactions, rolls_back; /* effects whose commit takes time; that are rolled back */
    uint32_t undo_refuses, names_retry_after, ignores_stop,
        deaf;                    /* deaf: dies before it reads the answer */
    uint32_t limits;             /* of agents and actions: the chance of each */
    int64_t limits_ms;           /* mean time between their changes; 0: none */
    bool breakers;               /* that open sooner than the default */
    int64_t service_ms, hand_ms; /* mean times between outages of services; breakers by hand */
    /* the store, per transaction */
    uint32_t store_fails, store_unknown, store_stalls, store_refuses, read_fails;
    uint32_t store_ms; /* longest transaction without a stall */
    /* nodes: mean times between faults in ms; 0: never */
    int64_t crash_ms, suspend_ms, drain_ms;
    uint32_t crash_inside;             /* at a bad moment within a transaction */
    int64_t outage_max_ms;             /* longest time a node is down */
    int64_t blackout_ms;               /* all nodes at once */
    int64_t usurp_ms, cut_ms, deaf_ms; /* two processes of a name; no way to the store, to agents */
    int64_t failover_ms;               /* the database fails over to a standby */
    uint32_t standby_clock;            /* whose clock differs */
    uint32_t clock_jumps;              /* per start */
    int64_t clock_jump_max_ms;
    /* workflows */
    bool alone; /* one node with its own store */
    bool wild_clocks;
    bool roles;                   /* nodes have different roles */
    uint32_t deposes;             /* leaders, during a scan */
    bool pivots, bad_expressions; /* many of them */
    /* people */
    int64_t operator_ms;
    uint32_t operator_answers; /* alerts that an operator reacts to */
};

extern struct weather weather;

void weather_draw(void);
void weather_theme(void); /* after weather_draw: sometimes makes one kind of fault dominant */
void weather_calm(void);  /* stops all faults */

#endif
