/* Scenarios of heartbeats, for agents with the known action slow: they go on, are acknowledged,
 * and stop when the server or the deadline says so. scenarios.c has the texts, stage.h what a
 * scenario can do. */

#include "agents/check/plays.h"

enum { BEATS_ENOUGH = 3, TRIES_MAX = 3 };

#define LONG "{\"ms\":600000,\"beats\":100}"

static struct asked *ask_slow(struct stage *s, const char *input, const char *more)
{
    return stage_ask(s, &(struct ask){.action = "slow", .input = input, .more = more});
}

static bool beats_grow(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->beats >= BEATS_ENOUGH && a->done > a->first_done;
}

static bool has_beaten(struct stage *s, const void *arg)
{
    (void)s;
    return ((const struct asked *)arg)->beats > 0;
}

void play_beats(struct stage *s)
{
    struct asked *a = ask_slow(s, LONG, NULL);

    if (stage_until(s, beats_grow, a, "several beats whose progress {\"done\": N} grows"))
        stage_dismiss(s, a);
}

static bool beats_go_on(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->beats_taken >= 2;
}

void play_beats_lost(struct stage *s)
{
    struct asked *a = ask_slow(s, LONG, NULL);

    stage_fault(s, FAULT_ON_BEATS, FAULT_STATUS, 503, 0, 2);
    stage_fault(s, FAULT_ON_BEATS, FAULT_BREAK, 0, 0, 1);
    if (stage_until(s, beats_go_on, a, "further beats after some that got lost"))
        stage_dismiss(s, a);
}

void play_beat_stop(struct stage *s)
{
    struct asked *a = ask_slow(s, LONG, NULL);

    s->stops_in_beats = true;
    if (!stage_until(s, has_beaten, a, "a beat"))
        return;
    stage_stop(s, a);
    if (!stage_result(s, a))
        stage_expected(s, "a result soon after the answer to a beat says \"stop\": slow gives up");
}

void play_beat_deadline(struct stage *s)
{
    struct asked *a = ask_slow(s, LONG, "\"heartbeat_ms\":1500");

    a->must_be_silent = true;
    a->silent_why = "silence about a request of which no beat was acknowledged for heartbeat_ms";
    stage_fault(s, FAULT_ON_BEATS, FAULT_STATUS, 503, 0, UINT32_MAX);
    if (!stage_given(s, a))
        return;
    if (!stage_dropped(s, a)) {
        stage_expected(s,
                       "a request given up, as no beat was acknowledged for heartbeat_ms (1.5 s)");
        return;
    }
    (void)stage_output(s, stage_ask(s, &(struct ask){.action = "count"}));
}

static bool has_ended(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->is_settled || (a->missed >= 3 && a->results == 0);
}

/* Generous for an idle machine, perhaps short for a busy one: hence several tries. */
void play_beat_acknowledged(struct stage *s)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        struct asked *a = ask_slow(s, "{\"ms\":6000,\"beats\":200}", "\"heartbeat_ms\":4000");
        if (!stage_until(s, has_ended, a, "a result"))
            return;
        if (a->is_settled) {
            (void)stage_output(s, a);
            return;
        }
    }
    stage_wrong(s, "a result, as its beats are acknowledged: each of them starts heartbeat_ms anew",
                "it gave the request up %d times", TRIES_MAX);
}

static bool was_repeated(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->given > 1;
}

static bool beats_further(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->beats > 10 || a->went_back;
}

static unsigned fetches_holding(struct stage *s)
{
    unsigned n = 0;

    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        const struct json *holding = json_get(c->body, "holding");
        n += c->kind == CALL_WORK && c->fetches && holding && holding->count > 0;
    }
    return n;
}

static bool holds_and_asks(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    /* An agent with a single place asks for nothing now. */
    return (a->done > 5 && fetches_holding(s) > 0) || a->beats > 40;
}

void play_repeat_in_work(struct stage *s)
{
    struct asked *a = ask_slow(s, LONG, NULL);

    if (!stage_until(s, holds_and_asks, a, "beats"))
        return;
    if (fetches_holding(s) == 0)
        stage_skip(s, "it asks for nothing while it holds a request");
    a->to_give = 1;
    if (!stage_until(s, was_repeated, a, "a call for work"))
        return;
    a->beats = 0;
    if (!stage_until(s, beats_further, a, "further beats"))
        return;
    if (a->went_back)
        stage_wrong(s, "a repeat of a request that is in work ignored",
                    "its progress went back: it was begun once more");
    stage_dismiss(s, a);
}
