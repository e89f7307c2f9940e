/*
 * Tokens and the audit in SQLite. Whoever writes another row together with an audit entry calls
 * audit_insert() in its own transaction, which transaction_end() ends.
 */
#include "store/sqlite/columns.h"

int audit_insert(struct db *d, const struct audit *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int col = 1;

    if (!row)
        return SQLITE_OK;
    int rc = db_query(d, SQL_AUDIT_INSERT, &q);
    if (rc != SQLITE_OK)
        return rc;
    AUDIT_COLUMNS(BIND, )
    return query_run(q);
}

/* ---- tokens ---- */

void bind_hash(sqlite3_stmt *q, int at, const unsigned char hash[TOKEN_HASH_SIZE])
{
    int rc = sqlite3_bind_blob(q, at, hash, TOKEN_HASH_SIZE, SQLITE_STATIC);

    ASSERT(rc == SQLITE_OK); /* as in bind_text */
}

/* Binds the columns and the name. Returns the number of the next parameter. */
static int bind_token(sqlite3_stmt *q, const struct token_row *row)
{
    int col = 1;

#define BIND_previous(v)          \
    if (row->previous_until != 0) \
        bind_hash(q, col++, v);   \
    else                          \
        bind_text(q, col++, SLICE_NONE); /* not what the statement was bound to before */
    TOKEN_COLUMNS(BIND, )
    BIND(name, text)
    return col;
}

static int token_insert(struct db *d, const struct token_row *t)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_TOKEN_INSERT, &q);
    if (rc != SQLITE_OK)
        return rc;
    (void)bind_token(q, t); /* it has no other parameters */
    return query_run(q);
}

static int token_update(struct db *d, const struct token_row *t,
                        const unsigned char was[TOKEN_HASH_SIZE], bool *ret_found)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_TOKEN_CHANGE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_hash(q, bind_token(q, t), was);
    rc = query_run(q);
    *ret_found = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

static int token_remove(struct db *d, struct slice name, bool *ret_found)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_TOKEN_DELETE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, name);
    rc = query_run(q);
    *ret_found = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

