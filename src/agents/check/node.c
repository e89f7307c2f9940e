/* A simulated node of the server, for one scenario: its routes, parked calls, requests and
 * outcomes, and the faults that the scenario wants. Runs on the loop of stage.c, over the HTTP
 * server of src/http; call.c reads what agents send. */

#include <stdio.h>

#include "agents/check/stage.h"
#include "base/clock.h"
#include "base/test_port.h"
#include "base/when.h"

#define INSTALLATION_HEADER "Intact-Installation"

enum { DECADE_MS_FACTOR = 3653 };

/* ---- contents of answers ---- */

static int64_t wall_now(const struct stage *s)
{
    int64_t now = clock_wall_ms();

    return s->is_old_clock ? now - DECADE_MS_FACTOR * MS_PER_D : now;
}

static void write_forward(struct buf *b, const struct asked *a)
{
    static const char undo[] = "/undo";
    const struct asked *of = a->of;
    struct slice key = slice_of(a->key);

    key.len -= strlen(undo); /* the suffix is present */
    json_key(b, "forward");
    json_open(b, '{');
    json_member_text(b, "idempotency_key", key);
    json_member_raw(b, "input", slice_of(a->input));
    json_member_raw(b, "output", of && of->is_settled ? asked_output(of) : SLICE_NONE);
    json_member_number(b, "attempts", of ? of->attempt : 1);
    json_member_bool(b, "in_doubt", !of || !of->is_settled);
    json_close(b, '}');
}

static void write_nonsense(struct buf *b)
{
    json_member_raw(b, "x_check", SLICE("{\"for\":[\"later\",{\"versions\":null}],\"n\":1e3}"));
    json_member_raw(b, "x-check-\\u00fc", SLICE("true"));
}

