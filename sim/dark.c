/* Time without any node awake, and without the store: what was due then gets the grace time,
 * which the checkers must know. node.c and failover.c report it. */

#include "sim/coverage.h"
#include "sim/node.h"
#include "sim/world.h"

enum {
    UNNOTICED_MS = 4500,
    JUMP_NOTICED_MS = 2500 /* safely more than an interval of the supervisor */
};

static bool any_awake(void)
{
    NODES_FOREACH (n)
        if (node_is_awake(n) && n->roles & NODE_SUPERVISOR)
            return true;
    return false;
}

/* A node with its own store grants the grace time at each start; nodes that share a store detect a
 * gap between scans if it is long enough. */
void nodes_notice_dark(bool started)
{
    bool awake = any_awake();

    nodes.troubled_at = world.now;
    if (!awake && nodes.dark_since == 0)
        nodes.dark_since = store_now();
    if (!awake || nodes.dark_since == 0)
        return;
    int64_t ms = store_now() - nodes.dark_since;
    bool noticed = (started && !nodes.shared) || ms > UNNOTICED_MS;
    if (noticed && nodes.lost_count < LOST_PERIODS_MAX)
        nodes.lost[nodes.lost_count++] =
            (struct lost_period){nodes.dark_since, store_now(), world.now};
    nodes.dark_since = 0;
}

/* Time without the store is also lost, for nodes that were up to detect it; a node that booted
 * meanwhile counts from its own start. The same holds for what its clock jumped over. */
static void lose(int64_t from, int64_t until)
{
    if (nodes.lost_count < LOST_PERIODS_MAX)
        nodes.lost[nodes.lost_count++] = (struct lost_period){from, until, world.now};
}

void nodes_lose_store(void)
{
    nodes.troubled_at = world.now;
    nodes.store_lost_since = store_now();
}

void nodes_failed_over(int64_t ahead_ms)
{
    int64_t since = nodes.store_lost_since;
    int64_t now = store_now() - ahead_ms;
    bool long_away = now - since > UNNOTICED_MS;

    nodes.troubled_at = world.now;
    NODES_FOREACH (n)
        if (n->up && n->up_at > world.now - UNNOTICED_MS)
            long_away = false;
    if (ahead_ms > JUMP_NOTICED_MS)
        lose(long_away ? since : now, store_now());
    else if (long_away)
        lose(since, now);
    if (ahead_ms < 0) {
        world.set_back = true;
        nodes.skew_max -= ahead_ms; /* nodes are ahead until the store has caught up */
    }
    if (ahead_ms != 0)
        covered(ahead_ms > 0 ? COVER_CLOCK_AHEAD : COVER_CLOCK_BEHIND);
}
