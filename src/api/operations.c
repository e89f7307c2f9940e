/*
 * /v1/operations: creates, lists, stops and continues operations on many tasks. A dry run is
 * answered by operations_dry.c; background/operations.c executes what was stored here.
 */

#include "api/operations.h"

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "api/room.h"
#include "api/signals.h"
#include "background/operations.h"
#include "base/log.h"
#include "node/access.h"
#include "node/changes.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/new_id.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/strict.h"
#include "store/job.h"
#include "json/json.h"

enum { OPERATIONS_USUAL = 20, OPERATIONS_MAX = 100, CHANGES_MAX = 10 };

/* One request: reads or writes operations on the store's thread. */
struct operation_call {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct operation_query query;
    struct operation_page page;
    struct buf text;     /* the answer of a list */
    struct operation op; /* to be stored; what came of it */
    struct audit audit;
    enum operation_state wanted;
    bool changes, listing;
    bool gone, ended; /* out: there is none; it is done, and nothing is to be changed */
    int status;
    enum err err;
    struct error error;
};

/* ---- how one is shown ---- */

static void put_count(struct buf *b, const char *key, uint64_t v)
{
    json_key(b, key);
    json_number(b, (int64_t)v);
}

static void put_limits(struct buf *b, const struct operation *op)
{
    CLEANUP(buf_fini) struct buf rate = {0};

    json_key(b, "limit");
    if (op->limit)
        json_number(b, op->limit);
    else
        json_null(b);
    buf_fmt(&rate, "%" PRId64 "/s", op->rate);
    json_key(b, "rate");
    json_string(b, op->rate ? buf_view(&rate) : SLICE_NONE);
}

static void put_counts(struct buf *b, const struct operation *op)
{
    put_count(b, "matched", op->matched);
    put_count(b, "done", op->done);
    json_key(b, "refused");
    json_open(b, '{');
    for (size_t i = 0; i < op->refused_count; i++) {
        json_key_slice(b, op->refused[i].reason);
        json_number(b, (int64_t)op->refused[i].count);
    }
    json_close(b, '}');
    put_count(b, "failed", op->failed);
    put_count(b, "gone", op->gone);
}

static void render_operation(struct buf *b, const struct operation *op)
{
    json_open(b, '{');
    json_key(b, "id");
    json_string(b, op->id);
    json_key(b, "verb");
    json_string(b, slice_of(ask_kind_text(op->kind)));
    json_key(b, "state");
    json_string(b, slice_of(operation_state_text(op->state)));
    json_key(b, "filter");
    json_raw(b, op->filter_json);
    json_key(b, "arguments");
    json_raw(b, op->arguments_json.ptr ? op->arguments_json : SLICE("{}"));
    json_key(b, "reason");
    json_string(b, op->reason);
    json_key(b, "by");
    json_string(b, op->actor.ptr ? op->actor : SLICE(""));
    put_limits(b, op);
    put_counts(b, op);
    json_key(b, "started_at");
    json_time(b, op->started_at);
    json_key(b, "ended_at");
    json_time(b, op->ended_at);
    json_close(b, '}');
}

/* ---- the store's part ---- */

static enum err fetch(struct store *st, struct operation_call *c, struct operation *ret)
{
    enum err err = st->ops->operations->list(st, &c->query, &c->arena, &c->page, &c->error);

    if (err != ERR_OK)
        return err;
    c->gone = c->page.count == 0;
    return c->gone ? ERR_OK : operation_decode(&c->arena, &c->page.rows[0], ret, &c->error);
}

static enum err put(struct store *st, struct operation_call *c)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct operation_row row;

    operation_encode(&c->op, &doc, &row);
    return st->ops->operations->put(st, &row, &c->audit, &c->error);
}

static enum err change(struct store *st, struct operation_call *c)
{
    enum err err = fetch(st, c, &c->op);

    if (err != ERR_OK || c->gone || c->op.state == c->wanted)
        return err;
    c->ended = c->op.state == OPERATION_DONE;
    if (c->ended)
        return ERR_OK;
    c->op.state = c->wanted;
    c->op.revision++;
    c->op.ended_at = 0;
    return put(st, c);
}

