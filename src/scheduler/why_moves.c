#include <stdio.h>

#include "base/when.h"
#include "scheduler/why.h"

/* What would move a task, in plain words, and the commands for it. */

static struct slice step_name(const struct why *y, int step)
{
    return y->workflow->steps[step].name;
}

static bool may(const struct why *y, enum event_kind verb, int step)
{
    return operator_may(y->workflow, y->task, verb, step, y->facts->now);
}

/* ---- commands: ids and names need no quotes; one that looks like a flag goes last ---- */

static void command(struct buf *b, const struct why *y, const char *verb, int step,
                    const char *flags)
{
    bool odd = y->task->id.len > 0 && y->task->id.ptr[0] == '-';

    buf_fmt(b, "\nintact %s", verb);
    if (!odd)
        buf_fmt(b, " %.*s", SLICE_ARG(y->task->id));
    if (step >= 0)
        buf_fmt(b, " --step %.*s", SLICE_ARG(step_name(y, step)));
    buf_fmt(b, "%s --reason '...'", flags);
    if (odd)
        buf_fmt(b, " -- %.*s", SLICE_ARG(y->task->id));
}

/* For the attempts so far only. */
static void command_resolve(struct buf *b, const struct why *y, int step)
{
    char flags[48];

    (void)snprintf(flags, sizeof flags, " --effect none --attempt %" PRIu32,
                   y->task->steps[step].attempt);
    command(b, y, "resolve", step, flags);
}

static void commands(struct buf *b, const struct why *y, int step)
{
    if (may(y, EVENT_RETRY, step))
        command(b, y, "retry", step, "");
    if (step >= 0 && may(y, EVENT_CORRECT, step))
        command(b, y, "correct", step, " --input '{...}'");
    if (step >= 0 && may(y, EVENT_SUPPLY, step))
        command(b, y, "supply", step, " --output '{}'");
    if (step >= 0 && may(y, EVENT_RESOLVE, step))
        command_resolve(b, y, step);
    if (step >= 0 && may(y, EVENT_SKIP, step))
        command(b, y, "skip", step, "");
    if (may(y, EVENT_UNDO, -1))
        command(b, y, "undo", -1, "");
    if (may(y, EVENT_CLOSE, -1))
        command(b, y, "close", -1, "");
}

/* ---- what happens then ---- */

static const char *then(const struct why *y, const struct reason *r)
{
    bool undo = r->direction == DIRECTION_UNDO;

    switch (r->next) {
    case NEXT_TRY:
        return "it is tried again";
    case NEXT_UNDO:
        return y->task->direction == DIRECTION_UNDO ? "it is compensated, as one in doubt"
                                                    : "the task is undone";
    case NEXT_ERROR:
        return undo || y->task->direction == DIRECTION_UNDO
                   ? "the task stops in error, on its way back"
                   : "the task stops in error";
    case NEXT_ON:
        return r->step >= 0 ? "the task goes on without it"
                            : "a person is told, and the task goes on";
    case NEXT_NONE:
        break;
    }
    UNREACHABLE();
}

static void look(struct buf *b, const struct why *y)
{
    buf_str(b, "The supervisor looks every ");
    duration_tell(b, y->facts->scan_ms);
}

static bool is_elsewhere(const struct why *y, const struct reason *r)
{
    const struct attempt *a = r->step < 0 ? NULL : step_open_attempt(&y->task->steps[r->step]);

    return a && a->elsewhere;
}

static void move_open(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->kind == REASON_GRACE && r->step < 0) {
        buf_fmt(b, "Its end. If it has not ended by then, %s.", then(y, r));
    } else if (r->kind == REASON_OVERDUE) {
        look(b, y);
        buf_fmt(b, ", and gives the attempt up; then %s.", then(y, r));
    } else if (is_elsewhere(y, r)) {
        buf_fmt(b,
                "Its result, from whoever has the token of the attempt. If none comes by then, the "
                "attempt is given up, and %s.",
                then(y, r));
    } else if (r->complete_by) {
        buf_str(b, "The answer of its agent. If neither that nor a heartbeat comes by then, the "
                   "attempt is given up, and ");
        buf_fmt(b, "%s. Its complete-by is ", then(y, r));
        duration_tell(b, max_i64(0, r->complete_by - y->facts->now));
        buf_str(b, " away.");
    } else {
        buf_fmt(b,
                "The answer of its agent. If none comes by then, the attempt is given up, and %s.",
                then(y, r));
    }
}

