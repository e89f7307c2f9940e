/* The life of nodes: boot, turns, crash, drain, suspension, restart; their lost time: dark.c. */

#include "sim/node.h"

#include <stdio.h>

#include "alerts/watch.h"
#include "sim/agents.h"
#include "sim/bell.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/long.h"
#include "sim/operations.h"
#include "sim/overruns.h"
#include "sim/people.h"
#include "sim/receivers.h"
#include "sim/sql_part.h"
#include "sim/weather.h"
#include "sim/world.h"

enum {
    SPINS_MAX = 60,
    DRAIN_LOOK_MS = 50,
    DRAIN_LIMIT_MS = 20000,
    WILD_MS = 300,
    DRIFT_PPM = 300,
    DRIFTED_MS = 250, /* at most, while no clock is compared */
};

struct nodes nodes;
static struct store_time times[NODES_MAX];

_Static_assert((int)NODES_MAX <= (int)TOLD_MAX, "every slot has its place");

/* ---- a node's view of the world ---- */

int64_t node_steady(const struct node *n)
{
    return world.now + (world.now - n->up_at) * n->drift_ppm / 1000000;
}

int64_t node_now(const struct node *n)
{
    return nodes.shared ? store_time_at(n->time, node_steady(n)) + n->skew : store_now();
}

static int64_t clock_now(void *arg)
{
    return node_now(arg);
}

static int64_t clock_steady(void *arg)
{
    return node_steady(arg);
}

static bool on_work_answer(void *arg, struct work *w)
{
    struct node *n = arg;

    n->deeds++;
    return n->dead ? false : agents_answered(n, w);
}

static void on_ask_answer(void *arg, struct ask *a)
{
    struct node *n = arg;

    n->deeds++;
    if (n->dead)
        return;
    if (sql_part_asked(a))
        sql_part_answered(n, a);
    else if (n->runner && runner_owns(n->runner, a))
        operations_answered(n, a);
    else if (a->kind == ASK_END)
        long_answered(n, a);
    else
        people_answered(n, a);
}

static void on_task_ended(void *arg, const struct task_end *end)
{
    const struct node *n = arg;

    if (n->dead)
        return;
    check_shown(n, end);
    people_hear_of_end(end->task->id, end->task->state);
    sql_part_task_ended(n, end->task->id);
}

static void on_task_changed(void *arg, const struct workflow *w, const struct task *t)
{
    const struct node *n = arg;
    (void)w;

    if (!n->dead)
        check_changed(n, t);
}

static void on_alert(void *arg, const struct task *t)
{
    struct node *n = arg;

    if (n->dead)
        return;
    bell_hint(n);
    check_alert(n, t->id);
    people_alerted(t->id);
}

static void on_store_trouble(void *arg, const struct error *e)
{
    struct node *n = arg;

    n->troubled = e != NULL;
    if (!n->dead)
        trace("%s says: the store %s", n->me, e ? e->text : "works again");
}

static void on_requested(void *arg, struct slice id, bool released)
{
    const struct node *n = arg;

    if (!n->dead)
        scheduler_requested(n->scheduler, id, released);
}

static void on_generations(void *arg, const struct generations *g)
{
    const struct node *n = arg;

    if (!n->dead && n->library)
        catalog_changed(n->library, g->workflows);
}

static void on_messages(void *arg, const struct message *list, size_t count)
{
    const struct node *n = arg;

    if (!n->dead)
        courier_stored(n->courier, list, count);
}

static bool on_leads(void *arg, struct fence *ret)
{
    const struct node *n = arg;
    int64_t until = 0;

    return !n->dead && receivers_are_on() && supervisor_leads(n->supervisor, ret, &until)
           && (!nodes.shared || node_steady(n) < until);
}

static struct channel *on_channel(void *arg, struct slice target, struct error *e)
{
    const struct node *n = arg;
    (void)target;
    (void)e;

    return n->channel;
}

