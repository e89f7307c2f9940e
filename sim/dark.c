#include "sim/coverage.h"
#include "sim/node.h"
#include "sim/weather.h"
#include "sim/world.h"

/* Time in which nobody was there to take anything: what fell due in it gets grace. */

enum {
    UNNOTICED_MS = 4500,
    JUMP_NOTICED_MS =
        2500 /* surely more than an interval of the supervisor, whatever else is wrong */
};

static bool any_awake(void)
{
    NODES_FOREACH (n)
        if (node_is_awake(n) && n->roles & NODE_SUPERVISOR)
            return true;
    return false;
}

/* Nobody was awake again and again. */
static bool often_dark(void)
{
    enum { GAPS = 3, LATELY_MS = 60000 };

    return nodes.lost_count >= GAPS
           && nodes.lost[nodes.lost_count - GAPS].ended_at > world.now - LATELY_MS;
}

/* Where readings take long, or fail, or there were gaps before, scans lie far apart all the time:
 * then a gap is nothing new to a node that has been up for a while, unless it is far longer than
 * those. */
static int64_t usual_ms(void)
{
    /* At half a second each, a scan behind a commit, with requests to write or after one that
     * failed, is late for a supervisor, and with the fifth such the node is used to it. */
    enum { OFTEN = 300, LONG_MS = 500, USED_TO_IT_MS = 15000, FAR_LONGER_MS = 20000 };
    bool slow = weather.read_fails > OFTEN || weather.store_ms > LONG_MS || often_dark();

    NODES_FOREACH (n)
        if (slow && node_is_up(n) && world.now - n->up_at > USED_TO_IT_MS)
            return FAR_LONGER_MS;
    return UNNOTICED_MS;
}

/* One that has the store for itself gives grace for each start; nodes that share it notice a gap
 * between scans if it is long enough. */
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
    bool usual = (nodes.shared || !started) && ms <= usual_ms();
    if (noticed && nodes.lost_count < LOST_PERIODS_MAX)
        nodes.lost[nodes.lost_count++] =
            (struct lost_period){nodes.dark_since, store_now(), world.now, usual};
    nodes.dark_since = 0;
}

/* What fell due while the store was away is as much lost, for a node that was there to notice; one
 * that booted meanwhile has a beginning of its own to count from. So is what its clock jumped over.
 */
static void lose(int64_t from, int64_t until)
{
    if (nodes.lost_count < LOST_PERIODS_MAX)
        nodes.lost[nodes.lost_count++] = (struct lost_period){from, until, world.now, false};
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
