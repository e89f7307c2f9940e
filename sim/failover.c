/*
 * The store that all nodes share fails, and its standby takes over later, with its own clock. Nodes
 * see that through their disks (disk.c).
 */

#include "sim/coverage.h"
#include "sim/disk.h"
#include "sim/node.h"
#include "sim/world.h"

static struct {
    int64_t back_at, ahead_ms;
} away;

void failover_begin(void)
{
    away.back_at = 0;
}

bool store_is_away(void)
{
    return away.back_at > world.now;
}

int64_t store_back_at(void)
{
    return away.back_at;
}

static void standby_takes_over(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    world.ahead += away.ahead_ms;
    trace("the standby is the primary now, its clock %" PRId64 " ms ahead", world.ahead);
    nodes_failed_over(away.ahead_ms);
}

void store_fails_over(int64_t ms, int64_t ahead_ms)
{
    if (store_is_away())
        return;
    trace("the primary dies: the store is away for %" PRId64 " ms", ms);
    covered(COVER_FAILOVER);
    away.back_at = world.now + ms;
    away.ahead_ms = ahead_ms;
    NODES_FOREACH (n) {
        n->disk.farewell = n->up && !n->dead && !list_empty(&n->disk.waiting);
        n->disk.measure = true;
        disk_troubled(&n->disk, away.back_at);
    }
    nodes_lose_store();
    later(ms, standby_takes_over, NULL, 0);
}