static void on_scan_failed(void *arg, const struct error *e)
{
    const struct node *n = arg;

    if (!n->dead)
        trace("a scan of %s fails: %s", n->me, e->text);
}

static bool on_wants_lead(void *arg)
{
    const struct node *n = arg;

    return supervisor_wants_lead(n->supervisor);
}

static void on_surveyed(void *arg, const struct survey *v)
{
    struct node *n = arg;

    supervisor_surveyed(n->supervisor, v);
    if (!n->dead)
        sql_part_surveyed(n, v);
    if (v->messages && !n->dead)
        courier_told(n->courier);
}

/* ---- turns ---- */

static void turn_happens(void *arg, uint64_t number)
{
    struct node *n = arg;

    if (number != n->turn_number || !node_is_up(n) || node_sleeps(n, turn_happens, arg, number))
        return;
    node_turn(n);
}

static void schedule_turn(struct node *n, int64_t at)
{
    at = max_i64(at, world.now);
    if (n->turn_at != 0 && n->turn_at <= at)
        return;
    n->turn_at = at;
    later(at - world.now, turn_happens, n, ++n->turn_number);
}

/* Turns without work in quick succession are a busy loop. */
static void count_spins(struct node *n, uint64_t deeds)
{
    if (deeds != n->deeds || world.now - n->turned_at > 5)
        n->spins = 0;
    n->turned_at = world.now;
    if (++n->spins > SPINS_MAX)
        broken("the loop comes to rest", "%d turns without any need", SPINS_MAX);
}

void node_turn(struct node *n)
{
    if (!node_is_up(n))
        return;
    uint64_t deeds = n->deeds;
    int64_t ahead = node_now(n) - world.now;
    n->turn_at = 0;
    int64_t next = scheduler_turn(n->scheduler);
    check_beliefs(n);
    overruns_left_out(n);
    check_breakers(n); /* also for a dead node: its last decisions may still be committed */
    if (n->dead)
        return;
    int64_t scan = supervisor_turn(n->supervisor);
    int64_t operations = n->runner ? runner_turn(n->runner) : -1;
    if (operations >= 0)
        schedule_turn(n, world.now + operations + between(0, 1));
    int64_t take = sql_part_turn(n);
    if (take)
        schedule_turn(n, take - ahead);
    int64_t send = courier_turn(n->courier);
    if (send)
        schedule_turn(n, send - ahead);
    if (next)
        schedule_turn(n, next - ahead + between(0, 1));
    if (scan)
        schedule_turn(n, scan - ahead + between(0, 1));
    schedule_turn(n, bell_turn(n) - ahead);
    check_beliefs(n);
    count_spins(n, deeds);
}

void node_turn_soon(struct node *n)
{
    ASSERT(n->sleeps_until <= world.now);
    n->deeds++;
    n->spins = 0;
    if (chance(500))
        node_turn(n);
    else
        schedule_turn(n, world.now + between(0, 2));
}

void node_turn_later(struct node *n)
{
    n->deeds++;
    n->spins = 0;
    schedule_turn(n, world.now + between(0, 2));
}

void node_turn_quietly(struct node *n)
{
    n->deeds++;
    n->spins = 0;
    schedule_turn(n, world.now);
}

/* ---- boot, crash, drain, suspension ---- */

static int64_t skew(void)
{
    int64_t most = nodes.calm ? min_i64(nodes.skew_drawn_max, WILD_MS) : nodes.skew_drawn_max;

    return most ? between(-most, most) : 0;
}

/* Reads stored definitions, as at a node's start. */
static void reads_definitions(struct node *n)
{
    uint64_t known = 0;
    struct error e = {0};

    n->registry = (struct registry){0};
    enum err err = catalog_load(&n->registry, inner, &known, &e);
    ASSERT(err == ERR_OK);
    n->library = nodes.shared ? catalog_new(&n->registry, &n->disk.queue) : NULL;
    if (n->library)
        catalog_is_at(n->library, known);
}

