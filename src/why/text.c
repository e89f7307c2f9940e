/* What is the case with a task, in plain words. Only reads; the reasons and their order are made in
 * core/reason.c. What to do about it: moves.c. */

#include "base/when.h"
#include "store/codec/codec.h"
#include "tasks/family.h"
#include "why/why.h"

static struct slice step_name(const struct why *y, int step)
{
    ASSERT(step >= 0 && step < y->workflow->step_count);
    return y->workflow->steps[step].name;
}

static const struct step *step_of(const struct why *y, const struct reason *r)
{
    ASSERT(r->step >= 0 && r->step < task_unit_count(y->task));
    return &y->task->steps[r->step];
}

/* An agent's text may be long and have several lines. */
static void quote(struct buf *b, struct slice text)
{
    struct slice kept = slice_cut(text, 200);

    for (size_t i = 0; i < kept.len; i++) {
        bool shown = (unsigned char)kept.ptr[i] >= ' ';
        buf_add(b, shown ? &kept.ptr[i] : " ", 1);
    }
    if (kept.len < text.len)
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
        buf_fmt(b, "%s compensation of step ", capital ? "The" : "the");
    else
        buf_str(b, capital ? "Step " : "step ");
    why_unit(b, y, r->step);
}

static void say_ended(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct task *t = y->task;

    if (r->kind == REASON_COMPENSATED) {
        buf_str(b, "The task was undone: each step that took effect, or may have, was compensated");
        if (t->error.code.ptr)
            buf_str(b, ". The cause of the undo: ");
    } else {
        buf_str(b, "The task is processed: all its steps have ended");
        if (t->error.code.ptr)
            buf_str(b, ". Its output could not be computed: ");
    }
    say_fault(b, &t->error);
    buf_byte(b, '.');
}

static void say_failed(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct step *s = step_of(y, r);

    say_what(b, y, r, true);
    if (r->kind == REASON_PIVOT_UNCLEAR) {
        buf_str(b, " is a pivot. It is unknown whether it took effect, and no attempts are left");
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
        buf_fmt(b, "The task must be undone (");
        say_fault(b, &t->error);
        buf_fmt(b, "), but step %.*s is a pivot and %s.", SLICE_ARG(step_name(y, r->step)),
                open ? "is running" : "may have taken effect");
        return;
    }
    if (r->step >= 0)
        buf_fmt(b, "Step %.*s failed (", SLICE_ARG(step_name(y, r->step)));
    else
        buf_str(b, "The task must stop (");
    say_fault(b, &t->error);
    buf_fmt(b, "), and %u other attempt%s %s still running.", r->count, plural(r->count),
            r->count == 1 ? "is" : "are");
}

static void say_deadline(struct buf *b, const struct why *y, const struct reason *r)
{
    const char *whose =
        y->task->direction == DIRECTION_UNDO ? "The undo's complete-by" : "The task's complete-by";

    if (r->kind == REASON_DEADLINE_DUE)
        buf_fmt(b, "%s has passed.", whose);
    else if (r->kind == REASON_GRACE)
        buf_fmt(b, "%s passed while the server was down, and was extended.", whose);
    else if (r->kind == REASON_LATE)
        buf_fmt(b, "%s has passed. The task continues.", whose);
    else if (r->kind == REASON_DEADLINE)
        buf_fmt(b, "The task stopped in error because its complete-by passed.");
    else
        buf_fmt(b, "%s has not passed yet.", whose);
}

static void say_owner(struct buf *b, const struct why *y, const struct reason *r)
{
    struct slice owner = y->facts->owner_name;

    if (r->kind == REASON_TAKING_OVER)
        buf_fmt(b, "The server was restarted. It claims the task from its previous process, %.*s.",
                SLICE_ARG(owner));
    else if (r->kind == REASON_OWNER_GONE)
        buf_fmt(b, "Node %.*s owns the task, but its lease has expired.", SLICE_ARG(owner));
    else
        buf_fmt(b, "Node %.*s owns the task. Only that node knows what the task waits for.",
                SLICE_ARG(owner));
}

