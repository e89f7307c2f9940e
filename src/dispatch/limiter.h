#ifndef DISPATCH_LIMITER_H
#define DISPATCH_LIMITER_H

/*
 * Limits the concurrency and the rate of one agent, or one of its actions, at one node. A node has
 * its share of the configured limit: limits hold for all nodes together.
 *
 * The rate is a token bucket that fills with time, computed exactly. It holds one token and what
 * arrives in 100 ms, so that a late wake-up loses nothing: in any t ms at most `1 + (t + 100) *
 * count / period` attempts start.
 *
 * Pure: the caller gives the time in ms; it never goes backwards.
 */

#include "dispatch/agent_settings.h"

struct limiter {
    bool by_concurrency, by_rate; /* neither: no limit */
    uint32_t most;                /* concurrent */
    uint32_t open;                /* at work now; always counted */
    uint32_t count;               /* starts in each period_ms */
    int64_t period_ms;
    int64_t credit; /* at filled_at, in units of 1/period_ms token: grows by `count` every ms */
    int64_t filled_at;
};

/* The share of node `place` (from 0, in the order of names) of `nodes` that share a limit. nodes 0:
 * the others are not known yet; no share. */
struct share {
    uint32_t nodes, place;
};

/* Sets this node's share. The shares of all nodes add up to the limit. Open attempts stay counted,
 * and an existing bucket keeps its tokens. A new bucket has what it would hold if it had been
 * filling since `since`. */
void limiter_set(struct limiter *l, const struct limit *whole, struct share share, int64_t since,
                 int64_t now);

static inline bool limiter_is_on(const struct limiter *l)
{
    return l->by_concurrency || l->by_rate;
}

/* Can nothing ever start here? */
bool limiter_is_shut(const struct limiter *l);

bool limiter_has_room(struct limiter *l, int64_t now); /* for one more to start now */
void limiter_begin(struct limiter *l, int64_t now);    /* one starts: takes a token */

/* When the rate lets the next one start; 0: now, or never. */
int64_t limiter_ready_at(struct limiter *l, int64_t now);

/* How many are worth having in memory for the next `ahead_ms`. UINT32_MAX: no limit. */
uint32_t limiter_fits(const struct limiter *l, int64_t ahead_ms);

uint32_t limiter_burst(uint32_t count, int64_t period_ms); /* whole tokens in a full bucket */

#endif
