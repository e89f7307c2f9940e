/*
 * The outbox in SQLite: messages are read, settled, set aside and listed. Messages that were not
 * set aside are in bundles (bundle.c). The columns are those of rows/message.h.
 */
#include "store/sqlite/columns.h"

#include "store/row.h"

/* ---- reading ---- */

/* One that was set aside. */
static void message_read(sqlite3_stmt *q, struct arena *a, struct message *ret)
{
    struct message row = {0};
    struct slice state = SLICE_NONE;
    int col = 0;

#define READ_standing(field) state = query_text(q, col++);
    READ(seq, number)
    MESSAGE_COLUMNS(READ, )
    MESSAGE_ASIDE_COLUMNS(READ, )
    row.aside = state.ptr != NULL;
    row.dead = slice_is(state, "dead");
    *ret = row;
}

static int page_read(sqlite3_stmt *q, size_t limit, size_t bytes_max, struct arena *a,
                     struct message_page *ret)
{
    size_t bytes = 0;
    int rc;

    ret->messages = arena_alloc(a, (limit + 1) * sizeof *ret->messages);
    while ((rc = query_step(q)) == SQLITE_ROW) {
        if (ret->count == limit || (ret->count > 0 && bytes >= bytes_max)) {
            ret->more = true;
            return SQLITE_OK;
        }
        message_read(q, a, &ret->messages[ret->count]);
        bytes += ret->messages[ret->count++].body.len;
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_page(struct db *d, const struct outbox_read *r, struct arena *a,
                     struct message_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    const struct bundle_query fresh = {.after_seq = r->after_seq,
                                       .limit = r->limit,
                                       .bytes_max = r->bytes_max};

    if (!r->target.ptr)
        return bundles_read(d, &fresh, a, ret);
    int rc = db_query(d, SQL_OUTBOX_READ_TARGET, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, r->after_seq);
    bind_number(q, 2, (int64_t)r->limit + 1);
    bind_text(q, 3, r->target);
    return page_read(q, r->limit, r->bytes_max, a, ret);
}

enum err sqlite_outbox_read(struct store *base, struct outbox_read *r, struct arena *a,
                            struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct message_page page = {0};

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = read_page(&s->reader, r, a, &page);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read messages");
    r->messages = page.messages;
    r->count = page.count;
    r->more = page.more;
    return ERR_OK;
}

/* ---- what became of them ---- */

static int delete_aside(struct db *d, int64_t from, int64_t to)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_OUTBOX_DELETE_ASIDE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, from);
    bind_number(q, 2, to);
    return query_run(q);
}

/* How many from list[0] on are done with it: their numbers follow each other. */
static size_t range_of(const struct settlement *list, size_t count)
{
    size_t n = 1;

    while (n < count && (list[n].kind == SETTLE_DELETE) == (list[0].kind == SETTLE_DELETE)
           && list[n].aside == list[0].aside && list[n].seq == list[n - 1].seq + 1)
        n++;
    return n;
}

static int write_settlement(struct db *d, enum sql which, const struct settlement *t,
                            const struct message *m)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, t->seq);
    bind_text(q, 2, t->kind == SETTLE_DEAD ? SLICE("dead") : SLICE("waiting"));
    bind_number(q, 3, t->tries);
    bind_time(q, 4, t->retry_at);
    bind_text(q, 5, t->story);
    if (m) {
        bind_text(q, 6, m->task);
        bind_text(q, 7, m->name);
        bind_text(q, 8, m->target);
        bind_text(q, 9, m->body);
        bind_number(q, 10, m->created_at);
    }
    return query_run(q);
}

/* Sets aside a range of messages that were not set aside before. Those that no longer exist are
 * skipped. */
static int set_aside(struct db *d, const struct settlement *list, size_t count)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct message_page page;
    const struct bundle_query want = {.after_seq = list[0].seq - 1,
                                      .limit = count,
                                      .bytes_max = SIZE_MAX};
    size_t k = 0;

    int rc = bundles_read(d, &want, &a, &page);
    for (size_t i = 0; rc == SQLITE_OK && i < page.count; i++) {
        const struct message *m = &page.messages[i];
        while (k < count && list[k].seq < m->seq)
            k++;
        if (k < count && list[k].seq == m->seq)
            rc = write_settlement(d, SQL_OUTBOX_SET_ASIDE, &list[k], m);
    }
    return rc == SQLITE_OK ? bundles_settle(d, list[0].seq, list[count - 1].seq) : rc;
}

