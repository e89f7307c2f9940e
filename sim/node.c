#include "sim/node.h"

#include "sim/agents.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/disk.h"
#include "sim/people.h"
#include "sim/weather.h"
#include "sim/world.h"

enum { SPINS_MAX = 60, DRAIN_LOOK_MS = 50, DRAIN_LIMIT_MS = 20000 };

struct node node;

/* ---- what the node sees of the world ---- */

static int64_t clock_now(void *arg)
{
    (void)arg;
    return world.now;
}

static bool on_work_answer(void *arg, struct work *w)
{
    (void)arg;
    node.deeds++;
    return node.dead ? false : agents_answered(w);
}

static void on_ask_answer(void *arg, struct ask *a)
{
    (void)arg;
    node.deeds++;
    if (!node.dead)
        people_answered(a);
}

static void on_task_ended(void *arg, struct slice id, enum task_state state)
{
    (void)arg;
    if (!node.dead)
        check_ended(id, state);
}

static void on_alert(void *arg, const struct task *t)
{
    (void)arg;
    if (node.dead)
        return;
    check_alert(t->id);
    people_alerted(t->id);
}

static void on_store_trouble(void *arg, const struct error *e)
{
    (void)arg;
    if (!node.dead)
        trace("the node says: the store %s", e ? e->text : "works again");
}

static void on_requested(void *arg, struct slice id, bool released)
{
    (void)arg;
    if (!node.dead)
        scheduler_requested(node.scheduler, id, released);
}

static void on_scan_failed(void *arg, const struct error *e)
{
    (void)arg;
    if (!node.dead)
        trace("a scan fails: %s", e->text);
}

/* ---- turns ---- */

static void turn_happens(void *arg, uint64_t number)
{
    if (number != node.turn_number || !node_is_up() || node_sleeps(turn_happens, arg, number))
        return;
    node_turn();
}

static void schedule_turn(int64_t at)
{
    at = max_i64(at, world.now);
    if (node.turn_at != 0 && node.turn_at <= at)
        return;
    node.turn_at = at;
    later(at - world.now, turn_happens, NULL, ++node.turn_number);
}

/* Turns of which nothing came, one soon after the other, are a loop that does not rest. */
static void count_spins(uint64_t deeds)
{
    if (deeds != node.deeds || world.now - node.turned_at > 5)
        node.spins = 0;
    node.turned_at = world.now;
    if (++node.spins > SPINS_MAX)
        broken("the loop comes to rest", "%d turns without any need", SPINS_MAX);
}

void node_turn(void)
{
    if (!node_is_up())
        return;
    uint64_t deeds = node.deeds;
    node.turn_at = 0;
    int64_t next = scheduler_turn(node.scheduler);
    if (node.dead)
        return;
    int64_t scan = supervisor_turn(node.supervisor);
    if (next)
        schedule_turn(next + between(0, 1));
    if (scan)
        schedule_turn(scan + between(0, 1));
    count_spins(deeds);
}

void node_turn_soon(void)
{
    node.deeds++;
    node.spins = 0;
    if (chance(500))
        node_turn();
    else
        schedule_turn(world.now + between(0, 2));
}

/* ---- its life ---- */

static void lost(int64_t from)
{
    if (node.lost_count < LOST_PERIODS_MAX)
        node.lost[node.lost_count++] = (struct lost_period){from, world.now};
}

static void boot_happens(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    disk_boot();
    lost(node.down_at);
    node_boot();
}

