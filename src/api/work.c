/*
 * POST /v1/agents/{agent}/work: the call of an agent, which brings results and asks for attempts.
 * Reads it, hands it to the scheduler, and answers when there is work or the wait is over.
 */

#include "api/work.h"

#include <stdarg.h>
#include <stdio.h>

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "base/names.h"
#include "base/when.h"
#include "dispatch/dispatch.h"
#include "dispatch/token.h"
#include "node/door.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/quota.h"
#include "node/strict.h"
#include "json/json.h"

/* The exchange of a work call lies in the call's own memory. */
struct work_exchange {
    struct exchange x;
    struct work *work;
    struct slice *tokens; /* of the results, as they came ... */
    struct slice *faults; /* ... and what is wrong with each, or NONE */
};

static void work_gone(struct exchange *x)
{
    struct work_exchange *wx = CONTAINER_OF(x, struct work_exchange, x);

    scheduler_work_gone(x->server->scheduler, wx->work);
}

static bool delay_of(const struct json *j, const char *key, int64_t *ret_ms)
{
    const struct json *v = json_get(j, key);

    *ret_ms = 0;
    return !v || v->type == JSON_NULL
           || (v->type == JSON_STRING && duration_parse(v->text, ret_ms));
}

/* Texts of errors are kept in the task's document: long ones are cut, between characters. */
enum { ERROR_CODE_MAX = 128, ERROR_MESSAGE_MAX = 4096 };

static struct slice cut(struct slice s, size_t max)
{
    if (s.len <= max)
        return s;
    while (max > 0 && ((unsigned char)s.ptr[max] & 0xc0) == 0x80)
        max--;
    return (struct slice){s.ptr, max};
}

enum { TRIES_MAX = 1000000 };

static void fault(struct arena *a, struct slice *ret, const char *text, ...) PRINTF(3, 4);

static void fault(struct arena *a, struct slice *ret, const char *text, ...)
{
    char story[160];
    va_list args;

    va_start(args, text);
    (void)vsnprintf(story, sizeof story, text, args);
    va_end(args);
    *ret = arena_copy(a, slice_of(story));
}

/* Nothing else of a result is worth less because of a broken one of these: it is left out. */
static void read_tries(struct arena *a, const struct json *j, struct work_result *r,
                       struct slice *ret_fault)
{
    const struct json *tries = json_get(j, "tries");
    int64_t v = 0;

    if (!tries || tries->type == JSON_NULL)
        return;
    if (json_int(tries, &v) && v >= 1 && v <= TRIES_MAX)
        r->tries = (uint32_t)v;
    else
        fault(a, ret_fault, "tries is %.*s, expected a number from 1 to %d: left out",
              SLICE_ARG(cut(tries->raw, 40)), TRIES_MAX);
}

static void read_resume(struct arena *a, const struct json *error, struct work_result *r,
                        struct slice *ret_fault)
{
    struct slice raw = json_get_raw(error, "resume");

    if (!raw.ptr || slice_is(raw, "null"))
        return;
    if (raw.len > RESUME_MAX)
        fault(a, ret_fault, "resume is %zu bytes, expected at most %d: left out", raw.len,
              RESUME_MAX);
    else
        r->resume = arena_copy(a, raw);
}

static void read_error(struct arena *a, const struct json *error, struct work_result *r)
{
    struct slice code = json_get_text(error, "code");
    struct slice message = json_get_text(error, "message");
    struct slice effect = json_get_text(error, "effect");

    r->error.code = code.len ? arena_copy(a, cut(code, ERROR_CODE_MAX)) : SLICE("error");
    r->error.message = arena_copy(a, message.ptr ? cut(message, ERROR_MESSAGE_MAX) : SLICE(""));
    r->retryable = json_get_bool(error, "retryable", true);
    r->effect = r->retryable ? EFFECT_UNKNOWN : EFFECT_NONE;
    if (slice_is(effect, "none"))
        r->effect = EFFECT_NONE;
    else if (slice_is(effect, "unknown"))
        r->effect = EFFECT_UNKNOWN;
    (void)delay_of(error, "retry_after", &r->retry_after_ms); /* a wish; a broken one is none */
}