static void say_no_agent(struct buf *b, const struct why *y, const struct reason *r,
                         const struct agent_view *v)
{
    say_what(b, y, r, true);
    buf_fmt(b, " is ready, but no instance of agent %.*s is connected", SLICE_ARG(r->agent));
    if (y->facts->here.ptr)
        buf_fmt(b, " to this node, %.*s", SLICE_ARG(y->facts->here));
    buf_str(b, ". ");
    if (v->seen_at == 0) {
        buf_str(b, "None has connected since this server started.");
    } else {
        buf_fmt(b, "The last one%s%.*s%s was seen ", v->seen.ptr ? ", " : "", SLICE_ARG(v->seen),
                v->seen.ptr ? "," : "");
        say_ago(b, y, v->seen_at);
        buf_byte(b, '.');
    }
    if (v->alike.ptr)
        buf_fmt(b, " Agent %.*s is connected. Check the spelling of the name.",
                SLICE_ARG(v->alike));
    if (y->facts->others.len > 0)
        buf_fmt(b, " Other nodes have no instance either: %.*s.", SLICE_ARG(y->facts->others));
    if (y->facts->unknown.len > 0)
        buf_fmt(b, " These nodes do not publish their agents: %.*s.", SLICE_ARG(y->facts->unknown));
}

static void say_places(struct buf *b, const struct agent_view *v)
{
    if (v->places == 0)
        buf_str(b, "none of its instances asks for work");
    else if (v->places == 1)
        buf_str(b, "its only place is taken");
    else
        buf_fmt(b, "all %u places are taken", v->places);
    if (v->who.len)
        buf_fmt(b, ": %.*s", SLICE_ARG(v->who));
}

static void say_breaker(struct buf *b, const struct why *y, const struct reason *r,
                        const struct agent_view *v)
{
    say_what(b, y, r, true);
    buf_fmt(b, " is ready, but the breaker of agent %.*s ", SLICE_ARG(r->agent));
    if (r->kind == REASON_TRIALS)
        buf_str(b, "is half-open: a few other steps test whether its service is available.");
    else if (v->held_until == 0)
        buf_str(b, "was opened by an operator ");
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
        buf_str(b, " is ready, but a limit is reached: ");
        quote(b, v->held_why);
        buf_byte(b, '.');
    } else {
        buf_fmt(
            b,
            " is ready, but the instances of agent %.*s that have free places are ill: they get "
            "only trials.",
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
                " is ready, but agent %.*s is connected only to other nodes: %.*s. Only they know "
                "whether it has a free place.",
                SLICE_ARG(r->agent), SLICE_ARG(v.nodes));
    } else if (r->kind == REASON_STARTING) {
        buf_fmt(b, " is ready, and agent %.*s has a free place.", SLICE_ARG(r->agent));
    } else if (r->kind == REASON_FULL) {
        buf_str(b, " is ready, but the server holds its maximum number of tasks.");
    } else {
        buf_str(b, " is ready");
        if (r->kind == REASON_QUEUED)
            buf_fmt(b, ", but %s%" PRIu64 " other step%s come%s before it in the queue of",
                    v.ahead_at_least ? "at least " : "", v.ahead, plural(v.ahead),
                    v.ahead == 1 ? "s" : "");
        else
            buf_str(b, " and is the next in the queue of");
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
        buf_str(b, " Its last heartbeat was ");
        say_ago(b, y, v.heartbeat_at);
        if (v.message.ptr)
            buf_fmt(b, ": %.*s", SLICE_ARG(v.message));
        if (v.progress.ptr)
            buf_fmt(b, "%s %.*s", v.message.ptr ? "," : ":", SLICE_ARG(slice_cut(v.progress, 200)));
        buf_byte(b, '.');
    } else if (v.seen_at) {
        buf_str(b, " The instance was last seen ");
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
                " waits for a result from elsewhere: instance %.*s of agent %.*s has finished its "
                "part, attempt %u",
                SLICE_ARG(a->instance), SLICE_ARG(r->agent), a->number);
    else
        buf_fmt(b, " is running on instance %.*s of agent %.*s, attempt %u", SLICE_ARG(a->instance),
                SLICE_ARG(r->agent), a->number);
    if (a->round > 0)
        buf_fmt(b, " of round %u", a->round);
    if (failures > 0)
        buf_fmt(b, " (%u of %u tries failed)", failures, tries_of(y, r));
    if (r->kind == REASON_STOPPING && a->elsewhere)
        buf_str(b, "; it cannot be stopped, although the task is being undone");
    else if (r->kind == REASON_STOPPING)
        buf_str(b, "; it was asked to stop because the task is being undone");
    else if (r->kind == REASON_OVERDUE)
        buf_str(b, "; it is overdue");
    else if (r->kind == REASON_GRACE)
        buf_str(b, "; its complete-by passed while the server was down, and was extended");
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
        buf_str(b, "The task was submitted with a start time that has not come yet.");
        return;
    }
    if (r->kind == REASON_IN_DOUBT) {
        buf_str(b, "An attempt of step ");
        why_unit(b, y, r->step);
        buf_str(b, " may still be running. The step is compensated when that is no longer "
                   "possible.");
        return;
    }
    const struct step *s = step_of(y, r);
    say_what(b, y, r, true);
    buf_str(b, " failed (");
    say_fault(b, &s->error);
    buf_fmt(b, ") and waits for its next attempt, %u of %u", s->failure_count + 1, tries_of(y, r));
    buf_str(b, r->kind == REASON_DEFERRED ? ", after an extended wait." : ".");
}

