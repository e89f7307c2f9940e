#ifndef LIBINTACT_HEARTBEAT_H
#define LIBINTACT_HEARTBEAT_H

/*
 * Heartbeats on their way from handlers to the server. A handler leaves its latest one with its
 * request; the thread that drives the agent takes what has gathered, a call at a time and not too
 * often, and forgets it: what gets lost is not sent again, the next one says more; but for requests
 * whose step wants heartbeats, see pulse.h.
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

/* Writes those that are meant for that server as members of `beats`; they are taken out, and
 * `beat_on` is set. Their count. */
size_t heartbeats_take(struct heartbeats *h, struct peer *p, struct buf *b);
/* When those may leave, of which the last did at `sent_at`; INT64_MAX: there are none. */
int64_t heartbeats_due_at(struct heartbeats *h, const struct peer *p, int64_t sent_at);
void heartbeats_drop(struct heartbeats *h, struct intact_request *r); /* it is done */
/* The latest one of `r` is sent again, or an empty one. */
void heartbeats_again(struct heartbeats *h, struct intact_request *r);

/* What `r` has left for its next attempt. False: nothing. Any thread. */
bool heartbeat_resume(struct intact_request *r, struct buf *ret);

#endif
