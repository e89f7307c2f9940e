/* Checks what a change may do to a row: states, attempts, retries, doubts and times, compared
 * with the row before and with what the world knows. Calls the narrower checkers of rows
 * (check_start.c, check_time.c and others); check.h lists them all. */

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/family.h"
#include "sim/items.h"
#include "sim/ledger.h"
#include "sim/receivers.h"
#include "sim/world.h"

/* One step before and after a change. */
struct turn {
    struct subject *t;
    const struct flow_step *f;
    uint32_t i;
    const struct seen *old, *new;
    const struct seen_step *before, *after;
};

static void must(const struct turn *u, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(u->t);
    broken(rule, "%s/s%u, from %s to %s", u->t->id, u->i, step_state_text(u->before->state),
           step_state_text(u->after->state));
}

/* ---- states ---- */

/* A commit may contain several moves; these are all possible results. */
static bool state_may(const struct turn *u)
{
    bool verbs = u->t->verbs;
    bool undo = u->new->direction == DIRECTION_UNDO;
    bool anew = verbs && u->after->generation > u->before->generation;
    enum step_state to = u->after->state;

    if (to == u->before->state)
        return true;
    switch (u->before->state) {
    case STEP_WAITING:
        return to == STEP_RUNNING || to == STEP_SKIPPED
               || (to == STEP_FAILED
                   && (u->f->may_break || u->f->is_repeated || u->f->is_child || u->f->is_each))
               || (to == STEP_COMPLETED
                   && (u->f->is_wait || u->f->is_repeated || (verbs && u->after->supplied)))
               || (to == STEP_UNDOING && undo) || (to == STEP_UNDONE && verbs);
    case STEP_RUNNING:
        return to == STEP_WAITING || to == STEP_COMPLETED || to == STEP_FAILED
               || (verbs && (to == STEP_SKIPPED || (to == STEP_UNDONE && undo)))
               || (to == STEP_UNDOING && undo);
    case STEP_COMPLETED:
    case STEP_SKIPPED:
        /* It restarts under another key, and may have begun before the task turned back. */
        if (anew
            && (!undo || to == STEP_WAITING || to == STEP_RUNNING || to == STEP_SKIPPED
                || (to == STEP_COMPLETED && u->f->is_each))) /* its new list is empty */
            return u->before->state == STEP_SKIPPED || u->f->undo == UNDO_NONE
                   || (u->f->is_each && u->before->effects == 0); /* nothing was done */
        return undo
               && (to == STEP_UNDOING || (to == STEP_UNDONE && verbs)
                   || (to == STEP_FAILED && u->f->may_break));
    case STEP_FAILED:
        return (to == STEP_UNDOING && undo)
               || (verbs
                   && (to == STEP_WAITING || to == STEP_RUNNING || to == STEP_SKIPPED
                       || (to == STEP_COMPLETED
                           && (u->after->supplied || u->f->is_signal || u->f->is_approval
                               || u->f->is_each))
                       || to == STEP_UNDONE)); /* a signal was there when it waited anew, or votes
                                                */
    case STEP_UNDOING:
        return to == STEP_UNDONE || to == STEP_FAILED;
    case STEP_UNDONE:
        return false;
    }
    UNREACHABLE();
}

static bool has_completed(const struct seen_step *s, enum direction d)
{
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == d && s->attempts[i].outcome == OUTCOME_COMPLETED)
            return true;
    return false;
}

/* Was its current key used in a request? */
static bool has_had_its_key(const struct seen_step *s)
{
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].direction == DIRECTION_FORWARD
            && s->attempts[i].generation == s->generation)
            return true;
    return false;
}

static uint32_t tries_of(const struct turn *u)
{
    const struct flow_retry *r =
        u->after->direction == DIRECTION_UNDO ? &u->f->undo_retry : &u->f->retry;

    return r->attempts + r->defers;
}

