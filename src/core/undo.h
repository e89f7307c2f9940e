#ifndef CORE_UNDO_H
#define CORE_UNDO_H

/*
 * What has to be undone, and in which order: the reverse of the graph's. A step's compensation
 * starts when all that came after it is settled, which is what `struct undo_order` works out.
 */

#include "core/decide.h"

/* Going forward, is there nothing more to come of this step? Its successors may start then. */
bool step_has_ended(const struct workflow_step *ws, const struct step *s);

/* A pivot that took effect, or may have: compensation is out of the question as it stands. */
bool pivot_stands(const struct step *s);

/* For each step: is some (direct or indirect) successor not settled yet? */
struct undo_order {
    bool blocked[STEPS_MAX];
};

void undo_order_make(const struct workflow *w, const struct task *t, struct undo_order *ret);

/* Is every compensation settled, and nothing of them at work? The steps of on_undo come then. */
bool undo_is_settled(const struct workflow *w, const struct task *t);

/* Has the step's compensation failed for good? */
static inline bool step_undo_is_stuck(const struct step *s)
{
    return s->state == STEP_FAILED && s->direction == DIRECTION_UNDO;
}

#endif