/* On the store's thread, because rows may be large. */
static void put_rows(struct operation_call *c)
{
    struct buf *b = &c->text;

    buf_clear(b);
    json_open(b, '{');
    json_key(b, "operations");
    json_open(b, '[');
    for (size_t i = 0; i < c->page.count; i++) {
        struct operation op;
        if (operation_decode(&c->arena, &c->page.rows[i], &op, &c->error) == ERR_OK)
            render_operation(b, &op);
    }
    json_close(b, ']');
    page_next(b, c->page.more, c->page.more ? c->page.rows[c->page.count - 1].seq : 0);
    json_close(b, '}');
}

static void call_run(struct store_job *j, struct store *st)
{
    struct operation_call *c = CONTAINER_OF(j, struct operation_call, job);

    if (c->listing) {
        c->err = st->ops->operations->list(st, &c->query, &c->arena, &c->page, &c->error);
        if (c->err == ERR_OK)
            put_rows(c);
        j->bytes = c->arena.total + c->text.cap;
    } else if (c->changes) {
        c->err = ERR_CONFLICT; /* the node that executes it writes as well */
        for (int i = 0; i < CHANGES_MAX && c->err == ERR_CONFLICT; i++)
            c->err = change(st, c);
    } else if (c->query.id.ptr) {
        c->err = fetch(st, c, &c->op);
    } else {
        c->err = put(st, c);
    }
}

/* ---- the answer ---- */

static void answer(struct http_request *r, struct operation_call *c)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (c->err != ERR_OK) {
        answer_trouble(r, c->err, c->error.text);
        return;
    }
    if (c->gone) {
        http_problem(r, 404, "no-such-operation", "there is no operation %.*s",
                     SLICE_ARG(c->query.id));
        return;
    }
    if (c->ended) {
        http_problem(r, 409, "conflict", "operation %.*s is done", SLICE_ARG(c->query.id));
        return;
    }
    if (c->listing) {
        answer_json_taken(r, c->status, &c->text);
    } else {
        render_operation(&b, &c->op);
        answer_json(r, c->status, &b, NULL);
    }
}

static void log_change(const struct operation_call *c)
{
    CLEANUP(buf_fini) struct buf reason = {0};

    json_string(&reason, c->audit.reason);
    log_line(LOG_WARN, "event=operation_changed operation=%.*s verb=%s state=%s reason=%s by=%.*s",
             SLICE_ARG(c->op.id), ask_kind_text(c->op.kind), operation_state_text(c->op.state),
             reason.ptr, SLICE_ARG(c->audit.actor));
}

static void call_done(struct store_job *j)
{
    struct operation_call *c = CONTAINER_OF(j, struct operation_call, job);
    struct server *sv = c->x.server;
    struct http_request *r = c->x.http;
    struct arena a = {0};

    if (c->audit.verb.ptr) {
        if (c->err == ERR_OK && !c->gone && !c->ended)
            log_change(c);
        operations_changed(sv);
    }
    if (r) {
        exchange_untie(&c->x);
        answer(r, c);
    }
    sv->load.exchanges--;
    sv->load.reads_open--;
    buf_fini(&c->text);
    a = c->arena;
    arena_fini(&a);
}

static struct operation_call *call_new(struct server *sv, struct http_request *r, struct arena *a)
{
    struct operation_call *c = arena_alloc(a, sizeof *c);

    *c = (struct operation_call){.arena = *a, .status = 200};
    c->job = (struct store_job){.run = call_run, .done = call_done};
    c->audit.at = server_now(sv);
    c->audit.actor = arena_copy(&c->arena, sv->caller);
    c->audit.address = caller_address(sv, r, &c->arena);
    return c;
}

static void call_begin(struct server *sv, struct http_request *r, struct operation_call *c)
{
    exchange_begin(&c->x, sv, r);
    sv->load.exchanges++;
    sv->load.reads_open++;
    if (c->audit.verb.ptr)
        changes_add(sv->changes, c->audit.actor, r->account, &c->job);
    else
        reading_begin(&c->x, c->listing ? READING_MANY : READING_ONE, &c->job);
}

/* ---- requests ---- */

/* "0198..., retry: the payment service is back" */
static struct slice audit_reason(const struct operation *op, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "%.*s, %s: %.*s", SLICE_ARG(op->id), ask_kind_text(op->kind),
            SLICE_ARG(op->reason));
    return arena_copy(a, buf_view(&b));
}

