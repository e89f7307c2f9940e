/* Scenarios for agents that have the known actions of docs/agent-check.md (echo, fail and
 * others): outputs, errors, tries, resume details, results from elsewhere, and places.
 * scenarios.c has the texts. */

#include "agents/check/plays.h"
#include "base/when.h"

enum { PLACES_TRIED_MAX = 32 };

static struct asked *ask(struct stage *s, const char *action, const char *input)
{
    return stage_ask(s, &(struct ask){.action = action, .input = input});
}

/* ---- echo ---- */

static const char *const values[] = {
    "null",
    "true",
    "0",
    "-12.5",
    "9007199254740991",
    "\"\"",
    "\"\\u00fc \\ud83d\\ude00 \\\"\\\\\\/\\b\\f\\n\\r\\t \\u0001\"",
    "\"\xc3\xbc \xf0\x9f\x98\x80\"",
    "[]",
    "{}",
    "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]",
    "{\"\":{\"a b\":[null,false,{\"\\u00e9\":1}]}}",
    "{\"constructor\":1,\"__proto__\":2,\"toString\":3}",
};

void play_echo(struct stage *s)
{
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        struct asked *a = ask(s, "echo", values[i]);
        struct json *sent = NULL;
        enum err err = json_parse(&s->arena, slice_of(values[i]), &sent, NULL);
        ASSERT(err == ERR_OK);
        if (!stage_output(s, a))
            return;
        if (json_hash(sent) == json_hash(json_get(a->result, "output")))
            continue;
        stage_wrong(s, "the output of echo equal to its input", "%.*s for %s",
                    SLICE_ARG(slice_cut(asked_output(a), 300)), values[i]);
        return;
    }
}

/* ---- fail ---- */

static const char *const errors[] = {
    "{\"code\":\"declined\",\"message\":\"no money\",\"retryable\":false,\"effect\":\"none\"}",
    "{\"code\":\"half\",\"message\":\"some of it\",\"retryable\":false,\"effect\":\"unknown\"}",
    "{\"code\":\"busy\",\"message\":\"later\",\"retryable\":true,\"effect\":\"none\"}",
    "{\"code\":\"gone\",\"message\":\"\\u00fc \\\\\",\"retryable\":true,\"retry_after\":\"5s\"}",
    "{\"code\":\"cut\",\"message\":\"\",\"retryable\":true,\"resume\":{\"at\":[1,null,\"x\"]}}",
};

static bool is_retryable(const struct json *error)
{
    return json_get_bool(error, "retryable", true);
}

/* As if both stated the defaults. */
static bool has_no_effect(const struct json *error)
{
    struct slice effect = json_get_text(error, "effect");

    return effect.ptr ? slice_is(effect, "none") : !is_retryable(error);
}

static int64_t after_ms(const struct json *error)
{
    int64_t ms = 0;

    return duration_parse(json_get_text(error, "retry_after"), &ms) ? ms : 0;
}

static bool is_like(const struct json *told, const struct json *said)
{
    const struct json *resume = json_get(told, "resume");
    const struct json *kept = json_get(said, "resume");

    return slice_eq(json_get_text(told, "code"), json_get_text(said, "code"))
           && (slice_eq(json_get_text(told, "message"), json_get_text(said, "message"))
               || json_get_text(told, "message").len == 0)
           && is_retryable(told) == is_retryable(said) && has_no_effect(told) == has_no_effect(said)
           && after_ms(told) == after_ms(said)
           && (!resume || (kept && json_hash(resume) == json_hash(kept)));
}

void play_fail(struct stage *s)
{
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        struct asked *a = ask(s, "fail", errors[i]);
        struct json *told = NULL;
        enum err err = json_parse(&s->arena, slice_of(errors[i]), &told, NULL);
        ASSERT(err == ERR_OK);
        if (!stage_error(s, a))
            return;
        if (is_like(told, asked_error(a)))
            continue;
        stage_wrong(s, "an error as the input of fail says", "%.*s for %s",
                    SLICE_ARG(slice_cut(asked_error(a)->raw, 300)), errors[i]);
        return;
    }
}

/* ---- tries, resume, elsewhere ---- */

void play_tries(struct stage *s)
{
    struct asked *a = ask(s, "retry", "{\"fail\":2}");

    if (stage_output(s, a) && json_get_int(a->result, "tries", 1) != 3)
        stage_wrong(s, "\"tries\": 3 in the result of retry {\"fail\": 2}", "%.*s",
                    SLICE_ARG(slice_cut(a->result->raw, 300)));
}

