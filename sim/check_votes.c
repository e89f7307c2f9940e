/* Votes, and steps in which people decide: only persons who are asked have votes, each one, on the
 * question that was asked; enough of them decide, or one who rejects it, or nobody in time. A model
 * of its own: it knows the flow, what was sent, and the rows. */

#include <stdio.h>

#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/voters.h"
#include "sim/world.h"

static void must(const struct subject *t, bool ok, const char *rule, uint32_t step)
{
    if (ok)
        return;
    describe(t);
    broken(rule, "%s/s%u", t->id, step);
}

struct count {
    uint32_t agree, reject;
};

/* Counts, among the first `most` votes, those on that step's question. */
static struct count count_first(const struct seen *s, uint32_t most, uint32_t step)
{
    struct count c = {0};

    for (uint32_t k = 0; k < most; k++)
        if (s->votes[k].step == (int)step) {
            c.agree += s->votes[k].agrees;
            c.reject += !s->votes[k].agrees;
        }
    return c;
}

static struct count count_of(const struct seen *s, uint32_t step)
{
    return count_first(s, s->vote_count, step);
}

bool votes_decide_it(const struct subject *t, const struct seen *s, uint32_t step)
{
    struct count c = count_of(s, step);

    return c.reject > 0 || c.agree >= t->flow->steps[step].people;
}

static bool is_asked_anew(const struct seen *old, const struct seen *new, uint32_t step)
{
    return new->steps[step].generation != old->steps[step].generation;
}

static const struct seen_vote *find(const struct seen *s, const struct seen_vote *v)
{
    for (uint32_t k = 0; k < s->vote_count; k++)
        if (s->votes[k].step == v->step && s->votes[k].person == v->person)
            return &s->votes[k];
    return NULL;
}

/* ---- a vote that counts ---- */

static bool was_sent(const struct subject *t, const struct seen *new, const struct seen_vote *v)
{
    for (uint32_t k = 0; k < t->votes_sent; k++) {
        const struct sent_vote *s = &t->votes[k];
        if ((int)s->step == v->step && s->person == v->person && s->agrees == v->agrees
            && (s->asking == 0 || s->asking == new->steps[v->step].generation))
            return true;
    }
    return false;
}

bool check_vote_audited(const struct subject *t, const struct audit *a)
{
    for (uint32_t k = 0; k < t->votes_sent; k++) {
        const struct sent_vote *s = &t->votes[k];
        char token[VOTER_TOKEN_SIZE];
        voters_token(s, token);
        if (slice_is(a->actor, token) && slice_is(a->verb, s->agrees ? "approve" : "reject"))
            return true;
    }
    return false;
}

static bool may_vote(const struct flow_step *f, const struct seen_step *s,
                     const struct seen_vote *v)
{
    if (v->person == VOTER_LATER)
        return f->escalate_ms != 0 && v->at >= s->begun_at + f->escalate_ms;
    return v->person != VOTER_NEVER && (v->person != VOTER_SUBMITS || !f->not_submitter);
}

static void check_new(const struct subject *t, const struct seen *old, const struct seen *new,
                      const struct seen_vote *v)
{
    uint32_t i = (uint32_t)v->step;
    const struct flow_step *f = &t->flow->steps[i];
    const struct seen_step *was = &old->steps[i];

    covered(v->agrees ? COVER_VOTE : COVER_VOTE_REJECTS);
    if (v->person == VOTER_LATER)
        covered(COVER_VOTE_ESCALATED);
    if (old->paused_at != 0 || old->state == TASK_ERROR)
        covered(COVER_VOTE_PAUSED);
    must(t, f->is_approval, "only what asks people has votes", i);
    must(t, was_sent(t, new, v), "no vote is invented, or counts for another question", i);
    must(t, new->steps[i].begun_at != 0, "nobody votes on what is not asked", i);
    must(t, may_vote(f, &new->steps[i], v), "who is not asked has no vote", i);
    must(t, v->at <= latest_now(), "a vote is cast now", i);
    must(t, old->direction == DIRECTION_FORWARD, "nobody votes on the way back", i);
    must(t, old->stop != STOP_UNDO || new->stop != STOP_UNDO || t->verbs,
         "nobody votes on what is to be undone", i);
    must(t, old->closed_at == 0 || old->closed_at != new->closed_at,
         "nobody votes on what is closed", i);
    must(t,
         is_asked_anew(old, new, i) || (was->state == STEP_WAITING && !votes_decide_it(t, old, i)),
         "nobody votes after the decision", i);
}

