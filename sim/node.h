#ifndef SIM_NODE_H
#define SIM_NODE_H

/*
 * The node: the real scheduler and the real supervisor over the simulated disk, with crashes,
 * drains, suspensions and restarts. Arrivals come in through here, answers leave through agents.h
 * and people.h.
 */

#include "scheduler/scheduler.h"
#include "supervisor/supervisor.h"

enum { LOST_PERIODS_MAX = 500 };

/* Time that the node lost, as the world knows it. */
struct lost_period {
    int64_t from, until;
};

struct node {
    struct scheduler *scheduler;
    struct supervisor *supervisor;
    struct registry registry;
    struct token_key *key;
    uint64_t boot;
    bool up;   /* arrivals are taken */
    bool dead; /* it has crashed, its remains are not cleared away yet */
    bool draining;
    bool narrow; /* few tasks fit in its memory: the others have to wait */
    int64_t drain_until;
    int64_t asleep_at, sleeps_until; /* suspended */
    int64_t down_at, up_at;
    int64_t turn_at;
    uint64_t turn_number; /* of the turn that is scheduled */
    int64_t turned_at;
    uint32_t spins; /* turns of which nothing came */
    uint64_t deeds; /* arrivals, jobs and answers */
    struct lost_period lost[LOST_PERIODS_MAX];
    uint32_t lost_count;
};

extern struct node node;

void node_begin(void);
void node_end(void);
void node_boot(void);

bool node_is_up(void);
void node_crash(const char *when);
void node_drain(void);
void node_suspend(int64_t ms);

/* While the node is suspended, what it would do is put off until it wakes up. */
bool node_sleeps(void (*happen)(void *arg, uint64_t n), void *arg, uint64_t n);

/* The loop: at once, or some time soon, as a loop does that has other things to do. */
void node_turn(void);
void node_turn_soon(void);

#endif
