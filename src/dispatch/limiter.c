/* One node's share of a limit on concurrency and rate. Pure: the time is an argument. See
 * limiter.h; lanes.c asks it before each attempt. */

#include "dispatch/limiter.h"

enum { BURST_MS = 100 };

uint32_t limiter_burst(uint32_t count, int64_t period_ms)
{
    return count > 0 ? 1 + (uint32_t)((int64_t)count * BURST_MS / period_ms) : 0;
}

static uint32_t part_of(uint32_t whole, struct share s)
{
    if (s.nodes == 0)
        return 0;
    return whole / s.nodes + (s.place < whole % s.nodes);
}

static int64_t brimful(const struct limiter *l)
{
    return l->count > 0 ? l->period_ms + (int64_t)l->count * BURST_MS : 0;
}

static void fill(struct limiter *l, int64_t now)
{
    int64_t full = brimful(l);

    if (now <= l->filled_at)
        return;
    /* division, because the product could overflow after a long time */
    bool fills = l->count > 0 && now - l->filled_at > (full - l->credit) / l->count;
    l->credit = fills ? full : l->credit + (now - l->filled_at) * l->count;
    l->filled_at = now;
}

void limiter_set(struct limiter *l, const struct limit *whole, struct share share, int64_t since,
                 int64_t now)
{
    bool had = l->by_rate && l->period_ms > 0;
    int64_t tokens_1000 = 0;

    if (had) {
        fill(l, now);
        tokens_1000 = l->credit / max_i64(1, l->period_ms / 1000);
    }
    l->by_concurrency = whole->concurrency > 0;
    l->most = part_of(whole->concurrency, share);
    l->by_rate = whole->rate_count > 0;
    l->count = part_of(whole->rate_count, share);
    l->period_ms = whole->rate_ms;
    if (!l->by_rate)
        return;
    l->filled_at = had ? now : min_i64(since, now);
    l->credit = had ? min_i64(brimful(l), tokens_1000 * (l->period_ms / 1000)) : 0;
    fill(l, now);
}

bool limiter_is_shut(const struct limiter *l)
{
    return (l->by_concurrency && l->most == 0) || (l->by_rate && l->count == 0);
}

bool limiter_has_room(struct limiter *l, int64_t now)
{
    if (l->by_concurrency && l->open >= l->most)
        return false;
    if (!l->by_rate)
        return true;
    fill(l, now);
    return l->credit >= l->period_ms;
}

void limiter_begin(struct limiter *l, int64_t now)
{
    if (!l->by_rate)
        return;
    fill(l, now);
    l->credit -= l->period_ms;
}

int64_t limiter_ready_at(struct limiter *l, int64_t now)
{
    if (!l->by_rate || l->count == 0)
        return 0;
    fill(l, now);
    int64_t missing = l->period_ms - l->credit;
    return missing <= 0 ? 0 : now + (missing + l->count - 1) / l->count;
}

uint32_t limiter_fits(const struct limiter *l, int64_t ahead_ms)
{
    uint64_t fits = UINT32_MAX;

    if (l->by_concurrency)
        fits = l->most;
    if (l->by_rate) {
        uint64_t soon = l->count == 0 ? 0
                                      : limiter_burst(l->count, l->period_ms)
                                            + (uint64_t)(ahead_ms * l->count / l->period_ms);
        fits = soon < fits ? soon : fits;
    }
    return (uint32_t)fits;
}
