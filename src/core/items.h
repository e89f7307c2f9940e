#ifndef CORE_ITEMS_H
#define CORE_ITEMS_H

/*
 * The items of steps with for_each: which may begin, which rest, and which are brought back to be
 * undone. A step with for_each is a step like others; its items at work are units in its slots
 * (struct each_spec), to which the same events happen as to steps.
 *
 *   forward   a free slot is ready as long as there are items and places; EVENT_START (or
 *             EVENT_BAD_INPUT) begins the next item in it
 *   rest      an item that has ended leaves its slot: its sums are in struct items, and whoever
 *             stores the change writes its row (SLOT_RESTING), and frees the slot once that is
 *             durable
 *   undo      items that took effect, or may have, are brought back by EVENT_BRING, the last first
 *   after it  a late result and verbs of operators reach an item at rest in a slot, too: its row is
 *             brought by who calls decide() (item_hold), and written again
 */

#include "core/decide.h"

/* Counts again what is in the slots of the step. An event that happens to one item moves the sums
 * by what that counts for: there may be hundreds of slots. */
void items_tally(const struct workflow *w, const struct task *t, uint16_t step);
void items_tally_all(const struct workflow *w, const struct task *t); /* of all steps */

/* The item that begins next, or -1: all have begun, or none may begin any more. */
int items_next(const struct workflow_step *ws, const struct step *s);

/* Whether enough of them have failed that no other begins. */
bool items_are_failing(const struct workflow_step *ws, const struct step *s);

/* Whether the item in this slot, or the next one if it is free, may be tried now or later, as far
 * as the other items are concerned. */
bool item_may_go_on(const struct workflow *w, const struct task *t, uint16_t unit);

/* The slot that has this item of the step; -1: none, so it is at rest, or has not begun. */
int items_slot(const struct workflow *w, const struct task *t, uint16_t step, uint32_t item);

/* How many more items of the step may be at work. */
uint32_t items_places(const struct workflow_step *ws, const struct step *s);

/* Whether some item can go on, or begin, without an operator. */
bool items_go_on(const struct workflow *w, const struct task *t, uint16_t step);

/* How many items may begin now. */
uint32_t items_that_may_begin(const struct workflow_step *ws, const struct step *s);

/* How many items at rest are wanted back now, to be undone: those of the greatest numbers below
 * undo_below that need it. */
uint32_t items_to_bring(const struct workflow *w, const struct task *t, uint16_t step);

/* Whether an item, or the undo of one, can still go on without an operator. */
bool items_may_be_undone(const struct workflow_step *ws, const struct step *s);

/* A slot of the step without an item; -1: all have one, until the next change is stored. */
int items_free_slot(const struct workflow *w, const struct task *t, uint16_t step);

/* Puts an item at rest, as its row says, into a free slot, as if that row were still to be written.
 * So what happens to it after all reaches it: a late result, or an operator. If nothing does, it is
 * let go. */
void item_hold(const struct workflow *w, struct task *t, uint16_t unit, const struct step *row);
void item_let_go(const struct workflow *w, struct task *t, uint16_t unit);

/* Whether operators can still repair the item going forward: one at rest, as long as its step has
 * not ended. */
bool item_may_be_repaired(const struct workflow *w, const struct task *t, uint16_t unit);

/* The slots of the items that came to rest are free: their rows are durable. */
void items_stored(const struct workflow *w, struct task *t);

/* Whether the sums fit together, and the step's state; whether the slot fits its step. */
bool items_valid(const struct workflow *w, const struct task *t, uint16_t step);
bool item_slot_valid(const struct workflow *w, const struct task *t, uint16_t unit);

/* Whether no item is in two slots, and the sums are those of the slots. */
bool items_slots_valid(const struct workflow *w, const struct task *t, uint16_t step);

#endif