static void check_state(const struct turn *u)
{
    const struct seen_step *s = u->after;
    bool spent = s->failure_count >= tries_of(u);

    must(u, state_may(u), "steps move along their edges");
    must(u, s->state != STEP_RUNNING || seen_open(s), "a running step has an attempt");
    must(u, s->state != STEP_WAITING || !seen_open(s), "a waiting step has no open attempt");
    must(u,
         s->state != STEP_COMPLETED || s->supplied || u->f->is_wait
             || has_completed(s, DIRECTION_FORWARD),
         "a step completes by an attempt, or by hand");
    must(u, s->generation >= u->before->generation, "no key comes back");
    must(u,
         u->before->input == 0 || s->input == u->before->input
             || s->generation > u->before->generation || s->round > u->before->round
             || !has_had_its_key(u->before),
         "another request has another key");
    must(u, s->state != STEP_COMPLETED || s->has_output, "a completed step has an output");
    must(u, s->resume == 0 || (s->resume_of == s->direction && s->resume <= s->attempt),
         "what is left for the next try is of this direction");
    must(u,
         s->direction == DIRECTION_FORWARD || u->f->undo == UNDO_CALL || u->f->undo == UNDO_CHILD
             || u->f->is_child, /* one that is not known to have ended turns back in any case */
         "only what has an undo is undone");
    must(u, !u->f->on_undo || u->new->direction == DIRECTION_UNDO || s->attempt_count == 0,
         "what runs on undo does not run before");
    if (s->state == STEP_UNDONE)
        must(u,
             has_completed(s, DIRECTION_UNDO) || u->t->skipped[u->i]
                 || s->child.state == CHILD_COMPENSATED || u->f->is_each,
             "a step is undone by its agent or by hand");
    if (s->state == STEP_SKIPPED)
        must(u, u->t->skipped[u->i] || u->f->may_break, "a step is skipped for a reason");
    if (s->state == STEP_WAITING || s->state == STEP_UNDOING)
        must(u, !spent || u->t->verbs, "tries come to an end");
    if (s->state == STEP_FAILED && u->before->state != STEP_FAILED && s->attempt_count > 0)
        must(u,
             spent || u->f->may_break || s->not_yet
                 || said_permanent(u->t, u->i, s->direction, s->attempt),
             "a step fails when its tries are spent, or for good");
}

/* ---- attempts ---- */

static void check_truth(const struct turn *u, const struct seen_attempt *a)
{
    const struct ledger *l = &u->t->ledger[u->i];
    bool told = said_find(u->t, u->i, a->direction, a->number, false);

    if (a->effect == EFFECT_HAPPENED)
        must(u, told, "an agent said so");
    if (a->outcome == OUTCOME_FAILED
        || (a->outcome == OUTCOME_LATE && a->effect != EFFECT_HAPPENED))
        must(u,
             said_effect(u->t, u->i, a->direction, a->number, a->effect)
                 || (a->resent > 0 && a->effect == EFFECT_UNKNOWN
                     && said_effect(u->t, u->i, a->direction, a->number, EFFECT_NONE)),
             "an agent said so");
    must(u, a->resent == 0 || a->effect != EFFECT_NONE,
         "who was asked twice does not know of all that happened");
    if (a->effect == EFFECT_HAPPENED && a->direction == DIRECTION_FORWARD)
        must(u, l->happened_at != 0, "what is said to have happened has happened");
    if (a->effect == EFFECT_HAPPENED && a->direction == DIRECTION_UNDO)
        must(u, l->undone_at != 0 || l->tombstone, "what is said to be undone is undone");
}

static int64_t silence_of(const struct turn *u, const struct seen_attempt *a)
{
    return a->direction == DIRECTION_UNDO ? u->f->undo_heartbeat_ms : u->f->heartbeat_ms;
}

/* May it have ended by silence, and been answered late in the same change? */
static bool may_be_silent(const struct turn *u, const struct seen_attempt *a)
{
    int64_t ms = silence_of(u, a);

    return ms > 0 && latest_now() >= a->started_at + ms;
}

static bool outcome_may(const struct turn *u, const struct seen_attempt *a, enum outcome to)
{
    switch (a->outcome) {
    case OUTCOME_OPEN:
        return to != OUTCOME_LATE || latest_now() >= a->complete_by || may_be_silent(u, a);
    case OUTCOME_TIMED_OUT:
        return to == OUTCOME_TIMED_OUT || to == OUTCOME_LATE;
    case OUTCOME_COMPLETED:
    case OUTCOME_FAILED:
    case OUTCOME_NOT_SENT:
    case OUTCOME_LATE:
        return to == a->outcome;
    }
    UNREACHABLE();
}

