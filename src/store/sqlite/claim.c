/*
 * The claims of a batch: finds tasks by the indexes of claims and owners, and takes them. commit.c
 * runs them behind the changes of the batch.
 */
#include "store/sqlite/body.h"

#include "store/row.h"

static bool is_in(const struct rows *list, int64_t seq)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->rows[i].seq == seq)
            return true;
    return false;
}

/* Takes what `q` finds, up to the limit; the row after it is only looked at. */
static int claim_read(struct claim *c, sqlite3_stmt *q, struct arena *a, struct rows *list)
{
    size_t seen = 0; /* waits: what the statement is limited to, and a task may have two of them */
    int rc;

    while ((rc = query_step(q)) == SQLITE_ROW) {
        seen++;
        int64_t rank = sqlite3_column_int64(q, c->among ? TASK_COLUMN_COUNT : task_column_rank);
        if (c->among && is_in(list, sqlite3_column_int64(q, task_column_seq)))
            continue; /* it has two waits in the range */
        bool due = c->kind != CLAIM_TIME || rank <= c->now;
        if (list->count == c->limit || !due) {
            c->more = due;
            c->next_rank = c->kind == CLAIM_TIME ? rank : 0;
            return SQLITE_OK;
        }
        rc = row_read(q, a, rows_add(list, a));
        if (rc != SQLITE_OK)
            return rc;
    }
    c->more |= rc == SQLITE_DONE && c->among && seen > c->limit;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int claim_waiting(struct db *d, struct claim *c, struct arena *a, struct rows *list)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, c->among ? SQL_CLAIM_AMONG : SQL_CLAIM_WAITING, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, c->agent);
    bind_number(q, 2, (int64_t)c->limit + 1);
    bind_number(q, 3, c->rank_from ? c->rank_from : INT64_MIN);
    bind_number(q, 4, c->rank_before ? c->rank_before : INT64_MAX);
    return claim_read(c, q, a, list);
}

static int claim_owned(struct db *d, struct claim *c, struct slice from, struct slice to,
                       struct arena *a, struct rows *list)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_CLAIM_OWNED, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, from);
    bind_text(q, 2, to);
    bind_number(q, 3, (int64_t)owner_node(c->locked_by).len + 1);
    bind_number(q, 4, (int64_t)owner_boot(c->locked_by));
    bind_number(q, 5, (int64_t)(c->limit - list->count) + 1);
    return claim_read(c, q, a, list);
}

/* What we took over already, which may be much, lies between the two ranges and is not read. */
static int claim_boot(struct db *d, struct claim *c, struct arena *a, struct rows *list)
{
    CLEANUP(buf_fini) struct buf end = {0};
    struct slice node = owner_node(c->locked_by);

    buf_slice(&end, node);
    end.ptr[end.len - 1] = '/' + 1; /* behind everything that begins with "node/" */
    int rc = claim_owned(d, c, node, c->locked_by, a, list);
    if (rc == SQLITE_OK && !c->more)
        rc = claim_owned(d, c, c->locked_by, buf_view(&end), a, list);
    return rc;
}

int claim_take(struct db *d, const struct claim *c, struct arena *a, struct task_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int rc = row_waits_for_several(row) ? waits_delete(d, row->id) : SQLITE_OK;

    if (rc != SQLITE_OK)
        return rc;
    row->revision++;
    row->locked_by = arena_copy(a, c->locked_by);
    row->waiting_for = SLICE_NONE;
    if (c->kind == CLAIM_AGENT || c->kind == CLAIM_TIME || c->kind == CLAIM_LOCK) {
        row->state = row->direction == DIRECTION_UNDO ? TASK_COMPENSATING : TASK_PROCESSING;
        if (row->started_at == 0 && !(row->lock.ptr && row->lock_since == 0))
            row->started_at = c->now;
    }
    rc = db_query(d, SQL_TAKE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, row->seq);
    bind_number(q, 2, (int64_t)row->revision);
    bind_text(q, 3, slice_of(task_state_text(row->state)));
    bind_text(q, 4, row->locked_by);
    bind_time(q, 5, row->started_at);
    rc = query_run(q);
    return rc == SQLITE_OK ? row_read_payloads(d, a, row) : rc;
}

int sqlite_claim(struct sqlite_store *s, struct claim *c, struct arena *a)
{
    struct db *d = &s->writer;
    struct rows list = {0};
    if (c->kind == CLAIM_LOCK)
        return lock_claim(d, c, a);
    int rc = SQLITE_OK; /* CLAIM_NODE finds nothing: there is only this node */

    if (c->kind == CLAIM_BOOT)
        rc = claim_boot(d, c, a, &list);
    else if (c->kind != CLAIM_NODE)
        rc = claim_waiting(d, c, a, &list);
    for (size_t i = 0; rc == SQLITE_OK && i < list.count; i++)
        rc = claim_take(d, c, a, &list.rows[i]);
    c->rows = list.rows;
    c->row_count = list.count;
    return rc;
}
