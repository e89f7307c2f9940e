#include "store/sqlite_body.h"

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
    return rows_read(q, a, limit, ret);
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

/* Which statement has the index for it. */
static enum sql list_sql(const struct list_query *lq)
{
    bool processed = !lq->any_state && lq->state == TASK_PROCESSED;

    if (lq->any_state)
        return lq->workflow.ptr ? SQL_LIST_WORKFLOW : SQL_LIST;
    if (processed)
        return lq->workflow.ptr ? SQL_LIST_WORKFLOW_PROCESSED : SQL_LIST_PROCESSED;
    return lq->workflow.ptr ? SQL_LIST_WORKFLOW_STATE : SQL_LIST_STATE;
}

static int list(struct db *d, const struct list_query *lq, struct arena *a, struct row_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    enum sql which = list_sql(lq);

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, lq->before_seq ? lq->before_seq : INT64_MAX);
    bind_number(q, 2, (int64_t)lq->limit + 1);
    if (which == SQL_LIST_STATE || which == SQL_LIST_WORKFLOW_STATE)
        bind_text(q, 3, slice_of(task_state_text(lq->state)));
    if (lq->workflow.ptr)
        bind_text(q, 4, lq->workflow);
    return rows_read(q, a, lq->limit, ret);
}

enum err sqlite_list(struct store *base, const struct list_query *lq, struct arena *a,
                     struct row_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = list(&s->reader, lq, a, ret);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "list tasks");
}
