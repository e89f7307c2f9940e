#include "base/when.h"
#include "scheduler/why.h"
#include "store/codec.h"

/* What is the case, in plain words. What to do about it: why_moves.c. */

static struct slice step_name(const struct why *y, int step)
{
    return y->workflow->steps[step].name;
}

static const struct step *step_of(const struct why *y, const struct reason *r)
{
    return &y->task->steps[r->step];
}

/* An agent's text may be long and have several lines. */
static void quote(struct buf *b, struct slice said)
{
    struct slice kept = slice_cut(said, 200);

    for (size_t i = 0; i < kept.len; i++) {
        bool shown = (unsigned char)kept.ptr[i] >= ' ';
        buf_add(b, shown ? &kept.ptr[i] : " ", 1);
    }
    if (kept.len < said.len)
        buf_str(b, "...");
}

static void say_fault(struct buf *b, const struct fault_note *n)
{
    quote(b, n->code);
    if (n->message.len)
        buf_str(b, ": ");
    quote(b, n->message);
}

static const struct retry_rule *rule_of(const struct why *y, const struct reason *r)
{
    const struct workflow_step *ws = &y->workflow->steps[r->step];

    return r->direction == DIRECTION_UNDO ? &ws->undo.retry : &ws->call.retry;
}

static uint32_t tries_of(const struct why *y, const struct reason *r)
{
    return rule_of(y, r)->attempts + rule_of(y, r)->defers;
}

