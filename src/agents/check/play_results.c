/* Scenarios of results: each is sent until it is acknowledged, over answers that are cut, refused
 * or unreadable, and calls are repeated as the server demands. scenarios.c has the texts, node.c
 * causes the faults. */

#include "agents/check/plays.h"

enum {
    SLACK_MS = 100 /* clocks with coarse steps */,
    PAUSE_S = 3,
    BACKOFF_CALLS = 7,
    BACKOFF_MS = 600,
    LATER = 8 /* results after which the refused one must not come again */
};

static void play_fault(struct stage *s, enum fault_kind kind, int status, unsigned count)
{
    stage_fault(s, FAULT_ON_RESULTS, kind, status, 0, count);
    if (!stage_output(s, stage_ask(s, &(struct ask){0})))
        return;
    (void)stage_output(s, stage_ask(s, &(struct ask){0})); /* and it continues */
}

void play_result_cut(struct stage *s)
{
    play_fault(s, FAULT_BREAK, 0, 2);
}

void play_result_503(struct stage *s)
{
    play_fault(s, FAULT_STATUS, 503, 2);
}

void play_result_500(struct stage *s)
{
    play_fault(s, FAULT_STATUS, 500, 1);
}

void play_result_garbage(struct stage *s)
{
    play_fault(s, FAULT_GARBAGE, 0, 1);
}

void play_result_truncated(struct stage *s)
{
    play_fault(s, FAULT_TRUNCATED, 0, 1);
}

void play_no_outcome(struct stage *s)
{
    play_fault(s, FAULT_MUTE, 0, 1);
}

static void play_outcome(struct stage *s, const char *outcome)
{
    struct asked *a = stage_ask(s, &(struct ask){0});

    a->outcome = outcome;
    if (!stage_result(s, a))
        return;
    for (int i = 0; i < LATER && a->after == 0; i++)
        if (!stage_output(s, stage_ask(s, &(struct ask){0})))
            return;
    if (a->after > 0)
        stage_wrong(s, "a result that has an outcome handed in no more, whatever the outcome is",
                    "it came %u more times after it was answered with \"%s\"", a->after, outcome);
}

void play_late(struct stage *s)
{
    play_outcome(s, "late");
}

void play_unknown_outcome(struct stage *s)
{
    play_outcome(s, "unknown");
}

void play_unreadable(struct stage *s)
{
    struct asked *bad = stage_ask(s, &(struct ask){0});
    struct asked *good = stage_ask(s, &(struct ask){0});

    bad->refuse_output = true;
    if (!stage_output(s, good)) {
        stage_expected(s, "other results handed in without the one that is answered 422");
        return;
    }
    if (!stage_error(s, bad))
        stage_expected(s, "an error in place of a result that is answered 422 alone");
}

/* ---- pauses ---- */

static const struct call *faulted(struct stage *s)
{
    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        if (c->is_faulted)
            return c;
    }
    return NULL;
}

static const struct call *next_work(struct stage *s, const struct call *of, bool with_results)
{
    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        const struct json *results = json_get(c->body, "results");
        bool fits = with_results ? results && results->count > 0 : c->fetches;
        if (c->number > of->number && c->kind == CALL_WORK && fits)
            return c;
    }
    return NULL;
}

static void judge_pause(struct stage *s, bool with_results)
{
    const struct call *of = faulted(s);
    const struct call *next = of ? next_work(s, of, with_results) : NULL;

    if (!next || s->is_decided)
        return;
    if (next->came_at - of->ended_at < PAUSE_S * 1000 - SLACK_MS)
        stage_wrong(s, "the next call no sooner than Retry-After says: 3 s", "it came after %d ms",
                    (int)(next->came_at - of->ended_at));
}

void play_retry_after(struct stage *s)
{
    stage_fault(s, FAULT_ON_RESULTS, FAULT_STATUS, 503, PAUSE_S, 1);
    if (stage_output(s, stage_ask(s, &(struct ask){0})))
        judge_pause(s, true);
}

void play_retry_after_429(struct stage *s)
{
    stage_fault(s, FAULT_ON_WORK, FAULT_STATUS, 429, PAUSE_S, 1);
    if (!stage_output(s, stage_ask(s, &(struct ask){0})))
        return;
    if (faulted(s) && faulted(s)->open > 1)
        stage_skip(s, "it makes several calls for work at a time");
    judge_pause(s, false);
}

struct count {
    unsigned calls, open;
    int64_t first_at, last_at;
};

static struct count count_faulted(struct stage *s)
{
    struct count n = {0};

    LIST_FOREACH (l, after, &s->calls) {
        const struct call *c = CONTAINER_OF(l, struct call, link);
        if (!c->is_faulted)
            continue;
        n.calls++;
        n.open = c->open > n.open ? c->open : n.open;
        n.first_at = n.first_at ? n.first_at : c->came_at;
        n.last_at = c->came_at;
    }
    return n;
}

static bool are_enough(struct stage *s, const void *arg)
{
    (void)arg;
    return count_faulted(s).calls >= BACKOFF_CALLS;
}

void play_backoff(struct stage *s)
{
    stage_fault(s, FAULT_ON_WORK, FAULT_STATUS, 503, 0, BACKOFF_CALLS);
    if (!stage_until(s, are_enough, NULL, "the same call again, until it is answered"))
        return;
    struct count n = count_faulted(s);
    if (n.open > 1)
        stage_skip(s, "it makes several calls for work at a time");
    if (n.last_at - n.first_at < BACKOFF_MS)
        stage_wrong(s, "pauses that grow while the server cannot work", "%u calls within %d ms",
                    n.calls, (int)(n.last_at - n.first_at));
    (void)stage_output(s, stage_ask(s, &(struct ask){0}));
}
