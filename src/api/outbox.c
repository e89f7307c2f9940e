/*
 * GET /v1/outbox, GET /v1/targets, POST /v1/outbox/retry and drop: messages that were not delivered
 * are seen, tried again, and given up.
 */

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/query.h"
#include "background/messages.h"
#include "background/retention.h"
#include "base/log.h"
#include "node/changes.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/readings.h"
#include "node/store_thread.h"
#include "node/strict.h"
#include "store/job.h"
#include "json/json.h"

enum {
    TARGETS_MAX = 1000,
    TARGET_COUNT_MAX = 10000,
    PART = 500, /* messages of one transaction */
    REASON_BYTES = 4096
};

/* ---- listing ---- */

struct outbox_reader {
    struct store_query base;
    struct outbox_query query;
    struct message_page page;
    struct outbox_target *waiting, *dead; /* of a listing of targets */
    size_t waiting_count, dead_count;
};

static void render_message(struct buf *b, const struct message *m)
{
    CLEANUP(buf_fini) struct buf id = {0};

    buf_fmt(&id, "%.*s/%.*s", SLICE_ARG(m->task), SLICE_ARG(m->name));
    json_open(b, '{');
    json_member_text(b, "id", buf_view(&id));
    json_member_text(b, "task", m->task);
    json_member_text(b, "target", m->target);
    json_member_text(b, "state", m->dead ? SLICE("dead") : SLICE("waiting"));
    json_key(b, "tries");
    json_number(b, m->tries);
    json_member_time(b, "created_at", m->created_at);
    json_member_time(b, "retry_at", m->dead ? 0 : m->retry_at);
    json_member_text(b, "error", m->story);
    json_key(b, "event");
    json_raw(b, m->body);
    json_close(b, '}');
}

static void answer_messages(struct http_request *r, struct store_query *it)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct message_page *p = &CONTAINER_OF(it, struct outbox_reader, base)->page;

    json_open(&b, '{');
    json_key(&b, "messages");
    json_open(&b, '[');
    for (size_t i = 0; i < p->count; i++)
        render_message(&b, &p->messages[i]);
    json_close(&b, ']');
    bool more = p->more && p->count > 0;
    page_next(&b, more, more ? p->messages[p->count - 1].seq : 0);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void list_run(struct store_job *j, struct store *store)
{
    struct outbox_reader *o = CONTAINER_OF(j, struct outbox_reader, base.job);
    struct store_query *it = &o->base;

    it->err = store->ops->outbox->list(store, &o->query, &it->arena, &o->page, &it->error);
}

static bool read_state(struct http_request *r, struct outbox_query *q)
{
    struct slice state = http_query(r, "state");

    q->dead = slice_is(state, "dead");
    q->waiting = !q->dead;
    if (!state.ptr || q->dead || slice_is(state, "waiting"))
        return true;
    http_problem(r, 422, "bad-state", "state is \"%.*s\", expected waiting or dead",
                 SLICE_ARG(state));
    return false;
}

static bool read_query(struct http_request *r, struct outbox_query *q)
{
    if (!parameters_ok(r, NAMES("state", "target", "task", "limit", "cursor")) || !read_state(r, q))
        return false;
    q->target = http_query(r, "target");
    q->task = http_query(r, "task");
    if (q->target.ptr && q->task.ptr) {
        http_problem(r, 422, "bad-outbox", "give either target or task");
        return false;
    }
    return page_query(r, PAGE_USUAL, PAGE_MAX, &q->limit, &q->after_seq);
}

void outbox_get(struct server *sv, struct http_request *r)
{
    struct outbox_query q = {0};

    if (!read_query(r, &q) || !reading_has_room(sv, r, READING_MANY))
        return;
    struct store_query *it = store_query_new(sv, r, sizeof(struct outbox_reader), answer_messages);
    struct outbox_reader *o = CONTAINER_OF(it, struct outbox_reader, base);
    o->query = q;
    o->query.target = arena_copy(&it->arena, q.target);
    o->query.task = arena_copy(&it->arena, q.task);
    store_query_start(it, list_run);
}

