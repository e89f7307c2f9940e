#ifndef AMQP_BROKER_H
#define AMQP_BROKER_H

/*
 * A broker: one AMQP 1.0 connection (Qpid Proton), which is reopened as often as necessary.
 *
 *     WAITS --> RESOLVES --> CONNECTS --> TALKS
 *       ^          |            |           |
 *       +----------+------------+-----------+   on any failure; with growing delays
 *
 * One thread owns it and everything that belongs to it; nothing here blocks. Callbacks are only
 * called in broker_turn.
 *
 * Each queue has its own session, because some brokers end a session for the error of one link.
 */

#include <poll.h>

#include "amqp/amqp_config.h"
#include "base/list.h"

struct broker;
struct receiver;

/* `container` is our id for the broker; it is copied. The password is read again for each
 * connection. */
struct broker *broker_new(const struct broker_config *c, const char *container);
void broker_free(struct broker *b); /* aborts it: unsent messages are lost. NULL is allowed */

/* False: it has no descriptor at present. */
bool broker_poll(struct broker *b, struct pollfd *ret);
int64_t broker_wake_at(struct broker *b); /* CLOCK_BOOTTIME, ms */
void broker_turn(struct broker *b);       /* handles input, due timers and output */
bool broker_is_open(const struct broker *b);
bool broker_is_quiet(struct broker *b); /* no output is pending */
const struct broker_config *broker_config(const struct broker *b);

/* ---- sending ---- */

enum sent {
    SENT_ACCEPTED, /* the broker has accepted it */
    SENT_REJECTED, /* the broker never accepts it */
    SENT_NOT_NOW,  /* the broker does not accept it now */
    SENT_NO_WAY,   /* the queue is unavailable now */
    SENT_LOST,     /* the connection broke: the outcome is unknown */
};

typedef void sent_fn(void *arg, enum sent end, const char *why);

/* Sends an encoded message to a queue, durably; it waits for a connection. `bytes` is from malloc,
 * and is freed. `done` is called once. */
void broker_send(struct broker *b, struct slice queue, char *bytes, size_t size, sent_fn *done,
                 void *arg);

/* ---- receiving ---- */

/* An unsettled message: no other receiver gets it until it is settled or the connection breaks. */
struct arrival {
    struct link link;    /* the receiver's */
    struct link of_user; /* for its holder */
    struct receiver *receiver;
    void *delivery;    /* NULL: the connection has ended, and settling does nothing */
    struct buf text;   /* the encoded message */
    bool is_too_large; /* then there is no text */
    bool is_apart;     /* it is not counted */
    uint32_t tries;    /* for its holder */
    int64_t at;        /* for its holder */
};

typedef void arrival_fn(void *arg, struct arrival *a);

enum settling {
    SETTLE_ACCEPT,
    SETTLE_REJECT,  /* to the broker's dead letters */
    SETTLE_RELEASE, /* to the next receiver */
};

/* Receives the messages of a queue from now on, at most `credit` at a time. It ends with the
 * broker. */
struct receiver *broker_receive(struct broker *b, struct slice queue, uint32_t credit,
                                arrival_fn *fn, void *arg);
void receiver_stop(struct receiver *r); /* no further messages */
struct slice receiver_queue(const struct receiver *r);
const struct broker_config *receiver_broker(const struct receiver *r);

/* It waits for what may be behind it in the queue: until it is settled it does not count towards
 * the credit, so that the broker delivers another one. Of a receiver, AMQP_CREDIT_MAX at most. */
void arrival_set_apart(struct arrival *a);

/* `why` is for people, and may be NULL. Frees it. */
void arrival_settle(struct arrival *a, enum settling how, const char *why);

#endif
