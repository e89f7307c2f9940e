/* Crashes, suspensions, drains and other faults of nodes and the store, at times drawn from the
 * seed (storm.h). node.c carries them out. weather.c draws how frequent they are; scenes cause
 * their faults themselves. */

#include "sim/storm.h"

#include "base/when.h"
#include "sim/coverage.h"
#include "sim/node.h"
#include "sim/weather.h"
#include "sim/world.h"

/* ---- faults; a node of NULL: none is available ---- */

static void crash(struct node *n)
{
    if (n)
        node_crash(n, "out of the blue");
}

static void suspend(struct node *n)
{
    if (n)
        node_suspend(n, spread(10, weather.outage_max_ms));
}

static void drain(struct node *n)
{
    if (n && node_is_awake(n))
        node_drain(n);
}

static void usurp(struct node *n)
{
    if (n)
        node_usurp(n);
}

static void cut(struct node *n)
{
    int64_t ms = spread(100, MS_PER_MIN);

    if (!n || n->disk.cut_until > world.now)
        return;
    trace("%s is cut off from the store for %" PRId64 " ms", n->me, ms);
    disk_cut(&n->disk, ms);
}

static void deafen(struct node *n)
{
    int64_t ms = spread(100, MS_PER_MIN);

    if (!n || !node_is_up(n) || !node_hears(n))
        return;
    trace("nobody reaches %s for %" PRId64 " ms", n->me, ms);
    covered(COVER_DEAF);
    n->deaf_until = world.now + ms;
}

/* The standby's clock is mostly off by a little, rarely by an unrealistic amount. */
static void fail_over(struct node *n)
{
    int64_t ahead = 0;

    (void)n;
    if (!nodes.shared)
        return;
    if (chance(weather.standby_clock)) {
        ahead = spread(1, chance(100) ? MS_PER_H : MS_PER_MIN);
        if (chance(400))
            ahead = -ahead;
    }
    int64_t ms = spread(100, MS_PER_MIN);
    store_fails_over(ms, ahead);
}

static void drains_later(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    struct node *any = node_any();
    if (!world.calm)
        drain(any);
}

/* A power failure, and soon after it the drain of a node. */
static void black_out(struct node *n)
{
    (void)n;
    covered(COVER_BLACKOUT);
    int64_t away = spread(5000, weather.outage_max_ms + 5000);
    NODES_FOREACH (node)
        if (chance(500))
            node_crash(node, "in the blackout");
        else
            node_suspend(node, away);
    if (chance(600))
        later(away + between(1000, 12000), drains_later, NULL, 0);
}

/* ---- the schedule ---- */

static const struct kind {
    const int64_t *mean_ms; /* 0: never */
    void (*befalls)(struct node *n);
    bool all; /* affects all nodes at once */
} kinds[] = {
    {&weather.crash_ms, crash, false}, {&weather.suspend_ms, suspend, false},
    {&weather.drain_ms, drain, false}, {&weather.blackout_ms, black_out, true},
    {&weather.usurp_ms, usurp, false}, {&weather.cut_ms, cut, false},
    {&weather.deaf_ms, deafen, false}, {&weather.failover_ms, fail_over, true},
};

static void strikes(void *arg, uint64_t kind);

/* The next fault of its kind, around its mean time. */
static void next(uint64_t kind)
{
    int64_t mean = *kinds[kind].mean_ms;

    if (mean > 0 && !world.calm)
        later(between(1, 2 * mean), strikes, NULL, kind);
}

static void strikes(void *arg, uint64_t kind)
{
    struct node *n = kinds[kind].all ? NULL : node_any();
    (void)arg;

    if (world.calm)
        return;
    kinds[kind].befalls(n);
    next(kind);
}

void storm_begin(void)
{
    for (uint64_t kind = 0; kind < COUNT_OF(kinds); kind++)
        next(kind);
}
