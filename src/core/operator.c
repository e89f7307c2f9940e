/* Predicts which verbs of operators a task accepts, and what prevents the others, for the API and
 * `why`. Changes nothing: verbs.c decides, and history_test.c compares the two in every state of
 * every history. Declared in reason.h. */

#include "core/reason.h"

#include "core/items.h"
#include "core/summary.h"

int64_t operator_may_resolve_at(const struct step *s)
{
    return step_doubt_until(s) + CLOCK_MARGIN_MS;
}

const char *operator_direction_text(const struct task *t)
{
    if (t->direction != DIRECTION_UNDO || task_state_is_end(t->state))
        return "";
    return t->state == TASK_ERROR ? ", half undone" : ", being undone";
}

static bool find_completed_pivot(const struct workflow *w, const struct task *t, uint16_t *ret)
{
    for (uint16_t i = 0; i < t->step_count; i++) {
        if (!pivot_completed(w, t, i))
            continue;
        *ret = i;
        return true;
    }
    return false;
}

/* A processed task with a pivot in doubt: no attempt will ever resolve the doubt. */
static enum obstacle obstacle_to_undo_processed(const struct workflow *w, const struct task *t,
                                                int64_t now, uint16_t *ret)
{
    int64_t until = task_undo_until(w, t);

    for (uint16_t i = 0; i < t->step_count; i++)
        if (w->steps[i].undo_kind == UNDO_PIVOT && pivot_prevents_undo(&t->steps[i])) {
            *ret = i;
            return OBSTACLE_PIVOT;
        }
    return until != 0 && now >= until ? OBSTACLE_UNTIL : OBSTACLE_NONE;
}

static bool goes_back(const struct task *t)
{
    return t->direction == DIRECTION_UNDO || t->stop == STOP_UNDO;
}

static enum obstacle obstacle_to_undo(const struct workflow *w, const struct task *t, uint16_t *ret)
{
    if (goes_back(t)) /* it is being undone already */
        return t->paused_at ? OBSTACLE_NONE : OBSTACLE_TASK_UNDONE;
    if (find_completed_pivot(w, t, ret))
        return OBSTACLE_PIVOT;
    for (uint16_t i = 0; i < t->step_count; i++) {
        const struct step *s = &t->steps[i];
        if (w->steps[i].undo_kind != UNDO_PIVOT || !(step_is_open(s) || pivot_prevents_undo(s)))
            continue;
        bool child = step_has_open_child(s);
        bool will_tell = s->items ? s->items->tally.telling > 0
                         : child  ? s->child.state != CHILD_STUCK
                                  : step_is_open(s) || s->state == STEP_WAITING;
        *ret = i;
        if (!will_tell || (t->state == TASK_ERROR && !child))
            return OBSTACLE_PIVOT;
    }
    return OBSTACLE_NONE;
}

/* A failed item needs a place, which it has kept only if it is to be undone. */
static bool may_retry_item(const struct workflow *w, const struct task *t, uint16_t unit,
                           bool by_name, int64_t clock)
{
    const struct step *s = &t->steps[unit];
    const struct each_spec *each = &w->steps[unit].each;
    bool back = t->direction == DIRECTION_UNDO;
    bool rests = s->slot == SLOT_RESTING && by_name && !back && item_may_be_repaired(w, t, unit);

    if ((s->slot != (back ? SLOT_BACK : SLOT_TAKEN) && !rests) || step_is_open(s))
        return false;
    if (s->state == STEP_FAILED && t->state == TASK_ERROR && s->direction == t->direction)
        return back || t->steps[each->step].items->tally.at_work < each->concurrency;
    return s->wait_until > clock;
}

/* Those of its items that failed, if they are at hand. */
static bool may_retry_items(const struct workflow *w, const struct task *t, uint16_t i)
{
    return t->state == TASK_ERROR && step_stops_task(w, t, i)
           && t->steps[i].items->tally.failed > 0;
}

static bool may_retry(const struct workflow *w, const struct task *t, uint16_t i, bool by_name,
                      int64_t now)
{
    const struct step *s = &t->steps[i];
    int64_t clock = t->paused_at ? t->paused_at : now;

    if (unit_is_slot(w, i))
        return may_retry_item(w, t, i, by_name, clock);
    if (s->items && s->begun_at != 0)
        return may_retry_items(w, t, i);
    if (s->direction != step_next_direction(w, t, i))
        return false;
    if (s->state == STEP_FAILED && t->state == TASK_ERROR && !step_has_ended(&w->steps[i], s))
        return true;
    return !step_is_open(s) && (s->begun_at == 0 || s->direction == DIRECTION_UNDO)
           && s->wait_until > clock;
}