static void cover_outcome(const struct turn *u, const struct seen_attempt *a)
{
    if (a->outcome == OUTCOME_NOT_SENT)
        covered(COVER_NOT_SENT);
    if (a->outcome == OUTCOME_LATE) {
        covered(COVER_LATE);
        if (a->effect == EFFECT_HAPPENED)
            covered(COVER_LATE_EFFECT);
    }
    if (u->f->undo == UNDO_PIVOT && u->after->state != STEP_COMPLETED && seen_in_doubt(u->after))
        covered(COVER_PIVOT_IN_DOUBT);
}

static void check_wait(const struct turn *u, const struct seen_attempt *a);
static void check_wish(const struct turn *u, const struct seen_attempt *a);

/* An attempt that existed before. Returns true if it ended as a failure. */
static bool check_kept(const struct turn *u, const struct seen_attempt *was,
                       const struct seen_attempt *is)
{
    must(u, outcome_may(u, was, is->outcome), "what became of an attempt stays so");
    must(u, was->started_at == is->started_at && was->complete_by == is->complete_by,
         "an attempt keeps its times");
    must(u, is->elsewhere || !was->elsewhere, "what is elsewhere stays so");
    must(u, !is->elsewhere || is->outcome != OUTCOME_NOT_SENT, "what is elsewhere was sent");
    if (was->outcome == is->outcome)
        return false;
    check_truth(u, is);
    cover_outcome(u, is);
    if (was->outcome != OUTCOME_OPEN)
        return false;
    must(u, is->ended_at > 0 && is->ended_at <= latest_now(), "an attempt ends now");
    check_health_end(u->t, u->i, is);
    if (is->outcome == OUTCOME_TIMED_OUT ? is->silent
                                         : is->outcome == OUTCOME_LATE && silence_of(u, is) > 0
                                               && is->ended_at < is->complete_by)
        check_silence(u->t, u->i, is);
    else if (is->outcome == OUTCOME_TIMED_OUT || is->outcome == OUTCOME_LATE)
        check_timeout(u->t, u->i, is);
    if (u->old->locked && u->new->locked &&strcmp(u->old->owner, u->new->owner) != 0)
        covered(COVER_ANOTHER_NODE);
    if (is->outcome == OUTCOME_COMPLETED || is->outcome == OUTCOME_NOT_SENT)
        return false;
    if (is->outcome == OUTCOME_FAILED && said_only_permanent(u->t, u->i, is->direction, is->number))
        must(u, u->after->state == STEP_FAILED || u->t->verbs || u->new->direction != is->direction,
             "a permanent error is not tried again");
    const struct flow_retry *r = is->direction == DIRECTION_UNDO ? &u->f->undo_retry : &u->f->retry;
    check_spared(u->t, u->i, u->after, is,
                 u->after->direction == is->direction && u->after->state != STEP_FAILED
                     && r->attempts + r->defers > 1 && !u->t->verbs);
    check_wait(u, is);
    check_wish(u, is);
    return !is->spared;
}

static void check_missing(const struct turn *u, const struct seen_attempt *was)
{
    must(u, u->after->dropped_count > u->before->dropped_count, "attempts are not forgotten");
    covered(COVER_DROPPED);
    if (was->direction == DIRECTION_UNDO
        || (was->resent == 0 /* it may be a late answer in the same change */
            && said_effect(u->t, u->i, was->direction, was->number, EFFECT_NONE)))
        return;
    if (u->f->is_repeated) /* an answer settles what was before it */
        must(u, u->after->dropped_effect != EFFECT_NONE || was->effect == EFFECT_NONE,
             "what a dropped attempt did is kept");
    else
        must(u, u->after->dropped_effect >= was->effect, "what a dropped attempt did is kept");
    if (was->effect == EFFECT_UNKNOWN || was->resent > 0)
        must(u, u->after->dropped_until >= was->complete_by, "until when it may work is kept");
}

static void check_new(const struct turn *u, const struct seen_attempt *a, uint32_t at)
{
    bool same = u->before->direction == a->direction;

    must(u, a->outcome == OUTCOME_OPEN && at + 1 == u->after->attempt_count,
         "an attempt begins open");
    must(u, a->number == (same ? u->before->attempt + 1 : 1), "attempts are numbered");
    must(u, u->new->wake_at != 0 && u->new->wake_at <= a->complete_by,
         "the row's alarm is no later than what it is for");
    check_start(u->t, u->i, u->old, u->new, a);
}

