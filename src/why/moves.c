/* What would move a task, in plain words, and the commands for it. Only reads. What is the case:
 * text.c; where the facts come from: facts.c. */

#include <stdio.h>

#include "base/when.h"
#include "tasks/family.h"
#include "why/why.h"

static struct slice step_name(const struct why *y, int step)
{
    ASSERT(step >= 0 && step < y->workflow->step_count);
    return y->workflow->steps[step].name;
}

static bool may(const struct why *y, enum event_kind verb, int step)
{
    return operator_may(y->workflow, y->task, verb, step, y->facts->now);
}

void why_unit(struct buf *b, const struct why *y, int unit)
{
    uint16_t step = unit_step(y->workflow, (uint16_t)unit);
    const struct step *s = &y->task->steps[unit];

    ASSERT(unit >= 0 && unit < task_unit_count(y->task));
    buf_slice(b, y->workflow->steps[step].name);
    if (unit != step)
        buf_fmt(b, ".%u", s->slot == SLOT_FREE ? y->task->steps[step].items->begun : s->item);
}

/* ---- commands: ids and names need no quotes; one that looks like a flag goes last ---- */

static void command(struct buf *b, const struct why *y, const char *verb, int step,
                    const char *flags)
{
    bool odd = y->task->id.len > 0 && y->task->id.ptr[0] == '-';

    buf_fmt(b, "\nintact %s", verb);
    if (!odd)
        buf_fmt(b, " %.*s", SLICE_ARG(y->task->id));
    if (step >= 0) {
        buf_str(b, " --step ");
        why_unit(b, y, step);
    }
    buf_fmt(b, "%s --reason '...'", flags);
    if (odd)
        buf_fmt(b, " -- %.*s", SLICE_ARG(y->task->id));
}

/* For the attempts so far only. */
static void command_resolve(struct buf *b, const struct why *y, int step)
{
    char flags[48];

    ASSERT(step >= 0 && step < task_unit_count(y->task));
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
        return undo ? "the compensation is retried" : "the step is retried";
    case NEXT_UNDO:
        return y->task->direction == DIRECTION_UNDO ? "the step is compensated as one in doubt"
                                                    : "the task is undone";
    case NEXT_ERROR:
        return undo || y->task->direction == DIRECTION_UNDO ? "the undo stops in error"
                                                            : "the task stops in error";
    case NEXT_ON:
        return r->step >= 0 ? "the task continues without the step"
                            : "an operator is notified, and the task continues";
    case NEXT_NONE:
        break;
    }
    UNREACHABLE();
}

static void look(struct buf *b, const struct why *y)
{
    buf_str(b, "The supervisor checks every ");
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
        buf_fmt(b, "If the task has not ended by then, %s.", then(y, r));
    } else if (r->kind == REASON_OVERDUE) {
        look(b, y);
        buf_fmt(b, ". It ends the attempt; then %s.", then(y, r));
    } else if (is_elsewhere(y, r)) {
        buf_fmt(b,
                "The task waits for a result sent with the attempt's token. If none arrives by "
                "then, the attempt is "
                "ended, and %s.",
                then(y, r));
    } else if (r->complete_by) {
        buf_fmt(b,
                "The task waits for the agent's result. If neither it nor a heartbeat arrives by "
                "then, the "
                "attempt is ended, and %s. Its complete-by is in ",
                then(y, r));
        duration_tell(b, max_i64(0, r->complete_by - y->facts->now));
        buf_byte(b, '.');
    } else {
        buf_fmt(b,
                "The task waits for the agent's result. If none arrives by then, the attempt is "
                "ended, and %s.",
                then(y, r));
    }
}

static void move_sleeping(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->kind == REASON_NOT_BEFORE) {
        buf_str(b, "The task starts by itself then.");
        return;
    }
    if (r->capped)
        buf_fmt(b, "%s complete-by comes before that. Then %s.",
                y->task->direction == DIRECTION_UNDO ? "The undo's" : "The task's", then(y, r));
    else if (r->kind == REASON_IN_DOUBT)
        buf_str(
            b,
            "The compensation starts by itself then, or earlier if the attempt returns a result.");
    else
        buf_fmt(b, "The %s is retried by itself then.",
                r->direction == DIRECTION_UNDO ? "compensation" : "step");
    if (r->kind != REASON_IN_DOUBT && may(y, EVENT_RETRY, r->step)) {
        buf_str(b, " To retry it now:");
        command(b, y, "retry", r->step, "");
    }
}

