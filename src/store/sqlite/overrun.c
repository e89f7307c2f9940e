/* The table `overrun`: how often the evaluations of a task took far too long. It is empty but for
 * tasks that something is wrong with. */
#include "store/sqlite/body.h"

static int count_one(struct db *d, const struct overrun_count *c)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, c->by > 0 ? SQL_OVERRUN_RAISE : SQL_OVERRUN_LOWER, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, c->task);
    if (c->by > 0)
        bind_number(q, 2, c->at);
    return query_run(q);
}

static int sweep(struct db *d, const struct overrun_count *c)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, c->by > 0 ? SQL_OVERRUN_SWEEP : SQL_OVERRUN_CLEAN, &q);
    if (rc != SQLITE_OK)
        return rc;
    if (c->by > 0)
        bind_number(q, 1, c->at - OVERRUN_KEPT_MS);
    return query_run(q);
}

static int count(struct db *d, const struct overrun_count *c, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = count_one(d, c);
    if (rc == SQLITE_OK)
        rc = sweep(d, c);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_overrun_count(struct store *base, const struct overrun_count *c, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = count(&s->writer, c, &unknown);
    return transaction_end(s, rc, unknown, e, "count an evaluation that took too long");
}

int overrun_delete(struct db *d, struct slice task)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_OVERRUN_DELETE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, task);
    return query_run(q);
}

static int read_all(struct db *d, struct arena *a, struct overrun *list, size_t *ret_count)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    size_t n = 0;

    int rc = db_query(d, SQL_OVERRUN_LIST, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, OVERRUNS_MAX);
    while ((rc = query_step(q)) == SQLITE_ROW && n < OVERRUNS_MAX)
        list[n++] = (struct overrun){arena_copy(a, query_text(q, 0)), sqlite3_column_int64(q, 1),
                                     sqlite3_column_int64(q, 2)};
    *ret_count = n;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_overrun_list(struct store *base, struct arena *a, struct overrun **ret,
                             size_t *ret_count, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    enum err err = store_ready(s, e);
    size_t count = 0;

    if (err != ERR_OK)
        return err;
    struct overrun *list = arena_alloc(a, OVERRUNS_MAX * sizeof *list);
    int rc = read_all(&s->reader, a, list, &count);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read whose evaluations took too long");
    *ret = list;
    *ret_count = count;
    return ERR_OK;
}
