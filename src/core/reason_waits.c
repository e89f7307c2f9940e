/* Which steps another one waits for: forward, in undo, and in on_undo (reason.h). Pure; why/ names
 * them in its texts. */
#include "core/reason.h"

static void list_one(uint16_t step, uint16_t *ret, size_t max, size_t *count)
{
    if (*count < max)
        ret[*count] = step;
    (*count)++;
}

/* An operator skipped a predecessor ahead of time: its own direct and indirect predecessors are
 * still waited for. */
static size_t waits_far(const struct workflow *w, const struct task *t, uint16_t i, uint16_t *ret,
                        size_t max)
{
    bool before[STEPS_MAX] = {0};
    size_t count = 0;

    before[i] = true;
    for (uint16_t k = w->step_count; k-- > 0;) {
        uint16_t b = w->order[k];
        if (!before[b])
            continue;
        for (uint16_t n = 0; n < w->steps[b].before_count; n++)
            before[w->steps[b].before[n]] = true;
        if (b != i && !step_has_ended(&w->steps[b], &t->steps[b]))
            list_one(b, ret, max, &count);
    }
    return count;
}

static size_t waits_forward(const struct workflow *w, const struct task *t, uint16_t i,
                            uint16_t *ret, size_t max)
{
    const struct workflow_step *ws = &w->steps[i];
    size_t count = 0;

    for (uint16_t n = 0; n < ws->before_count; n++)
        if (!step_has_ended(&w->steps[ws->before[n]], &t->steps[ws->before[n]]))
            list_one(ws->before[n], ret, max, &count);
    return count > 0 ? count : waits_far(w, t, i, ret, max);
}

/* Steps of on_undo come after all compensations. */
static size_t waits_for_undo(const struct workflow *w, const struct task *t, uint16_t *ret,
                             size_t max)
{
    size_t count = 0;

    for (uint16_t i = 0; i < t->step_count; i++)
        if (!w->steps[i].on_undo
            && (step_is_open(&t->steps[i]) || step_needs_undo(&w->steps[i], &t->steps[i])))
            list_one(i, ret, max, &count);
    return count;
}

size_t reason_waits_for(const struct workflow *w, const struct task *t, const struct reasons *r,
                        uint16_t i, uint16_t *ret, size_t max)
{
    const struct workflow_step *ws = &w->steps[i];
    size_t count = 0;

    if (ws->on_undo && !undo_is_settled(w, t))
        return waits_for_undo(w, t, ret, max);
    if (step_next_direction(w, t, i) == DIRECTION_FORWARD)
        return waits_forward(w, t, i, ret, max);
    for (uint16_t n = 0; n < ws->after_count; n++) {
        uint16_t b = ws->after[n];
        if (!r->order.blocked[b] && !step_is_open(&t->steps[b])
            && !step_needs_undo(&w->steps[b], &t->steps[b]))
            continue;
        list_one(b, ret, max, &count);
    }
    return count;
}
