/* Which steps are to be started next, and with which attempt: task_ready() and task_next_attempt()
 * of decide.h. Pure functions. */
#include "core/ready.h"

#include "core/items.h"
#include "core/undo.h"

/* The step's own deadline, capped by the task's unless that one was handled already. */
static int64_t attempt_deadline(const struct workflow *w, const struct task *t, int step,
                                int64_t now)
{
    bool undo = step_next_direction(w, t, (uint16_t)step) == DIRECTION_UNDO;
    const struct call_spec *spec = undo ? &w->steps[step].undo : &w->steps[step].call;
    int64_t cap = t->direction == DIRECTION_UNDO ? t->undo_complete_by : t->complete_by;
    int64_t at = now + spec->complete_by_ms;

    return cap != 0 && !t->deadline_passed ? min_i64(at, cap) : at;
}

struct attempt task_next_attempt(const struct workflow *w, const struct task *t, int step,
                                 int64_t now)
{
    const struct step *s = &t->steps[step];
    enum direction goes = step_next_direction(w, t, (uint16_t)step);

    return (struct attempt){
        .number = s->direction == goes ? s->attempt + 1 : 1,
        .direction = goes,
        .outcome = OUTCOME_OPEN,
        .effect = EFFECT_UNKNOWN,
        .started_at = now,
        .complete_by = attempt_deadline(w, t, step, now),
        .generation = s->generation,
        .round = step_is_repeated(&w->steps[step]) && s->round == 0 ? 1 : s->round,
    };
}

/* Whether all direct and indirect predecessors have ended. An operator may have skipped or supplied
 * one ahead of time; the steps before that one still count. */
static bool all_before_ended(const struct workflow *w, const struct task *t, uint16_t step)
{
    bool passed[STEPS_MAX] = {0}; /* the step and all its predecessors ended */

    for (uint16_t k = 0; k < w->step_count; k++) {
        uint16_t i = w->order[k];
        const struct workflow_step *ws = &w->steps[i];
        bool before = true;
        for (uint16_t n = 0; n < ws->before_count; n++)
            before = before && passed[ws->before[n]];
        if (i == step)
            return before;
        passed[i] = before && step_has_ended(ws, &t->steps[i]);
    }
    UNREACHABLE();
}

static bool predecessors_ended(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct workflow_step *ws = &w->steps[i];
    bool ahead = false; /* a predecessor may have ended ahead of time */

    for (uint16_t k = 0; k < ws->before_count; k++) {
        uint16_t b = ws->before[k];
        if (!step_has_ended(&w->steps[b], &t->steps[b]))
            return false;
        ahead |= t->steps[b].state == STEP_SKIPPED || t->steps[b].supplied;
    }
    /* Without one they began after all before them. */
    return !ahead || all_before_ended(w, t, unit_step(w, i));
}

bool on_undo_may_start(const struct workflow *w, const struct task *t, uint16_t i)
{
    return t->steps[i].state == STEP_WAITING && predecessors_ended(w, t, i);
}

/* While the task is to be undone, only a pivot in doubt continues: a retry resolves it. */
static bool step_is_forward_ready(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    if (s->state != STEP_WAITING || w->steps[i].on_undo || !predecessors_ended(w, t, i))
        return false;
    return t->stop == STOP_NONE
           || (t->stop == STOP_UNDO && w->steps[i].undo_kind == UNDO_PIVOT
               && pivot_prevents_undo(s));
}

static bool forward_is_ready(const struct workflow *w, const struct task *t, uint16_t i)
{
    return step_is_forward_ready(w, t, i) && (!unit_is_slot(w, i) || item_may_go_on(w, t, i));
}

/* Whether the undo is a request to an agent. A child is told, and has to end before anything else
 * is requested. */
static bool undo_calls(const struct workflow_step *ws, const struct step *s)
{
    return ws->kind != KIND_TASK || (ws->undo_kind == UNDO_CALL && !child_is_open(&s->child));
}

static bool undo_is_ready(const struct workflow *w, const struct task *t, uint16_t i,
                          const struct undo_order *order)
{
    const struct step *s = &t->steps[i];

    if (w->steps[i].on_undo)
        return t->stop == STOP_NONE && on_undo_may_start(w, t, i) && undo_is_settled(w, t);
    if (unit_is_slot(w, i) ? s->slot != SLOT_BACK : w->steps[i].kind == KIND_EACH)
        return false; /* an item is undone where it was brought to */
    return step_needs_undo(&w->steps[i], s) && !order->blocked[unit_step(w, i)] && !step_is_open(s)
           && !step_undo_is_stuck(s) && t->stop == STOP_NONE && undo_calls(&w->steps[i], s);
}

static int64_t ready_at(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];
    enum direction goes = step_next_direction(w, t, i);
    int64_t at = s->direction == goes ? s->wait_until : 0;

    if (goes == DIRECTION_UNDO) {
        int64_t doubt = step_doubt_until(s);
        at = max_i64(at, doubt ? doubt + CLOCK_MARGIN_MS : 0);
    }
    return at;
}

