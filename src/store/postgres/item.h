#ifndef STORE_POSTGRES_ITEM_H
#define STORE_POSTGRES_ITEM_H

/* Items that a change writes, and the payloads that it deletes, as arrays. The names of their
 * parameters begin with i_ and x_. */

#include "store/postgres/body.h"

struct item_arrays {
    struct array ord, step, generation, number, state, in_doubt, needs_undo, doc;
    struct array x_ord, x_number;
};
bool items_any(const struct item_arrays *k);
void items_add(struct item_arrays *k, const struct change *c, int64_t ord);
void items_bind(struct item_arrays *k, struct query *q);
bool items_are_storable(const struct change *c);

#endif
