#ifndef SIM_AGENTS_H
#define SIM_AGENTS_H

/*
 * Agents: some services, each with several instances (workers) that poll for work, do it, and hand
 * in what came of it, as libintact does: it says what it is holding, hands a result in again until
 * it was answered, and stops at its own deadline. They die, hang, refuse, lie silent, and
 * misunderstand, as the weather has it.
 *
 * agents.c has the workers and what they do, wire.c the calls between them and the nodes. An agent
 * polls all nodes.
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
    uint32_t names; /* how many it has had */
    uint64_t life;  /* occurrences of an earlier one are void */
    bool up;
    uint32_t concurrency;
    uint32_t illness; /* illness.c */
    bool says_holding;
    bool calls_home;                 /* what is parked, now and then; not in scenes */
    struct link gigs;                /* requests that it holds, of struct gig */
    struct call *poll[NAMES_MAX];    /* its call for work, at each node */
    struct call *handing[NAMES_MAX]; /* its call that only hands in results */
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
    int64_t heartbeat_ms, beat_every, heard_at; /* long.c: of one that may not be silent */
    uint32_t beats_to;                          /* the node that hears it */
    uint64_t life;                              /* of its worker */
    bool mute;                                  /* it sends none */
    struct slice forward_output;
    uint32_t home;                         /* the node that gets its result */
    struct call *in;                       /* the call that hands in its result */
    bool finished, dead, hangs, elsewhere; /* elsewhere: that is all that it will say */
    bool at_it, finish_due;      /* its transaction is open, or waits; it is done after that */
    enum ledger_verdict verdict; /* what its transaction is to do */
    bool again; /* somebody began to work on this attempt before, and may have had an effect */
    /* what it will say */
    bool failed, retryable;
    enum effect effect;
    int64_t retry_after_ms;
    const char *code;
    struct slice output;
};

/* A request as it comes over the wire. */
struct errand {
    struct slice token, task, step;
    enum direction direction;
    uint32_t attempt;
    int64_t deadline; /* as the worker reckons it */
    int64_t heartbeat_ms;
};

void agents_begin(uint32_t services);
void agents_calm(void); /* all are up from now on */

/* For scenes, where nothing that agents do is drawn. */

enum says {
    SAYS_UNSCRIPTED,
    SAYS_DONE,
    SAYS_REFUSED,
    SAYS_AGAIN,
    SAYS_WHO_KNOWS,
    SAYS_NOTHING,
    SAYS_ELSEWHERE
};

/* What becomes of one request. */
struct act {
    enum says says; /* AGAIN: retryable, without effect; WHO_KNOWS: retryable, effect unknown */
    int64_t takes;  /* until it says so */
    bool past;      /* that counts from its deadline, which it ignores */
    bool keeps;     /* it holds on to what it has done past its deadline */
    bool effect;    /* it takes effect before that; what is DONE always does */
    bool dies;      /* instead of saying anything */
    bool mute;      /* it sends no heartbeats, and does not mind if nobody hears it */
    int64_t wishes; /* AGAIN: it is to be asked no sooner than after that; 0: it does not say */
    int64_t comes;  /* ELSEWHERE: when somebody ends it; 0: nobody does */
};

/* Each service gets one worker with `places`; those in the bits of `absent` are not there yet.
 * `script` is asked what is to become of each request. */
void agents_begin_scene(uint32_t places, uint32_t absent, void (*script)(struct gig *g));
void gig_acts(struct gig *g, const struct act *a);
void agents_come(uint32_t service);
void agents_die(uint32_t service);
void agents_leave(uint32_t service);           /* and does not come back */
void agents_serve_one(void);                   /* all workers are instances of the first service */
uint32_t agents_at_work(void);                 /* requests that somebody is at work on */
struct worker *agents_worker(uint32_t number); /* NULL: there are not so many */
void agents_turn_to(uint32_t name); /* whatever they have to say, they say to that node */

/* For wire.c */
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
void agents_cut_off(const struct node *n); /* it is gone: so are all calls at it */
uint32_t wire_calls_of(const struct node *n, struct slice name); /* calls of that instance */
/* Since when a call of that instance lies there that asks for work; 0: there is none. */
int64_t wire_parked_since(const struct node *n, const char *name);
/* Since when the longest of its calls that ask for work is parked there; 0: there is none. */
int64_t wire_idle_since(const struct node *n, uint32_t service);
/* When the latest call of that service came to this process, and when it last had one; 0: never. */
int64_t wire_called_at(const struct node *n, uint32_t service);
int64_t wire_seen_at(const struct node *n, uint32_t service);
uint32_t wire_parked(const struct node *n); /* calls at the node that ask for work */

#endif
