/*
 * Items at rest of the tasks of the store in memory: written by changes (memory.c), read in pages,
 * and their outputs. The operations of the interface, which inject faults, are in stored.c.
 */
#include "store/memory/item.h"

#include <stdlib.h>

#include "store/memory/task.h"
#include "store/row_item.h"
#include "json/json.h"

void mem_items_fini(struct mem_items *m)
{
    for (size_t i = 0; i < m->count; i++)
        arena_fini(&m->list[i].arena);
    free(m->list);
    *m = (struct mem_items){0};
}

/* The first one that is not before `key`. */
static size_t find(const struct mem_items *m, const struct item_row *key)
{
    size_t from = 0;
    size_t to = m->count;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (item_row_order(&m->list[middle].row, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct mem_item *make_room(struct mem_items *m, size_t at)
{
    if (m->count == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 16;
        m->list = reallocarray(m->list, m->cap, sizeof *m->list);
        ASSERT(m->list);
    }
    memmove(m->list + at + 1, m->list + at, (m->count - at) * sizeof *m->list);
    m->count++;
    return &m->list[at];
}

void mem_item_put(struct mem_items *m, const struct item_row *row)
{
    size_t at = find(m, row);
    bool is_there = at < m->count && item_row_order(&m->list[at].row, row) == 0;
    struct mem_item *one = is_there ? &m->list[at] : make_room(m, at);

    if (is_there)
        arena_fini(&one->arena);
    *one = (struct mem_item){0};
    one->row = item_row_copy(&one->arena, row);
}

/* ---- reading ---- */

static struct slice payload_of(const struct mem_task *t, int64_t number)
{
    for (size_t i = 0; i < t->payload_count; i++)
        if (t->payloads[i].number == number)
            return t->payloads[i].json;
    return SLICE_NONE;
}

static void add_payloads(const struct mem_task *t, struct arena *a, struct item_row *row)
{
    uint32_t *numbers = NULL;
    size_t count = item_payloads(row->doc, a, &numbers);
    struct payload *list = arena_alloc(a, (count + 1) * sizeof *list);

    row->payloads = list;
    for (size_t i = 0; i < count; i++) {
        struct slice json = payload_of(t, numbers[i]);
        if (json.ptr)
            list[row->payload_count++] = (struct payload){numbers[i], arena_copy(a, json)};
    }
}

static bool is_of(const struct item_row *row, const struct item_row *list)
{
    return slice_eq(row->step, list->step) && row->generation == list->generation;
}

static bool is_complete(const struct item_read *r)
{
    return r->is_all && r->count == r->limit;
}

/* False: the page is full. */
static bool add(const struct mem_task *t, const struct item_row *row, struct item_read *r,
                size_t *bytes, struct arena *a)
{
    struct item_row copy = item_row_copy(a, row);

    add_payloads(t, a, &copy);
    r->more = r->count == r->limit || !item_fits(r, &copy, bytes);
    if (!r->more)
        r->rows[r->count++] = copy;
    return !r->more;
}

static bool is_wanted(const struct item_read *r, const struct item_row *row)
{
    if (r->order == ITEMS_FAILED)
        return row->state == STEP_FAILED;
    return r->order != ITEMS_TO_UNDO || row->needs_undo;
}

static uint32_t number_of(int64_t from)
{
    return from < 0 ? 0 : from > UINT32_MAX ? UINT32_MAX : (uint32_t)from;
}

void mem_items_read(const struct mem_task *t, struct item_read *r, struct arena *a)
{
    const struct mem_items *m = &t->items;
    const struct item_row key = {.step = r->step,
                                 .generation = r->generation,
                                 .number = number_of(r->from)};
    size_t i = find(m, &key);
    size_t bytes = 0;

    r->rows = arena_alloc(a, (r->limit < m->count ? r->limit : m->count) * sizeof *r->rows);
    if (r->order == ITEMS_UP || r->order == ITEMS_FAILED) {
        for (; i < m->count && is_of(&m->list[i].row, &key) && !is_complete(r); i++)
            if (is_wanted(r, &m->list[i].row) && !add(t, &m->list[i].row, r, &bytes, a))
                return;
        return;
    }
    for (; i > 0 && is_of(&m->list[i - 1].row, &key) && !is_complete(r); i--)
        if (is_wanted(r, &m->list[i - 1].row) && !add(t, &m->list[i - 1].row, r, &bytes, a))
            return;
}

/* NONE: it has none. */
static struct slice output_of(const struct item_row *row, struct arena *a)
{
    struct json *j = NULL;

    if (json_parse(a, row->doc, &j, NULL) != ERR_OK)
        return SLICE_NONE;
    return json_get_raw(j, "output");
}

bool mem_items_outputs(const struct mem_task *t, struct item_outputs *o, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct item_row key = {.step = o->step, .generation = o->generation};
    const struct mem_items *m = &t->items;
    struct outputs outputs;

    outputs_begin(&outputs, &b);
    for (size_t i = find(m, &key); i < m->count && is_of(&m->list[i].row, &key); i++) {
        CLEANUP(arena_fini) struct arena own = {0};
        const struct item_row *row = &m->list[i].row;
        if (!outputs_add(o, &outputs, row->number, output_of(row, &own)))
            return false;
    }
    if (!outputs_end(o, &outputs))
        return false;
    o->json = arena_copy(a, buf_view(&b));
    return true;
}
