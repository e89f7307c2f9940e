#ifndef NODE_OVERRUN_H
#define NODE_OVERRUN_H

/*
 * A backstop behind the budget of expressions. An evaluation pays for each step and ends when its
 * budget is spent, after about 20 ms. If one continues nevertheless, because of a defect or a
 * machine that is far too slow, it blocks the event loop, and no client is served.
 *
 * A thread checks twice a second what is being evaluated, and how much processor time the loop's
 * thread has spent on it: time in which the machine was suspended, or busy with other processes,
 * does not count. After OVERRUN_COUNT_MS the task is counted in the store; if the evaluation ends
 * after all, the count is removed, with retries. After OVERRUN_END_MS the process ends, once the
 * count is durable or the store has not answered for a while. The node that claims the task next
 * finds the count: see tasks/overruns.h.
 *
 * A thread, because the handler of a timer signal can neither lock nor write. The loop marks an
 * evaluation by storing a pointer, and clears it by compare-and-swap; the thread holds the pointer
 * while it looks, so the task's id stays valid. A count has a table of its own: a column of the
 * task would be read and written with each change, and a task that is being submitted has no row.
 * It is not fenced, because a node that was deposed meanwhile has evaluated all the same.
 */

#include "store/job.h"

enum {
    OVERRUN_COUNT_MS = 500, /* shorter than a lease: the next node finds it */
    OVERRUN_END_MS = 10000, /* well below WatchdogSec= of the service */
};

/* Those in the store at the start. */
struct overruns {
    struct arena arena;
    struct overrun *list;
    size_t count;
};

enum err overruns_load(struct store *s, struct overruns *ret, struct error *e) MUST_USE;
void overruns_fini(struct overruns *o);

struct overrun_watch;

struct overrun_config {
    struct store_queue *store;
    int64_t (*now)(void *arg); /* ms UTC; from any thread */
    void *arg;
};

/* To be called on the loop's thread. 0, or why there is no thread, as libuv's (negative) code. */
int overrun_start(const struct overrun_config *c, struct overrun_watch **ret);
/* On that thread. `task` stays until the evaluation has ended. All of one task in a row count as
 * one, until the turn is over. */
void overrun_evaluates(struct overrun_watch *w, struct slice task, bool begins);
void overrun_turn_over(struct overrun_watch *w);
/* Nothing is evaluated any more. What was handed to the store may still be there ... */
void overrun_stop(struct overrun_watch *w);
void overrun_free(struct overrun_watch *w); /* ... until that has ended. NULL is fine */

#endif