/* The last of them decides; no earlier one did. */
static void check_order(const struct subject *t, const struct seen *s, uint32_t k)
{
    const struct seen_vote *v = &s->votes[k];
    uint32_t step = (uint32_t)v->step;
    struct count c = count_first(s, k, step);

    for (uint32_t i = 0; i < k; i++)
        must(t, s->votes[i].step != v->step || s->votes[i].person != v->person,
             "a person has one vote", step);
    must(t, c.reject == 0 && c.agree < t->flow->steps[step].people,
         "nobody votes after the decision", step);
}

/* ---- a vote that stands ---- */

static void check_old(const struct subject *t, const struct seen *old, const struct seen *new,
                      const struct seen_vote *v)
{
    const struct seen_vote *is = find(new, v);
    bool anew = is_asked_anew(old, new, (uint32_t)v->step);

    if (anew) {
        covered(COVER_VOTE_VOID);
        must(t, t->verbs, "only an operator has a question asked anew", (uint32_t)v->step);
        must(t, !is || is->at != v->at, "no vote counts for another question", (uint32_t)v->step);
        return;
    }
    must(t, is && is->agrees == v->agrees && is->at == v->at, "a vote stands", (uint32_t)v->step);
}

void check_votes(const struct subject *t, const struct seen *old, const struct seen *new)
{
    uint32_t fresh[FLOW_STEPS_MAX] = {0};

    for (uint32_t k = 0; k < old->vote_count; k++)
        check_old(t, old, new, &old->votes[k]);
    for (uint32_t k = 0; k < new->vote_count; k++) {
        const struct seen_vote *v = &new->votes[k];
        const struct seen_vote *was = find(old, v);
        check_order(t, new, k);
        if (was && !is_asked_anew(old, new, (uint32_t)v->step))
            continue;
        check_new(t, old, new, v);
        if (++fresh[v->step] == 2)
            covered(COVER_VOTE_RACE);
    }
}

void check_vote_told(const struct subject *t, const struct sent_vote *v, const struct ask *a)
{
    const struct seen_vote like = {.step = (int)v->step, .person = v->person};
    const struct seen_vote *is = find(&t->seen, &like);

    if (a->outcome == ERR_CONFLICT)
        covered(COVER_VOTE_REFUSED);
    if (a->outcome != ERR_OK)
        return;
    must(t, v->person != VOTER_NEVER, "who is not asked has no vote", v->step);
    must(t, t->deleted || t->verbs || (is && is->agrees == v->agrees),
         "a vote that is accepted is durable", v->step);
    must(t, a->agreed <= t->flow->steps[v->step].people, "no more agree than are needed", v->step);
}

/* ---- the step ---- */

/* As it was asked: it is never the question for another input. */
static void check_question(const struct subject *t, uint32_t i, const struct seen *new)
{
    char text[64];

    (void)snprintf(text, sizeof text, "\"Is %" PRId64 " right?\"", new->input_n); /* it fits */
    must(t, new->steps[i].input == seen_hash(slice_of(text)),
         "people are asked about the present input", i);
}

static void check_begin(const struct subject *t, uint32_t i, const struct seen *new)
{
    const struct flow_step *f = &t->flow->steps[i];
    const struct seen_step *s = &new->steps[i];
    int64_t by = f->asks_ms ? s->begun_at + f->asks_ms : 0;

    must(t, s->begun_at <= latest_now(), "people are asked now", i);
    for (uint32_t p = 0; p < new->step_count; p++)
        if (f->past & BIT(p) && new->direction == DIRECTION_FORWARD)
            must(t, seen_passed(&t->flow->steps[p], &new->steps[p]),
                 "people are asked when all before it has ended", i);
    must(t, s->complete_by == by || (t->verbs && by != 0 && s->complete_by > by),
         "people are asked for as long as it says", i);
}

static void check_time(const struct subject *t, uint32_t i, const struct seen *old,
                       const struct seen *new)
{
    int64_t moved = new->steps[i].complete_by - old->steps[i].complete_by;

    must(t, moved == 0 || t->verbs, "only what a person does moves a complete-by", i);
    must(t, moved >= 0, "no complete-by becomes earlier", i);
}

static void check_approved(const struct subject *t, uint32_t i, const struct seen *new)
{
    const struct seen_decision *d = &new->steps[i].decision;
    uint32_t n = 0;

    covered(COVER_APPROVED);
    must(t, d->approved && d->count == t->flow->steps[i].people, "the output says who approved", i);
    for (uint32_t k = 0; k < new->vote_count; k++)
        if (new->votes[k].step == (int)i) {
            must(t, n < d->count && d->by[n] == new->votes[k].person,
                 "the output says who approved", i);
            n++;
        }
}

