/* Families: a step that starts a child and waits for its end, and a task that is told something by
 * its parent. What one knows of the other is what it was told (struct child), so each is told what
 * the other makes of it (child_told, enum child_wish) whenever that changes. Part of decide(): see
 * decision.h. */
#include "core/decision.h"

#include "core/ready.h"
#include "core/summary.h"
#include "core/undo.h"

/* ---- what a parent tells ---- */

void child_begins(struct decision *d, struct step *s)
{
    const struct child_spec *spec = &d->w->steps[d->ev->step].child;

    if (!s->input.json.ptr)
        s->input = d->ev->input;
    ASSERT(s->input.json.ptr);
    struct child *of_step = &d->t->steps[unit_step(d->w, (uint16_t)d->ev->step)].child;

    s->child = (struct child){s->child.number + 1, CHILD_RUNNING, WISH_NONE};
    of_step->number = max_u32(of_step->number, s->child.number); /* of items: the greatest */
    s->complete_by = spec->complete_by_ms ? d->now + spec->complete_by_ms : 0;
}

static bool is_of_child(const struct fault_note *error)
{
    return slice_is(error->code, CODE_CHILD);
}

/* One that stopped in error, forward, goes on: it turns back. */
void child_stop(struct decision *d, struct step *s)
{
    if (s->child.wish == WISH_STOP || s->child.wish == WISH_UNDO)
        return;
    s->child.wish = WISH_STOP;
    s->complete_by = 0;
    if (s->child.state == CHILD_ERROR) {
        s->child.state = CHILD_RUNNING;
        s->error = (struct fault_note){0};
    }
    d->others = true;
}

enum answer child_is_late(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];

    if (s->complete_by == 0 || d->now < s->complete_by || !step_has_begun(s)
        || !wait_is_ready(d->w, d->t, (uint16_t)d->ev->step, d->now))
        return ANSWER_REFUSED;
    ASSERT(child_is_open(&s->child));
    child_stop(d, s);
    if (!child_has_stopped(&s->child))
        note(&s->error, "timeout", "the child did not end by the step's complete-by");
    return ANSWER_ACCEPTED;
}

/* One of an item at rest is told once that is brought back. */
static bool has_open_child(const struct step *s)
{
    return child_is_open(&s->child) && s->slot != SLOT_RESTING;
}

/* Other pivots may turn out to have taken effect, and then no child need stop. */
void pivot_children_stop(struct decision *d)
{
    if (d->t->paused_at != 0 || any_pivot_call_unresolved(d->w, d->t))
        return;
    for (uint16_t i = 0; i < task_unit_count(d->t); i++)
        if (d->w->steps[i].undo_kind == UNDO_PIVOT && has_open_child(&d->t->steps[i]))
            child_stop(d, &d->t->steps[i]);
}

static void undo_children(struct decision *d)
{
    struct undo_order order;

    undo_order_make(d->w, d->t, &order);
    for (uint16_t i = 0; i < task_unit_count(d->t); i++) {
        struct step *s = &d->t->steps[i];
        if (d->w->steps[i].undo_kind != UNDO_CHILD || s->child.state != CHILD_PROCESSED
            || s->direction == DIRECTION_UNDO || order.blocked[unit_step(d->w, i)]
            || (unit_is_slot(d->w, i) && s->slot != SLOT_BACK))
            continue;
        begin_undo(s);
        step_move(s, STEP_UNDOING);
        s->child.wish = WISH_UNDO;
        d->others = true;
    }
}

void children_turn(struct decision *d)
{
    ASSERT(d->t->direction == DIRECTION_UNDO);
    if (d->t->paused_at != 0)
        return;
    for (uint16_t i = 0; i < task_unit_count(d->t); i++)
        if (has_open_child(&d->t->steps[i]) && d->t->steps[i].state != STEP_UNDONE)
            child_stop(d, &d->t->steps[i]);
    if (d->t->stop == STOP_NONE)
        undo_children(d);
}

/* The task, which stopped in error because of children, goes on. */
static void go_on(struct decision *d)
{
    enum stop stop = STOP_NONE;

    if (d->t->closed_at != 0 || !stopped_by_children(d->w, d->t, &stop))
        return;
    d->others = true;
    if (stop == STOP_UNDO)
        continue_to_undo(d);
    else
        continue_stopped(d);
}