/* Which of the three a result is must not be guessed. */
static bool read_which(struct arena *a, const struct json *j, struct work_result *r,
                       struct slice *ret_fault)
{
    const struct json *error = json_get(j, "error");
    const struct json *elsewhere = json_get(j, "elsewhere");

    if (error && error->type != JSON_NULL && error->type != JSON_OBJECT) {
        fault(a, ret_fault, "error is %s, expected an object", json_type_text(error->type));
        return false;
    }
    if (elsewhere && elsewhere->type != JSON_TRUE && elsewhere->type != JSON_FALSE
        && elsewhere->type != JSON_NULL) {
        fault(a, ret_fault, "elsewhere is %s, expected true", json_type_text(elsewhere->type));
        return false;
    }
    r->elsewhere = elsewhere && elsewhere->type == JSON_TRUE;
    r->failed = error && error->type == JSON_OBJECT;
    if (r->elsewhere && (r->failed || json_get(j, "output"))) {
        fault(a, ret_fault,
              "elsewhere: true means that the result comes later, but this has a result");
        return false;
    }
    return true;
}

bool result_read(struct arena *a, const struct json *j, struct work_result *r,
                 struct slice *ret_fault)
{
    *ret_fault = SLICE_NONE;
    if (!read_which(a, j, r, ret_fault))
        return false;
    read_tries(a, j, r, ret_fault);
    if (r->failed)
        read_error(a, json_get(j, "error"), r);
    if (r->failed)
        read_resume(a, json_get(j, "error"), r, ret_fault);
    else if (!r->elsewhere)
        r->output = arena_copy(a, json_get_raw(j, "output"));
    return true;
}

/* One bad result fails only itself: without a token its status is "unknown". An error that is no
 * object must not pass for success, so such a result loses its token. */
static void read_result(struct arena *a, const struct json *j, uint32_t depth,
                        struct work_result *r, struct slice *ret_fault)
{
    if (!json_is_within(j, depth))
        fault(a, ret_fault, "the result is nested deeper than %" PRIu32 " levels", depth);
    else if (result_read(a, j, r, ret_fault))
        r->token = arena_copy(a, json_get_text(j, "token"));
}

static const struct json *array_of(struct http_request *r, const struct json *j, const char *key,
                                   bool *bad)
{
    const struct json *list = json_get(j, key);

    if (!list || list->type == JSON_NULL)
        return NULL;
    *bad = list->type != JSON_ARRAY || list->count > WORK_MAX;
    if (list->type != JSON_ARRAY)
        http_problem(r, 422, "bad-work", "%s is %s, expected an array of at most %d", key,
                     json_type_text(list->type), WORK_MAX);
    else if (*bad)
        http_problem(r, 422, "bad-work", "%s has %" PRIu32 " entries, expected at most %d", key,
                     list->count, WORK_MAX);
    return list;
}

static bool read_lists(struct http_request *r, const struct json *j, struct work *w)
{
    uint32_t depth = body_entry_depth(http_handler_arg(r));
    struct work_exchange *wx = w->user;
    bool bad = false;
    const struct json *results = array_of(r, j, "results", &bad);
    const struct json *holding = bad ? NULL : array_of(r, j, "holding", &bad);

    if (bad)
        return false;
    w->says_holding = holding != NULL;
    if (holding) {
        w->holding = arena_alloc(&w->arena, (holding->count + 1) * sizeof *w->holding);
        for (const struct json *h = holding->child; h; h = h->next)
            if (h->type == JSON_STRING)
                w->holding[w->holding_count++] = arena_copy(&w->arena, h->text);
    }
    if (results) {
        w->results = arena_alloc(&w->arena, (results->count + 1) * sizeof *w->results);
        wx->tokens = arena_alloc(&w->arena, (results->count + 1) * sizeof *wx->tokens);
        wx->faults = arena_alloc(&w->arena, (results->count + 1) * sizeof *wx->faults);
        for (const struct json *one = results->child; one; one = one->next) {
            size_t n = w->result_count++;
            wx->tokens[n] = arena_copy(&w->arena, json_get_text(one, "token"));
            read_result(&w->arena, one, depth, &w->results[n], &wx->faults[n]);
        }
    }
    return true;
}

