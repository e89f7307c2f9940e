/*
 * GET /v1/submissions: those that wait to become tasks, and those that were refused. POST
 * /v1/submissions/retry and /drop {seq | all, source, reason}: what becomes of refused ones.
 */

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "background/submission_inbox.h"
#include "base/log.h"
#include "node/changes.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/strict.h"
#include "store/job.h"
#include "json/json.h"
#include "json/text.h"

enum { REASON_MAX = 4096, SHOWN_MAX = 4096 };

/* ---- the list ---- */

struct submissions_reader {
    struct store_query base;
    struct submission_query query;
    struct submission_page page;
};

static void list_run(struct store_job *j, struct store *store)
{
    struct submissions_reader *l = CONTAINER_OF(j, struct submissions_reader, base.job);
    struct store_query *it = &l->base;

    it->err = store->ops->submissions->list(store, &l->query, &it->arena, &l->page, &it->error);
}

/* It may be anything, and long. */
static struct slice shown(struct slice v)
{
    size_t end;

    v = slice_cut(v, SHOWN_MAX);
    end = text_utf8_end(v);
    return (struct slice){v.ptr, end};
}

static void put_text(struct buf *b, const char *key, struct slice v)
{
    json_key(b, key);
    json_string(b, shown(v));
}

static void render(struct buf *b, const struct submission_row *r)
{
    json_open(b, '{');
    json_key(b, "seq");
    json_number(b, r->seq);
    put_text(b, "source", r->source);
    put_text(b, "id", r->id);
    put_text(b, "workflow", r->workflow);
    put_text(b, "version", r->version);
    put_text(b, "priority", r->priority);
    put_text(b, "not_before", r->not_before);
    put_text(b, "reply_to", r->reply_to);
    put_text(b, "tags", r->tags);
    put_text(b, "input", r->input);
    json_key(b, "input_bytes");
    json_number(b, (int64_t)r->input.len);
    json_key(b, "submitted_at");
    json_time(b, r->submitted_at);
    json_key(b, "refused_at");
    json_time(b, r->refused_at);
    put_text(b, "reason", r->reason);
    json_close(b, '}');
}

static void answer_list(struct http_request *r, struct store_query *it)
{
    const struct submissions_reader *l = CONTAINER_OF(it, struct submissions_reader, base);
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "submissions");
    json_open(&b, '[');
    for (size_t i = 0; i < l->page.count; i++)
        render(&b, &l->page.rows[i]);
    json_close(&b, ']');
    page_next(&b, l->page.more, l->page.more ? l->page.rows[l->page.count - 1].seq : 0);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static bool read_query(struct http_request *r, struct submission_query *q)
{
    struct slice state = http_query(r, "state");

    if (!parameters_ok(r, NAMES("state", "source", "limit", "cursor")))
        return false;
    if (state.ptr && !slice_is(state, "refused") && !slice_is(state, "waiting")) {
        http_problem(r, 422, "bad-state", "state is \"%.*s\", expected refused or waiting",
                     SLICE_ARG(state));
        return false;
    }
    if (!page_query(r, PAGE_USUAL, PAGE_MAX, &q->limit, &q->before_seq))
        return false;
    q->refused = !slice_is(state, "waiting");
    q->source = http_query(r, "source");
    return true;
}

void submissions_get(struct server *sv, struct http_request *r)
{
    struct submission_query q = {0};

    if (!read_query(r, &q) || !reading_has_room(sv, r, READING_MANY))
        return;
    struct store_query *it = store_query_new(sv, r, sizeof(struct submissions_reader), answer_list);
    struct submissions_reader *l = CONTAINER_OF(it, struct submissions_reader, base);
    l->query = q;
    l->query.source = arena_copy(&it->arena, q.source);
    store_query_start(it, list_run);
}

/* ---- retry, drop ---- */

struct verb_call {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct submission_verb verb;
    struct audit audit;
    uint64_t count;
    enum err err;
    struct error error;
};

static void verb_run(struct store_job *j, struct store *store)
{
    struct verb_call *c = CONTAINER_OF(j, struct verb_call, job);

    c->err = store->ops->submissions->apply(store, &c->verb, &c->error);
}

