/*
 * POST /v1/tasks/{id}/signals/{name}: a signal, any JSON value, whose Idempotency-Key names it. It
 * is handed to the scheduler like an operator's verb, which stores it with the task or refuses it;
 * 2xx means that it is durable. POST .../{name}/drop drops those that no step took. GET
 * /v1/tasks/{id}/signals (the signals that are kept) is in tasks_read.c.
 *
 * POST /v1/signals/{token} is the same for whoever has a URL of `.task.signals`. As with tokens of
 * attempts, it is verified before the body is read.
 */

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/room.h"
#include "api/signals.h"
#include "api/tasks.h"
#include "base/log.h"
#include "base/names.h"
#include "dispatch/token.h"
#include "node/access.h"
#include "node/content.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/new_id.h"
#include "node/node.h"
#include "node/pressure.h"
#include "node/strict.h"
#include "json/json.h"

enum { DATA_MAX = SIGNAL_DATA_MAX, REASON_MAX = 4096 };

_Static_assert((int)DATA_MAX <= (int)BODY_SMALL, "it is parsed on the loop");

struct signalling {
    void (*answered)(struct ask *a); /* first: found through ask.user */
    struct exchange x;
    struct arena arena;
    const struct grant *grant;
    struct ask ask;
};

/* ---- the answer ---- */

static void answer_signal(struct http_request *r, const struct ask *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "task", a->id);
    json_member_text(&b, "id", a->signal.key);
    json_member_text(&b, "name", a->signal.name);
    json_member_time(&b, "at", a->signal_at);
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

const char *signal_refusal_type(const struct ask *a)
{
    ASSERT(a->outcome == ERR_CONFLICT || a->outcome == ERR_NOT_FOUND);
    return a->outcome == ERR_CONFLICT ? signal_problem(a->refusal) : "no-such-task";
}

static void answer_refusal(struct http_request *r, const struct ask *a)
{
    if (a->outcome == ERR_CONFLICT && a->refusal == OBSTACLE_SIGNAL_UNWANTED)
        http_problem(r, 422, "no-such-signal", "%s", a->story);
    else if (a->outcome == ERR_CONFLICT && a->refusal == OBSTACLE_SIGNAL_FULL)
        http_problem_with(r, 429, "too-many-signals", "", "%s", a->story); /* no Retry-After */
    else
        answer_trouble(r, a->outcome, a->story); /* 409, which no client repeats */
}

static void answer_not_own(const struct signalling *s, struct http_request *r)
{
    caller_log_forbidden(s->x.server, r, s->grant->owner, "it may not signal to tasks of others");
    http_problem(r, 403, "forbidden",
                 "task %.*s was not submitted with this token: a signal to it requires the role "
                 "repair, operate or admin",
                 SLICE_ARG(s->ask.id));
}

static void answer(struct signalling *s, struct http_request *r)
{
    const struct ask *a = &s->ask;

    if (a->outcome == ERR_OK && a->kind == ASK_DROP)
        task_get_when_ended(s->x.server, r, a->id, NULL, 0, 200, SLICE_NONE);
    else if (a->outcome == ERR_OK)
        answer_signal(r, a);
    else if (a->not_own && grant_reads(s->grant, a->not_own_of))
        answer_not_own(s, r);
    else if (a->outcome == ERR_NOT_FOUND)
        task_get_missing(s->x.server, r, a->id, s->grant);
    else
        answer_refusal(r, a);
}

static void signalled(struct ask *a)
{
    struct signalling *s = a->user;
    struct http_request *r = s->x.http;
    struct arena arena = s->arena; /* s lies in it */

    if (a->outcome == ERR_OK && a->kind == ASK_DROP)
        log_line(LOG_WARN, "event=signal_dropped task=%.*s name=%.*s by=%.*s", SLICE_ARG(a->id),
                 SLICE_ARG(a->signal.name), SLICE_ARG(a->actor));
    exchange_untie(&s->x);
    if (r && http_is_alive(r))
        answer(s, r);
    arena_fini(&arena);
}

/* ---- the request ---- */

static struct signalling *signalling_new(struct server *sv, struct http_request *r,
                                         enum ask_kind kind, struct slice task, struct slice name)
{
    struct arena a = {0};
    struct signalling *s = arena_alloc(&a, sizeof *s);

    s->arena = a;
    s->answered = signalled;
    s->grant = grant_new(sv->api->bearer, &s->arena);
    s->ask = (struct ask){
        .kind = kind,
        .user = s,
        .id = arena_copy(&s->arena, task),
        .signal = {.name = arena_copy(&s->arena, name)},
        .actor = arena_copy(&s->arena, sv->caller),
        .address = caller_address(sv, r, &s->arena),
        .owner = s->grant ? s->grant->owner : SLICE_NONE,
        .own_only = s->grant && !s->grant->repairs,
    };
    return s;
}

static bool path_ok(struct http_request *r)
{
    if (http_segment(r, 2).ptr && http_segment(r, 4).ptr)
        return true;
    http_problem(r, 404, "no-such-task", "the id or the name in the path is not well encoded");
    return false;
}

