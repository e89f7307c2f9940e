/*
 * POST /v1/retire: deletes ended tasks, in small parts between the store's other work
 * (background/retire.c). One call works for a few seconds at most and then returns where the next
 * one continues, so that an operator sees the progress and may stop; what is deleted by then stays
 * deleted.
 */

#include "background/retire.h"
#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "background/retention.h"
#include "base/log.h"
#include "base/when.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/strict.h"
#include "json/json.h"

enum { CALL_MS = 2000 /* that one call works */ };

struct retire_call {
    struct exchange x;
    struct retirer retirer;
    struct arena arena; /* it lies in it */
    struct retention_rule rule;
    int64_t ended_before;
    struct audit audit;
    uint64_t until_ns;
};

/* ---- the answer ---- */

static void put_states(struct buf *b, uint32_t states)
{
    json_open(b, '[');
    for (unsigned i = 0; i <= TASK_ERROR; i++)
        if (states & 1U << i)
            json_string(b, slice_of(task_state_text((enum task_state)i)));
    if (states & RETIRE_CLOSED)
        json_string(b, SLICE("closed"));
    json_close(b, ']');
}

static void put_number(struct buf *b, const char *key, uint64_t v)
{
    json_key(b, key);
    json_number(b, (int64_t)v);
}

static void put_counts(struct buf *b, const struct retirer *r)
{
    json_key(b, "counts");
    json_open(b, '[');
    for (size_t i = 0; i < r->count_count; i++) {
        json_open(b, '{');
        json_key(b, "workflow");
        json_string(b, r->counts[i].workflow);
        json_key(b, "state");
        json_string(b, slice_of(task_state_text(r->counts[i].state)));
        put_number(b, "tasks", r->counts[i].tasks);
        json_close(b, '}');
    }
    json_close(b, ']');
}

static void answer(struct http_request *r, const struct retire_call *c)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "dry_run");
    json_bool(&b, c->retirer.dry);
    json_key(&b, "ended_before");
    json_time(&b, c->ended_before);
    json_key(&b, "states");
    put_states(&b, c->rule.states);
    put_number(&b, "tasks", c->retirer.tasks);
    put_counts(&b, &c->retirer);
    put_number(&b, "archived", c->retirer.archived);
    put_number(&b, "unreadable", c->retirer.unreadable);
    page_next(&b, c->retirer.more, c->retirer.after_seq);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

/* ---- the parts ---- */

static void call_end(struct retire_call *c)
{
    struct server *sv = c->x.server;
    struct http_request *r = c->x.http;
    struct arena a = c->arena;

    if (!c->retirer.dry && c->retirer.tasks > 0) {
        sv->metrics.tasks_deleted += c->retirer.tasks;
        sv->metrics.tasks_archived += c->retirer.archived;
        log_line(LOG_WARN, "event=tasks_deleted tasks=%" PRIu64 " by=%.*s archived=%" PRIu64,
                 c->retirer.tasks, SLICE_ARG(c->audit.actor), c->retirer.archived);
    }
    if (r) {
        exchange_untie(&c->x);
        if (c->retirer.err == ERR_OK)
            answer(r, c);
        else
            answer_trouble(r, c->retirer.err, c->retirer.error.text);
    }
    sv->load.exchanges--;
    sv->load.asks_open--;
    retirer_end(&c->retirer);
    arena_fini(&a);
}

static void part_done(struct retirer *r)
{
    struct retire_call *c = CONTAINER_OF(r, struct retire_call, retirer);

    if (r->err != ERR_OK || !r->more || !c->x.http || c->x.server->draining
        || uv_hrtime() >= c->until_ns)
        call_end(c);
    else
        retirer_part(r);
}

/* ---- the request ---- */

static bool refuse(struct http_request *r, const char *what)
{
    http_problem(r, 422, "bad-retire", "%s", what);
    return false;
}

/* A task that ended just now may still be needed: by agents whose answer was lost, and by clients
 * that wait. */
static bool read_moment(struct http_request *r, const struct json *j, int64_t now, int64_t *ret)
{
    const struct json *before = json_get(j, "ended_before");
    const struct json *older = json_get(j, "older_than");
    int64_t ms = RETIRE_AGE_MIN_MS;

    if (before && older)
        return refuse(r, "give either older_than or ended_before");
    if (!before && !older && !json_get(j, "keep_last"))
        return refuse(r, "give older_than, a duration such as \"30d\", ended_before, a time such "
                         "as \"2026-01-31T10:00:00Z\", or keep_last, a number of tasks");
    if (older && (older->type != JSON_STRING || !duration_parse(older->text, &ms)))
        return refuse(r, "older_than must be a duration such as \"30d\"");
    if (before && (before->type != JSON_STRING || !time_parse(before->text, ret)))
        return refuse(r, "ended_before must be a time such as \"2026-01-31T10:00:00Z\"");
    if (!before)
        *ret = max_i64(now - ms, 0);
    if (*ret > now - RETIRE_AGE_MIN_MS)
        return refuse(r, "older_than must be at least \"1m\": tasks that ended less than a minute "
                         "ago are not deleted");
    return true;
}