static void move_sleeping(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->kind == REASON_NOT_BEFORE) {
        buf_str(b, "It begins by itself then.");
        return;
    }
    if (r->capped)
        buf_fmt(b, "%s complete-by comes before that; then %s.",
                y->task->direction == DIRECTION_UNDO ? "The undo's" : "The task's", then(y, r));
    else if (r->kind == REASON_IN_DOUBT)
        buf_str(
            b, "It is compensated by itself then, or sooner if the attempt is answered after all.");
    else
        buf_str(b, "It is tried again by itself then.");
    if (r->kind != REASON_IN_DOUBT && may(y, EVENT_RETRY, r->step)) {
        buf_str(b, " To try it now:");
        command(b, y, "retry", r->step, "");
    }
}

static void move_place(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)y;
    buf_fmt(b,
            "It starts when %s. More instances of agent %.*s, or more places of each, make that "
            "sooner.",
            r->kind == REASON_QUEUED ? "those before it have found a place" : "a place is free",
            SLICE_ARG(r->agent));
}

static void move_no_agent(struct buf *b, const struct why *y, const struct reason *r)
{
    struct agent_view v = {0};

    y->facts->agent(y->facts->arg, r->step, r->agent, &v);
    buf_fmt(b, "Start an instance of agent %.*s. The step starts when it asks for work%s.",
            SLICE_ARG(r->agent), y->facts->here.ptr ? ", whichever node it calls" : "");
    if (!v.alike.ptr || !may(y, EVENT_UNDO, -1))
        return;
    buf_fmt(b,
            " If agent %.*s is meant: correct the workflow, store it, take this task back, and "
            "submit it again.",
            SLICE_ARG(v.alike));
    command(b, y, "cancel", -1, "");
}

static void move_breaker(struct buf *b, const struct why *y, const struct reason *r)
{
    struct agent_view v = {0};

    y->facts->agent(y->facts->arg, r->step, r->agent, &v);
    if (v.held_until != 0)
        buf_str(b, "Then a few steps try whether its service is back; when they succeed, all that "
                   "waits starts at once. No failure counts until then. Mend the service; once it "
                   "is back:");
    else
        buf_str(b, "Nothing starts until somebody closes it:");
    buf_fmt(b, "\nintact agent close %.*s", SLICE_ARG(r->agent));
}

static void move_limit(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)y;
    buf_fmt(b,
            "It starts by itself when others have ended, or the rate has room. To look at the "
            "limits:\nintact agent get %.*s",
            SLICE_ARG(r->agent));
}

static void ask_node(struct buf *b, const struct why *y, struct slice url)
{
    bool odd = y->task->id.len > 0 && y->task->id.ptr[0] == '-';

    if (!url.ptr) {
        buf_str(b, "Ask that node. To find it:\nintact node list");
        return;
    }
    buf_fmt(b, "Ask that node:\nintact why --server %.*s%s %.*s", SLICE_ARG(url), odd ? " --" : "",
            SLICE_ARG(y->task->id));
}

static void move_elsewhere(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)r;
    ask_node(b, y, y->facts->owner_url);
}

static void move_agent_away(struct buf *b, const struct why *y, const struct reason *r)
{
    struct agent_view v = {0};

    y->facts->agent(y->facts->arg, r->step, r->agent, &v);
    buf_str(b, "Another node takes the task as soon as its agent has a place. ");
    ask_node(b, y, v.url);
}

/* A step in doubt cannot be resolved before its attempts have had all their time. */
static void tell_when_resolved(struct buf *b, const struct why *y, int step)
{
    const struct step *s = &y->task->steps[step];
    int64_t at = operator_may_resolve_at(s);

    if (!step_in_doubt(s) || at <= y->facts->now)
        return;
    buf_str(b, " That it took no effect can be said in ");
    duration_tell(b, at - y->facts->now);
    buf_str(b, " (resolve): until then it may.");
}

