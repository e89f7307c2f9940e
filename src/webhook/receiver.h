#ifndef WEBHOOK_RECEIVER_H
#define WEBHOOK_RECEIVER_H

/*
 * A target of the configuration at work: the posts to all URLs below it. It has its connections for
 * itself, and of each host so many requests at a time as the configuration says: whoever is slow
 * has others wait only for the same host. Used by the thread of webhook.c alone.
 */

#include "base/map.h"
#include "net/reactor.h"
#include "outbox/channel.h"
#include "webhook/secrets.h"

/* Some deliveries of one URL, until all of them have ended. */
struct post {
    struct link link;
    struct delivery **list; /* as they came; its own array */
    size_t count;
    delivery_done_fn *done;
    void *arg;
    const struct webhook_target *target; /* NULL: none takes it any more */
    size_t index;                        /* of the target */
    char *url;
    char *origin; /* the host that it waits for */
    /* While it is being made: */
    struct receiver *receiver;
    struct host *host;
    struct delivery **left; /* those that have not ended, in order */
    size_t left_count;
    size_t size;        /* so many of them are tried at once */
    struct buf content; /* what is signed: ID.TIME.BODY */
    struct transfer *transfer;
};

struct receiver {
    const struct webhook_target *target;
    const struct webhook_secret *secret; /* those that hold now */
    struct reactor reactor;
    struct map hosts;  /* of struct host, by their origin */
    struct link ready; /* of struct host: those that may make another request */
    struct link idle;  /* of struct transfer */
    struct link posts; /* that are being made */
    struct link ended; /* posts, for whoever takes them */
    size_t in_flight;
    bool is_ready; /* something came */
};

/* False: out of descriptors, or libcurl cannot be used. */
bool receiver_open(struct receiver *r, const struct webhook_target *t) MUST_USE;
void receiver_close(struct receiver *r); /* its posts are freed */

void receiver_take(struct receiver *r, struct post *p); /* begins with the next turn */
void receiver_turn(struct receiver *r);                 /* whatever has come, or is due */

/* Copies the list. */
struct post *post_new(struct delivery **list, size_t count, delivery_done_fn *done, void *arg);
void post_free(struct post *p);
/* All that has not ended ends so. */
void post_end_all(struct post *p, enum delivery_end end, const char *story);

#endif