/* Without a key, each request is a signal of its own. */
bool signal_key_of(struct server *sv, struct http_request *r, struct arena *a, struct slice *ret)
{
    struct slice key = http_header(r, "idempotency-key");
    char id[ID_TEXT_SIZE];

    if (!key.ptr) {
        id_give(sv, id);
        *ret = arena_copy(a, slice_of(id));
        return true;
    }
    if (!is_signal_key(key) || http_header_count(r, "idempotency-key") != 1) {
        http_problem(r, 422, "bad-key",
                     "Idempotency-Key: expected 1 to %d printable characters without spaces",
                     SIGNAL_KEY_MAX);
        return false;
    }
    *ret = arena_copy(a, key);
    return true;
}

struct slice signal_content(struct server *sv, const struct json *data, struct arena *a)
{
    static const struct json nothing = {.type = JSON_NULL, .raw = {"null", 4}};

    return content_of_value(sv->contents, data ? data : &nothing, a);
}

static bool value_of(struct server *sv, struct http_request *r, struct arena *tree,
                     struct json **ret)
{
    struct parsed_body p = {0};
    struct slice text = r->body.len > 0 ? r->body : SLICE("null");

    body_parse(tree, text, (unsigned)sv->limits.json_depth, trees_left(sv), &p);
    if (p.err == ERR_TOO_BIG)
        http_problem(r, 503, "busy", "there is not enough memory at present for this value");
    else if (p.err != ERR_OK)
        http_problem(r, 400, "not-json", "the body is not JSON: %s", p.story.ptr);
    buf_fini(&p.story);
    *ret = p.json;
    return p.err == ERR_OK;
}

/* Room, type and size of the body. False: answered. */
static bool body_ok(struct server *sv, struct http_request *r)
{
    if (r->body.len > DATA_MAX) {
        http_problem(r, 413, "too-big", "the signal has %zu bytes, expected at most %d",
                     r->body.len, DATA_MAX);
        return false;
    }
    if (r->body.len > 0 && !content_type_is(r, "application/json")) {
        answer_content_type(r, "application/json");
        return false;
    }
    return content_encoding_ok(r) && asks_have_room(sv, r, r->body.len);
}

static void send_signal(struct server *sv, struct http_request *r, struct signalling *s,
                        const struct json *j)
{
    if (!signal_key_of(sv, r, &s->arena, &s->ask.signal.key)) {
        struct arena a = s->arena; /* s lies in it */
        arena_fini(&a);
        return;
    }
    s->ask.signal.data.json = arena_copy(&s->arena, j->raw);
    s->ask.signal.content = signal_content(sv, j, &s->arena);
    exchange_begin(&s->x, sv, r);
    server_ask(sv, &s->ask);
}

void task_signal_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = NULL;

    if (!path_ok(r) || !body_ok(sv, r) || !value_of(sv, r, &tree, &j))
        return;
    send_signal(sv, r, signalling_new(sv, r, ASK_SIGNAL, http_segment(r, 2), http_segment(r, 4)),
                j);
}

/* Without "id" all of that name are dropped, so an id that is none must not be read as that. */
static bool drop_ok(struct http_request *r, const struct json *j)
{
    struct slice reason = json_get_text(j, "reason");

    if (json_get(j, "id") && json_get_text(j, "id").len == 0)
        http_problem(r, 422, "bad-id", "id must be a text: the key of a signal");
    else if (reason.len == 0)
        http_problem(r, 422, "no-reason", "a reason is required: {\"reason\": \"...\"}");
    else if (reason.len > REASON_MAX)
        http_problem(r, 422, "bad-reason", "the reason has %zu bytes, expected at most %d",
                     reason.len, REASON_MAX);
    else
        return true;
    return false;
}

void task_signal_drop(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = path_ok(r) ? body_json(r, &tree) : NULL;

    if (!j || !members_ok(r, j, NAMES("id", "reason"), "a drop") || !drop_ok(r, j)
        || !asks_have_room(sv, r, 0))
        return;
    struct signalling *s = signalling_new(sv, r, ASK_DROP, http_segment(r, 2), http_segment(r, 4));
    s->ask.signal.key = arena_copy(&s->arena, json_get_text(j, "id"));
    s->ask.reason = arena_copy(&s->arena, json_get_text(j, "reason"));
    exchange_begin(&s->x, sv, r);
    server_ask(sv, &s->ask);
}

/* ---- by a URL of .task.signals ---- */

static void answer_unknown_url(struct http_request *r)
{
    http_problem(r, 404, "unknown-signal-url",
                 "this URL was not made here: it is good as a whole only, for one task and name");
}

bool signal_url_head(struct server *sv, struct http_request *r)
{
    struct signal_token token;

    if (!signal_token_check(sv->key, http_segment(r, 2), &token)) {
        answer_unknown_url(r);
        return false;
    }
    if (http_limit_body(r, DATA_MAX, true))
        return true;
    http_problem(r, 413, "too-big", "a signal has at most %d bytes", DATA_MAX);
    return false;
}

void signal_url_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct signal_token token;
    struct json *j = NULL;

    if (!signal_token_check(sv->key, http_segment(r, 2), &token)) {
        answer_unknown_url(r);
        return;
    }
    if (!body_ok(sv, r) || !value_of(sv, r, &tree, &j))
        return;
    struct signalling *s = signalling_new(sv, r, ASK_SIGNAL, token.task, token.name);
    s->ask.actor = SLICE("signal-url");
    send_signal(sv, r, s, j);
}