static void move_unclear(struct buf *b, const struct why *y, int step)
{
    buf_str(b,
            "Find out. If it took effect, take it for done, with what it would have answered "
            "(supply); if it did not, say so (resolve), and the task can be undone, or its input "
            "corrected. Or try it again: its idempotency key is the same.");
    tell_when_resolved(b, y, step);
    if (may(y, EVENT_RETRY, step))
        command(b, y, "retry", step, "");
    if (may(y, EVENT_SUPPLY, step))
        command(b, y, "supply", step, " --output '{}'");
    if (may(y, EVENT_RESOLVE, step))
        command_resolve(b, y, step);
    if (may(y, EVENT_CLOSE, -1))
        command(b, y, "close", -1, "");
}

static void move_failed(struct buf *b, const struct why *y, const struct reason *r)
{
    bool stopped = y->task->state == TASK_ERROR;

    if (y->task->closed_at != 0) {
        buf_str(b, "Nothing: the task was closed.");
        return;
    }
    if (r->kind == REASON_FAILED && !stopped)
        buf_str(b, "The other steps of on_undo go on; then the task stops in error. To do without "
                   "it:");
    else if (r->kind == REASON_UNDO_FAILED && !stopped)
        buf_str(b,
                "The other compensations go on; then the task stops in error. Once it was undone "
                "by hand:");
    else if (r->kind == REASON_UNDO_FAILED)
        buf_str(b, "Mend the cause and try again; or undo it by hand, and say so:");
    else if (r->kind == REASON_PIVOT_UNCLEAR)
        move_unclear(b, y, r->step);
    else
        buf_str(b,
                may(y, EVENT_UNDO, -1)
                    ? "Mend the cause and try again, go on without the step, or undo the task; or "
                      "leave it as it is, and close it:"
                    : "Mend the cause and try again, or go on without the step; or leave it as "
                      "it is, and close it:");
    if (r->kind != REASON_PIVOT_UNCLEAR)
        commands(b, y, r->step);
}

/* A processed task may still be wrong. */
static void move_processed(struct buf *b, const struct why *y, const struct reason *r)
{
    int64_t until = task_undo_until(y->workflow, y->task);
    (void)r;

    buf_str(b, "Nothing: it has ended.");
    if (!may(y, EVENT_UNDO, -1))
        return;
    buf_str(b, " It can be undone");
    if (until != 0) {
        buf_str(b, " for another ");
        duration_tell(b, until - y->facts->now);
    }
    buf_byte(b, ':');
    command(b, y, "undo", -1, "");
}

static void move_paused(struct buf *b, const struct why *y, const struct reason *r)
{
    bool open = false;
    (void)r;

    for (uint16_t i = 0; i < y->task->step_count; i++)
        open |= step_is_open(&y->task->steps[i]);
    buf_str(b, open ? "What is at work may end. To let the task go on:" : "To let it go on:");
    command(b, y, "resume", -1, "");
    if (may(y, EVENT_UNDO, -1))
        command(b, y, "undo", -1, "");
}

static void move_closed(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)r;
    buf_str(b, "Nothing, unless it is opened again:");
    command(b, y, "reopen", -1, "");
}

static void move_stopped(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)r;
    if (y->task->closed_at != 0) {
        buf_str(b, "Nothing: the task was closed.");
        return;
    }
    if (slice_is(y->task->error.code, "overrun"))
        buf_str(b, "If it goes on as it is, it may end two more servers: correct its input before, "
                   "or do without the step. ");
    buf_str(b, may(y, EVENT_UNDO, -1) ? "Let it go on, or undo it; or close it:"
                                      : "Let it go on, or close it:");
    commands(b, y, -1);
}

