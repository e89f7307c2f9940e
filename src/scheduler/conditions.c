/* Decides the `if` of steps whose turn it is, within the turn's share of evaluations, and stops
 * tasks whose evaluations ended a server. inputs.c evaluates; start.c goes on. */

#include "scheduler/internal.h"

/* An operator who lets the task go on resets the count, and that must be durable first. */
static bool is_let_go(const struct live *l)
{
    return l->erred && l->task.state != TASK_ERROR;
}

bool overrun_hold(struct scheduler *s, struct live *l)
{
    const struct event overrun = {.kind = EVENT_OVERRUN, .step = -1};

    if (!l->loaded || !overruns_too_often(&s->tasks.overruns, l->id))
        return false;
    if (!l->erred)
        (void)live_decide(&s->tasks, l,
                          &overrun); /* refused once it has ended, stops or is paused */
    return is_let_go(l);
}

bool overrun_is_over(const struct scheduler *s, const struct live *l)
{
    return overruns_has(&s->tasks.overruns, l->id)
           && (task_state_is_end(l->task.state) || l->task.closed_at != 0 || is_let_go(l));
}

void condition_bad_input(struct scheduler *s, struct live *l, uint16_t step, const struct error *e)
{
    const struct event bad = {
        .kind = EVENT_BAD_INPUT,
        .step = step,
        .error = {SLICE("expression"), arena_copy(&l->arena, slice_of(e->text))},
    };
    enum answer answer = live_decide(&s->tasks, l, &bad);

    ASSERT(answer == ANSWER_ACCEPTED);
}

/* Is its `if` still to be evaluated? */
bool condition_is_undecided(const struct scheduler *s, const struct live *l, const struct ready *r)
{
    const struct workflow *w = &l->definition->workflow;

    ASSERT(r->step < l->task.step_count);
    return l->definition->steps[r->step].condition && r->at <= scheduler_now(s)
           && step_next_direction(w, &l->task, r->step) == DIRECTION_FORWARD
           && !l->steps[r->step].holds && !step_was_tried(&l->task.steps[r->step]);
}

/* The outcome of a condition. */
enum condition_outcome {
    CONDITION_HOLDS,
    CONDITION_SKIPPED, /* that may make other steps ready */
    CONDITION_FAILED,  /* the task goes another way */
    CONDITION_LEFT,    /* left for the next turn */
};

static enum condition_outcome condition_of(struct scheduler *s, struct live *l, uint16_t step)
{
    const struct event skip = {.kind = EVENT_CONDITION, .step = step};
    struct error e = {0};

    if (!effort_may(&s->tasks.effort, EFFORT_CONDITIONS))
        return CONDITION_LEFT;
    if (input_condition(s, l, step, &l->steps[step].holds, &e) != ERR_OK) {
        l->steps[step].holds = false;
        condition_bad_input(s, l, step, &e);
        return CONDITION_FAILED;
    }
    if (l->steps[step].holds)
        return CONDITION_HOLDS;
    enum answer answer = live_decide(&s->tasks, l, &skip);
    ASSERT(answer == ANSWER_ACCEPTED);
    return CONDITION_SKIPPED;
}

/* Evaluates each `if` of the ready steps once: a skipped step makes others ready, and leaves ready
 * ones as they are. */
static enum condition_outcome conditions_of(struct scheduler *s, struct live *l)
{
    struct ready *ready = NULL;
    size_t count = queue_ready(&s->tasks, l, &ready);
    enum condition_outcome all = CONDITION_HOLDS;

    for (size_t i = 0; i < count; i++) {
        if (!condition_is_undecided(s, l, &ready[i]))
            continue;
        enum condition_outcome one = condition_of(s, l, ready[i].step);
        if (one == CONDITION_FAILED || one == CONDITION_LEFT)
            return one;
        all = one == CONDITION_SKIPPED ? one : all;
    }
    return all;
}

void conditions_decide(struct scheduler *s, struct live *l)
{
    enum condition_outcome last = CONDITION_HOLDS;

    ASSERT(l->loaded);
    ASSERT(!l->in_flight);
    link_remove(&l->undecided);
    if (!l->definition->has_conditions)
        return;
    do
        last = conditions_of(s, l);
    while (last == CONDITION_SKIPPED || last == CONDITION_FAILED);
    inputs_evaluated(s);
    if (last == CONDITION_LEFT)
        list_push(&s->tasks.undecided, &l->undecided);
}
