/* Settings and breakers of agents in SQLite, and the changes after a generation, by which nodes
 * follow each other. The columns are those of rows/access.h; sqlite.c has these operations in its
 * table. */

#include "store/sqlite/columns.h"

struct writing {
    const struct agent_change *change;
    const struct audit *audit;
    bool done;
};

static int write_part(struct db *d, struct writing *w)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    const struct agent_change *c = w->change;

    int rc = db_query(d, SQL_AGENT_PUT, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, c->name);
    bind_number(q, 2, c->part == AGENT_BREAKER);
    bind_text(q, 3, c->text);
    bind_number(q, 4, c->fenced);
    bind_text(q, 5, c->was);
    rc = query_run(q);
    w->done = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

static int put(struct db *d, struct writing *w, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = write_part(d, w);
    if (rc != SQLITE_OK || !w->done)
        return rc;
    rc = audit_insert(d, w->audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_agent_put(struct store *base, const struct agent_change *c,
                          const struct audit *audit, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct writing w = {.change = c, .audit = audit};
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = put(&s->writer, &w, &unknown);
    if (rc == SQLITE_OK && !w.done) {
        db_rollback(&s->writer);
        return error_set(e, ERR_CONFLICT, "the agent \"%.*s\" was changed meanwhile",
                         SLICE_ARG(c->name));
    }
    return transaction_end(s, rc, unknown, e, "store what is said of an agent");
}

static int read_all(struct db *d, struct arena *a, struct agent_row **ret, size_t *ret_count)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    size_t count = 0;
    size_t cap = 0;

    int rc = db_query(d, SQL_AGENT_LIST, &q);
    if (rc != SQLITE_OK)
        return rc;
    while ((rc = query_step(q)) == SQLITE_ROW) {
        if (count == cap) {
            cap = cap ? cap * 2 : 16;
            struct agent_row *more = arena_alloc(a, cap * sizeof *more);
            if (count)
                memcpy(more, *ret, count * sizeof *more);
            *ret = more;
        }
        struct agent_row row = {0};
        int col = 0;
        AGENT_COLUMNS(READ, )
        (*ret)[count++] = row;
    }
    *ret_count = count;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_agent_since(struct store *base, uint64_t after, struct arena *a,
                            struct agent_row **ret, size_t *ret_count, uint64_t *ret_generation,
                            struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct agent_row *rows = NULL;
    size_t count = 0;
    (void)after; /* no other process changes any */

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = read_all(&s->reader, a, &rows, &count);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read what is said of agents");
    *ret = rows;
    *ret_count = count;
    *ret_generation = 0;
    return ERR_OK;
}
