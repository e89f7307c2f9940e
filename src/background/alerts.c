/*
 * Alerts, as far as they are the server's: the conditions that this node sees in memory, a timer,
 * and the way to the sinks. Which alerts are opened and sent, and when, is decided by src/alerts;
 * what the store is asked for is in alert_queries.c.
 */

#include "background/alerts.h"

#include <stdio.h>
#include <stdlib.h>

#include "alerts/alert_settings.h"
#include "alerts/alerts.h"
#include "alerts/watch.h"
#include "background/alert_sinks.h"
#include "background/alerting.h"
#include "background/retention.h"
#include "background/room.h"
#include "base/list.h"
#include "base/map.h"
#include "base/when.h"
#include "node/access.h"
#include "node/node.h"
#include "node/part.h"
#include "node/store_thread.h"

enum {
    LOOK_SHARED_MS = 10000,
};

#define TOKEN_SOON_MS INT64_C(1209600000) /* 14 days */
#define TOKEN_LONG_MS (2 * TOKEN_SOON_MS)

/* ---- what holds in memory ---- */

static void see_store(struct server *sv, struct alerts *a, int64_t now)
{
    char story[sizeof sv->trouble.text];

    if (server_trouble(sv, story, sizeof story) == ERR_OK)
        return;
    int64_t since = sv->trouble.err != ERR_OK ? sv->trouble.since : 0;
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
        .first_at = sv->metrics.started_at, /* otherwise it would be a new one each time */
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

static void see_found(const struct found_condition *list, size_t count, struct alerts *a,
                      int64_t now)
{
    for (size_t i = 0; i < count; i++) {
        const struct found_condition *w = &list[i];
        const struct sighting s = {.condition = w->condition,
                                   .labels = {{w->label, slice_of(w->value)}},
                                   .count = w->count,
                                   .first_at = w->at,
                                   .example = slice_of(w->example),
                                   .story = slice_of(w->story)};
        alerts_see(a, &s, now);
    }
}

/* One sighting for each example; the first one counts for all others. */
static void see_question(const struct found_question *q, struct alerts *a, int64_t now)
{
    struct sighting s = {.condition = CONDITION_APPROVAL_WAITING,
                         .labels = {{"workflow", slice_of(q->workflow)},
                                    {"step", slice_of(q->step)},
                                    {"group", slice_of(q->group)}},
                         .count = q->count - (q->task_count - 1),
                         .first_at = q->first_at,
                         .latest_at = q->latest_at,
                         .repeat_ms = q->repeat_ms,
                         .each = true,
                         .example = slice_of(q->tasks[0]),
                         .story = slice_of(q->story)};

    if (!q->workflow[0]) {
        s.labels[0].value = s.labels[1].value = SLICE_NONE;
        s.labels[2].value = SLICE("others");
    }
    alerts_see(a, &s, now);
    s.count = 1;
    for (size_t i = 1; i < q->task_count; i++) {
        s.example = slice_of(q->tasks[i]);
        alerts_see(a, &s, now);
    }
}

static void see_questions(const struct alerting *al, struct alerts *a, int64_t now)
{
    for (size_t i = 0; i < al->questions.count; i++)
        see_question(&al->questions.list[i], a, now);
}

static void see_retention(const struct server *sv, struct alerts *a, int64_t now)
{
    struct sighting s = {.condition = CONDITION_RETENTION_TROUBLE,
                         .labels = {{"node", slice_of(sv->config.node)}},
                         .count = 1};

    if (retention_trouble(sv, &s.story, &s.first_at))
        alerts_see(a, &s, now);
}

/* Tasks that wait for an agent that is not connected, and none of which made progress since the
 * last query: the agent may be connected to another node. */
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

/* From long before it expires to a while after, because its clients may not have called since. A
 * token with a short life is meant to expire. */
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
    see_agents(sv->background->alerting, a, now);
    see_retention(sv, a, now);
    see_tokens(sv, a, now);
    see_questions(sv->background->alerting, a, now);
    see_found(sv->background->alerting->found, sv->background->alerting->found_count, a, now);
}

/* ---- the watch ---- */

static void fired(uv_timer_t *t);

