#ifndef SERVER_WAITS_H
#define SERVER_WAITS_H

/* Those who wait for the end of a task, whoever they are. On the loop's thread. */

#include "base/list.h"
#include "base/map.h"

struct wait_list;

struct waiter {
    struct link link;
    struct wait_list *in; /* NULL: it waits for nothing */
    /* The task has ended, or the node is about to: it waits no more. It may wait again, or end. */
    void (*told)(struct waiter *w);
};

/* `waits`: a map of wait lists by id, at first empty. */
void waiter_join(struct map *waits, struct slice id, struct waiter *w);
void waiter_leave(struct map *waits, struct waiter *w); /* harmless if it waits for nothing */
void waiters_of(struct map *waits, struct slice id);    /* tells those who wait for that task */
void waiters_all(struct map *waits);                    /* tells everybody */

#endif
