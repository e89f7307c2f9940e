/*
 * Items at rest in PostgreSQL: what a change writes of them (commit.c has the statement), pages of
 * them with their payloads, and the array of their outputs. The rows are those of rows/item.h.
 */
#include "store/postgres/item.h"

#include "store/row_item.h"

void items_add(struct item_arrays *k, const struct change *c, int64_t ord)
{
    for (size_t i = 0; i < c->row.item_count; i++) {
        const struct item_row *row = &c->row.items[i];
        array_number(&k->ord, ord);
        array_text(&k->step, row->step);
        array_number(&k->generation, row->generation);
        array_number(&k->number, row->number);
        array_text(&k->state, slice_of(step_state_text(row->state)));
        array_number(&k->in_doubt, row->in_doubt);
        array_number(&k->needs_undo, row->needs_undo);
        array_text(&k->doc, row->doc);
    }
    for (size_t i = 0; i < c->row.dropped_payload_count; i++) {
        array_number(&k->x_ord, ord);
        array_number(&k->x_number, c->row.dropped_payloads[i]);
    }
}

bool items_any(const struct item_arrays *k)
{
    return k->ord.count > 0 || k->x_ord.count > 0;
}

void items_bind(struct item_arrays *k, struct query *q)
{
    param_array(q, &k->ord, ARRAY_NUMBERS);
    param_array(q, &k->step, ARRAY_TEXTS);
    param_array(q, &k->generation, ARRAY_NUMBERS);
    param_array(q, &k->number, ARRAY_NUMBERS);
    param_array(q, &k->state, ARRAY_TEXTS);
    param_array(q, &k->in_doubt, ARRAY_NUMBERS);
    param_array(q, &k->needs_undo, ARRAY_NUMBERS);
    param_array(q, &k->doc, ARRAY_TEXTS);
    param_array(q, &k->x_ord, ARRAY_NUMBERS);
    param_array(q, &k->x_number, ARRAY_NUMBERS);
}

bool items_are_storable(const struct change *c)
{
    for (size_t i = 0; i < c->row.item_count; i++)
        if (!text_is_storable(c->row.items[i].step) || !text_is_storable(c->row.items[i].doc))
            return false;
    return true;
}

/* ---- pages ---- */

static enum pg_sql page_sql(enum item_order order)
{
    switch (order) {
    case ITEMS_UP:
        return PG_ITEMS_UP;
    case ITEMS_DOWN:
        return PG_ITEMS_DOWN;
    case ITEMS_TO_UNDO:
        return PG_ITEMS_TO_UNDO;
    case ITEMS_FAILED:
        return PG_ITEMS_FAILED;
    }
    UNREACHABLE();
}

static bool row_read(const PGresult *r, int i, const struct item_read *of, struct arena *a,
                     struct item_row *ret)
{
    *ret = (struct item_row){
        .step = of->step,
        .generation = of->generation,
        .number = (uint32_t)result_number(r, i, 1),
        .in_doubt = result_flag(r, i, 3),
        .needs_undo = result_flag(r, i, 4),
        .doc = result_text(r, i, 5),
    };
    if (!item_state_parse(result_text(r, i, 2), &ret->state))
        return false;
    *ret = item_row_copy(a, ret);
    pg_payloads_read(r, i, 6, a, &ret->payloads, &ret->payload_count);
    return true;
}

enum err pg_items_read(struct store *base, struct item_read *ir, struct arena *a, struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    ir->rows = NULL;
    ir->count = 0;
    ir->more = false;
    if (!text_is_storable(ir->task) || !text_is_storable(ir->step))
        return ERR_OK; /* there is no such list */
    query_of(&q, s, page_sql(ir->order), &own);
    param_text(&q, ir->task);
    param_text(&q, ir->step);
    param_number(&q, ir->generation);
    param_number(&q, ir->from);
    param_number(&q, (int64_t)ir->limit + !ir->is_all);
    param_number(&q, (int64_t)ir->bytes_max);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read items");
    if (!r)
        return e->code;
    size_t fitting = (size_t)PQntuples(r);
    size_t found = fitting > 0 ? (size_t)result_number(r, 0, 0) : 0;
    size_t count = fitting < ir->limit ? fitting : ir->limit;
    ir->rows = arena_alloc(a, count * sizeof *ir->rows);
    for (size_t i = 0; i < count; i++)
        if (!row_read(r, (int)i, ir, a, &ir->rows[i]))
            return error_set(e, ERR_CORRUPT, "an item of step %.*s of task %.*s cannot be read",
                             SLICE_ARG(ir->step), SLICE_ARG(ir->task));
    ir->count = count;
    ir->more = found > count;
    return ERR_OK;
}

/* ---- outputs ---- */

enum err pg_items_outputs(struct store *base, struct item_outputs *o, struct arena *a,
                          struct error *e)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct postgres_store *s = postgres_store_of(base);
    struct query q;

    query_of(&q, s, PG_ITEMS_OUTPUTS, &own);
    param_text(&q, text_is_storable(o->task) ? o->task : SLICE_NONE);
    param_text(&q, text_is_storable(o->step) ? o->step : SLICE_NONE);
    param_number(&q, o->generation);
    param_number(&q, o->item_count);
    param_number(&q, (int64_t)o->bytes_max);
    CLEANUP(result_end) PGresult *r = pg_read(s, &q, e, "read the outputs of items");
    if (!r)
        return e->code;
    struct slice json = result_text(r, 0, 0);
    if (!json.ptr)
        return error_set(e, ERR_TOO_BIG, "the outputs of step %.*s have more than %zu bytes",
                         SLICE_ARG(o->step), o->bytes_max);
    o->json = arena_copy(a, json);
    return ERR_OK;
}