static void start(struct server *sv, struct http_request *r, struct arena *a,
                  const struct operation *op)
{
    struct operation_call *c = call_new(sv, r, a);
    char id[ID_TEXT_SIZE];

    id_give(sv, id);
    c->op = *op;
    c->op.id = arena_copy(&c->arena, slice_of(id));
    c->op.revision = 1;
    c->op.actor = c->audit.actor.ptr ? c->audit.actor : SLICE("");
    c->op.by_admin = access_may(sv->api->bearer, ROLE_ADMIN, SLICE_NONE);
    c->op.started_at = c->audit.at;
    c->audit.verb = SLICE("operation.start");
    c->audit.reason = audit_reason(&c->op, &c->arena);
    c->status = 202;
    call_begin(sv, r, c);
}

void operations_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct arena a = {0};
    struct operation op;
    struct error e = {0};

    if (!j
        || !members_ok(r, j,
                       NAMES("verb", "filter", "arguments", "reason", "dry_run", "limit", "rate"),
                       "an operation"))
        return;
    const struct json *dry = json_get(j, "dry_run");
    if (dry && dry->type != JSON_TRUE && dry->type != JSON_FALSE) {
        http_problem(r, 422, "bad-operation", "dry_run must be true or false");
        return;
    }
    if (operation_read(&a, j, &op, &e) != ERR_OK) {
        http_problem(r, 422, "bad-operation", "%s", e.text);
        arena_fini(&a);
        return;
    }
    if (op.kind == ASK_SIGNAL)
        op.signal.content = signal_content(sv, json_get(json_get(j, "arguments"), "data"), &a);
    if (dry && dry->type == JSON_TRUE) {
        if (reading_has_room(sv, r, READING_MANY)) {
            op.by_admin = access_may(sv->api->bearer, ROLE_ADMIN, SLICE_NONE);
            operation_dry_run(sv, r, &a, &op);
            return;
        }
    } else if (reads_have_room(sv, r)) {
        start(sv, r, &a, &op);
        return;
    }
    arena_fini(&a);
}

void operations_list(struct server *sv, struct http_request *r)
{
    struct operation_query q = {0};
    struct arena a = {0};

    if (!parameters_ok(r, NAMES("limit", "cursor"))
        || !page_query(r, OPERATIONS_USUAL, OPERATIONS_MAX, &q.limit, &q.before_seq)
        || !reading_has_room(sv, r, READING_MANY))
        return;
    struct operation_call *c = call_new(sv, r, &a);
    c->query = q;
    c->listing = true;
    call_begin(sv, r, c);
}

void operation_get(struct server *sv, struct http_request *r)
{
    struct arena a = {0};

    if (!reading_has_room(sv, r, READING_ONE))
        return;
    struct operation_call *c = call_new(sv, r, &a);
    c->query =
        (struct operation_query){.id = arena_copy(&c->arena, http_segment(r, 2)), .limit = 1};
    call_begin(sv, r, c);
}

static void change_state(struct server *sv, struct http_request *r, enum operation_state wanted)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    CLEANUP(buf_fini) struct buf reason = {0};
    struct json *j = body_json(r, &tree);
    struct arena a = {0};

    if (!j || !members_ok(r, j, NAMES("reason"), "a change of an operation")
        || !reads_have_room(sv, r))
        return;
    if (json_get_text(j, "reason").len == 0) {
        http_problem(r, 422, "no-reason", "a reason is required: {\"reason\": \"...\"}");
        return;
    }
    struct operation_call *c = call_new(sv, r, &a);
    c->query =
        (struct operation_query){.id = arena_copy(&c->arena, http_segment(r, 2)), .limit = 1};
    c->changes = true;
    c->wanted = wanted;
    c->audit.verb =
        wanted == OPERATION_STOPPED ? SLICE("operation.stop") : SLICE("operation.continue");
    buf_fmt(&reason, "%.*s: %.*s", SLICE_ARG(c->query.id), SLICE_ARG(json_get_text(j, "reason")));
    c->audit.reason = arena_copy(&c->arena, buf_view(&reason));
    call_begin(sv, r, c);
}

void operation_stop(struct server *sv, struct http_request *r)
{
    change_state(sv, r, OPERATION_STOPPED);
}

void operation_continue(struct server *sv, struct http_request *r)
{
    change_state(sv, r, OPERATION_RUNNING);
}
