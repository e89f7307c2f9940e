#ifndef BACKGROUND_WAITS_H
#define BACKGROUND_WAITS_H

/* Those who wait for the end of a task, on whichever node it ends. Event loop only. */

#include "background/task_poll.h"
#include "base/list.h"
#include "node/part.h"

struct wait_list;

struct waiter {
    struct link link;
    struct wait_list *in; /* NULL: it waits for nothing */
    bool shows;           /* wants the record of the task with its end; set before it joins */
    /* The task has ended (or is gone), or the node is about to: it waits no more. It may wait
     * again, or end. `end`: as this node has committed it; NULL: that is to be read. Valid during
     * the call only. */
    void (*ended)(struct waiter *w, const struct task_end *end);
};

extern const struct part waits_part;

void waiter_join(struct server *sv, struct slice id, struct waiter *w);
void waiter_leave(struct server *sv, struct waiter *w); /* harmless if it waits for nothing */
/* Does one of them want the record? */
bool waiters_show(const struct server *sv, struct slice id);
/* Wakes up those who wait for it. */
void waiters_of(struct server *sv, struct slice id, const struct task_end *end);

#endif
