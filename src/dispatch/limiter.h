#ifndef DISPATCH_LIMITER_H
#define DISPATCH_LIMITER_H

/*
 * How much may be at work at a time, and how fast it may begin: one agent, or one action of it, at
 * one node. A node has its part of what was set: limits hold for all nodes together.
 *
 * The rate is a bucket of tokens that fills with time, reckoned exactly. It holds one token and
 * what comes in 100 ms, so that who is woken a little late loses nothing: in any t ms at most `1 +
 * (t + 100) * count / period` begin.
 *
 * Pure: time comes from the caller, ms, and does not go back.
 */

#include "dispatch/settings.h"

struct limiter {
    bool by_concurrency, by_rate; /* neither: no limit */
    uint32_t most;                /* at a time */
    uint32_t open;                /* at work now; counted always */
    uint32_t count;               /* begins in each period_ms */
    int64_t period_ms;
    int64_t credit; /* at filled_at, in tokens of period_ms each: one more `count` every ms */
    int64_t filled_at;
};

/* One of `nodes` that share a limit, the one number `place` (from 0) by name. Before the others are
 * known: nodes 0, which has no part in anything. */
struct share {
    uint32_t nodes, place;
};

/* This node's part of the limit. The parts of all nodes together are the limit. What is open stays
 * counted, and a bucket that was there is as full as it was. A new one has what it could hold if
 * it had been filling since `since`. */
void limiter_set(struct limiter *l, const struct limit *whole, struct share share, int64_t since,
                 int64_t now);

static inline bool limiter_is_on(const struct limiter *l)
{
    return l->by_concurrency || l->by_rate;
}

/* Could anything ever begin here? */
bool limiter_is_shut(const struct limiter *l);

bool limiter_has_room(struct limiter *l, int64_t now); /* for one more to begin now */
void limiter_begin(struct limiter *l, int64_t now);    /* one begins: takes a token */

/* When the rate lets the next one begin; 0: it does now, or never will. */
int64_t limiter_ready_at(struct limiter *l, int64_t now);

/* How many it is worth having at hand for the next `ahead_ms`. UINT32_MAX: no limit. */
uint32_t limiter_fits(const struct limiter *l, int64_t ahead_ms);

uint32_t limiter_burst(uint32_t count, int64_t period_ms); /* whole tokens of a full bucket */

#endif
