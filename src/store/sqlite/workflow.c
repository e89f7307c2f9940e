/*
 * Definitions of workflows in SQLite, with what is known of their inputs. The columns are those of
 * rows/workflow.h.
 */
#include "store/sqlite/columns.h"

#include "store/row.h"

struct put {
    struct slice name, text;
    const struct audit *audit;
    int64_t now, version;
    bool is_new;
};

static int newest(struct db *d, struct put *p)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_WORKFLOW_NEWEST, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, p->name);
    rc = query_step(q);
    p->version = rc == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
    p->is_new = rc != SQLITE_ROW || !slice_eq(query_text(q, 1), p->text);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int insert(struct db *d, const struct put *p)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_WORKFLOW_INSERT, &q);
    if (rc != SQLITE_OK)
        return rc;
    const struct workflow_row of_put = {.name = p->name,
                                        .version = p->version,
                                        .text = p->text,
                                        .created_at = p->now};
    const struct workflow_row *row = &of_put;
    int col = 1;
    WORKFLOW_COLUMNS(BIND, )
    return query_run(q);
}

static int put_audit(struct db *d, const struct put *p)
{
    CLEANUP(arena_fini) struct arena a = {0};

    if (!p->audit)
        return SQLITE_OK;
    struct audit audit = *p->audit;
    audit.reason = audit_workflow_reason(&a, p->name, p->version);
    return audit_insert(d, &audit);
}

static int put(struct db *d, struct put *p, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = newest(d, p);
    if (rc == SQLITE_OK && p->is_new) {
        p->version++;
        rc = insert(d, p);
        if (rc == SQLITE_OK)
            rc = put_audit(d, p);
    }
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_workflow_put(struct store *base, struct slice name, struct slice text, int64_t now,
                             const struct audit *audit, int64_t *ret_version, bool *ret_new,
                             struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct put p = {.name = name, .text = text, .audit = audit, .now = now};
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = put(&s->writer, &p, &unknown);
    if (rc != SQLITE_OK) {
        db_rollback(&s->writer);
        err = store_failed(s, rc, e, "store a workflow");
        if (unknown)
            e->code = err = ERR_UNKNOWN;
        return err;
    }
    err = store_committed(s, e);
    if (err != ERR_OK)
        return err;
    *ret_version = p.version;
    *ret_new = p.is_new;
    return ERR_OK;
}

static int describe(struct db *d, const struct workflow_inputs *w)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_WORKFLOW_DESCRIBE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, w->name);
    bind_number(q, 2, w->version);
    bind_text(q, 3, w->inputs);
    return query_run(q);
}

static int describe_all(struct db *d, const struct workflow_inputs *list, size_t count,
                        bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = describe(d, &list[i]);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_workflow_describe(struct store *base, const struct workflow_inputs *list,
                                  size_t count, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = describe_all(&s->writer, list, count, &unknown);
    return transaction_end(s, rc, unknown, e, "describe workflows");
}

static void workflow_read(sqlite3_stmt *q, struct arena *a, struct workflow_row *ret)
{
    struct workflow_row row = {0};
    int col = 0;

    WORKFLOW_COLUMNS(READ, )
    READ(described, flag)
    *ret = row;
}

static int get(struct db *d, struct slice name, int64_t version, struct arena *a,
               struct workflow_row *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_WORKFLOW_GET, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, name);
    bind_number(q, 2, version);
    rc = query_step(q);
    if (rc == SQLITE_ROW)
        workflow_read(q, a, ret);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_workflow_get(struct store *base, struct slice name, int64_t version,
                             struct arena *a, struct workflow_row *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct workflow_row row = {0};

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = get(&s->reader, name, version, a, &row);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read a workflow");
    if (!row.name.ptr)
        return error_set(e, ERR_NOT_FOUND, "there is no workflow %.*s%s", SLICE_ARG(name),
                         version ? " of that version" : "");
    *ret = row;
    return ERR_OK;
}

static int list(struct db *d, struct arena *a, struct workflow_row **ret, size_t *ret_count)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    struct workflow_row *rows = NULL;
    size_t count = 0;
    size_t cap = 0;

    int rc = db_query(d, SQL_WORKFLOW_LIST, &q);
    if (rc != SQLITE_OK)
        return rc;
    while ((rc = query_step(q)) == SQLITE_ROW) {
        if (count == cap) {
            cap = cap ? cap * 2 : 16;
            struct workflow_row *more = arena_alloc(a, cap * sizeof *more);
            if (count)
                memcpy(more, rows, count * sizeof *more);
            rows = more;
        }
        workflow_read(q, a, &rows[count++]);
    }
    *ret = rows;
    *ret_count = count;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_workflow_list(struct store *base, struct arena *a, struct workflow_row **ret,
                              size_t *ret_count, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct workflow_row *rows = NULL;
    size_t count = 0;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = list(&s->reader, a, &rows, &count);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "list workflows");
    *ret = rows;
    *ret_count = count;
    return ERR_OK;
}
