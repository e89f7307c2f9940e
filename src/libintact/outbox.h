#ifndef LIBINTACT_OUTBOX_H
#define LIBINTACT_OUTBOX_H

/*
 * Where handlers, and whoever answers kept requests, leave what the thread that drives the agent
 * has to see: requests that are done, and heartbeats. `fd` (an eventfd) becomes readable with the
 * first.
 *
 * It outlives its agent for as long as kept requests of that agent are not answered.
 */

#include <pthread.h>

#include "base/map.h"
#include "libintact/heartbeat.h"

struct outbox {
    pthread_mutex_t lock;
    pthread_cond_t told; /* some request is to stop: for those that sleep */
    struct link done;    /* of struct intact_request, by `link` */
    struct heartbeats beats;
    size_t uses;    /* the agent, and requests that it left behind */
    size_t watched; /* requests whose stop somebody wants to be told of */
    bool closed;    /* the agent has ended */
    int fd;
};

struct outbox *outbox_new(void); /* one use, the caller's; fd is -1 if there are no more */
void outbox_unuse(struct outbox *o);

/* The handler of `r` is done with it. It may be gone on return. Any thread. */
void outbox_put(struct outbox *o, struct intact_request *r);
void outbox_take(struct outbox *o, struct link *ret); /* adds them to the end of the list */

/* From now on what is put is freed. Of `requests`, which are in nobody's list, those that are kept
 * and not answered stay behind, each with a use; the others are freed. How many stay. */
size_t outbox_close(struct outbox *o, struct map *requests);

void outbox_wake(struct outbox *o); /* also from a signal handler */

#endif
