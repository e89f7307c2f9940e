#ifndef SIM_NODE_H
#define SIM_NODE_H

/*
 * The nodes: each has the real scheduler and the real supervisor over its own way to the simulated
 * store, with crashes, drains, suspensions and restarts. Arrivals come in here; answers leave
 * through agents.h and people.h.
 *
 * A run has one node with its own store (as with SQLite), or several that share one (as with
 * PostgreSQL). A slot is a process: two may have the same name for a while, if a node is restarted
 * while its old process still runs.
 */

#include "catalog/catalog.h"
#include "intake/intake.h"
#include "intake/notices.h"
#include "operations/runner.h"
#include "outbox/courier.h"
#include "scheduler/scheduler.h"
#include "sim/disk.h"
#include "sim/flow.h"
#include "store/store_time.h"
#include "supervisor/supervisor.h"

enum { NODES_MAX = 5, NAMES_MAX = 3, LOST_PERIODS_MAX = 500 };

/* Time that all nodes lost, as the world knows it. */
struct lost_period {
    int64_t from, until; /* in the store's time */
    int64_t ended_at;    /* in world time, which never goes back */
};

struct node {
    uint32_t slot, name; /* the name is "n" and this plus one */
    char me[24];         /* "n1/3", as in its rows */
    struct disk disk;
    struct scheduler *scheduler;
    struct supervisor *supervisor;
    struct runner *runner;   /* of operations; NULL: none in this run */
    struct notices *notices; /* of signals by SQL; NULL: none in this run */
    struct intake *intake;   /* of submissions by SQL; NULL: none in this run */
    struct ticker *ticker;   /* of schedules; NULL: none in this run */
    struct courier *courier;
    struct channel *channel;  /* for its messages */
    struct watch *watch;      /* over its alerts: bell.h */
    bool troubled;            /* it reports trouble with the store */
    struct catalog *library;  /* if there are several nodes */
    struct registry registry; /* its own */
    struct registry_wait curious;
    unsigned roles; /* enum node_role */
    uint64_t boot;
    bool used; /* the slot has a process, up or down */
    bool up;   /* it takes arrivals */
    bool dead; /* it has crashed, but is not cleaned up yet */
    bool draining, left;
    bool last;               /* it will not come back */
    bool narrow;             /* few tasks fit in its memory */
    bool short_batches;      /* decisions of one moment may be committed in any order */
    size_t batch_bytes;      /* batch size limit; 0: default */
    struct store_time *time; /* its knowledge of a shared store's clock */
    int64_t skew;            /* constant error of that */
    int64_t drift_ppm;       /* of its steady clock */
    int64_t drains_since, drain_until;
    int64_t asleep_at, sleeps_until; /* suspended */
    int64_t deaf_until;              /* the network does not reach it */
    int64_t down_at, up_at;
    int64_t turn_at;
    uint64_t turn_number; /* of the scheduled turn */
    int64_t turned_at;
    uint32_t spins;          /* turns without work */
    uint64_t turns_left_out; /* of its process, as counted so far */
    uint64_t deeds;          /* arrivals, jobs and answers */
};

struct nodes {
    struct node list[NODES_MAX];
    uint32_t names; /* number of nodes */
    bool shared, calm;
    int64_t skew_drawn_max;   /* maximum constant clock error of nodes */
    int64_t skew_max;         /* maximum clock error in the whole run */
    int64_t round_trip_max;   /* to the store, for clock measurements */
    int64_t store_lost_since; /* the store is unavailable; 0: it is not */
    uint64_t boots[NAMES_MAX];
    unsigned roles[NAMES_MAX];
    struct registry registry; /* everything that is or will be stored, for the checkers */
    struct token_key *key;
    int64_t dark_since; /* no node is awake; 0: some are */
    size_t rows_max;    /* of items in one read: few, as lists are short; 0: each has its own */
    struct lost_period lost[LOST_PERIODS_MAX];
    uint32_t lost_count;
    int64_t troubled_at; /* time of the latest fault of any node */
};

extern struct nodes nodes;

#define NODES_FOREACH(n)                                                   \
    for (struct node *n = nodes.list; (n) < nodes.list + NODES_MAX; (n)++) \
        if (!(n)->used) {                                                  \
        } else

void nodes_begin(bool shared);
void nodes_clocks_are(int64_t skew_max); /* maximum constant error */
void nodes_boot(void);                   /* for the first time */
void nodes_end(void);
void nodes_calm(void); /* some that are down never come back, all others do */

struct node *node_any(void);            /* one with a process, or NULL */
struct node *node_named(uint32_t name); /* the newest process of that name, or NULL */
bool nodes_are_well(void);              /* all are up, awake, and stay */
int64_t nodes_quiet_since(void);        /* since the last fault of any node */
bool nodes_are_narrow(void);

int64_t node_now(const struct node *n);    /* its estimate of the store's time */
int64_t node_steady(const struct node *n); /* a clock without jumps */
/* Must be called whenever a node goes or comes (`started`: it is up from now on). */
void nodes_notice_dark(bool started);
void nodes_lose_store(void);
void nodes_failed_over(int64_t ahead_ms); /* how far the store's time jumped */
bool node_is_up(const struct node *n);
bool node_is_awake(const struct node *n);
bool node_hears(const struct node *n); /* the network reaches it, and it takes arrivals */
bool node_schedules(const struct node *n);
bool node_knows(struct node *n, const struct flow *f); /* if not, it soon will */
bool node_owns(const struct node *n, const char *owner);
void node_crash(struct node *n, const char *when);
void node_drain(struct node *n);
void node_suspend(struct node *n, int64_t ms);
void node_usurp(struct node *n); /* restarts it while it runs */

/* While the node is suspended, postpones the event until it wakes up. */
bool node_sleeps(const struct node *n, void (*happen)(void *arg, uint64_t n), void *arg,
                 uint64_t number);

/* A turn of the event loop: at once, or soon, as if it had other work. */
void node_turn(struct node *n);
void node_turn_soon(struct node *n);
void node_turn_later(struct node *n);   /* the same, never at once: for calls within a turn */
void node_turn_quietly(struct node *n); /* the same, without a random draw */

#endif
