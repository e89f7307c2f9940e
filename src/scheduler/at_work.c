/* What agents have in work, and which agents have no call for work that waits for them: asked for
 * by a server whose time is virtual, and stands still meanwhile. Called on the event loop between
 * turns. */

#include "scheduler/internal.h"

static void tell_of_step(struct live_step *ls, void (*tell)(void *arg, const struct at_work *w),
                         void *arg)
{
    const struct live *l = ls->live;
    const struct attempt *a = step_open_attempt(&l->task.steps[ls->step]);
    const struct workflow_step *ws = &l->definition->workflow.steps[ls->step];
    const struct at_work w = {.task = l->id,
                              .step = ws->name,
                              .agent = ls->instance ? ls->instance->agent->name : SLICE_NONE,
                              .instance = ls->instance ? ls->instance->name : SLICE_NONE,
                              .item = l->task.steps[ls->step].item,
                              .undo = a && a->direction == DIRECTION_UNDO,
                              .attempt = a ? a->number : 0};

    if (a && !ls->elsewhere)
        tell(arg, &w);
}

void scheduler_at_work(const struct scheduler *s, void (*tell)(void *arg, const struct at_work *w),
                       void *arg)
{
    struct live *l = NULL;

    for (size_t i = 0; (l = map_next(&s->tasks.lives, &i));) {
        if (!l->loaded)
            continue;
        LIST_FOREACH (link, after, &l->active)
            tell_of_step(CONTAINER_OF(link, struct live_step, active), tell, arg);
    }
}

/* No call may have it now: that will change by time. */
static bool is_held_back(const struct agent *a)
{
    const struct lane *l = NULL;
    bool held = true;

    if (a->breaker.state == BREAKER_OPEN || a->held)
        return true;
    for (size_t i = 0; held && (l = map_next(&a->lanes, &i));)
        held = l->queue.len == 0 || l->held;
    return held;
}

bool scheduler_is_missed(const struct scheduler *s, struct slice agent)
{
    const struct agent *a = map_get(&s->tasks.dispatch.agents, agent);

    return !a || (a->parked == 0 && a->breaker.state != BREAKER_OPEN);
}

void scheduler_missed(const struct scheduler *s, void (*tell)(void *arg, struct slice agent),
                      void *arg)
{
    const struct agent *a = NULL;

    for (size_t i = 0; (a = map_next(&s->tasks.dispatch.agents, &i));)
        if (a->waiting > 0 && a->parked == 0 && !is_held_back(a))
            tell(arg, a->name);
}
