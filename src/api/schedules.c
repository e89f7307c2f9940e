/*
 * GET /v1/schedules, of one, of a version, and its next moments; and the way of a call to the store
 * and back, which schedules_change.c uses, too.
 */

#include "api/schedules.h"

#include <stdlib.h>

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "background/schedules.h"
#include "base/log.h"
#include "base/names.h"
#include "base/when.h"
#include "node/changes.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/strict.h"

enum { SCHEDULES_USUAL = 50, SCHEDULES_MAX = 500, MOMENTS_USUAL = 10, MOMENTS_MAX = 100 };

/* ---- how one is shown ---- */

static const char *state_of(const struct schedule_row *row)
{
    if (row->paused_at)
        return "paused";
    return row->next_at || row->waits ? "active" : "ended";
}

static void put_rules(struct buf *b, const struct schedule *s)
{
    static const char *const kinds[] = {
        [SCHEDULE_CRON] = "cron", [SCHEDULE_EVERY] = "every", [SCHEDULE_AT] = "at"};
    CLEANUP(buf_fini) struct buf text = {0};

    json_member_text(b, "kind", slice_of(kinds[s->kind]));
    json_member_text(b, "timezone", s->zone_name);
    json_member_text(b, "overlap", slice_of(overlap_text(s->overlap)));
    duration_write(&text, s->catch_up_ms);
    json_member_text(b, "catch_up", buf_view(&text));
    json_member_text(b, "missed", s->missed_all ? SLICE("all") : SLICE("latest"));
}

static void put_state(struct buf *b, const struct schedule_row *row,
                      const struct schedule_state *st)
{
    json_member_text(b, "state", slice_of(state_of(row)));
    json_member_time(b, "next_at", row->next_at);
    json_member_time(b, "fired_at", st->fired);
    json_member_time(b, "waiting_at", st->waiting);
    json_member_text(b, "run", row->run_is_open ? row->run : SLICE_NONE);
    json_member_bool(b, "backfills", st->backlog_count > 0);
    json_key(b, "counts");
    json_open(b, '{');
    json_member_number(b, "fired", (int64_t)st->fired_count);
    json_member_number(b, "missed", (int64_t)st->missed_count);
    json_member_number(b, "skipped", (int64_t)st->skipped_count);
    json_member_number(b, "failed", (int64_t)st->failed_count);
    json_close(b, '}');
    json_key(b, "gaps");
    gaps_write(st, b);
}

static void put_text(struct buf *b, struct slice text, bool is_yaml)
{
    json_member_text(b, "format", is_yaml ? SLICE("yaml") : SLICE("json"));
    if (is_yaml)
        json_member_text(b, "text", text);
    else
        json_member_raw(b, "definition", text);
}

enum err schedule_render(struct schedule_call *c, const struct schedule_row *row, bool text)
{
    struct schedule_state *st = arena_alloc(&c->arena, sizeof *st);
    struct schedule *s = NULL;
    struct buf *b = &c->body;

    enum err err = schedule_decode(row, &c->arena, &s, st, &c->error);
    if (err != ERR_OK)
        return err;
    json_open(b, '{');
    json_member_text(b, "name", row->name);
    json_member_number(b, "version", row->version);
    json_member_text(b, "workflow", row->workflow);
    put_rules(b, s);
    put_state(b, row, st);
    json_member_time(b, "paused_at", row->paused_at);
    json_member_text(b, "author", row->author);
    json_member_time(b, "stored_at", row->stored_at);
    if (text)
        put_text(b, row->text, s->is_yaml);
    if (c->warnings) {
        json_key(b, "warnings");
        mistakes_render(b, c->warnings);
    }
    json_close(b, '}');
    schedule_free(s);
    return ERR_OK;
}

/* ---- reading ---- */

static enum err find(struct schedule_call *c, struct store *st, struct schedule_row *ret)
{
    const struct schedule_query q = {.name = c->name, .limit = 1};
    struct schedule_page page = {0};

    enum err err = st->ops->schedules->list(st, &q, &c->arena, &page, &c->error);
    if (err == ERR_OK && page.count == 0)
        err = error_set(&c->error, ERR_NOT_FOUND, "there is no schedule %.*s", SLICE_ARG(c->name));
    if (err == ERR_OK)
        *ret = page.rows[0];
    return err;
}