static bool read_state(const struct json *one, uint32_t *states)
{
    enum task_state state;

    if (one->type == JSON_STRING && slice_is(one->text, "closed")) {
        *states |= RETIRE_CLOSED;
        return true;
    }
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

    *ret = list ? 0 : RETENTION_STATES;
    for (const struct json *one = ok ? list->child : NULL; ok && one; one = one->next)
        ok = read_state(one, ret);
    return ok || !list
           || refuse(r, "states must be an array of \"processed\", \"compensated\", \"closed\" and "
                        "\"error\"");
}

static bool read_newest(struct http_request *r, const struct json *j, struct retention_rule *rule)
{
    const struct json *last = json_get(j, "keep_last");
    const struct json *workflow = json_get(j, "workflow");

    if (workflow && (workflow->type != JSON_STRING || workflow->text.len == 0))
        return refuse(r, "workflow must be the name of a workflow");
    if (workflow)
        rule->workflow = workflow->text;
    if (last
        && (!json_int(last, &rule->keep_last) || rule->keep_last < 1
            || rule->keep_last > KEEP_LAST_MAX))
        return refuse(r, "keep_last must be a number of tasks from 1 to 100000");
    return !last || workflow || refuse(r, "keep_last applies to one workflow: give workflow, too");
}

static bool read_archive(struct server *sv, struct http_request *r, const struct json *j,
                         struct retention_rule *rule)
{
    const struct json *archive = json_get(j, "archive");

    if (archive && archive->type != JSON_TRUE && archive->type != JSON_FALSE)
        return refuse(r, "archive must be true or false");
    rule->archive = retire_archives(sv) && (!archive || archive->type == JSON_TRUE);
    if (archive && archive->type == JSON_TRUE && !retire_archives(sv))
        return refuse(r, "this server has no archive: set archive: {folder: DIR} in its "
                         "configuration, or send archive: false");
    return true;
}

static bool read_rest(struct http_request *r, const struct json *j, struct retirer *p)
{
    const struct json *dry = json_get(j, "dry_run");
    const struct json *cursor = json_get(j, "cursor");

    if (dry && dry->type != JSON_TRUE && dry->type != JSON_FALSE)
        return refuse(r, "dry_run must be true or false");
    p->dry = dry && dry->type == JSON_TRUE;
    if (cursor
        && (cursor->type != JSON_STRING || !count_of(cursor->text, INT64_MAX, &p->after_seq)))
        return refuse(r, "cursor must be the `next` of an earlier answer");
    return true;
}

/* What is to go, for the audit: "ended before 2026-01-31T10:00:00.000Z: processed, compensated of
 * order but for the newest 10". */
static struct slice reason(struct arena *a, const struct retire_call *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const char *between = ": ";

    buf_str(&b, "ended before ");
    time_write(&b, c->ended_before);
    for (unsigned i = 0; i <= TASK_ERROR; i++)
        if (c->rule.states & 1U << i) {
            buf_fmt(&b, "%s%s", between, task_state_text((enum task_state)i));
            between = ", ";
        }
    if (c->rule.states & RETIRE_CLOSED)
        buf_fmt(&b, "%sclosed", between);
    if (c->rule.workflow.ptr)
        buf_fmt(&b, " of %.*s", SLICE_ARG(c->rule.workflow));
    if (c->rule.keep_last > 0)
        buf_fmt(&b, " but for the newest %" PRId64, c->rule.keep_last);
    return arena_copy(a, buf_view(&b));
}

static void call_begin(struct server *sv, struct http_request *r, const struct retire_call *draft,
                       int64_t now)
{
    struct arena a = {0};
    struct retire_call *c = arena_alloc(&a, sizeof *c);

    *c = *draft;
    c->arena = a;
    c->rule.workflow = arena_copy(&c->arena, draft->rule.workflow);
    c->rule.keep_ms = now - c->ended_before;
    c->audit = (struct audit){.at = server_now(sv),
                              .actor = arena_copy(&c->arena, sv->caller),
                              .address = caller_address(sv, r, &c->arena),
                              .verb = SLICE("retire"),
                              .reason = reason(&c->arena, c)};
    c->until_ns = uv_hrtime() + CALL_MS * UINT64_C(1000000);
    c->retirer.server = sv;
    c->retirer.audit = &c->audit;
    c->retirer.part_done = part_done;
    exchange_begin(&c->x, sv, r);
    sv->load.exchanges++;
    sv->load.asks_open++;
    retirer_begin(&c->retirer, &c->rule, 1, c->rule.workflow, now);
    retirer_part(&c->retirer);
}

void retire_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct retire_call draft = {0};
    int64_t now = server_now_at_least(sv);

    if (!j
        || !members_ok(r, j,
                       NAMES("ended_before", "older_than", "states", "workflow", "keep_last",
                             "archive", "dry_run", "cursor"),
                       "a request to delete"))
        return;
    if (read_moment(r, j, now, &draft.ended_before) && read_states(r, j, &draft.rule.states)
        && read_newest(r, j, &draft.rule) && read_archive(sv, r, j, &draft.rule)
        && read_rest(r, j, &draft.retirer) && asks_have_room(sv, r, 0))
        call_begin(sv, r, &draft, now);
}