/* Reasons whose text is always the same. */
static const char *const fixed[REASON_KINDS] = {
    [REASON_COMPENSATED] =
        "Nothing: it has ended. If it is wanted after all, submit it under another id.",
    [REASON_STORE] =
        "Mend the store, as the message and the server's log say; all goes on by itself then.",
    [REASON_DRAINING] = "Start the server again: the task goes on where it stands.",
    [REASON_OWNER_GONE] = "Another node takes it over by itself.",
    [REASON_TAKING_OVER] = "Nothing needs to be done: it is taken over at once.",
    [REASON_FULL] = "It is taken up by itself when others have ended.",
    [REASON_STARTING] = "Nothing needs to be done: it starts at once.",
    [REASON_TRIALS] =
        "When they succeed, all that waits starts at once; if one fails, the breaker opens again.",
    [REASON_HEALTH] =
        "It starts when another instance has a free place, or at the next trial. Look "
        "after those that do badly:\nintact agent list",
    [REASON_UNDO_AFTER] = "It starts by itself when they have ended.",
    [REASON_AFTER] = "It starts by itself when they have ended.",
    [REASON_LATE] = "Nothing more comes of that.",
};

static void move_deadline(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->kind == REASON_DEADLINE_DUE) {
        look(b, y);
        buf_fmt(b, "; then %s.", then(y, r));
    } else {
        buf_fmt(b, "If the task has not ended by then, %s.", then(y, r));
    }
}

static void move_stop(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->kind == REASON_PIVOT_HOLDS)
        buf_fmt(b,
                "What becomes of step %.*s. If it took effect, the task goes forward; if not, it "
                "is undone.",
                SLICE_ARG(step_name(y, r->step)));
    else if (y->task->direction == DIRECTION_UNDO)
        buf_str(b, "When that has answered, or its complete-by has passed, the task stops in "
                   "error, unless nothing is left to undo.");
    else
        buf_str(b, "When that has answered, or its complete-by has passed, the task stops in "
                   "error; then an operator can retry, skip or undo.");
}

static void move_more(struct buf *b, const struct why *y, const struct reason *r)
{
    bool odd = y->task->id.len > 0 && y->task->id.ptr[0] == '-';
    (void)r;

    buf_fmt(b, "To see all steps:\nintact get%s %.*s", odd ? " --" : "", SLICE_ARG(y->task->id));
}

void why_moves(struct buf *b, const struct why *y, const struct reason *r)
{
    static void (*const move[REASON_KINDS])(struct buf *, const struct why *,
                                            const struct reason *) = {
        [REASON_PROCESSED] = move_processed,
        [REASON_PIVOT_UNCLEAR] = move_failed,
        [REASON_UNDO_FAILED] = move_failed,
        [REASON_PAUSED] = move_paused,
        [REASON_CLOSED] = move_closed,
        [REASON_FAILED] = move_failed,
        [REASON_DEADLINE] = move_stopped,
        [REASON_STOPPED] = move_stopped,
        [REASON_DEADLINE_DUE] = move_deadline,
        [REASON_ELSEWHERE] = move_elsewhere,
        [REASON_OVERDUE] = move_open,
        [REASON_HOLDING] = move_stop,
        [REASON_PIVOT_HOLDS] = move_stop,
        [REASON_NO_AGENT] = move_no_agent,
        [REASON_AGENT_AWAY] = move_agent_away,
        [REASON_IN_DOUBT] = move_sleeping,
        [REASON_DEFERRED] = move_sleeping,
        [REASON_BETWEEN] = move_sleeping,
        [REASON_NOT_BEFORE] = move_sleeping,
        [REASON_NO_PLACE] = move_place,
        [REASON_QUEUED] = move_place,
        [REASON_GRACE] = move_open,
        [REASON_STOPPING] = move_open,
        [REASON_UNDOING] = move_open,
        [REASON_RUNNING] = move_open,
        [REASON_COMPLETE_BY] = move_deadline,
        [REASON_MORE] = move_more,
        [REASON_BREAKER] = move_breaker,
        [REASON_LIMIT] = move_limit,
    };
    ASSERT(r->kind < REASON_KINDS && (fixed[r->kind] || move[r->kind]));
    if (fixed[r->kind])
        buf_str(b, fixed[r->kind]);
    else
        move[r->kind](b, y, r);
}
