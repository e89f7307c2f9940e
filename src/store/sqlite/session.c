/*
 * Sessions of the console in SQLite. Each change deletes what has expired, so that the table stays
 * small without anybody who cleans it.
 */
#include "store/sqlite/columns.h"

/* What has expired, and the oldest ones of its token beyond those that it may have beside it. */
static int make_room(struct db *d, const struct session_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_SESSION_SWEEP, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, row->created_at);
    bind_hash(q, 2, row->token_hash);
    bind_number(q, 3, row->is_code);
    bind_number(q, 4, SESSIONS_OF_TOKEN - 1);
    return query_run(q);
}

static int insert(struct db *d, const struct session_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int col = 1;

    int rc = db_query(d, SQL_SESSION_INSERT, &q);
    if (rc != SQLITE_OK)
        return rc;
    SESSION_COLUMNS(BIND, )
    return query_run(q);
}

/* What has expired is deleted already. */
static int use_code(struct db *d, const unsigned char code[TOKEN_HASH_SIZE], bool *ret_found)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_SESSION_CODE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_hash(q, 1, code);
    rc = query_run(q);
    *ret_found = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

static int put(struct db *d, const struct session_row *row, const unsigned char *code,
               const struct audit *audit, bool *ret_found, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = make_room(d, row);
    if (rc == SQLITE_OK && code)
        rc = use_code(d, code, ret_found);
    if (rc != SQLITE_OK || (code && !*ret_found))
        return rc;
    rc = insert(d, row);
    if (rc == SQLITE_OK)
        rc = audit_insert(d, audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_session_put(struct store *base, const struct session_row *row,
                            const unsigned char *code, const struct audit *audit, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;
    bool found = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = put(&s->writer, row, code, audit, &found, &unknown);
    if (rc == SQLITE_OK && code && !found) {
        db_rollback(&s->writer);
        return error_set(e, ERR_NOT_FOUND, "there is no such code");
    }
    return transaction_end(s, rc, unknown, e, "store a session");
}

static int take_away(struct db *d, struct slice id, const struct audit *audit, bool *ret_found,
                     bool *ret_unknown)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = db_query(d, SQL_SESSION_DELETE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, id);
    rc = query_run(q);
    *ret_found = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    if (rc != SQLITE_OK || !*ret_found)
        return rc;
    rc = audit_insert(d, audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_session_delete(struct store *base, struct slice id, const struct audit *audit,
                               struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;
    bool found = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = take_away(&s->writer, id, audit, &found, &unknown);
    if (rc == SQLITE_OK && !found) {
        db_rollback(&s->writer);
        return error_set(e, ERR_NOT_FOUND, "there is no session \"%.*s\"", SLICE_ARG(id));
    }
    return transaction_end(s, rc, unknown, e, "delete a session");
}

static int read_all(struct db *d, struct arena *a, struct session_row **ret, size_t *ret_count)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    size_t cap = 0;

    int rc = db_query(d, SQL_SESSION_LIST, &q);
    if (rc != SQLITE_OK)
        return rc;
    while ((rc = query_step(q)) == SQLITE_ROW) {
        struct session_row row = {0};
        int col = 0;
        if (*ret_count == cap) {
            cap = cap ? cap * 2 : 16;
            struct session_row *more = arena_alloc(a, cap * sizeof *more);
            if (*ret_count)
                memcpy(more, *ret, *ret_count * sizeof *more);
            *ret = more;
        }
        SESSION_COLUMNS(READ, )
        (*ret)[(*ret_count)++] = row;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_session_list(struct store *base, struct arena *a, struct session_row **ret,
                             size_t *ret_count, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct session_row *rows = NULL;
    size_t count = 0;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = read_all(&s->reader, a, &rows, &count);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "list sessions");
    *ret = rows;
    *ret_count = count;
    return ERR_OK;
}