static void check_attempts(const struct turn *u)
{
    const struct seen_step *s = u->after;
    uint32_t failures = 0;
    uint32_t fresh = 0;
    uint32_t open = 0;

    for (uint32_t i = 0; i < u->before->attempt_count; i++) {
        const struct seen_attempt *was = &u->before->attempts[i];
        const struct seen_attempt *is = seen_find(s, was->direction, was->number);
        if (is)
            failures += check_kept(u, was, is) && is->direction == s->direction;
        else
            check_missing(u, was);
    }
    for (uint32_t i = 0; i < s->attempt_count; i++) {
        const struct seen_attempt *a = &s->attempts[i];
        open += a->outcome == OUTCOME_OPEN;
        if (seen_find(u->before, a->direction, a->number))
            continue;
        fresh++;
        check_new(u, a, i);
    }
    must(u, open <= 1, "a step has at most one open attempt");
    must(u, fresh <= 1, "a step starts once in a change");
    if (u->t->verbs || u->f->may_break)
        return;
    bool other = u->before->direction != s->direction || u->before->round < s->round;
    uint32_t base = other ? 0 : u->before->failure_count;
    bool not_yet = s->state == STEP_FAILED && u->before->state != STEP_FAILED && s->not_yet
                   && !u->f->is_child; /* a child may fail for that */
    bool child = flow_has_one_child(u->f) && s->direction == DIRECTION_FORWARD
                 && s->state == STEP_FAILED && u->before->state != STEP_FAILED;
    must(u, s->failure_count == base + failures + not_yet + child, "failures are counted");
}

/* ---- retries ---- */

static void check_wait(const struct turn *u, const struct seen_attempt *a)
{
    const struct flow_retry *r = a->direction == DIRECTION_UNDO ? &u->f->undo_retry : &u->f->retry;
    const struct seen_step *s = u->after;
    int64_t wait = r->wait_ms;

    if (s->direction != a->direction || s->wait_until == 0 || seen_open(s) || u->t->verbs
        || s->state == STEP_FAILED || a->spared || said_wish(u->t, u->i, a->direction, a->number))
        return;
    if (s->failure_count >= r->attempts) {
        covered(COVER_DEFERRED);
        must(u, s->wait_until == a->ended_at + r->defer_ms,
             "the extended wait is as long as it says");
        return;
    }
    for (uint32_t k = 1; k < s->failure_count && wait < r->max_wait_ms; k++)
        wait *= 2;
    wait = min_i64(wait, r->max_wait_ms);
    must(u, s->wait_until <= a->ended_at + wait, "waits are no longer than they may be");
    must(u, s->wait_until >= a->ended_at + wait / 2, "waits grow");
}

/* Not before the time its service requested, during and after an outage, too. */
static void check_wish(const struct turn *u, const struct seen_attempt *a)
{
    const struct seen_step *s = u->after;
    int64_t ms = said_least_wish(u->t, u->i, a->direction, a->number);

    if (a->outcome != OUTCOME_FAILED || ms == 0 || s->direction != a->direction || seen_open(s)
        || u->t->verbs || s->state == STEP_FAILED)
        return;
    if (a->spared)
        covered(COVER_WISH_IN_OUTAGE);
    must(u, s->wait_until >= a->ended_at + ms, "a try waits as long as its service has asked for");
}

/* ---- resolved by an operator ---- */

/* Until when the doubt may still come true: a late answer may be in the same change, and later
 * attempts are a separate matter. */
static int64_t resolved_until(const struct turn *u)
{
    struct seen_step then = *u->after;

    then.resolved = u->before->resolved;
    while (then.attempt_count > 0
           && then.attempts[then.attempt_count - 1].number > u->after->resolved)
        then.attempt_count--;
    return seen_doubt_until(seen_in_doubt(&then) ? &then : u->before);
}