static void say_wait(struct buf *b, const struct why *y, const struct reason *r)
{
    int64_t ms = y->workflow->steps[r->step].wait_ms;

    say_what(b, y, r, true);
    if (r->until == 0) {
        buf_str(b, step_has_begun(step_of(y, r)) ? " has waited; the task is about to continue."
                                                 : " is about to begin its wait.");
        return;
    }
    buf_str(b, " waits ");
    if (ms > 0) {
        buf_str(b, "for ");
        duration_tell(b, ms);
    } else {
        buf_str(b, "until ");
        time_write(b, step_of(y, r)->wait_until);
    }
    buf_byte(b, '.');
}

/* For a step between two rounds, or whose last answer is judged next. */
static void say_round(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct step *s = step_of(y, r);

    say_what(b, y, r, true);
    if (r->until == 0) {
        buf_fmt(b,
                " has an answer in round %u; the server finds next whether it satisfies the step.",
                r->count);
        return;
    }
    buf_fmt(b, " waits for round %u: the answer of round %u did not satisfy it. ", r->count,
            r->count - 1);
    if (s->repeat_until > r->until) {
        buf_str(b, "The first round that begins after ");
        time_write(b, s->repeat_until);
        buf_str(b, " is the last.");
    } else {
        buf_str(b, "It is the last round.");
    }
}

/* Those that came, by their names, and are kept. If the step waits already, they are not what it
 * waits for; those that came after its complete-by are late and do not count. */
static uint32_t kept_of(const struct why *y, const struct workflow_step *ws, const struct step *s)
{
    uint32_t count = 0;

    for (uint16_t i = 0; i < y->task->signal_count; i++) {
        const struct signal *sig = &y->task->signals[i];
        bool is_late = step_has_begun(s) && s->complete_by != 0 && sig->at > s->complete_by;
        count += sig->state == SIGNAL_KEPT && !is_late && step_takes_signal(ws, sig->name);
    }
    return count;
}

static void say_items(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct step *s = step_of(y, r);
    const struct items *in = s->items;
    uint32_t left = in->list.count - in->begun;

    say_what(b, y, r, true);
    if (s->begun_at == 0) {
        buf_str(b, " is about to begin with the items of its list.");
        return;
    }
    if (r->direction == DIRECTION_UNDO) {
        uint32_t to_undo = in->to_undo + in->tally.to_undo;
        buf_fmt(b, " goes through its items, the last first: %u of %u %s still to be undone, %u ",
                to_undo, in->list.count, to_undo == 1 ? "is" : "are", in->tally.open);
        buf_str(b, in->tally.open == 1 ? "is running." : "are running.");
        return;
    }
    buf_fmt(b, " works through a list: %u of %u item%s ended, %u %s running, and %u %s not begun.",
            r->count, in->list.count, in->list.count == 1 ? " has" : "s have", in->tally.open,
            in->tally.open == 1 ? "is" : "are", left, left == 1 ? "has" : "have");
}

