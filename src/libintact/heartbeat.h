#ifndef LIBINTACT_HEARTBEAT_H
#define LIBINTACT_HEARTBEAT_H

/*
 * Heartbeats on their way from handlers to the server. A handler leaves its latest one with its
 * request; the thread that drives the agent takes what has gathered, a call at a time and not too
 * often, and forgets it: what gets lost is not sent again, the next one says more.
 */

#include <pthread.h>

#include "libintact/request.h"

enum { HEARTBEAT_PROGRESS_MAX = 2048, HEARTBEAT_MESSAGE_MAX = 256, HEARTBEATS_MAX = 1000 };

struct heartbeats {
    pthread_mutex_t lock; /* of the list, and of `beat` of the requests in it */
    struct link pending;  /* of struct intact_request, by `beat_link` */
    bool closed;          /* the agent has ended: none is taken */
};

void heartbeats_init(struct heartbeats *h);
void heartbeats_close(struct heartbeats *h); /* what is in it is forgotten */
void heartbeats_fini(struct heartbeats *h);

/* Writes those that are meant for that server as members of `beats`; they are taken out. Their
 * count. */
size_t heartbeats_take(struct heartbeats *h, const struct peer *p, struct buf *b);
bool heartbeats_any(struct heartbeats *h, const struct peer *p);
void heartbeats_drop(struct heartbeats *h, struct intact_request *r); /* it is done */

#endif
