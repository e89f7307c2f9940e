/*
 * Submissions in SQLite: what applications insert, which becomes tasks or is refused. A watch on
 * the WAL reports them. The columns are those of rows/submission.h.
 */
#include "store/sqlite/columns.h"

#include <sys/inotify.h>
#include <unistd.h>

#include "base/fault.h"
#include "store/row.h"

/* Its texts are gone with the next step. */
static struct submission_row submission_at(sqlite3_stmt *q)
{
    struct submission_row row = {0};
    int col = 0;

#define BORROW_any(field) BORROW_text(field)
    BORROW(seq, number)
    BORROW(source, text)
    SUBMISSION_COLUMNS(BORROW, )
    return row;
}

/* At most `limit`; whether there are more. */
static int rows_of(sqlite3_stmt *q, struct arena *a, size_t limit, struct submission_page *ret)
{
    int rc = SQLITE_OK;

    *ret = (struct submission_page){.rows = arena_alloc(a, (limit + 1) * sizeof *ret->rows)};
    while ((rc = query_step(q)) == SQLITE_ROW) {
        ret->more = ret->count == limit;
        if (ret->more)
            return SQLITE_OK;
        const struct submission_row row = submission_at(q);
        ret->rows[ret->count++] = submission_copy(a, &row);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Those that are due, until there are enough; the row after these is not copied. Most of the time
 * there is none: then no room is taken for any. */
static int take_rows(sqlite3_stmt *q, struct submission_take *t, struct arena *a)
{
    size_t bytes = 0;
    int rc = SQLITE_OK;

    t->rows = NULL;
    t->count = 0;
    t->more = false;
    while ((rc = query_step(q)) == SQLITE_ROW) {
        struct submission_row row = submission_at(q);
        t->more = t->count == t->limit || !submission_fits(t, &row, &bytes);
        if (t->more)
            return SQLITE_OK;
        if (!t->rows)
            t->rows = arena_alloc(a, (t->limit + 1) * sizeof *t->rows);
        t->rows[t->count++] = submission_copy(a, &row);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int notices_any(struct db *d, struct submission_take *t)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_NOTICE_ANY, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, SUBMISSIONS_COUNTED);
    rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc;
    t->notices = sqlite3_column_int(q, 0);
    t->signals_refused = (uint64_t)sqlite3_column_int64(q, 1);
    return SQLITE_OK;
}

static int take(struct db *d, struct submission_take *t, struct arena *a)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    CLEANUP(query_end) sqlite3_stmt *count = NULL;

    int rc = db_query(d, SQL_SUBMISSION_TAKE, &q);
    if (rc == SQLITE_OK)
        rc = db_query(d, SQL_SUBMISSION_COUNT, &count);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, (int64_t)t->limit + 1);
    rc = take_rows(q, t, a);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(count, 1, SUBMISSIONS_COUNTED);
    rc = query_step(count);
    if (rc != SQLITE_ROW)
        return rc;
    t->refused = (uint64_t)sqlite3_column_int64(count, 0);
    return notices_any(d, t);
}

enum err sqlite_submissions_take(struct store *base, struct submission_take *t, struct arena *a,
                                 struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    /* A write to the WAL by another process wakes us, but is invisible until it is synced; only the
     * lock, which is released after that, shows it. So the lock is checked first. */
    t->unsettled = others_write(s);
    int rc = store_look_for_others(s);
    if (rc == SQLITE_OK)
        rc = take(&s->reader, t, a);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "read submissions");
}

/* ---- writing ---- */

int submission_delete(struct db *d, int64_t seq, bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_SUBMISSION_DELETE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, seq);
    rc = query_run(q);
    *ret_done = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

static int refuse(struct db *d, const struct submission_verdict *v)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_SUBMISSION_REFUSE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, v->seq);
    bind_number(q, 2, v->refused_at);
    bind_text(q, 3, v->reason);
    return query_run(q);
}

