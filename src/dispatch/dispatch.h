#ifndef DISPATCH_DISPATCH_H
#define DISPATCH_DISPATCH_H

/*
 * The server's view of agents: which instances are connected, which work calls are parked, which
 * steps wait for a place, and which attempts an instance has. Bookkeeping only: the scheduler
 * decides and stores before an agent gets a request.
 *
 *     agent "payment" -- instance "payment-1" -- sent: its open attempts
 *                     |                      `- places: as last announced
 *                     |- calls: parked work calls with room, in turn
 *                     `- lane "charge" -- queue: steps that wait for a place, least rank first
 *
 * A lane is one action of an agent. Among the lanes whose limits have room, the step of least rank
 * is next, so that steps behind a limit do not block others. Limits and health are in lanes.c.
 *
 * Agents and lanes are created when a step or a call first names them.
 */

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "dispatch/agent_settings.h"
#include "dispatch/breaker.h"
#include "dispatch/health.h"
#include "dispatch/limiter.h"
#include "dispatch/work.h"

/* An agent without a call for this long counts as not connected. */
#define AGENT_ABSENT_MS INT64_C(2000)

/* Which tasks in the store may wait for an agent. */
struct backlog {
    bool alone; /* tasks that wait for no other agent */
    bool among; /* tasks that wait for others, too */
};

#define BACKLOG_UNKNOWN ((struct backlog){true, true}) /* to be read from the store */

static inline bool backlog_any(struct backlog b)
{
    return b.alone || b.among;
}

/* A failure whose retry is waiting. */
struct recent_failure;

/* The latest of them; `next` is the slot to overwrite once all are taken. */
struct recent {
    struct recent_failure *list;
    size_t count, cap, next;
};

/* What calls of a token have added to the names in memory. It is there while there is any. */
struct adder {
    uint64_t token; /* as in struct work */
    size_t agents, instances;
};

struct agent {
    struct slice name;
    struct adder *added_by; /* the token whose call added the name; NULL: none */
    bool by_call;           /* a call added it: it is one of dispatch.called */
    struct map instances;
    struct map lanes;
    struct link calls;   /* of struct work, by its `turn` */
    struct heap ready;   /* of struct lane, by its `turn`: lanes with room, least rank first */
    struct lane **lines; /* lanes with a limit of their own, by their line */
    size_t line_count;
    size_t waiting;         /* steps in all its lanes */
    size_t bulk;            /* of these, of tasks in bulk operations */
    size_t loose;           /* of these, in lanes without a limit of their own */
    struct link busy;       /* in dispatch.busy: something waits */
    uint64_t left_out;      /* the scheduler's: the turn + 1 that left out its work */
    struct backlog backlog; /* claimable tasks in the store that wait for it */
    bool stored;            /* the store had some when last read */
    size_t claim_line;      /* the line at which the next claims begin */
    bool limited;           /* it, or one of its lanes, has a limit: it is not forgotten */
    bool held;              /* by its limit, when last checked */
    struct limit limit;     /* the whole limit */
    struct limiter limiter;
    struct heap_node wake; /* in dispatch.wakes: its limit, or a trial */
    struct ends ends;      /* of all its instances */
    int64_t seen_at;       /* its last call, or last response to a parked call */
    uint64_t places;       /* of its counted instances */
    struct link leaving;   /* of struct instance: counted, without a parked call; in the order in
                              which they will count as absent */
    const struct instance *mover;   /* the last instance to make progress ... */
    int64_t moved_at, moved_before; /* ... when, and when another one last did */
    uint32_t parked;                /* unanswered calls with places */
    uint64_t completed, failed;     /* attempts that ended here since it was created */
    uint64_t times_held; /* how often a limit (its own or a lane's) began to hold back steps */
    struct agent_settings settings;
    struct arena settings_arena; /* what they point to */
    struct breaker breaker;
    struct arena breaker_arena;
    struct slice settings_text, breaker_text; /* as in the store; NONE: nothing is stored */
    struct link shut;                         /* the scheduler's: breakers that are not closed */
    struct link unsaved;  /* the scheduler's: its breaker state must be stored */
    int64_t outage_at;    /* when its breaker last left the closed state; 0: never */
    struct recent recent; /* the scheduler's: what to retry early when the outage ends */
    uint64_t transitions[BREAKER_STATE_COUNT]; /* of its breaker, by the state entered */
};