static int update_aside(struct db *d, const struct settlement *list, size_t count)
{
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < count; i++)
        rc = write_settlement(d,
                              list[i].kind == SETTLE_DEAD ? SQL_OUTBOX_UPDATE
                                                          : SQL_OUTBOX_UPDATE_SAME,
                              &list[i], NULL);
    return rc;
}

static int settle_range(struct db *d, const struct settlement *list, size_t count)
{
    int64_t from = list[0].seq;
    int64_t to = list[count - 1].seq;

    if (list[0].kind == SETTLE_DELETE)
        return list[0].aside ? delete_aside(d, from, to) : bundles_settle(d, from, to);
    return list[0].aside ? update_aside(d, list, count) : set_aside(d, list, count);
}

static int settle(struct db *d, const struct settlement *list, size_t count, bool *ret_unknown)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    for (size_t i = 0; rc == SQLITE_OK && i < count;) {
        size_t n = range_of(&list[i], count - i);
        rc = settle_range(d, &list[i], n);
        i += n;
    }
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

static bool all_were_delivered(const struct settlement *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].kind != SETTLE_DELETE)
            return false;
    return true;
}

/* What was delivered comes once more if that is lost: so no sync of the disk is waited for. The
 * next commit that is one takes it along. */
static int forget_lazily(struct sqlite_store *s, const struct settlement *list, size_t count,
                         bool *ret_unknown)
{
    struct db *d = &s->writer;

    int rc = db_exec(d, "PRAGMA synchronous = NORMAL");
    if (rc == SQLITE_OK)
        rc = settle(d, list, count, ret_unknown);
    if (rc != SQLITE_OK)
        db_rollback(d); /* the pragma has no effect within a transaction */
    if (db_exec(d, "PRAGMA synchronous = FULL") != SQLITE_OK)
        s->broken = true; /* a connection that is opened again has it */
    return rc;
}

enum err sqlite_outbox_settle(struct store *base, const struct settlement *list, size_t count,
                              const struct fence *fence, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    if (fence && fence->epoch != s->boot)
        return error_set(e, ERR_CONFLICT, "lease %.*s has another epoch", SLICE_ARG(fence->lease));
    int rc = all_were_delivered(list, count) ? forget_lazily(s, list, count, &unknown)
                                             : settle(&s->writer, list, count, &unknown);
    return transaction_end(s, rc, unknown, e, "write what became of messages");
}

/* ---- for people ---- */

static int target_next(struct db *d, bool dead, struct slice after, struct arena *a,
                       struct outbox_target *ret, bool *ret_found)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_OUTBOX_TARGET, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, dead ? SLICE("dead") : SLICE("waiting"));
    bind_text(q, 2, after);
    rc = query_step(q);
    *ret_found = rc == SQLITE_ROW;
    if (*ret_found)
        *ret = (struct outbox_target){.target = arena_copy(a, query_text(q, 0)),
                                      .oldest_at = sqlite3_column_int64(q, 1),
                                      .story = arena_copy(a, query_text(q, 2))};
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int target_count(struct db *d, bool dead, size_t most, struct outbox_target *t)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_OUTBOX_TARGET_COUNT, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_text(q, 1, dead ? SLICE("dead") : SLICE("waiting"));
    bind_text(q, 2, t->target);
    bind_number(q, 3, (int64_t)most);
    rc = query_step(q);
    t->count = rc == SQLITE_ROW ? (uint64_t)sqlite3_column_int64(q, 0) : 0;
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

enum err sqlite_outbox_targets(struct store *base, const struct target_query *q, struct arena *a,
                               struct outbox_target **ret, size_t *ret_count, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct db *d = &s->reader;
    bool found = true;
    int rc = SQLITE_OK;

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    struct outbox_target *list = arena_alloc(a, (q->limit + 1) * sizeof *list);
    size_t count = 0;
    struct slice after = q->after.ptr ? q->after : SLICE("");
    while (rc == SQLITE_OK && found && count < q->limit) {
        rc = target_next(d, q->dead, after, a, &list[count], &found);
        if (rc != SQLITE_OK || !found)
            break;
        after = list[count].target;
        rc = target_count(d, q->dead, q->most, &list[count++]);
    }
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read the targets of messages");
    *ret = list;
    *ret_count = count;
    return ERR_OK;
}

static int list_part(struct db *d, enum sql which, const struct outbox_query *want, struct arena *a,
                     struct message_page *ret)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, which, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, want->after_seq);
    bind_number(q, 2, (int64_t)want->limit + 1);
    bind_text(q, 3, want->dead ? SLICE("dead") : SLICE("waiting"));
    if (which == SQL_OUTBOX_LIST_TARGET)
        bind_text(q, 4, want->target);
    if (which == SQL_OUTBOX_LIST_TASK)
        bind_text(q, 5, want->task);
    return page_read(q, want->limit, SIZE_MAX, a, ret);
}

