#ifndef WEBHOOK_RECEIVER_H
#define WEBHOOK_RECEIVER_H

/*
 * A configured target at work: the posts to all URLs below it. It has its own connections, and for
 * each host as many concurrent requests as configured: a slow host delays only its own posts. Used
 * only by the thread of webhook.c.
 */

#include "base/map.h"
#include "net/reactor.h"
#include "outbox/channel.h"
#include "webhook/webhook_secrets.h"

/* Some deliveries to one URL, until all of them have ended. */
struct post {
    struct link link;
    struct delivery **list; /* in the original order; its own array */
    size_t count;
    delivery_done_fn *done;
    void *arg;
    const struct webhook_target *target; /* NULL: it was removed from the configuration */
    size_t index;                        /* of the target */
    char *url;
    char *origin; /* the host it waits for */
    /* While it is being sent: */
    struct receiver *receiver;
    struct host *host;
    struct delivery **left; /* those that have not ended, in order */
    size_t left_count;
    size_t size;        /* how many of them to try at once */
    struct buf content; /* what is signed: ID.TIME.BODY */
    struct transfer *transfer;
};

struct receiver {
    const struct webhook_target *target;
    const struct webhook_secret *secret; /* the current ones */
    struct reactor reactor;
    struct map hosts;  /* of struct host, by origin */
    struct link ready; /* of struct host: those that may start another request */
    struct link idle;  /* of struct transfer */
    struct link posts; /* being sent */
    struct link ended; /* posts, to be collected */
    size_t in_flight;
    bool is_ready; /* there is input */
};

/* False: no descriptors, or libcurl is unusable. */
bool receiver_open(struct receiver *r, const struct webhook_target *t) MUST_USE;
void receiver_close(struct receiver *r); /* frees its posts */

void receiver_take(struct receiver *r, struct post *p); /* starts with the next turn */
void receiver_turn(struct receiver *r);                 /* handles input and due timers */

/* Copies the list. */
struct post *post_new(struct delivery **list, size_t count, delivery_done_fn *done, void *arg);
void post_free(struct post *p);
/* Ends all that have not ended. */
void post_end_all(struct post *p, enum delivery_end end, const char *story);

#endif
