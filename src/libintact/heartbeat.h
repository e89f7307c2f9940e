#ifndef LIBINTACT_HEARTBEAT_H
#define LIBINTACT_HEARTBEAT_H

/*
 * Heartbeats on their way from handlers to the server. A handler stores its latest one in its
 * request; the thread that drives the agent sends the stored ones in one call, not too often, and
 * drops them. A lost one is not sent again, because the next one replaces it; for steps that
 * require heartbeats, see pulse.h.
 */

#include <pthread.h>

#include "libintact/request.h"

enum { HEARTBEAT_PROGRESS_MAX = 2048, HEARTBEAT_MESSAGE_MAX = 256, HEARTBEATS_MAX = 1000 };

struct heartbeats {
    pthread_mutex_t lock; /* protects the list, and `beat` of the requests in it */
    struct link pending;  /* of struct intact_request, by `beat_link` */
    bool closed;          /* the agent has ended: none are accepted */
};

void heartbeats_init(struct heartbeats *h);
void heartbeats_close(struct heartbeats *h); /* drops the contents */
void heartbeats_fini(struct heartbeats *h);

/* Writes those for that server as members of `beats`, removes them and sets `beat_on`. Returns
 * their number. */
size_t heartbeats_take(struct heartbeats *h, struct peer *p, struct buf *b);
/* When they may be sent, if the last ones were sent at `sent_at`; INT64_MAX: there are none. */
int64_t heartbeats_due_at(struct heartbeats *h, const struct peer *p, int64_t sent_at);
void heartbeats_drop(struct heartbeats *h, struct intact_request *r); /* the request is done */
/* Sends the latest one of `r` again, or an empty one. */
void heartbeats_again(struct heartbeats *h, struct intact_request *r);

/* The resume details that `r` has left. False: none. Any thread. */
bool heartbeat_resume(struct intact_request *r, struct buf *ret);

#endif