void children_close(struct decision *d)
{
    for (uint16_t i = 0; i < task_unit_count(d->t); i++)
        if (child_has_stopped(&d->t->steps[i].child))
            d->t->steps[i].child.wish = WISH_CLOSE;
}

/* Those of which steps still wait are told again what they were told before. If none is in error
 * any more, the task goes on. */
void children_reopen(struct decision *d)
{
    bool undo = d->t->direction == DIRECTION_UNDO;
    enum stop stop = STOP_NONE;

    for (uint16_t i = 0; i < task_unit_count(d->t); i++) {
        struct step *s = &d->t->steps[i];
        if (s->slot == SLOT_RESTING || s->child.wish != WISH_CLOSE || s->state == STEP_UNDONE
            || !child_is_open(&s->child) || (!undo && s->state != STEP_WAITING))
            continue;
        s->child.wish = s->state == STEP_UNDOING ? WISH_UNDO : undo ? WISH_STOP : WISH_NONE;
    }
    if (stopped_by_children(d->w, d->t, &stop) && stopped_child(d->w, d->t, stop) < 0)
        go_on(d);
}

bool child_needs_undo(const struct workflow_step *ws, const struct step *s)
{
    if (child_is_open(&s->child) || s->direction == DIRECTION_UNDO)
        return true;
    if (ws->undo_kind == UNDO_CALL)
        return step_has_effect(s);
    return ws->undo_kind == UNDO_CHILD && s->child.state == CHILD_PROCESSED;
}

/* ---- what a child tells ---- */

enum child_state child_told(const struct workflow *w, const struct task *t)
{
    bool goes_back = t->direction == DIRECTION_UNDO;
    bool to_go_back = t->asked == WISH_STOP || t->asked == WISH_UNDO;

    switch (t->state) {
    case TASK_PROCESSED:
        return t->asked == WISH_UNDO ? CHILD_STUCK : CHILD_PROCESSED;
    case TASK_COMPENSATED:
        return CHILD_COMPENSATED;
    case TASK_ERROR:
        return goes_back || to_go_back ? CHILD_STUCK : CHILD_ERROR;
    case TASK_PENDING:
    case TASK_PROCESSING:
    case TASK_COMPENSATING:
        break;
    }
    if (goes_back)
        return CHILD_TURNED;
    return t->asked == WISH_STOP && any_pivot_completed(w, t) ? CHILD_STANDS : CHILD_RUNNING;
}

/* Whether the task waits for that child: a skipped step does not, unless it has to be undone. */
static bool is_waited_for(const struct decision *d, uint16_t i)
{
    const struct step *s = &d->t->steps[i];

    if (d->t->direction == DIRECTION_UNDO)
        return step_needs_undo(&d->w->steps[i], s);
    return s->state == STEP_WAITING || d->w->steps[i].undo_kind == UNDO_PIVOT;
}

/* Whether a child of which so much is known can tell that. One that turned back, or was told so
 * when it was processed, never goes forward again; and a task that turned back relies on it. */
static bool may_tell(const struct decision *d, const struct step *s, enum child_state next)
{
    bool back = next == CHILD_TURNED || next == CHILD_STUCK || next == CHILD_COMPENSATED;
    bool undone = s->state == STEP_UNDOING && d->w->steps[d->ev->step].undo_kind == UNDO_CHILD;

    if (next == CHILD_NONE || s->child.state == CHILD_COMPENSATED)
        return false;
    if (s->child.state == CHILD_PROCESSED && !undone)
        return false;
    if (s->child.state == CHILD_TURNED || undone
        || (d->t->direction == DIRECTION_UNDO && d->w->steps[d->ev->step].undo_kind == UNDO_PIVOT))
        return back;
    return true;
}

/* It stopped in error before it heard that it is to stop, upon which it goes on. */
static bool is_overtaken(const struct child *c, enum child_state next)
{
    return next == CHILD_ERROR && c->wish == WISH_STOP;
}

