/* Reads an agent's calls, and checks them against the documentation. Rules that span several calls
 * are counted per request in struct asked (stage.h). */

#include <stdio.h>

#include "agents/check/stage.h"
#include "base/clock.h"
#include "base/when.h"

enum {
    INSTANCE_MAX = 150,
    PLACES_MAX = 1000,
    RESULTS_MAX = 1000,
    BEATS_MAX = 1024,
    PROGRESS_MAX = 2048,
    MESSAGE_MAX = 256,
    TRIES_MAX = 1000000,
    SHOWN_MAX = 400,
    STALE_MAX = 8,
};

PRINTF(3, 4)
static void breach(struct call *c, const char *expected, const char *fmt, ...)
{
    char seen[SHOWN_MAX];
    va_list args;

    va_start(args, fmt);
    text_format(seen, sizeof seen, fmt, args);
    va_end(args);
    stage_breach(c->stage, "form", expected, "%s, in %.*s", seen,
                 SLICE_ARG(c->body ? slice_cut(c->body->raw, SHOWN_MAX) : SLICE("the body")));
}

/* ---- the body ---- */

static bool read_body(struct call *c)
{
    struct stage *s = c->stage;
    struct json_fault fault = {0};
    struct json *body = NULL;
    struct slice text = arena_copy(&s->arena, c->http->body);

    if (json_parse_within(&s->arena, text, JSON_DEPTH_OUTSIDE, &body, &fault) != ERR_OK) {
        stage_breach(s, "form", "a body that is JSON", "%s, in %.*s", fault.what,
                     SLICE_ARG(slice_cut(text, SHOWN_MAX)));
        c->ended_at = clock_boot_ms();
        http_problem(c->http, 400, "bad-json", "%s", fault.what);
        return false;
    }
    c->body = body;
    if (body->type == JSON_OBJECT)
        return true;
    breach(c, "a body that is an object", "%s", json_type_text(body->type));
    c->ended_at = clock_boot_ms();
    http_problem(c->http, 422, "bad-work", "the body is %s", json_type_text(body->type));
    return false;
}

static void check_instance(struct call *c)
{
    struct stage *s = c->stage;
    struct slice instance = json_get_text(c->body, "instance");

    if (!instance.ptr || instance.len == 0 || instance.len > INSTANCE_MAX)
        breach(c, "\"instance\", a text of up to 150 bytes", "it is %s",
               instance.ptr ? "empty or too long" : "missing, or no text");
    else if (!s->instance[0])
        (void)snprintf(s->instance, sizeof s->instance, "%.*s", SLICE_ARG(instance));
    else if (!slice_is(instance, s->instance))
        stage_breach(s, "instance", "one name for the process, the same after a restart",
                     "\"%.*s\", and before that \"%s\"", SLICE_ARG(instance), s->instance);
}

static void check_max(struct call *c)
{
    const struct json *max = json_get(c->body, "max");

    c->max = 1;
    if (max && (!json_int(max, &c->max) || c->max < 0 || c->max > PLACES_MAX)) {
        breach(c, "\"max\", a whole number from 0 to 1000", "it is %.*s", SLICE_ARG(max->raw));
        c->max = 0;
    }
    c->fetches = c->max > 0;
}

static void check_wait(struct call *c)
{
    const struct json *wait = json_get(c->body, "wait");

    if (wait
        && (wait->type != JSON_STRING || !duration_parse(wait->text, &c->wait_ms)
            || c->wait_ms > 5 * MS_PER_MIN)) {
        breach(c, "\"wait\", a duration of up to 5m", "it is %.*s", SLICE_ARG(wait->raw));
        c->wait_ms = 0;
    }
}

static void check_holding(struct call *c)
{
    const struct json *holding = json_get(c->body, "holding");

    if (!holding && c->fetches)
        stage_breach(c->stage, "holding", "\"holding\" in each call that asks for work, if only []",
                     "a call without: %.*s", SLICE_ARG(slice_cut(c->body->raw, SHOWN_MAX)));
    if (holding && holding->type != JSON_ARRAY)
        breach(c, "\"holding\", an array of tokens", "it is %s", json_type_text(holding->type));
    for (const struct json *j = holding ? holding->child : NULL; j; j = j->next)
        if (j->type != JSON_STRING)
            breach(c, "\"holding\", an array of tokens", "%s in it", json_type_text(j->type));
}

static unsigned count_open(const struct call *c)
{
    unsigned open = 0;

    LIST_FOREACH (l, after, &c->stage->calls) {
        const struct call *other = CONTAINER_OF(l, struct call, link);
        open += other->kind == CALL_WORK && !other->ended_at && other->node == c->node;
    }
    return open;
}

