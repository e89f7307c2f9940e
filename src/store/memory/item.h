#ifndef STORE_MEMORY_ITEM_H
#define STORE_MEMORY_ITEM_H

/* Items at rest of one task of the state store in memory. No faults are injected in here. */

#include "store/store.h"

struct mem_item {
    struct arena arena;
    struct item_row row;
};

struct mem_items {
    struct mem_item *list; /* in the order of item_row_order() */
    size_t count, cap;
};

void mem_items_fini(struct mem_items *m);
void mem_item_put(struct mem_items *m, const struct item_row *row);

struct mem_task;
void mem_items_read(const struct mem_task *t, struct item_read *r, struct arena *a);
/* False: they are too long. */
bool mem_items_outputs(const struct mem_task *t, struct item_outputs *o, struct arena *a) MUST_USE;

#endif
