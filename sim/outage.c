/* Outages of the services behind agents, the settings of agents, and breakers operated by hand,
 * drawn from the seed or by scenes (outage.h). agents.c asks whether a service is there;
 * check_breaker.c and check_limits.c judge what nodes do. */

#include "sim/outage.h"

#include "base/when.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/flow.h"
#include "sim/node.h"
#include "sim/weather.h"
#include "sim/world.h"

static int64_t away_until[SERVICES_MAX];
static bool by_hand[SERVICES_MAX];
static struct slice set[SERVICES_MAX];

bool outage_of(uint32_t service)
{
    return away_until[service] > world.now;
}

struct limit limits[SERVICES_MAX][LIMITS_MAX];

bool outage_limits(void)
{
    for (uint32_t i = 0; i < SERVICES_MAX * LIMITS_MAX; i++)
        if (limits[i / LIMITS_MAX][i % LIMITS_MAX].concurrency
            || limits[i / LIMITS_MAX][i % LIMITS_MAX].rate_count)
            return true;
    return false;
}

static struct slice name_of(uint32_t service)
{
    return text_of("a%u", service);
}

void outage_settings(uint32_t service, struct slice text)
{
    const struct agent_change c = {.name = name_of(service), .part = AGENT_SETTINGS, .text = text};
    struct error e = {0};

    enum err err = inner->ops->agent_put(inner, &c, NULL, &e);
    ASSERT(err == ERR_OK);
    set[service] = text;
}

/* Low concurrency, or a low rate, or both; mostly neither. */
static struct limit draw_limit(uint32_t permille)
{
    struct limit l = {0};

    if (chance(permille))
        l.concurrency = 1 + below(5);
    if (chance(permille / 2)) {
        l.rate_count = 1 + below(chance(500) ? 5 : 50);
        l.rate_ms = MS_PER_S;
        if (chance(200))
            l = (struct limit){l.concurrency, 30 + below(100), MS_PER_MIN};
    }
    return l;
}

static void put_limit(struct buf *b, const struct limit *l)
{
    buf_str(b, "{\"concurrency\":");
    if (l->concurrency)
        buf_fmt(b, "%u", l->concurrency);
    else
        buf_str(b, "null");
    if (l->rate_count)
        buf_fmt(b, ",\"rate\":\"%u/%s\"", l->rate_count, l->rate_ms == MS_PER_S ? "s" : "m");
}

static struct slice draw_limits(uint32_t service)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct limit *all = limits[service];

    memset(all, 0, sizeof limits[service]);
    if (!weather.limits)
        return SLICE("{}");
    all[0] = draw_limit(weather.limits);
    put_limit(&b, &all[0]);
    buf_str(&b, ",\"actions\":{");
    for (uint32_t i = 1; i < LIMITS_MAX; i++) {
        bool undo = i > FLOW_STEPS_MAX;
        all[i] = draw_limit(weather.limits / 2);
        buf_fmt(&b, "%s\"%s%u\":", i > 1 ? "," : "", undo ? "undo" : "act",
                (i - 1) % FLOW_STEPS_MAX);
        put_limit(&b, &all[i]);
        buf_byte(&b, '}');
    }
    buf_str(&b, "}}");
    return arena_copy(&world.arena, buf_view(&b));
}

/* Breakers that open soon, late, or never. */
static void draw_settings(uint32_t service)
{
    struct slice limited = draw_limits(service);
    uint32_t calls = 2 + below(8);
    uint32_t failures = 30 + below(70);
    uint32_t window = 1 + below(60);
    uint32_t wait = 200 + below(5000);
    uint32_t longest = wait * (1 + below(8));
    uint32_t trials = 1 + below(4);
    bool slow = chance(300);
    bool enabled = !chance(100);

    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "{\"limits\":%.*s", SLICE_ARG(limited));
    if (weather.breakers)
        buf_fmt(&b,
                ",\"breaker\":{\"enabled\":%s,\"calls\":%u,\"failures\":%u,\"window\":\"%us\","
                "\"wait\":\"%ums\",\"max_wait\":\"%ums\",\"trials\":%u,\"slow\":%s}",
                enabled ? "true" : "false", calls, failures, window, wait, longest, trials,
                slow ? "\"2s\"" : "null");
    buf_byte(&b, '}');
    outage_settings(service, arena_copy(&world.arena, buf_view(&b)));
}

