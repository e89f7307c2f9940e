/*
 * GET /v1/alerts, POST /v1/alerts/{id}/acknowledge, POST /v1/alerts/test. Lists what the store has
 * and what this node knows of sinks; the conditions themselves are found by background/alerts.c.
 */

#include <stdio.h>
#include <stdlib.h>

#include "alerts/alerts.h"
#include "alerts/watch.h"
#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "background/alerts.h"
#include "base/list.h"
#include "node/changes.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/strict.h"
#include "store/job.h"
#include "json/json.h"

enum { REASON_MAX = 1024 };

/* ---- the list ---- */

struct alerts_reader {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct alert_query query;
    struct slice state; /* NONE: any */
    struct alert_page page;
    enum err err;
    struct error error;
};

static void alerts_run(struct store_job *j, struct store *store)
{
    struct alerts_reader *ar = CONTAINER_OF(j, struct alerts_reader, job);

    ar->err = store->ops->alerts->list(store, &ar->query, &ar->arena, &ar->page, &ar->error);
}

static void put_sink(struct buf *b, const struct alert_sink *c, const struct sink_state *st)
{
    json_open(b, '{');
    json_key(b, "sink");
    json_string(b, slice_of(c->name));
    json_key(b, "delivered");
    json_number(b, (int64_t)st->delivered);
    json_key(b, "failed");
    json_number(b, (int64_t)st->failed);
    json_key(b, "last_at");
    json_time(b, st->last_at);
    json_key(b, "trouble");
    json_string(b, st->failing ? slice_of(st->story) : SLICE_NONE);
    json_close(b, '}');
}

/* As this node knows them since it started, or leads. */
static void put_sinks(struct buf *b, const struct server *sv)
{
    const struct alerts_settings *s = alerts_sinks_of(sv);

    json_key(b, "sinks");
    json_open(b, '[');
    for (size_t i = 0; i < s->count; i++)
        put_sink(b, &s->sinks[i], alerts_sink(watch_alerts(alerts_watch(sv)), i));
    json_close(b, ']');
}

static void put_row(struct buf *b, const struct alert_row *row, struct slice state)
{
    CLEANUP(buf_fini) struct buf one = {0};
    const struct alert_stored st = {
        .id = row->id,
        .key = row->key,
        .doc = row->doc,
        .opened_at = row->opened_at,
        .resolved_at = row->resolved_at,
        .acknowledged_at = row->acknowledged_at,
        .acknowledged_by = row->acknowledged_by,
        .acknowledged_why = row->acknowledged_why,
    };

    if (alert_render_row(&st, state, &one))
        json_raw(b, buf_view(&one));
}

static void answer_rows(struct http_request *r, const struct alerts_reader *ar)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "alerts");
    json_open(&b, '[');
    for (size_t i = 0; i < ar->page.count; i++)
        put_row(&b, &ar->page.rows[i], ar->state);
    json_close(&b, ']');
    page_next(&b, ar->page.more, ar->page.more ? ar->page.rows[ar->page.count - 1].seq : 0);
    put_sinks(&b, ar->x.server);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

/* The store does not answer: this is what the node has in memory. */
static void answer_memory(struct http_request *r, const struct alerts_reader *ar)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct alert *al = NULL;

    json_open(&b, '{');
    json_key(&b, "alerts");
    json_open(&b, '[');
    for (size_t i = 0; (al = alerts_next(watch_alerts(alerts_watch(ar->x.server)), &i));) {
        CLEANUP(buf_fini) struct buf one = {0};
        if (!al->id[0] || (ar->state.ptr && !slice_is(ar->state, alert_state(al))))
            continue;
        alert_render(al, &one);
        json_raw(&b, buf_view(&one));
    }
    json_close(&b, ']');
    page_next(&b, false, 0);
    put_sinks(&b, ar->x.server);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void alerts_done(struct store_job *j)
{
    struct alerts_reader *ar = CONTAINER_OF(j, struct alerts_reader, job);
    struct http_request *r = ar->x.http;
    struct arena a = ar->arena;

    if (r) {
        exchange_untie(&ar->x);
        if (ar->err == ERR_OK)
            answer_rows(r, ar);
        else
            answer_memory(r, ar);
    }
    ar->x.server->load.exchanges--;
    ar->x.server->load.reads_open--;
    arena_fini(&a);
}