/* Stored tasks that wait for a lane with a limit of its own have a separate line: their rank
 * contains the lane's number above these bits. So they are claimed as fast as the limit lets them
 * start, and do not block others. */
enum { LINE_SHIFT = 42, LINE_BITS = 20 };

struct lane {
    struct slice action;
    struct agent *agent;
    struct heap queue;     /* of struct heap_node, the scheduler's */
    struct heap_node turn; /* in agent.ready, unless nothing waits or the lane is held */
    bool limited;          /* it has a limit of its own */
    bool held;             /* its own limit has no room; it will be woken up */
    struct limit limit;    /* the whole limit */
    struct limiter limiter;
    struct heap_node wake;        /* in dispatch.lane_wakes: when its rate has room again */
    int64_t line;                 /* the first rank of its line */
    struct backlog backlog, more; /* stored tasks of its line; of the ranks up to the next line, for
                                     actions whose limit was removed */
};

struct instance {
    struct slice name;
    struct adder *added_by; /* as of an agent */
    struct agent *agent;
    struct link sent;    /* its open attempts, the scheduler's elements */
    uint32_t open;       /* number of them */
    uint32_t stops;      /* of these, attempts to be stopped */
    uint32_t parked;     /* its unanswered calls with places */
    uint32_t calls;      /* all its unanswered calls */
    uint32_t places;     /* announced by its latest call that asked for work */
    bool counted;        /* its places are in agent.places: it is connected */
    struct link leaving; /* in agent.leaving */
    struct health health;
    int64_t seen_at;
    int64_t heartbeat_at; /* its latest heartbeats; 0: none. They do not make it connected */
    uint64_t call_seq;    /* number of its calls that reported what it holds */
    bool called;          /* it has called since this process started */
};

struct dispatch {
    struct map agents;
    struct map adders;                /* of struct adder, by the bytes of their tokens */
    struct link busy;                 /* of struct agent: steps wait for them */
    struct heap lane_wakes;           /* of struct lane */
    struct heap wakes;                /* of struct agent */
    struct share share;               /* this node's share of all limits */
    int64_t since;                    /* when it began to count */
    size_t instances_max, agents_max; /* limits on names from calls: per agent, agents */
    size_t instances_about; /* instances of all agents at the last sweep, and new ones since */
    size_t called;          /* agents whose names were added by calls */
};

/* Must be called first. A store that is not shared has one node: {1, 0}. */
void dispatch_init(struct dispatch *d, struct share share, int64_t now);
void dispatch_fini(struct dispatch *d);
struct agent *dispatch_agent(struct dispatch *d, struct slice name);    /* created if missing */
struct instance *dispatch_instance(struct agent *a, struct slice name); /* created if missing */

/* Names come from clients, and each takes memory until it is forgotten. Known names always have
 * room. All agents together may have four times as many instances as one agent. A token may have
 * added seven times as many names as are left, so that each leaves some to others. Agents that
 * steps or settings named before they called are not counted: whoever stores these would keep new
 * agents out. */
enum dispatch_room { ROOM_FOR_IT, NO_ROOM_FOR_INSTANCE, NO_ROOM_FOR_AGENT };
enum dispatch_room dispatch_room(const struct dispatch *d, const struct work *w);

/* A call arrives: it makes the instance connected, and announces its places. */
void dispatch_park(struct dispatch *d, struct work *w, int64_t now);

