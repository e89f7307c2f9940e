#include "cli/table.h"

#include <stdio.h>
#include <stdlib.h>

void table_fini(struct table *t)
{
    arena_fini(&t->arena);
    free(t->cells);
}

void table_add(struct table *t, struct slice cell)
{
    if (t->count == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->cells = realloc(t->cells, t->cap * sizeof(*t->cells));
        if (!t->cells)
            abort();
    }
    t->cells[t->count++] = cell.len ? arena_copy(&t->arena, cell) : SLICE("-");
}

static size_t column_width(const struct table *t, size_t column)
{
    size_t width = 0;

    for (size_t i = column; i < t->count; i += t->columns)
        width = t->cells[i].len > width ? t->cells[i].len : width;
    return width;
}

void table_print(const struct table *t)
{
    size_t widths[16] = {0};

    ASSERT(t->columns <= COUNT_OF(widths));
    ASSERT(t->count % t->columns == 0);
    for (size_t c = 0; c < t->columns; c++)
        widths[c] = column_width(t, c);
    for (size_t i = 0; i < t->count; i++) {
        size_t c = i % t->columns;
        if (c + 1 == t->columns)
            printf("%.*s\n", SLICE_ARG(t->cells[i]));
        else
            printf("%-*.*s  ", (int)widths[c], SLICE_ARG(t->cells[i]));
    }
}
