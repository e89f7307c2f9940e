#ifndef DISPATCH_DISPATCH_H
#define DISPATCH_DISPATCH_H

/*
 * The server's side of agents: who is connected, which work calls are parked, which steps
 * want a place, and which attempts an instance was given. Bookkeeping only: the scheduler
 * decides and stores, then tells an agent.
 *
 *     agent "payment" -- instance "payment-1" -- sent: attempts it was given, still open
 *                     |                      `- places: what it announced last
 *                     |- calls: parked work calls with room, in turn
 *                     `- lane "charge" -- queue: steps that want a place, least rank first
 *
 * A lane is one action of an agent. Among the lanes that have room by their limits the step of
 * least rank is next, so that those behind a limit hold up nobody else. What limits and health do
 * with all this is in lanes.c.
 *
 * Agents and lanes come into being when first named, by a step or by a call.
 */

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "dispatch/breaker.h"
#include "dispatch/health.h"
#include "dispatch/limiter.h"
#include "dispatch/settings.h"
#include "dispatch/work.h"

/* An agent that has not been heard of for this long counts as not connected. */
#define AGENT_ABSENT_MS INT64_C(2000)

/* What the store may hold of tasks that wait for an agent. */
struct backlog {
    bool alone; /* such that wait for nobody else */
    bool among; /* such that wait for others, too */
};

#define BACKLOG_UNKNOWN ((struct backlog){true, true}) /* the store will tell */

static inline bool backlog_any(struct backlog b)
{
    return b.alone || b.among;
}

/* A failure after which another try waits for its time. */
struct recent_failure;

/* The latest of them; `next` is where the next one goes once all places are taken. */
struct recent {
    struct recent_failure *list;
    size_t count, cap, next;
};

struct agent {
    struct slice name;
    struct map instances;
    struct map lanes;
    struct link calls;   /* of struct work, by its `turn` */
    struct heap ready;   /* of struct lane, by its `turn`: the least rank of those with room */
    struct lane **lines; /* those with a limit of their own, by their line */
    size_t line_count;
    size_t waiting;         /* steps in all its lanes */
    size_t bulk;            /* of these, of tasks that were asked in bulk */
    size_t loose;           /* of them, in lanes without a limit of their own */
    struct link busy;       /* in dispatch.busy: something waits */
    uint64_t left_out;      /* the scheduler's: the turn, from 1, that could not give it its work */
    struct backlog backlog; /* claimable tasks that wait for it */
    bool stored;            /* it did hold some, when last heard of */
    size_t claim_line;      /* where among its lines the next claims begin */
    bool limited;           /* it, or one of its lanes, has a limit: it is not forgotten */
    bool held;              /* by its limit, when that was last looked at */
    struct limit limit;     /* the whole one */
    struct limiter limiter;
    struct heap_node wake; /* in dispatch.wakes: its limit, or a trial */
    struct ends ends;      /* of all its instances */
    int64_t seen_at;       /* when it last called, or let go of a parked call */
    uint64_t places;       /* of those of its instances that are counted */
    struct link leaving;   /* of struct instance: counted, and nothing is parked; in the order
                              in which they will be away */
    const struct instance *mover;   /* who got on last ... */
    int64_t moved_at, moved_before; /* ... when, and when another one last did */
    uint32_t parked;                /* calls with places that are not answered yet */
    uint64_t completed, failed;     /* attempts that ended here, since it came into being */
    uint64_t times_held; /* how often a limit of it, or of a lane, had no room for what waits */
    struct agent_settings settings;
    struct arena settings_arena; /* what they point to */
    struct breaker breaker;
    struct arena breaker_arena;
    struct slice settings_text, breaker_text; /* as the store has them; NONE: nothing was said */
    struct link shut;                         /* the scheduler's: breakers that are not closed */
    struct link unsaved;                      /* the scheduler's: how it stands is to be written */
    int64_t outage_at;                        /* when it was last closed no more; 0: never */
    struct recent recent; /* the scheduler's: what the end of an outage is to hasten */
    uint64_t transitions[BREAKER_STATE_COUNT]; /* of its breaker, to each state */
};

/* Tasks that wait in the store for a lane with a limit of its own stand in a line of their own:
 * their rank has the lane's number above these bits. So they are claimed as fast as the limit lets
 * them begin, and nobody stands behind them. */
enum { LINE_SHIFT = 42, LINE_BITS = 20 };

struct lane {
    struct slice action;
    struct agent *agent;
    struct heap queue;     /* of struct heap_node, the scheduler's */
    struct heap_node turn; /* in agent.ready, or not: nothing waits, or it is held */
    bool limited;          /* it has a limit of its own */
    bool held;             /* there is no room by its own limit; something will wake it */
    struct limit limit;    /* the whole one */
    struct limiter limiter;
    struct heap_node wake;        /* in dispatch.lane_wakes: when its rate has room again */
    int64_t line;                 /* ranks of its line begin here */
    struct backlog backlog, more; /* tasks of its line, and between that and the next one: of
                                     actions that have no limit any more */
};

struct instance {
    struct slice name;
    struct agent *agent;
    struct link sent;    /* open attempts that it was given, the scheduler's elements */
    uint32_t open;       /* so many */
    uint32_t stops;      /* of these so many are to be stopped */
    uint32_t parked;     /* its calls with places that are not answered yet */
    uint32_t calls;      /* all of its calls that are not answered yet */
    uint32_t places;     /* announced by its latest call that asked for work */
    bool counted;        /* its places are, as those of one that is connected */
    struct link leaving; /* in agent.leaving */
    struct health health;
    int64_t seen_at;
    int64_t heartbeat_at; /* its latest heartbeats; 0: none. They do not make it connected */
    uint64_t call_seq;    /* counts its calls that said what it is holding */
    bool called;          /* has it called since we started? */
};

