#ifndef CORE_HISTORY_ITEM_KIDS_H
#define CORE_HISTORY_ITEM_KIDS_H

/*
 * One node of the search of history_item_kids_test.c: a task with one step with for_each that
 * starts a child for each item, the rows of items at rest, and the children as they really are. The
 * observer shares no code with the core.
 */

#include "core/history_items.h"
#include "core/history_kid.h"

/* In the tale, `seen` has what operators and agents did, and `left` the budgets. */
struct brood {
    struct tale tale;
    struct world_kid kids[TALE_ITEMS];
    uint8_t moves; /* how often a child may still end, fail or stop */
};

void brood_make(struct brood *n, const char *graph, struct tale_left left, uint8_t moves);
void brood_copy(struct brood *to, const struct brood *from);
uint64_t brood_key(const struct brood *n);

/* What the task knows of the child of that item. */
struct child brood_child(const struct brood *n, uint32_t item);

/* Applies an event, checks that a refused one changes nothing, and what the children are told.
 * False: it was refused. */
bool brood_event(struct brood *n, const struct event *ev);

/* The child is like that from now on, and tells its parent if that is news; its item may be at
 * rest. False: no slot is free for its row, so it cannot tell that yet. */
bool brood_kid_becomes(struct brood *n, uint32_t item, const struct world_kid *next);

void brood_check(const struct brood *n);

#endif