static void write_request(struct buf *b, const struct stage *s, const struct asked *a)
{
    json_open(b, '{');
    if (s->is_ornate)
        write_nonsense(b);
    json_member_text(b, "token", slice_of(a->token));
    json_member_text(b, "task", slice_of(a->task));
    json_member_text(b, "step", slice_of(a->step));
    json_member_text(b, "action", slice_of(a->action));
    json_member_text(b, "direction", slice_of(a->direction));
    json_member_number(b, "attempt", a->attempt);
    json_member_text(b, "idempotency_key", slice_of(a->key));
    json_member_raw(b, "input", slice_of(a->input));
    json_member_time(b, "complete_by", wall_now(s) + a->left_ms);
    json_member_number(b, "time_left_ms", a->left_ms);
    json_member_text(b, "traceparent",
                     SLICE("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    if (strcmp(a->direction, "undo") == 0)
        write_forward(b, a);
    if (a->more)
        buf_fmt(b, ",%s", a->more);
    json_close(b, '}');
}

/* Not with the answer to its own result. */
static bool is_to_give(const struct call *c, const struct asked *a)
{
    return a->to_give > 0 && !a->is_old && (!a->node || a->node == c->node) && a->result_by != c;
}

static bool has_work(const struct call *c)
{
    LIST_FOREACH (l, after, &c->stage->asked) {
        if (is_to_give(c, CONTAINER_OF(l, struct asked, link)))
            return c->fetches;
    }
    return false;
}

/* At most as many as it asked for. */
static void write_requests(struct buf *b, struct call *c)
{
    int64_t room = c->max;

    json_key(b, "requests");
    json_open(b, '[');
    LIST_FOREACH (l, after, &c->stage->asked) {
        struct asked *a = CONTAINER_OF(l, struct asked, link);
        if (room == 0 || !is_to_give(c, a))
            continue;
        write_request(b, c->stage, a);
        a->to_give--;
        a->given++;
        a->by = c;
        a->missed = 0;
        a->missed_by = NULL;
        room--;
    }
    json_close(b, ']');
}

static void write_outcome(struct buf *b, struct call *c, const struct json *result)
{
    struct asked *a = stage_asked(c->stage, json_get_text(result, "token"));

    json_open(b, '{');
    json_member_text(b, "token", json_get_text(result, "token"));
    json_member_text(b, "status",
                     slice_of(!a                           ? "unknown"
                              : a->is_old || a->is_settled ? "repeated"
                                                           : a->outcome));
    if (c->stage->is_ornate)
        write_nonsense(b);
    json_close(b, '}');
    if (!a || a->is_settled)
        return;
    a->is_settled = true;
    a->settled_by = c;
    a->to_give = 0;
}

static void write_outcomes(struct buf *b, struct call *c)
{
    const struct json *results = json_get(c->body, "results");

    json_key(b, "outcomes");
    json_open(b, '[');
    for (const struct json *j = results ? results->child : NULL; j; j = j->next)
        write_outcome(b, c, j);
    json_close(b, ']');
}

static void write_stops(struct buf *b, const struct call *c)
{
    const struct stage *s = c->stage;

    json_key(b, "stop");
    json_open(b, '[');
    for (unsigned i = 0; i < s->stop_count && (c->kind == CALL_BEATS || !s->stops_in_beats); i++)
        json_string(b, slice_of(s->stops[i]));
    json_close(b, ']');
}

static bool is_to_stop(const struct call *c)
{
    return c->stage->stop_count > 0 && !c->stage->stops_in_beats && c->kind == CALL_WORK;
}

/* ---- answers ---- */

static void ended(struct call *c)
{
    c->ended_at = clock_boot_ms();
}

static void send_answer(struct call *c, const struct buf *b)
{
    struct http_request *r = c->http;
    struct slice all = buf_view(b);

    ended(c);
    if (!c->stage->in_pieces) {
        http_answer(r, 200, "application/json", all, NULL);
        return;
    }
    http_stream_begin(r, 200, "application/json", NULL);
    for (size_t at = 0, len = 1; at < all.len; at += len, len = 7) {
        len = all.len - at < len ? all.len - at : len;
        (void)http_stream_write(r, (struct slice){all.ptr + at, len});
    }
    http_stream_end(r);
}

static void answer_work(struct call *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct stage *s = c->stage;

    json_open(&b, '{');
    json_member_time(&b, "now", wall_now(s));
    json_member_number(&b, "waited_ms",
                       s->delay_ms && !s->tells_delay ? 0 : clock_boot_ms() - c->came_at);
    if (s->is_ornate)
        write_nonsense(&b);
    write_requests(&b, c);
    write_outcomes(&b, c);
    write_stops(&b, c);
    json_close(&b, '}');
    send_answer(c, &b);
}

static void answer_beats(struct call *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct json *beats = json_get(c->body, "beats");

    json_open(&b, '{');
    json_member_time(&b, "now", wall_now(c->stage));
    json_key(&b, "outcomes");
    json_open(&b, '[');
    for (const struct json *j = beats ? beats->child : NULL; j; j = j->next) {
        struct asked *a = stage_asked(c->stage, json_get_text(j, "token"));
        json_open(&b, '{');
        json_member_text(&b, "token", json_get_text(j, "token"));
        json_member_text(&b, "status",
                         slice_of(!a              ? "unknown"
                                  : a->is_settled ? "late"
                                                  : "accepted"));
        json_close(&b, '}');
        if (a)
            a->beats_taken++;
    }
    json_close(&b, ']');
    write_stops(&b, c);
    json_close(&b, '}');
    send_answer(c, &b);
}

static void write_node(struct buf *b, const struct node *n)
{
    json_open(b, '{');
    json_member_text(b, "node", slice_of(n->name));
    json_member_number(b, "boot", 1);
    json_member_text(b, "version", SLICE("check"));
    json_member_text(b, "url", slice_of(n->url));
    json_member_raw(b, "roles", SLICE("[\"scheduler\",\"supervisor\"]"));
    json_member_bool(b, "alive", n->http != NULL);
    json_member_bool(b, "leads", n == &n->stage->nodes[0]);
    json_member_bool(b, "draining", false);
    json_close(b, '}');
}

static void answer_nodes(struct call *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct stage *s = c->stage;

    s->knows_nodes = true;
    json_open(&b, '{');
    json_member_text(&b, "self", slice_of(c->node->name));
    json_key(&b, "nodes");
    json_open(&b, '[');
    for (unsigned i = 0; i < s->node_count; i++)
        write_node(&b, &s->nodes[i]);
    json_close(&b, ']');
    json_close(&b, '}');
    send_answer(c, &b);
}

/* ---- faults ---- */

static bool is_hit(const struct fault *f, const struct call *c)
{
    const struct json *results = json_get(c->body, "results");

    if (f->count == 0)
        return false;
    switch (f->on) {
    case FAULT_ON_RESULTS:
        return c->kind == CALL_WORK && results && results->count > 0;
    case FAULT_ON_WORK:
        return c->kind == CALL_WORK;
    case FAULT_ON_BEATS:
        return c->kind == CALL_BEATS;
    case FAULT_ON_REQUESTS:
        return c->kind == CALL_WORK && has_work(c);
    }
    UNREACHABLE();
}

static void answer_status(struct call *c, const struct fault *f)
{
    char header[48] = "";

    if (f->retry_after_s)
        (void)snprintf(header, sizeof header, "Retry-After: %d\r\n", f->retry_after_s);
    http_problem_with(c->http, f->status, "check", header, "as the scenario \"%s\" has it",
                      c->stage->scenario->name);
}

static void answer_truncated(struct call *c)
{
    static const char some[] =
        "{\"now\":\"2026-01-31T10:00:00.000Z\",\"waited_ms\":0,\"requests\":[";

    http_stream_begin_sized(c->http, 200, "application/json", NULL, 4000);
    (void)http_stream_write(c->http, slice_of(some));
    http_stream_end(c->http);
}

static void answer_mute(struct call *c)
{
    static const char nothing[] = "{\"now\":\"2026-01-31T10:00:00.000Z\",\"waited_ms\":0,"
                                  "\"requests\":[],\"outcomes\":[],\"stop\":[]}";

    http_answer(c->http, 200, "application/json", slice_of(nothing), NULL);
}

/* True: the call was answered with the scenario's fault. */
static bool answer_faulty(struct call *c)
{
    struct stage *s = c->stage;
    struct fault *f = NULL;

    for (unsigned i = 0; i < s->fault_count && !f; i++)
        f = is_hit(&s->faults[i], c) ? &s->faults[i] : NULL;
    if (!f)
        return false;
    f->count--;
    c->is_faulted = true;
    ended(c);
    switch (f->kind) {
    case FAULT_BREAK:
        http_break(c->http);
        return true;
    case FAULT_STATUS:
        answer_status(c, f);
        return true;
    case FAULT_GARBAGE:
        http_answer(c->http, 200, "application/json", SLICE("<html>it works</html>"), NULL);
        return true;
    case FAULT_TRUNCATED:
        answer_truncated(c);
        return true;
    case FAULT_MUTE:
        answer_mute(c);
        return true;
    }
    UNREACHABLE();
}

/* The result that a scenario declares unreadable. */
static bool is_refused(const struct call *c)
{
    const struct json *results = json_get(c->body, "results");

    for (const struct json *j = results ? results->child : NULL; j; j = j->next) {
        const struct asked *a = stage_asked(c->stage, json_get_text(j, "token"));
        if (a && a->refuse_output && json_get(j, "output"))
            return true;
    }
    return false;
}

/* ---- parking ---- */

/* A failing server parks no calls. */
static bool is_in_trouble(const struct stage *s)
{
    for (unsigned i = 0; i < s->fault_count; i++)
        if (s->faults[i].on == FAULT_ON_WORK && s->faults[i].count > 0)
            return true;
    return false;
}

static bool is_due(const struct call *c, bool wake)
{
    int64_t wait = min_i64(c->wait_ms, c->stage->park_ms);
    int64_t since = clock_boot_ms() - c->came_at;
    const struct json *results = json_get(c->body, "results");

    if (c->stage->delay_ms && has_work(c))
        return since >= c->stage->delay_ms;
    return is_in_trouble(c->stage) || has_work(c) || (results && results->count > 0)
           || since >= wait || (wake && is_to_stop(c));
}

static void tend(struct call *c, bool wake)
{
    if (!is_due(c, wake))
        return;
    if (!answer_faulty(c))
        answer_work(c);
}

void node_tend(struct stage *s, bool wake)
{
    LIST_FOREACH (l, after, &s->calls) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->http && c->kind == CALL_WORK && !c->ended_at)
            tend(c, wake);
    }
}