static void say_ago(struct buf *b, const struct why *y, int64_t at)
{
    duration_tell(b, max_i64(0, y->facts->now - at));
    buf_str(b, " ago");
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* "step charge", or "the compensation of step charge". */
static void say_what(struct buf *b, const struct why *y, const struct reason *r, bool capital)
{
    if (r->direction == DIRECTION_UNDO)
        buf_fmt(b, "%s compensation of step %.*s", capital ? "The" : "the",
                SLICE_ARG(step_name(y, r->step)));
    else
        buf_fmt(b, "%s %.*s", capital ? "Step" : "step", SLICE_ARG(step_name(y, r->step)));
}

static void say_ended(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct task *t = y->task;

    if (r->kind == REASON_COMPENSATED) {
        buf_str(b, "The task was undone: what took effect, or may have, was compensated");
        if (t->error.code.ptr)
            buf_str(b, ". It turned back because of ");
    } else {
        buf_str(b, "The task is processed: all its steps have ended well");
        if (t->error.code.ptr)
            buf_str(b, ". Its output could not be made: ");
    }
    say_fault(b, &t->error);
    buf_byte(b, '.');
}

static void say_failed(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct step *s = step_of(y, r);

    say_what(b, y, r, true);
    if (r->kind == REASON_PIVOT_UNCLEAR) {
        buf_str(b, " is a pivot; nobody knows whether it took effect, and it has no tries left");
        if (s->error.code.ptr)
            buf_str(b, " (");
        say_fault(b, &s->error);
        buf_str(b, s->error.code.ptr ? ")." : ".");
        return;
    }
    buf_str(b, " failed for good");
    if (s->attempt > 0)
        buf_fmt(b, " after %u attempt%s", s->attempt, plural(s->attempt));
    if (s->error.code.ptr)
        buf_str(b, ": ");
    say_fault(b, &s->error);
    buf_byte(b, '.');
}

static void say_stop(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct task *t = y->task;

    if (r->kind == REASON_PIVOT_HOLDS) {
        bool open = step_is_open(step_of(y, r));
        buf_fmt(b, "The task is to be undone (");
        say_fault(b, &t->error);
        buf_fmt(b, "), but step %.*s is a pivot, and %s.", SLICE_ARG(step_name(y, r->step)),
                open ? "is at work" : "may have taken effect");
        return;
    }
    if (r->step >= 0)
        buf_fmt(b, "Step %.*s failed (", SLICE_ARG(step_name(y, r->step)));
    else
        buf_str(b, "The task is to stop (");
    say_fault(b, &t->error);
    buf_fmt(b, "), and %u other attempt%s %s still at work.", r->count, plural(r->count),
            r->count == 1 ? "is" : "are");
}

static void say_deadline(struct buf *b, const struct why *y, const struct reason *r)
{
    const char *whose =
        y->task->direction == DIRECTION_UNDO ? "The undo's complete-by" : "The task's complete-by";

    if (r->kind == REASON_DEADLINE_DUE)
        buf_fmt(b, "%s has passed.", whose);
    else if (r->kind == REASON_GRACE)
        buf_fmt(b, "%s fell into a time in which the server was away, and was put off.", whose);
    else if (r->kind == REASON_LATE)
        buf_fmt(b, "%s has passed, and the task goes on all the same.", whose);
    else if (r->kind == REASON_DEADLINE)
        buf_fmt(b, "The task stopped because its complete-by passed.");
    else
        buf_fmt(b, "%s is still to come.", whose);
}

static void say_owner(struct buf *b, const struct why *y, const struct reason *r)
{
    struct slice owner = y->facts->owner_name;

    if (r->kind == REASON_TAKING_OVER)
        buf_fmt(b, "The server was started again (the task was %.*s's), and takes it over.",
                SLICE_ARG(owner));
    else if (r->kind == REASON_OWNER_GONE)
        buf_fmt(b, "Node %.*s owns the task, and has not been heard of for too long.",
                SLICE_ARG(owner));
    else
        buf_fmt(b, "Node %.*s works on the task; what waits there is not known here.",
                SLICE_ARG(owner));
}

static void say_no_agent(struct buf *b, const struct why *y, const struct reason *r,
                         const struct agent_view *v)
{
    say_what(b, y, r, true);
    buf_fmt(b, " is ready, and no instance of agent %.*s is connected", SLICE_ARG(r->agent));
    if (y->facts->here.ptr)
        buf_fmt(b, " to this node, %.*s", SLICE_ARG(y->facts->here));
    buf_str(b, ". ");
    if (v->seen_at == 0) {
        buf_str(b, "None has called since this server started.");
    } else {
        buf_fmt(b, "The last one%s%.*s%s was heard of ", v->seen.ptr ? ", " : "",
                SLICE_ARG(v->seen), v->seen.ptr ? "," : "");
        say_ago(b, y, v->seen_at);
        buf_byte(b, '.');
    }
    if (v->alike.ptr)
        buf_fmt(b, " An agent %.*s is connected: is that the one that is meant?",
                SLICE_ARG(v->alike));
    if (y->facts->others.len > 0)
        buf_fmt(b, " Nor is one connected to another node: %.*s.", SLICE_ARG(y->facts->others));
    if (y->facts->unknown.len > 0)
        buf_fmt(b, " Agents of these nodes are not known here: %.*s.",
                SLICE_ARG(y->facts->unknown));
}

static void say_places(struct buf *b, const struct agent_view *v)
{
    if (v->places == 0)
        buf_str(b, "none of its instances asks for work");
    else
        buf_fmt(b, "all %u place%s are taken", v->places, plural(v->places));
    if (v->who.len)
        buf_fmt(b, ": %.*s", SLICE_ARG(v->who));
}

static void say_breaker(struct buf *b, const struct why *y, const struct reason *r,
                        const struct agent_view *v)
{
    say_what(b, y, r, true);
    buf_fmt(b, " is ready, and the breaker of agent %.*s ", SLICE_ARG(r->agent));
    if (r->kind == REASON_TRIALS)
        buf_str(b, "is half-open: a few other steps try whether its service is back.");
    else if (v->held_until == 0)
        buf_str(b, "was opened by hand ");
    else
        buf_str(b, "opened ");
    if (r->kind == REASON_TRIALS)
        return;
    say_ago(b, y, v->held_since);
    if (v->held_why.ptr) {
        buf_str(b, ": ");
        quote(b, v->held_why);
    }
    buf_byte(b, '.');
}

static void say_held(struct buf *b, const struct why *y, const struct reason *r,
                     const struct agent_view *v)
{
    say_what(b, y, r, true);
    if (r->kind == REASON_LIMIT) {
        buf_str(b, " is ready, and a limit is reached: ");
        quote(b, v->held_why);
        buf_byte(b, '.');
    } else {
        buf_fmt(b,
                " is ready, and the instances of agent %.*s that have free places do badly: they "
                "get trials only.",
                SLICE_ARG(r->agent));
    }
}

static void say_ready(struct buf *b, const struct why *y, const struct reason *r)
{
    struct agent_view v = {0};

    y->facts->agent(y->facts->arg, r->step, r->agent, &v);
    if (r->kind == REASON_NO_AGENT) {
        say_no_agent(b, y, r, &v);
        return;
    }
    if (r->kind == REASON_BREAKER || r->kind == REASON_TRIALS) {
        say_breaker(b, y, r, &v);
        return;
    }
    if (r->kind == REASON_LIMIT || r->kind == REASON_HEALTH) {
        say_held(b, y, r, &v);
        return;
    }
    say_what(b, y, r, true);
    if (r->kind == REASON_AGENT_AWAY) {
        buf_fmt(b,
                " is ready, and agent %.*s is connected to other nodes only: %.*s. Whether it has "
                "a place is known there.",
                SLICE_ARG(r->agent), SLICE_ARG(v.nodes));
    } else if (r->kind == REASON_STARTING) {
        buf_fmt(b, " is ready, and agent %.*s has a place for it.", SLICE_ARG(r->agent));
    } else if (r->kind == REASON_FULL) {
        buf_str(b, " is ready, but the server holds as many tasks as it takes at a time.");
    } else {
        buf_str(b, " is ready");
        if (r->kind == REASON_QUEUED)
            buf_fmt(b, " and stands behind %s%" PRIu64 " other step%s in the queue of",
                    v.ahead_at_least ? "at least " : "", v.ahead, plural(v.ahead));
        else
            buf_str(b, " and is the next for");
        buf_fmt(b, " agent %.*s; ", SLICE_ARG(r->agent));
        say_places(b, &v);
        buf_byte(b, '.');
    }
}

static void say_pulse(struct buf *b, const struct why *y, const struct reason *r,
                      const struct attempt *a)
{
    struct attempt_view v = {0};

    if (y->facts->attempt)
        y->facts->attempt(y->facts->arg, r->step, a, &v);
    if (v.heartbeat_at) {
        buf_str(b, " Its last heartbeat came ");
        say_ago(b, y, v.heartbeat_at);
        if (v.message.ptr)
            buf_fmt(b, ": %.*s", SLICE_ARG(v.message));
        if (v.progress.ptr)
            buf_fmt(b, "%s %.*s", v.message.ptr ? "," : ":", SLICE_ARG(slice_cut(v.progress, 200)));
        buf_byte(b, '.');
    } else if (v.seen_at) {
        buf_str(b, " The instance was heard of ");
        say_ago(b, y, v.seen_at);
        buf_byte(b, '.');
    }
}

static void say_open(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct attempt *a = step_open_attempt(step_of(y, r));
    uint32_t failures = step_of(y, r)->failure_count;

    say_what(b, y, r, true);
    if (a->elsewhere)
        buf_fmt(b,
                " waits for a result from elsewhere: instance %.*s of agent %.*s is done with it, "
                "attempt %u",
                SLICE_ARG(a->instance), SLICE_ARG(r->agent), a->number);
    else
        buf_fmt(b, " is at work at instance %.*s of agent %.*s, attempt %u", SLICE_ARG(a->instance),
                SLICE_ARG(r->agent), a->number);
    if (failures > 0)
        buf_fmt(b, " (%u of %u tries failed)", failures, tries_of(y, r));
    if (r->kind == REASON_STOPPING && a->elsewhere)
        buf_str(b, "; nobody can be told to stop, though the task is being undone");
    else if (r->kind == REASON_STOPPING)
        buf_str(b, "; it was told to stop, since the task is being undone");
    else if (r->kind == REASON_OVERDUE)
        buf_str(b, "; it was not answered by its complete-by");
    else if (r->kind == REASON_GRACE)
        buf_str(b, "; its complete-by fell into a time in which the server was away, and was put "
                   "off");
    buf_byte(b, '.');
    say_pulse(b, y, r, a);
}

/* The grace time of an attempt or of the task. */
static void say_grace(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->step < 0)
        say_deadline(b, y, r);
    else
        say_open(b, y, r);
}

