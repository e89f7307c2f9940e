#ifndef NODE_CHANNELS_H
#define NODE_CHANNELS_H

/* The channels of status messages: webhooks and queues. Which of them takes a target? */

#include "base/buf.h"
#include "base/err.h"

struct channel; /* outbox/channel.h */
struct server;

struct channels {
    struct channel *webhooks; /* NULL: none are configured. That of queues is config.amqp */
    struct buf taken;         /* the last target that was: most tasks have the same, or a few */
};

/* NULL: *e tells what would be needed. */
struct channel *channels_find(const struct server *sv, struct slice target, struct error *e);
/* Is there a channel for it? False: the same. */
bool channels_take(struct server *sv, struct slice target, struct error *e);

#endif
