/*
 * What a person is told of, as far as it is the server's: what this node knows in memory, a timer,
 * and the way to the sinks. Who is told of what, and when, is alerts/.
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "server/alerting.h"

enum {
    LOOK_SHARED_MS = 10000,
};

#define TOKEN_SOON_MS INT64_C(1209600000) /* 14 days */
#define TOKEN_LONG_MS (2 * TOKEN_SOON_MS)

/* ---- what holds in memory ---- */

static void see_store(struct server *sv, struct alerts *a, int64_t now)
{
    char story[sizeof sv->trouble];

    if (server_trouble(sv, story, sizeof story) == ERR_OK)
        return;
    int64_t since = sv->trouble_err != ERR_OK ? sv->trouble_since : 0;
    const struct sighting s = {.condition = CONDITION_STORE_TROUBLE,
                               .labels = {{"node", slice_of(sv->config.node)}},
                               .count = 1,
                               .first_at = since,
                               .story = slice_of(story)};
    alerts_see(a, &s, now);
}

static void see_risk(const struct server *sv, struct alerts *a, int64_t now)
{
    const struct sighting s = {
        .condition = CONDITION_STORE_AT_RISK,
        .labels = {{"node", slice_of(sv->config.node)}},
        .count = 1,
        .first_at = sv->metrics.started_at, /* or it would be news each time */
        .story = SLICE("a crash may lose acknowledged data; the log names the setting")};

    if (sv->config.store->at_risk)
        alerts_see(a, &s, now);
}

static void see_breakers(const struct server *sv, struct alerts *a, int64_t now)
{
    const struct dispatch *d = scheduler_dispatch(sv->scheduler);
    const struct agent *ag = NULL;

    for (size_t i = 0; (ag = map_next(&d->agents, &i));) {
        const struct sighting s = {.condition = CONDITION_BREAKER_OPEN,
                                   .labels = {{"agent", ag->name}},
                                   .count = 1,
                                   .first_at = ag->breaker.since,
                                   .story = slice_of(ag->breaker.reason)};
        if (ag->breaker.state != BREAKER_CLOSED)
            alerts_see(a, &s, now);
    }
}

static void see_said(const struct said *list, size_t count, struct alerts *a, int64_t now)
{
    for (size_t i = 0; i < count; i++) {
        const struct said *w = &list[i];
        const struct sighting s = {.condition = w->condition,
                                   .labels = {{w->label, slice_of(w->value)}},
                                   .count = w->count,
                                   .first_at = w->at,
                                   .example = slice_of(w->example),
                                   .story = slice_of(w->story)};
        alerts_see(a, &s, now);
    }
}

static void see_retention(const struct server *sv, struct alerts *a, int64_t now)
{
    struct sighting s = {.condition = CONDITION_RETENTION_TROUBLE,
                         .labels = {{"node", slice_of(sv->config.node)}},
                         .count = 1};

    if (keeper_trouble(sv, &s.story, &s.first_at))
        alerts_see(a, &s, now);
}

/* Those who wait for an agent that is not connected, and none of whom got on since the last look:
 * it might be connected elsewhere. */
static void see_agents(const struct alerting *al, struct alerts *a, int64_t now)
{
    for (size_t i = 0; i < al->absent_count; i++) {
        const struct absent *w = &al->absents[i];
        const struct sighting s = {.condition = CONDITION_OVERDUE_NO_AGENT,
                                   .labels = {{"agent", slice_of(w->agent)}},
                                   .count = w->tasks,
                                   .first_at = w->first_submitted_at,
                                   .story = SLICE("no instance of it has connected")};
        alerts_see(a, &s, now);
    }
}

/* Long before it is too late, and for a while after: whoever uses it may not have called since. A
 * token that was made for a short time is meant to end. */
static bool expires_soon(const struct bearer *b, int64_t now)
{
    return b->expires_at != 0 && b->expires_at - b->created_at >= TOKEN_LONG_MS
           && now >= b->expires_at - TOKEN_SOON_MS && now < b->expires_at + TOKEN_SOON_MS;
}