static void say_sleeping(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->kind == REASON_NOT_BEFORE) {
        buf_str(b, "The task was submitted to begin at a later time.");
        return;
    }
    if (r->kind == REASON_IN_DOUBT) {
        buf_fmt(b,
                "An attempt of step %.*s may still be at work; it is compensated only when that "
                "cannot be any more.",
                SLICE_ARG(step_name(y, r->step)));
        return;
    }
    const struct step *s = step_of(y, r);
    say_what(b, y, r, true);
    buf_str(b, " failed (");
    say_fault(b, &s->error);
    buf_fmt(b, "), and waits for its next try, %u of %u", s->failure_count + 1, tries_of(y, r));
    buf_str(b, r->kind == REASON_DEFERRED ? ", after an extended wait." : ".");
}

static void say_after(struct buf *b, const struct why *y, const struct reason *r)
{
    uint16_t others[4];
    size_t count = reason_waits_for(y->workflow, y->task, y->reasons, (uint16_t)r->step, others,
                                    COUNT_OF(others));
    size_t shown = count < COUNT_OF(others) ? count : COUNT_OF(others);

    bool of_undo = y->workflow->steps[r->step].on_undo && !undo_is_settled(y->workflow, y->task);
    say_what(b, y, r, true);
    if (of_undo)
        buf_str(b, " is of on_undo, and");
    buf_fmt(b, " comes after %sstep%s ",
            r->kind == REASON_AFTER && !of_undo ? "" : "what is left of ", plural(count));
    for (size_t i = 0; i < shown; i++)
        buf_fmt(b, "%s%.*s",
                i == 0           ? ""
                : i + 1 == count ? " and "
                                 : ", ",
                SLICE_ARG(step_name(y, others[i])));
    if (shown < count)
        buf_fmt(b, " and %zu more", count - shown);
    buf_byte(b, '.');
}

