#ifndef INTAKE_NOTICES_H
#define INTAKE_NOTICES_H

/*
 * Takes notices from the table `notice` and passes them to the scheduler, which decides on each
 * like on any other command; the change that follows deletes them.
 *
 * Works in rounds: a page of rows is read, those that this node is to take become asks, and what
 * changed nothing is settled in one transaction when all are answered. There is no cursor beyond a
 * round: numbers that become visible late, and tasks that cannot take theirs, hold up nobody. But
 * no notice overtakes another one of its task: while one stays, the later ones do, on all pages.
 *
 * Where nodes share the store, a node reads those of tasks that it owns, its part of the others, by
 * a hash of the task, and the next parts those that nobody has taken for a while. That two nodes
 * take one does no harm: the change of one of them finds it gone, and is not done.
 *
 * A page is bounded in bytes, and is made asks of in several turns.
 */

#include "scheduler/scheduler.h"

/* One notice of a round. */
struct notice_item {
    void (*answered)(struct ask *a); /* first: for `ask.user` */
    struct notices *in;
    const struct notice_row *row;
    struct arena *arena;  /* of the round: for what is made of it */
    struct ask ask;       /* made by `read`; `notice` and `id` are set here */
    struct slice problem; /* why it is refused, in that arena; NONE: it is not */
    bool settles;         /* its row is dealt with at the end of the round */
};

struct notices_config {
    struct store_queue *store;
    struct clock clock;
    struct slice me; /* "node/boot"; it must outlive this */
    bool shared;
    size_t page_max; /* default 512 */
    void *arg;
    size_t (*room)(void *arg);                       /* asks that may be made now */
    void (*read)(void *arg, struct notice_item *it); /* makes it->ask, or says it->problem */
    void (*ask)(void *arg, struct notice_item *it);  /* notices_answered follows */
    void (*refused)(void *arg, const struct notice_item *it); /* when that is durable */
    void (*failed)(void *arg, const struct error *e);         /* it is tried again later */
};

struct notices *notices_new(const struct notices_config *c);
void notices_free(struct notices *in); /* no job is at the store, no ask is open */

void notices_wake(struct notices *in); /* there are some */
void notices_surveyed(struct notices *in, const struct survey *v);
void notices_answered(struct notice_item *it); /* it->ask was answered */
int64_t notices_turn(struct notices *in);      /* does what is due; when to call it again, or 0 */
void notices_drain(struct notices *in);        /* takes no more */
/* Some may wait to be read soon, or are being decided. */
bool notices_has_news(const struct notices *in);
bool notices_is_busy(const struct notices *in);

#endif
