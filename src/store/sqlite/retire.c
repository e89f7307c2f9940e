/*
 * Deletes tasks that ended long ago, some per transaction. They are found first and deleted later,
 * so that no statement walks over rows that it deletes, and so that they can be archived in
 * between. Pages that become free are used again, or given back (shrink.c).
 *
 * The newest row stays: SQLite would give its number to the next task, and cursors contain numbers.
 */
#include "store/sqlite/body.h"

#include "base/clock.h"
#include "store/row.h"

/* ---- looking ---- */

static int newest(struct db *d, int64_t *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_NEWEST, &q);
    if (rc == SQLITE_OK)
        rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc;
    *ret = sqlite3_column_int64(q, 0);
    return SQLITE_OK;
}

/* SIZE_MAX: it stays, or is an orphan, which needs no rule. */
static bool may_go(const struct retire_look *r, const struct retire_seen *t, size_t *ret_rule)
{
    *ret_rule = r->orphans ? SIZE_MAX : retire_rule_of(r, t);
    return r->orphans ? retire_orphan_goes(t) : *ret_rule != SIZE_MAX;
}

/* It is unknown how an unreadable row ended. */
static bool look_at(struct retire_look *r, sqlite3_stmt *q, int64_t last, struct arena *a)
{
    struct retire_seen t = {.seq = sqlite3_column_int64(q, 0),
                            .workflow = query_text(q, 7),
                            .ended_at = sqlite3_column_int64(q, 2),
                            .closed_at = sqlite3_column_int64(q, 8),
                            .child = sqlite3_column_int(q, 11) != 0,
                            .locked = sqlite3_column_int(q, 4) != 0,
                            .untold = sqlite3_column_int(q, 9) != 0,
                            .fresh_at = sqlite3_column_int64(q, 10)};
    struct slice root = r->orphans ? arena_copy(a, query_text(q, 12)) : SLICE_NONE;
    size_t rule = SIZE_MAX;

    r->after_seq = t.seq;
    r->after_root = root;
    if (task_state_parse(query_text(q, 1), &t.state) && t.seq != last && may_go(r, &t, &rule))
        r->found[r->found_count++] =
            (struct retired){.seq = t.seq,
                             .revision = (uint64_t)sqlite3_column_int64(q, 5),
                             .id = arena_copy(a, query_text(q, 6)),
                             .workflow = arena_copy(a, t.workflow),
                             .state = t.state,
                             .rule = rule,
                             .root = root,
                             .archive = r->orphans && sqlite3_column_int(q, 13) != 0};
    return !r->orphans && retire_is_past(r, t.seq, sqlite3_column_int64(q, 3));
}

static enum sql look_by(const struct retire_look *r)
{
    if (r->orphans)
        return SQL_RETIRE_SCAN_ORPHANS;
    return r->workflow.ptr ? SQL_RETIRE_SCAN_WORKFLOW : SQL_RETIRE_SCAN;
}

static int look(struct db *d, struct retire_look *r, struct arena *a)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int64_t last = 0;
    size_t looked = 0;
    bool past = false;

    int rc = newest(d, &last);
    if (rc == SQLITE_OK)
        rc = db_query(d, look_by(r), &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, r->after_seq);
    bind_number(q, 2, (int64_t)r->scan_max);
    if (r->orphans || r->workflow.ptr)
        bind_text(q, 3, r->orphans ? r->after_root : r->workflow);
    while (!past && (rc = query_step(q)) == SQLITE_ROW) {
        past = look_at(r, q, last, a);
        looked++;
    }
    r->more = looked == r->scan_max && !past;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_retire_look(struct store *base, struct retire_look *r, struct arena *a,
                            struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct retire_look work = *r;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    work.found = arena_alloc(a, (r->scan_max + 1) * sizeof *work.found);
    work.found_count = 0;
    int rc = look(&s->reader, &work, a);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "look for what is to be deleted");
    *r = work;
    return ERR_OK;
}

/* ---- deleting ---- */

static int run(struct db *d, enum sql which, int64_t seq)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, seq);
    return query_run(q);
}

static int reserve(struct db *d, int64_t seq, int64_t until)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = until == 0 ? SQLITE_OK : db_query(d, SQL_RESERVE, &q);
    if (rc != SQLITE_OK || until == 0)
        return rc;
    bind_number(q, 1, seq);
    bind_number(q, 2, until);
    return query_run(q);
}

/* The children of a root stay for now. */
static int orphan(struct db *d, int64_t seq, const struct retire *r)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_ORPHANED, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, seq);
    bind_number(q, 2, r->reserve_until);
    bind_number(q, 3, r->archived);
    return query_run(q);
}

/* What goes with a task that was found. */
struct still {
    bool there; /* it is as it was */
    bool tagged, child, has_children;
};