/* The child of the step may be repaired, but not from here. NONE: it has ended, or there is none.
 */
static enum obstacle obstacle_of_child(const struct step *s)
{
    if (step_child_runs(s))
        return OBSTACLE_CHILD_RUNS;
    return child_has_stopped(&s->child) || step_has_open_child(s) ? OBSTACLE_CHILD_STOPPED
                                                                  : OBSTACLE_NONE;
}

/* The task goes on when its children do: the first that stopped. */
static enum obstacle obstacle_of_children(const struct workflow *w, const struct task *t,
                                          uint16_t *ret)
{
    enum stop stop = STOP_NONE;
    int first = stopped_by_children(w, t, &stop) ? stopped_child(w, t, stop) : -1;

    if (first < 0)
        return OBSTACLE_NONE;
    *ret = unit_step(w, (uint16_t)first);
    return OBSTACLE_CHILD_STOPPED;
}

static enum obstacle obstacle_to_retry(const struct workflow *w, const struct task *t, int step,
                                       int64_t now, uint16_t *ret)
{
    enum obstacle o = step < 0 ? obstacle_of_children(w, t, ret) : OBSTACLE_NONE;
    bool any = t->state == TASK_ERROR && step < 0 && o == OBSTACLE_NONE;

    for (uint16_t i = 0; i < task_unit_count(t); i++)
        if (step < 0 || step == i)
            any |= may_retry(w, t, i, step == i, now);
    if (!any && step >= 0 && step_is_open(&t->steps[step]))
        return OBSTACLE_OPEN;
    if (!any && step >= 0)
        o = obstacle_of_child(&t->steps[step]);
    if (!any && o != OBSTACLE_NONE)
        return o;
    if (!any && step >= 0 && step_has_begun(&t->steps[step]) && !t->steps[step].items)
        return goes_back(t) ? OBSTACLE_TASK_UNDONE : OBSTACLE_KIND;
    return any ? OBSTACLE_NONE : OBSTACLE_STATE;
}

/* What its items did would be forgotten. */
static enum obstacle obstacle_of_items(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];
    enum undo_kind undo = w->steps[i].undo_kind;

    if (step_next_direction(w, t, i) == DIRECTION_UNDO)
        return step_needs_undo(&w->steps[i], s) ? OBSTACLE_EFFECT : OBSTACLE_ENDED;
    if (undo == UNDO_PIVOT ? s->items->tally.doubts > 0 : step_in_doubt(s))
        return OBSTACLE_DOUBT;
    return (undo == UNDO_CALL || undo == UNDO_CHILD) && step_has_effect(s) ? OBSTACLE_EFFECT
                                                                           : OBSTACLE_NONE;
}

static enum obstacle obstacle_to_skip(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    if (step_is_open(s))
        return OBSTACLE_OPEN;
    if (step_child_runs(s))
        return OBSTACLE_CHILD_RUNS;
    if (s->items && obstacle_of_items(w, t, i) != OBSTACLE_NONE)
        return obstacle_of_items(w, t, i);
    if (step_next_direction(w, t, i) == DIRECTION_UNDO)
        return step_needs_undo(&w->steps[i], s) ? OBSTACLE_NONE : OBSTACLE_ENDED;
    if (t->stop == STOP_UNDO && !w->steps[i].on_undo)
        return OBSTACLE_TASK_UNDONE;
    if (!item_may_be_repaired(w, t, i))
        return OBSTACLE_ENDED;
    return s->state == STEP_WAITING || s->state == STEP_FAILED ? OBSTACLE_NONE : OBSTACLE_ENDED;
}

static enum obstacle obstacle_to_new_key(const struct workflow_step *ws, const struct step *s)
{
    if (step_is_open(s))
        return OBSTACLE_OPEN;
    if (step_has_open_child(s))
        return obstacle_of_child(s);
    if (step_in_doubt(s))
        return OBSTACLE_DOUBT;
    if (ws->undo_kind != UNDO_NONE && step_has_effect(s))
        return OBSTACLE_EFFECT;
    return items_left_children(s) ? OBSTACLE_CHILD_STOPPED : OBSTACLE_NONE;
}

