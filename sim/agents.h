#ifndef SIM_AGENTS_H
#define SIM_AGENTS_H

/*
 * Agents: a few services, each with several instances (workers) that poll for work, execute it, and
 * report results as libintact does. They report what they hold, repeat a result until it is
 * answered, and stop at their own deadline. They die, hang, refuse, go silent and misbehave,
 * depending on the weather.
 *
 * agents.c has the workers' behaviour, wire.c the calls between workers and nodes. A worker polls
 * all nodes.
 */

#include "dispatch/work.h"
#include "sim/ledger.h"
#include "sim/node.h"
#include "sim/subject.h"

enum { WORKERS_MAX = 12 };

struct call;

struct worker {
    uint32_t service;
    char name[24];
    uint32_t names; /* number of names it has had */
    uint64_t life;  /* events of an earlier life are void */
    bool up;
    uint32_t concurrency;
    uint32_t illness; /* illness.c */
    bool says_holding;
    bool calls_home;                 /* now and then it recalls parked calls; not in scenes */
    struct link gigs;                /* of struct gig: requests it holds */
    struct call *poll[NAMES_MAX];    /* its call for work, per node */
    struct call *handing[NAMES_MAX]; /* its call with results only */
};

/* A request that a worker holds. */
struct gig {
    struct link link;
    struct worker *worker;
    struct slice token;
    struct subject *task;
    uint32_t step, attempt;
    enum direction direction;
    int64_t deadline;
    int64_t heartbeat_ms, beat_every, heard_at; /* long.c: for a limit on silence */
    uint32_t beats_to;                          /* the node that gets its heartbeats */
    uint64_t life;                              /* its worker's */
    bool mute;                                  /* it sends no heartbeats */
    struct slice forward_output;
    uint32_t home;                         /* the node that gets its result */
    struct call *in;                       /* the call that carries its result */
    bool finished, dead, hangs, elsewhere; /* elsewhere: it reports nothing else */
    bool at_it, finish_due;      /* its transaction is open or waits; it is finished afterwards */
    enum ledger_verdict verdict; /* what its transaction must do */
    bool again; /* another worker began this attempt before, and may have had an effect */
    /* the result it will report */
    bool failed, retryable;
    enum effect effect;
    int64_t retry_after_ms;
    const char *code;
    struct slice output;
};

/* A request as received. */
struct errand {
    struct slice token, task, step;
    enum direction direction;
    uint32_t attempt;
    int64_t deadline; /* on the worker's clock */
    int64_t heartbeat_ms;
};

void agents_begin(uint32_t services);
void agents_calm(void); /* all workers are up from now on */

/* For scenes, in which agents do nothing at random. */

enum says {
    SAYS_UNSCRIPTED,
    SAYS_DONE,
    SAYS_REFUSED,
    SAYS_AGAIN,
    SAYS_WHO_KNOWS,
    SAYS_NOTHING,
    SAYS_ELSEWHERE
};

/* The course of one request. */
struct act {
    enum says says; /* AGAIN: retryable, without effect; WHO_KNOWS: retryable, effect unknown */
    int64_t takes;  /* time until the result */
    bool past;      /* counted from its deadline, which it ignores */
    bool keeps;     /* it keeps its result after its deadline */
    bool effect;    /* it takes effect before that; DONE always does */
    bool dies;      /* instead of a result */
    bool mute;      /* it sends no heartbeats, and goes on without an answer to them */
    int64_t wishes; /* AGAIN: requested wait before the retry; 0: none */
    int64_t comes;  /* ELSEWHERE: when the result comes; 0: never */
};

/* Each service gets one worker with `places`; those in the bits of `absent` come later. `script`
 * decides the course of each request. */
void agents_begin_scene(uint32_t places, uint32_t absent, void (*script)(struct gig *g));
void gig_acts(struct gig *g, const struct act *a);
void agents_come(uint32_t service);
void agents_die(uint32_t service);
void agents_leave(uint32_t service);           /* and does not come back */
void agents_serve_one(void);                   /* all workers are instances of the first service */
uint32_t agents_at_work(void);                 /* requests in work */
struct worker *agents_worker(uint32_t number); /* NULL: there are fewer */
void agents_turn_to(uint32_t name);            /* all workers send everything to that node */

/* for wire.c */
void worker_wakes_up(struct worker *w, int64_t delay_ms);
void worker_dies(struct worker *w, const char *when);
void worker_gets(struct worker *w, const struct errand *e, uint32_t from);
void worker_stops(struct worker *w, struct slice token);
void gig_done_with(struct gig *g); /* its result was answered */

/* wire.c */
void wire_begin(void);
void wire_send(struct worker *w, uint32_t to, bool for_work);
bool wire_asks_too_much(const struct worker *w, uint32_t to); /* a call is parked there */
void wire_hang_up(struct worker *w);                          /* both of its calls */
bool agents_answered(struct node *n, struct work *w);         /* outside's work_answer */
void agents_cut_off(const struct node *n); /* the node is gone, and all calls at it */
uint32_t wire_calls_of(const struct node *n, struct slice name); /* calls of that instance */
/* Since when a call of that instance for work is parked; 0: none is. */
int64_t wire_parked_since(const struct node *n, const char *name);
/* Since when the oldest of its calls for work is parked there; 0: none is. */
int64_t wire_idle_since(const struct node *n, uint32_t service);
/* When the latest call of that service came to this process, and when it last had one; 0: never. */
int64_t wire_called_at(const struct node *n, uint32_t service);
int64_t wire_seen_at(const struct node *n, uint32_t service);
uint32_t wire_parked(const struct node *n); /* calls at the node that ask for work */

#endif
