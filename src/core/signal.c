/* Signals of a task: what becomes of one that arrives, and of those that are kept. Part of
 * decide(): see decision.h. Which step takes which signal is evaluated by the caller (`match`) and
 * decided by decide.c (EVENT_TAKE). Also what follows when nothing came in time. */
#include "core/decision.h"
#include "core/reason.h"
#include "core/summary.h"

bool task_needs_signal_room(const struct task *t)
{
    return t->signal_count == t->signal_cap && t->signal_count < SIGNALS_MAX;
}

/* Whether a step that has not ended takes signals of that name. One that failed may be retried. */
static bool is_wanted(const struct workflow *w, const struct task *t, struct slice name)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (w->steps[i].kind == KIND_SIGNAL && !step_has_ended(&w->steps[i], &t->steps[i])
            && step_takes_signal(&w->steps[i], name))
            return true;
    return false;
}

/* Whether one more with that value would be too much for the task. */
static bool is_too_much(const struct task *t, const struct signal *s)
{
    size_t bytes = s->data.json.len;

    for (uint16_t i = 0; i < t->signal_count; i++)
        bytes += t->signals[i].data.json.len;
    return t->signal_count == SIGNALS_MAX || bytes > SIGNALS_BYTES_MAX;
}

static uint32_t kept_of(const struct task *t, struct slice name)
{
    uint32_t count = 0;

    for (uint16_t i = 0; i < t->signal_count; i++)
        count += t->signals[i].state == SIGNAL_KEPT && slice_eq(t->signals[i].name, name);
    return count;
}

enum obstacle signal_obstacle(const struct workflow *w, const struct task *t,
                              const struct signal *s)
{
    const struct signal *known = task_find_signal(t, s->key);

    if (known)
        return slice_eq(known->name, s->name) && slice_eq(known->content, s->content)
                   ? OBSTACLE_NONE
                   : OBSTACLE_SIGNAL_OTHER;
    if (task_state_is_end(t->state))
        return OBSTACLE_STATE;
    if (t->direction == DIRECTION_UNDO)
        return OBSTACLE_TASK_UNDONE;
    bool undoes = signal_undoes(w, s->name);
    if (!undoes && !is_wanted(w, t, s->name))
        return OBSTACLE_SIGNAL_UNWANTED;
    if (undoes && pivots_rule_out_undo(w, t))
        return OBSTACLE_PIVOT;
    if (is_too_much(t, s))
        return OBSTACLE_SIGNAL_MANY;
    if (kept_of(t, s->name) >= SIGNALS_KEPT_MAX)
        return OBSTACLE_SIGNAL_FULL;
    return OBSTACLE_NONE;
}

enum answer signal_arrives(struct decision *d)
{
    const struct signal *s = d->ev->signal;
    struct task *t = d->t;

    if (signal_obstacle(d->w, t, s) != OBSTACLE_NONE)
        return ANSWER_REFUSED;
    if (task_find_signal(t, s->key))
        return ANSWER_REPEATED;
    ASSERT(t->signal_count < t->signal_cap);
    ASSERT(s->data.json.ptr);
    t->signals[t->signal_count++] =
        (struct signal){.key = s->key,
                        .name = s->name,
                        .data = s->data,
                        .content = s->content,
                        .at = s->at > 0 ? min_i64(s->at, d->now) : d->now,
                        .state = SIGNAL_KEPT,
                        .step = -1};
    return ANSWER_ACCEPTED;
}

enum answer signal_drop(struct decision *d)
{
    const struct signal *which = d->ev->signal;
    bool any = false;

    if (task_state_is_end(d->t->state))
        return ANSWER_REFUSED;
    for (uint16_t i = 0; i < d->t->signal_count; i++) {
        struct signal *s = &d->t->signals[i];
        if (s->state != SIGNAL_KEPT || !slice_eq(s->name, which->name)
            || (which->key.ptr && !slice_eq(s->key, which->key)))
            continue;
        s->state = SIGNAL_DROPPED;
        s->data = (struct value){0};
        any = true;
    }
    return any ? ANSWER_ACCEPTED : ANSWER_REFUSED;
}

void end_waiting(struct decision *d, struct step *s, struct slice otherwise, struct fault_note why)
{
    if (otherwise.ptr) {
        step_completes(d, s);
        s->output.json = otherwise;
        return;
    }
    s->error = why;
    s->failure_count++;
    d->t->failure_count++;
    fail_for_good(d, s);
}

enum answer signal_is_late(struct decision *d)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];
    struct step *s = &d->t->steps[d->ev->step];
    struct fault_note why;

    if (s->complete_by == 0 || d->now < s->complete_by
        || !step_awaits_signal(d->w, d->t, (uint16_t)d->ev->step, d->now))
        return ANSWER_REFUSED;
    note(&why, "no_signal", "no signal arrived by the step's complete-by");
    end_waiting(d, s, ws->signal.otherwise, why);
    return ANSWER_ACCEPTED;
}

void signal_put_back(struct task *t, uint16_t step)
{
    for (uint16_t i = 0; i < t->signal_count; i++)
        if (t->signals[i].state == SIGNAL_TAKEN && t->signals[i].step == step) {
            t->signals[i].state = SIGNAL_KEPT;
            t->signals[i].step = -1;
        }
}

void signals_came_by(struct decision *d)
{
    for (uint16_t i = 0; i < d->t->signal_count; i++) {
        struct signal *s = &d->t->signals[i];
        if (s->state == SIGNAL_KEPT)
            s->at = min_i64(s->at, d->now);
    }
}

static void undo_by(struct decision *d, struct signal *s)
{
    struct task *t = d->t;

    s->state = SIGNAL_TAKEN;
    t->error = (struct fault_note){SLICE("signal"), s->name};
    t->cause = (struct cause){t->error, -1};
    t->stop = STOP_UNDO;
}

/* A pivot took effect since it arrived, or may have: an operator should know. */
static void undo_fails(struct decision *d, struct signal *s)
{
    ASSERT(pivots_rule_out_undo(d->w, d->t));
    s->state = SIGNAL_TAKEN;
    if (!d->t->error.code.ptr)
        note(&d->t->error, "signal", "it asked for undo, but a pivot took effect, or may have");
    d->fx->alert = true;
}

/* The first signal that requests undo; NULL: none. */
static struct signal *undo_signal(const struct decision *d)
{
    struct task *t = d->t;

    for (uint16_t i = 0; i < t->signal_count; i++)
        if (t->signals[i].state == SIGNAL_KEPT && signal_undoes(d->w, t->signals[i].name))
            return &t->signals[i];
    return NULL;
}

/* Whether the task goes on, so that such a signal acts. */
static bool goes_on(const struct task *t)
{
    return !task_state_is_end(t->state) && t->state != TASK_ERROR && t->paused_at == 0
           && t->stop == STOP_NONE && t->direction == DIRECTION_FORWARD;
}

void signals_undo(struct decision *d)
{
    struct signal *s = goes_on(d->t) ? undo_signal(d) : NULL;

    if (s && !pivots_rule_out_undo(d->w, d->t))
        undo_by(d, s);
}

bool signals_undo_at_end(struct decision *d)
{
    struct signal *s = undo_signal(d);

    ASSERT(d->t->direction == DIRECTION_FORWARD && d->t->stop == STOP_NONE);
    if (!s || pivots_rule_out_undo(d->w, d->t))
        return false;
    undo_by(d, s);
    return true;
}

void signals_cannot_undo(struct decision *d)
{
    for (struct signal *s = NULL; goes_on(d->t) && (s = undo_signal(d));)
        undo_fails(d, s);
}
