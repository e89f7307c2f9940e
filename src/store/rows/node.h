#ifndef STORE_ROWS_NODE_H
#define STORE_ROWS_NODE_H

/* Nodes, leases and fences: who works on a store that is shared. */

#include "base/base.h"

/* The leader's proof. A batch with a fence whose epoch is no longer that of the lease ends
 * ERR_CONFLICT as a whole. */
struct fence {
    struct slice lease;
    uint64_t epoch;
};

/* Before a node's name: the lease that it holds as "node/boot" while it lives. */
#define NODE_LEASE "node/"
/* What the supervisor that leads holds, as "node/boot". */
#define SUPERVISOR_LEASE "supervisor"

/* What a node does besides answering questions. */
enum node_role {
    NODE_SCHEDULER = 1,
    NODE_SUPERVISOR = 2,
    NODE_ROLES = NODE_SCHEDULER | NODE_SUPERVISOR,
};

/* A node as the others know it: what it wrote at its start and when it began to end, and (out, of
 * node_list) the state of its leases. */
struct node_row {
    struct slice name;
    uint64_t boot;
    struct slice url; /* how clients reach it; NONE: not reported */
    unsigned roles;   /* enum node_role */
    struct slice version;
    struct slice agents; /* that are connected to it, a JSON array of names; NONE: not reported */
    int64_t grammar;     /* the newest words of definitions that it knows; 0: those of before */
    int64_t started_at;  /* 0: it has not written anything yet */
    bool draining;       /* it ends */
    int64_t lease_until; /* out: of NODE_LEASE; 0: it never had one */
    bool alive;          /* out: that lease has not run out */
    bool leads;          /* out: its supervisor has the lease to lead, which has not run out */
};

/* The columns of the table `node` behind its name, as far as the node writes them. A `boot` is that
 * of the row; `scheduler` and `supervisor` are flags, one for each bit of the roles. What X, S and
 * the other types are: rows/task.h. */
/* clang-format off */
#define NODE_COLUMNS(X, S)        \
    X(said_by,    boot)         S \
    X(url,        text)         S \
    X(schedules,  scheduler)    S \
    X(supervises, supervisor)   S \
    X(version,    text)         S \
    X(started_at, number)       S \
    X(draining,   flag)         S \
    X(agents,     text)         S \
    X(grammar,    number)
/* clang-format on */

/* Nodes whose lease ran out longer ago than this are left out of lists. */
#define NODE_FORGOTTEN_MS INT64_C(86400000)

/* No lease is longer. One that ends later than so far ahead was written by a clock that is right no
 * more, and counts as run out. */
#define LEASE_MAX_MS INT64_C(60000)

/* An attempt to take or renew a lease. Whether it has run out, and until when it then lasts, is by
 * the store's own clock where there is one: a node that is wrong about the time can neither steal
 * nor keep it. */
struct lease_try {
    struct slice name, holder;
    int64_t now;       /* for a body without a clock (no `now`) */
    int64_t length_ms; /* from now on, at most LEASE_MAX_MS; 0: the holder gives it up */
    bool seize;        /* whoever has it: an older boot of the same node, say */
};

/* What nodes keep in memory although any of them may change it. Each change raises the number of
 * its kind, in its transaction, and they become visible in the order of the numbers: who knows all
 * up to a number, and reads no higher one, knows all. All 0 where the store is not shared. */
struct generations {
    uint64_t workflows, tokens, agents;
    uint64_t outbox; /* what people did to messages */
};

struct lease {
    struct slice holder;            /* who has it */
    uint64_t epoch;                 /* raised whenever the holder changes */
    int64_t until;                  /* by the clock that judges it */
    struct generations generations; /* about when it was taken */
};

/* What a node that shares the store does every second, at the price of one statement: it renews its
 * leases, and learns whether others left something for it to do. */
struct survey {
    struct slice lease, owner;  /* NODE_LEASE with the node's name; "node/boot", which holds it */
    bool leads;                 /* that of the supervisor is taken or renewed, too */
    int64_t now;                /* for a body without a clock, as in struct lease_try */
    int64_t length_ms;          /* of both leases */
    const struct slice *agents; /* for whom there is room here ... */
    size_t agent_count;

    struct lease own, lead;   /* out: as `lease` returns them; `lead` only if it was tried */
    bool *waiting;            /* out: ... of each: are there tasks that wait for it alone? */
    bool *among;              /* out: ... and such that wait for it among others? */
    bool requested;           /* out: some task of ours has a request */
    bool orphans;             /* out: there are tasks for CLAIM_NODE */
    bool messages;            /* out: there are some in the outbox that were not set aside */
    bool submissions;         /* out: some wait, of any node's part */
    bool locks;               /* out: CLAIM_LOCK may find tasks */
    bool notices;             /* out: some are to be decided */
    uint64_t signals_refused; /* out: others were refused, at most 10000 */
    bool overruns;            /* out: evaluations were counted that took too long */
    int64_t due_at;           /* out: when the first task that sleeps is due; 0: none does */
    int64_t wait_due_at;      /* out: the same of those at a `wait` */
    int64_t among_due_at;     /* out: the same of those that wait for agents, too */
    int64_t wake_at;          /* out: the least of all tasks; 0: there is none */
    /* out: nodes with the role NODE_SCHEDULER whose leases run, with this one; and how many of
     * them come before this one by name */
    uint32_t schedulers, schedulers_before;
};

#endif
