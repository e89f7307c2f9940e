/* Signals, and steps that wait for them: nothing is invented, lost, taken twice or out of order,
 * and no step waits too short. A model of its own: it knows the flow, what was sent, and the rows.
 */

#include "base/when.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/world.h"

static void must(const struct subject *t, bool ok, const char *rule, uint32_t number)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s: %u", t->id, number);
}

/* ---- what arrives ---- */

bool signal_fits(const struct flow_step *f, const struct seen_signal *s)
{
    return f->is_signal && s->name == f->signal_name && (s->ok || f->takes_all);
}

static bool same_signal(const struct seen_signal *a, const struct seen_signal *b)
{
    return a->key == b->key && a->name == b->name && a->ok == b->ok;
}

/* It stays, but for a moment that a clock ahead of others said: a step that begins to wait knows
 * better. */
static bool same_moment(const struct seen *new, const struct seen_signal *a,
                        const struct seen_signal *b)
{
    bool ok = a->at == b->at;

    for (uint32_t i = 0; i < new->step_count && b->at < a->at; i++)
        ok |= new->steps[i].begun_at == b->at;
    return ok;
}

static void check_new(const struct subject *t, const struct seen_signal *s)
{
    covered(COVER_SIGNAL_KEPT);
    must(t, s->key < t->signals_sent, "no signal is invented", s->key);
    const struct sent_signal *sent = &t->signals[s->key];
    must(t, sent->name == s->name && sent->ok == s->ok, "a signal is what was sent", s->key);
    must(t, s->at <= latest_now(), "a signal arrives now", s->key);
}

static bool is_undo_name(const struct subject *t, const struct seen_signal *s)
{
    return s->name == 'u' && t->flow->undo_signal;
}

/* ---- who takes it ---- */

static void check_taken(const struct subject *t, const struct seen *old, const struct seen *new,
                        uint32_t k)
{
    const struct seen_signal *s = &new->signals[k];

    covered(COVER_SIGNAL_TAKEN);
    if (s->step < 0) {
        covered(COVER_SIGNAL_UNDID);
        must(t, is_undo_name(t, s), "only a signal for that has a task undone", s->key);
        return;
    }
    const struct flow_step *f = &t->flow->steps[s->step];
    must(t, signal_fits(f, s), "a step takes what it waits for", s->key);
    must(t, new->steps[s->step].state == STEP_COMPLETED && !new->steps[s->step].supplied,
         "a step completes with what it takes", s->key);
    must(t, new->steps[s->step].begun_at != 0, "a step takes a signal once it has begun", s->key);
    must(t, old->paused_at == 0 || new->paused_at != old->paused_at,
         "nothing is taken while the task is paused", s->key);
    int64_t by = new->steps[s->step].complete_by;
    /* after that, a supervisor has to say that there was a grace time */
    must(t, by == 0 || s->at <= by || t->requested_once, "a step takes no late signal", s->key);
    for (uint32_t i = 0; i < k; i++) {
        must(t, new->signals[i].state != SIGNAL_TAKEN || new->signals[i].step != s->step,
             "a step takes one signal", s->key);
        /* by a clock that was ahead; a step that begins in the same change sets that right */
        const struct seen_signal *before = &(i < old->signal_count ? old : new)->signals[i];
        bool is_late = by != 0 && before->at > by;
        must(t,
             new->signals[i].state != SIGNAL_KEPT || !signal_fits(f, &new->signals[i]) || is_late,
             "signals are taken in their order", s->key);
    }
}

/* A person had its step start anew. */
static void check_put_back(const struct subject *t, const struct seen *old, const struct seen *new,
                           uint32_t k)
{
    int step = old->signals[k].step;

    covered(COVER_SIGNAL_BACK);
    must(t, t->verbs && step >= 0, "only a person puts back what was taken", k);
    must(t, new->steps[step].generation > old->steps[step].generation,
         "what was taken comes back when its step starts anew", k);
}

static void check_one(const struct subject *t, const struct seen *old, const struct seen *new,
                      uint32_t k)
{
    const struct seen_signal *was = &old->signals[k];
    const struct seen_signal *is = &new->signals[k];

    if (k >= old->signal_count) {
        check_new(t, is);
        for (uint32_t i = 0; i < k; i++)
            must(t, new->signals[i].key != is->key, "a key is one signal", is->key);
    } else {
        must(t, same_signal(was, is) && same_moment(new, was, is), "a signal stays what it is", k);
        if (was->state == SIGNAL_TAKEN && (is->state != SIGNAL_TAKEN || is->step != was->step))
            check_put_back(t, old, new, k);
    }
    must(t, is->state != SIGNAL_DROPPED, "nobody dropped a signal", k);
    bool before = k < old->signal_count && was->state == SIGNAL_TAKEN && was->step == is->step;
    if (is->state == SIGNAL_TAKEN && !before)
        check_taken(t, old, new, k);
}

/* Nothing can be undone any more. */
static bool pivot_stands(const struct subject *t, const struct seen *s)
{
    for (uint32_t i = 0; i < s->step_count; i++)
        if (t->flow->steps[i].undo == UNDO_PIVOT
            && (seen_happened(&s->steps[i]) || seen_in_doubt(&s->steps[i])))
            return true;
    return false;
}