static void says_what_it_does(const struct scheduler_config *c, unsigned roles)
{
    const struct node_row row = {.name = c->node, .boot = c->boot, .roles = roles};
    struct error e = {0};

    if (!c->shared)
        return;
    enum err err = inner->ops->nodes->put(inner, &row, &e);
    ASSERT(err == ERR_OK);
}

static void node_boot(struct node *n)
{
    uint32_t live_max = chance(150) ? 1 + below(6) : 0;
    uint32_t batch_max = chance(150) ? 1 + below(4) : 0;
    struct scheduler_config config = {
        .node = text_of("n%u", n->name + 1),
        .boot = ++nodes.boots[n->name],
        .shared = nodes.shared,
        .idle = !(nodes.roles[n->name] & NODE_SCHEDULER),
        .live_max = live_max,
        .batch_max = batch_max,
        .rows_max = nodes.rows_max ? nodes.rows_max : 1 + (nodes.boots[n->name] + n->name) % 4,
        .turn_steps = overruns_turn_steps(n),
        .batch_bytes = batch_max == 4 ? 1000 : 0,
        .key_prefix = SLICE("sim:"),
    };
    const struct clock clock = {clock_now, n};
    const struct outside outside = {.arg = n,
                                    .work_answer = on_work_answer,
                                    .ask_answer = on_ask_answer,
                                    .task_ended = on_task_ended,
                                    .is_awaited = check_is_awaited,
                                    .task_changed = on_task_changed,
                                    .evaluates = overruns_evaluates,
                                    .generations = on_generations,
                                    .messages = on_messages,
                                    .alert = on_alert,
                                    .wants_lead = on_wants_lead,
                                    .surveyed = on_surveyed,
                                    .family_told = sql_part_family_told,
                                    .store_trouble = on_store_trouble};
    const struct supervisor_outside watched = {.arg = n,
                                               .now = clock_now,
                                               .steady = clock_steady,
                                               .requested = on_requested,
                                               .generations = on_generations,
                                               .failed = on_scan_failed};

    CLEANUP(arena_fini) struct arena a = {0};
    struct overrun *overruns = NULL;
    struct error e = {0};
    enum err err = inner->ops->overrun_list(inner, &a, &overruns, &config.overrun_count, &e);
    ASSERT(err == ERR_OK);
    config.overruns = overruns;
    n->boot = config.boot;
    overruns_boot(n);
    n->narrow = config.live_max > 0;
    n->batch_bytes = config.batch_bytes;
    n->short_batches = config.batch_max > 0;
    n->skew = skew();
    n->up_at = world.now;
    n->drift_ppm = nodes.shared && chance(300) ? between(-DRIFT_PPM, DRIFT_PPM) : 0;
    store_time_init(n->time, 0);
    disk_measure(&n->disk);
    (void)snprintf(n->me, sizeof n->me, "n%u/%" PRIu64, n->name + 1, n->boot);
    const struct supervisor_config supervision = {.holder = text_of("%s", n->me)};
    disk_boot(&n->disk);
    n->roles = nodes.roles[n->name];
    says_what_it_does(&config, n->roles);
    reads_definitions(n);
    n->scheduler =
        scheduler_new(&config, &n->disk.queue, &n->registry, nodes.key, &clock, &outside);
    n->supervisor = supervisor_new(&supervision, &n->disk.queue, &n->registry, &watched);
    n->runner = operations_runner(n);
    sql_part_new(n);
    n->channel = receivers_channel(n);
    const struct courier_outside delivery = {.arg = n,
                                             .now = clock_now,
                                             .leads = on_leads,
                                             .channel = on_channel};
    const struct courier_config courier = receivers_config(nodes.shared);
    n->courier = courier_new(&courier, &n->disk.queue, &delivery);
    if (!(n->roles & NODE_SUPERVISOR))
        supervisor_stop(n->supervisor);
    bell_boot(n);
    n->used = n->up = true;
    n->dead = n->draining = n->left = false;
    n->sleeps_until = n->deaf_until = n->turn_at = 0;
    n->spins = 0;
    n->turns_left_out = 0;
    nodes_notice_dark(true);
    trace("%s boots, live_max %zu, batch_max %zu", n->me, config.live_max, config.batch_max);
    check_boot(n);
    node_turn(n);
}