static void say_stopped(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)r;
    buf_str(b, "The task stopped in error: ");
    say_fault(b, &y->task->error);
    buf_byte(b, '.');
}

static void say_paused(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct task *t = y->task;
    int64_t by = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
    (void)r;

    buf_str(b, "The task is paused: nothing of it starts");
    if (by != 0 && !t->deadline_passed && by > t->paused_at) {
        buf_str(b, ", and its complete-by stands still (when it goes on, it has ");
        duration_tell(b, by - t->paused_at);
        buf_str(b, " left)");
    }
    buf_byte(b, '.');
}

static void say_closed(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)r;
    buf_str(b, "The task stopped in error, and was closed: it stays as it is");
    if (y->task->closed_reason.len)
        buf_str(b, " (");
    quote(b, y->task->closed_reason);
    buf_str(b, y->task->closed_reason.len ? ")." : ".");
}

static void say_server(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->kind == REASON_STORE)
        buf_fmt(b, "The state store takes nothing at present: %.*s.",
                SLICE_ARG(slice_cut(y->facts->trouble, 300)));
    else
        buf_str(b, "The server is ending: it still takes results, and starts nothing more.");
}

static void say_more(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)y;
    buf_fmt(b, "There are %u further reasons, of less weight.", r->count);
}

void why_text(struct buf *b, const struct why *y, const struct reason *r)
{
    static void (*const say[REASON_KINDS])(struct buf *, const struct why *,
                                           const struct reason *) = {
        [REASON_PROCESSED] = say_ended,     [REASON_COMPENSATED] = say_ended,
        [REASON_CLOSED] = say_closed,       [REASON_PIVOT_UNCLEAR] = say_failed,
        [REASON_UNDO_FAILED] = say_failed,  [REASON_FAILED] = say_failed,
        [REASON_DEADLINE] = say_deadline,   [REASON_STOPPED] = say_stopped,
        [REASON_PAUSED] = say_paused,       [REASON_STORE] = say_server,
        [REASON_DRAINING] = say_server,     [REASON_OWNER_GONE] = say_owner,
        [REASON_TAKING_OVER] = say_owner,   [REASON_ELSEWHERE] = say_owner,
        [REASON_FULL] = say_ready,          [REASON_DEADLINE_DUE] = say_deadline,
        [REASON_OVERDUE] = say_open,        [REASON_HOLDING] = say_stop,
        [REASON_PIVOT_HOLDS] = say_stop,    [REASON_NO_AGENT] = say_ready,
        [REASON_BREAKER] = say_ready,       [REASON_TRIALS] = say_ready,
        [REASON_LIMIT] = say_ready,         [REASON_HEALTH] = say_ready,
        [REASON_AGENT_AWAY] = say_ready,    [REASON_IN_DOUBT] = say_sleeping,
        [REASON_DEFERRED] = say_sleeping,   [REASON_BETWEEN] = say_sleeping,
        [REASON_NOT_BEFORE] = say_sleeping, [REASON_NO_PLACE] = say_ready,
        [REASON_QUEUED] = say_ready,        [REASON_GRACE] = say_grace,
        [REASON_STOPPING] = say_open,       [REASON_UNDOING] = say_open,
        [REASON_RUNNING] = say_open,        [REASON_STARTING] = say_ready,
        [REASON_UNDO_AFTER] = say_after,    [REASON_AFTER] = say_after,
        [REASON_LATE] = say_deadline,       [REASON_COMPLETE_BY] = say_deadline,
        [REASON_MORE] = say_more,
    };
    ASSERT(r->kind < REASON_KINDS && say[r->kind]);
    say[r->kind](b, y, r);
}

static const char *stands(const struct task *t)
{
    if (t->paused_at != 0)
        return t->direction == DIRECTION_UNDO ? "is on its way back, and paused" : "is paused";
    if (t->state == TASK_ERROR)
        return t->direction == DIRECTION_UNDO ? "has stopped in error on its way back"
                                              : "has stopped in error";
    if (t->direction == DIRECTION_UNDO)
        return "is on its way back";
    return t->state == TASK_PENDING ? "is pending" : "is being processed";
}

void why_summary(struct buf *b, const struct why *y)
{
    if (!task_state_is_end(y->task->state))
        buf_fmt(b, "Task %.*s %s. ", SLICE_ARG(y->task->id), stands(y->task));
    why_text(b, y, &y->reasons->list[0]);
}
