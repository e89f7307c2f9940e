/*
 * A batch in SQLite: one transaction of changes, messages and claims. A change that SQLite refuses
 * is undone alone, by a savepoint if it has several statements. sql.c has the statements; row.c
 * binds tasks.
 */
#include "store/sqlite/body.h"

#include "store/row.h"

/* Ends the one change only; anything else ends the batch. */
static bool concerns_change_only(int rc)
{
    int kind = rc & 0xff;

    return kind == SQLITE_CONSTRAINT || kind == SQLITE_TOOBIG || kind == SQLITE_MISMATCH;
}

static int payloads_insert(struct db *d, const struct task_row *row)
{
    for (size_t i = 0; i < row->payload_count; i++) {
        CLEANUP(query_end) sqlite3_stmt *q = NULL;
        int rc = db_query(d, SQL_PAYLOAD_INSERT, &q);
        if (rc != SQLITE_OK)
            return rc;
        bind_text(q, 1, row->id);
        bind_number(q, 2, row->payloads[i].number);
        bind_text(q, 3, row->payloads[i].json);
        rc = query_run(q);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

/* One that is not there is nothing to delete. */
static int payloads_drop(struct db *d, const struct task_row *row)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < row->dropped_payload_count; i++) {
        CLEANUP(query_end) sqlite3_stmt *q = NULL;
        rc = db_query(d, SQL_PAYLOAD_DELETE, &q);
        if (rc != SQLITE_OK)
            return rc;
        bind_text(q, 1, row->id);
        bind_number(q, 2, row->dropped_payloads[i]);
        rc = query_run(q);
    }
    return rc;
}

int waits_delete(struct db *d, struct slice id)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_WAITS_DELETE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, id);
    return query_run(q);
}

static int waits_write(struct db *d, const struct change *c)
{
    int rc = c->drops_waits ? waits_delete(d, c->row.id) : SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < c->row.wait_count; i++) {
        CLEANUP(query_end) sqlite3_stmt *q = NULL;
        rc = db_query(d, SQL_WAITS_INSERT, &q);
        if (rc != SQLITE_OK)
            return rc;
        bind_text(q, 1, c->row.id);
        bind_text(q, 2, c->row.waits[i].agent);
        bind_number(q, 3, c->row.waits[i].rank);
        rc = query_run(q);
    }
    return rc;
}

static int tags_insert(struct db *d, const struct task_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_TAG_INSERT, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, row->id);
    return query_run(q);
}

static int audits_insert(struct db *d, const struct change *c)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < c->audit_count; i++)
        rc = audit_insert(d, &c->audits[i]);
    return rc;
}

static int operations_read(struct db *d, struct change *c, struct arena *a)
{
    const struct audit_query q = {.task = c->row.id, .limit = TASK_OPERATIONS_MAX};

    c->operations = (struct audit_page){0};
    return audit_read(d, &q, a, &c->operations);
}

/* Sets *ret_done to whether the row was there, at the revision on which the change was decided. */
static int run_fenced(struct db *d, sqlite3_stmt *q, bool *ret_done)
{
    int rc = query_run(q);

    *ret_done = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

/* SQLITE_NOTFOUND, which no statement gives, if it does not wait. */
static int task_submitted(struct db *d, int64_t submission)
{
    bool done = false;

    int rc = submission_delete(d, submission, &done);
    return rc == SQLITE_OK && !done ? SQLITE_NOTFOUND : rc;
}

static int task_insert(struct db *d, struct change *c, bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_INSERT, &q);
    if (rc != SQLITE_OK)
        return rc;
    row_bind(d, SQL_INSERT, &c->row);
    rc = run_fenced(d, q, ret_done);
    if (*ret_done)
        c->row.seq = sqlite3_last_insert_rowid(d->handle);
    if (*ret_done && c->submission)
        rc = task_submitted(d, c->submission);
    if (*ret_done && c->row.tags.ptr)
        rc = tags_insert(d, &c->row);
    return rc;
}

