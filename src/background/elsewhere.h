#ifndef BACKGROUND_ELSEWHERE_H
#define BACKGROUND_ELSEWHERE_H

/*
 * What other nodes do to tasks that a client of this node waits for. Nodes do not notify each
 * other, so these tasks are looked up in the store: all that are due with one statement, and each
 * the less often the longer it has not changed. Nothing is read without interest. A task in this
 * node's memory reports its changes itself; it is looked up only now and then, because the node may
 * have lost it without noticing. Event loop only.
 */

#include <uv.h>

#include "base/heap.h"
#include "scheduler/scheduler.h"

struct elsewhere;

/* One task of interest. Embed it; it is in use from sight_begin to sight_end. */
struct sight {
    struct heap_node due; /* in elsewhere, unless it is being read */
    struct slice id;      /* lives as long as it is in use */
    int64_t pause_ms;
    int64_t
        here_until;    /* steady: it is in our memory, and is not looked at before; 0: it was not */
    uint64_t revision; /* as last seen ... */
    bool seen;         /* ... if at all */
    size_t slot;       /* in the reading, from 1; 0: it is in none */
    /* The task is in the store as `g` says, and was not so when it was looked at last, or was not
     * looked at yet. It may end this and other sights. */
    void (*changed)(struct sight *s, const struct glance *g);
};

/* Where the store is not shared it never looks. `busy` is counted up while a job is with the
 * store. */
struct elsewhere *elsewhere_new(uv_loop_t *loop, struct store_queue *store,
                                const struct scheduler *scheduler, bool shared, size_t *busy);
void elsewhere_close(struct elsewhere *e); /* its timer goes: before the loop ends */
void elsewhere_free(struct elsewhere *e);  /* no sight is in use any more, it is not busy */

void sight_begin(struct elsewhere *e, struct sight *s);
void sight_end(struct elsewhere *e, struct sight *s); /* harmless if it is not in use */

#endif
