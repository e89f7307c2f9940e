/* Steps that are repeated: what ends them, when the next round begins, and what a round is. A model
 * of its own: it knows the flow and the rows, not the code. */

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/world.h"

/* One repeated step before and after a change. */
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
    broken(rule,
           "%s/s%u: round %u at %" PRId64 ", until %" PRId64 "; before: %u at %" PRId64
           ", until %" PRId64,
           l->t->id, l->i, l->after->round, l->after->round_at, l->after->repeat_until,
           l->before->round, l->before->round_at, l->before->repeat_until);
}

/* The answer to that round; NULL: it has none. */
static const struct seen_attempt *answer_of(const struct look *l, uint32_t round)
{
    const struct seen_step *s = l->after;

    for (uint32_t i = s->attempt_count; i-- > 0;)
        if (s->attempts[i].round == round && s->attempts[i].outcome == OUTCOME_COMPLETED)
            return &s->attempts[i];
    return NULL;
}

static bool is_satisfied(const struct look *l, uint32_t round)
{
    return flow_is_satisfied(l->f, round, l->f->may_break ? 0 : l->t->ledger[l->i].number);
}

/* Its first attempt begins it. */
static const struct seen_attempt *first_of(const struct seen_step *s, uint32_t round)
{
    for (uint32_t i = 0; i < s->attempt_count; i++)
        if (s->attempts[i].round == round)
            return &s->attempts[i];
    return NULL;
}

static void check_attempts(const struct look *l)
{
    const struct seen_step *s = l->after;

    for (uint32_t i = 0; i < s->attempt_count; i++) {
        const struct seen_attempt *a = &s->attempts[i];
        const struct seen_attempt *last = i > 0 ? &s->attempts[i - 1] : NULL;
        must(l, a->round > 0 && a->direction == DIRECTION_FORWARD, "a round goes forward");
        must(l, a->generation < s->generation || a->round <= s->round, "rounds come in order");
        if (!last || last->generation != a->generation)
            continue;
        must(l, a->round >= last->round, "rounds come in order");
        must(l, a->round > last->round || last->outcome != OUTCOME_COMPLETED,
             "a round has one answer");
        must(l,
             a->round == last->round || last->outcome == OUTCOME_COMPLETED || s->dropped_count > 0,
             "a round ends with an answer");
    }
}

/* What an answer that satisfies nothing leads to. */
static void check_next(const struct look *l)
{
    const struct seen_step *s = l->after;
    uint32_t round = l->before->round;
    const struct seen_attempt *a = answer_of(l, round);
    int64_t gap = flow_round_gap(l->f, round);

    covered(COVER_ROUND);
    must(l, s->round == round + 1 || l->t->verbs, "one round follows another");
    must(l, a != NULL || l->t->verbs, "a round follows an answer");
    if (!a || l->t->verbs)
        return;
    must(l, !is_satisfied(l, round), "no round follows an answer that satisfies the step");
    must(l, first_of(s, round) != NULL || s->dropped_count > 0, "a round was begun");
    must(l, l->before->round_at < s->repeat_until, "no round follows the last one");
    must(l, s->failure_count == 0 || s->state == STEP_FAILED, "failures are those of a round");
    if (s->state != STEP_WAITING)
        return;
    /* the node that accepted the answer may have a clock ahead of the one that decides on it */
    must(l, s->wait_until >= a->ended_at + gap - 2 * nodes.skew_max || world.set_back,
         "a round does not begin before its time");
    must(l, s->wait_until <= latest_now() + gap, "a round begins at its time");
}

/* A retry gives a step that failed after an answer all its time again, from now on; by a clock that
 * was set back that may be over earlier. */
static bool is_renewed(const struct look *l)
{
    return world.set_back && l->t->verbs && l->before->state == STEP_FAILED
           && l->after->state != STEP_FAILED && l->after->round > l->before->round;
}

