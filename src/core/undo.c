/* Which steps need an undo, and when the turn of each has come: after all its successors
 * (undo.h). Pure, and changes nothing. ready.c uses it to start compensations, settle.c to find
 * the end of an undo. */

#include "core/undo.h"

bool step_has_ended(const struct workflow_step *ws, const struct step *s)
{
    return s->state == STEP_COMPLETED || s->state == STEP_SKIPPED
           || (s->state == STEP_FAILED && s->direction == DIRECTION_FORWARD
               && ws->on_failure == ON_FAILURE_CONTINUE);
}

/* A step with a list takes effect by its items: an empty list, or one of which no item completed,
 * completes the step and leaves nothing. */
bool step_took_effect(const struct step *s)
{
    return s->items ? step_has_effect(s) : s->state == STEP_COMPLETED;
}

/* A child of which it is not known that it turned back may still be processed. Those of items at
 * rest that have not ended are all that a pivot counts among those to be undone. */
bool pivot_prevents_undo(const struct step *s)
{
    return step_took_effect(s) || step_has_effect(s) || step_in_doubt(s)
           || (child_is_open(&s->child) && s->child.state != CHILD_TURNED)
           || (s->items && (s->items->tally.unturned > 0 || s->items->to_undo > 0));
}

bool step_needs_undo(const struct workflow_step *ws, const struct step *s)
{
    if (s->state == STEP_UNDONE)
        return false;
    if (ws->kind == KIND_EACH)
        return s->items->to_undo + s->items->tally.to_undo > 0;
    if (ws->kind == KIND_TASK)
        return child_needs_undo(ws, s);
    if (ws->undo_kind != UNDO_CALL)
        return false;
    /* A compensation that began is completed, even if the doubt was resolved since. */
    return s->direction == DIRECTION_UNDO || step_has_effect(s) || step_in_doubt(s);
}

bool undo_is_settled(const struct workflow *w, const struct task *t)
{
    for (uint16_t i = 0; i < t->step_count; i++)
        if (!w->steps[i].on_undo
            && (step_is_open(&t->steps[i]) || step_needs_undo(&w->steps[i], &t->steps[i])))
            return false;
    return true;
}

void undo_order_make(const struct workflow *w, const struct task *t, struct undo_order *ret)
{
    for (uint16_t k = w->step_count; k-- > 0;) {
        uint16_t i = w->order[k];
        const struct workflow_step *ws = &w->steps[i];
        bool blocked = false;
        for (uint16_t n = 0; n < ws->after_count && !blocked; n++) {
            uint16_t q = ws->after[n];
            blocked = ret->blocked[q] || step_is_open(&t->steps[q])
                      || step_needs_undo(&w->steps[q], &t->steps[q]);
        }
        ret->blocked[i] = blocked;
    }
}
