/* Takes the list of a step with for_each apart into parts of some items, each a JSON array
 * (list.h). Its size bounds the work, so it has a budget of its own; items beyond max_items are
 * counted, but not kept. */
#include "definition/list.h"

#include "definition/definition.h"
#include "definition/expression/recorded.h"

enum {
    /* More than the largest list costs, whatever is in it. */
    PARTS_PER_BYTE = 16,
};

struct list {
    struct item_list *ret;
    uint32_t max_items;
    uint32_t count; /* also of those that are not kept */
    struct arena *arena;
    struct buf part;
};

static void end_part(struct list *l)
{
    json_close(&l->part, ']');
    l->ret->parts[l->ret->part_count++] =
        (struct value){.json = arena_copy(l->arena, buf_view(&l->part))};
    buf_clear(&l->part);
}

static void add_item(struct list *l, struct slice name, struct slice value)
{
    if (l->count++ >= l->max_items)
        return;
    if (l->ret->count++ % ITEMS_OF_PART == 0)
        json_open(&l->part, '[');
    if (name.ptr) {
        json_open(&l->part, '{');
        json_member_raw(&l->part, "key", name);
        json_member_raw(&l->part, "value", value);
        json_close(&l->part, '}');
    } else {
        json_raw(&l->part, value);
    }
    if (l->ret->count % ITEMS_OF_PART == 0)
        end_part(l);
}

/* What is no list may be large. */
static enum err no_list(struct slice json, struct error *e)
{
    return error_set(e, ERR_INVALID, "found %.*s%s, expected a list or an object",
                     SLICE_ARG(slice_cut(json, 80)), json.len > 80 ? "..." : "");
}

static enum err read_members(struct list *l, struct recorded_walk *w, struct error *e)
{
    struct slice name;
    struct slice value;

    while (recorded_next(w, &name, &value))
        add_item(l, name, value);
    if (l->part.len > 0)
        end_part(l);
    if (w->is_corrupt || w->machine->is_fatal)
        return error_set(e, ERR_CORRUPT, "the list is not JSON");
    if (l->count > l->max_items)
        return error_set(e, ERR_INVALID,
                         "the list has %" PRIu32 " items, and max_items is %" PRIu32, l->count,
                         l->max_items);
    return ERR_OK;
}

enum err list_read(struct slice json, uint32_t max_items, struct arena *a, struct item_list *ret,
                   uint32_t *ret_spent, struct error *e)
{
    struct machine m = {.arena = a, .parts_left = json.len * PARTS_PER_BYTE};
    struct recorded_walk w = {.machine = &m, .rest = json};
    struct list l = {.ret = ret, .max_items = max_items, .arena = a};
    size_t parts = (max_items + ITEMS_OF_PART - 1) / ITEMS_OF_PART;

    *ret_spent = 0;
    *ret = (struct item_list){0};
    if (json.len == 0 || (json.ptr[0] != '[' && json.ptr[0] != '{'))
        return no_list(json, e);
    if (json.len > LIST_SIZE_MAX)
        return error_set(e, ERR_INVALID, "the list is %zu bytes long, and %d are the most",
                         json.len, LIST_SIZE_MAX);
    ret->parts = arena_alloc(a, parts * sizeof *ret->parts);
    enum err err = read_members(&l, &w, e);
    *ret_spent = (uint32_t)((json.len * PARTS_PER_BYTE - m.parts_left) / PARTS_PER_STEP);
    buf_fini(&l.part);
    return err;
}
