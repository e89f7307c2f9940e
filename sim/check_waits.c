/* Steps that wait: when they begin, the moment that is fixed then, and that they are over neither
 * early nor twice. A model of its own: it knows the flow and the rows, not the code. */

#include "base/when.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/world.h"

/* One wait before and after a change. */
struct look {
    const struct subject *t;
    const struct flow_step *f;
    uint32_t i;
    const struct seen *old, *new;
    const struct seen_step *before, *after;
};

static void must(const struct look *l, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(l->t);
    broken(rule, "%s/s%u: begun at %" PRId64 ", until %" PRId64 "; before: %" PRId64 ", %" PRId64,
           l->t->id, l->i, l->after->begun_at, l->after->wait_until, l->before->begun_at,
           l->before->wait_until);
}

static bool is_moment(const struct look *l)
{
    return l->f->wait_ms == 0;
}

static bool is_waiting(const struct seen_step *s)
{
    return s->state == STEP_WAITING && s->begun_at != 0;
}

static void check_begin(const struct look *l)
{
    const struct seen_step *s = l->after;
    int64_t at = is_moment(l) ? max_i64(l->new->submitted_at + l->f->wait_plus_ms, 1)
                              : s->begun_at + l->f->wait_ms;

    covered(is_moment(l) ? COVER_WAIT_MOMENT : COVER_WAIT_LENGTH);
    must(l, l->before->begun_at == 0 || l->t->verbs, "a wait begins once");
    must(l, s->begun_at <= latest_now(), "a wait begins now");
    must(l, s->begun_at >= l->new->not_before || l->t->verbs, "a wait begins when its task may");
    for (uint32_t p = 0; p < l->new->step_count; p++)
        if (l->f->past & BIT(p) && l->new->direction == DIRECTION_FORWARD)
            must(l, seen_passed(&l->t->flow->steps[p], &l->new->steps[p]),
                 "a wait begins when all before it has ended");
    if (s->state == STEP_SKIPPED || s->supplied)
        return; /* by hand, and it has no moment any more */
    must(l, s->wait_until == at || (l->t->verbs && !is_moment(l) && s->wait_until > at),
         "a wait is as long as it says");
}

/* Pauses, and time in error, move waits by length. */
static void check_fixed(const struct look *l)
{
    int64_t moved = l->after->wait_until - l->before->wait_until;
    bool resumed = l->old->paused_at != 0 && l->new->paused_at != l->old->paused_at;
    bool again = l->old->state == TASK_ERROR && l->new->state != TASK_ERROR
                 && l->new->direction == DIRECTION_FORWARD;

    must(l, moved == 0 || !is_moment(l), "a moment is fixed");
    must(l, moved == 0 || l->t->verbs, "only what a person does moves a wait");
    must(l, moved >= 0, "no wait becomes shorter");
    if (is_moment(l) || world.set_back)
        return;
    if (again && l->before->wait_until > l->old->ended_at) {
        covered(COVER_WAIT_IN_ERROR);
        must(l, moved <= latest_now() - l->old->ended_at, "a wait moves by the time in error");
        must(l, moved > 0 || l->old->ended_at + MS_PER_S + nodes.skew_max > store_now(),
             "the time in error does not count");
    }
    if (resumed && l->before->wait_until > l->old->paused_at) {
        int64_t other = l->new->complete_by - l->old->complete_by;
        covered(COVER_WAIT_PAUSED);
        must(l,
             l->old->complete_by <= l->old->paused_at || l->old->deadline_passed
                 || l->new->deadline_passed || other == moved || l->new->state == TASK_ERROR
                 || l->new->direction == DIRECTION_UNDO,
             "a pause moves a wait as it moves the task's complete-by");
    }
}

static void check_over(const struct look *l)
{
    covered(COVER_WAIT_OVER);
    must(l, l->after->wait_until <= latest_now(), "no wait is over early");
    must(l, l->new->paused_at == 0 || l->new->paused_at != l->old->paused_at,
         "no wait is over while its task is paused");
    must(l, l->new->closed_at == 0, "no wait of a closed task is over");
}

void check_waits(const struct subject *t, uint32_t step, const struct seen *old,
                 const struct seen *new)
{
    const struct look l = {
        t, &t->flow->steps[step], step, old, new, &old->steps[step], &new->steps[step]};

    if (!l.f->is_wait) {
        must(&l, l.after->begun_at == 0, "only waits begin");
        return;
    }
    must(&l, l.after->attempt == 0 && l.after->attempt_count == 0, "a wait has no attempts");
    must(&l, l.after->direction == DIRECTION_FORWARD, "a wait is not undone");
    must(&l, l.after->begun_at != 0 || l.before->begun_at == 0 || t->verbs,
         "what has begun stays so");
    if (l.after->begun_at != 0 && l.after->begun_at != l.before->begun_at)
        check_begin(&l);
    else if (is_waiting(l.before) && is_waiting(l.after))
        check_fixed(&l);
    if (l.after->state == STEP_COMPLETED && l.before->state != STEP_COMPLETED && !l.after->supplied)
        check_over(&l);
}
