/*
 * Locks of tasks: taken and given back by changes (commit.c) and claims (claim.c), in their
 * transaction. The table lock_holder has the holders of each lock, lock_key their number, so that a
 * lock is taken by one UPDATE that fails if there is no room.
 */
#include "store/sqlite/body.h"

/* The parameter is the lock, or a task. */
static int run_on(struct db *d, enum sql which, struct slice of)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, of);
    return query_run(q);
}

static int hold(struct db *d, struct slice lock, struct slice task, int64_t since)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_LOCK_HOLD, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, lock);
    bind_text(q, 2, task);
    bind_number(q, 3, since);
    return query_run(q);
}

/* *ret_done: there was room. */
static int raise(struct db *d, struct slice lock, int64_t max, bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_LOCK_RAISE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, lock);
    bind_number(q, 2, max);
    rc = query_run(q);
    *ret_done = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return rc;
}

static int find_holder(struct db *d, struct slice lock, struct arena *a, struct lock_held *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    *ret = (struct lock_held){0};
    int rc = db_query(d, SQL_LOCK_FIRST, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, lock);
    rc = query_step(q);
    if (rc == SQLITE_ROW)
        *ret = (struct lock_held){.task = arena_copy(a, query_text(q, 0)),
                                  .since = sqlite3_column_int64(q, 1),
                                  .count = (uint64_t)sqlite3_column_int64(q, 2)};
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* SQLITE_NOTFOUND, which no statement gives, if there is no room: then a task holds it. */
static int take(struct db *d, struct change *c, struct arena *a)
{
    struct lock_held held;
    bool done = false;

    int rc = run_on(d, SQL_LOCK_KEY, c->row.lock);
    if (rc == SQLITE_OK)
        rc = raise(d, c->row.lock, c->row.lock_max, &done);
    if (rc == SQLITE_OK && done)
        return hold(d, c->row.lock, c->row.id, c->row.lock_since);
    if (rc == SQLITE_OK)
        rc = find_holder(d, c->row.lock, a, &held);
    if (rc != SQLITE_OK)
        return rc;
    c->lock_holder = held.task.ptr ? held.task : SLICE("?");
    return SQLITE_NOTFOUND;
}

static int drop(struct db *d, const struct task_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_LOCK_LEAVE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, row->lock);
    bind_text(q, 2, row->id);
    rc = query_run(q);
    bool held = rc == SQLITE_OK && sqlite3_changes(d->handle) == 1;
    return held ? run_on(d, SQL_LOCK_LOWER, row->lock) : rc;
}

static int queue(struct db *d, const struct task_row *row)
{
    int rc = row->lock_mode == LOCK_REPLACES ? run_on(d, SQL_LOCK_REPLACES, row->id) : SQLITE_OK;

    return rc == SQLITE_OK ? run_on(d, SQL_LOCK_LOOK, row->lock) : rc;
}

int lock_change(struct db *d, struct change *c, struct arena *a)
{
    if (c->kind != CHANGE_REQUEST && row_queues(&c->row))
        return queue(d, &c->row);
    switch (c->lock_move) {
    case LOCK_STAYS:
        return SQLITE_OK;
    case LOCK_TAKE:
        return take(d, c, a);
    case LOCK_DROP:
        return drop(d, &c->row);
    case LOCK_QUIT:
        return run_on(d, SQL_LOCK_LOOK, c->row.lock);
    }
    UNREACHABLE();
}

/* ---- claims ---- */

/* Those that are to be looked at. */
static int find_locks(struct db *d, size_t limit, struct arena *a, struct slice *ret,
                      size_t *ret_count)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    size_t count = 0;

    int rc = db_query(d, SQL_LOCKS_LOOK, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, (int64_t)limit);
    while ((rc = query_step(q)) == SQLITE_ROW)
        ret[count++] = arena_copy(a, query_text(q, 0));
    *ret_count = count;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The first of the queue; *ret_any: there is one. */
static int first_waiting(struct db *d, struct slice lock, struct arena *a, struct task_row *ret,
                         bool *ret_any)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    CLEANUP(buf_fini) struct buf queue = {0};

    buf_str(&queue, WAITING_LOCK);
    buf_slice(&queue, lock);
    int rc = db_query(d, SQL_CLAIM_WAITING, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, buf_view(&queue));
    bind_number(q, 2, 1);
    bind_number(q, 3, INT64_MIN);
    bind_number(q, 4, INT64_MAX);
    rc = query_step(q);
    *ret_any = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW)
        rc = row_read(q, a, ret);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int take_first(struct db *d, const struct claim *c, struct arena *a, struct task_row *row,
                      bool *ret_done)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = raise(d, row->lock, row->lock_max, ret_done);
    if (rc != SQLITE_OK || !*ret_done)
        return rc;
    rc = hold(d, row->lock, row->id, c->now);
    if (rc == SQLITE_OK)
        rc = db_query(d, SQL_LOCK_SINCE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, row->seq);
    bind_number(q, 2, c->now);
    rc = query_run(q);
    row->lock_since = c->now;
    return rc == SQLITE_OK ? claim_take(d, c, a, row) : rc;
}

