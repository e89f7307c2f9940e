/*
 * Rows of items of steps with for_each: checks before they are stored, which payloads they name,
 * and the array of their outputs. Pure: it calls no body.
 */
#include "store/row_item.h"

#include <stdlib.h>

#include "json/json.h"

static bool is_of_rest(enum step_state state)
{
    return state == STEP_COMPLETED || state == STEP_FAILED || state == STEP_SKIPPED
           || state == STEP_UNDONE;
}

bool item_row_valid(const struct item_row *row)
{
    return row->step.len > 0 && row->doc.ptr && is_of_rest(row->state) && row->number < ITEMS_MAX;
}

struct item_row item_row_copy(struct arena *a, const struct item_row *row)
{
    struct item_row copy = *row;

    copy.step = arena_copy(a, row->step);
    copy.doc = arena_copy(a, row->doc);
    copy.payloads = NULL;
    copy.payload_count = 0;
    return copy;
}

bool item_state_parse(struct slice word, enum step_state *ret)
{
    return step_state_parse(word, ret) && is_of_rest(*ret);
}

/* ---- payloads ---- */

static size_t add_number(const struct json *j, const char *key, uint32_t *list, size_t count)
{
    int64_t number = json_get_int(j, key, 0);

    if (number <= 0 || number > PAYLOAD_NUMBER_MAX)
        return count;
    for (size_t i = 0; i < count; i++)
        if (list[i] == (uint32_t)number)
            return count;
    list[count] = (uint32_t)number;
    return count + 1;
}

static int number_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Most do not, and then a long one need not be parsed. */
static bool names_inputs(struct slice doc)
{
    static const char key[] = "input_payload\":";

    return memmem(doc.ptr, doc.len, key, sizeof key - 1) != NULL;
}

size_t item_payloads(struct slice doc, struct arena *a, uint32_t **ret)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct json *j = NULL;
    size_t count = 0;

    *ret = NULL;
    if (!names_inputs(doc) || json_parse(&own, doc, &j, NULL) != ERR_OK)
        return 0;
    uint32_t *list = arena_alloc(a, 2 * sizeof *list);
    count = add_number(j, "input_payload", list, count);
    count = add_number(j, "undo_input_payload", list, count);
    qsort(list, count, sizeof *list, number_order);
    *ret = list;
    return count;
}

/* ---- pages ---- */

bool item_fits(const struct item_read *r, const struct item_row *row, size_t *bytes)
{
    size_t size = row->doc.len;

    for (size_t i = 0; i < row->payload_count; i++)
        size += row->payloads[i].json.len;
    if (r->bytes_max > 0 && r->count > 0 && *bytes + size > r->bytes_max)
        return false;
    *bytes += size;
    return true;
}

int item_row_order(const struct item_row *x, const struct item_row *y)
{
    int order = slice_order(x->step, y->step);

    if (order == 0)
        order = (x->generation > y->generation) - (x->generation < y->generation);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* ---- outputs ---- */

void outputs_begin(struct outputs *o, struct buf *b)
{
    *o = (struct outputs){.b = b};
    json_open(b, '[');
}

/* So many more bytes, and the bracket at the end. */
static bool fits(const struct item_outputs *want, const struct outputs *o, size_t more)
{
    return o->b->len + more + 1 <= want->bytes_max;
}

static bool add_nulls(const struct item_outputs *want, struct outputs *o, uint32_t until)
{
    for (; o->next < until; o->next++) {
        if (!fits(want, o, 4 + (o->next > 0)))
            return false;
        json_null(o->b);
    }
    return true;
}

bool outputs_add(const struct item_outputs *want, struct outputs *o, uint32_t number,
                 struct slice json)
{
    if (number < o->next || number >= want->item_count)
        return true;
    if (!add_nulls(want, o, number))
        return false;
    if (!json.ptr)
        return true;
    if (!fits(want, o, json.len + (o->next > 0)))
        return false;
    json_raw(o->b, json);
    o->next++;
    return true;
}

bool outputs_end(const struct item_outputs *want, struct outputs *o)
{
    if (!add_nulls(want, o, want->item_count) || !fits(want, o, 0))
        return false;
    json_close(o->b, ']');
    return true;
}