static int update_by(struct db *d, enum sql which, const struct task_row *row, bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    row_bind(d, which, row);
    return run_fenced(d, q, ret_done);
}

/* Most changes of an owned task leave state and owner as they are, and then an UPDATE that knows it
 * opens five indexes less. The row itself shows whether it is so. */
static int task_update(struct db *d, const struct change *c, bool *ret_done)
{
    enum sql stay = c->wake_moved ? SQL_UPDATE_WAKE : SQL_UPDATE;
    enum sql move = c->wake_moved ? SQL_UPDATE_MOVE_WAKE : SQL_UPDATE_MOVE;

    if (c->row.locked_by.ptr) {
        int rc = update_by(d, stay, &c->row, ret_done);
        if (rc != SQLITE_OK || *ret_done)
            return rc;
    }
    return update_by(d, move, &c->row, ret_done);
}

static int task_request(struct db *d, const struct change *c, bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, c->release ? SQL_RELEASE : SQL_REQUEST, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, c->row.id);
    bind_number(q, 2, (int64_t)c->row.revision);
    bind_text(q, 3, c->row.request);
    bind_time(q, 4, c->row.wake_at);
    if (c->release) {
        bind_text(q, 5, c->row.waiting_for);
        bind_number(q, 6, c->row.rank);
    }
    return run_fenced(d, q, ret_done);
}

/* They were there; otherwise the change is undone. */
static int notices_delete(struct db *d, const struct change *c, bool *ret_done)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && *ret_done && i < c->notice_count; i++)
        rc = notice_delete(d, c->notices[i], ret_done);
    return rc;
}

static int family_insert(struct db *d, const struct change *c)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < c->tell_count; i++)
        rc = notice_insert(d, &c->tells[i]);
    for (size_t i = 0; rc == SQLITE_OK && i < c->child_count; i++)
        rc = submission_insert(d, &c->children[i]);
    return rc;
}

static int change_run(struct db *d, struct change *c, struct arena *a, bool *ret_done)
{
    int rc = SQLITE_OK;

    *ret_done = false;
    switch (c->kind) {
    case CHANGE_INSERT:
        rc = task_insert(d, c, ret_done);
        break;
    case CHANGE_UPDATE:
        rc = task_update(d, c, ret_done);
        break;
    case CHANGE_REQUEST:
        rc = task_request(d, c, ret_done);
        break;
    }
    if (rc == SQLITE_OK && *ret_done)
        rc = notices_delete(d, c, ret_done);
    if (rc == SQLITE_OK && *ret_done)
        rc = payloads_insert(d, &c->row);
    if (rc == SQLITE_OK && *ret_done)
        rc = payloads_drop(d, &c->row);
    if (rc == SQLITE_OK && *ret_done)
        rc = items_put(d, &c->row);
    if (rc == SQLITE_OK && *ret_done)
        rc = waits_write(d, c);
    if (rc == SQLITE_OK && *ret_done)
        rc = lock_change(d, c, a);
    if (rc == SQLITE_OK && *ret_done && c->drops_overruns)
        rc = overrun_delete(d, c->row.id);
    if (rc == SQLITE_OK && *ret_done)
        rc = family_insert(d, c);
    if (rc == SQLITE_OK && *ret_done)
        rc = audits_insert(d, c);
    if (rc == SQLITE_OK && *ret_done && c->shows_operations)
        rc = operations_read(d, c, a);
    return rc;
}

static int run(struct db *d, enum sql which)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    return rc == SQLITE_OK ? query_run(q) : rc;
}

/* A change of more than one statement needs a mark to go back to. It is dear: SQLite keeps what
 * each page was before. */
