#ifndef DEFINITION_LIST_H
#define DEFINITION_LIST_H

/* The list of a step with for_each: its text is taken apart without building a tree of it. */

#include "base/arena.h"
#include "base/err.h"
#include "core/task.h"

/* Takes apart what for_each gave, a JSON text: an array, or an object, whose items are its entries.
 * *ret is in `a`. *ret_spent are the evaluation steps that it cost. ERR_INVALID: *e says what is
 * wrong with it. */
enum err list_read(struct slice json, uint32_t max_items, struct arena *a, struct item_list *ret,
                   uint32_t *ret_spent, struct error *e) MUST_USE;

#endif