static int settle(struct db *d, const struct submission_verdict *list, size_t count,
                  bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");
    bool done;

    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = list[i].refused_at ? refuse(d, &list[i]) : submission_delete(d, list[i].seq, &done);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_submissions_settle(struct store *base, const struct submission_verdict *list,
                                   size_t count, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = settle(&s->writer, list, count, &unknown);
    return transaction_end(s, rc, unknown, e, "settle submissions");
}

int submission_insert(struct db *d, const struct submission_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int col = 1;

    int rc = db_query(d, SQL_SUBMISSION_INSERT, &q);
    if (rc != SQLITE_OK)
        return rc;
#define BIND_any(v) BIND_text(v)
    BIND(source, text)
    BIND(key, text)
    SUBMISSION_COLUMNS(BIND, )
    return query_run(q);
}

static int put(struct db *d, const struct submission_row *rows, size_t count, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = submission_insert(d, &rows[i]);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_submissions_put(struct store *base, const struct submission_row *rows, size_t count,
                                struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = put(&s->writer, rows, count, &unknown);
    return transaction_end(s, rc, unknown, e, "store submissions");
}

static enum sql list_of(const struct submission_query *query)
{
    if (!query->refused)
        return SQL_SUBMISSION_WAITING;
    return query->brief ? SQL_SUBMISSION_REFUSED_BRIEF : SQL_SUBMISSION_REFUSED;
}

static int list(struct db *d, const struct submission_query *query, struct arena *a,
                struct submission_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, list_of(query), &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, query->before_seq ? query->before_seq : INT64_MAX);
    bind_number(q, 2, (int64_t)query->limit + 1);
    bind_text(q, 3, query->source);
    return rows_of(q, a, query->limit, ret);
}

enum err sqlite_submissions_list(struct store *base, const struct submission_query *q,
                                 struct arena *a, struct submission_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = list(&s->reader, q, a, ret);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "list submissions");
}

static int verb_run(struct db *d, struct submission_verb *v)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, v->drop ? SQL_SUBMISSION_DROP : SQL_SUBMISSION_RETRY, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, v->seq);
    bind_text(q, 2, v->source);
    bind_number(q, 3, v->up_to_seq ? v->up_to_seq : INT64_MAX);
    bind_number(q, 4, SUBMISSION_VERB_MAX);
    rc = query_run(q);
    v->count = rc == SQLITE_OK ? (uint64_t)sqlite3_changes(d->handle) : 0;
    v->more = v->count == SUBMISSION_VERB_MAX;
    return rc;
}

static int verb(struct db *d, struct submission_verb *v, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = verb_run(d, v);
    if (rc == SQLITE_OK && v->count > 0)
        rc = audit_insert(d, v->audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_submissions_verb(struct store *base, struct submission_verb *v, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = verb(&s->writer, v, &unknown);
    err = transaction_end(s, rc, unknown, e, "change submissions");
    if (err == ERR_OK && v->seq && v->count == 0)
        return error_set(e, ERR_NOT_FOUND, "there is no refused submission %" PRId64, v->seq);
    return err;
}

/* ---- notifications ---- */

/* Every transaction is written to the WAL, which stays as long as we have it open. Our own writes
 * are reported as well; a look shows at once that they were ours. The folder is not watched,
 * because each page that goes from the WAL to the file would be reported, too. */
static bool watch_wal(const struct sqlite_store *s)
{
    return !outside_fails() && inotify_add_watch(s->watch_fd, s->wal_path, IN_MODIFY) >= 0;
}

void sqlite_watch_again(struct sqlite_store *s)
{
    if (s->watch_fd >= 0)
        (void)watch_wal(s); /* it is only a hint */
}

int sqlite_watch(struct store *base)
{
    struct sqlite_store *s = sqlite_store_of(base);

    if (s->watch_fd >= 0)
        return s->watch_fd;
    s->watch_fd = outside_fails() ? -1 : inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (s->watch_fd >= 0 && !watch_wal(s) && !s->broken) { /* else when it is opened again */
        (void)close(s->watch_fd);
        s->watch_fd = -1;
    }
    return s->watch_fd;
}