static void read_list(struct schedule_call *c, struct store *st)
{
    struct schedule_page page = {0};
    struct buf *b = &c->body;

    c->err = st->ops->schedules->list(st, &c->query, &c->arena, &page, &c->error);
    json_open(b, '{');
    json_key(b, "schedules");
    json_open(b, '[');
    for (size_t i = 0; c->err == ERR_OK && i < page.count; i++)
        if (schedule_render(c, &page.rows[i], false) != ERR_OK)
            log_line(LOG_ERROR, "event=schedule_unreadable schedule=%.*s reason=\"%s\"",
                     SLICE_ARG(page.rows[i].name), c->error.text);
    json_close(b, ']');
    json_member_text(b, "next", page.more ? page.rows[page.count - 1].name : SLICE_NONE);
    json_close(b, '}');
}

static void read_one(struct schedule_call *c, struct store *st)
{
    struct schedule_row row;

    c->err = find(c, st, &row);
    if (c->err == ERR_OK)
        c->err = schedule_render(c, &row, true);
}

static void read_old(struct schedule_call *c, struct store *st)
{
    struct schedule_version_row row;
    struct buf *b = &c->body;

    c->err = st->ops->schedules->version(st, c->name, c->version, &c->arena, &row, &c->error);
    if (c->err != ERR_OK)
        return;
    json_open(b, '{');
    json_member_text(b, "name", row.name);
    json_member_number(b, "version", row.version);
    json_member_text(b, "author", row.author);
    json_member_time(b, "stored_at", row.stored_at);
    put_text(b, row.text, row.text.ptr[strspn(row.text.ptr, " \t\r\n")] != '{');
    json_close(b, '}');
}

static void put_next(struct buf *b, const struct schedule *s, int64_t moment)
{
    CLEANUP(buf_fini) struct buf local = {0};

    moment_write_local(&local, s->zone, moment);
    json_open(b, '{');
    json_member_time(b, "time", moment);
    json_member_text(b, "local", buf_view(&local));
    json_member_time(b, "due_at", schedule_due_at(s, moment));
    json_close(b, '}');
}

static void read_next(struct schedule_call *c, struct store *st)
{
    struct schedule_state *state = arena_alloc(&c->arena, sizeof *state);
    struct schedule *s = NULL;
    struct schedule_row row;
    struct buf *b = &c->body;

    c->err = find(c, st, &row);
    if (c->err == ERR_OK)
        c->err = schedule_decode(&row, &c->arena, &s, state, &c->error);
    if (c->err != ERR_OK)
        return;
    json_open(b, '{');
    json_member_text(b, "name", row.name);
    json_member_text(b, "timezone", s->zone_name);
    json_member_text(b, "state", slice_of(state_of(&row)));
    json_key(b, "moments");
    json_open(b, '[');
    int64_t moment = schedule_next(s, max_i64(state->last, c->now));
    for (int64_t i = 0; i < c->count && moment >= 0; i++) {
        put_next(b, s, moment);
        moment = schedule_next(s, moment);
    }
    json_close(b, ']');
    json_close(b, '}');
    schedule_free(s);
}

static void read_run(struct store_job *j, struct store *st)
{
    struct schedule_call *c = CONTAINER_OF(j, struct schedule_call, job);

    c->read(c, st);
}

/* ---- the way there and back ---- */

static void answer(struct http_request *r, const struct schedule_call *c)
{
    if (*c->older)
        http_problem(r, 409, "older-node",
                     "node %s does not support schedules: first restart it with the version of "
                     "this one",
                     c->older);
    else if (c->err == ERR_NOT_FOUND)
        http_problem(r, 404, "no-such-schedule", "%s", c->error.text);
    else if (c->err == ERR_INVALID)
        http_problem(r, 422, "bad-moments", "%s", c->error.text);
    else if (c->err != ERR_OK)
        answer_trouble(r, c->err, c->error.text);
    else
        answer_json(r, c->status, &c->body, NULL);
}

