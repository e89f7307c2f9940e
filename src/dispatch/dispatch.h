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
 *                     `- queue: steps that want a place, least rank first
 *
 * Agents come into being when first named, by a step or by a call.
 */

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "dispatch/breaker.h"
#include "dispatch/settings.h"
#include "dispatch/work.h"

/* An agent that has not been heard of for this long counts as not connected. */
#define AGENT_ABSENT_MS INT64_C(2000)

struct agent {
    struct slice name;
    struct map instances;
    struct link calls;          /* of struct work, by its `turn` */
    struct heap queue;          /* of struct heap_node, the scheduler's */
    bool backlog;               /* the store may hold claimable tasks that wait for it */
    int64_t seen_at;            /* when it last called, or let go of a parked call */
    uint32_t parked;            /* calls with places that are not answered yet */
    uint64_t completed, failed; /* attempts that ended here, since it came into being */
    struct agent_settings settings;
    struct arena settings_arena; /* what they point to */
    struct breaker breaker;
    struct slice settings_text, breaker_text; /* as the store has them; NONE: nothing was said */
    struct link unsaved;      /* in the scheduler's list: how its breaker stands is to be written */
    struct recent *recent;   /* failures that the end of an outage is to hasten; the scheduler's */
    uint64_t transitions[BREAKER_STATE_COUNT]; /* of its breaker, to each state */
};

struct instance {
    struct slice name;
    struct agent *agent;
    struct link sent; /* open attempts that it was given, the scheduler's elements */
    uint32_t parked;  /* its calls with places that are not answered yet */
    uint32_t calls;   /* all of its calls that are not answered yet */
    uint32_t places;  /* announced by its latest call that asked for work */
    int64_t seen_at;
    int64_t heartbeat_at; /* its latest heartbeats; 0: none. They do not make it connected */
    uint64_t call_seq;    /* counts its calls that said what it is holding */
    bool called;          /* has it called since we started? */
};

struct dispatch {
    struct map agents;
};

void dispatch_fini(struct dispatch *d);
struct agent *dispatch_agent(struct dispatch *d, struct slice name);    /* made if there is none */
struct instance *dispatch_instance(struct agent *a, struct slice name); /* the same */

/* A call arrives: it counts as sign of life, and its room as places. */
void dispatch_park(struct dispatch *d, struct work *w, int64_t now);

/* No more is to be assigned to this call. / It is answered, or gone. */
void dispatch_close(struct work *w);
void dispatch_unpark(struct work *w, int64_t now);

/* The places of all instances heard of lately: how much work it is worth having at hand. */
uint32_t dispatch_places(const struct agent *a, int64_t now);

bool dispatch_is_connected(const struct agent *a, int64_t now);

/* Forgets instances without open attempts that were not heard of for 10 minutes, and agents that
 * have none left and that nothing waits for. Agents must not be pointed to from elsewhere then. */
void dispatch_sweep(struct dispatch *d, int64_t now);

#endif