static void move_wait(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->capped)
        buf_fmt(b, "The task's complete-by comes before that. Then %s.", then(y, r));
    else
        buf_str(b, "The task continues by itself then.");
    if (may(y, EVENT_SKIP, r->step)) {
        buf_str(b, " To end the wait now:");
        command(b, y, "skip", r->step, "");
    }
}

static void move_round(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->until == 0) {
        buf_str(b, "The task continues by itself at once.");
        return;
    }
    if (r->capped)
        buf_fmt(b, "%s complete-by comes before that. Then %s.",
                y->task->direction == DIRECTION_UNDO ? "The undo's" : "The task's", then(y, r));
    else
        buf_str(b, "The round begins by itself.");
    if (may(y, EVENT_RETRY, r->step)) {
        buf_str(b, " To have it begin now:");
        command(b, y, "retry", r->step, "");
    }
}

static void move_items(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct each_spec *each = &y->workflow->steps[r->step].each;

    if (r->direction == DIRECTION_UNDO)
        buf_fmt(b, "The undo goes on when they are undone, at most %u at a time.",
                each->concurrency);
    else
        buf_fmt(b, "The step ends with the last of them. At most %u run at a time.",
                each->concurrency);
}

static void move_signal(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct signal_spec *spec = &y->workflow->steps[r->step].signal;
    bool odd = y->task->id.len > 0 && y->task->id.ptr[0] == '-';

    if (r->capped)
        buf_fmt(b, "The task's complete-by comes before that. Then %s. ", then(y, r));
    else if (r->until != 0)
        buf_fmt(b, "If it does not arrive by then, %s. ", then(y, r));
    buf_str(b, "To send it:");
    buf_fmt(b, "\nintact signal %s%.*s %.*s --data '{}'", odd ? "-- " : "", SLICE_ARG(y->task->id),
            SLICE_ARG(spec->names[0]));
    if (may(y, EVENT_SKIP, r->step))
        command(b, y, "skip", r->step, "");
}

static void move_lock(struct buf *b, const struct why *y, const struct reason *r)
{
    struct slice holder = y->facts->lock_holder;
    bool odd = holder.len > 0 && holder.ptr[0] == '-';
    (void)r;

    if (y->facts->lock_held_since == 0) {
        buf_str(b, "The task starts by itself.");
        return;
    }
    buf_str(b,
            "The task starts by itself when that one has ended, and those that waited before it.");
    if (holder.ptr)
        buf_fmt(b, " To show why that one has not:\nintact why%s %.*s", odd ? " --" : "",
                SLICE_ARG(holder));
}

/* With the number of the question that the reader sees here. */
static void command_vote(struct buf *b, const struct why *y, int step, const char *verb,
                         const char *flags)
{
    bool odd = y->task->id.len > 0 && y->task->id.ptr[0] == '-';
    const struct step *s = &y->task->steps[step];

    buf_fmt(b, "\nintact %s", verb);
    if (!odd)
        buf_fmt(b, " %.*s %.*s", SLICE_ARG(y->task->id), SLICE_ARG(step_name(y, step)));
    if (step_has_begun(s))
        buf_fmt(b, " --asking %" PRIu64, (uint64_t)s->generation + 1);
    buf_str(b, flags);
    if (odd)
        buf_fmt(b, " -- %.*s %.*s", SLICE_ARG(y->task->id), SLICE_ARG(step_name(y, step)));
}

static void move_approval(struct buf *b, const struct why *y, const struct reason *r)
{
    if (step_has_begun(&y->task->steps[r->step])
        && step_is_voted(y->workflow, y->task, (uint16_t)r->step)) {
        buf_str(b, "The task continues by itself.");
        return;
    }
    if (r->capped)
        buf_fmt(b, "The task's complete-by comes before that. Then %s. ", then(y, r));
    else if (r->until != 0)
        buf_fmt(b, "If they have not decided by then, %s. ", then(y, r));
    buf_str(b, "They decide by:");
    command_vote(b, y, r->step, "approve", "");
    command_vote(b, y, r->step, "reject", " --comment '...'");
}

static void command_why(struct buf *b, const struct why *y, const struct reason *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf unit = {0};

    why_unit(&unit, y, r->step);
    struct slice id = child_id(y->task->id, buf_view(&unit), r->count, &a);
    buf_fmt(b, "\nintact why %s%.*s", id.ptr[0] == '-' ? "-- " : "", SLICE_ARG(id));
}