static bool read_query(struct http_request *r, struct alert_query *q, struct slice *ret_state)
{
    struct slice state = http_query(r, "state");

    if (!parameters_ok(r, NAMES("state", "limit", "cursor"))
        || !page_query(r, PAGE_USUAL, PAGE_MAX, &q->limit, &q->before_seq))
        return false;
    if (state.ptr && !slice_is(state, "open") && !slice_is(state, "acknowledged")
        && !slice_is(state, "resolved")) {
        http_problem(r, 422, "bad-state",
                     "state is \"%.*s\", expected open, acknowledged or resolved",
                     SLICE_ARG(state));
        return false;
    }
    q->live = state.ptr && !slice_is(state, "resolved");
    *ret_state = state;
    return true;
}

void alerts_list(struct server *sv, struct http_request *r)
{
    struct alert_query q = {0};
    struct slice state = SLICE_NONE;
    struct arena a = {0};

    if (!read_query(r, &q, &state) || !reading_has_room(sv, r, READING_MANY))
        return;
    struct alerts_reader *ar = arena_alloc(&a, sizeof *ar);
    *ar = (struct alerts_reader){.arena = a, .query = q};
    ar->state = arena_copy(&ar->arena, state);
    exchange_begin(&ar->x, sv, r);
    sv->load.exchanges++;
    sv->load.reads_open++;
    ar->job = (struct store_job){.run = alerts_run, .done = alerts_done};
    reading_begin(&ar->x, READING_MANY, &ar->job);
}

/* ---- acknowledging ---- */

struct acknowledgement {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct slice id;
    struct audit audit;
    enum err err;
    struct error error;
};

static void acknowledgement_run(struct store_job *j, struct store *store)
{
    struct acknowledgement *y = CONTAINER_OF(j, struct acknowledgement, job);

    y->err = store->ops->alerts->acknowledge(store, y->id, &y->audit, &y->error);
}

static void answer_acknowledgement(struct http_request *r, const struct acknowledgement *y)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (y->err == ERR_NOT_FOUND) {
        http_problem(r, 404, "no-alert", "%s", y->error.text);
    } else if (y->err == ERR_CONFLICT) {
        http_problem(r, 409, "alert-resolved", "%s", y->error.text);
    } else if (y->err != ERR_OK) {
        answer_trouble(r, y->err, y->error.text);
    } else {
        json_open(&b, '{');
        json_key(&b, "id");
        json_string(&b, y->id);
        json_key(&b, "state");
        json_string(&b, SLICE("acknowledged"));
        json_close(&b, '}');
        answer_json(r, 200, &b, NULL);
    }
}

static void acknowledgement_done(struct store_job *j)
{
    struct acknowledgement *y = CONTAINER_OF(j, struct acknowledgement, job);
    struct server *sv = y->x.server;
    struct http_request *r = y->x.http;
    struct arena a = y->arena;

    if (y->err == ERR_OK)
        watch_acknowledged(alerts_watch(sv), y->id, y->audit.at, y->audit.actor, y->audit.reason);
    if (r) {
        exchange_untie(&y->x);
        answer_acknowledgement(r, y);
    }
    sv->load.exchanges--;
    sv->load.asks_open--;
    arena_fini(&a);
}