static bool read_work(struct http_request *r, const struct json *j, struct work *w)
{
    struct slice instance = json_get_text(j, "instance");
    int64_t max = json_get_int(j, "max", json_get(j, "max") ? -1 : 1);

    if (!members_ok(r, j, NAMES("instance", "max", "wait", "instead", "holding", "results"),
                    "a work call"))
        return false;
    w->agent_name = arena_copy(&w->arena, http_segment(r, 2));
    w->instance_name = arena_copy(&w->arena, instance);
    if (!is_name(w->agent_name) || !is_name(instance)) {
        http_problem(r, 422, "bad-work",
                     "agent and instance must be names of 1 to 128 characters of [A-Za-z0-9._:-]");
        return false;
    }
    if (max < 0 || max > WORK_MAX) {
        http_problem(r, 422, "bad-work", "max must be a number from 0 to %d", WORK_MAX);
        return false;
    }
    w->max = (uint32_t)max;
    if (!delay_of(j, "wait", &w->wait_ms)) {
        http_problem(r, 422, "bad-work", "wait must be a duration such as 30s");
        return false;
    }
    w->wait_ms = min_i64(w->wait_ms, 5 * MS_PER_MIN);
    const struct json *instead = json_get(j, "instead");
    if (instead && instead->type != JSON_TRUE && instead->type != JSON_FALSE) {
        http_problem(r, 422, "bad-work", "instead is %s, expected true or false",
                     json_type_text(instead->type));
        return false;
    }
    w->instead = json_get_bool(j, "instead", false);
    return read_lists(r, j, w);
}

/* The name comes from the step: a client cannot invent it. */
static bool has_own_result(const struct server *sv, const struct work *w)
{
    struct token t;

    for (size_t i = 0; i < w->result_count; i++)
        if (token_check(sv->key, w->results[i].token, w->agent_name, &t))
            return true;
    return false;
}

/* What comes with results is never turned away. Without room for its instance's name it is taken
 * for one that all such calls of the agent share; it gets no work. */
static void take_results_alone(struct work *w)
{
    w->instance_name = SLICE("(others)"); /* not for clients */
    w->max = 0;
    w->wait_ms = 0;
    w->instead = false;
    w->says_holding = false;
    w->holding_count = 0;
}

static bool names_have_room(const struct server *sv, struct http_request *r, struct work *w)
{
    struct slice token = quota_name(r->account);

    w->by = token.ptr ? hash_stable(token.ptr, token.len) : 0;
    enum dispatch_room room = scheduler_room(sv->scheduler, w);

    if (room != ROOM_FOR_IT && has_own_result(sv, w)) {
        take_results_alone(w);
        return true;
    }
    switch (room) {
    case ROOM_FOR_IT:
        return true;
    case NO_ROOM_FOR_INSTANCE:
        http_problem(r, 503, "busy",
                     "there are too many instances: a node keeps at most %zu of one agent, and "
                     "four times as many in all, of which some are left to other tokens; it "
                     "forgets those that do not call",
                     sv->limits.instances_max);
        return false;
    case NO_ROOM_FOR_AGENT:
        http_problem(r, 503, "busy",
                     "there are too many agents: a node keeps at most %zu, of which some are left "
                     "to other tokens; it forgets those that do not call",
                     sv->limits.agents_max);
        return false;
    }
    UNREACHABLE();
}

/* False: it was answered that it may not. Results are never refused: a call with results is
 * answered at once instead. */
static bool has_place_to_wait(struct server *sv, struct http_request *r, struct work *w)
{
    bool has_place = door_may_park(sv, r);
    bool is_within = quota_may_wait(r->account);

    if (w->wait_ms == 0 || (has_place && is_within))
        return true;
    if (w->result_count > 0)
        w->wait_ms = 0;
    else if (!is_within)
        quota_refuse_to_wait(r->account, r);
    else
        door_refuse_to_wait(sv, r);
    return w->wait_ms == 0;
}

void work_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json_of_list(r, &tree);

    if (!j)
        return;
    struct work *w = work_new();
    struct work_exchange *wx = arena_alloc(&w->arena, sizeof *wx);
    wx->work = w;
    w->user = wx;
    if (!read_work(r, j, w)) {
        work_free(w);
        return;
    }
    if (!names_have_room(sv, r, w)) {
        work_free(w);
        return;
    }
    if (!has_place_to_wait(sv, r, w)) {
        work_free(w);
        return;
    }
    exchange_begin(&wx->x, sv, r);
    wx->x.gone = work_gone;
    scheduler_work(sv->scheduler, w);
}

