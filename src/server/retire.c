/*
 * POST /v1/retire: deletes what ended long ago, in small parts between the store's other work. One
 * call works for a few seconds at most and then says where the next one goes on, so that whoever
 * asks sees how it gets on and may stop; what is deleted by then stays so.
 */

#include "server/internal.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/when.h"
#include "json/json.h"

enum {
    CALL_MS = 2000,    /* that one call works */
    COUNT_ROWS = 1000, /* that a dry run looks at in one part */
};

struct retire_call {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct retire part;
    struct audit audit;
    uint64_t tasks;
    uint64_t until_ns;
    enum err err;
    struct error error;
};

/* ---- the parts ---- */

static void put_states(struct buf *b, uint32_t states)
{
    json_open(b, '[');
    for (unsigned i = 0; i <= TASK_ERROR; i++)
        if (states & 1U << i)
            json_string(b, slice_of(task_state_text((enum task_state)i)));
    json_close(b, ']');
}

static void answer(struct http_request *r, const struct retire_call *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf next = {0};

    json_open(&b, '{');
    json_key(&b, "dry_run");
    json_bool(&b, c->part.dry);
    json_key(&b, "ended_before");
    json_time(&b, c->part.ended_before);
    json_key(&b, "states");
    put_states(&b, c->part.states);
    json_key(&b, "tasks");
    json_number(&b, (int64_t)c->tasks);
    json_key(&b, "next");
    if (c->part.more) {
        buf_i64(&next, c->part.after_seq);
        json_string(&b, buf_view(&next));
    } else {
        json_null(&b);
    }
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void call_end(struct retire_call *c)
{
    struct server *sv = c->x.server;
    struct http_request *r = c->x.http;
    struct arena a = c->arena;

    if (!c->part.dry && c->tasks > 0) {
        sv->metrics.tasks_deleted += c->tasks;
        log_line(LOG_WARN, "event=tasks_deleted tasks=%" PRIu64 " by=%.*s", c->tasks,
                 SLICE_ARG(c->audit.actor));
    }
    if (r) {
        exchange_untie(&c->x);
        if (c->err == ERR_OK)
            answer(r, c);
        else
            answer_trouble(r, c->err, c->error.text);
    }
    sv->exchange_count--;
    sv->asks_open--;
    arena_fini(&a);
}

static void part_run(struct store_job *j, struct store *store)
{
    struct retire_call *c = CONTAINER_OF(j, struct retire_call, job);

    c->err = store->ops->retire(store, &c->part, &c->error);
}

static void part_done(struct store_job *j)
{
    struct retire_call *c = CONTAINER_OF(j, struct retire_call, job);
    struct server *sv = c->x.server;

    if (c->err == ERR_OK) {
        c->tasks += c->part.count;
        if (c->part.count > 0)
            c->part.audit = NULL; /* it stands there, once a call */
    }
    if (c->err != ERR_OK || !c->part.more || !c->x.http || sv->draining
        || uv_hrtime() >= c->until_ns)
        call_end(c);
    else
        store_thread_background(sv->thread, &c->job, RETIRE_PATIENCE);
}

/* ---- the request ---- */

static bool refuse(struct http_request *r, const char *what)
{
    http_problem(r, 422, "bad-retire", "%s", what);
    return false;
}

/* Of what ended just now somebody may yet ask: agents whose answer was lost, clients that wait. */
static bool read_moment(struct http_request *r, const struct json *j, int64_t now, int64_t *ret)
{
    const struct json *before = json_get(j, "ended_before");
    const struct json *older = json_get(j, "older_than");
    int64_t ms = 0;

    if (!before == !older)
        return refuse(r, "say either older_than, a duration such as \"30d\", or ended_before, a "
                         "time such as \"2026-01-31T10:00:00Z\"");
    if (older && (older->type != JSON_STRING || !duration_parse(older->text, &ms)))
        return refuse(r, "older_than must be a duration such as \"30d\"");
    if (before && (before->type != JSON_STRING || !time_parse(before->text, ret)))
        return refuse(r, "ended_before must be a time such as \"2026-01-31T10:00:00Z\"");
    if (older)
        *ret = max_i64(now - ms, 0);
    if (*ret > now - RETIRE_AGE_MIN_MS)
        return refuse(r, "what ended less than a minute ago is not deleted: older_than must be at "
                         "least \"1m\"");
    return true;
}

static bool read_state(const struct json *one, uint32_t *states)
{
    enum task_state state;

    if (one->type != JSON_STRING || !task_state_parse(one->text, &state)
        || !(RETIRE_STATES & 1U << state))
        return false;
    *states |= 1U << state;
    return true;
}

static bool read_states(struct http_request *r, const struct json *j, uint32_t *ret)
{
    const struct json *list = json_get(j, "states");
    bool ok = list && list->type == JSON_ARRAY && list->count > 0;

    *ret = list ? 0 : RETIRE_STATES_DEFAULT;
    for (const struct json *one = ok ? list->child : NULL; ok && one; one = one->next)
        ok = read_state(one, ret);
    return ok || !list
           || refuse(r, "states must be an array of \"processed\", \"compensated\" and \"error\"");
}

static bool read_rest(struct http_request *r, const struct json *j, struct retire *p)
{
    const struct json *dry = json_get(j, "dry_run");
    const struct json *cursor = json_get(j, "cursor");

    if (dry && dry->type != JSON_TRUE && dry->type != JSON_FALSE)
        return refuse(r, "dry_run must be true or false");
    p->dry = dry && dry->type == JSON_TRUE;
    if (cursor
        && (cursor->type != JSON_STRING || !count_of(cursor->text, INT64_MAX, &p->after_seq)))
        return refuse(r, "cursor must be the `next` of an earlier answer");
    p->scan_max = p->dry ? COUNT_ROWS : RETIRE_ROWS;
    p->budget_us = RETIRE_BUDGET_US;
    return true;
}

/* What is to go, for the audit: "ended before 2026-01-31T10:00:00.000Z: processed, compensated". */
static struct slice reason(struct arena *a, const struct retire *p)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const char *between = ": ";

    buf_str(&b, "ended before ");
    time_write(&b, p->ended_before);
    for (unsigned i = 0; i <= TASK_ERROR; i++)
        if (p->states & 1U << i) {
            buf_fmt(&b, "%s%s", between, task_state_text((enum task_state)i));
            between = ", ";
        }
    return arena_copy(a, buf_view(&b));
}

static void call_begin(struct server *sv, struct http_request *r, const struct retire *part)
{
    struct arena a = {0};
    struct retire_call *c = arena_alloc(&a, sizeof *c);

    *c = (struct retire_call){.arena = a, .part = *part};
    c->audit = (struct audit){.at = server_now(sv),
                              .actor = arena_copy(&c->arena, sv->caller),
                              .verb = SLICE("retire"),
                              .reason = reason(&c->arena, part)};
    c->part.audit = &c->audit;
    c->until_ns = uv_hrtime() + CALL_MS * UINT64_C(1000000);
    c->job = (struct store_job){.run = part_run, .done = part_done};
    exchange_begin(&c->x, sv, r);
    sv->exchange_count++;
    sv->asks_open++;
    sv->store->submit(sv->store, &c->job);
}

void retire_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct retire part = {0};

    if (!j
        || !members_ok(r, j, NAMES("ended_before", "older_than", "states", "dry_run", "cursor"),
                       "a request to delete"))
        return;
    if (read_moment(r, j, server_now_at_least(sv), &part.ended_before)
        && read_states(r, j, &part.states) && read_rest(r, j, &part) && asks_have_room(sv, r, 0))
        call_begin(sv, r, &part);
}
