/*
 * Schedules in SQLite: changed with their submissions and audit entries, and found when they are
 * due. The columns are those of rows/schedule.h.
 */
#include "store/sqlite/columns.h"

#include "store/row.h"

static int version_put(struct db *d, const struct schedule_row *of)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    const struct schedule_version_row version = schedule_version_of(of);
    const struct schedule_version_row *row = &version;
    int col = 1;

    int rc = db_query(d, SQL_SCHEDULE_VERSION_PUT, &q);
    if (rc != SQLITE_OK)
        return rc;
    SCHEDULE_VERSION_COLUMNS(BIND, )
    return query_run(q);
}

static int row_write(struct db *d, const struct schedule_row *row, bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    bool is_new = row->revision == 1;
    int col = 1;

    int rc = db_query(d, is_new ? SQL_SCHEDULE_PUT : SQL_SCHEDULE_UPDATE, &q);
    if (rc != SQLITE_OK)
        return rc;
    SCHEDULE_COLUMNS(BIND, )
    if (is_new)
        bind_text(q, col, row->name);
    else
        bind_number(q, col, row->seq);
    rc = query_run(q);
    *ret_done = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

static int change_write(struct db *d, struct schedule_change *c)
{
    int rc = row_write(d, &c->row, &c->done);

    if (rc != SQLITE_OK || !c->done)
        return rc;
    if (c->new_version)
        rc = version_put(d, &c->row);
    for (size_t i = 0; rc == SQLITE_OK && i < c->submission_count; i++)
        rc = submission_insert(d, &c->submissions[i]);
    return rc == SQLITE_OK ? audit_insert(d, c->audit) : rc;
}

static int changes_write(struct db *d, struct schedule_change *list, size_t count,
                         bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = change_write(d, &list[i]);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_schedule_write(struct store *base, struct schedule_change *list, size_t count,
                               const struct fence *fence, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    if (fence && fence->epoch != s->boot)
        return error_set(e, ERR_CONFLICT, "lease %.*s has another epoch", SLICE_ARG(fence->lease));
    int rc = changes_write(&s->writer, list, count, &unknown);
    return transaction_end(s, rc, unknown, e, "store schedules");
}

static void row_at(sqlite3_stmt *q, struct arena *a, struct schedule_row *ret)
{
    struct schedule_row row = {0};
    int col = 0;

    READ(seq, number)
    READ(name, text)
    SCHEDULE_COLUMNS(READ, )
    READ(run_is_open, flag)
    *ret = row;
}

/* At most `limit` behind those that are there; whether there are more. */
static int rows_at(sqlite3_stmt *q, struct arena *a, size_t limit, struct schedule_row *rows,
                   size_t *count, bool *ret_more)
{
    size_t end = *count + limit;
    int rc = SQLITE_OK;

    while ((rc = query_step(q)) == SQLITE_ROW) {
        if (*count == end) {
            *ret_more = true;
            return SQLITE_OK;
        }
        row_at(q, a, &rows[(*count)++]);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int look_rows(struct db *d, enum sql which, struct schedule_look *l, struct arena *a)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, l->now);
    bind_number(q, 2, (int64_t)l->limit + 1);
    return rows_at(q, a, l->limit, l->rows, &l->count, &l->more);
}

static int look_number(struct db *d, enum sql which, int64_t parameter, int64_t *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, parameter);
    rc = query_step(q);
    if (rc == SQLITE_ROW)
        *ret = sqlite3_column_int64(q, 0);
    return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int look(struct db *d, struct schedule_look *l, struct arena *a)
{
    int64_t waits = 0;

    l->rows = arena_alloc(a, (2 * l->limit + 1) * sizeof *l->rows);
    l->count = 0;
    l->more = false;
    l->next_at = 0;
    int rc = look_rows(d, SQL_SCHEDULE_DUE, l, a);
    if (rc == SQLITE_OK && l->waiting)
        rc = look_rows(d, SQL_SCHEDULE_WAITS, l, a);
    if (rc == SQLITE_OK)
        rc = look_number(d, SQL_SCHEDULE_NEXT, l->now, &l->next_at);
    if (rc == SQLITE_OK)
        rc = look_number(d, SQL_SCHEDULE_WAIT_COUNT, SCHEDULES_COUNTED, &waits);
    l->wait_count = (uint64_t)waits;
    return rc;
}

enum err sqlite_schedule_look(struct store *base, struct schedule_look *l, struct arena *a,
                              struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = look(&s->reader, l, a);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "read schedules");
}

static int list(struct db *d, const struct schedule_query *want, struct arena *a,
                struct schedule_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    enum sql which = want->name.ptr     ? SQL_SCHEDULE_GET
                     : want->gaps_since ? SQL_SCHEDULE_GAPS
                                        : SQL_SCHEDULE_LIST;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    *ret = (struct schedule_page){.rows = arena_alloc(a, (want->limit + 1) * sizeof *ret->rows)};
    bind_text(q, 1,
              want->name.ptr         ? want->name
              : want->after_name.ptr ? want->after_name
                                     : SLICE(""));
    bind_number(q, 2, (int64_t)want->limit + 1);
    if (which == SQL_SCHEDULE_GAPS)
        bind_number(q, 3, want->gaps_since);
    return rows_at(q, a, want->limit, ret->rows, &ret->count, &ret->more);
}

enum err sqlite_schedule_list(struct store *base, const struct schedule_query *q, struct arena *a,
                              struct schedule_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct schedule_page page = {0};

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = list(&s->reader, q, a, &page);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "list schedules");
    *ret = page;
    return ERR_OK;
}

