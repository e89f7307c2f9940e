#ifndef CORE_CORE_TEST_ITEMS_H
#define CORE_CORE_TEST_ITEMS_H

/* The part of the kit that knows of steps with for_each. Only core_test_kit.c calls it. */

#include "core/core_test_kit.h"

/* The flag of such a step, after its `{`: "2}", "2.}" or "2:}". Returns its end. */
const char *kit_become_each(struct workflow_step *s, const char *p);

/* Adds the slots of all steps. Only items have rounds. */
void kit_graph_slots(struct graph *g);

/* After an event was accepted: the sums are right, and what came to rest is stored. */
void kit_after_items(struct kit *k, const struct event *ev);

void kit_store_items(struct kit *k);

/* After an event that changed nothing: the row that it concerned is where it was. */
void kit_let_go(struct kit *k);

/* The unit of an event of a step that the script names: "a", or "a.1" for an item. `count`: of a
 * list that begins, or NULL. */
void kit_aim_item(struct kit *k, struct event *ev, const char *which, const char *count);

/* Writes the states of all items. */
size_t kit_tell_items(const struct kit *k, uint16_t step, char *got, size_t size);

#endif