void play_resume(struct stage *s)
{
    struct asked *a = ask(s, "resume", "{}");

    if (!stage_error(s, a))
        return;
    const struct json *resume = json_get(asked_error(a), "resume");
    if (!is_retryable(asked_error(a)) || json_get_int(resume, "at", 0) != 1) {
        stage_wrong(s, "a retryable error with \"resume\": {\"at\": 1}", "%.*s",
                    SLICE_ARG(slice_cut(a->result->raw, 300)));
        return;
    }
    struct asked *b = stage_ask(s, &(struct ask){.again = a,
                                                 .action = "resume",
                                                 .input = "{}",
                                                 .more = "\"resume\":{\"at\":1}"});
    if (stage_output(s, b) && json_get_int(json_get(b->result, "output"), "at", 0) != 1)
        stage_wrong(s, "the \"resume\" of the request as the output: {\"at\":1}", "%.*s",
                    SLICE_ARG(slice_cut(b->result->raw, 300)));
}

static bool asks_for_all(struct stage *s, const void *arg)
{
    const struct call *since = arg;

    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->kind == CALL_WORK && c->number > since->number && c->max >= s->places)
            return true;
    }
    return false;
}

void play_elsewhere(struct stage *s)
{
    if (!stage_output(s, ask(s, "count", "{}"))) /* it has also shown its number of places */
        return;
    struct asked *a = ask(s, "elsewhere", "{}");
    if (!stage_result(s, a))
        return;
    if (!json_get_bool(a->result, "elsewhere", false))
        stage_wrong(s, "a result with \"elsewhere\": true", "%.*s",
                    SLICE_ARG(slice_cut(a->result->raw, 300)));
    (void)
        stage_until(s, asks_for_all, a->settled_by,
                    "a place that is free again after \"elsewhere\": a call for as many as before");
}

/* ---- places ---- */

static struct call *last_fetch(struct stage *s)
{
    for (struct link *l = s->calls.prev; l != &s->calls; l = l->prev) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->kind == CALL_WORK && c->fetches)
            return c;
    }
    return NULL;
}

static bool has_fetched(struct stage *s, const void *arg)
{
    (void)arg;
    return last_fetch(s) != NULL;
}

struct works {
    struct asked *all[PLACES_TRIED_MAX];
    unsigned count;
};

static bool are_in_work(struct stage *s, const void *arg)
{
    const struct works *w = arg;

    for (unsigned i = 0; i < w->count; i++) {
        if (w->all[i]->results > 0)
            stage_wrong(s, "work on all requests that it asked for, at the same time",
                        "one ended while another was not begun");
        if (w->all[i]->beats == 0)
            return false;
    }
    return true;
}

static unsigned count_held(const struct call *c, const struct works *w)
{
    const struct json *holding = json_get(c->body, "holding");
    unsigned n = 0;

    for (const struct json *j = holding ? holding->child : NULL; j; j = j->next)
        for (unsigned i = 0; i < w->count; i++)
            n += slice_is(j->text, w->all[i]->token);
    return n;
}

/* In any call: what it holds plus what it asks for. */
static void judge_places(struct stage *s, const struct works *w, int64_t places)
{
    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->kind != CALL_WORK || c->max + count_held(c, w) <= places)
            continue;
        stage_wrong(s, "a \"max\" of as many as it can begin now",
                    "%d when it had %u in work, and %d when it had none", (int)c->max,
                    count_held(c, w), (int)places);
        return;
    }
}

void play_places(struct stage *s)
{
    struct works w = {0};

    if (!stage_until(s, has_fetched, NULL, "a call for work with \"max\" above 0"))
        return;
    const struct call *last = last_fetch(s);
    ASSERT(last); /* there is one */
    int64_t places = last->max;
    w.count = places > PLACES_TRIED_MAX ? PLACES_TRIED_MAX : (unsigned)places;
    for (unsigned i = 0; i < w.count; i++)
        w.all[i] = ask(s, "slow", "{\"ms\":600000,\"beats\":200}");
    if (!stage_until(
            s, are_in_work, &w,
            "beats of all requests that it asked for: work on all of them at the same time"))
        return;
    s->stops_in_beats = true; /* three more calls, if it makes any, before they end */
    if (!stage_passes(s, 1000))
        return;
    judge_places(s, &w, places);
    s->stops_in_beats = false;
    for (unsigned i = 0; i < w.count && !s->is_decided; i++) {
        s->stop_count = 0;
        stage_dismiss(s, w.all[i]);
    }
}
