/* When an attempt has been silent for too long. Posts an event, decides nothing:
 * scheduler/commands.c does. What heartbeats say is in pulses.c. */

#include "tasks/silence.h"

#include <stdlib.h>

#include "tasks/task_inbox.h"

/*
 * Limits how long an attempt may be silent: the `heartbeat` of its step. The deadline is only in
 * the memory of the task's owner, so a heartbeat costs no write; one heap holds the deadlines, so
 * steps without one cost nothing. Time without contact (the server was down, another node had the
 * task) does not count: then all deadlines start again, with a grace time, because an agent may
 * have to reconnect first.
 */

enum {
    CHECK_MS = 1000, /* interval of checks, so that a pause of this process shows ... */
    GAP_MS = 3000,   /* ... which is assumed after this long without a check */
};

static const struct attempt *attempt_of(const struct live_step *ls)
{
    return step_open_attempt(&ls->live->task.steps[ls->step]);
}

/* 0: no limit. */
static int64_t allowed_ms(const struct live_step *ls)
{
    const struct workflow_step *ws = &ls->live->definition->workflow.steps[ls->step];
    const struct attempt *a = attempt_of(ls);

    if (!a || a->elsewhere)
        return 0;
    return a->direction == DIRECTION_UNDO ? ws->undo.heartbeat_ms : ws->call.heartbeat_ms;
}

/* The node that began the attempt may have had a clock ahead of ours: the limit counts from the
 * attempt's start at the earliest. */
static void expect_by(struct tasks *ts, struct live_step *ls, int64_t at)
{
    at = max_i64(at, attempt_of(ls)->started_at + allowed_ms(ls));
    if (ts->silences.len == 0)
        ts->silences_seen_at = tasks_now(ts);
    heap_remove(&ts->silences, &ls->silence);
    heap_push(&ts->silences, &ls->silence, at);
    ls->silent_by = at;
    ls->last_call = false;
}

void silence_begin(struct tasks *ts, struct live_step *ls)
{
    int64_t ms = allowed_ms(ls);

    if (ms > 0)
        expect_by(ts, ls, tasks_now(ts) + ms);
}

void silence_begin_anew(struct tasks *ts, struct live_step *ls)
{
    int64_t ms = allowed_ms(ls);

    if (ms > 0)
        expect_by(ts, ls, tasks_now(ts) + max_i64(ms, ts->grace_ms));
}

/* A heartbeat never shortens the grace time. */
void silence_broken(struct tasks *ts, struct live_step *ls)
{
    int64_t ms = allowed_ms(ls);

    if (ms > 0)
        expect_by(ts, ls, max_i64(tasks_now(ts) + ms, ls->silent_by));
}

void silence_end(struct tasks *ts, struct live_step *ls)
{
    heap_remove(&ts->silences, &ls->silence);
    ls->silent_by = 0;
    ls->last_call = false;
}

bool silence_is_too_long(const struct tasks *ts, const struct live_step *ls)
{
    return ls->silent_by != 0 && ls->silent_by <= tasks_now(ts);
}

static void begin_all_anew(struct tasks *ts)
{
    size_t count = ts->silences.len;
    struct live_step **all = malloc((count + 1) * sizeof(struct live_step *));

    ASSERT(all);
    for (size_t i = 0; i < count; i++)
        all[i] = CONTAINER_OF(ts->silences.nodes[i], struct live_step, silence);
    for (size_t i = 0; i < count; i++)
        silence_begin_anew(ts, all[i]);
    free(all);
}

/* Heartbeats may be in a socket, unread: a silent attempt gets one more round of the event loop. */
static void is_due(struct tasks *ts, struct live_step *ls, int64_t now)
{
    const struct attempt *a = attempt_of(ls);

    if (!ls->last_call) {
        ls->last_call = true;
        heap_push(&ts->silences, &ls->silence, now + 1);
        return;
    }
    const struct event e = {.kind = EVENT_SILENCE,
                            .step = ls->step,
                            .direction = a->direction,
                            .attempt = a->number};
    inbox_post_event(ts, ls->live->id, &e);
}

void silence_check(struct tasks *ts, int64_t now)
{
    if (ts->silences.len == 0)
        return;
    if (now - ts->silences_seen_at > GAP_MS)
        begin_all_anew(ts);
    ts->silences_seen_at = now;
    for (struct heap_node *n = NULL; (n = heap_min(&ts->silences)) && n->key <= now;) {
        heap_remove(&ts->silences, n);
        is_due(ts, CONTAINER_OF(n, struct live_step, silence), now);
    }
}

int64_t silence_next(const struct tasks *ts)
{
    const struct heap_node *n = heap_min(&ts->silences);

    return n ? min_i64(n->key, ts->silences_seen_at + CHECK_MS) : 0;
}