static enum obstacle obstacle_to_correct(const struct workflow *w, const struct task *t, int step)
{
    if (goes_back(t) && (step < 0 || !w->steps[step].on_undo))
        return OBSTACLE_TASK_UNDONE;
    if (step < 0)
        return OBSTACLE_NONE;
    if (w->steps[step].kind != KIND_CALL && w->steps[step].kind != KIND_TASK)
        return OBSTACLE_KIND;
    const struct step *s = &t->steps[step];
    enum obstacle o = obstacle_to_new_key(&w->steps[step], s);
    bool ended = (s->state != STEP_WAITING
                  && (s->state != STEP_FAILED || step_has_ended(&w->steps[step], s)))
                 || !item_may_be_repaired(w, t, (uint16_t)step);
    return o == OBSTACLE_NONE && ended ? OBSTACLE_ENDED : o;
}

static enum obstacle obstacle_to_resolve(const struct workflow_step *ws, const struct step *s,
                                         int64_t now)
{
    if (step_is_open(s))
        return OBSTACLE_OPEN;
    if (s->items)
        return OBSTACLE_KIND;
    if (s->direction == DIRECTION_UNDO)
        return s->state == STEP_UNDONE ? OBSTACLE_ENDED : OBSTACLE_UNDOING;
    if (!step_in_doubt(s))
        return OBSTACLE_KNOWN;
    if (ws->undo_kind != UNDO_NONE && step_has_effect(s))
        return OBSTACLE_EFFECT;
    return now < operator_may_resolve_at(s) ? OBSTACLE_EARLY : OBSTACLE_NONE;
}

static bool comes_after(const struct workflow *w, uint16_t i, uint16_t step)
{
    bool after[STEPS_MAX] = {0};

    after[step] = true;
    for (uint16_t k = 0; k < w->step_count; k++) {
        uint16_t at = w->order[k];
        for (uint16_t n = 0; n < w->steps[at].after_count; n++)
            after[w->steps[at].after[n]] |= after[at];
    }
    return after[i];
}

static bool has_begun(const struct step *s)
{
    return s->state != STEP_WAITING || s->failure_count > 0 || s->spared_count > 0
           || s->begun_at != 0 || s->wait_until != 0 || s->input.json.ptr || s->resume.ptr
           || step_was_tried(s);
}

static enum obstacle obstacle_to_retry_from(const struct workflow *w, const struct task *t,
                                            uint16_t step, uint16_t *ret)
{
    bool any = false;

    if (goes_back(t))
        return OBSTACLE_TASK_UNDONE;
    if (t->stop != STOP_NONE)
        return OBSTACLE_STOPPING;
    for (uint16_t i = 0; i < t->step_count; i++) {
        if (!comes_after(w, i, step))
            continue;
        enum obstacle o = obstacle_to_new_key(&w->steps[i], &t->steps[i]);
        if (o != OBSTACLE_NONE) {
            *ret = i;
            return o;
        }
        any |= has_begun(&t->steps[i]);
    }
    return any ? OBSTACLE_NONE : OBSTACLE_NEW;
}

static enum obstacle obstacle_to_close(const struct workflow *w, const struct task *t, bool reopen,
                                       uint16_t *ret)
{
    for (uint16_t i = 0; i < task_unit_count(t) && t->state == TASK_ERROR && !reopen; i++)
        if (child_runs(&t->steps[i].child)) {
            *ret = unit_step(w, i);
            return OBSTACLE_CHILD_RUNS;
        }
    return t->state == TASK_ERROR && (t->closed_at != 0) == reopen ? OBSTACLE_NONE : OBSTACLE_STATE;
}

static enum obstacle obstacle_to_pause(const struct task *t, bool resume)
{
    if (t->state == TASK_ERROR)
        return OBSTACLE_STOPPED;
    return (t->paused_at != 0) == resume ? OBSTACLE_NONE : OBSTACLE_STATE;
}

/* No verb reaches an item that has not begun, and none starts anew alone. */
static enum obstacle obstacle_of_slot(const struct step *s, enum event_kind verb)
{
    if (s->slot == SLOT_FREE)
        return OBSTACLE_STATE;
    return verb == EVENT_RETRY_FROM ? OBSTACLE_KIND : OBSTACLE_NONE;
}

