#ifndef VIRTUAL_ENGINE_H
#define VIRTUAL_ENGINE_H

/*
 * One node in memory and in virtual time: the real scheduler, supervisor and intake over the store
 * in memory, without threads and network. Its caller plays agents and clients, and may let the node
 * die at a transaction. Or two nodes that share the store, with leases: what one does not do any
 * more, the other one takes over.
 *
 *     struct engine *g = engine_new(&config);
 *     engine_serve(g, SLICE("stock"));          an agent is connected
 *     engine_ask(g, &mine.ask);                 a submission, a verb, a signal, a vote
 *     while (engine_step(g, until))             the next moment at which anything happens
 *         ;
 *
 * Time passes only between steps, and jumps to the next moment at which something is due. The
 * supervisor scans only when a row is overdue: the scans between would find nothing. Of two nodes
 * that are well, surveys are left out in the same way.
 */

#include "scheduler/scheduler.h"
#include "virtual/agenda.h"

struct engine;

/* What becomes of a transaction. */
enum engine_fate {
    ENGINE_STORES,
    ENGINE_DIES_BEFORE, /* the node dies, and nothing of it is stored */
    ENGINE_DIES_AFTER,  /* it is stored, and the node dies before it knows */
    ENGINE_HANGS_AFTER, /* it is stored, and the node hangs before it knows; then it goes on */
};

/* What is told of the life of a node. */
enum engine_life {
    ENGINE_STARTS,     /* again, after it died */
    ENGINE_WAKES,      /* it hung, and goes on with what it knew */
    ENGINE_TAKES_OVER, /* it has claimed tasks of the other one, whose lease had expired */
};

enum {
    ENGINE_INTERVAL_MS = 1000, /* of the supervisor */
    ENGINE_TIMEOUT_MS =
        5000, /* an agent whose result is not taken for so long tries another node */
};

/* What becomes of a node that dies, or hangs. */
struct engine_outage {
    int64_t down_ms;  /* then it starts again, or goes on */
    int64_t clock_ms; /* so far its clock was set meanwhile, ahead or back */
};

struct engine_config {
    struct registry *workflows; /* of all tasks; it must outlive the engine */
    int64_t now;                /* the time at which it is ready */
    unsigned nodes;             /* 1 (or 0), or 2 */
    void *arg;
    /* An agent got a request. What it points to is valid during the call. */
    void (*request)(void *arg, struct slice agent, const struct work_request *r);
    /* An attempt is to be stopped; it may be ignored. */
    void (*stop)(void *arg, struct slice token);
    /* What became of a result: accepted, late, ... */
    void (*result)(void *arg, struct slice token, enum result_status status);
    /* A revision of a task is durable. */
    void (*changed)(void *arg, const struct workflow *w, const struct task *t);
    /* A transaction of that node, which changes tasks, is about to be stored. A node that dies
     * starts again later, over what was stored. Agents and clients then repeat what was not
     * answered, at another node if there is one. NULL: all are stored. */
    enum engine_fate (*commits)(void *arg, struct slice node, struct engine_outage *ret);
    /* It does; may be NULL. */
    void (*lives)(void *arg, enum engine_life what, struct slice node);
};

/* The user of each ask begins with this. */
struct asker {
    void (*answered)(struct ask *a);
};

struct engine *engine_new(const struct engine_config *c);
void engine_free(struct engine *g);

int64_t engine_now(const struct engine *g);
int64_t engine_clock(const struct engine *g);              /* what the node's clock shows */
int64_t engine_moment(const struct engine *g, int64_t at); /* when its clock shows that */
struct agenda *engine_agenda(struct engine *g);            /* for what its caller plans */

/* An instance of that agent is connected, with room for any number of attempts. */
void engine_serve(struct engine *g, struct slice agent);

/* The instance of that agent sends a result. It is copied. */
void engine_result(struct engine *g, struct slice agent, const struct work_result *r);

/* That attempt is alive. */
void engine_heartbeat(struct engine *g, struct slice agent, struct slice token);

/* Reads a task and passes it to `changed`: what became durable when the node died was not reported.
 * Nothing happens if there is no such task. */
void engine_look(struct engine *g, struct slice id);

/* Asks; a->user is a struct asker. */
void engine_ask(struct engine *g, struct ask *a);

/* Does all that is due at the next moment, not later than `until`. False: nothing is due until
 * then; the time is then `until`, unless that is INT64_MAX. */
bool engine_step(struct engine *g, int64_t until);

/* Whether one of several nodes is down or hangs: it comes back at a moment of its own. */
bool engine_awaits_node(const struct engine *g);

/* Whether the same moment does not come to an end: then engine_step returns false. */
bool engine_is_stuck(const struct engine *g);

#endif
