/* Scenarios of deadlines: a request whose time has passed must not be answered, however long it
 * waited or was sent. scenarios.c has the texts, stage.h what a scenario can do. */

#include "agents/check/plays.h"

enum { SLOW_WAY_MS = 4000, TRIES_MAX = 3 };

/* The request is given, must not be answered, and is dropped; another one is answered. */
static void play_silence(struct stage *s, struct asked *a, const char *why)
{
    a->must_be_silent = true;
    a->silent_why = why;
    if (!stage_given(s, a))
        return;
    s->delay_ms = 0;
    if (stage_output(s, stage_ask(s, &(struct ask){0})))
        (void)stage_dropped(s, a);
}

void play_deadline_passed(struct stage *s)
{
    play_silence(s, stage_ask(s, &(struct ask){.has_left = true}),
                 "silence about a request that has no time left");
}

void play_deadline_sent(struct stage *s)
{
    s->delay_ms = SLOW_WAY_MS;
    play_silence(s, stage_ask(s, &(struct ask){.has_left = true, .left_ms = SLOW_WAY_MS - 500}),
                 "silence, since time_left_ms was over when the answer came: it counts from the "
                 "sending of the "
                 "call");
}

static bool has_result_or_lost(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->is_settled || a->missed >= 3;
}

/* An agent that adds waited_ms has enough time; but a machine may be busy, so there are several
 * tries. */
void play_deadline_waited(struct stage *s)
{
    s->delay_ms = SLOW_WAY_MS;
    s->tells_delay = true;
    for (int i = 0; i < TRIES_MAX; i++) {
        struct asked *a =
            stage_ask(s, &(struct ask){.has_left = true, .left_ms = SLOW_WAY_MS - 500});
        if (!stage_until(s, has_result_or_lost, a, "a result") || a->is_settled)
            return;
    }
    stage_wrong(s, "a result: the deadline is the sending of the call + waited_ms + time_left_ms",
                "%d times none, when waited_ms was more than 4 s and time_left_ms 3.5 s",
                TRIES_MAX);
}

void play_deadline_slow(struct stage *s)
{
    const struct ask slow = {.action = "slow",
                             .input = "{\"ms\":3000}",
                             .has_left = true,
                             .left_ms = 1000};

    play_silence(s, stage_ask(s, &slow), "silence: the action takes 3 s, and there was one left");
}

void play_deadline_begun(struct stage *s)
{
    struct asked *first = stage_ask(s, &(struct ask){.action = "count"});

    if (!stage_output(s, first))
        return;
    struct asked *late = stage_ask(s, &(struct ask){.action = "count", .has_left = true});
    late->must_be_silent = true;
    late->silent_why = "silence about a request that has no time left";
    if (!stage_given(s, late))
        return;
    struct asked *next = stage_ask(s, &(struct ask){.action = "count"});
    if (!stage_output(s, next) || !stage_dropped(s, late))
        return;
    int64_t before = json_get_int(json_get(first->result, "output"), "n", 0);
    int64_t after = json_get_int(json_get(next->result, "output"), "n", 0);
    if (after - before > 1)
        stage_wrong(s, "no effect of a request that has no time left",
                    "\"n\" went from %d to %d with one request between", (int)before, (int)after);
}
