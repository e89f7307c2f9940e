#ifndef LIBINTACT_POOL_H
#define LIBINTACT_POOL_H

/*
 * Threads that run handlers. The comms thread puts requests in and takes finished ones out; `fd`
 * (an eventfd) becomes readable when the first of them is done.
 */

#include <pthread.h>

#include "libintact/request.h"

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct link queue, done;
    size_t idle; /* threads that wait */
    bool closing;
    int fd;
    pthread_t *threads;
    size_t thread_count;
};

/* False: the system has no thread or descriptor left; the pool is closed again. */
bool pool_open(struct pool *p, size_t thread_count) MUST_USE;
void pool_close(struct pool *p); /* waits for handlers that run */

void pool_add(struct pool *p,
              struct link *requests); /* takes all of them; the list is empty then */
void pool_take_done(struct pool *p, struct link *ret); /* adds them to the end of the list */

#endif