/* ---- targets ---- */

static void targets_run(struct store_job *j, struct store *store)
{
    struct outbox_reader *o = CONTAINER_OF(j, struct outbox_reader, base.job);
    struct store_query *it = &o->base;
    struct target_query q = {.limit = TARGETS_MAX, .most = TARGET_COUNT_MAX};

    it->err = store->ops->outbox->targets(store, &q, &it->arena, &o->waiting, &o->waiting_count,
                                          &it->error);
    q.dead = true;
    if (it->err == ERR_OK)
        it->err = store->ops->outbox->targets(store, &q, &it->arena, &o->dead, &o->dead_count,
                                              &it->error);
}

/* Waiting and dead messages of a target; either may be NULL. */
static void render_target(struct buf *b, const struct server *sv, struct slice name,
                          const struct outbox_target *w, const struct outbox_target *d)
{
    char story[200] = "";
    int64_t until = messages_paused_until(sv, name, story);

    json_open(b, '{');
    json_member_text(b, "target", name);
    json_key(b, "waiting");
    json_number(b, w ? (int64_t)w->count : 0);
    json_key(b, "dead");
    json_number(b, d ? (int64_t)d->count : 0);
    json_member_time(b, "oldest_at", w ? w->oldest_at : 0);
    json_member_time(b, "paused_until", until);
    json_member_text(b, "error",
                     *story              ? slice_of(story)
                     : w && w->story.ptr ? w->story
                     : d                 ? d->story
                                         : SLICE_NONE);
    json_close(b, '}');
}

static void answer_targets(struct http_request *r, struct store_query *it)
{
    const struct outbox_reader *o = CONTAINER_OF(it, struct outbox_reader, base);
    CLEANUP(buf_fini) struct buf b = {0};
    size_t i = 0;
    size_t k = 0;

    json_open(&b, '{');
    json_key(&b, "targets");
    json_open(&b, '[');
    while (i < o->waiting_count || k < o->dead_count) { /* both are in the order of names */
        int order = i == o->waiting_count ? 1
                    : k == o->dead_count  ? -1
                                          : slice_order(o->waiting[i].target, o->dead[k].target);
        render_target(&b, it->x.server, order > 0 ? o->dead[k].target : o->waiting[i].target,
                      order <= 0 ? &o->waiting[i] : NULL, order >= 0 ? &o->dead[k] : NULL);
        i += order <= 0;
        k += order >= 0;
    }
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

void targets_get(struct server *sv, struct http_request *r)
{
    if (reading_has_room(sv, r, READING_MANY))
        store_query_start(store_query_new(sv, r, sizeof(struct outbox_reader), answer_targets),
                          targets_run);
}

/* ---- verbs ---- */

struct outbox_call {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct outbox_verb verb;
    struct audit audit;
    uint64_t count;
    enum err err;
    struct error error;
};

static void call_end(struct outbox_call *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct server *sv = c->x.server;
    struct http_request *r = c->x.http;
    struct arena a = c->arena;

    if (c->count > 0) {
        log_line(LOG_WARN, "event=messages_%s messages=%" PRIu64 " by=%.*s",
                 c->verb.drop ? "dropped" : "retried", c->count, SLICE_ARG(c->audit.actor));
        messages_changed(sv);
    }
    json_open(&b, '{');
    json_key(&b, "messages");
    json_number(&b, (int64_t)c->count);
    json_close(&b, '}');
    if (r) {
        exchange_untie(&c->x);
        if (c->err == ERR_OK)
            answer_json(r, 200, &b, NULL);
        else
            answer_trouble(r, c->err, c->error.text);
    }
    sv->load.exchanges--;
    sv->load.asks_open--;
    arena_fini(&a);
}

static void part_run(struct store_job *j, struct store *store)
{
    struct outbox_call *c = CONTAINER_OF(j, struct outbox_call, job);

    c->err = store->ops->outbox->apply(store, &c->verb, &c->error);
}

static void part_done(struct store_job *j)
{
    struct outbox_call *c = CONTAINER_OF(j, struct outbox_call, job);
    struct server *sv = c->x.server;

    if (c->err == ERR_OK) {
        c->count += c->verb.count;
        if (c->verb.count > 0)
            c->verb.audit = NULL; /* it is listed, once a call */
    }
    if (c->err != ERR_OK || !c->verb.more || sv->draining)
        call_end(c);
    else
        store_thread_background(sv->thread, &c->job, RETIRE_PATIENCE);
}

static bool refuse(struct http_request *r, const char *what)
{
    http_problem(r, 422, "bad-outbox", "%s", what);
    return false;
}

/* "o-17/12/processed": the task's id has no slash. */
static bool read_message(struct slice id, struct outbox_verb *v)
{
    const char *slash = id.ptr ? memchr(id.ptr, '/', id.len) : NULL;

    if (!slash)
        return false;
    v->task = (struct slice){id.ptr, (size_t)(slash - id.ptr)};
    v->name = (struct slice){slash + 1, id.len - v->task.len - 1};
    return true;
}

static bool read_which(struct http_request *r, const struct json *j, struct outbox_verb *v)
{
    const struct json *message = json_get(j, "message");
    int said = 0;

    v->target = json_get_text(j, "target");
    v->task = json_get_text(j, "task");
    said = (v->target.ptr != NULL) + (v->task.ptr != NULL) + (message != NULL)
           + json_get_bool(j, "all", false);
    if (said != 1)
        return refuse(r, "one of target, task, message, or \"all\": true is required");
    if (message && !read_message(json_get_text(j, "message"), v))
        return refuse(r, "message must be the id of a message, such as \"o-17/12/processed\"");
    return true;
}

static bool read_reason(struct http_request *r, const struct json *j)
{
    struct slice reason = json_get_text(j, "reason");

    return (reason.len > 0 && reason.len <= REASON_BYTES) || refuse(r, "reason must be a text");
}

/* For the audit: of all, or of a target, the words. */
static struct slice reason_of(struct arena *a, const struct json *j, const struct outbox_verb *v)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_slice(&b, json_get_text(j, "reason"));
    if (v->target.ptr)
        buf_fmt(&b, " (messages for %.*s)", SLICE_ARG(v->target));
    else if (v->name.ptr)
        buf_fmt(&b, " (message %.*s)", SLICE_ARG(v->name));
    else if (!v->task.ptr)
        buf_str(&b, " (all messages)");
    return arena_copy(a, buf_view(&b));
}

