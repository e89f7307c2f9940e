/* The observer's model of families: what the child of a step does and tells, whatever it is told,
 * and what a task has to do that is told something by its parent (see history_world.h). Part of the
 * tests: it shares no code with child.c, which it judges. */

#include "core/history_check.h"

/* ---- a child ---- */

enum child_state kid_tells(const struct world_kid *k)
{
    bool is_asked = k->heard == WISH_STOP || k->heard == WISH_UNDO;

    switch (k->phase) {
    case KID_NONE:
        return CHILD_NONE;
    case KID_RUNS:
        if (k->back)
            return CHILD_TURNED;
        return k->stands && is_asked ? CHILD_STANDS : CHILD_RUNNING;
    case KID_STOPPED:
        return k->back || is_asked ? CHILD_STUCK : CHILD_ERROR;
    case KID_DONE: /* and cannot be undone */
        return k->heard == WISH_UNDO ? CHILD_STUCK : CHILD_PROCESSED;
    case KID_UNDONE:
        return CHILD_COMPENSATED;
    }
    UNREACHABLE();
}

/* Adds a state to the list. */
static void may_be(const struct world_kid *k, enum kid_phase phase, bool back,
                   struct world_kid *ret, size_t *count)
{
    ASSERT(*count < KID_MOVES);
    ret[*count] = *k;
    ret[*count].phase = phase;
    ret[*count].back = back;
    if (phase != KID_STOPPED)
        ret[*count].doubt = false;
    (*count)++;
}

static void pivot_stands(struct world_kid *k)
{
    k->stands = true;
    k->doubt = false;
}

static size_t moves_forward(const struct world_kid *k, bool pivot, struct world_kid *ret)
{
    size_t count = 0;

    if (k->phase == KID_RUNS) {
        may_be(k, KID_STOPPED, false, ret, &count);
        if (pivot && !k->stands) { /* it stops because of its pivot; or that takes effect */
            may_be(k, KID_STOPPED, false, ret, &count);
            ret[count - 1].doubt = true;
            may_be(k, KID_RUNS, false, ret, &count);
            pivot_stands(&ret[count - 1]);
        }
    } else {
        may_be(k, KID_RUNS, false, ret, &count);
    }
    may_be(k, KID_DONE, false, ret, &count);
    ret[count - 1].stands = pivot;
    if (!k->stands) { /* an operator, or a signal, has it undone */
        may_be(k, KID_RUNS, true, ret, &count);
        may_be(k, KID_UNDONE, true, ret, &count);
    }
    return count;
}

size_t kid_moves(const struct world_kid *k, bool pivot, struct world_kid ret[KID_MOVES])
{
    size_t count = 0;

    if (k->closed || (k->phase != KID_RUNS && k->phase != KID_STOPPED))
        return 0;
    if (!k->back)
        return moves_forward(k, pivot, ret);
    may_be(k, k->phase == KID_RUNS ? KID_STOPPED : KID_RUNS, true, ret, &count);
    may_be(k, KID_UNDONE, true, ret, &count);
    return count;
}

/* It turns back, if it can: at once, or when its pivot allows it. */
static size_t hears_stop(struct world_kid *k, bool pivot, struct world_kid *ret)
{
    bool again = k->heard == WISH_STOP || k->heard == WISH_UNDO;
    size_t count = 0;

    if (k->phase == KID_DONE || k->phase == KID_UNDONE) {
        may_be(k, k->phase, k->back, ret, &count);
        return count;
    }
    k->closed = false;
    if (!again)
        k->heard = WISH_STOP;
    if (again || k->back || k->stands || k->doubt || pivot)
        may_be(k, k->phase, k->back, ret, &count);
    if (again || k->back || k->stands || k->doubt)
        return count;
    if (pivot && k->phase == KID_STOPPED)
        ret[0].doubt = true; /* why else would it stay */
    may_be(k, KID_RUNS, true, ret, &count);
    may_be(k, KID_UNDONE, true, ret, &count);
    return count;
}

static size_t hears_undo(struct world_kid *k, struct world_kid *ret)
{
    size_t count = 0;

    k->closed = false;
    if (k->phase == KID_DONE && k->heard != WISH_UNDO) {
        k->heard = WISH_UNDO;
        may_be(k, KID_RUNS, true, ret, &count);
        may_be(k, KID_UNDONE, true, ret, &count);
    }
    may_be(k, k->phase, k->back, ret, &count); /* for its pivot, or there is nothing new */
    return count;
}

size_t kid_hears(const struct world_kid *kid, bool pivot, struct world_kid ret[KID_MOVES])
{
    struct world_kid k = *kid;
    size_t count = 0;

    if (k.coming_count == 0)
        return 0;
    enum child_wish wish = (enum child_wish)k.coming[0];
    k.coming_count--;
    memmove(k.coming, k.coming + 1, sizeof k.coming - 1);
    k.coming[WORLD_WISHES - 1] = 0;
    if (wish == WISH_STOP)
        return hears_stop(&k, pivot, ret);
    if (wish == WISH_UNDO)
        return hears_undo(&k, ret);
    k.closed = wish == WISH_CLOSE && k.phase == KID_STOPPED;
    may_be(&k, k.phase, k.back, ret, &count);
    ret[0].doubt = kid->doubt;
    return count;
}

bool kid_repair(struct world_kid *k)
{
    if (k->phase != KID_STOPPED || k->closed)
        return false;
    k->back |= !k->stands && k->heard == WISH_STOP;
    k->phase = KID_RUNS;
    k->doubt = false;
    return true;
}