static void see_tokens(const struct server *sv, struct alerts *a, int64_t now)
{
    size_t count = 0;
    const struct bearer *list = access_list(sv->access, &count);

    for (size_t i = 0; i < count; i++) {
        CLEANUP(buf_fini) struct buf story = {0};
        if (!expires_soon(&list[i], now))
            continue;
        buf_str(&story, list[i].expires_at > now ? "it expires at " : "it expired at ");
        time_write(&story, list[i].expires_at);
        buf_fmt(&story, "; intact token rotate %.*s", SLICE_ARG(list[i].name));
        const struct sighting s = {.condition = CONDITION_TOKEN_EXPIRES,
                                   .labels = {{"token", list[i].name}},
                                   .count = 1,
                                   .first_at = list[i].expires_at - TOKEN_SOON_MS,
                                   .story = buf_view(&story)};
        alerts_see(a, &s, now);
    }
}

static void see(void *arg, struct alerts *a, bool all, int64_t now)
{
    struct server *sv = arg;

    see_store(sv, a, now);
    if (!all)
        return;
    see_risk(sv, a, now);
    see_breakers(sv, a, now);
    see_agents(sv->alerting, a, now);
    see_retention(sv, a, now);
    see_tokens(sv, a, now);
    see_said(sv->alerting->said, sv->alerting->said_count, a, now);
    see_said(sv->alerting->found, sv->alerting->found_count, a, now);
}

void alerts_condition(struct server *sv, enum alert_condition c, const char *label,
                      struct slice value, uint64_t count, struct slice example, struct slice story)
{
    struct alerting *al = sv->alerting;
    struct said *w = NULL;

    if (!al)
        return;
    for (size_t i = 0; !w && i < al->said_count; i++)
        if (al->said[i].condition == c && slice_is(value, al->said[i].value))
            w = &al->said[i];
    if (count == 0) {
        if (w)
            *w = al->said[--al->said_count];
        return;
    }
    if (!w) {
        if (al->said_count == ALERT_SAID)
            return;
        w = &al->said[al->said_count++];
        *w = (struct said){.condition = c, .label = label, .at = server_now(sv)};
        (void)snprintf(w->value, sizeof w->value, "%.*s", SLICE_ARG(slice_cut(value, 128)));
    }
    w->count = count;
    (void)snprintf(w->example, sizeof w->example, "%.*s", SLICE_ARG(slice_cut(example, 128)));
    (void)snprintf(w->story, sizeof w->story, "%.*s", SLICE_ARG(slice_cut(story, 150)));
}

/* ---- the watch ---- */

static void fired(uv_timer_t *t);

static void turn(struct alerting *al)
{
    struct server *sv = al->server;

    if (al->closed)
        return;
    alerting_look(al);
    al->due_at = watch_turn(al->watch);
    uv_update_time(&sv->loop);
    (void)uv_timer_start(&al->timer, fired, (uint64_t)max_i64(1, al->due_at - server_now(sv)), 0);
}

static void fired(uv_timer_t *t)
{
    turn(t->data);
}

/* Its jobs end on the loop: what comes next is done at once. */
static void idled(uv_check_t *c)
{
    struct alerting *al = c->data;

    if (al->closed)
        return;
    if (watch_turn(al->watch) < al->due_at)
        turn(al);
}

static bool leads(void *arg, uint64_t *ret)
{
    const struct server *sv = arg;
    struct fence fence = {0};
    int64_t until = 0;

    if (sv->draining || !supervisor_leads(sv->supervisor, &fence, &until)
        || (sv->config.store->shared && server_steady(NULL) >= until))
        return false;
    *ret = fence.epoch;
    return true;
}

static bool store_works(void *arg)
{
    const struct server *sv = arg;
    char story[sizeof sv->trouble];

    return server_trouble(sv, story, sizeof story) == ERR_OK;
}

static void deliver(void *arg, size_t sink, const struct alert *const *list, size_t count)
{
    struct server *sv = arg;

    alert_sinks_send(sv->alerting->sinks, sink, list, count, server_now(sv), NULL);
}