/* Only when it can no longer come true, only for that doubt, and truthfully. */
static void check_resolved(const struct turn *u)
{
    const struct seen_step *s = u->after;

    if (u->before->resolved > 0 && seen_in_doubt(s) && !seen_in_doubt(u->before))
        covered(COVER_DOUBT_AGAIN);
    if (s->resolved == u->before->resolved)
        return;
    must(u, s->resolved > u->before->resolved, "what was resolved stays so");
    must(u, u->t->wanted[ASK_RESOLVE] > 0, "an operator resolved it");
    must(u, seen_in_doubt(u->before) && s->resolved == u->before->attempt,
         "what is resolved is what was in doubt");
    must(u, latest_now() >= resolved_until(u) + CLOCK_MARGIN_MS,
         "nothing is resolved that may still take effect");
    must(u, s->resolved <= u->t->ledger[u->i].barred, "an operator looked at what he resolves");
    must(u, u->t->ledger[u->i].happened_at == 0, "what took effect is not resolved");
    if (u->f->undo == UNDO_PIVOT)
        covered(COVER_RESOLVED_PIVOT);
}

/* ---- the step as a whole ---- */

static void cover_step(const struct turn *u)
{
    const struct seen_step *s = u->after;
    bool late = false;
    bool refused = false;

    if (s->state == u->before->state)
        return;
    for (uint32_t i = 0; i < s->attempt_count; i++) {
        const struct seen_attempt *a = &s->attempts[i];
        if (a->direction == DIRECTION_UNDO)
            continue;
        late |= a->outcome == OUTCOME_TIMED_OUT;
        refused |= late && a->outcome == OUTCOME_FAILED && a->effect == EFFECT_NONE;
    }
    if (s->state == STEP_UNDONE && refused)
        covered(COVER_REFUSED_IN_DOUBT);
    if (s->state == STEP_UNDONE && seen_undone_by_hand(s))
        covered(COVER_SKIP_IN_UNDO);
    if (s->state == STEP_UNDONE && s->failure_count > 0)
        covered(COVER_UNDO_RETRIED);
    if (s->state == STEP_FAILED && s->direction == DIRECTION_UNDO)
        covered(COVER_UNDO_STUCK);
    if (s->state == STEP_SKIPPED)
        covered(seen_in_doubt(s)      ? COVER_SKIP_IN_DOUBT
                : u->t->skipped[u->i] ? COVER_RESUMED
                                      : COVER_CONDITION);
    if (s->state == STEP_FAILED && s->attempt_count == 0)
        covered(COVER_EXPRESSION);
    if (s->state == STEP_FAILED && u->f->on_failure == ON_FAILURE_CONTINUE)
        covered(COVER_CONTINUED);
    if (s->state == STEP_COMPLETED && u->f->undo == UNDO_PIVOT && late)
        covered(COVER_PIVOT_RESOLVED);
}

static void check_step(struct subject *t, uint32_t i, const struct seen *old,
                       const struct seen *new)
{
    const struct turn u = {t, &t->flow->steps[i], i, old, new, &old->steps[i], &new->steps[i]};

    check_attempts(&u);
    check_state(&u);
    check_resolved(&u);
    cover_step(&u);
    if (new->steps[i].grouped && !old->steps[i].grouped)
        covered(COVER_GROUPED);
    if (old->steps[i].grouped && !new->steps[i].grouped)
        covered(COVER_GROUPED_AGAIN);
}

/* ---- the task ---- */

static void must_be(const struct subject *t, bool ok, const char *rule)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s", t->id);
}

static bool any_open(const struct seen *s)
{
    for (uint32_t i = 0; i < s->step_count; i++)
        if (seen_open(&s->steps[i]))
            return true;
    return false;
}

static void check_columns(const struct subject *t, const struct seen *new)
{
    bool owned = new->state == TASK_PROCESSING || new->state == TASK_COMPENSATING;
    bool back = new->direction == DIRECTION_UNDO;

    if (new->waiting_for[0] == ',')
        covered(COVER_WAITS_AMONG);
    must_be(t, new->locked == owned, "who is in work has an owner, and nobody else");
    must_be(t, new->state != TASK_PROCESSING || !back, "processing is forward");
    must_be(t, new->state != TASK_PROCESSED || !back, "processed is forward");
    must_be(t, new->state != TASK_COMPENSATING || back, "compensating is backward");
    must_be(t, new->state != TASK_COMPENSATED || back, "compensated is backward");
    must_be(t, new->state != TASK_ERROR || new->has_error, "a stopped task says why");
    must_be(t, !any_open(new) || !seen_is_end(new), "nothing runs after the end");
    must_be(t, !any_open(new) || new->wake_at != 0, "what runs has an alarm");
    /* A node whose clock is behind may find the request too early, even while it takes a late
     * result that leaves another step to be undone. An operator's change may keep that. */
    must_be(t,
            new->state != TASK_PENDING || !any_open(new) || new->requested
                || (nodes.skew_max > 0
                    && (world.set_back || nodes.skew_drawn_max > MARGIN_MS
                        || strcmp(new->waiting_for, "time") == 0))
                || ((nodes.skew_max > 0 || world.set_back) && t->seen.state == TASK_PENDING
                    && any_open(&t->seen)),
            "what is released does not run");
    must_be(t, seen_is_end(new) == (new->ended_at != 0), "an end has its time");
}