/* The wall clock was set while nothing ran: a node with its own store uses it. */
static void clock_jumps(void)
{
    if (nodes.shared || !chance(weather.clock_jumps))
        return;
    int64_t by = spread(1, weather.clock_jump_max_ms);
    if (chance(400)) {
        by = -by;
        world.set_back = true;
    }
    world.ahead += by;
    covered(COVER_CLOCK_JUMP);
    trace("the clock jumps, to %" PRId64 " ms ahead", world.ahead);
}

static void boot_happens(void *arg, uint64_t boot)
{
    struct node *n = arg;

    if (!n->used || n->up || n->boot != boot)
        return;
    clock_jumps();
    node_boot(n);
}

static void clear_away(struct node *n)
{
    n->channel->ops->close(n->channel);
    courier_free(n->courier);
    scheduler_free(n->scheduler);
    supervisor_free(n->supervisor);
    runner_free(n->runner);
    sql_part_free(n);
    catalog_free(n->library);
    bell_end(n);
    registry_fini(&n->registry);
    store_time_fini(n->time);
    n->library = NULL;
    n->scheduler = NULL;
    n->supervisor = NULL;
    n->runner = NULL;
    n->up = false;
    n->turn_number++;
    agents_cut_off(n);
    people_cut_off(n);
}

/* Another process has its name. */
static bool is_replaced(const struct node *n)
{
    return nodes.boots[n->name] != n->boot;
}

static void go_down(struct node *n, int64_t least_ms)
{
    n->down_at = world.now;
    nodes_notice_dark(false);
    if (is_replaced(n) || n->last) {
        trace("%s is no more", n->me);
        n->used = false;
        return;
    }
    int64_t away = world.calm ? 10 : spread(least_ms, max_i64(least_ms, weather.outage_max_ms));
    trace("%s is down for %" PRId64 " ms", n->me, away);
    later(away, boot_happens, n, n->boot);
}

static void crash_happens(void *arg, uint64_t boot)
{
    struct node *n = arg;

    ASSERT(n->boot == boot);
    disk_crash(&n->disk);
    clear_away(n);
    go_down(n, 10);
}

void node_crash(struct node *n, const char *when)
{
    if (!node_is_up(n))
        return;
    trace("%s crashes %s", n->me, when);
    covered(COVER_CRASH);
    n->dead = true; /* from now on nothing of it counts */
    n->sleeps_until = 0;
    nodes_notice_dark(false);
    later(0, crash_happens, n, n->boot);
}

static bool is_drained(const struct node *n)
{
    return scheduler_is_drained(n->scheduler) && !scheduler_is_busy(n->scheduler)
           && !supervisor_is_busy(n->supervisor) && !(n->runner && runner_is_busy(n->runner))
           && !sql_part_is_busy(n) && !courier_is_busy(n->courier)
           && !(n->library && catalog_is_busy(n->library)) && !watch_is_busy(n->watch);
}

static void drain_look(void *arg, uint64_t boot)
{
    struct node *n = arg;

    if (boot != n->boot || !node_is_up(n) || node_sleeps(n, drain_look, arg, boot))
        return;
    bool drained = is_drained(n);
    if (drained && !n->left) {
        n->left = true; /* it informs the store and ends */
        scheduler_leave(n->scheduler);
        drained = is_drained(n);
    }
    if (!drained) {
        if (world.now >= n->drain_until)
            node_crash(n, "as its drain takes too long");
        else
            later(DRAIN_LOOK_MS, drain_look, n, n->boot);
        return;
    }
    check_drained(n);
    check_left(n);
    covered(COVER_DRAIN);
    clear_away(n);
    n->disk.life++;
    go_down(n, 10);
}