void outage_by_hand(uint32_t service, bool open)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct node *n = node_any();
    struct error e = {0};

    if (!n || !node_is_awake(n) || !node_schedules(n))
        return;
    struct slice name = name_of(service);
    scheduler_breaker_by_hand(n->scheduler, name, open, SLICE("for the story"), &text);
    const struct agent_change c = {.name = name, .part = AGENT_BREAKER, .text = buf_view(&text)};
    if (n->disk.store.ops->agent_put(&n->disk.store, &c, NULL, &e) != ERR_OK)
        return; /* perhaps it was stored: then it will be read */
    trace("the breaker of a%u is %s by hand", service, open ? "opened" : "closed");
    by_hand[service] = open;
    struct agent_row row = {.name = name, .breaker = c.text};
    const struct agent *a = map_get(&scheduler_dispatch(n->scheduler)->agents, name);
    row.settings = a ? a->settings_text : SLICE_NONE;
    scheduler_agent_stored(n->scheduler, &row);
    node_turn_soon(n);
}

/* An operator without an answer tries again. */
static void closes(void *arg, uint64_t service)
{
    (void)arg;
    outage_by_hand((uint32_t)service, false);
    if (by_hand[service])
        later(spread(100, 5000), closes, NULL, service);
}

static void opens(void *arg, uint64_t n)
{
    uint32_t service = below(SERVICES_MAX);
    (void)arg;
    (void)n;

    if (world.calm)
        return;
    by_hand[service] = true; /* whatever the answer, it may be open */
    outage_by_hand(service, true);
    later(spread(100, 2 * MS_PER_MIN), closes, NULL, service);
    later(between(1, 2 * weather.hand_ms), opens, NULL, 0);
}

/* Like the server that took the change, as soon as the node is awake. */
static void hears(void *arg, uint64_t boot)
{
    struct node *n = arg;

    if (boot != n->boot || !node_is_up(n) || node_sleeps(n, hears, arg, boot))
        return;
    for (uint32_t service = 0; service < SERVICES_MAX; service++) {
        struct agent_row row = {.name = name_of(service), .settings = set[service]};
        const struct agent *a = map_get(&scheduler_dispatch(n->scheduler)->agents, row.name);
        row.breaker = a ? arena_copy(&world.arena, a->breaker_text) : SLICE_NONE;
        scheduler_agent_stored(n->scheduler, &row);
    }
    node_turn_soon(n);
}

void outage_is_heard(struct node *n)
{
    hears(n, n->boot);
}

static void changes_limits(void *arg, uint64_t n)
{
    uint32_t service = below(SERVICES_MAX);
    (void)arg;
    (void)n;

    if (world.calm)
        return;
    trace("the limits of a%u change", service);
    covered(COVER_LIMITS_CHANGED);
    draw_settings(service);
    check_limits_changed();
    NODES_FOREACH (node)
        if (node_is_up(node) && !nodes.shared)
            outage_is_heard(node);
    later(between(1, 2 * weather.limits_ms), changes_limits, NULL, 0);
}

static void goes_away(void *arg, uint64_t n)
{
    uint32_t service = below(SERVICES_MAX);
    int64_t ms = spread(500, 3 * MS_PER_MIN);
    (void)arg;
    (void)n;

    if (world.calm)
        return;
    trace("the service of a%u is away for %" PRId64 " ms", service, ms);
    covered(COVER_OUTAGE);
    away_until[service] = world.now + ms;
    later(between(1, 2 * weather.service_ms), goes_away, NULL, 0);
}

void outage_begin(void)
{
    memset(limits, 0, sizeof limits);
    for (uint32_t i = 0; i < SERVICES_MAX; i++) {
        away_until[i] = 0;
        by_hand[i] = false;
        if (weather.breakers || weather.limits)
            draw_settings(i);
    }
    if (weather.limits && weather.limits_ms)
        later(weather.limits_ms, changes_limits, NULL, 0);
    if (weather.service_ms)
        later(weather.service_ms, goes_away, NULL, 0);
    if (weather.hand_ms)
        later(weather.hand_ms, opens, NULL, 0);
}

void outage_calm(void)
{
    for (uint32_t i = 0; i < SERVICES_MAX; i++) {
        away_until[i] = 0;
        if (by_hand[i])
            later(between(0, 5000), closes, NULL, i);
    }
}