static void call_done(struct store_job *j)
{
    struct schedule_call *c = CONTAINER_OF(j, struct schedule_call, job);
    struct server *sv = c->x.server;
    struct http_request *r = c->x.http;

    if (c->audit.verb.ptr) {
        if (c->err == ERR_OK && c->writes)
            log_line(LOG_WARN, "event=schedule_changed schedule=%.*s verb=%.*s by=%.*s",
                     SLICE_ARG(c->name), SLICE_ARG(c->audit.verb), SLICE_ARG(c->audit.actor));
        schedules_changed(sv);
    }
    if (r) {
        exchange_untie(&c->x);
        answer(r, c);
    }
    sv->load.exchanges--;
    sv->load.reads_open--;
    schedule_free(c->schedule);
    free(c->warnings);
    buf_fini(&c->body);
    buf_fini(&c->doc);
    struct arena a = c->arena;
    arena_fini(&a);
}

struct schedule_call *schedule_call_new(struct server *sv, struct http_request *r)
{
    struct arena a = {0};
    struct schedule_call *c = arena_alloc(&a, sizeof *c);

    *c = (struct schedule_call){.status = 200, .now = server_now(sv)};
    c->arena = a;
    c->name = arena_copy(&c->arena, http_segment(r, 2));
    c->audit.at = c->now;
    c->audit.actor = arena_copy(&c->arena, sv->caller);
    c->audit.address = caller_address(sv, r, &c->arena);
    return c;
}

void schedule_call_begin(struct schedule_call *c, struct server *sv, struct http_request *r)
{
    c->job = (struct store_job){.run = c->read ? read_run : schedule_change_run, .done = call_done};
    exchange_begin(&c->x, sv, r);
    sv->load.exchanges++;
    sv->load.reads_open++;
    if (c->read)
        reading_begin(&c->x, c->read == read_list ? READING_MANY : READING_ONE, &c->job);
    else
        changes_add(sv->changes, c->audit.actor, r->account, &c->job);
}

/* ---- requests ---- */

void schedules_list(struct server *sv, struct http_request *r)
{
    struct slice limit = http_query(r, "limit");
    struct slice cursor = http_query(r, "cursor");
    int64_t n = SCHEDULES_USUAL;

    if (!parameters_ok(r, NAMES("limit", "cursor")))
        return;
    if (limit.ptr && !count_of(limit, SCHEDULES_MAX, &n)) {
        http_problem(r, 422, "bad-limit", "limit: expected a number from 1 to %d", SCHEDULES_MAX);
        return;
    }
    if (cursor.ptr && !is_name(cursor)) {
        http_problem(r, 422, "bad-cursor", "cursor: expected `next` of the page before");
        return;
    }
    if (!reading_has_room(sv, r, READING_MANY))
        return;
    struct schedule_call *c = schedule_call_new(sv, r);
    c->query =
        (struct schedule_query){.after_name = arena_copy(&c->arena, cursor), .limit = (size_t)n};
    c->read = read_list;
    schedule_call_begin(c, sv, r);
}

void schedule_get(struct server *sv, struct http_request *r)
{
    struct slice version = http_segment(r, 4);
    int64_t v = 0;

    if (version.ptr && !count_of(version, INT64_MAX, &v))
        v = -1; /* no version is called so */
    if (!reading_has_room(sv, r, READING_ONE))
        return;
    struct schedule_call *c = schedule_call_new(sv, r);
    c->version = v;
    c->read = version.ptr ? read_old : read_one;
    schedule_call_begin(c, sv, r);
}

void schedule_next_get(struct server *sv, struct http_request *r)
{
    struct slice count = http_query(r, "count");
    int64_t n = MOMENTS_USUAL;

    if (!parameters_ok(r, NAMES("count")))
        return;
    if (count.ptr && !count_of(count, MOMENTS_MAX, &n)) {
        http_problem(r, 422, "bad-limit", "count: expected a number from 1 to %d", MOMENTS_MAX);
        return;
    }
    if (!reading_has_room(sv, r, READING_ONE))
        return;
    struct schedule_call *c = schedule_call_new(sv, r);
    c->count = n;
    c->read = read_next;
    schedule_call_begin(c, sv, r);
}
