/* What a failure leads to: a retry, the undo or the stop of the task, or nothing. Whether and when
 * a step is retried is in retry.c; who calls this, in decide.c. */
#include "core/decision.h"

#include "core/ready.h"
#include "core/retry.h"
#include "core/summary.h"

static uint64_t seed_of(const struct decision *d, const struct step *s)
{
    const struct task *t = d->t;
    uint16_t step = unit_step(d->w, (uint16_t)d->ev->step);
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < t->id.len; i++)
        h = (h ^ (unsigned char)t->id.ptr[i]) * UINT64_C(0x100000001b3);
    return h ^ ((uint64_t)step << 32) ^ ((uint64_t)s->direction << 60) ^ ((uint64_t)s->item << 8);
}

void stop_for_failure(struct decision *d, enum on_failure on_failure, int step,
                      const struct fault_note *why)
{
    if (d->t->direction == DIRECTION_UNDO || d->t->stop != STOP_NONE
        || on_failure == ON_FAILURE_CONTINUE)
        return;
    d->t->stop = on_failure == ON_FAILURE_HOLD ? STOP_HOLD : STOP_UNDO;
    d->t->error = *why;
    d->t->cause = (struct cause){*why, step};
}

/* What it means for its step is found once nothing else of that runs: items_settle(). The first
 * failure is the step's. */
static void item_fails(struct decision *d, const struct step *s)
{
    struct step *step = &d->t->steps[unit_step(d->w, (uint16_t)d->ev->step)];

    if (s->direction == DIRECTION_UNDO)
        d->t->error = s->error;
    else if (!step->error.code.ptr)
        step->error = s->error;
}

void fail_for_good(struct decision *d, struct step *s)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];

    step_move(s, STEP_FAILED);
    if (unit_is_slot(d->w, d->ev->step)) {
        item_fails(d, s);
        return;
    }
    if (s->direction == DIRECTION_UNDO || (ws->on_undo && step_failure_stops(ws, s)))
        d->t->error = s->error;
    else
        stop_for_failure(d, ws->on_failure, d->ev->step, &s->error);
}

/* A step with a single attempt is never retried, so its failure cannot be spared. */
static bool may_spare(const struct decision *d, const struct step *s, const struct retry_rule *r,
                      const struct failure *f)
{
    return d->ev->spared && f->retryable && s->spared_count < SPARED_MAX
           && (uint64_t)r->attempts + r->defers > 1;
}

/* The step failed because its service is unavailable. That does not count as a failure, and the
 * step is sent again as soon as any is. A wait that the service asked for is respected. */
static void spare(struct decision *d, struct step *s, const struct failure *f)
{
    s->attempts[s->attempt_count - 1].spared = true;
    s->spared_count++;
    s->spared_at = d->now;
    s->wait_until = f->retry_after_ms > 0 ? task_clock(d) + f->retry_after_ms : 0;
    if (s->direction == DIRECTION_FORWARD)
        step_move(s, STEP_WAITING);
}

void step_fails(struct decision *d, struct step *s, struct failure f)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];
    const struct call_spec *spec = s->direction == DIRECTION_UNDO ? &ws->undo : &ws->call;
    int64_t at = 0;

    if (may_spare(d, s, &spec->retry, &f)) {
        spare(d, s, &f);
        return;
    }
    s->failure_count++;
    d->t->failure_count++;
    f.count = s->failure_count;
    f.seed = seed_of(d, s);
    if (!retry_next(&spec->retry, &f, task_clock(d), &at)) {
        fail_for_good(d, s);
        return;
    }
    s->wait_until = at;
    if (s->direction == DIRECTION_FORWARD)
        step_move(s, STEP_WAITING);
}
