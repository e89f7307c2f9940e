/* Parked work calls: the attempts assigned to them, and when they can be answered. Sends nothing:
 * scheduler/work.c does. */

#include "tasks/calls.h"

void call_assign(struct work *w, struct live_step *ls)
{
    ASSERT(!w->closed);
    ASSERT(!ls->work);
    ls->work = w;
    list_push(&w->assigned, &ls->assigned);
    w->assigned_count++;
}

void call_unassign(struct work *w, struct live_step *ls)
{
    ASSERT(ls->work == w);
    ASSERT(w->assigned_count > 0);
    link_remove(&ls->assigned);
    ls->work = NULL;
    w->assigned_count--;
}

void call_close(struct tasks *ts, struct work *w)
{
    if (!w->closed)
        dispatch_close(w);
    if (w->unsettled == 0 && !link_is_in(&w->turn))
        list_push(&ts->answerable, &w->turn);
}

void call_settle(struct tasks *ts, struct work *w, uint32_t count)
{
    ASSERT(w->unsettled >= count);
    w->unsettled -= count;
    if (w->unsettled == 0 && (w->closed || w->result_count > 0 || w->assigned_count > 0))
        call_close(ts, w);
    else if (!w->closed && w->assigned_count < w->max && !link_is_in(&w->turn))
        list_push(&w->agent->calls, &w->turn); /* it was full; an attempt was dropped */
}

static struct work *open_call_of(const struct instance *i)
{
    LIST_FOREACH (link, after, &i->agent->calls) {
        struct work *w = CONTAINER_OF(link, struct work, turn);
        if (w->instance == i)
            return w;
    }
    return NULL;
}

void call_wake(struct tasks *ts, struct instance *i)
{
    struct work *w = open_call_of(i);

    if (w)
        call_close(ts, w);
}

void call_wake_all(struct tasks *ts, struct live *l)
{
    l->resend_wanted = false;
    LIST_FOREACH (link, after, &l->active) {
        const struct live_step *ls = CONTAINER_OF(link, struct live_step, active);
        if (ls->instance && ls->delivered)
            call_wake(ts, ls->instance);
    }
}

void call_stop(struct live_step *ls)
{
    ASSERT(ls->instance);
    ls->instance->stops += !ls->stop;
    ls->stop = true;
}

void call_stop_forward(struct tasks *ts, struct live *l)
{
    LIST_FOREACH (link, after, &l->active) {
        struct live_step *ls = CONTAINER_OF(link, struct live_step, active);
        const struct attempt *a = step_open_attempt(&l->task.steps[ls->step]);
        bool on_undo = l->definition->workflow.steps[ls->step].on_undo;
        if (!a || a->direction == DIRECTION_UNDO || on_undo || !ls->instance)
            continue;
        call_stop(ls);
        call_wake(ts, ls->instance);
    }
}

void call_expire(struct tasks *ts, int64_t now)
{
    for (;;) {
        struct heap_node *n = heap_min(&ts->waits);
        if (!n || n->key > now)
            return;
        struct work *w = CONTAINER_OF(n, struct work, timer);
        heap_remove(&ts->waits, n);
        if (w->agent->left_out == ts->effort.turn + 1 && !w->closed)
            heap_push(&ts->waits, n, now + 1); /* there is work for it: in the next turn */
        else
            call_close(ts, w);
    }
}