/* The time for all rounds is fixed by the first one, and moved by pauses and errors. */
static void check_time(const struct look *l)
{
    const struct seen_step *s = l->after;
    int64_t moved = s->repeat_until - l->before->repeat_until;
    bool resumed = l->old->paused_at != 0 && l->new->paused_at != l->old->paused_at;

    if (l->before->repeat_until == 0 || s->repeat_until == 0) {
        const struct seen_attempt *first = first_of(s, s->round);
        if (s->repeat_until != 0 && first && !l->t->verbs)
            must(l, s->repeat_until == first->started_at + l->f->for_ms,
                 "rounds have the time that the step says");
        must(l, s->repeat_until != 0 || l->before->repeat_until == 0 || l->t->verbs,
             "the time for rounds stays");
        return;
    }
    must(l, moved == 0 || l->t->verbs, "only what a person does moves the time for rounds");
    if (l->t->verbs && s->generation > l->before->generation)
        return;
    /* who retries a step may ask a node with another clock than the one that began its rounds */
    int64_t skew = l->t->verbs ? 2 * nodes.skew_max : 0;
    must(l, moved >= -skew || is_renewed(l), "no time for rounds becomes shorter");
    if (moved > 0 && resumed)
        covered(COVER_ROUND_PAUSED);
    if (moved > 0 && l->old->state == TASK_ERROR)
        covered(COVER_ROUND_IN_ERROR);
}

/* The last round: it satisfies the step, or its time had passed when it began. */
static void check_end(const struct look *l)
{
    const struct seen_step *s = l->after;
    const struct seen_attempt *last = s->attempt_count ? &s->attempts[s->attempt_count - 1] : NULL;

    if (s->state == STEP_COMPLETED && !s->supplied) {
        covered(COVER_ROUND_LAST);
        must(l, last && last->outcome == OUTCOME_COMPLETED && last->round == s->round,
             "a step ends with the answer to its last round");
        must(l, is_satisfied(l, s->round), "a step ends with an answer that satisfies it");
    }
    if (s->state == STEP_FAILED && s->not_yet) {
        covered(COVER_NOT_YET);
        must(l, last && last->outcome == OUTCOME_COMPLETED && last->round == s->round,
             "it is not yet when the last round is answered");
        must(l, !is_satisfied(l, s->round), "what satisfies a step does not fail it");
        must(l, s->round_at >= s->repeat_until, "no step fails whose time had not passed");
        must(l, s->has_output, "the last answer is the output");
    }
}

/* Whether the answer of the old round was judged by this change. */
static bool was_judged(const struct look *l)
{
    return seen_answered(l->before) && !seen_answered(l->after)
           && l->after->generation == l->before->generation && l->after->state != STEP_SKIPPED
           && !l->after->supplied;
}

static void check_judged(const struct look *l)
{
    bool paused = l->old->paused_at != 0 && l->new->paused_at == l->old->paused_at;

    covered(COVER_ROUND_LATER);
    must(l, !paused, "no answer is judged in a pause");
    must(l, l->new->closed_at == 0, "no answer of a closed task is judged");
    must(l, l->old->direction == DIRECTION_FORWARD || l->f->on_undo,
         "no answer is judged on the way back");
}

void check_rounds(const struct subject *t, uint32_t step, const struct seen *old,
                  const struct seen *new)
{
    const struct look l = {
        t, &t->flow->steps[step], step, old, new, &old->steps[step], &new->steps[step]};

    if (!l.f->is_repeated) {
        must(&l, l.after->round == 0 && l.after->repeat_until == 0,
             "only repeated steps have rounds");
        for (uint32_t i = 0; i < l.after->attempt_count; i++)
            must(&l, l.after->attempts[i].round == 0, "only repeated steps have rounds");
        return;
    }
    check_attempts(&l);
    check_time(&l);
    must(&l, l.after->round >= l.before->round || t->verbs, "rounds are counted");
    if (l.after->round > l.before->round && l.before->round > 0)
        check_next(&l);
    if (l.after->state != l.before->state)
        check_end(&l);
    if (was_judged(&l))
        check_judged(&l);
}