/* ---- the answer ---- */

static void render_forward(struct buf *b, const struct work_request *q)
{
    json_key(b, "forward");
    json_open(b, '{');
    json_key(b, "idempotency_key");
    json_string(b, q->forward_key);
    json_key(b, "input");
    json_raw(b, q->forward_input);
    json_key(b, "output");
    json_raw(b, q->forward_output);
    json_key(b, "attempts");
    json_number(b, q->forward_attempts);
    json_key(b, "in_doubt");
    json_bool(b, q->forward_in_doubt);
    json_close(b, '}');
}

static void render_request(struct buf *b, const struct work_request *q, int64_t now)
{
    json_open(b, '{');
    json_key(b, "token");
    json_string(b, q->token);
    json_key(b, "task");
    json_string(b, q->task);
    json_key(b, "step");
    json_string(b, q->step);
    json_key(b, "action");
    json_string(b, q->action);
    json_key(b, "direction");
    json_string(b, slice_of(direction_text(q->direction)));
    json_key(b, "attempt");
    json_number(b, q->attempt);
    json_key(b, "idempotency_key");
    json_string(b, q->idempotency_key);
    json_key(b, "input");
    json_raw(b, q->input);
    json_key(b, "complete_by");
    json_time(b, q->complete_by);
    json_key(b, "time_left_ms");
    json_number(b, max_i64(0, q->complete_by - now));
    json_key(b, "traceparent");
    json_string(b, q->traceparent);
    if (q->heartbeat_ms > 0) {
        json_key(b, "heartbeat_ms");
        json_number(b, q->heartbeat_ms);
    }
    if (q->resume.ptr) {
        json_key(b, "resume");
        json_raw(b, q->resume);
    }
    if (q->direction == DIRECTION_UNDO)
        render_forward(b, q);
    json_close(b, '}');
}

static void render_answer(struct buf *b, const struct work *w, int64_t now)
{
    const struct work_exchange *wx = w->user;

    json_open(b, '{');
    json_key(b, "now");
    json_time(b, now);
    json_key(b, "waited_ms");
    json_number(b, w->waited_ms);
    json_key(b, "requests");
    json_open(b, '[');
    for (size_t i = 0; i < w->request_count; i++)
        render_request(b, &w->requests[i], now);
    json_close(b, ']');
    json_key(b, "outcomes");
    json_open(b, '[');
    for (size_t i = 0; i < w->result_count; i++) {
        if (w->results[i].undecided)
            continue; /* an agent keeps a result without an outcome, and sends it again */
        json_open(b, '{');
        json_key(b, "token");
        json_string(b, wx->tokens[i]);
        json_key(b, "status");
        json_string(b, slice_of(result_status_text(w->results[i].status)));
        if (wx->faults[i].ptr) {
            json_key(b, "problem");
            json_string(b, wx->faults[i]);
        }
        json_close(b, '}');
    }
    json_close(b, ']');
    json_key(b, "stop");
    json_open(b, '[');
    for (size_t i = 0; i < w->stop_count; i++)
        json_string(b, w->stop[i]);
    json_close(b, ']');
    json_close(b, '}');
}

bool work_answered(void *arg, struct work *w)
{
    struct server *sv = arg;
    struct work_exchange *wx = w->user;
    struct http_request *r = wx ? wx->x.http : NULL;

    if (!r || !http_is_alive(r))
        return false;
    exchange_untie(&wx->x);
    /* A token that is no longer good gets no work. (A call with results has not waited for work,
     * and is answered with their outcome.) */
    if (w->waited_ms > 0 && w->result_count == 0 && !caller_recheck(sv, r))
        return false;
    if (w->failed) {
        bool known = sv->trouble.err != ERR_OK;
        answer_trouble(r, known ? sv->trouble.err : ERR_BUSY,
                       known ? sv->trouble.text : "the store did not accept it");
        return true;
    }
    CLEANUP(buf_fini) struct buf b = {0};
    render_answer(&b, w, server_now(sv));
    answer_json(r, 200, &b, NULL);
    return true;
}