void node_boot(void)
{
    uint32_t live_max = chance(150) ? 1 + below(6) : 0;
    uint32_t batch_max = chance(150) ? 1 + below(4) : 0;
    const struct scheduler_config config = {
        .node = SLICE("n1"),
        .boot = disk.inner->ops->boot(disk.inner),
        .live_max = live_max,
        .batch_max = batch_max,
        .key_prefix = SLICE("sim:"),
    };
    const struct clock clock = {clock_now, NULL};
    const struct outside outside = {NULL,          on_work_answer, on_ask_answer,
                                    on_task_ended, on_alert,       on_store_trouble};
    const struct supervisor_config supervision = {.holder = text_of("n1/%" PRIu64, config.boot)};
    const struct supervisor_outside watched = {NULL, clock_now, clock_now, on_requested,
                                               on_scan_failed};

    node.boot = config.boot;
    node.narrow = config.live_max > 0;
    node.scheduler =
        scheduler_new(&config, &disk.queue, &node.registry, node.key, &clock, &outside);
    node.supervisor = supervisor_new(&supervision, &disk.queue, &node.registry, &watched);
    node.up = true;
    node.dead = node.draining = false;
    node.up_at = world.now;
    node.turn_at = 0;
    trace("boot %" PRIu64 ", live_max %zu, batch_max %zu", config.boot, config.live_max,
          config.batch_max);
    check_boot();
    node_turn();
}

static void clear_away(void)
{
    scheduler_free(node.scheduler);
    supervisor_free(node.supervisor);
    node.scheduler = NULL;
    node.supervisor = NULL;
    node.up = false;
    node.turn_number++;
    agents_cut_off();
    people_cut_off();
}

static void go_down(int64_t least_ms)
{
    int64_t away = world.calm ? 10 : spread(least_ms, max_i64(least_ms, weather.outage_max_ms));

    node.down_at = world.now;
    trace("down for %" PRId64 " ms", away);
    later(away, boot_happens, NULL, 0);
}

static void crash_happens(void *arg, uint64_t n)
{
    (void)arg;
    (void)n;
    disk_crash();
    clear_away();
    go_down(10);
}

void node_crash(const char *when)
{
    if (!node_is_up())
        return;
    trace("the node crashes %s", when);
    covered(COVER_CRASH);
    node.dead = true; /* from now on nobody hears of it, whatever its remains may say */
    node.sleeps_until = 0;
    later(0, crash_happens, NULL, 0);
}

static void drain_look(void *arg, uint64_t boot)
{
    if (boot != node.boot || !node_is_up() || node_sleeps(drain_look, arg, boot))
        return;
    if (!scheduler_is_drained(node.scheduler) || scheduler_is_busy(node.scheduler)
        || supervisor_is_busy(node.supervisor)) {
        if (world.now >= node.drain_until)
            node_crash("as its drain takes too long");
        else
            later(DRAIN_LOOK_MS, drain_look, NULL, boot);
        return;
    }
    check_drained();
    covered(COVER_DRAIN);
    clear_away();
    disk.life++;
    go_down(10);
}

void node_drain(void)
{
    if (!node_is_up() || node.draining)
        return;
    trace("drain");
    node.draining = true;
    node.drain_until = world.now + DRAIN_LIMIT_MS;
    scheduler_drain(node.scheduler);
    supervisor_stop(node.supervisor);
    node_turn();
    later(DRAIN_LOOK_MS, drain_look, NULL, node.boot);
}

static void wakes_up(void *arg, uint64_t boot)
{
    (void)arg;
    if (boot == node.boot && node_is_up())
        lost(node.asleep_at);
}

void node_suspend(int64_t ms)
{
    if (!node_is_up() || node.sleeps_until > world.now)
        return;
    trace("suspended for %" PRId64 " ms", ms);
    covered(COVER_SUSPEND);
    node.asleep_at = world.now;
    node.sleeps_until = world.now + ms;
    if (ms > 4000) /* shorter ones need not be noticed */
        later(ms, wakes_up, NULL, node.boot);
}

bool node_sleeps(void (*happen)(void *arg, uint64_t n), void *arg, uint64_t n)
{
    if (node.sleeps_until <= world.now)
        return false;
    later(node.sleeps_until - world.now, happen, arg, n);
    return true;
}

bool node_is_up(void)
{
    return node.up && !node.dead;
}

void node_begin(void)
{
    node = (struct node){0};
    node.key = token_key_new(disk.inner->ops->secret(disk.inner));
}

void node_end(void)
{
    if (node.up) {
        node.dead = true;
        disk_crash();
        clear_away();
    }
    registry_fini(&node.registry);
    token_key_free(node.key);
    node = (struct node){0};
}
