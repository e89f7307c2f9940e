#ifndef OUTBOX_COURIER_H
#define OUTBOX_COURIER_H

/*
 * Delivers the messages in the store's outbox, on the node that leads.
 *
 * For each task and target, the next message is sent only after the previous one was delivered or
 * is dead: such a sequence is a chain. Chains do not wait for each other, and neither do targets. A
 * message that cannot be sent now is set aside in the store, and memory only keeps that its chain
 * is blocked. A target that fails is paused as a whole: all of its messages are set aside, and one
 * at a time is tried until one succeeds. Without a connection the target fails, not the message: no
 * message uses up an attempt, or waits longer than the target. So memory is bounded, and a slow or
 * unavailable target takes none from the others.
 *
 *     store: fresh --> chains --> channel --> delivered: deleted
 *              |          ^          |
 *              v          |          v
 *     store: aside -------+------ not now: set aside; never: dead
 *
 * At least once: delivered messages are deleted a little later, many at a time. After a crash, or
 * when another node takes over, some are delivered again, with the same ids.
 *
 * It runs on the loop's thread. Time and random numbers are passed in; the store is accessed by
 * jobs, the outside through channels.
 */

#include "base/prng.h"
#include "outbox/channel.h"
#include "store/job.h"

struct courier;

struct courier_outside {
    void *arg;
    int64_t (*now)(void *arg); /* the store's time, ms UTC */
    /* Whether this node leads. If so, *ret is the proof. */
    bool (*leads)(void *arg, struct fence *ret);
    /* The channel for a target; NULL: none, *e says why. */
    struct channel *(*channel)(void *arg, struct slice target, struct error *e);
    /* A target has begun to fail (story), or works again (NULL). May be NULL. */
    void (*target)(void *arg, struct slice target, const char *story);
    /* The delivery will not be tried any more. May be NULL. */
    void (*dead)(void *arg, const struct delivery *d);
};

struct courier_config {
    bool shared;            /* other nodes write to the store, too */
    int64_t give_up_ms;     /* the age at which a message is dead; 0: 3 days */
    int64_t backoff_ms;     /* the first pause after a failure, doubling; 0: 1 s */
    int64_t backoff_max_ms; /* 0: 5 min */
    size_t items_max;       /* messages in memory; 0: 16384 */
    uint64_t seed;          /* of random numbers */
};

struct courier *courier_new(const struct courier_config *c, struct store_queue *store,
                            const struct courier_outside *outside);
/* Requires that no job of it is in the store, and that its channels are closed. */
void courier_free(struct courier *o);

/* Does what is due. Returns when to call it next; 0: only after an event. */
int64_t courier_turn(struct courier *o);

void courier_told(struct courier *o); /* there may be new messages in the store */
/* These messages have just become durable, in one transaction, in this order; they are copied.
 * Messages that directly follow the known ones are sent at once, without reading them. */
void courier_stored(struct courier *o, const struct message *list, size_t count);
/* An operator changed messages: all targets are checked and tried again. */
void courier_by_hand(struct courier *o);
/* The channel is available again: its paused targets are tried at once. */
void courier_back(struct courier *o, const struct channel *c);
void courier_stop(struct courier *o); /* nothing more is sent; running deliveries may end */
bool courier_is_drained(const struct courier *o); /* and they have, and that is stored */
bool courier_is_busy(const struct courier *o);    /* with the store */
/* Passes each target a receiver of which has not answered yet. */
void courier_each_delivery(const struct courier *o, void (*take)(void *arg, struct slice target),
                           void *arg);

struct courier_stats {
    uint64_t delivered, failed, dead, set_aside; /* total attempts and messages */
    size_t items, targets, paused, blocked;      /* now */
};
void courier_stats(const struct courier *o, struct courier_stats *ret);

/* When a paused target is tried next; 0: it is not paused, or that is unknown. `story` (at least
 * 200 bytes, may be NULL) gets the reason. */
int64_t courier_paused_until(const struct courier *o, struct slice target, char *story);

#endif
