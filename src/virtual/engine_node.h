#ifndef VIRTUAL_ENGINE_NODE_H
#define VIRTUAL_ENGINE_NODE_H

/*
 * The nodes of an engine, for the files of src/virtual only: their parts, and how they die, hang
 * and come back. An engine has one node with its store, or two that share it (engine.h).
 */

#include "base/map.h"
#include "supervisor/supervisor.h"
#include "virtual/engine_family.h"

enum { ENGINE_NODES_MAX = 2 };

struct engine_node {
    struct engine *engine;
    unsigned number; /* from 0 */
    char name[16];   /* "n1"; of an engine with one node "test" */
    char me[32];     /* "n1/1": its name and its start */
    uint64_t boot;
    struct store_queue queue;
    struct link jobs;
    struct scheduler *scheduler; /* NULL: it is down, and so are the others */
    struct supervisor *supervisor;
    struct intake *intake;
    struct notices *notices;
    int64_t due_at;    /* by its parts' own account and its clock, INT64_MAX: never */
    int64_t family_at; /* the same of intake and notices */
    bool is_woken;     /* something arrived since the last turn */
    bool is_closing;
    uint64_t life;          /* what was planned for an earlier one is void */
    bool is_dying;          /* from now on nothing of it counts */
    bool is_hung;           /* it gets no turns, and what it has begun is not completed */
    struct store_job *held; /* the job at whose end it hung */
    int64_t died_at;        /* by its clock */
    struct engine_outage outage;
};

/* An agent with one instance, whose call is always parked, at one node. */
struct served {
    struct engine_node *node;
    struct slice name;
    struct link link;
};

struct engine {
    struct engine_config config;
    struct agenda agenda;
    struct arena arena;
    int64_t now;
    struct store *store;
    struct token_key *key;
    struct engine_node nodes[ENGINE_NODES_MAX];
    unsigned node_count;
    struct engine_node *acting; /* whose job is at the store */
    struct link served;
    int64_t ahead;     /* of the node's clock, by which the parts go */
    int64_t scan_at;   /* the last one, or the one that was left out last: by its clock */
    int64_t active_at; /* of several nodes: when one last changed something, went or came */
    bool is_stuck;
    /* If a node can die: */
    struct store_ops ops; /* of the store, with a commit that asks what becomes of it */
    const struct store_ops *inner;
    struct link asked; /* struct asked: what clients have not had an answer to */
    struct link sent;  /* struct sent: results that no agent knows to be received */
    /* If there are several nodes: */
    struct map homes;    /* by token: the node that sent that request */
    struct map reported; /* uint64_t by task: the newest revision that was reported */
};

/* An ask, as it was made. */
struct asked {
    struct link link;
    struct ask *ask, as_made;
    struct engine_node *at; /* which node has it; NULL: none */
};

/* A result, in memory of its own. */
struct sent {
    struct link link;
    struct arena arena;
    struct slice agent;
    struct work_result result;
    unsigned at;   /* bits by node: which have it */
    bool is_known; /* to be received */
};

static inline bool engine_is_several(const struct engine *g)
{
    return g->node_count > 1;
}

/* A node that takes what arrives: one that does not hang, if there is any; NULL: all are down. */
struct engine_node *engine_usable(struct engine *g);

/* engine_sent.c: results of agents, and what clients ask. */
void sent_answered(struct engine_node *n, struct sent *s);
void sent_free(struct sent *s);
void sent_lost(struct engine_node *n);         /* the node died: others get what it had */
void sent_again(struct engine_node *n);        /* it started: it gets what nobody has */
void sent_timed_out(void *arg, uint64_t life); /* it hangs: others get what it has */
bool asked_forget(struct engine *g, const struct ask *a, bool stays);

/* engine_node.c */
void engine_node_open(struct engine_node *n);
void engine_node_close(struct engine_node *n);
/* What is due. True: there may be more. */
bool engine_node_turn(struct engine_node *n);
void engine_node_send(struct engine_node *n, struct slice agent, const struct work_result *r,
                      void *user);
void engine_node_park(void *arg, uint64_t life); /* arg: a struct served */
void engine_node_may_die(struct engine *g);
/* Whether the task's revision is none that is older than what was reported. */
bool engine_node_reports(struct engine *g, const struct task *t);
void result_copy(struct arena *a, const struct work_result *r, struct work_result *ret);

/* engine_leap.c: the surveys of several nodes. */
/* Passes the time until then, or until something is due, if only surveys would be made until then.
 * False: it did not. */
bool engine_leap(struct engine *g, int64_t until);

#endif