struct dispatch {
    struct map agents;
    struct link busy;                 /* of struct agent: something waits for them */
    struct heap lane_wakes;           /* of struct lane */
    struct heap wakes;                /* of struct agent */
    struct share share;               /* this node's part of all limits */
    int64_t since;                    /* when it began to count */
    size_t instances_max, agents_max; /* names that calls may bring: of one agent, of agents */
    size_t instances_about; /* of all agents, as of the last sweep, and those that came since */
};

/* Before anything else. A store that is not shared has one node, {1, 0}. */
void dispatch_init(struct dispatch *d, struct share share, int64_t now);
void dispatch_fini(struct dispatch *d);
struct agent *dispatch_agent(struct dispatch *d, struct slice name);    /* made if there is none */
struct instance *dispatch_instance(struct agent *a, struct slice name); /* the same */

/* Names come from outside, and each takes memory until it is forgotten. Those that are known always
 * have room. Of all agents together there may be four times as many as of one. Those that steps
 * name are not counted against a call, but with them. */
enum dispatch_room { ROOM_FOR_IT, NO_ROOM_FOR_INSTANCE, NO_ROOM_FOR_AGENT };
enum dispatch_room dispatch_room(const struct dispatch *d, struct slice agent,
                                 struct slice instance);

/* A call arrives: it counts as sign of life, and its room as places. */
void dispatch_park(struct dispatch *d, struct work *w, int64_t now);

/* No more is to be assigned to this call. / It is answered, or gone. */
void dispatch_close(struct work *w);
void dispatch_unpark(struct work *w, int64_t now);

/* The places of all instances heard of lately: how much work it is worth having at hand. Asked for
 * every task, so it costs the same however many instances there are. */
uint32_t dispatch_places(struct agent *a, int64_t now);

bool dispatch_is_connected(const struct agent *a, int64_t now);
bool instance_is_connected(const struct instance *i, int64_t now);

/* Is it worth waiting for it in memory? Not if it is not connected, nor if its breaker has been
 * open for as long as who is away counts as connected. */
bool dispatch_may_start(const struct agent *a, int64_t now);

/* Forgets instances without open attempts that were not heard of for 10 minutes (for 30 seconds, if
 * half of the names are taken), and agents that have none left, that nothing waits for, and of
 * which nothing was said. Agents must not be pointed to from elsewhere then. */
void dispatch_sweep(struct dispatch *d, int64_t now);

/* ---- lanes.c ---- */

struct lane *dispatch_lane(struct agent *a, struct slice action); /* made if there is none */
void lane_free(struct dispatch *d, struct lane *l);

/* A step wants a place, / wants it no more. */
void lane_push(struct dispatch *d, struct lane *l, struct heap_node *want, int64_t rank);
void lane_remove(struct lane *l, struct heap_node *want);

/* An attempt is at work that was not counted yet, / is so no more. */
void lane_open(struct lane *l);
void lane_close(struct lane *l);

/* The lane whose step is next, or NULL: nothing waits, or all that does is held by a limit; then
 * something will wake it. */
struct lane *dispatch_next_lane(struct dispatch *d, struct agent *a, int64_t now);
void lane_begin(struct lane *l, int64_t now); /* that step begins: takes of what its rates allow */

/* The limits of its settings are others; takes effect at once. / All have other parts: there are
 * more or fewer nodes. */
void dispatch_limit(struct dispatch *d, struct agent *a, int64_t now);
void dispatch_share(struct dispatch *d, struct share share, int64_t now);

/* Lets those go on whose time has come. / When that is next; 0: never. */
void dispatch_wake(struct dispatch *d, int64_t now);
int64_t dispatch_wakes_at(const struct dispatch *d);

/* May a step of that lane ever begin at this node, as things are? If not, its task is let go. */
bool lane_is_served(const struct lane *l, int64_t now);
/* So many tasks it is worth holding for it beyond those that wait in it: what its places and limits
 * take, and as much again, so that they never wait for the store. */
size_t lane_room(const struct lane *l, int64_t now);
bool lane_is_too_long(const struct lane *l, int64_t now); /* some of them should be let go */
size_t lane_excess(const struct lane *l, int64_t now);    /* how many */
int64_t lane_rank(const struct lane *l, int64_t rank);    /* the rank of a task in the store */

/* Whose limit holds it now. */
enum held_by { HELD_BY_NO_LIMIT, HELD_BY_ACTION, HELD_BY_AGENT };
enum held_by lane_held_by(const struct lane *l, int64_t now);

/* ---- health ---- */

/* The next call of the agent whose instance may be given work; it stays in its turn. NULL: there is
 * none now. */
struct work *dispatch_next_call(struct dispatch *d, struct agent *a, int64_t now);

/* Is there such a call? Changes nothing. */
bool agent_has_call(const struct agent *a, int64_t now);

/* Is there no instance that is better off than this one, and connected or at work? Who has all its
 * places taken does not call: it is there all the same, or what is ill would get all that waits. */
bool instance_is_last(const struct instance *i, int64_t now);
/* It got on: a result of it came that is no failure, or a beat that tells of progress. / When one
 * of the others last did; 0: never. */
void instance_moved(struct instance *i, int64_t now);
int64_t others_moved_at(const struct instance *i);

uint32_t instance_places(const struct instance *i, int64_t now); /* that are used */

#endif