/* What waits needs none: only the task's own deadline counts. */
static bool has_time(const struct workflow *w, const struct task *t, uint16_t i, int64_t now)
{
    if (step_calls(w, t, i))
        return attempt_deadline(w, t, i, now) > now;
    ASSERT(t->direction == DIRECTION_FORWARD);
    return t->complete_by == 0 || t->deadline_passed || t->complete_by > now;
}

/* It waits for a signal, for people or for its child already, and not for its turn. */
static bool is_under_way(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct workflow_step *ws = &w->steps[i];

    if (ws->kind == KIND_CALL || ws->kind == KIND_WAIT || !step_has_begun(&t->steps[i]))
        return false;
    return ws->kind != KIND_APPROVE || !step_is_voted(w, t, i);
}

/* Those of items: as many free slots as items may begin. */
static size_t items_ready(const struct workflow *w, const struct task *t, int64_t now,
                          const struct undo_order *order, struct ready *ret)
{
    size_t count = 0;
    uint16_t step = 0;
    uint32_t begin = 0;

    for (uint16_t i = w->step_count; i < task_unit_count(t); i++) {
        bool is_free = t->steps[i].slot == SLOT_FREE;
        if (unit_step(w, i) != step || i == w->step_count) {
            step = unit_step(w, i);
            begin = items_that_may_begin(&w->steps[step], &t->steps[step]);
        }
        if (is_free && begin == 0)
            continue;
        if (order ? !undo_is_ready(w, t, i, order) : !forward_is_ready(w, t, i))
            continue;
        if (!has_time(w, t, i, now) || is_under_way(w, t, i))
            continue;
        begin -= is_free;
        ret[count++] = (struct ready){i, ready_at(w, t, i)};
    }
    return count;
}

size_t task_ready(const struct workflow *w, const struct task *t, int64_t now, struct ready *ret)
{
    struct undo_order order;
    bool undo = t->direction == DIRECTION_UNDO;
    size_t count = 0;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR || t->paused_at != 0)
        return 0;
    if (undo)
        undo_order_make(w, t, &order);
    for (uint16_t k = 0; k < w->step_count; k++) {
        uint16_t i = w->order[k];
        if (!undo && t->steps[i].state != STEP_WAITING)
            continue; /* fast path: most steps of a long task */
        if (undo ? !undo_is_ready(w, t, i, &order) : !step_is_forward_ready(w, t, i))
            continue;
        if (!has_time(w, t, i, now) || is_under_way(w, t, i))
            continue;
        ret[count++] = (struct ready){i, ready_at(w, t, i)};
    }
    if (w->slot_count > 0)
        count += items_ready(w, t, now, undo ? &order : NULL, ret + count);
    return count;
}

bool step_may_be_decided(const struct workflow *w, const struct task *t, uint16_t i, int64_t now)
{
    struct undo_order order;

    if (task_state_is_end(t->state) || t->state == TASK_ERROR || t->paused_at != 0)
        return false;
    if (t->direction == DIRECTION_UNDO) {
        undo_order_make(w, t, &order);
        if (!undo_is_ready(w, t, i, &order))
            return false;
    } else if (!forward_is_ready(w, t, i)) {
        return false;
    }
    return ready_at(w, t, i) <= now;
}

bool wait_is_ready(const struct workflow *w, const struct task *t, uint16_t i, int64_t now)
{
    return w->steps[i].kind != KIND_CALL && t->direction == DIRECTION_FORWARD
           && step_may_be_decided(w, t, i, now) && has_time(w, t, i, now);
}

bool answer_is_ready(const struct workflow *w, const struct task *t, uint16_t i, int64_t now)
{
    return step_is_answered(&t->steps[i]) && step_may_be_decided(w, t, i, now)
           && has_time(w, t, i, now);
}

bool step_awaits_signal(const struct workflow *w, const struct task *t, uint16_t i, int64_t now)
{
    return w->steps[i].kind == KIND_SIGNAL && step_has_begun(&t->steps[i])
           && wait_is_ready(w, t, i, now);
}

bool step_awaits_votes(const struct workflow *w, const struct task *t, uint16_t i, int64_t now)
{
    return w->steps[i].kind == KIND_APPROVE && step_has_begun(&t->steps[i])
           && wait_is_ready(w, t, i, now);
}

bool task_awaits_signal(const struct workflow *w, const struct task *t, int64_t now)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (step_awaits_signal(w, t, i, now) || step_awaits_votes(w, t, i, now))
            return true;
    return false;
}

bool step_is_ready(const struct workflow *w, const struct task *t, uint16_t i, int64_t now)
{
    return t->state != TASK_PENDING && !step_is_answered(&t->steps[i])
           && step_may_be_decided(w, t, i, now);
}

/* What has begun goes on by itself, or by what comes from outside. */
static bool goes_on(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    if (s->items && step_has_begun(s))
        return items_go_on(w, t, i);
    return !child_has_stopped(&s->child);
}

bool task_may_go_forward(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (step_is_forward_ready(w, t, i) && goes_on(w, t, i))
            return true;
    return false;
}