static struct fault_note error_of_stopped(const struct child *c)
{
    return (struct fault_note){SLICE(CODE_CHILD), c->state == CHILD_ERROR
                                                      ? SLICE("the child stopped in error")
                                                      : SLICE("the child stopped in error, and "
                                                              "was not undone")};
}

static void child_stops(struct decision *d, struct step *s)
{
    if (d->t->closed_at != 0)
        s->child.wish = WISH_CLOSE;
    if (!is_waited_for(d, (uint16_t)d->ev->step))
        return;
    s->error = error_of_stopped(&s->child);
    if (d->ev->error.message.ptr)
        s->error.message = d->ev->error.message;
}

/* In error nothing turns: the failure is one more that an operator finds. */
static void child_fails(struct decision *d, struct step *s)
{
    s->error = d->ev->error;
    if (!s->error.code.ptr)
        note(&s->error, CODE_CHILD, "the child was undone");
    s->failure_count++;
    d->t->failure_count++;
    if (d->t->state == TASK_ERROR)
        step_move(s, STEP_FAILED);
    else
        fail_for_good(d, s);
}

static void child_is_undone(struct decision *d, struct step *s)
{
    if (s->state == STEP_WAITING) {
        child_fails(d, s);
        return;
    }
    if (is_of_child(&s->error))
        s->error = (struct fault_note){0};
    if (s->state == STEP_UNDOING)
        step_move(s, STEP_UNDONE);
}

static void child_changes(struct decision *d, struct step *s)
{
    switch (s->child.state) {
    case CHILD_RUNNING:
    case CHILD_STANDS:
    case CHILD_TURNED:
        if (is_of_child(&s->error))
            s->error = (struct fault_note){0};
        return;
    case CHILD_ERROR:
    case CHILD_STUCK:
        child_stops(d, s);
        return;
    case CHILD_PROCESSED:
        if (s->state == STEP_WAITING)
            step_completes(d, s);
        return;
    case CHILD_COMPENSATED:
        child_is_undone(d, s);
        return;
    case CHILD_NONE:
        break;
    }
    UNREACHABLE();
}

enum answer child_tells(struct decision *d)
{
    const struct event *ev = d->ev;
    struct step *s = &d->t->steps[ev->step];
    struct child *c = &s->child;

    if (d->w->steps[ev->step].kind != KIND_TASK)
        return ANSWER_UNKNOWN;
    if (c->state == CHILD_NONE || ev->attempt != c->number || ev->child == c->state
        || is_overtaken(c, ev->child))
        return ANSWER_REPEATED;
    if (!may_tell(d, s, ev->child))
        return ANSWER_REFUSED;
    if (child_has_stopped(c) && ev->child != CHILD_ERROR && ev->child != CHILD_STUCK
        && is_waited_for(d, (uint16_t)ev->step))
        go_on(d);
    c->state = ev->child;
    child_changes(d, s);
    return ANSWER_ACCEPTED;
}

/* ---- the error of a task whose children stopped ---- */

/* Whether something else holds it up as well: a pivot that is a call, or a step that failed. */
static bool is_held_up_otherwise(const struct decision *d)
{
    if (d->t->direction == DIRECTION_UNDO || d->t->stop == STOP_NONE)
        return any_step_stops_task(d->w, d->t);
    for (uint16_t i = 0; i < d->t->step_count; i++)
        if (d->w->steps[i].undo_kind == UNDO_PIVOT && d->w->steps[i].kind == KIND_CALL
            && pivot_prevents_undo(&d->t->steps[i]))
            return true;
    return false;
}

void children_find_error(const struct decision *d)
{
    struct task *t = d->t;
    int i = stopped_child(d->w, t, t->stop);

    if (i < 0 || t->stop == STOP_HOLD || is_held_up_otherwise(d))
        return;
    if (t->direction == DIRECTION_FORWARD && t->stop == STOP_UNDO) {
        note(&t->error, CODE_PIVOT, "the child of a pivot stopped in error, and was not undone");
        return;
    }
    t->error =
        is_of_child(&t->steps[i].error) ? t->steps[i].error : error_of_stopped(&t->steps[i].child);
    if (!t->cause.error.code.ptr)
        t->cause = (struct cause){t->error, unit_step(d->w, (uint16_t)i)};
}

/* ---- what a task is told by its parent ---- */