/* Nothing that asks for undo is left aside while the task goes on, nor at its end. */
static void check_undo(const struct subject *t, const struct seen *new)
{
    bool runs = !seen_is_end(new) && new->direction == DIRECTION_FORWARD;
    bool goes_on = runs && new->stop == STOP_NONE &&new->paused_at == 0;
    bool is_over = new->state == TASK_PROCESSED && !pivot_stands(t, new);

    for (uint32_t k = 0; k < new->signal_count && (goes_on || is_over); k++)
        must(t, new->signals[k].state != SIGNAL_KEPT || !is_undo_name(t, &new->signals[k]),
             is_over ? "no task ends before a signal has it undone"
                     : "a signal has its task undone",
             k);
}

static bool has_signal(const struct seen *s, uint32_t key)
{
    for (uint32_t k = 0; k < s->signal_count; k++)
        if (s->signals[k].key == key)
            return true;
    return false;
}

void check_signals(const struct subject *t, const struct seen *old, const struct seen *new)
{
    must(t, new->signal_count >= old->signal_count, "no signal is lost", new->signal_count);
    for (uint32_t k = 0; old->revision == 0 && !t->by_sql && k < t->carried; k++)
        must(t, has_signal(new, k), "a new task has the signals of its submission", k);
    for (uint32_t k = 0; k < new->signal_count; k++)
        check_one(t, old, new, k);
    check_undo(t, new);
}

void check_signal_told(const struct subject *t, uint32_t key)
{
    must(t, t->deleted || has_signal(&t->seen, key), "what is accepted is durable", key);
}

void check_carried(const struct subject *t, const struct ask *a)
{
    for (uint32_t k = 0; k < a->signal_count; k++) {
        if (a->signals[k].fate == CARRIED_REFUSED) {
            covered(COVER_CARRIED_REFUSED);
            must(t, a->existed, "a new task takes the signals of its submission", k);
            must(t, t->verbs || t->deleted || !has_signal(&t->seen, k),
                 "what is there is not refused", k);
            continue;
        }
        covered(a->existed ? COVER_CARRIED_LATER : COVER_CARRIED);
        check_signal_told(t, k);
    }
}

/* ---- the step ---- */

static bool took_any(const struct seen *s, uint32_t step)
{
    for (uint32_t k = 0; k < s->signal_count; k++)
        if (s->signals[k].state == SIGNAL_TAKEN && s->signals[k].step == (int)step)
            return true;
    return false;
}

static void check_begin(const struct subject *t, uint32_t i, const struct seen *new)
{
    const struct flow_step *f = &t->flow->steps[i];
    const struct seen_step *s = &new->steps[i];
    int64_t by = f->signal_ms ? s->begun_at + f->signal_ms : 0;

    must(t, s->begun_at <= latest_now(), "a step begins to wait now", i);
    for (uint32_t p = 0; p < new->step_count; p++)
        if (f->past & BIT(p) && new->direction == DIRECTION_FORWARD)
            must(t, seen_passed(&t->flow->steps[p], &new->steps[p]),
                 "a step waits for a signal when all before it has ended", i);
    must(t, s->complete_by == by || (t->verbs && by != 0 && s->complete_by > by),
         "a step waits as long as it says", i);
}

static void check_time(const struct subject *t, uint32_t i, const struct seen *old,
                       const struct seen *new)
{
    int64_t moved = new->steps[i].complete_by - old->steps[i].complete_by;

    must(t, moved == 0 || t->verbs, "only what a person does moves a complete-by", i);
    must(t, moved >= 0, "no complete-by becomes earlier", i);
}

/* It ended without a signal. */
static void check_over(const struct subject *t, uint32_t i, const struct seen *old,
                       const struct seen *new)
{
    const struct flow_step *f = &t->flow->steps[i];
    const struct seen_step *s = &new->steps[i];

    covered(COVER_SIGNAL_LATE);
    must(t, f->signal_ms != 0 && s->complete_by != 0, "a step without a limit waits", i);
    must(t, s->complete_by <= latest_now(), "no step gives up its signal early", i);
    must(t, (s->state == STEP_COMPLETED) == f->has_default, "a default is the output", i);
    for (uint32_t k = 0; k < old->signal_count; k++) /* one by SQL may be found too late */
        must(t,
             new->signals[k].state != SIGNAL_KEPT || !signal_fits(f, &new->signals[k])
                 || new->signals[k].at >= s->complete_by || t->verbs,
             "a signal that came in time counts", k);
}

void check_signal_step(const struct subject *t, uint32_t i, const struct seen *old,
                       const struct seen *new)
{
    const struct seen_step *a = &old->steps[i];
    const struct seen_step *b = &new->steps[i];
    bool waited = b->begun_at != 0 && a->state == STEP_WAITING && b->state != STEP_WAITING;

    must(t, b->attempt == 0 && b->attempt_count == 0, "what waits for a signal has no attempts", i);
    must(t, b->direction == DIRECTION_FORWARD, "what waits for a signal is not undone", i);
    must(t, b->begun_at != 0 || a->begun_at == 0 || t->verbs, "what has begun stays so", i);
    if (b->begun_at != 0 && b->begun_at != a->begun_at)
        check_begin(t, i, new);
    else if (a->state == STEP_WAITING && b->state == STEP_WAITING && b->begun_at != 0)
        check_time(t, i, old, new);
    if (waited && (b->state == STEP_COMPLETED || b->state == STEP_FAILED) && !b->supplied
        && !took_any(new, i))
        check_over(t, i, old, new);
}
