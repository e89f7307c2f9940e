/*
 * A missing record of an effect shows only if something happens between the two. So the process is
 * killed, or the undo is sent, at many moments of a request, spread over its duration, and the
 * result is judged by counting effects. On a slow machine some moments miss, but no agent is judged
 * wrong.
 */

#include <stdio.h>

#include "agents/check/plays.h"
#include "base/clock.h"

enum {
    BATCH_MAX = 4,
    KILLS = 16,
    RACES = 12,
    UNDO_TRIES = 5,
    AT_WORK_MS = 1000, /* for an undo to end that waits for nothing */
    SPIN_US = 20000,
};

static const char hold[] = "{\"ms\":600000}"; /* of count: starts, and waits for a stop */

/* The number of effects, as the agent counts them. */
struct tally {
    int64_t now;
    int64_t unit;     /* the change by one effect */
    int64_t takes_us; /* duration of requests */
};

static int64_t now_us(void)
{
    return (int64_t)(uv_hrtime() / 1000);
}

/* More precise than stage_passes, which ends on the loop's tick. */
static bool pass(struct stage *s, int64_t us)
{
    int64_t until = now_us() + us;

    if (us > SPIN_US && !stage_passes(s, (us - SPIN_US) / 1000))
        return false;
    while (!s->is_decided && now_us() < until)
        (void)uv_run(&s->loop, UV_RUN_NOWAIT);
    return !s->is_decided;
}

/* Whatever the results. */
static bool all_settled(struct stage *s, struct asked **all, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!stage_result(s, all[i]))
            return false;
    return true;
}

static bool all_given(struct stage *s, struct asked **all, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (!stage_given(s, all[i]))
            return false;
    return true;
}

static void ask_all(struct stage *s, struct asked **all, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        all[i] = stage_ask(s, &(struct ask){0});
    stage_wake(s);
}

/* Measures the change by one effect. */
static bool begin_tally(struct stage *s, struct tally *t)
{
    int64_t before = 0;

    if (!stage_effects(s, &before) || !stage_output(s, stage_ask(s, &(struct ask){0}))
        || !stage_effects(s, &t->now))
        return false;
    t->unit = t->now - before;
    if (t->unit == 0)
        stage_wrong(s, "a number that each effect changes", "%lld before an effect and after it",
                    (long long)t->now);
    return !s->is_decided;
}

/* Without a kill. */
static bool time_batch(struct stage *s, struct tally *t, unsigned count)
{
    struct asked *all[BATCH_MAX];

    ask_all(s, all, count);
    if (!all_given(s, all, count))
        return false;
    int64_t began = now_us();
    if (!all_settled(s, all, count))
        return false;
    t->takes_us = now_us() - began;
    return stage_effects(s, &t->now);
}

/* ---- kills ---- */

static bool is_fetched_anew(struct stage *s, const void *arg)
{
    const uint64_t *since = arg;

    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->kind == CALL_WORK && c->fetches && c->number > *since)
            return true;
    }
    return false;
}

/* The server sees what the new process does not hold, and sends it again. */
static bool kill_and_finish(struct stage *s, struct asked **all, unsigned count)
{
    uint64_t since = s->call_serial;

    if (!stage_again(s)
        || !stage_until(s, is_fetched_anew, &since, "a call for work after a start"))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (!all[i]->is_settled && !all[i]->is_held)
            all[i]->to_give = 1;
    stage_wake(s);
    return all_settled(s, all, count);
}

/* Each key answered with an output has one effect; with an error, one or none. */
static bool judge_effects(struct stage *s, struct tally *t, struct asked **all, unsigned count,
                          const char *when)
{
    int64_t before = t->now;
    unsigned outputs = 0;

    if (!stage_effects(s, &t->now))
        return false;
    for (unsigned i = 0; i < count; i++)
        outputs += asked_output(all[i]).ptr != NULL;
    int64_t change = t->now - before;
    int64_t n = change / t->unit;
    if (change % t->unit != 0 || n > count || n < outputs)
        stage_wrong(s, "one effect for each idempotency key, whenever the process is killed",
                    "the count of effects went from %lld to %lld with %u keys, where one effect "
                    "changes it by %lld: the process was killed %s, and given the same again",
                    (long long)before, (long long)t->now, count, (long long)t->unit, when);
    return !s->is_decided;
}

static bool is_at_work(struct stage *s, const void *arg)
{
    const struct asked *a = arg;

    (void)s;
    return a->beats > 0;
}