static void acknowledgement_begin(struct server *sv, struct http_request *r, struct slice reason)
{
    struct arena a = {0};
    struct acknowledgement *y = arena_alloc(&a, sizeof *y);

    *y = (struct acknowledgement){.arena = a};
    y->id = arena_copy(&y->arena, http_segment(r, 2));
    y->audit = (struct audit){.at = server_now(sv),
                              .actor = arena_copy(&y->arena, sv->caller),
                              .address = caller_address(sv, r, &y->arena),
                              .verb = SLICE("alert.acknowledge"),
                              .reason = arena_copy(&y->arena, reason)};
    y->job = (struct store_job){.run = acknowledgement_run, .done = acknowledgement_done};
    exchange_begin(&y->x, sv, r);
    sv->load.exchanges++;
    sv->load.asks_open++;
    changes_add(sv->changes, sv->caller, r->account, &y->job);
}

void alert_acknowledge(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);

    if (!j || !members_ok(r, j, NAMES("reason"), "an acknowledgement"))
        return;
    struct slice reason = json_get_text(j, "reason");
    if (reason.len == 0) {
        http_problem(r, 422, "no-reason", "a reason is required: {\"reason\": \"...\"}");
        return;
    }
    if (reason.len > REASON_MAX) {
        http_problem(r, 422, "bad-reason", "the reason has %zu bytes, expected at most %d",
                     reason.len, REASON_MAX);
        return;
    }
    if (asks_have_room(sv, r, 0))
        acknowledgement_begin(sv, r, reason);
}

/* ---- a test ---- */

struct test {
    struct exchange x;
    struct alert_trial trial;
    struct alert alert;
    size_t left;
    struct {
        bool took;
        char story[200];
    } of[ALERT_SINKS];
};

static void answer_test(struct http_request *r, const struct test *t)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct alerts_settings *s = alerts_sinks_of(t->x.server);

    json_open(&b, '{');
    json_key(&b, "sinks");
    json_open(&b, '[');
    for (size_t i = 0; i < s->count; i++) {
        json_open(&b, '{');
        json_key(&b, "sink");
        json_string(&b, slice_of(s->sinks[i].name));
        json_key(&b, "took");
        json_bool(&b, t->of[i].took);
        json_key(&b, "trouble");
        json_string(&b, t->of[i].took ? SLICE_NONE : slice_of(t->of[i].story));
        json_close(&b, '}');
    }
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void test_delivered(struct alert_trial *trial, size_t sink, bool took, const char *story)
{
    struct test *t = CONTAINER_OF(trial, struct test, trial);
    struct http_request *r = t->x.http;

    t->of[sink].took = took;
    (void)snprintf(t->of[sink].story, sizeof t->of[sink].story, "%s", story);
    if (--t->left > 0)
        return;
    if (r) {
        exchange_untie(&t->x);
        answer_test(r, t);
    }
    t->x.server->load.reads_open--;
    link_remove(&trial->link);
    free(t);
}

static void test_dropped(struct alert_trial *trial)
{
    struct test *t = CONTAINER_OF(trial, struct test, trial);

    ASSERT(!t->x.http); /* its client was let go */
    t->x.server->load.reads_open--;
    free(t);
}

static void test_alert(struct alert *al, int64_t now)
{
    *al = (struct alert){.condition = CONDITION_TEST,
                         .key = SLICE("test{}"),
                         .count = 1,
                         .total = 1,
                         .first_at = now,
                         .latest_at = now,
                         .opened_at = now,
                         .notice = 1,
                         .kind = NOTICE_OPENED,
                         .notice_at = now};
    (void)snprintf(al->id, sizeof al->id, "a-test-%" PRIx64, (uint64_t)now);
    (void)snprintf(al->story, sizeof al->story, "requested by an operator");
}

void alert_test(struct server *sv, struct http_request *r)
{
    if (!reads_have_room(sv, r))
        return;
    struct test *t = calloc(1, sizeof *t);
    ASSERT(t);
    test_alert(&t->alert, server_now(sv));
    t->left = alerts_sinks_of(sv)->count;
    t->trial.delivered = test_delivered;
    t->trial.dropped = test_dropped;
    sv->load.reads_open++;
    exchange_begin(&t->x, sv, r);
    alerts_try(sv, &t->trial, &t->alert);
}