/* Ends parked calls of the same instance. */
static void call_home(const struct call *by)
{
    struct stage *s = by->stage;

    LIST_FOREACH (l, after, &s->calls) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (c != by && c->http && c->kind == CALL_WORK && !c->ended_at && c->node == by->node)
            answer_work(c);
    }
}

/* ---- calls ---- */

static struct call *begin_call(struct node *n, struct http_request *r, enum call_kind kind)
{
    struct stage *s = n->stage;
    struct call *c = arena_alloc(&s->arena, sizeof *c);

    *c = (struct call){.stage = s,
                       .node = n,
                       .http = r,
                       .kind = kind,
                       .number = ++s->call_serial,
                       .is_named = http_header(r, INSTALLATION_HEADER).ptr != NULL,
                       .is_at_other = strcmp(s->installation, INSTALLATION_OTHER) == 0,
                       .came_at = clock_boot_ms()};
    r->user = c;
    list_push(&s->calls, &c->link);
    return c;
}

static void on_work(struct call *c)
{
    struct stage *s = c->stage;

    if (!call_read_work(c))
        return;
    call_note(c);
    if (is_refused(c)) {
        ended(c);
        http_problem(c->http, 422, "bad-work", "results: an output that cannot be stored");
        return;
    }
    if (json_get_bool(c->body, "instead", false))
        call_home(c);
    if (s->refuses_bearer) {
        ended(c);
        http_problem(c->http, 401, "no-access", "the token has expired");
        return;
    }
    tend(c, false);
}

