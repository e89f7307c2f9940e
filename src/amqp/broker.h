#ifndef AMQP_BROKER_H
#define AMQP_BROKER_H

/*
 * A broker: one connection by AMQP 1.0 (Qpid Proton), which is made again for as long as it takes.
 *
 *     WAITS --> RESOLVES --> CONNECTS --> TALKS
 *       ^          |            |           |
 *       +----------+------------+-----------+   whatever goes wrong; then longer and longer
 *
 * One thread owns it and all that belongs to it; nothing here waits. Functions that are handed in
 * are called in broker_turn alone.
 *
 * Each queue has a session of its own, since some brokers end a session for what one link did
 * wrong.
 */

#include <poll.h>

#include "amqp/config.h"
#include "base/list.h"

struct broker;
struct receiver;

/* `container` is what the broker knows us as; it is copied. The password is read anew for each
 * connection. */
struct broker *broker_new(const struct broker_config *c, const char *container);
void broker_free(struct broker *b); /* breaks it off: what was to be sent is lost. NULL is fine */

/* False: it has no descriptor now. */
bool broker_poll(struct broker *b, struct pollfd *ret);
int64_t broker_wake_at(struct broker *b); /* CLOCK_BOOTTIME, ms */
void broker_turn(struct broker *b);       /* whatever has come, is due, or is to go out */
bool broker_is_open(const struct broker *b);
bool broker_is_quiet(struct broker *b); /* nothing that was to go out is still here */
const struct broker_config *broker_config(const struct broker *b);

/* ---- sending ---- */

enum sent {
    SENT_ACCEPTED, /* it is the broker's now */
    SENT_REJECTED, /* the broker does not take it, whenever it comes */
    SENT_NOT_NOW,  /* the broker does not take it now */
    SENT_NO_WAY,   /* the queue cannot be reached now */
    SENT_LOST,     /* the connection broke: nobody knows */
};

typedef void sent_fn(void *arg, enum sent end, const char *why);

/* Sends a message, encoded, to a queue, durably; it waits until there is a connection. `bytes` is
 * from malloc, and taken. `done` is called once. */
void broker_send(struct broker *b, struct slice queue, char *bytes, size_t size, sent_fn *done,
                 void *arg);

/* ---- receiving ---- */

/* A message that was lent to us: nobody else gets it, until it is settled or the connection breaks.
 */
struct arrival {
    struct link link;    /* the receiver's */
    struct link of_user; /* whoever has it may use it */
    struct receiver *receiver;
    void *delivery;    /* NULL: the connection has gone, settling does nothing */
    struct buf text;   /* the message, encoded */
    bool is_too_large; /* then there is no text */
    uint32_t tries;    /* the user's */
    int64_t at;        /* the user's */
};

typedef void arrival_fn(void *arg, struct arrival *a);

enum settling {
    SETTLE_ACCEPT,
    SETTLE_REJECT,  /* to the broker's dead letters */
    SETTLE_RELEASE, /* to whoever is next */
};

/* From now on what a queue has comes in, at most `credit` at a time. It ends with the broker. */
struct receiver *broker_receive(struct broker *b, struct slice queue, uint32_t credit,
                                arrival_fn *fn, void *arg);
void receiver_stop(struct receiver *r); /* nothing more comes */
struct slice receiver_queue(const struct receiver *r);
const struct broker_config *receiver_broker(const struct receiver *r);

/* `why` is for people, and may be NULL. Frees it. */
void arrival_settle(struct arrival *a, enum settling how, const char *why);

int64_t amqp_now_ms(void); /* CLOCK_BOOTTIME */

#endif
