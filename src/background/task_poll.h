#ifndef BACKGROUND_TASK_POLL_H
#define BACKGROUND_TASK_POLL_H

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

struct server;
struct task_poller;

/* One task of interest. Embed it; it is in use from task_poll_begin to task_poll_end. */
struct task_poll {
    struct heap_node due; /* in the poller, unless it is being read */
    struct slice id;      /* lives as long as it is in use */
    int64_t pause_ms;
    int64_t here_until; /* steady: in this memory, not looked up before; 0: it was not */
    uint64_t revision;  /* as last seen ... */
    bool seen;          /* ... if at all */
    size_t slot;        /* in the reading, from 1; 0: it is in none */
    /* The task is in the store as `g` says, and was not so when it was looked at last, or was not
     * looked at yet. It may end this and other polls. */
    void (*changed)(struct task_poll *s, const struct glance *g);
};

/* Where the store is not shared it never looks. `busy` is counted up while a job is with the
 * store. */
struct task_poller *task_poller_new(uv_loop_t *loop, struct store_queue *store,
                                    const struct scheduler *scheduler, bool shared, size_t *busy);
void task_poller_close(struct task_poller *p); /* its timer goes: before the loop ends */
void task_poller_free(struct task_poller *p);  /* no poll is in use any more, it is not busy */

void task_poll_begin(struct server *sv, struct task_poll *s);
void task_poll_end(struct server *sv, struct task_poll *s); /* harmless if it is not in use */

#endif