static void move_child(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->kind == REASON_CHILD_STOPPED)
        buf_str(b, "The task goes on when its child does. To see what the child needs:");
    else if (r->count == 0 || !child_is_open(&y->task->steps[r->step].child))
        buf_str(b, "The task continues by itself.");
    else if (r->until != 0)
        buf_str(b, "If the child has not ended by then, it is told to stop, and undoes what it "
                   "has done. To see what it waits for:");
    else
        buf_str(b, "The task continues when the child has ended. To see what that waits for:");
    if (child_is_open(&y->task->steps[r->step].child))
        command_why(b, y, r);
    if (r->kind == REASON_CHILD_STOPPED)
        commands(b, y, r->step);
}

static void move_place(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)y;
    buf_fmt(b,
            "The step starts when %s. To make that sooner, run more instances of agent %.*s, or "
            "give each more places.",
            r->kind == REASON_QUEUED ? "the steps before it have started and a place is free"
                                     : "a place is free",
            SLICE_ARG(r->agent));
}

static void move_no_agent(struct buf *b, const struct why *y, const struct reason *r)
{
    struct agent_view v = {0};

    y->facts->agent(y->facts->arg, r->step, r->agent, &v);
    buf_fmt(b,
            "Start an instance of agent %.*s. The step starts when the instance asks for work%s.",
            SLICE_ARG(r->agent), y->facts->here.ptr ? ", at any node" : "");
    if (!v.alike.ptr || !may(y, EVENT_UNDO, -1))
        return;
    buf_fmt(
        b,
        " If you meant agent %.*s, correct the workflow, store it, cancel this task, and submit "
        "it again:",
        SLICE_ARG(v.alike));
    command(b, y, "cancel", -1, "");
}

static void move_breaker(struct buf *b, const struct why *y, const struct reason *r)
{
    struct agent_view v = {0};

    y->facts->agent(y->facts->arg, r->step, r->agent, &v);
    if (v.held_until != 0)
        buf_str(b, "Then a few steps test whether the service is available. When they succeed, all "
                   "waiting steps start. Until then, failures are not counted. Fix the service. "
                   "When it is available:");
    else
        buf_str(b, "No step starts until the breaker is closed:");
    buf_fmt(b, "\nintact agent close %.*s", SLICE_ARG(r->agent));
}

static void move_limit(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)y;
    buf_fmt(b,
            "The step starts by itself when other attempts have ended, or when the rate allows it. "
            "To show the limits:\nintact agent get %.*s",
            SLICE_ARG(r->agent));
}

static void ask_node(struct buf *b, const struct why *y, struct slice url)
{
    bool odd = y->task->id.len > 0 && y->task->id.ptr[0] == '-';

    if (!url.ptr) {
        buf_str(b, "Ask that node. To find its address:\nintact node list");
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
    buf_str(b, "Another node claims the task when the agent has a free place there. ");
    ask_node(b, y, v.url);
}

/* A step in doubt cannot be resolved before its attempts have had all their time. */
static void tell_when_resolved(struct buf *b, const struct why *y, int step)
{
    const struct step *s = &y->task->steps[step];
    int64_t at = operator_may_resolve_at(s);

    if (!step_in_doubt(s) || at <= y->facts->now)
        return;
    buf_str(b, " An attempt may still take effect: resolve is possible in ");
    duration_tell(b, at - y->facts->now);
    buf_byte(b, '.');
}

static void move_unclear(struct buf *b, const struct why *y, int step)
{
    buf_str(b,
            "Find out whether the step took effect. If it did, supply its output. If it did not, "
            "resolve it with --effect none: then the task can be undone, or the input of the step "
            "corrected. Or retry the step: its idempotency key stays the same.");
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
        buf_str(b, "No action is needed: the task was closed.");
        return;
    }
    if (r->kind == REASON_FAILED && !stopped)
        buf_str(b, "The other steps under on_undo continue; then the task stops in error. To "
                   "continue without this step:");
    else if (r->kind == REASON_UNDO_FAILED && !stopped)
        buf_str(b,
                "The other compensations continue; then the task stops in error. If you undo the "
                "step by hand, skip it:");
    else if (r->kind == REASON_UNDO_FAILED)
        buf_str(b, "Fix the cause and retry, or undo the step by hand and skip it:");
    else if (r->kind == REASON_PIVOT_UNCLEAR)
        move_unclear(b, y, r->step);
    else
        buf_str(b,
                may(y, EVENT_UNDO, -1)
                    ? "Fix the cause and retry, continue without the step, undo the task, or close "
                      "it as it is:"
                    : "Fix the cause and retry, continue without the step, or close the task as it "
                      "is:");
    if (r->kind != REASON_PIVOT_UNCLEAR)
        commands(b, y, r->step);
}

