/* Steps that wait for a place, and which steps of a task are ready. Starts nothing: see
 * scheduler/start.c. */

#include "tasks/queue.h"

int64_t task_rank(const struct task *t)
{
    return max_i64(t->submitted_at, t->not_before) - t->priority * AGING_MS;
}

static const struct call_spec *spec_of(const struct live *l, uint16_t step)
{
    const struct workflow *w = &l->definition->workflow;
    bool undo = step_next_direction(w, &l->task, step) == DIRECTION_UNDO;

    ASSERT(step_calls(w, &l->task, step));
    return undo ? &w->steps[step].undo : &w->steps[step].call;
}

struct lane *queue_lane(struct tasks *ts, const struct live *l, uint16_t step)
{
    const struct call_spec *spec = spec_of(l, step);

    return dispatch_lane(dispatch_agent(&ts->dispatch, spec->agent), spec->action);
}

/* When the latest wait of the task was over; 0: none was. From then on the task counts as one that
 * was just submitted: those that waited for a month would go before all others. */
static int64_t waited_until(const struct live *l)
{
    int64_t at = 0;

    for (uint16_t i = 0; i < l->task.step_count; i++) {
        const struct step *s = &l->task.steps[i];
        if (s->begun_at != 0 && !s->items && s->state == STEP_COMPLETED)
            at = max_i64(at, max_i64(s->begun_at, s->wait_until));
    }
    return at;
}

/* The rank of a step in its agent's queue. A step that failed in an outage goes behind those that
 * were not tried: otherwise the oldest steps would be the only trials, and if they fail and not the
 * service, the breaker would never close. A bulk operation ranks its tasks as of its time, with one
 * level of priority less: they are older than all new tasks, and there may be very many. The same
 * is true of items, which count from the moment at which their place was free. */
int64_t queue_rank(const struct live *l, uint16_t step)
{
    const struct task *t = &l->task;
    int64_t spared = t->steps[step].spared_at;
    int64_t bulk = l->bulk_at ? l->bulk_at + AGING_MS : 0;
    int64_t waited = l->definition->has_waits ? waited_until(l) : 0;

    waited = max_i64(waited, l->steps[step].free_at);
    if (!spared && !bulk && !waited)
        return task_rank(t);
    return max_i64(task_rank(t), max_i64(waited, max_i64(spared, bulk)) - t->priority * AGING_MS);
}

void queue_step(struct tasks *ts, struct live_step *ls, struct lane *lane)
{
    ASSERT(!ls->queue_of);
    ASSERT(!ls->instance);
    live_activate(ls);
    ls->queue_of = lane;
    if (ls->free_at == 0 && unit_is_slot(&ls->live->definition->workflow, ls->step))
        ls->free_at = tasks_now(ts);
    ls->bulk = ls->live->bulk_at != 0;
    lane_push(&ts->dispatch, lane, &ls->want, queue_rank(ls->live, ls->step));
    ts->counts.waiting++;
    ts->counts.bulk_waiting += ls->bulk;
    lane->agent->bulk += ls->bulk;
}

void queue_leave(struct tasks *ts, struct live_step *ls)
{
    struct lane *lane = ls->queue_of;

    if (!lane)
        return;
    ASSERT(ts->counts.waiting > 0);
    lane_remove(lane, &ls->want);
    ts->counts.waiting--;
    ts->counts.bulk_waiting -= ls->bulk;
    lane->agent->bulk -= ls->bulk;
    ls->queue_of = NULL;
    ls->bulk = false;
}

void queue_leave_all(struct tasks *ts, struct live *l)
{
    LIST_FOREACH (link, after, &l->active)
        queue_leave(ts, CONTAINER_OF(link, struct live_step, active));
    heap_remove(&ts->naps, &l->nap);
}

/* The ready steps of a task, not before the task's own not_before. */
size_t queue_ready(struct tasks *ts, struct live *l, struct ready **ret)
{
    static _Thread_local struct ready list[STEPS_MAX + SLOTS_MAX]; /* too large for the stack */
    size_t count = task_ready(&l->definition->workflow, &l->task, tasks_now(ts), list);

    if (l->task.direction == DIRECTION_FORWARD)
        for (size_t i = 0; i < count; i++)
            list[i].at = max_i64(list[i].at, l->task.not_before);
    *ret = list;
    return count;
}

size_t queue_bulk_room(const struct tasks *ts, size_t most)
{
    int64_t now = tasks_now(ts);

    LIST_FOREACH (link, after, &ts->dispatch.busy) {
        struct agent *a = CONTAINER_OF(link, struct agent, busy);
        if (a->bulk > 0 && a->bulk >= dispatch_places(a, now))
            return 0;
    }
    return ts->counts.bulk_waiting < most ? most - ts->counts.bulk_waiting : 0;
}
