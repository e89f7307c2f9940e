/*
 * GET /v1/clock and POST /v1/clock/advance: the time of a server whose time is virtual
 * (node/virtual_time.h). Both are answered once all that the server does by itself is done, the
 * second one when the clock is where it was to go. A server in real time has neither.
 */

#include "api/body.h"
#include "api/handlers.h"
#include "base/when.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/strict.h"
#include "node/virtual_time.h"
#include "json/json.h"

#include <stdlib.h>

#define PATIENCE_MS  INT64_C(10000)
#define PATIENCE_MAX INT64_C(300000)
#define FURTHEST_MS  INT64_C(4102444800000) /* 2100-01-01 */

struct clock_call {
    struct exchange x;
    struct advance advance;
};

static void call_free(struct clock_call *c)
{
    advance_fini(&c->advance);
    free(c);
}

static void gone(struct exchange *x)
{
    struct clock_call *c = CONTAINER_OF(x, struct clock_call, x);

    virtual_take_back(x->server->config.virtual_time, &c->advance);
    call_free(c);
}

static void answer_clock(struct http_request *r, struct server *sv, const struct advance *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_time(&b, "now", server_now(sv));
    json_member_text(&b, "mode", slice_of(virtual_mode_text(sv->config.virtual_time->mode)));
    json_member_time(&b, "next", a->next_at);
    json_key(&b, "held_by");
    json_open(&b, '[');
    if (a->held.len > 0)
        buf_slice(&b, buf_view(&a->held));
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

static void answer_held(struct http_request *r, struct server *sv, const struct advance *a)
{
    CLEANUP(buf_fini) struct buf now = {0};

    time_write(&now, server_now(sv));
    http_problem(r, 409, "clock-held",
                 "the clock stands at %s: %.*s%s; wait for it, or send \"regardless\": true to "
                 "let time pass regardless of it",
                 now.ptr, SLICE_ARG(buf_view(&a->held_text)),
                 a->held_count > 1 ? " (and more)" : "");
}

static void answer_ending(struct http_request *r)
{
    http_problem_with(r, 503, "busy", "Retry-After: 1\r\n", "the server is ending");
}

static void ended(struct advance *a, enum advance_end how)
{
    struct clock_call *c = CONTAINER_OF(a, struct clock_call, advance);
    struct http_request *r = c->x.http;
    struct server *sv = c->x.server;

    exchange_untie(&c->x);
    if (how == ADVANCE_DONE)
        answer_clock(r, sv, a);
    else if (how == ADVANCE_HELD)
        answer_held(r, sv, a);
    else
        answer_ending(r);
    call_free(c);
}

/* NULL: time is real, or the server is ending; it was answered. */
static struct clock_call *call_new(struct server *sv, struct http_request *r)
{
    if (!sv->config.virtual_time) {
        http_problem(
            r, 404, "real-time",
            "the time of this server is real, and nobody can move it; for tests, start one "
            "by: intact serve --virtual-time");
        return NULL;
    }
    if (sv->draining) {
        answer_ending(r);
        return NULL;
    }
    struct clock_call *c = calloc(1, sizeof *c);
    ASSERT(c);
    exchange_begin(&c->x, sv, r);
    c->x.gone = gone;
    c->advance.ended = ended;
    c->advance.patience_ms = PATIENCE_MS;
    list_init(&c->advance.link);
    return c;
}

void clock_get(struct server *sv, struct http_request *r)
{
    struct clock_call *c = call_new(sv, r);

    if (c)
        virtual_advance(sv->config.virtual_time, &c->advance);
}

/* ---- advancing ---- */

static bool bad(struct http_request *r, const char *what)
{
    http_problem(r, 422, "bad-advance", "%s", what);
    return false;
}

static bool read_to(struct http_request *r, const struct json *j, int64_t now, int64_t *ret)
{
    struct slice by = json_get_text(j, "by");
    struct slice to = json_get_text(j, "to");
    int64_t ms = 0;

    if (!json_get(j, "by") == !json_get(j, "to"))
        return bad(r,
                   "expected either \"by\", a duration such as \"2d\", or \"to\", a time such as "
                   "\"2026-03-01T09:00:00Z\"");
    if (json_get(j, "by") && !duration_parse(by, &ms))
        return bad(r, "by: expected a duration such as \"2d\", \"90m\" or \"500ms\"");
    if (json_get(j, "to") && !time_parse(to, ret))
        return bad(r, "to: expected a time such as \"2026-03-01T09:00:00Z\"");
    if (json_get(j, "by"))
        *ret = now + ms;
    if (*ret < now)
        return bad(r, "to: it is later already, and time does not go back");
    if (*ret > FURTHEST_MS)
        return bad(r, "expected a time before 2100");
    return true;
}

static bool read_advance(struct http_request *r, const struct json *j, int64_t now,
                         struct advance *a)
{
    const struct json *patience = json_get(j, "patience");
    const struct json *regardless = json_get(j, "regardless");

    if (!members_ok(r, j, NAMES("by", "to", "regardless", "patience"), "an advance")
        || !read_to(r, j, now, &a->to))
        return false;
    if (regardless && regardless->type != JSON_TRUE && regardless->type != JSON_FALSE)
        return bad(r, "regardless: expected true or false");
    a->regardless = json_get_bool(j, "regardless", false);
    if (patience
        && (patience->type != JSON_STRING || !duration_parse(patience->text, &a->patience_ms)
            || a->patience_ms > PATIENCE_MAX))
        return bad(r, "patience: expected a duration of real time, at most \"5m\"");
    return true;
}

void clock_advance(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct advance wish = {.patience_ms = PATIENCE_MS};
    struct json *j = body_json(r, &tree);

    if (!j || (sv->config.virtual_time && !read_advance(r, j, server_now(sv), &wish)))
        return;
    struct clock_call *c = call_new(sv, r);
    if (!c)
        return;
    c->advance.to = wish.to;
    c->advance.regardless = wish.regardless;
    c->advance.patience_ms = wish.patience_ms;
    virtual_advance(sv->config.virtual_time, &c->advance);
}