enum obstacle operator_obstacle(const struct workflow *w, const struct task *t,
                                enum event_kind verb, int step, int64_t now, uint16_t *ret_step)
{
    ASSERT(step < task_unit_count(t));
    if (verb == EVENT_UNDO && t->state == TASK_PROCESSED)
        return t->parent.ptr ? OBSTACLE_CHILD : obstacle_to_undo_processed(w, t, now, ret_step);
    if (task_state_is_end(t->state))
        return OBSTACLE_STATE;
    if (t->parent.ptr && t->paused_at != 0 && verb == EVENT_UNDO)
        return OBSTACLE_CHILD;
    if (t->parent.ptr
        && (verb == EVENT_CLOSE || verb == EVENT_REOPEN || verb == EVENT_PAUSE
            || verb == EVENT_RESUME))
        return OBSTACLE_CHILD;
    if (verb == EVENT_CLOSE || verb == EVENT_REOPEN)
        return obstacle_to_close(w, t, verb == EVENT_REOPEN, ret_step);
    if (t->closed_at != 0)
        return OBSTACLE_CLOSED;
    if (step >= 0)
        *ret_step = (uint16_t)step;
    if (step >= 0 && unit_is_slot(w, step) && obstacle_of_slot(&t->steps[step], verb))
        return obstacle_of_slot(&t->steps[step], verb);
    if (verb == EVENT_UNDO)
        return obstacle_to_undo(w, t, ret_step);
    if (verb == EVENT_RETRY)
        return obstacle_to_retry(w, t, step, now, ret_step);
    if (verb == EVENT_PAUSE || verb == EVENT_RESUME)
        return obstacle_to_pause(t, verb == EVENT_RESUME);
    if (verb == EVENT_CORRECT)
        return obstacle_to_correct(w, t, step);
    if (verb == EVENT_RETRY_FROM)
        return obstacle_to_retry_from(w, t, (uint16_t)step, ret_step);
    if (verb == EVENT_RESOLVE)
        return obstacle_to_resolve(&w->steps[step], &t->steps[step], now);
    if (verb == EVENT_SUPPLY && goes_back(t) && !w->steps[step].on_undo)
        return OBSTACLE_TASK_UNDONE;
    ASSERT(verb == EVENT_SUPPLY || verb == EVENT_SKIP);
    return obstacle_to_skip(w, t, (uint16_t)step);
}

/* Unless it was not necessary: an admin who skips it gives it an output. */
static bool is_needed(const struct workflow *w, const struct task *t, uint16_t i)
{
    const struct step *s = &t->steps[i];

    return w->steps[i].kind == KIND_APPROVE && (s->state != STEP_SKIPPED || s->output.json.ptr);
}

static bool any_was_allowed(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (is_needed(w, t, i)
            && (t->steps[i].state == STEP_COMPLETED || t->steps[i].state == STEP_SKIPPED))
            return true;
    return false;
}

/* Whether people decide before that step. They read their question, not its input. */
static bool needs_approval(const struct workflow *w, const struct task *t, uint16_t step)
{
    bool after[STEPS_MAX] = {0};

    for (uint16_t k = 0; k < w->step_count; k++) {
        uint16_t at = w->order[k];
        bool needed = after[at] || is_needed(w, t, at);
        for (uint16_t n = 0; n < w->steps[at].after_count; n++)
            after[w->steps[at].after[n]] |= needed;
    }
    return after[step];
}

bool operator_needs_admin(const struct workflow *w, const struct task *t, enum event_kind verb,
                          int step)
{
    ASSERT(step < task_unit_count(t));
    if (verb == EVENT_CORRECT)
        return step < 0 ? any_was_allowed(w, t)
                        : needs_approval(w, t, unit_step(w, (uint16_t)step));
    return (verb == EVENT_SKIP || verb == EVENT_SUPPLY) && step >= 0
           && w->steps[step].kind == KIND_APPROVE;
}

size_t operator_effects(const struct workflow *w, const struct task *t, uint16_t step,
                        uint16_t *ret)
{
    size_t count = 0;

    for (uint16_t i = 0; i < t->step_count; i++)
        if (comes_after(w, i, step)
            && obstacle_to_new_key(&w->steps[i], &t->steps[i]) == OBSTACLE_EFFECT)
            ret[count++] = i;
    return count;
}

bool operator_may(const struct workflow *w, const struct task *t, enum event_kind verb, int step,
                  int64_t now)
{
    uint16_t ignored = 0;
    bool names_none = step < 0
                      && (verb == EVENT_SKIP || verb == EVENT_SUPPLY || verb == EVENT_RESOLVE
                          || verb == EVENT_RETRY_FROM);

    return !names_none && operator_obstacle(w, t, verb, step, now, &ignored) == OBSTACLE_NONE;
}
