#ifndef ALERTS_WATCH_H
#define ALERTS_WATCH_H

/*
 * Keeps the alerts up to date from the tasks in error in the store, from this node's memory, and
 * from the alerts' own rows. The leader sends notices; other nodes only report that they cannot
 * reach the store.
 *
 *     leads --> LOAD (rows) --> LOOK (tasks in error, page by page; what others acknowledged)
 *                  ^               |         ^
 *                  |               v         |
 *                  +-- conflict -- PUT (rows that changed) --> deliver what is on record
 *
 * Stopped tasks are read from the store, so none is lost if the node dies. A sweep over all of them
 * is repeated at once if it takes one page, and more rarely the longer it takes; between sweeps,
 * newly stopped tasks are read from the last position.
 *
 * A notice is delivered once it is stored, or at once while the store fails. The delivery is
 * recorded afterwards: after a crash in between, it is delivered again with the same id.
 *
 * All inputs are interfaces; the simulator uses it, too. One thread.
 */

#include "alerts/alerts.h"
#include "store/job.h"

struct watch;

struct watch_outside {
    void *arg;
    int64_t (*now)(void *arg); /* the store's time, ms UTC */
    /* *ret: the epoch of the lease. If it differs from the last one, another node may have led
     * meanwhile. */
    bool (*leads)(void *arg, uint64_t *ret);
    bool (*store_works)(void *arg);
    /* Reports everything in memory through alerts_see; `all` false: only
     * CONDITION_STORE_TROUBLE. */
    void (*see)(void *arg, struct alerts *a, bool all, int64_t now);
    /* Delivers, and calls watch_delivered later, not from within. The list must be rendered now: it
     * may change. */
    void (*deliver)(void *arg, size_t sink, const struct alert *const *list, size_t count);
    /* Queues a job with low priority; NULL: like any other. */
    void (*background)(void *arg, struct store_job *j);
};

struct watch_config {
    struct alerts_config alerts;
    bool shared;          /* others may acknowledge alerts through other nodes */
    int64_t look_ms;      /* 0: 5 s */
    int64_t sweep_max_ms; /* the maximum between two sweeps over all tasks in error, plus the time
                           * of one; 0: 10 min */
    size_t page;          /* 0: 100 tasks */
};

struct watch *watch_new(const struct watch_config *c, struct store_queue *store,
                        const struct watch_outside *outside);
void watch_free(struct watch *w); /* no job of it may be in the store. NULL is allowed */

/* Does what is due. Returns when to call again. Cheap if nothing is due. */
int64_t watch_turn(struct watch *w);
/* A task has stopped or continued: look soon. */
void watch_hint(struct watch *w);
void watch_delivered(struct watch *w, size_t sink, bool took, const char *story);
/* An acknowledgement was stored. */
void watch_acknowledged(struct watch *w, struct slice id, int64_t at, struct slice by,
                        struct slice why);
void watch_stop(struct watch *w); /* nothing new is begun */
bool watch_is_busy(const struct watch *w);

/* What is known here; almost nothing on a node that does not lead. */
const struct alerts *watch_alerts(const struct watch *w);
bool watch_leads(const struct watch *w);
/* How often it became the leader: each time it starts from the stored state. */
uint64_t watch_term(const struct watch *w);

#endif
