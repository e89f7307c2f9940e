/* Sorts the mistakes that were found in a text by their place, and renders them as JSON for
 * answers of the API (mistakes.h). cli/client/mistakes.c prints them for people. */

#include "config/mistakes.h"

#include <stdlib.h>

#include "json/json.h"

static int by_place(const void *a, const void *b)
{
    const struct mistake *x = a;
    const struct mistake *y = b;

    if (x->line != y->line)
        return x->line < y->line ? -1 : 1;
    if (x->column != y->column)
        return x->column < y->column ? -1 : 1;
    int order = strcmp(x->path, y->path);
    return order ? order : strcmp(x->found, y->found);
}

void mistakes_sort(struct mistakes *m)
{
    qsort(m->list, m->count, sizeof m->list[0], by_place);
}

void mistakes_render(struct buf *b, const struct mistakes *m)
{
    json_open(b, '[');
    for (size_t i = 0; i < m->count; i++) {
        const struct mistake *k = &m->list[i];
        json_open(b, '{');
        json_member_number(b, "line", k->line);
        json_member_number(b, "column", k->column);
        json_member_text(b, "path", slice_of(k->path));
        json_member_text(b, "found", slice_of(k->found));
        json_member_text(b, "expected", slice_of(k->expected));
        json_close(b, '}');
    }
    json_close(b, ']');
}