static void on_beats(struct call *c)
{
    if (call_read_beats(c) && !answer_faulty(c))
        answer_beats(c);
}

/* The token of an attempt is sufficient to end it. */
static void on_attempt(struct call *c, struct slice token)
{
    struct json *result = NULL;
    struct asked *a = stage_asked(c->stage, token);
    struct slice body = arena_copy(&c->stage->arena, c->http->body);

    ended(c);
    if (!a)
        http_problem(c->http, 404, "unknown-attempt", "there is no attempt of that token");
    else if (json_parse(&c->stage->arena, body, &result, NULL) != ERR_OK)
        http_problem(c->http, 400, "bad-json", "the body is no JSON");
    else
        http_answer(c->http, 200, "application/json", SLICE("{\"status\":\"accepted\"}"), NULL);
    if (a && result)
        a->ended_elsewhere = true;
}

static bool is_for_agent(struct stage *s, struct http_request *r)
{
    struct slice name = http_segment(r, 2);

    if (!s->agent[0] && name.len > 0)
        (void)snprintf(s->agent, sizeof s->agent, "%.*s", SLICE_ARG(slice_cut(name, 128)));
    if (slice_is(name, s->agent))
        return true;
    s->call_serial++;
    stage_breach(s, "form", "calls for one agent, the name that was told",
                 "a call for the agent \"%.*s\", and not \"%s\"", SLICE_ARG(slice_cut(name, 200)),
                 s->agent);
    http_problem(r, 403, "forbidden", "this token is for the agent %s", s->agent);
    return false;
}

static void check_bearer(struct stage *s, struct http_request *r)
{
    struct slice told = http_header(r, "Authorization");
    char expected[96];

    (void)snprintf(expected, sizeof expected, "Bearer %s", s->bearer);
    if (s->settings->command && !slice_is(told, expected))
        stage_breach(s, "bearer",
                     "Authorization: Bearer, and the value of INTACT_TOKEN, in each call",
                     "a call to %.*s with %s", SLICE_ARG(slice_cut(r->path, 200)),
                     told.ptr ? "another one" : "none");
}

static void check_type(struct stage *s, struct http_request *r)
{
    struct slice type = http_header(r, "Content-Type");

    if (type.len < 16 || !http_slice_is_like((struct slice){type.ptr, 16}, "application/json"))
        stage_breach(s, "form", "Content-Type: application/json",
                     "a call to %.*s with %.*s; a server answers it with 415",
                     SLICE_ARG(slice_cut(r->path, 200)),
                     SLICE_ARG(type.ptr ? slice_cut(type, 100) : SLICE("none")));
}