static bool is_active(const struct task *t)
{
    return !task_state_is_end(t->state) && t->state != TASK_ERROR;
}

static struct fault_note reason_of(const struct decision *d)
{
    struct fault_note why = {0};

    if (d->ev->kind == EVENT_PARENT)
        why = d->ev->error;
    if (!why.code.ptr)
        note(&why, "parent", "its parent does not need it any more");
    return why;
}

void parent_stops(struct decision *d)
{
    if (is_active(d->t) && d->t->direction == DIRECTION_FORWARD && d->t->stop == STOP_NONE
        && !pivots_rule_out_undo(d->w, d->t))
        want_undo(d, reason_of(d));
}

/* Where a pivot took effect, or may have, it only tells that. */
static void stops(struct decision *d)
{
    struct task *t = d->t;

    if (t->direction == DIRECTION_UNDO || t->stop == STOP_UNDO)
        pause_over(d);
    else if (!pivots_rule_out_undo(d->w, t))
        want_undo(d, reason_of(d));
}

static enum answer told_to_stop(struct decision *d)
{
    struct task *t = d->t;
    bool closed = t->closed_at != 0;

    if (task_state_is_end(t->state))
        return ANSWER_REPEATED;
    if (closed)
        task_reopen(d);
    if (t->asked == WISH_STOP || t->asked == WISH_UNDO)
        return closed ? ANSWER_ACCEPTED : ANSWER_REPEATED;
    t->asked = WISH_STOP;
    stops(d);
    return ANSWER_ACCEPTED;
}

static enum answer told_to_undo(struct decision *d)
{
    struct task *t = d->t;

    if (t->asked == WISH_UNDO && t->closed_at != 0) {
        task_reopen(d);
        return ANSWER_ACCEPTED;
    }
    if (t->asked == WISH_UNDO || t->state == TASK_COMPENSATED)
        return ANSWER_REPEATED;
    if (t->state != TASK_PROCESSED)
        return ANSWER_REFUSED; /* only one that had ended is told so */
    t->asked = WISH_UNDO;
    if (pivots_check(d->w, t) == PIVOTS_CLEAR)
        undo_processed(d, reason_of(d));
    return ANSWER_ACCEPTED;
}

/* An operator may have had it go on meanwhile. Then it does. */
static enum answer told_to_close(struct decision *d)
{
    struct task *t = d->t;

    if (t->state != TASK_ERROR || t->closed_at != 0)
        return ANSWER_REPEATED;
    task_close(d, d->ev->error.message);
    if (t->asked == WISH_NONE)
        t->asked = WISH_CLOSE;
    return ANSWER_ACCEPTED;
}

static enum answer told_to_reopen(struct decision *d)
{
    struct task *t = d->t;
    bool closed = t->closed_at != 0;

    if (!closed && t->asked != WISH_CLOSE)
        return ANSWER_REPEATED;
    if (closed)
        task_reopen(d);
    if (t->asked == WISH_CLOSE)
        t->asked = WISH_NONE;
    return ANSWER_ACCEPTED;
}

static enum answer told(struct decision *d)
{
    switch (d->ev->wish) {
    case WISH_STOP:
        return told_to_stop(d);
    case WISH_UNDO:
        return told_to_undo(d);
    case WISH_CLOSE:
        return told_to_close(d);
    case WISH_NONE:
        return told_to_reopen(d);
    }
    UNREACHABLE();
}

/* From the moment at which its parent was paused, as far as it was there. */
static enum answer pauses(struct decision *d)
{
    struct task *t = d->t;

    if (!is_active(t) || t->paused_at != 0)
        return ANSWER_REPEATED;
    t->paused_at = min_i64(max_i64(d->ev->until, t->submitted_at), d->now);
    return ANSWER_ACCEPTED;
}

enum answer parent_tells(struct decision *d)
{
    if (!d->t->parent.ptr)
        return ANSWER_REFUSED;
    if (d->ev->kind == EVENT_PARENT)
        return told(d);
    if (d->ev->kind == EVENT_PARENT_PAUSE)
        return pauses(d);
    if (d->t->paused_at == 0)
        return ANSWER_REPEATED;
    pause_over(d);
    return ANSWER_ACCEPTED;
}