bool call_read_work(struct call *c)
{
    c->open = count_open(c);
    if (!read_body(c))
        return false;
    check_instance(c);
    check_max(c);
    check_wait(c);
    check_holding(c);
    const struct json *results = json_get(c->body, "results");
    if (results && (results->type != JSON_ARRAY || results->count > RESULTS_MAX))
        breach(c, "\"results\", an array of at most 1000", "it is %s of %u",
               json_type_text(results->type), results->count);
    return true;
}

/* ---- results ---- */

static void check_error(struct call *c, const struct json *error)
{
    const struct json *retryable = json_get(error, "retryable");
    const struct json *effect = json_get(error, "effect");
    const struct json *after = json_get(error, "retry_after");
    int64_t ms = 0;

    if (error->type != JSON_OBJECT || json_get_text(error, "code").len == 0)
        breach(c, "an error that is an object with a \"code\"", "%.*s",
               SLICE_ARG(slice_cut(error->raw, SHOWN_MAX / 2)));
    if (json_get(error, "message") && !json_get_text(error, "message").ptr)
        breach(c, "a \"message\" that is a text", "%.*s",
               SLICE_ARG(slice_cut(error->raw, SHOWN_MAX / 2)));
    if (retryable && retryable->type != JSON_TRUE && retryable->type != JSON_FALSE)
        breach(c, "\"retryable\", true or false", "it is %s", json_type_text(retryable->type));
    if (effect && !slice_is(effect->text, "none") && !slice_is(effect->text, "unknown"))
        breach(c, "\"effect\", \"none\" or \"unknown\"", "it is %.*s",
               SLICE_ARG(slice_cut(effect->raw, 80)));
    if (after && (after->type != JSON_STRING || !duration_parse(after->text, &ms)))
        breach(c, "\"retry_after\", a duration", "it is %.*s",
               SLICE_ARG(slice_cut(after->raw, 80)));
    if (json_get_raw(error, "resume").len > PROGRESS_MAX)
        breach(c, "\"resume\" of up to 2048 bytes", "it is %zu", json_get_raw(error, "resume").len);
}

static void check_result(struct call *c, const struct json *result)
{
    const struct json *error = json_get(result, "error");
    const struct json *tries = json_get(result, "tries");
    int64_t n = 1;
    int ends = (json_get(result, "output") != NULL) + (error != NULL)
               + json_get_bool(result, "elsewhere", false);

    if (ends != 1)
        breach(c, "in a result one of \"output\", \"error\" and \"elsewhere\"", "%d of them", ends);
    if (tries && (!json_int(tries, &n) || n < 1 || n > TRIES_MAX))
        breach(c, "\"tries\", a number from 1 to 1000000", "it is %.*s",
               SLICE_ARG(slice_cut(tries->raw, 80)));
    if (error)
        check_error(c, error);
}

/* After a refused result, an agent may send an error instead; any other change is wrong. */
static void check_same(struct call *c, const struct json *result, const struct asked *a)
{
    if (json_hash(result) == json_hash(a->result) || a->refuse_output)
        return;
    stage_wrong(c->stage, "one result of a request, however often it is handed in",
                "first %.*s, and later %.*s", SLICE_ARG(slice_cut(a->result->raw, SHOWN_MAX)),
                SLICE_ARG(slice_cut(result->raw, SHOWN_MAX)));
}

/* The agent knows the request: its later calls must report it. */
static void note_shown(const struct call *c, struct asked *a)
{
    if (!a->shown_at)
        a->shown_at = c->came_at;
}

void call_note_result(struct call *c, const struct json *result, struct asked *a)
{
    note_shown(c, a);
    a->results++;
    a->after += a->settled_by && a->settled_by->ended_at && c->came_at > a->settled_by->ended_at;
    a->results_at = c->node;
    a->result_by = c;
    a->missed = 0;
    a->missed_by = NULL;
    if (a->must_be_silent)
        stage_wrong(c->stage, a->silent_why, "%.*s", SLICE_ARG(slice_cut(result->raw, SHOWN_MAX)));
    if (a->given == 0)
        stage_wrong(c->stage, "results of requests that were given", "one of \"%s\", which was not",
                    a->token);
    if (a->result)
        check_same(c, result, a);
    if (!a->result || a->refuse_output)
        a->result = result;
}

static void note_results(struct call *c)
{
    const struct json *results = json_get(c->body, "results");

    for (const struct json *j = results ? results->child : NULL; j; j = j->next) {
        struct asked *a = stage_asked(c->stage, json_get_text(j, "token"));
        check_result(c, j);
        if (!a)
            breach(c, "results of tokens that were given", "one of \"%.*s\"",
                   SLICE_ARG(slice_cut(json_get_text(j, "token"), 80)));
        else if (!a->is_old)
            call_note_result(c, j, a);
    }
}

/* ---- holding ---- */

