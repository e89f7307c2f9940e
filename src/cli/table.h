#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "json/json.h"

/* Columns as wide as their longest cell; the first row is the head. */
struct table {
    struct arena arena;
    struct slice *cells;
    size_t columns, count, cap;
};

void table_add(struct table *t, struct slice cell); /* NONE shows as "-" */
void table_print(const struct table *t);
void table_fini(struct table *t);

#endif