void node_drain(struct node *n)
{
    if (!node_is_up(n) || n->draining)
        return;
    trace("%s drains", n->me);
    n->draining = true;
    n->drains_since = world.now;
    n->drain_until = world.now + DRAIN_LIMIT_MS;
    scheduler_drain(n->scheduler);
    courier_stop(n->courier);
    supervisor_stop(n->supervisor);
    if (n->runner)
        runner_stop(n->runner);
    sql_part_drain(n);
    watch_stop(n->watch);
    node_turn(n);
    later(DRAIN_LOOK_MS, drain_look, n, n->boot);
}

static void wakes_up(void *arg, uint64_t boot)
{
    const struct node *n = arg;

    if (boot != n->boot || !node_is_up(n))
        return;
    nodes_notice_dark(false);
    check_limits_changed(); /* it learns of the current ones only now */
}

void node_suspend(struct node *n, int64_t ms)
{
    if (!node_is_awake(n))
        return;
    trace("%s is suspended for %" PRId64 " ms", n->me, ms);
    covered(COVER_SUSPEND);
    n->asleep_at = world.now;
    n->sleeps_until = world.now + ms;
    nodes_notice_dark(false);
    later(ms, wakes_up, n, n->boot);
}

bool node_sleeps(const struct node *n, void (*happen)(void *arg, uint64_t n), void *arg,
                 uint64_t number)
{
    if (n->sleeps_until <= world.now)
        return false;
    later(n->sleeps_until - world.now, happen, arg, number);
    return true;
}

/* A replaced process ends as soon as it knows. */
static void looks_at_its_name(void *arg, uint64_t boot)
{
    struct node *n = arg;
    struct scheduler_stats stats;

    if (boot != n->boot || !node_is_up(n) || node_sleeps(n, looks_at_its_name, arg, boot))
        return;
    scheduler_stats(n->scheduler, &stats);
    if (stats.replaced) {
        covered(COVER_REPLACED);
        node_drain(n);
    } else {
        later(1000, looks_at_its_name, n, boot);
    }
}

void node_usurp(struct node *n)
{
    if (!nodes.shared || !node_is_up(n) || is_replaced(n))
        return;
    for (struct node *free = nodes.list; free < nodes.list + NODES_MAX; free++) {
        if (free->used)
            continue;
        trace("%s is started again, and lives", n->me);
        covered(COVER_USURP);
        later(1000, looks_at_its_name, n, n->boot);
        free->name = n->name;
        node_boot(free);
        return;
    }
}

/* ---- all of them ---- */

bool node_is_up(const struct node *n)
{
    return n->up && !n->dead;
}

bool node_is_awake(const struct node *n)
{
    return node_is_up(n) && n->sleeps_until <= world.now;
}

bool node_schedules(const struct node *n)
{
    return n->roles & NODE_SCHEDULER;
}

bool node_hears(const struct node *n)
{
    return node_is_up(n) && n->deaf_until <= world.now && node_schedules(n);
}

static void learned(struct registry_wait *w, enum err err, const char *story)
{
    (void)w; /* callers ask again */
    (void)err;
    (void)story;
}

bool node_knows(struct node *n, const struct flow *f)
{
    if (registry_find(&n->registry, slice_of(f->name), 1))
        return true;
    if (!link_is_in(&n->curious.link)) {
        n->curious.done = learned;
        bool reads = registry_read(&n->registry, &n->curious);
        ASSERT(reads);
    }
    return false;
}

bool node_owns(const struct node *n, const char *owner)
{
    return strcmp(n->me, owner) == 0;
}

struct node *node_any(void)
{
    uint32_t used = 0;

    NODES_FOREACH (n)
        used++;
    if (used == 0)
        return NULL;
    uint32_t pick = below(used);
    NODES_FOREACH (n)
        if (pick-- == 0)
            return n;
    UNREACHABLE();
}

struct node *node_named(uint32_t name)
{
    struct node *newest = NULL;

    NODES_FOREACH (n)
        if (n->name == name && (!newest || newest->boot < n->boot))
            newest = n;
    return newest;
}

