/*
 * Items at rest in SQLite: written by changes of their task (commit.c), read in pages with their
 * payloads, and the array of their outputs. The rows are those of rows/item.h.
 */
#include "store/sqlite/body.h"

#include "store/row_item.h"

static int put_by(struct db *d, enum sql which, const struct task_row *task,
                  const struct item_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_time(q, 1, task->seq); /* 0: not known */
    bind_text(q, 9, task->id);
    bind_text(q, 2, row->step);
    bind_number(q, 3, row->generation);
    bind_number(q, 4, row->number);
    bind_text(q, 5, slice_of(step_state_text(row->state)));
    bind_number(q, 6, row->in_doubt);
    bind_number(q, 7, row->needs_undo);
    bind_text(q, 8, row->doc);
    return query_run(q);
}

/* One that was undone mostly has a row. To insert it and find that is dearer. */
static int item_put(struct db *d, const struct task_row *task, const struct item_row *row)
{
    if (row->state == STEP_UNDONE) {
        int rc = put_by(d, SQL_ITEM_UPDATE, task, row);
        if (rc != SQLITE_OK || sqlite3_changes(d->handle) == 1)
            return rc;
    }
    return put_by(d, SQL_ITEM_PUT, task, row);
}

int items_put(struct db *d, const struct task_row *row)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < row->item_count; i++)
        rc = item_put(d, row, &row->items[i]);
    return rc;
}

/* ---- pages ---- */

static enum sql page_sql(enum item_order order)
{
    switch (order) {
    case ITEMS_UP:
        return SQL_ITEMS_UP;
    case ITEMS_DOWN:
        return SQL_ITEMS_DOWN;
    case ITEMS_TO_UNDO:
        return SQL_ITEMS_TO_UNDO;
    case ITEMS_FAILED:
        return SQL_ITEMS_FAILED;
    }
    UNREACHABLE();
}

static int row_at(struct db *d, sqlite3_stmt *q, const struct item_read *r, struct arena *a,
                  struct item_row *ret)
{
    uint32_t *numbers = NULL;
    struct payload *payloads = NULL;

    *ret = (struct item_row){
        .step = r->step,
        .generation = r->generation,
        .number = (uint32_t)sqlite3_column_int64(q, 1),
        .in_doubt = sqlite3_column_int(q, 3),
        .needs_undo = sqlite3_column_int(q, 4),
        .doc = query_text(q, 5),
    };
    if (!item_state_parse(query_text(q, 2), &ret->state))
        return SQLITE_CORRUPT;
    *ret = item_row_copy(a, ret);
    size_t count = item_payloads(ret->doc, a, &numbers);
    int rc = payloads_read(d, a, sqlite3_column_int64(q, 0), numbers, count, &payloads,
                           &ret->payload_count);
    ret->payloads = payloads;
    return rc;
}

static int read_rows(struct db *d, sqlite3_stmt *q, struct item_read *r, struct arena *a)
{
    size_t bytes = 0;
    size_t cap = 0;
    int rc;

    while ((rc = query_step(q)) == SQLITE_ROW) {
        struct item_row row;
        r->more = r->count == r->limit;
        if (r->more)
            return SQLITE_OK;
        rc = row_at(d, q, r, a, &row);
        if (rc != SQLITE_OK)
            return rc;
        r->more = !item_fits(r, &row, &bytes);
        if (r->more)
            return SQLITE_OK;
        if (r->count == cap) {
            cap = cap ? cap * 2 : 8;
            struct item_row *more = arena_alloc(a, cap * sizeof *more);
            if (r->count)
                memcpy(more, r->rows, r->count * sizeof *more);
            r->rows = more;
        }
        r->rows[r->count++] = row;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_page(struct db *d, struct item_read *r, struct arena *a)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, page_sql(r->order), &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, r->task);
    bind_text(q, 2, r->step);
    bind_number(q, 3, r->generation);
    bind_number(q, 4, r->from);
    bind_number(q, 5, (int64_t)r->limit + !r->is_all);
    return read_rows(d, q, r, a);
}

enum err sqlite_items_read(struct store *base, struct item_read *r, struct arena *a,
                           struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    r->rows = NULL;
    r->count = 0;
    r->more = false;
    int rc = read_page(&s->reader, r, a);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "read items");
}

/* ---- outputs ---- */

/* The list ends where it would be too long: what lies behind is not read. */
static int read_outputs(struct db *d, struct item_outputs *o, struct arena *a, bool *ret_fits)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    CLEANUP(buf_fini) struct buf b = {0};
    struct outputs outputs;

    int rc = db_query(d, SQL_ITEMS_OUTPUTS, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, o->task);
    bind_text(q, 2, o->step);
    bind_number(q, 3, o->generation);
    outputs_begin(&outputs, &b);
    *ret_fits = true;
    while (*ret_fits && (rc = query_step(q)) == SQLITE_ROW)
        *ret_fits =
            outputs_add(o, &outputs, (uint32_t)sqlite3_column_int64(q, 0), query_text(q, 1));
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        return rc;
    *ret_fits = *ret_fits && outputs_end(o, &outputs);
    if (*ret_fits)
        o->json = arena_copy(a, buf_view(&b));
    return SQLITE_OK;
}

enum err sqlite_items_outputs(struct store *base, struct item_outputs *o, struct arena *a,
                              struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool fits = false;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = read_outputs(&s->reader, o, a, &fits);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read the outputs of items");
    return fits ? ERR_OK
                : error_set(e, ERR_TOO_BIG, "the outputs of step %.*s have more than %zu bytes",
                            SLICE_ARG(o->step), o->bytes_max);
}
