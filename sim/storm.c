#include "sim/storm.h"

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
    (void)arg;
    (void)n;
    if (world.calm)
        return;
    node_crash("out of the blue");
    next(weather.crash_ms, crashes);
}

static void suspends(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    if (world.calm)
        return;
    node_suspend(spread(10, weather.outage_max_ms));
    next(weather.suspend_ms, suspends);
}

static void drains(void *arg, uint64_t n)
{
    if (world.calm || node_sleeps(drains, arg, n))
        return;
    node_drain();
    next(weather.drain_ms, drains);
}

void storm_begin(void)
{
    next(weather.crash_ms, crashes);
    next(weather.suspend_ms, suspends);
    next(weather.drain_ms, drains);
}