static void verb_post(struct server *sv, struct http_request *r, bool drop)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct outbox_verb v = {.drop = drop, .limit = PART, .now = server_now(sv)};
    struct arena a = {0};

    if (!j
        || !members_ok(r, j, NAMES("target", "task", "message", "all", "reason"),
                       "a request about messages")
        || !read_which(r, j, &v) || !read_reason(r, j) || !asks_have_room(sv, r, 0))
        return;
    struct outbox_call *c = arena_alloc(&a, sizeof *c);
    *c = (struct outbox_call){.arena = a, .verb = v};
    c->verb.target = arena_copy(&c->arena, v.target);
    c->verb.task = arena_copy(&c->arena, v.task);
    c->verb.name = arena_copy(&c->arena, v.name);
    c->audit = (struct audit){.at = server_now(sv),
                              .actor = arena_copy(&c->arena, sv->caller),
                              .address = caller_address(sv, r, &c->arena),
                              .verb = drop ? SLICE("outbox.drop") : SLICE("outbox.retry"),
                              .task = c->verb.task,
                              .reason = reason_of(&c->arena, j, &v)};
    c->verb.audit = &c->audit;
    c->job = (struct store_job){.run = part_run, .done = part_done};
    exchange_begin(&c->x, sv, r);
    sv->load.exchanges++;
    sv->load.asks_open++;
    changes_add(sv->changes, sv->caller, r->account, &c->job);
}

void outbox_retry_post(struct server *sv, struct http_request *r)
{
    verb_post(sv, r, false);
}

void outbox_drop_post(struct server *sv, struct http_request *r)
{
    verb_post(sv, r, true);
}