/* After the end only a late result may still be recorded. */
static void check_final(const struct subject *t, const struct seen *old, const struct seen *new)
{
    must_be(t, new->state == old->state, "an end is final; only an operator resumes a task");
    for (uint32_t i = 0; i < new->step_count; i++) {
        must_be(t, new->steps[i].state == old->steps[i].state, "an end is final");
        must_be(t, new->steps[i].attempt == old->steps[i].attempt, "nothing starts after the end");
    }
}

/* A processed task turns back only at an operator's request. Pivots and times are checked
 * elsewhere. */
static bool is_undone_after_all(const struct subject *t, const struct seen *old,
                                const struct seen *new)
{
    if (old->state != TASK_PROCESSED || new->direction != DIRECTION_UNDO)
        return false;
    covered(COVER_UNDO_PROCESSED);
    must_be(t, t->parent ? new->asked == WISH_UNDO : t->wanted[ASK_UNDO] > 0,
            "a processed task goes back only if an operator, or its parent, says so");
    return true;
}

static void check_first(const struct subject *t, const struct seen *new)
{
    const struct flow *f = t->flow;
    int64_t from = max_i64(new->submitted_at, new->not_before);

    int64_t at = f->complete_by_ms ? from + f->complete_by_ms : 0;
    if (t->cap)
        at = at ? min_i64(at, t->cap) : t->cap;

    /* It may have been paused before it was stored, and resumed. */
    must_be(t, new->complete_by == at || (t->verbs && new->complete_by > at &&at != 0),
            "complete-by counts from submission");
}

static void cover_task(const struct subject *t, const struct seen *old, const struct seen *new)
{
    if (old->state == new->state && old->direction == new->direction)
        return;
    if (new->state == TASK_PENDING)
        covered(COVER_RELEASED);
    if (new->state == TASK_PROCESSED)
        covered(COVER_PROCESSED);
    if (new->state == TASK_COMPENSATED)
        covered(COVER_COMPENSATED);
    if (old->state == TASK_ERROR)
        covered(COVER_RESUMED);
    if (new->state != TASK_ERROR)
        return;
    covered(COVER_ERROR);
    if (new->cause.code == seen_hash(SLICE("overrun")))
        covered(COVER_OVERRAN);
    for (uint32_t i = 0; i < new->step_count; i++)
        if (t->flow->steps[i].undo == UNDO_PIVOT && new->direction == DIRECTION_FORWARD) {
            if (new->steps[i].state == STEP_COMPLETED)
                covered(COVER_PIVOT_COMPLETED_FAIL);
            else if (seen_in_doubt(&new->steps[i]))
                covered(COVER_PIVOT_STANDS);
        }
}

static void trace_row(const struct node *n, const struct subject *t, const struct seen *s)
{
    char steps[FLOW_STEPS_MAX * 24] = "";
    size_t at = 0;

    for (uint32_t i = 0; i < s->step_count; i++) {
        const struct seen_step *p = &s->steps[i];
        at +=
            (size_t)snprintf(steps + at, sizeof steps - at, " %s%s%u%s", step_state_text(p->state),
                             p->direction == DIRECTION_UNDO ? "<" : ">", p->attempt,
                             seen_open(p) ? "*" : "");
    }
    trace("row %s by %s r%" PRIu64 " %s%s%s%s%s:%s", t->id, n->me, s->revision,
          task_state_text(s->state), s->stop == STOP_NONE ? "" : " stop ",
          s->stop == STOP_NONE ? "" : stop_text(s->stop), s->waiting_for[0] ? " for " : "",
          s->waiting_for, steps);
}