/* Too few decided. */
static void check_late(const struct subject *t, uint32_t i, const struct seen *new)
{
    const struct flow_step *f = &t->flow->steps[i];
    const struct seen_step *s = &new->steps[i];

    covered(COVER_NOT_APPROVED);
    must(t, f->asks_ms != 0 && s->complete_by != 0, "a step without a limit waits", i);
    must(t, s->complete_by <= latest_now(), "nobody gives up asking early", i);
    must(t, (s->state == STEP_COMPLETED) == f->has_default, "a default is the output", i);
    must(t, s->state == STEP_FAILED || (!s->decision.approved && s->decision.count == 0),
         "nobody is said to have approved what had no votes", i);
}

static void check_end(const struct subject *t, uint32_t i, const struct seen *old,
                      const struct seen *new)
{
    struct count c = count_of(new, i);
    enum step_state state = new->steps[i].state;

    must(t, old->paused_at == 0 || new->paused_at != old->paused_at,
         "nothing is decided while the task is paused", i);
    if (!votes_decide_it(t, new, i)) {
        check_late(t, i, new);
        return;
    }
    must(t, (state == STEP_COMPLETED) == (c.reject == 0),
         "one rejection fails it, and no other vote", i);
    if (state == STEP_COMPLETED)
        check_approved(t, i, new);
    else
        covered(COVER_REJECTED);
}

/* ---- what people allowed ---- */

static bool is_skipped_plainly(const struct seen_step *s)
{
    return s->state == STEP_SKIPPED && !s->has_output;
}

/* Completed all the time: nobody was asked anew in between. */
static bool stands(const struct subject *t, const struct seen *old, const struct seen *new,
                   uint32_t i)
{
    return t->flow->steps[i].is_approval && old->steps[i].state == STEP_COMPLETED
           && new->steps[i].state == STEP_COMPLETED && old->steps[i].begun_at != 0
           && !is_asked_anew(old, new, i);
}

static void check_input(const struct subject *t, const struct seen *old, const struct seen *new)
{
    for (uint32_t i = 0; i < new->step_count; i++)
        if (stands(t, old, new, i)) {
            covered(COVER_ALLOWED_CORRECTED);
            must(t, new->input_by == 'z', "only an admin changes what people allowed", i);
        }
}

/* A step whose input is the task's has a text as well, by evaluation. */
static void check_step_input(const struct subject *t, const struct seen *old,
                             const struct seen *new, uint32_t i)
{
    const struct seen_step *s = &new->steps[i];

    if (s->input_by == 0 || s->input == old->steps[i].input || s->input == new->input)
        return;
    for (uint32_t p = 0; p < new->step_count; p++) {
        if (!(t->flow->steps[i].past & BIT(p)) || !t->flow->steps[p].is_approval
            || is_skipped_plainly(&old->steps[p]) || is_skipped_plainly(&new->steps[p]))
            continue;
        covered(COVER_ALLOWED_CORRECTED);
        must(t, s->input_by == 'z', "only an admin changes what people allow", i);
    }
}

void check_allowed(const struct subject *t, const struct seen *old, const struct seen *new)
{
    if (!flows_approve())
        return;
    if (new->input != old->input) {
        check_input(t, old, new);
        return;
    }
    for (uint32_t i = 0; i < new->step_count; i++)
        check_step_input(t, old, new, i);
}

/* ---- the step, decided on ---- */

/* In place of people. */
static void check_override(const struct subject *t, uint32_t i, const struct seen_step *s)
{
    covered(COVER_OVERRIDDEN);
    must(t, t->overrode[i], "only an admin decides in place of people", i);
    must(t, !s->has_output || s->decision.overridden, "the output says who decided", i);
}

void check_approval(const struct subject *t, uint32_t i, const struct seen *old,
                    const struct seen *new)
{
    const struct seen_step *a = &old->steps[i];
    const struct seen_step *b = &new->steps[i];
    bool ended = b->state == STEP_COMPLETED || b->state == STEP_FAILED;

    must(t, b->attempt == 0 && b->attempt_count == 0, "what asks people has no attempts", i);
    must(t, b->direction == DIRECTION_FORWARD, "what people decided is not undone", i);
    must(t, b->begun_at != 0 || a->begun_at == 0 || t->verbs, "what has begun stays so", i);
    if (b->begun_at != 0 && b->begun_at != a->begun_at)
        check_begin(t, i, new);
    else if (a->state == STEP_WAITING && b->state == STEP_WAITING && b->begun_at != 0)
        check_time(t, i, old, new);
    if (b->state == STEP_WAITING && b->begun_at != 0)
        check_question(t, i, new);
    if (b->supplied && (!a->supplied || is_asked_anew(old, new, i)))
        check_override(t, i, b);
    else if (b->state == STEP_SKIPPED && a->state != STEP_SKIPPED && b->begun_at != 0)
        check_override(t, i, b);
    else if (ended && !b->supplied && b->begun_at != 0
             && (a->state != b->state || b->begun_at != a->begun_at))
        check_end(t, i, old, new);
}
