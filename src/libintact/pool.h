#ifndef LIBINTACT_POOL_H
#define LIBINTACT_POOL_H

/*
 * Threads that run handlers. The driving thread adds requests; the pool's threads put completed
 * ones into the request's outbox.
 */

#include <pthread.h>

#include "libintact/request.h"

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct link queue;
    size_t idle; /* waiting threads */
    bool is_open, closing;
    pthread_t *threads;
    size_t thread_count;
};

/* False: the system has no more threads; the pool is closed again. */
bool pool_open(struct pool *p, size_t thread_count) MUST_USE;

/* Waits for running handlers. Queued requests are not run, and are in no list afterwards. */
void pool_close(struct pool *p); /* harmless if it is not open */

void pool_add(struct pool *p,
              struct link *requests); /* takes all of them; the list is empty then */

#endif
