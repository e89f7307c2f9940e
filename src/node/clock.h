#ifndef NODE_CLOCK_H
#define NODE_CLOCK_H

/* The times of a node: the store's time, by which everything expires, and the steady clock, which
 * never jumps. */

#include "base/base.h"

struct server;

struct node_clock {
    int64_t wall_minus_steady_ms; /* at the start: the anchor of all our times */
    int64_t logged_off_ms;        /* the wall clock's distance from it, as last logged */
    int64_t check_at;             /* steady */
};

void clock_start(struct server *sv); /* needs the store; before anything else uses a time */
void clock_check(struct server *sv); /* logs a jump of the wall clock; in each turn */

int64_t server_now(void *arg); /* the store's time; arg is the server. Any thread */
/* This node's time when its loop last woke up: costs next to nothing. Event loop only. */
int64_t server_turn_now(const struct server *sv);
/* The store's time or this machine's, whichever is earlier: for changes that cannot be undone. A
 * single clock that is ahead makes nothing old. */
int64_t server_now_at_least(struct server *sv);
/* The store's time. Where time is virtual it also goes on in between, as real time does: for what
 * happens outside (deliveries, alerts), and housekeeping. arg is the server. Any thread. */
int64_t server_now_elapsing(void *arg);
/* A moment by that time (0: none), as one by the store's time. */
int64_t server_of_elapsing(struct server *sv, int64_t at);
int64_t server_steady(void *arg); /* arg is ignored. Any thread */
int64_t wall_now_ms(void);        /* this machine's wall clock */

#endif
