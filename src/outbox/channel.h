#ifndef OUTBOX_CHANNEL_H
#define OUTBOX_CHANNEL_H

/*
 * How messages reach a target; webhooks and AMQP implement it. The courier knows nothing of their
 * protocols, and a channel knows nothing of the order of messages or of retries: it takes
 * deliveries, and reports how each ended.
 *
 * All functions are called on the loop's thread, except `takes`. Blocking work is done on the
 * channel's own threads, which report back to the loop.
 */

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"

enum delivery_end {
    DELIVERED,        /* the receiver has accepted it */
    DELIVERY_RETRY,   /* not now: `story` says why. It may have been received nevertheless */
    DELIVERY_AWAY,    /* the same, but not because of the message: there was no connection, or it
                       * broke */
    DELIVERY_REFUSED, /* never: the target is gone, or the message is too large */
};

/* One message, or the event of an alert. It returns to its creator once it is done. */
struct delivery {
    struct link link; /* the creator's, and the channel's while it has the delivery */
    struct slice id;  /* stable over all attempts, so that the receiver can detect repetitions */
    struct slice target, type, subject; /* target: as in reply_to; type: of the CloudEvent */
    /* The CloudEvent, as JSON. NONE: `write` appends it; the channel calls that while it has the
     * delivery, on any thread, always with the same result. */
    struct slice body;
    void (*write)(const struct delivery *d, struct buf *ret);
    size_t size;        /* the maximum that `write` writes */
    int64_t created_at; /* ms UTC */
    uint32_t tries;     /* earlier attempts */
    /* out: */
    enum delivery_end end;
    int64_t retry_after_ms; /* RETRY, AWAY: the wait that the receiver asked for; 0: none */
    char story[200];        /* RETRY, AWAY, REFUSED: one line */
};

static inline void delivery_write(const struct delivery *d, struct buf *ret)
{
    if (d->write)
        d->write(d, ret);
    else
        buf_slice(ret, d->body);
}

static inline size_t delivery_size(const struct delivery *d)
{
    return d->write ? d->size : d->body.len;
}

struct channel_ops;

/* The first member of every implementation. */
struct channel {
    const struct channel_ops *ops;
    /* Set by the user of the channel, and called on the loop's thread when an unavailable target
     * may be available again; may be NULL. */
    void (*back)(void *arg);
    void *back_arg;
};

/* Called later, on the loop's thread, once, when all of them have ended. */
typedef void delivery_done_fn(void *arg, struct delivery **list, size_t count);

struct channel_ops {
    /* Whether it accepts this target. False: *e says what it would accept. Any thread. */
    bool (*takes)(struct channel *c, struct slice target, struct error *e);

    /* The maximum number of concurrent deliveries to that target, at least 1: of different tasks or
     * of the same, in order. */
    size_t (*batch_max)(struct channel *c, struct slice target);

    /* Takes the deliveries, all for one target, in order; `done` is called later, never from
     * within. If one of them was not delivered, later ones in the list with the same subject must
     * not be delivered either, and end RETRY or AWAY. */
    void (*send)(struct channel *c, struct delivery **list, size_t count, delivery_done_fn *done,
                 void *arg);

    /* Aborts running deliveries (`done` is not called any more), and frees the channel. */
    void (*close)(struct channel *c);
};

#endif