void kid_is_told(struct world_kid *k, const struct child *before, const struct child *is)
{
    if (is->number != before->number)
        *k = (struct world_kid){.number = is->number, .phase = KID_RUNS};
    if (is->state == CHILD_NONE || is->wish == k->sent)
        return;
    CHECK(k->coming_count < WORLD_WISHES, "%s: too much is told", history_story());
    k->sent = is->wish;
    k->coming[k->coming_count++] = (uint8_t)is->wish;
}

/* ---- what a task knows of it ---- */

bool world_kid_open(const struct world_step *s)
{
    return s->said != CHILD_NONE && s->said != CHILD_PROCESSED && s->said != CHILD_COMPENSATED;
}

bool world_kid_stopped(const struct world_step *s)
{
    return s->said == CHILD_ERROR || s->said == CHILD_STUCK;
}

bool world_kid_holds(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++)
        if (world_kid_stopped(&w->steps[i])
            && !(w->steps[i].back && w->steps[i].phase == PHASE_DONE))
            return true;
    return false;
}

enum answer world_child_answer(const struct world *w, const struct event *ev)
{
    const struct world_step *s = &w->steps[ev->step];
    bool is_told = s->kid.sent == WISH_STOP;

    if (w->graph->steps[ev->step].kind != KIND_TASK)
        return ANSWER_UNKNOWN;
    if (s->said == CHILD_NONE || ev->attempt != s->kid.number || s->said == ev->child)
        return ANSWER_REPEATED;
    if (ev->child == CHILD_ERROR && is_told) /* it will hear, and go on */
        return ANSWER_REPEATED;
    return ANSWER_ACCEPTED;
}

void world_child(struct world *w, const struct event *ev, bool in_error)
{
    struct world_step *s = &w->steps[ev->step];
    bool waits = s->phase == PHASE_IDLE && !s->back;

    s->said = ev->child;
    if (s->said == CHILD_PROCESSED && waits)
        s->phase = PHASE_DONE;
    if (s->said == CHILD_COMPENSATED && waits && !in_error)
        world_failed(w, (uint16_t)ev->step);
    else if (s->said == CHILD_COMPENSATED && waits) { /* it stops nothing now */
        s->failures++;
        s->phase = PHASE_GAVE_UP;
    } else if (s->said == CHILD_COMPENSATED && s->back && s->phase == PHASE_IDLE) {
        s->phase = PHASE_DONE;
    }
}

/* ---- what a task is told by its parent ---- */

static bool is_end(enum task_state state)
{
    return state == TASK_PROCESSED || state == TASK_COMPENSATED;
}

enum answer world_parent_answer(const struct world *w, const struct event *ev,
                                enum task_state state)
{
    bool to_go_back = w->told == WISH_STOP || w->told == WISH_UNDO;
    bool active = !is_end(state) && state != TASK_ERROR;

    if (!w->graph->is_child)
        return ANSWER_REFUSED;
    if (ev->kind == EVENT_PARENT_PAUSE)
        return active && w->paused_at == 0 ? ANSWER_ACCEPTED : ANSWER_REPEATED;
    if (ev->kind == EVENT_PARENT_RESUME)
        return w->paused_at != 0 ? ANSWER_ACCEPTED : ANSWER_REPEATED;
    switch (ev->wish) {
    case WISH_STOP:
        return !is_end(state) && (w->closed || !to_go_back) ? ANSWER_ACCEPTED : ANSWER_REPEATED;
    case WISH_UNDO:
        if (w->told == WISH_UNDO)
            return w->closed ? ANSWER_ACCEPTED : ANSWER_REPEATED;
        return state == TASK_PROCESSED     ? ANSWER_ACCEPTED
               : state == TASK_COMPENSATED ? ANSWER_REPEATED
                                           : ANSWER_REFUSED;
    case WISH_CLOSE:
        return state == TASK_ERROR && !w->closed ? ANSWER_ACCEPTED : ANSWER_REPEATED;
    case WISH_NONE:
        return w->closed || w->told == WISH_CLOSE ? ANSWER_ACCEPTED : ANSWER_REPEATED;
    }
    UNREACHABLE();
}

/* A pivot took effect, or may have without ever telling. */
static bool any_pivot_stands(const struct world *w)
{
    for (uint16_t i = 0; i < w->step_count; i++) {
        const struct world_step *s = &w->steps[i];
        bool tells = world_open(s) || s->phase == PHASE_IDLE;
        bool told = s->phase == PHASE_DONE || s->said == CHILD_STANDS || s->said == CHILD_STUCK;
        if (w->graph->steps[i].undo_kind == UNDO_PIVOT && !world_pivot_clear(s) && (told || !tells))
            return true;
    }
    return false;
}

void world_parent(struct world *w, const struct event *ev, int64_t now)
{
    bool to_go_back = w->told == WISH_STOP || w->told == WISH_UNDO;

    if (ev->kind == EVENT_PARENT_PAUSE) {
        w->paused_at = ev->until < KIT_BEGIN ? KIT_BEGIN : ev->until;
        return;
    }
    if (ev->kind == EVENT_PARENT_RESUME) {
        world_unpaused(w, now);
        return;
    }
    w->closed = ev->wish == WISH_CLOSE;
    if (!to_go_back || ev->wish == WISH_UNDO)
        w->told = ev->wish;
    w->asked |= ev->wish == WISH_STOP || ev->wish == WISH_UNDO;
    if (ev->wish == WISH_STOP && (w->back || !any_pivot_stands(w)))
        world_unpaused(w, now);
}
