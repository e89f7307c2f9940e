#ifndef SIM_NODE_H
#define SIM_NODE_H

/*
 * The nodes: each has the real scheduler and the real supervisor over its own way to the simulated
 * store, with crashes, drains, suspensions and restarts. Arrivals come in through here, answers
 * leave through agents.h and people.h.
 *
 * A run has one node that has the store for itself (as over SQLite), or several that share it (as
 * over PostgreSQL). A slot is a process: two may have the same name for a while, when a node is
 * started again while its old process still lives.
 */

#include "operations/runner.h"
#include "outbox/courier.h"
#include "scheduler/intake.h"
#include "scheduler/library.h"
#include "scheduler/scheduler.h"
#include "sim/disk.h"
#include "sim/flow.h"
#include "store/store_time.h"
#include "supervisor/supervisor.h"

enum { NODES_MAX = 5, NAMES_MAX = 3, LOST_PERIODS_MAX = 500 };

/* Time that all nodes lost, as the world knows it. */
struct lost_period {
    int64_t from, until; /* in the store's time */
    int64_t ended_at;    /* in the world's, which never goes back */
    bool usual;          /* a node may be used to it: then no task's own deadline moves */
};

struct node {
    uint32_t slot, name; /* the name is "n" and one more than that */
    char me[24];         /* "n1/3", as its rows have it */
    struct disk disk;
    struct scheduler *scheduler;
    struct supervisor *supervisor;
    struct runner *runner; /* of operations; NULL: nobody wants any */
    struct intake *intake; /* of submissions in SQL; NULL: there are none */
    struct courier *courier;
    struct channel *channel;  /* of its messages */
    struct watch *watch;      /* over its alerts: bell.h */
    bool troubled;            /* the store is, it says */
    struct library *library;  /* of several nodes */
    struct registry registry; /* what it knows */
    struct registry_wait curious;
    unsigned roles; /* enum node_role */
    uint64_t boot;
    bool used; /* the slot is a process, up or down */
    bool up;   /* arrivals are taken */
    bool dead; /* it has crashed, its remains are not cleared away yet */
    bool draining, left;
    bool last;               /* it will not come back */
    bool narrow;             /* few tasks fit in its memory: the others have to wait */
    bool short_batches;      /* what was decided at once may be committed in any order */
    size_t batch_bytes;      /* after which a batch gets no more; 0: as it is by default */
    struct store_time *time; /* what it knows of the store's clock, where that is shared */
    int64_t skew;            /* by which it is wrong about it for good */
    int64_t drift_ppm;       /* of its steady clock */
    int64_t drains_since, drain_until;
    int64_t asleep_at, sleeps_until; /* suspended */
    int64_t deaf_until;              /* the network does not reach it */
    int64_t down_at, up_at;
    int64_t turn_at;
    uint64_t turn_number; /* of the turn that is scheduled */
    int64_t turned_at;
    uint32_t spins;          /* turns of which nothing came */
    uint64_t turns_left_out; /* of its process, as far as they were counted */
    uint64_t deeds;          /* arrivals, jobs and answers */
};

struct nodes {
    struct node list[NODES_MAX];
    uint32_t names; /* how many nodes there are */
    bool shared, calm;
    int64_t skew_drawn_max; /* nodes are wrong about the store's clock by that for good, at most */
    int64_t skew_max;       /* and by that at all, in the whole run */
    int64_t round_trip_max; /* to the store, as far as clocks are concerned */
    int64_t store_lost_since; /* the store is away; 0: it is not */
    uint64_t boots[NAMES_MAX];
    unsigned roles[NAMES_MAX];
    struct registry registry; /* all that is or will be stored, for the checkers */
    struct token_key *key;
    int64_t dark_since; /* no node is awake; 0: some are */
    struct lost_period lost[LOST_PERIODS_MAX];
    uint32_t lost_count;
    int64_t troubled_at; /* the last moment at which something befell any of them */
};

extern struct nodes nodes;

#define NODES_FOREACH(n)                                                   \
    for (struct node *n = nodes.list; (n) < nodes.list + NODES_MAX; (n)++) \
        if (!(n)->used) {                                                  \
        } else

void nodes_begin(bool shared);
void nodes_clocks_are(int64_t skew_max); /* so wrong for good, at most */
void nodes_boot(void);                   /* the first time */
void nodes_end(void);
void nodes_calm(void); /* some that are away never come back, all the others do */

struct node *node_any(void);            /* one that is a process, or NULL */
struct node *node_named(uint32_t name); /* the newest process of that name, or NULL */
bool nodes_are_well(void);              /* all are up, awake, and here to stay */
int64_t nodes_quiet_since(void);        /* since when nothing befell any of them */
bool nodes_are_narrow(void);

int64_t node_now(const struct node *n);    /* by its clock, of the store's time */
int64_t node_steady(const struct node *n); /* a clock that never jumps */
/* To be called whenever a node goes or comes (`started`: it is up from now on). */
void nodes_notice_dark(bool started);
void nodes_lose_store(void);
void nodes_failed_over(int64_t ahead_ms); /* by so much the store's time has jumped */
bool node_is_up(const struct node *n);
bool node_is_awake(const struct node *n);
bool node_hears(const struct node *n); /* the network reaches it, and it takes what comes */
bool node_schedules(const struct node *n);
bool node_knows(struct node *n, const struct flow *f); /* if not, it will soon */
bool node_owns(const struct node *n, const char *owner);
void node_crash(struct node *n, const char *when);
void node_drain(struct node *n);
void node_suspend(struct node *n, int64_t ms);
void node_usurp(struct node *n); /* it is started again while it lives */

/* While the node is suspended, what it would do is put off until it wakes up. */
bool node_sleeps(const struct node *n, void (*happen)(void *arg, uint64_t n), void *arg,
                 uint64_t number);

/* The loop: at once, or some time soon, as a loop does that has other things to do. */
void node_turn(struct node *n);
void node_turn_soon(struct node *n);
void node_turn_later(struct node *n);   /* the same, never at once: from within a turn */
void node_turn_quietly(struct node *n); /* the same, with no draw */

#endif