static bool same_open(const struct seen_step *a, const struct seen_step *b)
{
    const struct seen_attempt *x = seen_open(a);
    const struct seen_attempt *y = seen_open(b);

    return x && y && x->direction == y->direction && x->number == y->number;
}

void check_row(const struct node *n, const struct task_row *row, uint64_t changes, bool told)
{
    static struct seen old; /* both are too large for the stack */
    static struct seen new;
    struct subject *t = subject_find(row->id);

    old = t->seen;
    seen_read(row, t->flow, &new);
    t->seen = new;
    t->changed_at = world.now;
    t->writer = n;
    t->requested_before = old.requested;
    t->requested_once |= old.requested;
    t->heard = told;
    t->tell_by = NULL;
    if (told)
        check_tell(n, t);
    trace_row(n, t, &new);
    must_be(t, new.revision == old.revision + changes, "a change raises the revision by one");
    if (seen_is_end(&old) && ((!t->verbs && !is_of_family(t)) || old.state != TASK_ERROR)
        && !is_undone_after_all(t, &old, &new))
        check_final(t, &old, &new);
    must_be(t, old.direction == DIRECTION_FORWARD || new.direction == DIRECTION_UNDO,
            "a task turns back at most once");
    must_be(t, new.failure_count >= old.failure_count, "failures are never forgotten");
    must_be(t, old.revision == 0 || new.trace == old.trace, "a task stays in its trace");
    must_be(t, new.trace == 0 || new.trace == subject_trace(t), "a trace is the submitter's");
    if (old.revision == 0) {
        t->made_at = world.now;
        check_first(t, &new);
    }
    check_columns(t, &new);
    check_cause(t, &old, &new);
    check_deadline(t, &old, &new);
    check_not_before(t, &old, &new);
    check_signals(t, &old, &new);
    check_votes(t, &old, &new);
    check_allowed(t, &old, &new);
    for (uint32_t i = 0; i < new.step_count; i++) {
        check_step(t, i, &old, &new);
        if (t->flow->steps[i].is_signal)
            check_signal_step(t, i, &old, &new);
        else if (t->flow->steps[i].is_approval)
            check_approval(t, i, &old, &new);
        else if (flow_has_one_child(&t->flow->steps[i]))
            check_child_unit(t, i, &old.steps[i], &new.steps[i], &old, &new);
        else if (!t->flow->steps[i].is_each)
            check_waits(t, i, &old, &new);
        check_rounds(t, i, &old, &new);
        if (seen_open(&new.steps[i]) && !same_open(&old.steps[i], &new.steps[i])) {
            t->began_at[i] = world.now;
            if (seen_open(&new.steps[i])->direction == DIRECTION_UNDO)
                check_undo_begins(t, i, &old, &new);
        }
        if (new.steps[i].attempt != old.steps[i].attempt)
            t->started[i] = told ? new.revision : 0;
    }
    check_items(t, row, &old, &new);
    check_alarm(t, &new);
    check_family_row(t, &old);
    check_locks(t, &old);
    if (old.direction != new.direction)
        check_turn_back(t, &new);
    cover_task(t, &old, &new);
    if (new.state == TASK_PROCESSED || new.state == TASK_COMPENSATED)
        check_end_of(t);
    if (new.state == TASK_ERROR && old.state != TASK_ERROR &&told) {
        t->alert_due = n->disk.runs;
        t->alert_by = n;
    }
    check_why(n, t, row, &old);
    receivers_row(t, &old, &new);
}

/* ---- for coverage only ---- */

void check_conflict(const struct task_row *row)
{
    static struct seen wanted;
    const struct subject *t = subject_find(row->id);

    if (!row->doc.ptr || t->seen.revision == 0)
        return;
    if (!slice_is(row->workflow, t->flow->name)) /* the run of a moment that had one before */
        return;
    seen_read(row, t->flow, &wanted);
    trace("conflict: %s r%" PRIu64, t->id, wanted.revision);
    for (uint32_t i = 0; i < wanted.step_count; i++) {
        const struct seen_attempt *open = seen_open(&t->seen.steps[i]);
        if (open && seen_find(&wanted.steps[i], open->direction, open->number)
            && !seen_open(&wanted.steps[i]))
            covered(COVER_CONFLICT_RESULT);
    }
}