static void say_signal(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct workflow_step *ws = &y->workflow->steps[r->step];
    bool waits = step_has_begun(step_of(y, r));
    uint32_t kept = kept_of(y, ws, step_of(y, r));

    say_what(b, y, r, true);
    buf_str(b, waits ? " waits for the signal " : " is about to wait for the signal ");
    for (uint16_t i = 0; i < ws->signal.count; i++)
        buf_fmt(b, "%s%.*s",
                i == 0                      ? ""
                : i + 1 == ws->signal.count ? " or "
                                            : ", ",
                SLICE_ARG(ws->signal.names[i]));
    if (kept > 0)
        buf_fmt(b, "; %" PRIu32 " signal%s arrived%s", kept, plural(kept),
                !waits      ? ""
                : kept == 1 ? " that does not match"
                            : " that do not match");
    buf_byte(b, '.');
}

static void say_lock(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct facts *f = y->facts;
    uint64_t n = f->lock_others;
    (void)r;

    buf_str(b, "The task waits for lock ");
    quote(b, y->task->lock);
    if (f->lock_held_since == 0) {
        buf_str(b, ", which has room: it is about to take it.");
        return;
    }
    if (f->lock_holder.ptr)
        buf_fmt(b, ", which task %.*s", SLICE_ARG(f->lock_holder));
    else
        buf_str(b, ", which another task");
    if (n > 0)
        buf_fmt(b, " and %" PRIu64 " other%s hold.", n, plural(n));
    else
        buf_str(b, " holds.");
}

/* A task of its own, with an id. */
static void say_child(struct buf *b, const struct why *y, const struct reason *r)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf unit = {0};
    const struct step *s = step_of(y, r);

    if (r->count == 0 || (r->direction == DIRECTION_FORWARD && s->begun_at == 0)) {
        say_what(b, y, r, true);
        buf_str(b, " is about to start its child, a task of its own.");
        return;
    }
    why_unit(&unit, y, r->step);
    struct slice id = child_id(y->task->id, buf_view(&unit), r->count, &a);
    if (r->kind == REASON_CHILD) {
        buf_fmt(b, "Step %.*s waits for %s its child, task %.*s.", SLICE_ARG(buf_view(&unit)),
                r->direction == DIRECTION_UNDO ? "the undo of" : "the end of", SLICE_ARG(id));
        return;
    }
    buf_fmt(b, "The child of step %.*s, task %.*s, stopped in error", SLICE_ARG(buf_view(&unit)),
            SLICE_ARG(id));
    if (s->error.message.ptr) { /* it begins with the child's code */
        buf_str(b, " (");
        quote(b, s->error.message);
        buf_byte(b, ')');
    }
    buf_byte(b, '.');
}

/* "finance", "finance or board" */
static void say_groups(struct buf *b, const struct slice *groups, uint16_t count)
{
    for (uint16_t i = 0; i < count; i++)
        buf_fmt(b, "%s%.*s", i == 0 ? "" : i + 1 == count ? " or " : ", ", SLICE_ARG(groups[i]));
}

/* "1 of 2 agreed (Ann, 2 h ago)" */
static void say_votes(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct task *t = y->task;
    const char *before = " (";

    buf_fmt(b, "; %" PRIu32 " of %d agreed", r->count,
            (int)y->workflow->steps[r->step].approve.people);
    for (uint16_t i = 0; i < t->vote_count; i++) {
        if (t->votes[i].step != r->step || !t->votes[i].agrees)
            continue;
        buf_str(b, before);
        quote(b, t->votes[i].person);
        buf_str(b, ", ");
        say_ago(b, y, t->votes[i].at);
        before = "; ";
    }
    if (r->count > 0)
        buf_byte(b, ')');
}

