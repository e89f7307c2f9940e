#ifndef OUTBOX_CHANNEL_H
#define OUTBOX_CHANNEL_H

/*
 * How messages get to a target: webhooks and AMQP are bodies of it. Who delivers knows nothing of
 * their protocols, and a channel knows nothing of the order of messages or of tries: it takes what
 * it is given, and says of each what became of it.
 *
 * All is called on the loop's thread, but for `takes`. Work that waits for the outside is done on
 * threads of the channel's own, which come back to the loop by themselves.
 */

#include "base/base.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"

enum delivery_end {
    DELIVERED,      /* it is the receiver's now, as far as it says */
    DELIVERY_RETRY, /* not now: `story` says why. It may have been taken all the same */
    DELIVERY_AWAY,  /* the same, but nothing is wrong with it: no connection was there, or it broke
                     */
    DELIVERY_REFUSED, /* never: the target is gone, or it is too large */
};

/* One message, or the event of an alert. The maker's again once it is done. */
struct delivery {
    struct link link; /* the maker's, and the channel's while it has it */
    struct slice id;  /* stable over all tries: whoever gets it twice knows it by this */
    struct slice target, type, subject; /* target: as in reply_to; type: of the CloudEvent */
    /* The CloudEvent, as JSON. NONE: `write` appends it, called by the channel while it has the
     * delivery, on any thread, each time with the same outcome. */
    struct slice body;
    void (*write)(const struct delivery *d, struct buf *ret);
    size_t size;        /* of what `write` writes, at most */
    int64_t created_at; /* ms UTC */
    uint32_t tries;     /* made before this one */
    /* out: */
    enum delivery_end end;
    int64_t
        retry_after_ms; /* RETRY, AWAY: the receiver asked for so much patience; 0: it did not */
    char story[200];    /* RETRY, AWAY, REFUSED: one line */
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

/* Every body begins with this. */
struct channel {
    const struct channel_ops *ops;
    /* Whoever uses it sets this. It is called on the loop's thread when what was away may be there
     * from now on; NULL: nobody waits for that. */
    void (*back)(void *arg);
    void *back_arg;
};

/* Called later, on the loop's thread, once, with all of them ended. */
typedef void delivery_done_fn(void *arg, struct delivery **list, size_t count);

struct channel_ops {
    /* Does it take this target? False: *e says what would. Any thread. */
    bool (*takes)(struct channel *c, struct slice target, struct error *e);

    /* How many deliveries it takes at once for that target, at least 1: of different tasks or of
     * the same, in order. */
    size_t (*batch_max)(struct channel *c, struct slice target);

    /* Takes the deliveries, all of one target, in order; `done` is called later, never from within.
     * If one of them did not get there, those behind it in the list that are of the same subject
     * must not have got there either, and end RETRY or AWAY. */
    void (*send)(struct channel *c, struct delivery **list, size_t count, delivery_done_fn *done,
                 void *arg);

    /* Gives up what is under way (`done` is not called any more), and frees it. */
    void (*close)(struct channel *c);
};

#endif