static void verb_end(struct verb_call *c)
{
    struct server *sv = c->x.server;
    struct http_request *r = c->x.http;
    struct arena a = c->arena;
    CLEANUP(buf_fini) struct buf b = {0};

    if (c->count > 0) {
        log_line(LOG_WARN, "event=submissions_%s submissions=%" PRIu64 " by=%.*s",
                 c->verb.drop ? "dropped" : "retried", c->count, SLICE_ARG(c->audit.actor));
        inbox_wake(sv);
    }
    if (r) {
        exchange_untie(&c->x);
        if (c->err == ERR_NOT_FOUND) {
            http_problem(r, 404, "no-such-submission", "%s", c->error.text);
        } else if (c->err != ERR_OK) {
            answer_trouble(r, c->err, c->error.text);
        } else {
            json_open(&b, '{');
            json_key(&b, "submissions");
            json_number(&b, (int64_t)c->count);
            json_key(&b, "more");
            json_bool(&b, c->verb.more);
            json_close(&b, '}');
            answer_json(r, 200, &b, NULL);
        }
    }
    sv->load.exchanges--;
    sv->load.asks_open--;
    arena_fini(&a);
}

/* Part by part, up to the newest that was refused when it began. */
static void verb_done(struct store_job *j)
{
    struct verb_call *c = CONTAINER_OF(j, struct verb_call, job);
    struct server *sv = c->x.server;

    if (c->err == ERR_OK) {
        c->count += c->verb.count;
        if (c->verb.count > 0)
            c->verb.audit = NULL; /* it is listed, once a call */
    }
    if (c->err == ERR_OK && c->verb.more && !sv->draining && c->verb.drop)
        changes_add(sv->changes, c->audit.actor, c->job.account, &c->job);
    else
        verb_end(c);
}

static bool refuse(struct http_request *r, const char *what)
{
    http_problem(r, 422, "bad-submission", "%s", what);
    return false;
}

static bool verb_read(struct http_request *r, const struct json *j, struct submission_verb *v)
{
    const struct json *seq = json_get(j, "seq");
    const struct json *all = json_get(j, "all");
    const struct json *source = json_get(j, "source");
    struct slice reason = json_get_text(j, "reason");

    if (!members_ok(r, j, NAMES("seq", "all", "source", "reason"), "a change of submissions"))
        return false;
    if (reason.len == 0 || reason.len > REASON_MAX) {
        http_problem(r, 422, reason.len ? "bad-reason" : "no-reason",
                     "a reason of at most %d bytes is required: {\"reason\": \"...\"}", REASON_MAX);
        return false;
    }
    if (seq && (!json_int(seq, &v->seq) || v->seq < 1))
        return refuse(r, "seq must be the number of a refused submission");
    if (all && all->type != JSON_TRUE)
        return refuse(r, "all must be true if it is given");
    if (source && source->type != JSON_STRING)
        return refuse(r, "source must be a string, such as \"sql\"");
    if (!seq == !all)
        return refuse(r, "expected either {\"seq\": 12} or {\"all\": true}");
    v->source = json_get_text(j, "source");
    return true;
}

static void verb_post(struct server *sv, struct http_request *r, bool drop)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct submission_verb v = {.drop = drop};
    struct arena a = {0};

    if (!j || !verb_read(r, j, &v) || !asks_have_room(sv, r, 0))
        return;
    struct verb_call *c = arena_alloc(&a, sizeof *c);
    *c = (struct verb_call){.arena = a, .verb = v};
    c->verb.source = arena_copy(&c->arena, v.source);
    c->audit = (struct audit){.at = server_now(sv),
                              .actor = arena_copy(&c->arena, sv->caller),
                              .address = caller_address(sv, r, &c->arena),
                              .verb = drop ? SLICE("submission.drop") : SLICE("submission.retry"),
                              .reason = arena_copy(&c->arena, json_get_text(j, "reason"))};
    c->verb.audit = &c->audit;
    c->job = (struct store_job){.run = verb_run, .done = verb_done};
    exchange_begin(&c->x, sv, r);
    sv->load.exchanges++;
    sv->load.asks_open++;
    changes_add(sv->changes, sv->caller, r->account, &c->job);
}

void submissions_retry(struct server *sv, struct http_request *r)
{
    verb_post(sv, r, false);
}

void submissions_drop(struct server *sv, struct http_request *r)
{
    verb_post(sv, r, true);
}