static void turn(struct alerting *al)
{
    struct server *sv = al->server;

    if (al->closed)
        return;
    alerts_query_store(al);
    al->due_at = watch_turn(al->watch);
    uv_update_time(&sv->loop);
    (void)uv_timer_start(&al->timer, fired,
                         (uint64_t)max_i64(1, al->due_at - server_now_elapsing(sv)), 0);
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
    char story[sizeof sv->trouble.text];

    return server_trouble(sv, story, sizeof story) == ERR_OK;
}

static void deliver(void *arg, size_t sink, const struct alert *const *list, size_t count)
{
    struct server *sv = arg;

    alert_sinks_send(sv->background->alerting->sinks, sink, list, count, server_now(sv), NULL);
}

static void delivered(void *arg, void *user, size_t sink, bool took, const char *story)
{
    struct server *sv = arg;
    struct alerting *al = sv->background->alerting;

    struct alert_trial *t = user;

    ASSERT(sink < al->settings->count);
    if (t) {
        t->delivered(t, sink, took, story);
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
        .now = server_now_elapsing,
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

static enum err alerting_open(struct server *sv, struct error *e)
{
    struct alerting *al = calloc(1, sizeof *al);
    ASSERT(al);
    ASSERT(!sv->background->alerting);
    al->server = sv;
    al->settings = sv->config.alerts;
    if (!al->settings) {
        alerts_settings_init(&al->own_settings);
        al->settings = &al->own_settings;
    }
    list_init(&al->trials);
    al->sinks = alert_sinks_open(&sv->loop, al->settings, sv->channels.webhooks, sv->source,
                                 delivered, sv, e);
    if (!al->sinks) {
        free(al);
        return e->code;
    }
    sv->background->alerting = al;
    al->watch = watch_of(sv, al->settings);
    int rc = uv_timer_init(&sv->loop, &al->timer) | uv_check_init(&sv->loop, &al->check);
    ASSERT(rc == 0);
    al->timer.data = al->check.data = al;
    (void)uv_check_start(&al->check, idled);
    turn(al);
    return ERR_OK;
}

static bool alerting_is_busy(const struct server *sv)
{
    return watch_is_busy(sv->background->alerting->watch);
}

static void alerting_drain(struct server *sv)
{
    watch_stop(sv->background->alerting->watch);
}

static void alerting_close(struct server *sv)
{
    struct alerting *al = sv->background->alerting;

    al->closed = true;
    uv_close((uv_handle_t *)&al->timer, NULL);
    uv_close((uv_handle_t *)&al->check, NULL);
    alert_sinks_close(al->sinks);
    LIST_FOREACH (link, after, &al->trials) {
        struct alert_trial *t = CONTAINER_OF(link, struct alert_trial, link);
        link_remove(link);
        t->dropped(t);
    }
}

static void alerting_free(struct server *sv)
{
    struct alerting *al = sv->background->alerting;

    alert_sinks_free(al->sinks);
    watch_free(al->watch);
    free(al);
    sv->background->alerting = NULL;
}

void alerts_hint(struct server *sv)
{
    if (sv->background->alerting)
        watch_hint(sv->background->alerting->watch);
}

size_t alerts_open_count(const struct server *sv, enum alert_condition c)
{
    return sv->background->alerting ? alerts_open(watch_alerts(sv->background->alerting->watch), c)
                                    : 0;
}

void alerts_deliveries(const struct server *sv, uint64_t *ret_taken, uint64_t *ret_failed)
{
    const struct alerting *al = sv->background->alerting;

    *ret_taken = *ret_failed = 0;
    for (size_t i = 0; al && i < al->settings->count; i++) {
        const struct sink_state *st = alerts_sink(watch_alerts(al->watch), i);
        *ret_taken += st->delivered;
        *ret_failed += st->failed;
    }
}

struct watch *alerts_watch(const struct server *sv)
{
    return sv->background->alerting->watch;
}

const struct alerts_settings *alerts_sinks_of(const struct server *sv)
{
    return sv->background->alerting->settings;
}

void alerts_try(struct server *sv, struct alert_trial *t, const struct alert *a)
{
    struct alerting *al = sv->background->alerting;

    ASSERT(!al->closed);
    list_push(&al->trials, &t->link);
    for (size_t i = 0; i < al->settings->count; i++)
        alert_sinks_send(al->sinks, i, &a, 1, server_now(sv), t);
}

const struct part alerts_part = {
    .name = "alerts",
    .open = alerting_open,
    .drain = alerting_drain,
    .is_busy = alerting_is_busy,
    .close = alerting_close,
    .free = alerting_free,
};
