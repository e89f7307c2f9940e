/*
 * Alerts in SQLite, and the stopped tasks for which they are opened. The columns are those of
 * rows/alert.h.
 */
#include "store/sqlite/columns.h"

/* ---- tasks in error ---- */

static void read_stopped(sqlite3_stmt *q, struct arena *a, struct stopped *ret)
{
    *ret = (struct stopped){
        .seq = sqlite3_column_int64(q, 0),
        .ended_at = sqlite3_column_int64(q, 1),
        .id = arena_copy(a, query_text(q, 2)),
        .workflow = arena_copy(a, query_text(q, 3)),
        .undo = sqlite3_column_int(q, 4),
        .code = arena_copy(a, query_text(q, 5)),
        .message = arena_copy(a, query_text(q, 6)),
        .step = arena_copy(a, query_text(q, 7)),
        .of_child = sqlite3_column_int(q, 8),
    };
}

static int stopped(struct db *d, int64_t after_ended_at, int64_t after_seq, size_t limit,
                   struct arena *a, struct stopped_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_STOPPED, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, after_ended_at);
    bind_number(q, 2, after_seq);
    bind_number(q, 3, (int64_t)limit + 1);
    *ret = (struct stopped_page){.rows = arena_alloc(a, (limit + 1) * sizeof *ret->rows)};
    while ((rc = query_step(q)) == SQLITE_ROW && !ret->more) {
        ret->more = ret->count == limit;
        if (!ret->more)
            read_stopped(q, a, &ret->rows[ret->count++]);
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_stopped(struct store *base, int64_t after_ended_at, int64_t after_seq, size_t limit,
                        struct arena *a, struct stopped_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = stopped(&s->reader, after_ended_at, after_seq, limit, a, ret);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "read what stopped in error");
}

/* ---- alerts ---- */

static int put_row(struct db *d, const struct alert_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int col = 1;

    int rc = db_query(d, SQL_ALERT_PUT, &q);
    if (rc != SQLITE_OK)
        return rc;
    ALERT_PUT_COLUMNS(BIND, )
    BIND(lift, flag)
    return query_run(q);
}

static int trim(struct db *d)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_ALERT_TRIM, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, ALERTS_KEPT);
    return query_run(q);
}

static int put(struct db *d, const struct alert_row *row, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = put_row(d, row);
    if (rc == SQLITE_OK && !row->live)
        rc = trim(d);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_alert_put(struct store *base, const struct alert_row *row, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    if (row->fence && row->fence->epoch != s->boot)
        return error_set(e, ERR_CONFLICT, "lease %.*s has another epoch",
                         SLICE_ARG(row->fence->lease));
    int rc = put(&s->writer, row, &unknown);
    if (rc == SQLITE_CONSTRAINT_UNIQUE) {
        db_rollback(&s->writer);
        return error_set(e, ERR_CONFLICT, "another alert of that group is live");
    }
    return transaction_end(s, rc, unknown, e, "store an alert");
}

static void read_row(sqlite3_stmt *q, struct arena *a, struct alert_row *ret)
{
    struct alert_row row = {0};
    int col = 0;

    READ(seq, number)
    ALERT_COLUMNS(READ, )
    *ret = row;
}

static int list(struct db *d, const struct alert_query *aq, struct arena *a, struct alert_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, aq->live ? SQL_ALERT_LIVE : SQL_ALERT_LIST, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, aq->before_seq ? aq->before_seq : INT64_MAX);
    bind_number(q, 2, (int64_t)aq->limit + 1);
    *ret = (struct alert_page){.rows = arena_alloc(a, (aq->limit + 1) * sizeof *ret->rows)};
    while ((rc = query_step(q)) == SQLITE_ROW && !ret->more) {
        ret->more = ret->count == aq->limit;
        if (!ret->more)
            read_row(q, a, &ret->rows[ret->count++]);
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_alert_list(struct store *base, const struct alert_query *q, struct arena *a,
                           struct alert_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = list(&s->reader, q, a, ret);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "list alerts");
}

/* ---- acknowledging ---- */

struct saying {
    struct slice id;
    const struct audit *audit;
    bool found, resolved, known;
};

static int look(struct db *d, struct saying *w)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_ALERT_GET, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, w->id);
    rc = query_step(q);
    w->found = rc == SQLITE_ROW;
    w->resolved = w->found && sqlite3_column_type(q, 0) != SQLITE_NULL;
    w->known = w->found && sqlite3_column_type(q, 1) != SQLITE_NULL;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_it(struct db *d, const struct saying *w)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_ALERT_ACKNOWLEDGE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, w->id);
    bind_number(q, 2, w->audit->at);
    bind_text(q, 3, w->audit->actor);
    bind_text(q, 4, w->audit->reason);
    return query_run(q);
}

static int say(struct db *d, struct saying *w, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = look(d, w);
    if (rc != SQLITE_OK || !w->found || w->resolved || w->known)
        return rc;
    rc = write_it(d, w);
    if (rc == SQLITE_OK)
        rc = audit_insert(d, w->audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_alert_acknowledge(struct store *base, struct slice id, const struct audit *audit,
                                  struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct saying w = {.id = id, .audit = audit};
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = say(&s->writer, &w, &unknown);
    if (rc == SQLITE_OK && (!w.found || w.resolved || w.known)) {
        db_rollback(&s->writer);
        if (w.found && !w.resolved)
            return ERR_OK;
        return error_set(e, w.found ? ERR_CONFLICT : ERR_NOT_FOUND, "%.*s: %s", SLICE_ARG(id),
                         w.found ? "it is resolved" : "there is no such alert");
    }
    return transaction_end(s, rc, unknown, e, "acknowledge an alert");
}