/* The effect exists, and the handler has not returned: the known action makes that visible. */
static void kill_in_handler(struct stage *s, struct tally *t)
{
    struct asked *a = stage_ask(s, &(struct ask){.action = "count", .input = hold});

    if (!stage_until(s, is_at_work, a, "a heartbeat of the action count with \"ms\""))
        return;
    a->input = "{}"; /* the second time it need not wait */
    if (kill_and_finish(s, &a, 1))
        (void)judge_effects(s, t, &a, 1, "between the effect and the end of its handler");
}

static bool kill_at(struct stage *s, struct tally *t, unsigned count, int64_t us)
{
    struct asked *all[BATCH_MAX];
    char when[80];

    ask_all(s, all, count);
    if (!all_given(s, all, count) || !pass(s, us) || !kill_and_finish(s, all, count))
        return false;
    (void)snprintf(when, sizeof when, "%lld.%03lld ms after it was given them",
                   (long long)us / 1000, (long long)us % 1000);
    return judge_effects(s, t, all, count, when);
}

void play_effect_killed(struct stage *s)
{
    struct tally t = {0};

    if (!begin_tally(s, &t))
        return;
    unsigned count = (unsigned)min_i64(max_i64(s->places, 1), BATCH_MAX);
    if (!time_batch(s, &t, count))
        return;
    for (int i = 0; i < KILLS; i++)
        if (!kill_at(s, &t, count, t.takes_us * (2L * i + 1) / (2L * KILLS)))
            return;
    if (!s->settings->action)
        kill_in_handler(s, &t);
}

/* ---- undo ---- */

/* An undo may be deferred, or fail for good; then it is not counted. */
static bool undo_until_done(struct stage *s, struct asked *undo, bool *ret)
{
    for (int i = 0; i < UNDO_TRIES && stage_result(s, undo); i++) {
        const struct json *error = asked_error(undo);
        *ret = error == NULL;
        if (!error || !json_get_bool(error, "retryable", true))
            break;
        undo = stage_ask(s, &(struct ask){.again = undo});
    }
    return !s->is_decided;
}

static bool judge_undone(struct stage *s, struct tally *t, const struct asked *forward,
                         bool is_undone)
{
    int64_t before = t->now;

    if (!stage_effects(s, &t->now))
        return false;
    if (is_undone && t->now != before)
        stage_wrong(s, "no effect of a request that was undone while it was at work",
                    "the count of effects was %lld before it and is %lld after its undo; its "
                    "result was %.*s",
                    (long long)before, (long long)t->now,
                    SLICE_ARG(slice_cut(forward->result->raw, 300)));
    return !s->is_decided;
}

static bool race(struct stage *s, struct tally *t, int64_t us)
{
    bool is_undone = false;
    struct asked *forward = stage_ask(s, &(struct ask){0});

    stage_wake(s);
    if (!stage_given(s, forward) || !pass(s, us))
        return false;
    struct asked *undoing = stage_ask(s, &(struct ask){.undo = forward});
    stage_wake(s);
    return stage_result(s, forward) && undo_until_done(s, undoing, &is_undone)
           && judge_undone(s, t, forward, is_undone);
}

void play_undo_races(struct stage *s)
{
    struct tally t = {0};

    if (!begin_tally(s, &t) || !time_batch(s, &t, 1))
        return;
    for (int i = 0; i < RACES; i++)
        if (!race(s, &t, t.takes_us * i / RACES))
            return;
}

struct wait {
    const struct asked *undo;
    int64_t until; /* CLOCK_BOOTTIME */
};

static bool is_home(struct stage *s, const void *arg)
{
    const struct wait *w = arg;

    (void)s;
    return w->undo->results > 0 || clock_boot_ms() >= w->until;
}

void play_undo_at_work(struct stage *s)
{
    struct tally t = {0};
    bool is_undone = false;

    if (!stage_effects(s, &t.now))
        return;
    struct asked *forward = stage_ask(s, &(struct ask){.action = "count", .input = hold});
    if (!stage_until(s, is_at_work, forward, "a heartbeat of the action count with \"ms\""))
        return;
    struct asked *undoing = stage_ask(s, &(struct ask){.undo = forward, .action = "count"});
    stage_wake(s);
    struct wait w = {undoing, clock_boot_ms() + AT_WORK_MS};
    if (!stage_until(s, is_home, &w, "an agent that goes on"))
        return;
    stage_dismiss(s, forward);
    if (!s->is_decided && undo_until_done(s, undoing, &is_undone))
        (void)judge_undone(s, &t, forward, is_undone);
}
