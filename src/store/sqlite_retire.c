#include "store/sqlite_body.h"

#include <time.h>

#include "store/row.h"

/*
 * Deleting what ended long ago, some tasks a transaction. What is to go is found first and deleted
 * then, so that no statement walks over rows that are going. Pages that become free are used again
 * by what is stored next; the file does not shrink.
 *
 * The newest row stays: SQLite would give its number to the next task, and numbers stand in
 * cursors.
 */

struct part {
    struct db *db;
    struct retire *retire;
    int64_t *seqs; /* to be deleted */
    bool *tagged;
    size_t count;
};

static int64_t steady_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

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

/* Of a row that cannot be read nobody knows how it ended. */
static bool wants(const struct retire *r, sqlite3_stmt *q)
{
    enum task_state state;

    return task_state_parse(query_text(q, 1), &state)
           && retire_wants(r, state, sqlite3_column_int64(q, 2), !sqlite3_column_int(q, 4));
}

static int find(struct part *p)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    struct retire *r = p->retire;
    int64_t last = 0;
    size_t looked = 0;
    bool past = false;

    int rc = newest(p->db, &last);
    if (rc == SQLITE_OK)
        rc = db_query(p->db, SQL_RETIRE_SCAN, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, r->after_seq);
    bind_number(q, 2, (int64_t)r->scan_max);
    while (!past && (rc = query_step(q)) == SQLITE_ROW) {
        int64_t seq = sqlite3_column_int64(q, 0);
        past = retire_is_past(r, sqlite3_column_int64(q, 3));
        r->after_seq = seq;
        looked++;
        if (seq == last || !wants(r, q))
            continue;
        p->tagged[p->count] = !sqlite3_column_int(q, 5);
        p->seqs[p->count++] = seq;
    }
    r->more = looked == r->scan_max && !past;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int run(struct db *d, enum sql which, int64_t seq)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, seq);
    return query_run(q);
}

static int delete_one(struct part *p, size_t i)
{
    int rc = p->tagged[i] ? run(p->db, SQL_TAGS_DELETE, p->seqs[i]) : SQLITE_OK;

    if (rc == SQLITE_OK)
        rc = run(p->db, SQL_PAYLOADS_DELETE, p->seqs[i]);
    return rc == SQLITE_OK ? run(p->db, SQL_TASK_DELETE, p->seqs[i]) : rc;
}

/* One at least, however long that takes. */
static int delete_found(struct part *p)
{
    struct retire *r = p->retire;
    int64_t until = steady_us() + r->budget_us;
    int rc = db_exec(p->db, "BEGIN IMMEDIATE");
    size_t i = 0;

    while (rc == SQLITE_OK && i < p->count && (i == 0 || r->budget_us == 0 || steady_us() < until))
        rc = delete_one(p, i++);
    r->count = i;
    if (i < p->count) {
        r->after_seq = p->seqs[i - 1];
        r->more = true;
    }
    return rc == SQLITE_OK ? audit_insert(p->db, r->audit) : rc;
}

static enum err retire(struct sqlite_store *s, struct part *p, struct error *e)
{
    bool unknown = false;

    int rc = find(p);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "look for what is to be deleted");
    p->retire->count = p->count;
    if (p->retire->dry || p->count == 0)
        return ERR_OK;
    p->db = &s->writer;
    rc = delete_found(p);
    if (rc == SQLITE_OK)
        rc = db_commit(&s->writer, &unknown);
    if (rc == SQLITE_OK)
        return store_committed(s, e);
    enum err err = store_failed(s, rc, e, "delete tasks");
    if (unknown)
        e->code = err = ERR_UNKNOWN;
    return err;
}

enum err sqlite_retire(struct store *base, struct retire *r, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct sqlite_store *s = sqlite_store_of(base);
    struct retire work = *r;
    struct part p = {
        .db = &s->reader,
        .retire = &work,
        .seqs = arena_alloc(&a, (r->scan_max + 1) * sizeof *p.seqs),
        .tagged = arena_alloc(&a, r->scan_max + 1),
    };

    work.count = 0;
    enum err err = r->dry ? store_ready(s, e) : store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    err = retire(s, &p, e);
    if (err == ERR_OK)
        *r = work;
    else
        db_rollback(&s->writer);
    return err;
}