/* No more is assigned to this call. / Its client is gone, and does not count as parked any more
 * while attempts of the call wait for their commit. / It is over. */
void dispatch_close(struct work *w);
void dispatch_leave(struct work *w, int64_t now);
void dispatch_unpark(struct work *w, int64_t now);

/* The places of all connected instances: how much work is worth having in memory. Called for every
 * task, so its cost does not depend on the number of instances. */
uint32_t dispatch_places(struct agent *a, int64_t now);

bool dispatch_is_connected(const struct agent *a, int64_t now);
bool instance_is_connected(const struct instance *i, int64_t now);

/* Should tasks wait for it in memory? Not if it is not connected, nor if its breaker has been open
 * for as long as an absent agent counts as connected. */
bool dispatch_may_start(const struct agent *a, int64_t now);

/* Forgets instances without open attempts and without a sign for 10 minutes (30 seconds if half of
 * the names are taken), and agents without instances, waiting steps or stored settings. No pointers
 * to agents may be held across the call. */
void dispatch_sweep(struct dispatch *d, int64_t now);

/* ---- lanes.c ---- */

struct lane *dispatch_lane(struct agent *a, struct slice action); /* created if missing */

/* A step wants a place, / no longer wants it. */
void lane_push(struct dispatch *d, struct lane *l, struct heap_node *want, int64_t rank);
void lane_remove(struct lane *l, struct heap_node *want);

/* An attempt is at work that was not counted yet, / no longer is. */
void lane_open(struct lane *l);
void lane_close(struct lane *l);

/* The lane of the next step, or NULL: nothing waits, or a limit holds everything that does; then it
 * will be woken up. */
struct lane *dispatch_next_lane(struct dispatch *d, struct agent *a, int64_t now);
void lane_begin(struct lane *l, int64_t now); /* takes tokens from its rate limits */

/* The limits in its settings changed; takes effect at once. / All shares changed: there are more or
 * fewer nodes. */
void dispatch_limit(struct dispatch *d, struct agent *a, int64_t now);
void dispatch_share(struct dispatch *d, struct share share, int64_t now);

/* Lets lanes go on whose time has come. / The next such time; 0: never. */
void dispatch_wake(struct dispatch *d, int64_t now);
int64_t dispatch_wakes_at(const struct dispatch *d);

/* Can a step of this lane start at this node at all, as things are? If not, its task is
 * released. */
bool lane_is_served(const struct lane *l, int64_t now);
/* How many more tasks are worth having in memory for the lane: what its places and limits allow,
 * and as many again, so that they never wait for the store. */
size_t lane_room(const struct lane *l, int64_t now);
bool lane_is_too_long(const struct lane *l, int64_t now); /* some should be released */
size_t lane_excess(const struct lane *l, int64_t now);    /* how many */
int64_t lane_rank(const struct lane *l, int64_t rank);    /* the rank of a task in the store */

/* Whose limit holds it back now. */
enum held_by { HELD_BY_NO_LIMIT, HELD_BY_ACTION, HELD_BY_AGENT };
enum held_by lane_held_by(const struct lane *l, int64_t now);

/* ---- health ---- */

/* The next call of the agent whose instance may get work; it keeps its turn. NULL: none now. */
struct work *dispatch_next_call(struct dispatch *d, struct agent *a, int64_t now);

/* Is there such a call? Changes nothing. */
bool agent_has_call(const struct agent *a, int64_t now);

/* Is no instance healthier than this one, and connected or at work? An instance with all places
 * taken does not call. It still counts: otherwise an ill instance would get everything that
 * waits. */
bool instance_is_last(const struct instance *i, int64_t now);
/* It made progress: a good result, or a heartbeat with progress. / When another instance last did;
 * 0: never. */
void instance_moved(struct instance *i, int64_t now);
int64_t others_moved_at(const struct instance *i);

uint32_t instance_places(const struct instance *i, int64_t now); /* in use, given its health */

#endif
