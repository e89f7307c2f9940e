#ifndef AMQP_WAY_H
#define AMQP_WAY_H

/* The link to or from one queue, in a session of its own. Private to this folder. */

#include <proton/connection_driver.h>
#include <proton/link.h>
#include <proton/session.h>

#include "amqp/broker.h"
#include "base/log.h"

struct way {
    struct link link; /* in the broker's list */
    struct broker *broker;
    struct slice queue; /* owned */
    pn_link_t *pn;      /* NULL: not attached */
    bool is_receiver, is_open, is_stopped;
    uint32_t failures, attached; /* attached: how often */
    int64_t retry_at;            /* when it is attached again */
    int64_t used_at, attached_at;
    char why[160]; /* the reason of its last failure */
    /* Senders: */
    struct link waiting, under_way; /* of struct sending */
    uint32_t careful;               /* this many more go one at a time, because one is too large */
    /* Receivers: */
    uint32_t credit;
    uint32_t apart; /* arrivals that do not count */
    arrival_fn *fn;
    void *arg;
    struct link arrivals;
    struct buf partial;
    size_t held; /* bytes of arrivals */
    bool is_too_large;
};

struct receiver {
    struct way way;
};

struct sending {
    struct link link;
    char *bytes;
    size_t size;
    sent_fn *done;
    void *arg;
};

struct way *way_new(struct broker *b, struct slice queue, bool is_receiver);
void way_free(struct way *l);
void way_attach(struct way *l, pn_connection_t *c, const struct broker_config *config);
void way_detach(struct way *l); /* regularly; messages under way count as lost */
void way_lost(struct way *l);   /* its connection has ended */
void way_pump(struct way *l);   /* sends what it may */
void way_read(struct way *l);   /* continues with unread messages */
/* Moves waiting and sent messages to `ret`. */
void way_take_sendings(struct way *l, struct link *ret);
/* If it failed because a message is too large, moves that one to `ret`. If several could be the
 * cause, they are sent again, one at a time. */
void way_take_too_large(struct way *l, pn_condition_t *why, struct link *ret);
void way_failed(struct way *l, pn_condition_t *why, uint64_t chance);
/* `what` and its queue; reason NULL: none. */
void way_log(enum log_level level, const char *what, const struct way *l, const char *reason);
void way_on_delivery(struct way *l, pn_delivery_t *d);
void sendings_end(struct link *list, enum sent end, const char *why); /* all of them */

#endif
