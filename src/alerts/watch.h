#ifndef ALERTS_WATCH_H
#define ALERTS_WATCH_H

/*
 * Keeps the alerts up to date: by what the store has of tasks in error, by what this node knows in
 * memory, and by the rows of the alerts themselves. Whoever leads tells; the others only know that
 * their own way to the store is in trouble.
 *
 *     leads --> LOAD (rows) --> LOOK (tasks in error, page by page; what others acknowledged)
 *                  ^               |         ^
 *                  |               v         |
 *                  +-- conflict -- PUT (rows that changed) --> deliver what is on record
 *
 * That a task stopped is read from the store, so it is not lost if the node dies in between. A look
 * at all of them is repeated at once if it takes one page, and the more seldom the longer it takes;
 * between two, what stopped since is read from where the last one ended.
 *
 * A notice is delivered once it is on record, or at once while the store fails. That a sink took it
 * is written after that: who dies in between has it told twice, under the same name.
 *
 * Everything comes in through interfaces; the simulator has it, too. One thread.
 */

#include "alerts/alerts.h"
#include "store/job.h"

struct watch;

struct watch_outside {
    void *arg;
    int64_t (*now)(void *arg); /* the store's time, ms UTC */
    /* *ret: the epoch of its lease. Another one: somebody else may have led in between. */
    bool (*leads)(void *arg, uint64_t *ret);
    bool (*store_works)(void *arg);
    /* Tells alerts_see of all that holds in memory; `all`: otherwise of CONDITION_STORE_TROUBLE
     * alone. */
    void (*see)(void *arg, struct alerts *a, bool all, int64_t now);
    /* Delivers, and calls watch_delivered later, not from within. What is listed is to be rendered
     * now: it may change. */
    void (*deliver)(void *arg, size_t sink, const struct alert *const *list, size_t count);
    /* A job of which nobody waits for the next part; NULL: as any other. */
    void (*background)(void *arg, struct store_job *j);
};

struct watch_config {
    struct alerts_config alerts;
    bool shared;          /* others may acknowledge through other nodes */
    int64_t look_ms;      /* 0: 5 s */
    int64_t sweep_max_ms; /* two looks at all tasks in error are at most so far apart, and as long
                             as one takes; 0: 10 min */
    size_t page;          /* 0: 100 tasks */
};

struct watch *watch_new(const struct watch_config *c, struct store_queue *store,
                        const struct watch_outside *outside);
void watch_free(struct watch *w); /* no job of it may be with the store. NULL is fine */

/* Does what is due. Returns when to call again. Cheap if nothing is due. */
int64_t watch_turn(struct watch *w);
/* A task has stopped, or gone on: worth looking soon. */
void watch_hint(struct watch *w);
void watch_delivered(struct watch *w, size_t sink, bool took, const char *story);
/* It was stored that somebody knows. */
void watch_acknowledged(struct watch *w, struct slice id, int64_t at, struct slice by,
                        struct slice why);
void watch_stop(struct watch *w); /* from now on nothing is begun */
bool watch_is_busy(const struct watch *w);

/* What is known here; of one that does not lead, next to nothing. */
const struct alerts *watch_alerts(const struct watch *w);
bool watch_leads(const struct watch *w);
/* How often it has come to lead: what it knew of before is what is on record. */
uint64_t watch_term(const struct watch *w);

#endif
