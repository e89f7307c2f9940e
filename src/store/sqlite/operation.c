/*
 * Operations in SQLite: written with their audit entries, and listed. The columns are those of
 * rows/operation.h.
 */
#include "store/sqlite/columns.h"

static void bind_row(sqlite3_stmt *q, const struct operation_row *row)
{
    int col = 1;

    OPERATION_COLUMNS(BIND, )
    BIND(id, text)
}

static int write_row(struct db *d, const struct operation_row *row, bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, row->revision == 1 ? SQL_OPERATION_PUT : SQL_OPERATION_UPDATE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_row(q, row);
    rc = query_run(q);
    *ret_done = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

static int put(struct db *d, const struct operation_row *row, const struct audit *audit,
               bool *ret_done, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = write_row(d, row, ret_done);
    if (rc != SQLITE_OK || !*ret_done)
        return rc;
    rc = audit_insert(d, audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_operation_put(struct store *base, const struct operation_row *row,
                              const struct audit *audit, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;
    bool done = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = put(&s->writer, row, audit, &done, &unknown);
    if (rc == SQLITE_OK && !done) {
        db_rollback(&s->writer);
        return error_set(e, ERR_CONFLICT, "operation %.*s was changed meanwhile",
                         SLICE_ARG(row->id));
    }
    return transaction_end(s, rc, unknown, e, "store an operation");
}

static void read_row(sqlite3_stmt *q, struct arena *a, struct operation_row *ret)
{
    struct operation_row row = {0};
    int col = 0;

    READ(seq, number)
    OPERATION_COLUMNS(READ, )
    READ(id, text)
    *ret = row;
}

static int read_page(struct db *d, const struct operation_query *oq, struct arena *a,
                     struct operation_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    enum sql which = oq->id.ptr ? SQL_OPERATION_GET
                     : oq->open ? SQL_OPERATION_OPEN
                                : SQL_OPERATION_LIST;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    *ret = (struct operation_page){.rows = arena_alloc(a, (oq->limit + 1) * sizeof *ret->rows)};
    bind_number(q, 1, oq->before_seq ? oq->before_seq : INT64_MAX);
    bind_number(q, 2, (int64_t)oq->limit + 1);
    if (oq->id.ptr) {
        bind_text(q, 3, oq->id);
        bind_number(q, 4, oq->open);
    }
    while ((rc = query_step(q)) == SQLITE_ROW) {
        if (ret->count == oq->limit) {
            ret->more = true;
            break;
        }
        read_row(q, a, &ret->rows[ret->count++]);
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_operation_list(struct store *base, const struct operation_query *q, struct arena *a,
                               struct operation_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct operation_page page = {0};

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = read_page(&s->reader, q, a, &page);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "list operations");
    *ret = page;
    return ERR_OK;
}