static int token_is_last_admin(struct db *d, struct slice name, int64_t now, bool *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_TOKEN_LAST_ADMIN, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, name);
    bind_number(q, 2, now);
    rc = query_step(q);
    *ret = rc == SQLITE_ROW;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int put(struct db *d, const struct token_row *t, bool replace, const struct audit *audit,
               bool *ret_unknown)
{
    bool found = false;
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK && replace)
        rc = token_remove(d, t->name, &found);
    MAYBE(found);
    if (rc == SQLITE_OK)
        rc = token_insert(d, t);
    if (rc == SQLITE_OK)
        rc = audit_insert(d, audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err transaction_end(struct sqlite_store *s, int rc, bool unknown, struct error *e,
                         const char *what)
{
    if (rc == SQLITE_OK)
        return store_committed(s, e);
    db_rollback(&s->writer);
    enum err err = store_failed(s, rc, e, what);
    if (unknown)
        e->code = err = ERR_UNKNOWN;
    return err;
}

enum err sqlite_token_put(struct store *base, const struct token_row *t, bool replace,
                          const struct audit *audit, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = put(&s->writer, t, replace, audit, &unknown);
    if (rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_UNIQUE) {
        db_rollback(&s->writer);
        return error_set(e, ERR_CONFLICT, "there is a token \"%.*s\"", SLICE_ARG(t->name));
    }
    return transaction_end(s, rc, unknown, e, "store a token");
}

static int change(struct db *d, const struct token_row *t, const unsigned char was[TOKEN_HASH_SIZE],
                  const struct audit *audit, bool *ret_found, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = token_update(d, t, was, ret_found);
    if (rc != SQLITE_OK || !*ret_found)
        return rc;
    rc = audit_insert(d, audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_token_change(struct store *base, const struct token_row *t,
                             const unsigned char was[TOKEN_HASH_SIZE], const struct audit *audit,
                             struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;
    bool found = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = change(&s->writer, t, was, audit, &found, &unknown);
    if (rc == SQLITE_OK && !found) {
        db_rollback(&s->writer);
        return error_set(e, ERR_NOT_FOUND, "there is no such token \"%.*s\"", SLICE_ARG(t->name));
    }
    return transaction_end(s, rc, unknown, e, "change a token");
}

struct removal {
    struct slice name;
    int64_t now;
    const struct audit *audit;
    bool found, last;
};

static int take_away(struct db *d, struct removal *r, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = token_is_last_admin(d, r->name, r->now, &r->last);
    if (rc != SQLITE_OK || r->last)
        return rc;
    rc = token_remove(d, r->name, &r->found);
    if (rc != SQLITE_OK || !r->found)
        return rc;
    rc = audit_insert(d, r->audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_token_delete(struct store *base, struct slice name, int64_t now,
                             const struct audit *audit, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct removal r = {.name = name, .now = now, .audit = audit};
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = take_away(&s->writer, &r, &unknown);
    if (rc == SQLITE_OK && (r.last || !r.found))
        db_rollback(&s->writer);
    if (rc == SQLITE_OK && r.last)
        return error_set(e, ERR_CONFLICT, "\"%.*s\" is the last admin's token", SLICE_ARG(name));
    if (rc == SQLITE_OK && !r.found)
        return error_set(e, ERR_NOT_FOUND, "there is no token \"%.*s\"", SLICE_ARG(name));
    return transaction_end(s, rc, unknown, e, "delete a token");
}

bool query_hash(sqlite3_stmt *q, int col, unsigned char ret[TOKEN_HASH_SIZE])
{
    if (sqlite3_column_bytes(q, col) != TOKEN_HASH_SIZE)
        return false;
    memcpy(ret, sqlite3_column_blob(q, col), TOKEN_HASH_SIZE);
    return true;
}

/* A row that was tampered with admits no client: no token has its hash. */
static void token_read(sqlite3_stmt *q, struct arena *a, struct token_row *ret)
{
    struct token_row row = {0};
    bool rotated = false;
    int col = 0;

#define READ_previous(field) rotated = query_hash(q, col++, field);
    TOKEN_COLUMNS(READ, )
    READ(name, text)
    if (!rotated)
        row.previous_until = 0;
    *ret = row;
}

static int tokens_read(struct db *d, struct arena *a, struct token_row **ret, size_t *ret_count)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    size_t count = 0;
    size_t cap = 0;

    int rc = db_query(d, SQL_TOKEN_LIST, &q);
    if (rc != SQLITE_OK)
        return rc;
    while ((rc = query_step(q)) == SQLITE_ROW) {
        if (count == cap) {
            cap = cap ? cap * 2 : 16;
            struct token_row *more = arena_alloc(a, cap * sizeof *more);
            if (count)
                memcpy(more, *ret, count * sizeof *more);
            *ret = more;
        }
        token_read(q, a, &(*ret)[count++]);
    }
    *ret_count = count;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_token_list(struct store *base, struct arena *a, struct token_row **ret,
                           size_t *ret_count, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct token_row *rows = NULL;
    size_t count = 0;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = tokens_read(&s->reader, a, &rows, &count);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "list tokens");
    *ret = rows;
    *ret_count = count;
    return ERR_OK;
}

/* ---- the audit ---- */

/* Most tasks have none or few: the list grows with what there is. */
static void page_grow(struct arena *a, struct audit_page *p, size_t *cap, size_t limit)
{
    size_t more = *cap ? 4 * *cap : 4;

    if (more > limit)
        more = limit;
    struct audit *entries = arena_alloc(a, more * sizeof *entries);
    int64_t *seqs = arena_alloc(a, more * sizeof *seqs);

    if (p->count > 0) {
        memcpy(entries, p->entries, p->count * sizeof *entries);
        memcpy(seqs, p->seqs, p->count * sizeof *seqs);
    }
    p->entries = entries;
    p->seqs = seqs;
    *cap = more;
}

int audit_read(struct db *d, const struct audit_query *aq, struct arena *a, struct audit_page *p)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    size_t cap = 0;
    int rc = db_query(d, aq->task.ptr ? SQL_AUDIT_TASK : SQL_AUDIT_LIST, &q);

    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, aq->before_seq ? aq->before_seq : INT64_MAX);
    bind_number(q, 2, (int64_t)aq->limit + 1);
    if (aq->task.ptr)
        bind_text(q, 3, aq->task);
    while ((rc = query_step(q)) == SQLITE_ROW) {
        p->more = p->count == aq->limit;
        if (p->more)
            return SQLITE_OK;
        if (p->count == cap)
            page_grow(a, p, &cap, aq->limit);
        struct audit row = {0};
        int col = 1;
        AUDIT_COLUMNS(READ, )
        p->seqs[p->count] = sqlite3_column_int64(q, 0);
        p->entries[p->count++] = row;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_audit_list(struct store *base, const struct audit_query *q, struct arena *a,
                           struct audit_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct audit_page page = {0};

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = audit_read(&s->reader, q, a, &page);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read the audit");
    *ret = page;
    return ERR_OK;
}

enum err sqlite_audit_put(struct store *base, const struct audit *audit, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = db_exec(&s->writer, "BEGIN IMMEDIATE");
    if (rc == SQLITE_OK)
        rc = audit_insert(&s->writer, audit);
    if (rc == SQLITE_OK)
        rc = db_commit(&s->writer, &unknown);
    return transaction_end(s, rc, unknown, e, "write an entry of the audit");
}
