#ifndef LIBINTACT_AGENT_OUTBOX_H
#define LIBINTACT_AGENT_OUTBOX_H

/*
 * The queue from handlers, and from threads that answer kept requests, to the thread that drives
 * the agent: completed requests, and heartbeats. `fd` (an eventfd) becomes readable with the first
 * entry.
 *
 * It outlives its agent until all kept requests of that agent are answered.
 */

#include <pthread.h>

#include "base/map.h"
#include "libintact/heartbeat.h"

struct outbox {
    pthread_mutex_t lock;
    pthread_cond_t told; /* some request should stop: wakes up sleeping handlers */
    struct link done;    /* of struct intact_request, by `link` */
    struct heartbeats beats;
    size_t uses;    /* references: the agent, and requests that it left behind */
    size_t watched; /* requests with a function to call on stop */
    bool closed;    /* the agent has ended */
    int fd;
};

struct outbox *outbox_new(void); /* one reference, the caller's; fd is -1 if descriptors are
                                  * exhausted */
void outbox_unuse(struct outbox *o);

/* The handler of `r` is done with it. `r` may be freed on return. Any thread. */
void outbox_put(struct outbox *o, struct intact_request *r);
void outbox_take(struct outbox *o, struct link *ret); /* appends them to the list */

/* From now on entries are freed. Kept requests without an answer in `requests`, which are in no
 * list, stay with a reference each; the others are freed. Returns how many stay. */
size_t outbox_close(struct outbox *o, struct map *requests);

void outbox_wake(struct outbox *o); /* also from a signal handler */

#endif
