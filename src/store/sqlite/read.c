/* Reads tasks: by id, their states at a glance, and overdue ones. reading.c reads by id through
 * its own connection; sqlite.c has all of these in its table of operations. Listings are in
 * list.c. */

#include "store/sqlite/body.h"

static int get(struct db *d, struct slice id, struct arena *a, struct task_row *ret,
               bool *ret_found)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_GET, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, id);
    rc = query_step(q);
    *ret_found = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW)
        rc = row_read(q, a, ret);
    if (rc == SQLITE_OK)
        rc = row_read_payloads(d, a, ret);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_get(struct store *base, struct slice id, struct arena *a, struct task_row *ret,
                    struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct task_row row = {0};
    bool found = false;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = get(&s->reader, id, a, &row, &found);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read a task");
    if (!found)
        return error_set(e, ERR_NOT_FOUND, "there is no task %.*s", SLICE_ARG(id));
    if (!row.doc.ptr)
        return error_set(e, ERR_CORRUPT, "task %.*s cannot be read", SLICE_ARG(id));
    *ret = row;
    return ERR_OK;
}

static int glance(struct db *d, struct slice id, struct glance *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_GLANCE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, id);
    rc = query_step(q);
    *ret = (struct glance){0};
    if (rc == SQLITE_ROW && task_state_parse(query_text(q, 1), &ret->state))
        ret->revision = (uint64_t)sqlite3_column_int64(q, 0);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_glance(struct store *base, const struct slice *ids, size_t count, struct arena *a,
                       struct glance *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    int rc = SQLITE_OK;
    (void)a;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    for (size_t i = 0; i < count && rc == SQLITE_OK; i++)
        rc = glance(&s->reader, ids[i], &ret[i]);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "look at tasks");
}

static int overdue(struct db *d, int64_t now, int64_t after_wake_at, int64_t after_seq,
                   size_t limit, struct arena *a, struct row_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_OVERDUE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, now);
    bind_number(q, 2, after_wake_at);
    bind_number(q, 3, after_seq);
    bind_number(q, 4, (int64_t)limit + 1);
    rc = rows_read(q, a, limit, ret);
    for (size_t i = 0; rc == SQLITE_OK && i < ret->count; i++)
        rc = row_read_groups(d, a, &ret->rows[i]);
    return rc;
}

enum err sqlite_overdue(struct store *base, int64_t now, int64_t after_wake_at, int64_t after_seq,
                        size_t limit, struct arena *a, struct row_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    s->now = now;
    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = overdue(&s->reader, now, after_wake_at, after_seq, limit, a, ret);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "read what is overdue");
}