static void delivered(void *arg, void *user, size_t sink, bool took, const char *story)
{
    struct server *sv = arg;
    struct alerting *al = sv->alerting;

    if (user) {
        alerts_tested(user, sink, took, story);
        return;
    }
    if (!took) {
        CLEANUP(buf_fini) struct buf reason = {0};
        log_word(&reason, slice_of(story));
        log_line(LOG_WARN, "event=alert_not_delivered sink=\"%s\" reason=%s",
                 al->settings->sinks[sink].name, reason.ptr);
    }
    watch_delivered(al->watch, sink, took, story);
    turn(al);
}

static void background(void *arg, struct store_job *j)
{
    struct server *sv = arg;

    store_thread_background(sv->thread, j, RETIRE_PATIENCE);
}

static struct watch *watch_of(struct server *sv, const struct alerts_settings *s)
{
    const struct watch_outside outside = {
        .arg = sv,
        .now = server_now,
        .leads = leads,
        .store_works = store_works,
        .see = see,
        .deliver = deliver,
        .background = background,
    };
    struct watch_config c = {.alerts = s->config, .shared = sv->config.store->shared};

    c.look_ms = sv->config.store->shared ? LOOK_SHARED_MS : 0;
    c.alerts.sinks = s->sinks;
    c.alerts.sink_count = s->count;
    return watch_new(&c, sv->store, &outside);
}

/* ---- opening and closing ---- */

enum err alerts_open_all(struct server *sv, struct error *e)
{
    struct alerting *al = calloc(1, sizeof *al);
    ASSERT(al);
    al->server = sv;
    al->settings = sv->config.alerts;
    if (!al->settings) {
        alerts_settings_init(&al->own_settings);
        al->settings = &al->own_settings;
    }
    list_init(&al->tests);
    al->sinks = alert_sinks_open(&sv->loop, al->settings, sv->webhooks,
                                 telling_source(sv->telling).ptr, delivered, sv, e);
    if (!al->sinks) {
        free(al);
        return e->code;
    }
    sv->alerting = al;
    al->watch = watch_of(sv, al->settings);
    int rc = uv_timer_init(&sv->loop, &al->timer) | uv_check_init(&sv->loop, &al->check);
    ASSERT(rc == 0);
    al->timer.data = al->check.data = al;
    (void)uv_check_start(&al->check, idled);
    turn(al);
    return ERR_OK;
}

bool alerts_are_busy(const struct server *sv)
{
    return sv->alerting && watch_is_busy(sv->alerting->watch);
}

void alerts_drain(struct server *sv)
{
    if (sv->alerting)
        watch_stop(sv->alerting->watch);
}

void alerts_close(struct server *sv)
{
    struct alerting *al = sv->alerting;

    if (!al)
        return;
    al->closed = true;
    uv_close((uv_handle_t *)&al->timer, NULL);
    uv_close((uv_handle_t *)&al->check, NULL);
    alert_sinks_close(al->sinks);
    alerts_tests_end(al);
}

void alerts_free_all(struct server *sv)
{
    struct alerting *al = sv->alerting;

    if (!al)
        return;
    alert_sinks_free(al->sinks);
    watch_free(al->watch);
    free(al);
    sv->alerting = NULL;
}

void alerts_hint(struct server *sv)
{
    if (sv->alerting)
        watch_hint(sv->alerting->watch);
}

size_t alerts_open_count(const struct server *sv, enum alert_condition c)
{
    return sv->alerting ? alerts_open(watch_alerts(sv->alerting->watch), c) : 0;
}

void alerts_deliveries(const struct server *sv, uint64_t *ret_taken, uint64_t *ret_failed)
{
    const struct alerting *al = sv->alerting;

    *ret_taken = *ret_failed = 0;
    for (size_t i = 0; al && i < al->settings->count; i++) {
        const struct sink_state *st = alerts_sink(watch_alerts(al->watch), i);
        *ret_taken += st->delivered;
        *ret_failed += st->failed;
    }
}
