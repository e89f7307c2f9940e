#ifndef SHOP_LIB_BROKER_H
#define SHOP_LIB_BROKER_H

/* What queue.c, which callers see, and broker.c, the thread that talks to the broker, share. */

#include <proton/proactor.h>
#include <proton/types.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "queue.h"

/* Somebody who waits in queue_send(). It lies on the stack there, and is in the list meanwhile. */
struct sending {
    struct sending *next;
    const char *queue;
    pn_rwbytes_t bytes;
    uint64_t tag; /* of its delivery; 0: it has not left yet */
    bool is_over;
    enum queue_sent end;
};

struct queue {
    char *url; /* cut into pieces, which the next ones point to */
    const char *user, *password, *host, *port;
    char *name;
    pn_proactor_t *proactor;
    pthread_t thread;

    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t ended; /* a sending */
    struct sending *sendings;
    char *receives; /* the name of a queue; NULL: none */
    int credit;
    queue_fn *fn;
    void *arg;
    bool is_closing;
    pn_connection_t *connection; /* NULL: there is none, the next one is made in a moment */

    bool is_open, is_paused, is_sending; /* the rest is the thread's, as all of Proton's objects are */
    pn_link_t *receiver;
    unsigned failures;
    uint64_t last_tag;
};

/* The thread, until the queue is closed. */
void *broker_run(void *queue);

#endif
