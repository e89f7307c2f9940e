/* Counts the ends of attempts: in the task at once, and for its agents and instances once they are
 * durable. */

#include "tasks/counts.h"

#include "tasks/breakers.h"

void counts_attempt_ended(struct live *l, uint16_t step)
{
    const struct step *st = &l->task.steps[step];

    if (st->attempt_count == 0)
        return;
    const struct attempt *last = &st->attempts[st->attempt_count - 1];
    struct live_step *ls = &l->steps[step];
    l->ended[last->direction][last->outcome]++;
    bool failed = last->outcome == OUTCOME_FAILED || last->outcome == OUTCOME_TIMED_OUT;
    if (last->outcome == OUTCOME_COMPLETED)
        ls->completed[last->direction]++;
    else if (failed)
        ls->failed[last->direction]++;
    if (last->elsewhere)
        return; /* its end says nothing about its agent's service */
    ls->end = (struct attempt_end){
        .any = failed || last->outcome == OUTCOME_COMPLETED,
        .bad = last->outcome == OUTCOME_TIMED_OUT || (failed && ls->retryable),
        .direction = last->direction,
        .began_at = last->started_at,
        .ended_at = last->ended_at,
    };
}

/* The instance that had the latest attempt in that direction that reached it. */
static struct instance *instance_of_end(const struct agent *a, const struct step *st,
                                        enum direction d)
{
    for (uint16_t i = st->attempt_count; i > 0; i--) {
        const struct attempt *at = &st->attempts[i - 1];
        if (at->direction == d
            && (at->elsewhere || at->outcome == OUTCOME_COMPLETED || at->outcome == OUTCOME_FAILED
                || at->outcome == OUTCOME_TIMED_OUT))
            return map_get(&a->instances, at->instance);
    }
    return NULL;
}

/* For its instance a handed-over attempt counts once, as a good end. */
static void count_handed_over(struct tasks *ts, struct live *l, uint16_t step)
{
    struct handed_over *h = &l->steps[step].handed_over;
    struct agent *a = agent_of_attempts(ts, l, step, h->direction);
    struct instance *in = map_get(&a->instances, h->instance);

    if (in) {
        health_ended(&in->health, &a->ends, true, tasks_now(ts));
        instance_moved(in, tasks_now(ts));
    }
    breakers_handed_over(ts, a, h);
    *h = (struct handed_over){0};
}

/* What an attempt's end says about its agent and instance. */
static void count_end_of(struct tasks *ts, struct live *l, uint16_t step)
{
    const struct attempt_end *end = &l->steps[step].end;
    struct agent *a = agent_of_attempts(ts, l, step, end->direction);
    struct instance *in = instance_of_end(a, &l->task.steps[step], end->direction);

    if (in)
        health_ended(&in->health, &a->ends, !end->bad, tasks_now(ts));
    if (in && !end->bad)
        instance_moved(in, tasks_now(ts));
    breakers_count(ts, a, l, step);
}

/* Counts for the agents that had the attempts. */
static void count_step_ends(struct tasks *ts, struct live *l, uint16_t step)
{
    struct live_step *ls = &l->steps[step];

    if (ls->handed_over.instance.ptr)
        count_handed_over(ts, l, step);
    for (int d = DIRECTION_FORWARD; d <= DIRECTION_UNDO; d++) {
        if (ls->completed[d] + ls->failed[d] == 0)
            continue;
        struct agent *a = agent_of_attempts(ts, l, step, (enum direction)d);
        a->completed += ls->completed[d];
        a->failed += ls->failed[d];
        ls->completed[d] = ls->failed[d] = 0;
    }
    if (ls->end.any)
        count_end_of(ts, l, step);
    if (ls->trial != 0 && !step_is_open(&l->task.steps[step]))
        breakers_end_trial(l, step);
}

void counts_durable(struct tasks *ts, struct live *l)
{
    for (size_t d = 0; d < COUNT_OF(l->ended); d++)
        for (size_t o = 0; o < ATTEMPT_ENDS; o++)
            ts->counts.attempts[d][o] += l->ended[d][o];
    memset(l->ended, 0, sizeof l->ended);
    LIST_FOREACH (link, after, &l->active)
        count_step_ends(ts, l, CONTAINER_OF(link, struct live_step, active)->step);
}
