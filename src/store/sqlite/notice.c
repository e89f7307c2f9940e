/* Notices in SQLite: those that are to be decided, and what becomes of them. No other node shares
 * the store. The columns are those
 * of rows/notice.h. A change deletes its own, and inserts others: commit.c. */
#include "store/sqlite/columns.h"

#include "store/row.h"

static struct notice_row notice_at(sqlite3_stmt *q)
{
    struct notice_row row = {0};
    int col = 0;

    BORROW(seq, number)
    NOTICE_COLUMNS(BORROW, )
    BORROW(owner, text)
    row.has_task = sqlite3_column_int(q, col++);
    row.is_submitted = sqlite3_column_int(q, col++);
    return row;
}

static int read_rows(sqlite3_stmt *q, struct notice_read *n, struct arena *a)
{
    int rc = SQLITE_OK;
    size_t bytes = 0;

    n->rows = NULL;
    n->count = 0;
    n->more = false;
    while ((rc = query_step(q)) == SQLITE_ROW) {
        n->more = n->count == n->limit;
        if (n->more)
            return SQLITE_OK;
        if (!n->rows)
            n->rows = arena_alloc(a, (n->limit + 1) * sizeof *n->rows);
        const struct notice_row row = notice_at(q);
        n->more = !notice_fits(n, &row, &bytes);
        if (n->more)
            return SQLITE_OK;
        n->rows[n->count++] = notice_copy(a, &row);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_some(struct db *d, enum sql which, struct notice_read *n, struct arena *a)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, n->after_seq);
    bind_number(q, 2, (int64_t)n->limit + 1);
    return read_rows(q, n, a);
}

static enum err read_by(struct store *base, enum sql which, struct notice_read *n, struct arena *a,
                        struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = store_look_for_others(s);
    if (rc == SQLITE_OK)
        rc = read_some(&s->reader, which, n, a);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "read notices");
}

enum err sqlite_notices_read(struct store *base, struct notice_read *n, struct arena *a,
                             struct error *e)
{
    return read_by(base, SQL_NOTICE_READ, n, a, e);
}

enum err sqlite_notices_refused(struct store *base, struct notice_read *n, struct arena *a,
                                struct error *e)
{
    return read_by(base, SQL_NOTICE_REFUSED, n, a, e);
}

static int told(struct db *d, struct slice id, int64_t *ret_at)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_NOTICE_TOLD, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, id);
    rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc;
    *ret_at = sqlite3_column_int64(q, 0); /* NULL: 0 */
    return SQLITE_OK;
}

enum err sqlite_notices_told(struct store *base, const struct slice *ids, size_t count,
                             int64_t *ret_at, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = store_look_for_others(s);
    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = told(&s->reader, ids[i], &ret_at[i]);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "read notices");
}

int notice_delete(struct db *d, int64_t seq, bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_NOTICE_DELETE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, seq);
    rc = query_run(q);
    *ret_done = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

static int refuse(struct db *d, const struct notice_verdict *v)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_NOTICE_REFUSE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, v->seq);
    bind_number(q, 2, v->refused_at);
    bind_text(q, 3, v->reason);
    return query_run(q);
}

static int settle(struct db *d, const struct notice_verdict *list, size_t count, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");
    bool done;

    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = list[i].refused_at ? refuse(d, &list[i]) : notice_delete(d, list[i].seq, &done);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_notices_settle(struct store *base, const struct notice_verdict *list, size_t count,
                               struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = settle(&s->writer, list, count, &unknown);
    return transaction_end(s, rc, unknown, e, "settle notices");
}

int notice_insert(struct db *d, const struct notice_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int col = 1;

    int rc = db_query(d, SQL_NOTICE_INSERT, &q);
    if (rc != SQLITE_OK)
        return rc;
    NOTICE_COLUMNS(BIND, )
    return query_run(q);
}

static int put(struct db *d, const struct notice_row *rows, size_t count, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = notice_insert(d, &rows[i]);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_notices_put(struct store *base, const struct notice_row *rows, size_t count,
                            struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = put(&s->writer, rows, count, &unknown);
    return transaction_end(s, rc, unknown, e, "store notices");
}