static int look_again(struct db *d, const struct retired *t, struct still *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_RETIRE_STILL, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, t->seq);
    bind_number(q, 2, (int64_t)t->revision);
    rc = query_step(q);
    *ret = (struct still){.there = rc == SQLITE_ROW};
    if (ret->there) {
        ret->tagged = !sqlite3_column_int(q, 0);
        ret->child = sqlite3_column_int(q, 1);
        ret->has_children = sqlite3_column_int(q, 2);
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int delete_one(struct db *d, const struct retired *t, const struct retire *r, bool *ret_gone)
{
    struct still s;

    int rc = look_again(d, t, &s);
    *ret_gone = rc == SQLITE_OK && s.there;
    if (!*ret_gone)
        return rc;
    if (s.has_children)
        rc = orphan(d, t->seq, r);
    if (rc == SQLITE_OK && !s.child)
        rc = reserve(d, t->seq, s.has_children ? RESERVED_FOR_CHILDREN : r->reserve_until);
    if (rc == SQLITE_OK && s.tagged)
        rc = run(d, SQL_TAGS_DELETE, t->seq);
    if (rc == SQLITE_OK)
        rc = run(d, SQL_PAYLOADS_DELETE, t->seq);
    if (rc == SQLITE_OK)
        rc = run(d, SQL_ITEMS_DELETE, t->seq);
    return rc == SQLITE_OK ? run(d, SQL_TASK_DELETE, t->seq) : rc;
}

/* One at least, however long that takes. */
static int delete_found(struct db *d, const struct retire *r, bool *gone, size_t *ret_dealt_with)
{
    int64_t until = clock_steady_us() + r->budget_us;
    int rc = db_exec(d, "BEGIN IMMEDIATE");
    bool any = false;
    size_t i = 0;

    for (; rc == SQLITE_OK && i < r->task_count
           && (i == 0 || r->budget_us == 0 || clock_steady_us() < until);
         i++) {
        rc = delete_one(d, &r->tasks[i], r, &gone[i]);
        any |= gone[i];
    }
    *ret_dealt_with = i;
    return rc == SQLITE_OK && any ? audit_insert(d, r->audit) : rc;
}

enum err sqlite_retire(struct store *base, struct retire *r, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct sqlite_store *s = sqlite_store_of(base);
    bool *gone = arena_alloc(&a, r->task_count + 1);
    size_t dealt_with = 0;
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = delete_found(&s->writer, r, gone, &dealt_with);
    if (rc == SQLITE_OK)
        rc = db_commit(&s->writer, &unknown);
    err = transaction_end(s, rc, unknown, e, "delete tasks");
    if (err != ERR_OK)
        return err;
    memcpy(r->gone, gone, dealt_with * sizeof *gone);
    r->dealt_with = dealt_with;
    return ERR_OK;
}

/* ---- ids that are kept ---- */

static int reserved(struct db *d, struct slice id, struct arena *a, struct reservation *ret,
                    bool *ret_found)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_RESERVED, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, id);
    rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    *ret_found = task_state_parse(query_text(q, 3), &ret->state);
    ret->content =
        (struct content){content_parse(query_text(q, 0)), arena_copy(a, query_text(q, 6))};
    ret->workflow = arena_copy(a, query_text(q, 1));
    ret->version = sqlite3_column_int64(q, 2);
    ret->ended_at = sqlite3_column_int64(q, 4);
    ret->until = sqlite3_column_int64(q, 5);
    ret->owner = arena_copy(a, query_text(q, 7));
    return SQLITE_OK;
}

enum err sqlite_reserved(struct store *base, struct slice id, struct arena *a,
                         struct reservation *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct reservation work = {0};
    bool found = false;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = reserved(&s->reader, id, a, &work, &found);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read what is known of a deleted task");
    if (!found)
        return error_set(e, ERR_NOT_FOUND, "there was no task %.*s", SLICE_ARG(id));
    *ret = work;
    return ERR_OK;
}

/* Roots whose last child is gone expire as others; *ret_count: how many. */
static int free_roots(struct db *d, enum sql which, size_t limit, size_t *ret_count)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, (int64_t)limit);
    rc = query_run(q);
    *ret_count = rc == SQLITE_OK ? (size_t)sqlite3_changes(d->handle) : 0;
    return rc;
}

static int sweep_expired(struct db *d, int64_t now, size_t limit, size_t *ret_count)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_RESERVED_SWEEP, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, now);
    bind_number(q, 2, (int64_t)limit);
    rc = query_run(q);
    *ret_count = rc == SQLITE_OK ? (size_t)sqlite3_changes(d->handle) : 0;
    return rc;
}

static int sweep(struct db *d, int64_t now, size_t limit, size_t *ret_count)
{
    size_t freed = 0;
    size_t expired = 0;

    int rc = free_roots(d, SQL_ORPHANED_FREE, limit, &freed);
    if (rc == SQLITE_OK)
        rc = free_roots(d, SQL_ORPHANED_END, limit, &freed);
    if (rc == SQLITE_OK)
        rc = sweep_expired(d, now, limit, &expired);
    *ret_count = freed > expired ? freed : expired;
    return rc;
}

enum err sqlite_reserved_sweep(struct store *base, int64_t now, size_t limit, size_t *ret_count,
                               struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    size_t count = 0;
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = db_exec(&s->writer, "BEGIN IMMEDIATE");
    if (rc == SQLITE_OK)
        rc = sweep(&s->writer, now, limit, &count);
    if (rc == SQLITE_OK)
        rc = db_commit(&s->writer, &unknown);
    err = transaction_end(s, rc, unknown, e, "forget ids of deleted tasks");
    if (err == ERR_OK)
        *ret_count = count;
    return err;
}
