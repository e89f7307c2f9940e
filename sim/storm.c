#include "sim/storm.h"

#include "base/when.h"
#include "sim/coverage.h"
#include "sim/node.h"
#include "sim/weather.h"
#include "sim/world.h"

/* The next one of its kind, some time around its mean. */
static void next(int64_t mean, void (*happen)(void *arg, uint64_t n))
{
    if (mean > 0 && !world.calm)
        later(between(1, 2 * mean), happen, NULL, 0);
}

static void crashes(void *arg, uint64_t n)
{
    struct node *node = node_any();
    (void)arg;
    (void)n;

    if (world.calm)
        return;
    if (node)
        node_crash(node, "out of the blue");
    next(weather.crash_ms, crashes);
}

static void suspends(void *arg, uint64_t n)
{
    struct node *node = node_any();
    (void)arg;
    (void)n;

    if (world.calm)
        return;
    if (node)
        node_suspend(node, spread(10, weather.outage_max_ms));
    next(weather.suspend_ms, suspends);
}

static void drains_once(void *arg, uint64_t n)
{
    struct node *node = node_any();
    (void)arg;
    (void)n;

    if (!world.calm && node && node_is_awake(node))
        node_drain(node);
}

static void drains(void *arg, uint64_t n)
{
    drains_once(arg, n);
    next(weather.drain_ms, drains);
}

/* The lights go out, and soon after they are on again, one more goes. */
static void blackouts(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    if (world.calm)
        return;
    covered(COVER_BLACKOUT);
    int64_t away = spread(5000, weather.outage_max_ms + 5000);
    NODES_FOREACH (node)
        if (chance(500))
            node_crash(node, "in the blackout");
        else
            node_suspend(node, away);
    if (chance(600))
        later(away + between(1000, 12000), drains_once, NULL, 0);
    next(weather.blackout_ms, blackouts);
}

static void usurps(void *arg, uint64_t n)
{
    struct node *node = node_any();
    (void)arg;
    (void)n;

    if (world.calm)
        return;
    if (node)
        node_usurp(node);
    next(weather.usurp_ms, usurps);
}

static void cuts(void *arg, uint64_t n)
{
    struct node *node = node_any();
    (void)arg;
    (void)n;

    if (world.calm)
        return;
    int64_t ms = spread(100, MS_PER_MIN);
    if (node && node->disk.cut_until <= world.now) {
        trace("%s is cut off from the store for %" PRId64 " ms", node->me, ms);
        disk_cut(&node->disk, ms);
    }
    next(weather.cut_ms, cuts);
}

static void deafens(void *arg, uint64_t n)
{
    struct node *node = node_any();
    (void)arg;
    (void)n;

    if (world.calm)
        return;
    int64_t ms = spread(100, MS_PER_MIN);
    if (node && node_is_up(node) && node_hears(node)) {
        trace("nobody reaches %s for %" PRId64 " ms", node->me, ms);
        covered(COVER_DEAF);
        node->deaf_until = world.now + ms;
    }
    next(weather.deaf_ms, deafens);
}

void storm_begin(void)
{
    next(weather.crash_ms, crashes);
    next(weather.suspend_ms, suspends);
    next(weather.drain_ms, drains);
    next(weather.blackout_ms, blackouts);
    next(weather.usurp_ms, usurps);
    next(weather.cut_ms, cuts);
    next(weather.deaf_ms, deafens);
}
