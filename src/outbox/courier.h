#ifndef OUTBOX_COURIER_H
#define OUTBOX_COURIER_H

/*
 * Delivers what the outbox of the store holds, on the one node that leads.
 *
 * For each task and target the next message goes only after the one before it was delivered, or is
 * dead: such a row of messages is a chain. Chains do not wait for each other, and targets do not.
 * A message that cannot go now is set aside in the store, and memory keeps only that its chain is
 * blocked. A target that fails is paused as a whole: all of its messages are set aside, and one at
 * a time is tried until one gets there. Where there is no connection it is the target that fails,
 * and never a message: none of them has used up a try, or waits longer than the target. So memory
 * is bounded, and who is slow or down takes none from the others.
 *
 *     store: fresh --> chains --> channel --> delivered: deleted
 *              |          ^          |
 *              v          |          v
 *     store: aside -------+------ not now: set aside; never: dead
 *
 * At least once: what was delivered is deleted a little later, many at a time. After a crash, or
 * when another node takes over, some are delivered again, under the same ids.
 *
 * It lives on the loop's thread. Time and chance are handed in, the store is reached by jobs, the
 * outside through channels.
 */

#include "base/prng.h"
#include "outbox/channel.h"
#include "store/job.h"

struct courier;

struct courier_outside {
    void *arg;
    int64_t (*now)(void *arg); /* the store's time, ms UTC */
    /* Does this node lead? Then *ret is its proof. */
    bool (*leads)(void *arg, struct fence *ret);
    /* Who takes it; NULL: nobody does, *e says why. */
    struct channel *(*channel)(void *arg, struct slice target, struct error *e);
    /* A target fails since just now (story), or works again (NULL). NULL: nobody is to be told. */
    void (*target)(void *arg, struct slice target, const char *story);
    /* It will not be tried any more. NULL: as above. */
    void (*dead)(void *arg, const struct delivery *d);
};

struct courier_config {
    bool shared;            /* the store: others write into it, too */
    int64_t give_up_ms;     /* a message is dead after so long; 0: 3 days */
    int64_t backoff_ms;     /* the first pause after a failure, doubling; 0: 1 s */
    int64_t backoff_max_ms; /* 0: 5 min */
    size_t items_max;       /* messages in memory; 0: 16384 */
    uint64_t seed;          /* of chance */
};

struct courier *courier_new(const struct courier_config *c, struct store_queue *store,
                            const struct courier_outside *outside);
/* No job of it is with the store, and its channels are closed. */
void courier_free(struct courier *o);

/* Does what is due. Returns when to be called next; 0: nothing is due by itself. */
int64_t courier_turn(struct courier *o);

void courier_told(struct courier *o); /* there may be new messages in the store */
/* These have just become durable, all of one transaction, in their order; they are copied. What
 * follows what is known already goes at once, and need not be read. */
void courier_stored(struct courier *o, const struct message *list, size_t count);
/* People did something to messages: all targets are looked at, and tried, again. */
void courier_by_hand(struct courier *o);
/* What was away is there again: targets that it leads to, and that are paused, are tried at once.
 */
void courier_back(struct courier *o, const struct channel *c);
void courier_stop(struct courier *o); /* nothing more is sent; what is under way may end */
bool courier_is_drained(const struct courier *o); /* and it has, and that is written */
bool courier_is_busy(const struct courier *o);    /* with the store */

struct courier_stats {
    uint64_t delivered, failed, dead, set_aside; /* tries and messages, ever */
    size_t items, targets, paused, blocked;      /* now */
};
void courier_stats(const struct courier *o, struct courier_stats *ret);

/* When a target that is paused is tried next; 0: it is not paused, or nobody knows. `story` (at
 * least 200 bytes) is why; may be NULL. */
int64_t courier_paused_until(const struct courier *o, struct slice target, char *story);

#endif