static int version_get(struct db *d, struct slice name, int64_t version, struct arena *a,
                       struct schedule_version_row *ret, bool *ret_found)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    struct schedule_version_row row = {0};
    int col = 0;

    int rc = db_query(d, SQL_SCHEDULE_VERSION_GET, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, name);
    bind_number(q, 2, version);
    rc = query_step(q);
    *ret_found = rc == SQLITE_ROW;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    SCHEDULE_VERSION_COLUMNS(READ, )
    *ret = row;
    return SQLITE_OK;
}

enum err sqlite_schedule_version(struct store *base, struct slice name, int64_t version,
                                 struct arena *a, struct schedule_version_row *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool found = false;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = version_get(&s->reader, name, version, a, ret, &found);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read a schedule");
    if (!found)
        return error_set(e, ERR_NOT_FOUND, "schedule %.*s has no version %" PRId64, SLICE_ARG(name),
                         version);
    return ERR_OK;
}

static int delete_by_name(struct db *d, enum sql which, struct slice name, bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, name);
    rc = query_run(q);
    *ret_done = rc == SQLITE_OK && sqlite3_changes(d->handle) > 0;
    return rc;
}

static int delete_schedule(struct db *d, struct slice name, const struct audit *audit,
                           bool *ret_done, bool *ret_unknown)
{
    bool any = false;
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = delete_by_name(d, SQL_SCHEDULE_DELETE, name, ret_done);
    if (rc != SQLITE_OK || !*ret_done)
        return rc;
    rc = delete_by_name(d, SQL_SCHEDULE_VERSIONS_DELETE, name, &any);
    if (rc == SQLITE_OK)
        rc = audit_insert(d, audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_schedule_remove(struct store *base, struct slice name, const struct audit *audit,
                                struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;
    bool done = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = delete_schedule(&s->writer, name, audit, &done, &unknown);
    if (rc == SQLITE_OK && !done) {
        db_rollback(&s->writer);
        return error_set(e, ERR_NOT_FOUND, "there is no schedule %.*s", SLICE_ARG(name));
    }
    return transaction_end(s, rc, unknown, e, "delete a schedule");
}
