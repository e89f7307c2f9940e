/* What people are asked: what becomes of a vote that arrives, what follows when they have decided,
 * or did not in time, and when they are asked anew. Part of decide(): see decision.h. */
#include "core/decision.h"
#include "core/reason.h"

bool task_needs_vote_room(const struct task *t)
{
    return t->vote_count == t->vote_cap && t->vote_count < VOTES_MAX;
}

static bool any_is_among(const struct slice *asked, uint16_t asked_count,
                         const struct slice *groups, size_t count)
{
    for (uint16_t i = 0; i < asked_count; i++)
        for (size_t k = 0; k < count; k++)
            if (slice_eq(asked[i], groups[k]))
                return true;
    return false;
}

bool step_asks(const struct workflow_step *ws, int64_t begun_at, const struct slice *groups,
               size_t count, int64_t now)
{
    const struct approve_spec *spec = &ws->approve;
    bool escalated = spec->escalate_ms != 0 && now >= begun_at + spec->escalate_ms;

    return any_is_among(spec->by, spec->by_count, groups, count)
           || (escalated && any_is_among(spec->to, spec->to_count, groups, count));
}

/* Why that person may not vote on what the step asks. */
static enum obstacle person_obstacle(const struct workflow *w, const struct task *t, uint16_t step,
                                     const struct ballot *b, int64_t now)
{
    const struct approve_spec *spec = &w->steps[step].approve;
    struct slice submitter = task_submitter(t);

    if (!step_asks(&w->steps[step], t->steps[step].begun_at, b->groups, b->group_count, now))
        return OBSTACLE_VOTE_GROUP;
    if (spec->not_submitter && (!submitter.ptr || slice_eq(submitter, b->person)))
        return OBSTACLE_VOTE_SUBMITTER;
    return OBSTACLE_NONE;
}

enum obstacle vote_obstacle(const struct workflow *w, const struct task *t, uint16_t step,
                            const struct ballot *b, int64_t now)
{
    const struct step *s = &t->steps[step];
    const struct vote *known = task_find_vote(t, step, b->person);

    if (w->steps[step].kind != KIND_APPROVE || s->begun_at == 0
        || (b->submitted_at != 0 && b->submitted_at != t->submitted_at))
        return OBSTACLE_VOTE_UNASKED;
    enum obstacle o = person_obstacle(w, t, step, b, now);
    if (o != OBSTACLE_NONE)
        return o;
    if (b->asking != 0 && b->asking != s->generation + 1)
        return OBSTACLE_VOTE_ANEW;
    if (known)
        return known->agrees == b->agrees ? OBSTACLE_NONE : OBSTACLE_VOTE_OTHER;
    if (task_state_is_end(t->state))
        return OBSTACLE_STATE;
    if (t->direction == DIRECTION_UNDO || t->stop == STOP_UNDO)
        return OBSTACLE_TASK_UNDONE;
    if (t->closed_at != 0)
        return OBSTACLE_CLOSED;
    if (s->state != STEP_WAITING || step_is_voted(w, t, step))
        return OBSTACLE_ENDED;
    return t->vote_count == VOTES_MAX ? OBSTACLE_VOTE_FULL : OBSTACLE_NONE;
}

enum answer vote_arrives(struct decision *d)
{
    const struct ballot *b = d->ev->ballot;
    struct task *t = d->t;

    if (vote_obstacle(d->w, t, (uint16_t)d->ev->step, b, d->now) != OBSTACLE_NONE)
        return ANSWER_REFUSED;
    if (task_find_vote(t, d->ev->step, b->person))
        return ANSWER_REPEATED;
    ASSERT(t->vote_count < t->vote_cap);
    t->votes[t->vote_count++] = (struct vote){.person = b->person,
                                              .comment = b->comment,
                                              .at = d->now,
                                              .step = d->ev->step,
                                              .agrees = b->agrees};
    return ANSWER_ACCEPTED;
}

enum answer votes_are_late(struct decision *d)
{
    const struct workflow_step *ws = &d->w->steps[d->ev->step];
    struct step *s = &d->t->steps[d->ev->step];
    struct fault_note why;

    if (s->complete_by == 0 || d->now < s->complete_by
        || !step_awaits_votes(d->w, d->t, (uint16_t)d->ev->step, d->now)
        || step_is_voted(d->w, d->t, (uint16_t)d->ev->step))
        return ANSWER_REFUSED;
    note(&why, "not_approved", "nobody decided by the step's complete-by");
    if (step_votes(d->t, d->ev->step).agreed > 0)
        note(&why, "not_approved", "too few people agreed by the step's complete-by");
    end_waiting(d, s, ws->approve.otherwise, why);
    return ANSWER_ACCEPTED;
}

enum answer votes_decide(struct decision *d)
{
    struct step *s = &d->t->steps[d->ev->step];
    struct tally tally = step_votes(d->t, d->ev->step);

    if (!step_awaits_votes(d->w, d->t, (uint16_t)d->ev->step, d->now)
        || !step_is_voted(d->w, d->t, (uint16_t)d->ev->step))
        return ANSWER_REFUSED;
    if (tally.rejection) {
        struct fault_note why = {SLICE("rejected"), tally.rejection->comment};
        end_waiting(d, s, SLICE_NONE, why);
        return ANSWER_ACCEPTED;
    }
    ASSERT(d->ev->output.json.ptr);
    step_completes(d, s);
    return ANSWER_ACCEPTED;
}

/* Those of other steps keep their order. */
static void remove_votes(struct task *t, uint16_t step)
{
    uint16_t kept = 0;

    for (uint16_t i = 0; i < t->vote_count; i++)
        if (t->votes[i].step != step)
            t->votes[kept++] = t->votes[i];
    t->vote_count = kept;
}

void votes_void(struct task *t, uint16_t step)
{
    struct step *s = &t->steps[step];

    remove_votes(t, step);
    s->generation += s->input.json.ptr != NULL; /* it had been asked */
    s->input = (struct value){0};
}

void approvals_ask_anew(struct decision *d)
{
    for (uint16_t i = 0; i < d->t->step_count; i++) {
        struct step *s = &d->t->steps[i];
        if (d->w->steps[i].kind != KIND_APPROVE || !step_has_begun(s))
            continue;
        votes_void(d->t, i);
        s->begun_at = s->complete_by = 0;
    }
}
