#ifndef CORE_UNDO_H
#define CORE_UNDO_H

/*
 * What has to be undone, and in which order: the reverse of the graph's. A step's compensation
 * starts when all its successors are settled, which `struct undo_order` computes.
 */

#include "core/decide.h"

/* Whether the step is done going forward, so that its successors may start. */
bool step_has_ended(const struct workflow_step *ws, const struct step *s);

/* The step completed, and not only because none of its items had to. */
bool step_took_effect(const struct step *s);

/* A pivot that took effect, or may have. It rules out undo unless it is resolved. */
bool pivot_prevents_undo(const struct step *s);

/* Part of step_needs_undo(), for a step with a child that is not undone. A child that has not ended
 * has to, whatever the step's undo is. */
bool child_needs_undo(const struct workflow_step *ws, const struct step *s);

/* For each step: whether some direct or indirect successor is not settled yet. */
struct undo_order {
    bool blocked[STEPS_MAX];
};

void undo_order_make(const struct workflow *w, const struct task *t, struct undo_order *ret);

/* Whether every compensation is settled and none is running. Then the steps of on_undo start. */
bool undo_is_settled(const struct workflow *w, const struct task *t);

/* Whether the step's compensation has failed for good, or its child, which was told to turn back,
 * stopped in error. */
static inline bool step_undo_is_stuck(const struct step *s)
{
    bool was_told = s->child.wish == WISH_STOP || s->child.wish == WISH_UNDO;

    return (s->state == STEP_FAILED && s->direction == DIRECTION_UNDO)
           || (s->child.state == CHILD_STUCK && was_told);
}

#endif
