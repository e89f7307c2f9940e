/* Scenarios of calls for work and their answers: parking, pauses between calls, repeated
 * requests, unknown members and actions, stops. scenarios.c has the texts, stage.h what a
 * scenario can do. */

#include "agents/check/plays.h"

enum { IDLE_MS = 2000, IDLE_CALLS_MAX = 100, SHORT_WAIT_MS = 20 };

void play_completes(struct stage *s)
{
    (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}

void play_unknown_members(struct stage *s)
{
    s->is_ornate = true;
    (void)snprintf(s->stops[s->stop_count++], TOKEN_SIZE, "token-of-nobody");
    (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}

void play_pieces(struct stage *s)
{
    s->in_pieces = true;
    (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}

void play_clocks(struct stage *s)
{
    s->is_old_clock = true;
    if (!stage_output(s, stage_ask(s, &(struct ask){0})))
        stage_expected(
            s, "a result, since time_left_ms says that there is time; clocks need not agree");
}

/* ---- parked ---- */

static struct call *first_fetch(struct stage *s)
{
    LIST_FOREACH (l, after, &s->calls) {
        struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->kind == CALL_WORK && c->fetches)
            return c;
    }
    return NULL;
}

static bool has_fetched(struct stage *s, const void *arg)
{
    (void)arg;
    return first_fetch(s) != NULL;
}

static bool is_over(struct stage *s, const void *arg)
{
    const struct call *c = arg;

    (void)s;
    return c->ended_at != 0;
}

void play_parked(struct stage *s)
{
    s->park_ms = s->settings->patience_ms;
    if (!stage_until(s, has_fetched, NULL, "a call for work with \"max\" above 0"))
        return;
    const struct call *c = first_fetch(s);
    ASSERT(c); /* there is one */
    if (c->wait_ms == 0)
        stage_skip(s, "its calls have no \"wait\"");
    else if (c->wait_ms > s->settings->patience_ms / 2)
        stage_skip(s, "its calls wait for %d s; --patience of more than twice as much would try it",
                   (int)(c->wait_ms / 1000));
    if (!stage_until(s, is_over, c, "a call that is parked until its \"wait\" is over"))
        return;
    if (c->was_left)
        stage_wrong(s, "a call that is left alone until its \"wait\" is over",
                    "the agent went away after %d of %d ms", (int)(c->ended_at - c->came_at),
                    (int)c->wait_ms);
    s->park_ms = 1;
    (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}

/* A short wait, or a pause by the agent, is enough; only a tight loop is wrong. A slow machine
 * makes fewer calls, so it causes no false alarm. */
void play_idle(struct stage *s)
{
    unsigned calls = 0;

    if (!stage_until(s, has_fetched, NULL, "a call for work with \"max\" above 0")
        || !stage_passes(s, IDLE_MS))
        return;
    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        calls += c->kind == CALL_WORK && c->fetches && c->wait_ms < SHORT_WAIT_MS;
    }
    if (calls > IDLE_CALLS_MAX)
        stage_wrong(s, "calls with a \"wait\", or a pause after one that brought nothing",
                    "%u calls without in %d s, and nothing to do", calls, IDLE_MS / 1000);
    (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}

/* ---- repeats ---- */

static bool was_repeated(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->given > 1 || a->is_settled;
}

void play_repeat(struct stage *s)
{
    struct asked *a = stage_ask(s, &(struct ask){0});

    stage_fault(s, FAULT_ON_RESULTS, FAULT_STATUS, 503, 0, 5);
    if (!stage_given(s, a))
        return;
    a->to_give = 1;
    if (!stage_until(s, was_repeated, a, "a call for work, or the result"))
        return;
    a->to_give = 0;
    if (!stage_result(s, a))
        return;
    if (a->given == 1)
        stage_skip(s, "it asks for nothing while it holds a request");
    if (stage_output(s, stage_ask(s, &(struct ask){0})) && a->after > 0)
        stage_wrong(s, "a repeat of a request that it holds ignored",
                    "its result came once more after it was acknowledged");
}

/* ---- impossible and unwanted requests ---- */

void play_no_such_action(struct stage *s)
{
    struct asked *a = stage_ask(s, &(struct ask){.action = "check-no-such-action"});
    static const char expected[] =
        "an error with retryable false for an action that it does not have";

    if (!stage_error(s, a)) {
        stage_expected(s, expected);
        return;
    }
    const struct json *retryable = json_get(asked_error(a), "retryable");
    if (!retryable || retryable->type != JSON_FALSE)
        stage_wrong(s, expected, "%.*s", SLICE_ARG(slice_cut(asked_error(a)->raw, 400)));
}

void play_stop(struct stage *s)
{
    struct asked *a = stage_ask(s, &(struct ask){0});

    stage_fault(s, FAULT_ON_RESULTS, FAULT_STATUS, 503, 0, 1); /* so that it is held for a while */
    if (!stage_given(s, a))
        return;
    stage_stop(s, a);
    if (stage_result(s, a))
        (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}
