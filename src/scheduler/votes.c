/* Votes on what people are asked: from an ask to an event for core/, and refusals in words. Decides
 * nothing: commands.c applies the event. What follows from a decision: decisions.c. */

#include "scheduler/internal.h"

#include <stdio.h>

/* For the audit: which person, of which question. */
static void describe(struct live *l, struct command *c, int step)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "person", c->ask->ballot.person);
    json_member_number(&b, "asking", l->task.steps[step].generation + 1);
    if (c->ask->by_link)
        json_member_bool(&b, "link", true);
    json_close(&b, '}');
    c->detail = arena_copy(&l->arena, buf_view(&b));
}

static void grow_votes(struct live *l)
{
    struct task *t = &l->task;

    if (!task_needs_vote_room(t))
        return;
    uint16_t cap = t->vote_cap ? (uint16_t)min_i64(2 * (int64_t)t->vote_cap, VOTES_MAX) : 2;
    struct vote *more = arena_alloc(&l->arena, cap * sizeof *more);
    if (t->vote_count > 0)
        memcpy(more, t->votes, t->vote_count * sizeof *more);
    t->votes = more;
    t->vote_cap = cap;
}

/* One that will not count must not cost the task's memory each time, so it names no groups: it
 * stays refused, even if the step escalates before it is decided on. */
void vote_event(struct scheduler *s, struct live *l, struct command *c, struct event *ret)
{
    struct ask *a = c->ask;
    const struct workflow *w = &l->definition->workflow;
    int step = workflow_step_index(w, a->step);

    ASSERT(l->loaded);
    ASSERT(a->ballot.person.ptr);
    a->story[0] = 0; /* of an earlier evaluation */
    a->refusal = OBSTACLE_NONE;
    a->cast = a->ballot;
    if (step >= 0)
        a->refusal = vote_obstacle(w, &l->task, (uint16_t)step, &a->ballot, scheduler_now(s));
    if (a->refusal != OBSTACLE_NONE) {
        a->cast.group_count = 0;
    } else if (step >= 0 && !task_find_vote(&l->task, step, a->ballot.person)) {
        a->cast.person = arena_copy(&l->arena, a->ballot.person);
        a->cast.comment = arena_copy(&l->arena, a->ballot.comment);
        grow_votes(l);
        describe(l, c, step);
    }
    *ret = (struct event){.kind = EVENT_VOTE,
                          .step = step < 0 ? task_unit_count(&l->task) : step,
                          .ballot = &a->cast};
}

bool vote_decides(struct scheduler *s, const struct live *l, const struct event *e)
{
    const struct workflow *w = &l->definition->workflow;
    uint16_t step = (uint16_t)e->step;

    return step_is_voted(w, &l->task, step)
           && step_awaits_votes(w, &l->task, step, scheduler_now(s));
}

/* Cuts names that a client chose. */
#define SAY(a, fmt, one, two)                                                                   \
    (void)snprintf((a)->story, sizeof(a)->story, fmt, SLICE_ARG(slice_cut(one, ASK_NAME_TOLD)), \
                   SLICE_ARG(slice_cut(two, ASK_NAME_TOLD)))

static void explain(const struct live *l, struct ask *a)
{
    const struct task *t = &l->task;

    switch ((int)a->refusal) {
    case OBSTACLE_VOTE_UNASKED:
    case OBSTACLE_VOTE_GROUP:
        SAY(a, "step \"%.*s\" of task %.*s asks nothing of you", a->step, l->id);
        return;
    case OBSTACLE_VOTE_ANEW:
        SAY(a, "step \"%.*s\" of task %.*s was asked anew: read the question again", a->step,
            l->id);
        return;
    case OBSTACLE_VOTE_SUBMITTER:
        SAY(a, "\"%.*s\" submitted task %.*s, and may not decide on it", a->ballot.person, l->id);
        return;
    case OBSTACLE_VOTE_OTHER:
        SAY(a, "\"%.*s\" has decided on step \"%.*s\" already, and otherwise", a->ballot.person,
            a->step);
        return;
    case OBSTACLE_VOTE_FULL:
        SAY(a, "step \"%.*s\": task %.*s has as many votes as it may", a->step, l->id);
        return;
    case OBSTACLE_ENDED:
        SAY(a, "step \"%.*s\" of task %.*s is decided", a->step, l->id);
        return;
    case OBSTACLE_TASK_UNDONE:
        SAY(a, "step \"%.*s\": task %.*s is being undone", a->step, l->id);
        return;
    case OBSTACLE_CLOSED:
        SAY(a, "step \"%.*s\": task %.*s was closed", a->step, l->id);
        return;
    default:
        (void)snprintf(a->story, sizeof a->story, "not possible while task %.*s is %s%s",
                       SLICE_ARG(l->id), task_state_text(t->state), operator_direction_text(t));
        return;
    }
}

void vote_explain(struct scheduler *s, const struct live *l, struct command *c,
                  const struct event *e)
{
    const struct workflow *w = &l->definition->workflow;
    struct ask *a = c->ask;

    if (c->answer == ANSWER_UNKNOWN) {
        a->refusal = OBSTACLE_VOTE_UNASKED;
        explain(l, a);
        return;
    }
    const struct vote *v = task_find_vote(&l->task, e->step, a->ballot.person);
    a->voted_at = v ? v->at : 0;
    a->agreed = step_votes(&l->task, e->step).agreed;
    a->people = w->steps[e->step].approve.people;
    if (c->answer != ANSWER_REFUSED)
        return;
    if (a->refusal == OBSTACLE_NONE)
        a->refusal = vote_obstacle(w, &l->task, (uint16_t)e->step, &a->ballot, scheduler_now(s));
    explain(l, a);
}
