#ifndef STORE_MEMORY_OPERATION_H
#define STORE_MEMORY_OPERATION_H

/* Operations in the state store in memory. No faults are injected in here. */

#include "store/store.h"

struct mem_operation {
    struct arena arena;
    struct operation_row row;
};

struct mem_operations {
    struct mem_operation *list; /* list[seq - 1] */
    size_t count;
};

void mem_operations_fini(struct mem_operations *m);
/* False: it exists, or has another revision. */
bool mem_operation_fits(const struct mem_operations *m, const struct operation_row *row);
void mem_operation_put(struct mem_operations *m, const struct operation_row *row);
void mem_operation_list(const struct mem_operations *m, const struct operation_query *q,
                        struct arena *a, struct operation_page *ret);

#endif