static bool has_token(const struct json *list, const char *token, bool is_results)
{
    for (const struct json *j = list ? list->child : NULL; j; j = j->next)
        if (slice_is(is_results ? json_get_text(j, "token") : j->text, token))
            return true;
    return false;
}

/* Counts only calls begun after the agent had shown the request. Consecutive calls that do not
 * report it count: a single one may have been composed before. */
static void note_said(struct call *c, struct asked *a, bool is_said)
{
    if (!a->shown_at || c->came_at <= a->shown_at)
        return;
    if (is_said) {
        a->confirmed++;
        a->denied = 0;
        a->denied_by = NULL;
    } else if (!a->denied_by || (a->denied_by->ended_at && a->denied_by->ended_at <= c->came_at)) {
        a->denied++;
        a->denied_by = c;
    }
}

/* The request counts as lost when several calls do not hold it, each begun after the previous one
 * ended: a single one may have been under way while the request came. */
static void note_held(struct call *c, struct asked *a)
{
    bool is_held = has_token(json_get(c->body, "holding"), a->token, false);

    bool is_said = is_held || has_token(json_get(c->body, "results"), a->token, true);

    note_said(c, a, is_said);
    a->freed = is_held && c->max >= c->stage->places ? a->freed + 1 : 0;
    if (is_said) {
        a->is_held = is_held;
        a->missed = 0;
        a->missed_by = NULL;
        return;
    }
    a->is_held = false;
    if (!a->by || a->by == c || !a->by->ended_at || a->by->ended_at > c->came_at)
        return;
    if (a->missed_by && !a->missed_by->ended_at)
        return;
    a->missed++;
    a->missed_by = c;
}

/* A settled request must be dropped. One or two calls may have been under way. */
static void note_stale(struct call *c, struct asked *a)
{
    if (!a->settled_by || !a->settled_by->ended_at || c->came_at <= a->settled_by->ended_at
        || (a->stale_by && (!a->stale_by->ended_at || c->came_at < a->stale_by->ended_at)))
        return;
    a->stale = has_token(json_get(c->body, "holding"), a->token, false) ? a->stale + 1 : 0;
    a->stale_by = c;
    if (a->stale >= STALE_MAX)
        stage_breach(c->stage, "holding", "nothing held that has an outcome",
                     "\"%s\" in %u calls after that", a->token, a->stale);
}

void call_note(struct call *c)
{
    note_results(c);
    if (!c->fetches)
        return;
    const struct json *holding = json_get(c->body, "holding");
    if (!holding || holding->count == 0)
        c->stage->places = max_i64(c->max, c->stage->places);
    LIST_FOREACH (l, after, &c->stage->asked) {
        struct asked *a = CONTAINER_OF(l, struct asked, link);
        if (a->given > 0 && !a->is_settled && !a->is_old)
            note_held(c, a);
        else if (a->is_settled && !a->is_old)
            note_stale(c, a);
    }
}

/* ---- heartbeats ---- */

static void note_beat(struct call *c, const struct json *beat)
{
    struct asked *a = stage_asked(c->stage, json_get_text(beat, "token"));
    struct slice progress = json_get_raw(beat, "progress");
    int64_t done = json_get_int(json_get(beat, "progress"), "done", -1);
    const struct json *message = json_get(beat, "message");

    if (progress.len > PROGRESS_MAX)
        breach(c, "\"progress\" of up to 2048 bytes", "it is %zu", progress.len);
    if (message && message->type != JSON_NULL
        && (message->type != JSON_STRING || message->text.len > MESSAGE_MAX))
        breach(c, "\"message\", a text of up to 256 bytes", "it is %s",
               message->type == JSON_STRING ? "longer" : json_type_text(message->type));
    if (json_get_raw(beat, "resume").len > PROGRESS_MAX)
        breach(c, "\"resume\" of up to 2048 bytes", "it is longer");
    if (!a)
        breach(c, "beats of tokens that were given", "one of \"%.*s\"",
               SLICE_ARG(slice_cut(json_get_text(beat, "token"), 80)));
    if (!a || a->is_old)
        return;
    note_shown(c, a);
    a->beats++;
    a->went_back |= done >= 0 && done < a->done;
    a->first_done = a->first_done < 0 ? done : a->first_done;
    a->done = done;
}

bool call_read_beats(struct call *c)
{
    if (!read_body(c))
        return false;
    check_instance(c);
    const struct json *beats = json_get(c->body, "beats");
    if (!beats || beats->type != JSON_ARRAY || beats->count > BEATS_MAX)
        breach(c, "\"beats\", an array of at most 1024", "it is %s",
               beats ? "longer, or no array" : "missing");
    for (const struct json *j = beats && beats->type == JSON_ARRAY ? beats->child : NULL; j;
         j = j->next)
        note_beat(c, j);
    return true;
}