static bool has_parts(const struct change *c)
{
    return c->row.payload_count > 0 || c->row.dropped_payload_count > 0 || c->row.item_count > 0
           || c->audit_count > 0 || c->submission || c->drops_waits || c->drops_overruns
           || c->row.wait_count > 0 || c->lock_move != LOCK_STAYS || row_queues(&c->row)
           || c->notice_count > 0 || c->tell_count > 0 || c->child_count > 0
           || (c->kind == CHANGE_INSERT && c->row.tags.ptr);
}

/* Fails only if the whole batch does; otherwise the outcome is set. */
static int change_apply(struct db *d, struct change *c, struct arena *a)
{
    bool done = false;

    c->lock_holder = SLICE_NONE;
    c->outcome = row_check(c);
    if (c->outcome != ERR_OK)
        return SQLITE_OK;
    int rc = has_parts(c) ? run(d, SQL_MARK) : SQLITE_OK;
    if (rc != SQLITE_OK)
        return rc;
    rc = change_run(d, c, a, &done);
    if (rc == SQLITE_OK)
        c->outcome = done ? ERR_OK : ERR_CONFLICT;
    else if (rc == SQLITE_NOTFOUND)
        c->outcome = c->lock_holder.ptr ? ERR_TAKEN : ERR_BUSY;
    else if (concerns_change_only(rc))
        c->outcome = rc_err(rc);
    else
        return rc;
    if (!has_parts(c))
        return SQLITE_OK;
    rc = c->outcome == ERR_OK ? SQLITE_OK : run(d, SQL_MARK_UNDO);
    return rc == SQLITE_OK ? run(d, SQL_MARK_END) : rc;
}

static int batch_run(struct sqlite_store *s, struct batch *b, struct arena *a)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < b->change_count; i++)
        rc = change_apply(&s->writer, &b->changes[i], a);
    /* After the changes: those that were not made have no messages, and no mark is needed. */
    if (rc == SQLITE_OK)
        rc = messages_insert(s, b, a);
    for (size_t i = 0; rc == SQLITE_OK && i < b->claim_count; i++)
        rc = sqlite_claim(s, &b->claims[i], a);
    return rc;
}

static enum err batch_commit(struct sqlite_store *s, struct batch *b, struct arena *a,
                             struct error *e)
{
    bool unknown;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    if (b->fence && b->fence->epoch != s->boot)
        return error_set(e, ERR_CONFLICT, "lease %.*s has another epoch",
                         SLICE_ARG(b->fence->lease));
    int rc = run(&s->writer, SQL_BEGIN);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "begin a transaction");
    rc = batch_run(s, b, a);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "write");
    rc = db_commit(&s->writer, &unknown);
    if (rc == SQLITE_OK)
        return store_committed(s, e);
    err = store_failed(s, rc, e, "commit");
    if (unknown)
        e->code = err = ERR_UNKNOWN;
    return err;
}

static void claims_empty(struct batch *b)
{
    for (size_t i = 0; i < b->claim_count; i++) {
        b->claims[i].rows = NULL;
        b->claims[i].row_count = 0;
        b->claims[i].more = false;
        b->claims[i].next_rank = 0;
    }
}

enum err sqlite_commit(struct store *base, struct batch *b, struct arena *a, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    claims_empty(b);
    enum err err = batch_commit(s, b, a, e);
    if (err == ERR_OK)
        return ERR_OK;
    db_rollback(&s->writer);
    claims_empty(b);
    for (size_t i = 0; i < b->change_count; i++)
        b->changes[i].outcome = err;
    return err;
}

/* As much as a batch of some tasks: on a disk that is all but full one page would still find room,
 * and the next batch would not. */
static int probe(struct db *d, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK)
        rc = db_exec(d, "INSERT INTO meta (name, value) VALUES ('probe', randomblob(65536)) "
                        "ON CONFLICT (name) DO UPDATE SET value = excluded.value");
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_probe(struct store *base, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = probe(&s->writer, &unknown);
    if (rc == SQLITE_OK)
        return store_committed(s, e);
    db_rollback(&s->writer);
    return store_failed(s, rc, e, "write");
}