/* Those that newer ones replace, up to the limit. */
static int find_replaced(struct db *d, const struct claim *c, struct slice lock, struct arena *a,
                         struct rows *list)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_LOCK_REPLACED, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, lock);
    bind_number(q, 2, (int64_t)(c->limit - list->count));
    rc = query_step(q);
    while (rc == SQLITE_ROW) {
        rc = row_read(q, a, rows_add(list, a));
        if (rc == SQLITE_OK)
            rc = query_step(q);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int replace(struct db *d, const struct claim *c, struct arena *a, struct task_row *row)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_LOCK_REPLACE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, row->seq);
    rc = query_run(q);
    row->lock_mode = LOCK_REPLACED;
    return rc == SQLITE_OK ? claim_take(d, c, a, row) : rc;
}

static int claim_replaced(struct db *d, const struct claim *c, struct slice lock, struct arena *a,
                          struct rows *list)
{
    size_t from = list->count;

    int rc = find_replaced(d, c, lock, a, list);
    for (size_t i = from; rc == SQLITE_OK && i < list->count; i++)
        rc = replace(d, c, a, &list->rows[i]);
    return rc;
}

/* Takes from one queue as long as there is room. *ret_over: no task waits any more, or there is no
 * room: a task that gives it back, or begins to wait, has it looked at again. */
static int claim_of_lock(struct db *d, struct claim *c, struct slice lock, struct arena *a,
                         struct rows *list, bool *ret_over)
{
    bool more = true;
    int rc = claim_replaced(d, c, lock, a, list);

    while (rc == SQLITE_OK && more && list->count < c->limit) {
        struct task_row row = {0};
        rc = first_waiting(d, lock, a, &row, &more);
        if (rc == SQLITE_OK && more)
            rc = take_first(d, c, a, &row, &more);
        if (rc == SQLITE_OK && more)
            *rows_add(list, a) = row;
    }
    *ret_over = !more;
    return rc;
}

/* If the limit ends it, it comes behind the others. */
static int look_at(struct db *d, struct claim *c, struct slice lock, struct arena *a,
                   struct rows *list)
{
    bool over = false;

    int rc = claim_of_lock(d, c, lock, a, list, &over);
    c->more |= !over;
    if (rc == SQLITE_OK)
        rc = run_on(d, over ? SQL_LOCK_SEEN : SQL_LOCK_LATER, lock);
    if (rc == SQLITE_OK && over)
        rc = run_on(d, SQL_LOCK_FORGET, lock);
    return rc == SQLITE_OK && over ? run_on(d, SQL_LOCK_DELETE, lock) : rc;
}

int lock_claim(struct db *d, struct claim *c, struct arena *a)
{
    struct slice *locks = arena_alloc(a, (c->limit + 1) * sizeof *locks);
    struct rows list = {0};
    size_t count = 0;
    size_t i = 0;

    int rc = find_locks(d, c->limit + 1, a, locks, &count);
    c->more = false;
    for (; rc == SQLITE_OK && i < count && list.count < c->limit; i++)
        rc = look_at(d, c, locks[i], a, &list);
    c->more |= i < count; /* or a limit ended one of them */
    c->rows = list.rows;
    c->row_count = list.count;
    return rc;
}

/* ---- who holds which ---- */

static int list(struct db *d, const struct lock_query *lq, struct arena *a, struct lock_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, lq->lock.ptr ? SQL_LOCK_LIST : SQL_LOCKS_LIST, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, lq->after_seq);
    bind_number(q, 2, (int64_t)lq->limit + 1);
    bind_number(q, 3, LOCK_WAITING_MOST);
    if (lq->lock.ptr)
        bind_text(q, 4, lq->lock);
    *ret = (struct lock_page){.holders = arena_alloc(a, (lq->limit + 1) * sizeof *ret->holders)};
    while ((rc = query_step(q)) == SQLITE_ROW && !ret->more) {
        ret->more = ret->count == lq->limit;
        if (ret->more)
            break;
        ret->holders[ret->count++] =
            (struct lock_holder){.lock = arena_copy(a, query_text(q, 0)),
                                 .task = arena_copy(a, query_text(q, 1)),
                                 .seq = sqlite3_column_int64(q, 2),
                                 .since = sqlite3_column_int64(q, 3),
                                 .waiting = (uint64_t)sqlite3_column_int64(q, 4)};
    }
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_lock_list(struct store *base, const struct lock_query *q, struct arena *a,
                          struct lock_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = list(&s->reader, q, a, ret);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "list locks");
}

enum err sqlite_lock_held(struct store *base, struct slice lock, struct arena *a,
                          struct lock_held *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = find_holder(&s->reader, lock, a, ret);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "read who holds a lock");
}