static enum sql list_of(struct slice target, struct slice task)
{
    return target.ptr ? SQL_OUTBOX_LIST_TARGET : task.ptr ? SQL_OUTBOX_LIST_TASK : SQL_OUTBOX_LIST;
}

enum err sqlite_outbox_list(struct store *base, const struct outbox_query *q, struct arena *a,
                            struct message_page *ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct message_page fresh = {0};
    struct message_page aside = {0};

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    const struct bundle_query want = {.after_seq = q->after_seq,
                                      .target = q->target,
                                      .task = q->task,
                                      .limit = q->limit,
                                      .bytes_max = SIZE_MAX};
    int rc = q->dead ? SQLITE_OK : bundles_read(&s->reader, &want, a, &fresh);
    if (rc == SQLITE_OK)
        rc = list_part(&s->reader, list_of(q->target, q->task), q, a, &aside);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "list messages");
    messages_merge(&aside, &fresh, q->limit, a, ret);
    return ERR_OK;
}

/* ---- by hand ---- */

static bool verb_wants(const struct outbox_verb *v, const struct message *m)
{
    return (!v->target.ptr || slice_eq(v->target, m->target))
           && (!v->task.ptr || slice_eq(v->task, m->task))
           && (!v->name.ptr || slice_eq(v->name, m->name));
}

static int revive(struct db *d, int64_t seq, int64_t now)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;

    int rc = db_query(d, SQL_OUTBOX_REVIVE, &q);
    if (rc != SQLITE_OK)
        return rc;
    bind_number(q, 1, seq);
    bind_number(q, 2, now);
    return query_run(q);
}

/* By the index of what is asked for. */
static int do_read(struct db *d, const struct outbox_verb *v, struct arena *a,
                   struct message_page *ret)
{
    struct message_page waiting = {0};
    struct message_page dead = {0};
    struct outbox_query want = {
        .target = v->task.ptr ? SLICE_NONE : v->target,
        .task = v->task,
        .after_seq = v->after_seq,
        .limit = v->limit,
    };
    int rc = SQLITE_OK;

    if (!v->drop)
        rc = list_part(d, list_of(want.target, want.task), &want, a, &waiting);
    want.dead = true;
    if (rc == SQLITE_OK)
        rc = list_part(d, list_of(want.target, want.task), &want, a, &dead);
    messages_merge(&waiting, &dead, v->limit, a, ret);
    return rc;
}

static int do_part(struct db *d, struct outbox_verb *v, bool *ret_unknown)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct message_page page = {0};

    int rc = db_exec(d, "BEGIN IMMEDIATE");
    if (rc == SQLITE_OK)
        rc = do_read(d, v, &a, &page);
    v->count = 0;
    v->more = page.more;
    for (size_t i = 0; rc == SQLITE_OK && i < page.count; i++) {
        const struct message *m = &page.messages[i];
        v->after_seq = m->seq;
        if (!verb_wants(v, m))
            continue;
        rc = v->drop ? delete_aside(d, m->seq, m->seq) : revive(d, m->seq, v->now);
        v->count++;
    }
    if (rc == SQLITE_OK && v->count > 0)
        rc = audit_insert(d, v->audit);
    return rc == SQLITE_OK ? db_commit(d, ret_unknown) : rc;
}

enum err sqlite_outbox_do(struct store *base, struct outbox_verb *v, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    const struct outbox_verb was = *v;
    bool unknown = false;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = do_part(&s->writer, v, &unknown);
    err = transaction_end(s, rc, unknown, e, "change messages");
    if (err != ERR_OK)
        *v = was;
    return err;
}

enum err sqlite_outbox_census(struct store *base, size_t most, struct outbox_census *ret,
                              struct error *e)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    struct sqlite_store *s = sqlite_store_of(base);

    enum err err = store_ready(s, e);
    if (err != ERR_OK)
        return err;
    int rc = db_query(&s->reader, SQL_OUTBOX_CENSUS, &q);
    if (rc == SQLITE_OK) {
        bind_number(q, 1, (int64_t)most);
        rc = query_step(q);
    }
    if (rc != SQLITE_ROW)
        return store_failed(s, rc, e, "count messages");
    outbox_census_of(sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1),
                     sqlite3_column_int64(q, 2), sqlite3_column_int64(q, 3),
                     sqlite3_column_int64(q, 4), most, ret);
    return ERR_OK;
}