bool nodes_are_well(void)
{
    NODES_FOREACH (n)
        if (!node_is_awake(n) || n->draining || n->deaf_until > world.now
            || n->disk.cut_until > world.now)
            return false;
    return true;
}

bool nodes_are_narrow(void)
{
    NODES_FOREACH (n)
        if (n->narrow)
            return true;
    return false;
}

int64_t nodes_quiet_since(void)
{
    int64_t since = nodes.troubled_at;

    NODES_FOREACH (n) {
        since = max_i64(since, max_i64(n->up_at, n->sleeps_until));
        since = max_i64(since, max_i64(n->disk.trouble_at, n->deaf_until));
        since = max_i64(since, n->disk.cut_until);
    }
    return since;
}

void nodes_clocks_are(int64_t skew_max)
{
    nodes.skew_drawn_max = skew_max;
    nodes.skew_max = skew_max;
    if (nodes.shared)
        nodes.skew_max += nodes.round_trip_max + DRIFTED_MS;
}

/* There is at least one node for each role. */
static void draw_roles(void)
{
    for (uint32_t i = 0; i < NAMES_MAX; i++)
        nodes.roles[i] = NODE_ROLES;
    if (!nodes.shared || !weather.roles)
        return;
    covered(COVER_ROLES);
    unsigned all = 0;
    for (uint32_t i = 0; i < nodes.names; i++)
        all |= nodes.roles[i] = 1 + below(NODE_ROLES);
    nodes.roles[below(nodes.names)] |= NODE_ROLES & ~all;
}

void nodes_begin(bool shared)
{
    nodes = (struct nodes){.shared = shared};
    nodes.names = shared ? 2 + below(NAMES_MAX - 1) : 1;
    nodes.skew_drawn_max = shared && chance(600) ? spread(1, 300) : 0;
    nodes.round_trip_max = shared && chance(500) ? spread(1, 400) : 0;
    if (shared && weather.wild_clocks) { /* so wrong that leases mean nothing: only fencing helps */
        covered(COVER_WILD_CLOCKS);
        nodes.skew_drawn_max = between(6000, 30000);
    }
    nodes_clocks_are(nodes.skew_drawn_max);
    draw_roles();
    nodes.key = token_key_new(inner->ops->secret(inner));
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        nodes.list[i].slot = nodes.list[i].name = i;
        nodes.list[i].time = &times[i];
        disk_begin(&nodes.list[i].disk, &nodes.list[i]);
    }
}

void nodes_boot(void)
{
    for (uint32_t i = 0; i < nodes.names; i++)
        node_boot(&nodes.list[i]);
}

/* Do other nodes, which stay or come back, have its roles? */
static bool can_be_missed(const struct node *gone)
{
    unsigned roles = 0;

    NODES_FOREACH (n)
        if (n != gone && !n->last && !is_replaced(n))
            roles |= nodes.roles[n->name];
    return roles == NODE_ROLES;
}

/* Nodes that are down come back soon; but if others remain, some never do. */
void nodes_calm(void)
{
    uint32_t left = 0;
    bool wild = nodes.skew_drawn_max > WILD_MS;

    nodes.calm = true;
    NODES_FOREACH (n)
        left += !is_replaced(n);
    NODES_FOREACH (n) {
        n->last = left > 1 && !is_replaced(n) && can_be_missed(n) && chance(250);
        left -= n->last;
        if (n->last)
            covered(COVER_NEVER_BACK);
        if (n->last && n->up)
            node_crash(n, "for good");
        else if (n->last)
            n->used = false;
        else if (!n->up)
            later(10, boot_happens, n, n->boot);
        else if (wild)
            node_crash(n, "to have its clock set right");
    }
    nodes_notice_dark(false);
}

void nodes_end(void)
{
    NODES_FOREACH (n) {
        if (!n->up)
            continue;
        n->dead = true;
        disk_crash(&n->disk);
        clear_away(n);
    }
    registry_fini(&nodes.registry);
    token_key_free(nodes.key);
}