static void say_approval(struct buf *b, const struct why *y, const struct reason *r)
{
    const struct workflow_step *ws = &y->workflow->steps[r->step];
    const struct approve_spec *spec = &ws->approve;
    const struct step *s = step_of(y, r);
    bool begun = step_has_begun(s);

    say_what(b, y, r, true);
    if (begun && step_is_voted(y->workflow, y->task, (uint16_t)r->step)) {
        buf_str(b, " is decided.");
        return;
    }
    buf_str(b, begun ? " asks " : " is about to ask ");
    say_groups(b, spec->by, spec->by_count);
    if (begun && spec->escalate_ms != 0 && y->facts->now >= s->begun_at + spec->escalate_ms) {
        buf_str(b, ", and by now ");
        say_groups(b, spec->to, spec->to_count);
    }
    say_votes(b, y, r);
    if (spec->not_submitter && task_submitter(y->task).ptr) {
        buf_str(b, "; not ");
        quote(b, task_submitter(y->task));
        buf_str(b, ", who submitted the task");
    }
    buf_byte(b, '.');
    if (begun) {
        buf_str(b, " It asks: ");
        quote(b, s->input.json);
    }
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
        buf_str(b, " is listed under on_undo and");
    buf_fmt(b, " waits for %sstep%s ", r->kind == REASON_AFTER && !of_undo ? "" : "the rest of ",
            plural(count));
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

    buf_str(b, "The task is paused: no step starts");
    if (by != 0 && !t->deadline_passed && by > t->paused_at) {
        buf_str(b, ", and its complete-by is suspended with ");
        duration_tell(b, by - t->paused_at);
        buf_str(b, " left");
    }
    buf_byte(b, '.');
}

static void say_closed(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)r;
    buf_str(b, "The task stopped in error and was closed");
    if (y->task->closed_reason.len)
        buf_str(b, " (");
    quote(b, y->task->closed_reason);
    buf_str(b, y->task->closed_reason.len ? ")." : ".");
}

static void say_server(struct buf *b, const struct why *y, const struct reason *r)
{
    if (r->kind == REASON_STORE)
        buf_fmt(b, "The state store does not accept writes: %.*s.",
                SLICE_ARG(slice_cut(y->facts->trouble, 300)));
    else
        buf_str(b, "The server is shutting down: it accepts results, but starts no steps.");
}

static void say_more(struct buf *b, const struct why *y, const struct reason *r)
{
    (void)y;
    buf_fmt(b, "There %s %u further reason%s of less importance.", r->count == 1 ? "is" : "are",
            r->count, plural(r->count));
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
        [REASON_MORE] = say_more,           [REASON_WAIT] = say_wait,
        [REASON_ROUND] = say_round,         [REASON_SIGNAL] = say_signal,
        [REASON_LOCK] = say_lock,           [REASON_APPROVAL] = say_approval,
        [REASON_CHILD] = say_child,         [REASON_CHILD_STOPPED] = say_child,
        [REASON_ITEMS] = say_items,
    };
    ASSERT(r->kind < REASON_KINDS && say[r->kind]);
    say[r->kind](b, y, r);
}

static const char *stands(const struct task *t)
{
    if (t->paused_at != 0)
        return t->direction == DIRECTION_UNDO ? "is being undone and is paused" : "is paused";
    if (t->state == TASK_ERROR)
        return t->direction == DIRECTION_UNDO ? "has stopped in error during its undo"
                                              : "has stopped in error";
    if (t->direction == DIRECTION_UNDO)
        return "is being undone";
    return t->state == TASK_PENDING ? "is pending" : "is being processed";
}

void why_summary(struct buf *b, const struct why *y)
{
    if (!task_state_is_end(y->task->state))
        buf_fmt(b, "Task %.*s %s. ", SLICE_ARG(y->task->id), stands(y->task));
    why_text(b, y, &y->reasons->list[0]);
}
