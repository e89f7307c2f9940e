/* The observer's model of families: what a task makes of what its child tells (history_kid.h), and
 * what a task has to do that is told something by its parent (see history_world.h). Part of the
 * tests: it shares no code with child.c, which it judges. */

#include "core/history_check.h"

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