/* A processed task may still be wrong. */
static void move_processed(struct buf *b, const struct why *y, const struct reason *r)
{
    int64_t until = task_undo_until(y->workflow, y->task);
    (void)r;

    buf_str(b, "No action is needed: the task has ended.");
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
    buf_str(b, open ? "Running attempts may end. To resume the task:" : "To resume the task:");
    command(b, y, "resume", -1, "");
    if (may(y, EVENT_UNDO, -1))
        command(b, y, "undo", -1, "");
}

static void move_closed(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)r;
    buf_str(b, "No action is needed. To reopen the task:");
    command(b, y, "reopen", -1, "");
}

static void move_stopped(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)r;
    if (y->task->closed_at != 0) {
        buf_str(b, "No action is needed: the task was closed.");
        return;
    }
    if (slice_is(y->task->error.code, "overrun"))
        buf_str(b, "If the task continues unchanged, it may crash two more servers: correct its "
                   "input first, or skip the step. ");
    buf_str(b, may(y, EVENT_UNDO, -1) ? "Retry the task, undo it, or close it:"
                                      : "Retry the task, or close it:");
    commands(b, y, -1);
}

/* Reasons whose text is always the same. */
static const char *const fixed[REASON_KINDS] = {
    [REASON_COMPENSATED] =
        "No action is needed: the task has ended. To run it anyway, submit it with another id.",
    [REASON_STORE] =
        "Fix the state store; the server's log has details. The task then continues by itself.",
    [REASON_DRAINING] = "Start the server again. The task continues where it stopped.",
    [REASON_OWNER_GONE] = "Another node claims the task by itself.",
    [REASON_TAKING_OVER] = "No action is needed: the server claims the task at once.",
    [REASON_FULL] = "The server claims the task by itself when others have ended.",
    [REASON_STARTING] = "No action is needed: the step starts at once.",
    [REASON_TRIALS] =
        "When they succeed, all waiting steps start. If one fails, the breaker opens again.",
    [REASON_HEALTH] = "The step starts when another instance has a free place, or at the next "
                      "trial. To find the ill instances:\nintact agent list",
    [REASON_UNDO_AFTER] = "It starts by itself after that.",
    [REASON_AFTER] = "It starts by itself after that.",
    [REASON_LATE] = "No action is needed: this has no further effect.",
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
        buf_fmt(
            b,
            "The outcome of step %.*s decides: if it took effect, the task continues forward; if "
            "not, the task is undone.",
            SLICE_ARG(step_name(y, r->step)));
    else if (y->task->direction == DIRECTION_UNDO)
        buf_str(b, "When no attempt is running any more, the task stops in error, unless nothing "
                   "is left to undo.");
    else
        buf_str(b, "When no attempt is running any more, the task stops in error. Then an operator "
                   "can retry, skip or undo.");
}

static void move_more(struct buf *b, const struct why *y, const struct reason *r)
{
    bool odd = y->task->id.len > 0 && y->task->id.ptr[0] == '-';
    (void)r;

    buf_fmt(b, "To show all steps:\nintact get%s %.*s", odd ? " --" : "", SLICE_ARG(y->task->id));
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
        [REASON_ITEMS] = move_items,
        [REASON_BREAKER] = move_breaker,
        [REASON_LIMIT] = move_limit,
        [REASON_WAIT] = move_wait,
        [REASON_ROUND] = move_round,
        [REASON_SIGNAL] = move_signal,
        [REASON_LOCK] = move_lock,
        [REASON_APPROVAL] = move_approval,
        [REASON_CHILD] = move_child,
        [REASON_CHILD_STOPPED] = move_child,
    };
    ASSERT(r->kind < REASON_KINDS && (fixed[r->kind] || move[r->kind]));
    if (fixed[r->kind])
        buf_str(b, fixed[r->kind]);
    else
        move[r->kind](b, y, r);
}