static void on_post(struct node *n, struct http_request *r)
{
    struct slice last = http_segment(r, 3);
    bool is_agents = slice_is(http_segment(r, 0), "v1") && slice_is(http_segment(r, 1), "agents")
                     && http_segment_count(r) == 4;

    check_type(n->stage, r);
    if (slice_is(http_segment(r, 0), "v1") && slice_is(http_segment(r, 1), "attempts")
        && http_segment_count(r) == 3)
        on_attempt(begin_call(n, r, CALL_ATTEMPT), http_segment(r, 2));
    else if (!is_agents || (!slice_is(last, "work") && !slice_is(last, "heartbeats")))
        http_problem(r, 404, "no-route", "there is nothing here");
    else if (!is_for_agent(n->stage, r))
        return;
    else if (slice_is(last, "work"))
        on_work(begin_call(n, r, CALL_WORK));
    else
        on_beats(begin_call(n, r, CALL_BEATS));
}

/* Refused before anything is done, like a real server. */
static bool is_misdirected(struct stage *s, struct http_request *r)
{
    struct slice wanted = http_header(r, INSTALLATION_HEADER);

    if (!wanted.ptr || http_slice_is_like(wanted, s->installation))
        return false;
    s->call_serial++;
    s->misdirected++;
    if (strcmp(s->installation, INSTALLATION_OWN) == 0)
        stage_breach(s, "form", INSTALLATION_HEADER " as the answers say it, or none",
                     "a call to %.*s with %.*s", SLICE_ARG(slice_cut(r->path, 200)),
                     SLICE_ARG(slice_cut(wanted, 100)));
    http_problem(r, 421, "another-installation",
                 "the request is for the installation %.*s, and this server is a node of the "
                 "installation %s; use the addresses of one installation only",
                 SLICE_ARG(slice_cut(wanted, 64)), s->installation);
    return true;
}

static void on_request(void *arg, struct http_request *r)
{
    struct node *n = arg;

    if (is_misdirected(n->stage, r))
        return;
    if (slice_is(r->path, "/healthz") || slice_is(r->path, "/readyz")) {
        http_answer(r, 200, "application/json", SLICE("{}"), NULL);
        return;
    }
    check_bearer(n->stage, r);
    if (slice_is(r->method, "POST"))
        on_post(n, r);
    else if (slice_is(r->method, "GET") && slice_is(r->path, "/v1/nodes"))
        answer_nodes(begin_call(n, r, CALL_NODES));
    else
        http_problem(r, 404, "no-route", "there is nothing here");
}

static void on_done(void *arg, struct http_request *r, bool sent)
{
    struct call *c = r->user;

    (void)arg;
    if (!c)
        return;
    c->http = NULL;
    if (!c->ended_at) {
        c->was_left = !sent;
        ended(c);
    }
}

static void on_refused(void *arg, int status, const char *reason)
{
    struct node *n = arg;

    n->stage->refused_count++;
    (void)snprintf(n->stage->refused, sizeof n->stage->refused, "%d, %s", status, reason);
}

enum err node_open(struct node *n, struct error *e)
{
    const struct http_handler handler = {.arg = n,
                                         .handle = on_request,
                                         .done = on_done,
                                         .refused = on_refused};
    char address[64];

    ASSERT(!n->http);
    if (n->port == 0 && n->stage->settings->command)
        n->port = test_port(); /* some scenarios stop and restart it */
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", n->port);
    const char *listen = n == &n->stage->nodes[0] ? n->stage->settings->listen : NULL;
    enum err err =
        http_listen(&n->stage->loop, listen ? listen : address, NULL, &handler, &n->http, e);
    if (err != ERR_OK)
        return err;
    (void)snprintf(n->stage->installation_line, sizeof n->stage->installation_line, "%s: %s\r\n",
                   INSTALLATION_HEADER, n->stage->installation);
    http_say_always(n->http, slice_of(n->stage->installation_line));
    n->port = http_port(n->http);
    (void)snprintf(n->url, sizeof n->url, "http://127.0.0.1:%d", n->port);
    return ERR_OK;
}

void node_close(struct node *n)
{
    if (n->http)
        http_close(n->http);
    n->http = NULL;
}
