/*
 * The second handle on the store, for a thread that only reads: a connection of its own. It is a
 * struct sqlite_store of which only the names of the files and `reader` are used, so the functions
 * that read serve both.
 *
 * Each call is one transaction, or several calls are (snapshot), so several statements see one
 * moment. While it has its snapshot the WAL cannot begin anew, and the store's own thread does not
 * wait for readers. So when the WAL has grown long, that thread asks for a pause: the current call
 * ends, the next one waits, and the checkpoint finds no snapshot. When the connections of the store
 * are made again, this one is closed first, so that nothing continues with an old WAL.
 */
#include "store/sqlite/body.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

enum {
    READ_MAX_MS = 10000,    /* of one transaction; listings have a budget of their own, far below */
    LOOK_EVERY_OPS = 10000, /* of SQLite's machine: at the clock */
    PAUSE_MAX_MS = 250,     /* that a call waits for a checkpoint that was asked for */
};

enum way {
    WAY_FREE,
    WAY_ASKED,  /* a pause is wanted as soon as no call is at work */
    WAY_PAUSED, /* no call may begin: a checkpoint is made */
    WAY_HALTED, /* the same: the connections of the store are made again */
};

struct sqlite_reading {
    struct sqlite_store store; /* `file` is that of the other one, and stays */
    struct sqlite_store *of;   /* whose file it reads */
    pthread_mutex_t lock;      /* of the next three */
    pthread_cond_t changed;    /* one of them is another */
    enum way way;
    bool busy;          /* a call is at work */
    struct file_id wal; /* that the connections of the store have open, as long as none is halted */
    atomic_bool usable, break_off;
    int64_t until; /* steady: of the call at work */
    bool snapshot; /* the transaction is for the next call, too */
    bool begun;    /* there is a transaction */
};

/* ---- a call, on the thread that reads ---- */

static int is_too_long(void *arg)
{
    const struct sqlite_reading *r = arg;

    return atomic_load(&r->break_off) || clock_steady_ms() >= r->until;
}

/* Do the names refer to the file and the WAL that the store's own connections have open? By another
 * WAL a new connection would read what belongs to nothing. */
static bool in_place(struct sqlite_reading *r, struct error *e)
{
    struct sqlite_store *s = &r->store;
    enum place place = folder_place(s, s->path, &s->file, e);

    if (place == PLACE_LOST)
        (void)folder_lost(s, e);
    if (place != PLACE_KEPT)
        return false;
    place = folder_place(s, s->wal_path, &r->wal, e);
    if (place == PLACE_LOST)
        (void)error_set(e, ERR_IO,
                        "state store %s: its -wal was moved, removed or replaced while it was in "
                        "use; it goes on by itself",
                        s->path);
    return place == PLACE_KEPT;
}

static int connect(struct sqlite_reading *r)
{
    struct db *d = &r->store.reader;
    int64_t ignored = 0;

    int rc = db_open(d, r->store.path, SQLITE_OPEN_READONLY);
    if (rc == SQLITE_OK)
        rc = db_exec(d, "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4000; "
                        "PRAGMA mmap_size = 0");
    if (rc == SQLITE_OK) /* it has its WAL open once it has read something */
        rc = db_number(d, "SELECT count(*) FROM sqlite_schema", &ignored);
    if (rc == SQLITE_OK)
        sqlite3_progress_handler(d->handle, LOOK_EVERY_OPS, is_too_long, r);
    return rc;
}

/* Prepared once: each call takes two of these. */
static int run(struct db *d, enum sql which)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int rc = db_query(d, which, &q);

    return rc == SQLITE_OK ? query_run(q) : rc;
}

static enum err begin(struct sqlite_reading *r, struct error *e)
{
    struct sqlite_store *s = &r->store;

    r->until = clock_steady_ms() + READ_MAX_MS;
    if (s->broken)
        db_close(&s->reader);
    s->broken = false;
    bool anew = !s->reader.handle;
    if (!in_place(r, e))
        return e->code;
    int rc = anew ? connect(r) : SQLITE_OK;
    s->broken = rc != SQLITE_OK || (anew && !in_place(r, e));
    if (rc == SQLITE_OK && s->broken)
        return e->code;
    if (rc == SQLITE_OK)
        rc = run(&s->reader, SQL_BEGIN_READING);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "open the file for reading");
}

/* The requester may no longer need the pause, so the wait for it is short. */
static bool take_way(struct sqlite_reading *r)
{
    const struct timespec until = clock_in_ms(CLOCK_MONOTONIC, PAUSE_MAX_MS);

    (void)pthread_mutex_lock(&r->lock);
    while (r->way == WAY_ASKED && pthread_cond_timedwait(&r->changed, &r->lock, &until) == 0)
        ;
    while (r->way == WAY_PAUSED)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    r->busy = r->way != WAY_HALTED;
    bool taken = r->busy;
    (void)pthread_mutex_unlock(&r->lock);
    return taken;
}

static void end(struct sqlite_reading *r)
{
    r->begun = false;
    if (r->store.reader.handle && !sqlite3_get_autocommit(r->store.reader.handle))
        (void)run(&r->store.reader, SQL_COMMIT); /* nothing was written */
    db_rollback(&r->store.reader);
    (void)pthread_mutex_lock(&r->lock);
    r->busy = false;
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
}

/* After a failure nothing is kept for the next call. */
static void leave(struct sqlite_reading **call)
{
    struct sqlite_reading *r = *call;

    if (r && (!r->snapshot || r->store.broken || sqlite3_get_autocommit(r->store.reader.handle)))
        end(r);
}

static struct sqlite_reading *reading_of(struct store *base)
{
    return CONTAINER_OF(sqlite_store_of(base), struct sqlite_reading, store);
}

/* NULL, and *e: it cannot be read now. */
static struct sqlite_reading *enter(struct store *base, struct error *e)
{
    struct sqlite_reading *r = reading_of(base);

    if (r->begun)
        return r;
    if (!take_way(r)) {
        (void)error_set(e, ERR_BUSY, "state store %s: it is opened again just now; try again",
                        r->store.path);
        return NULL;
    }
    if (begin(r, e) == ERR_OK) {
        r->begun = true;
        return r;
    }
    end(r);
    return NULL;
}

#define CALL(base, e) CLEANUP(leave) struct sqlite_reading *call = enter(base, e)

static enum err reading_get(struct store *s, struct slice id, struct arena *a, struct task_row *ret,
                            struct error *e)
{
    CALL(s, e);

    return call ? sqlite_get(s, id, a, ret, e) : e->code;
}

static enum err reading_reserved(struct store *s, struct slice id, struct arena *a,
                                 struct reservation *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_reserved(s, id, a, ret, e) : e->code;
}

static enum err reading_list(struct store *s, const struct list_query *q, struct arena *a,
                             struct row_page *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_list(s, q, a, ret, e) : e->code;
}

static enum err reading_census(struct store *s, int64_t now, size_t most, struct arena *a,
                               struct census *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_census(s, now, most, a, ret, e) : e->code;
}

static enum err reading_owners(struct store *s, struct owners_part *p, struct arena *a,
                               struct error *e)
{
    CALL(s, e);

    return call ? sqlite_owners(s, p, a, e) : e->code;
}

static enum err reading_audit_list(struct store *s, const struct audit_query *q, struct arena *a,
                                   struct audit_page *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_audit_list(s, q, a, ret, e) : e->code;
}

static enum err reading_submissions_list(struct store *s, const struct submission_query *q,
                                         struct arena *a, struct submission_page *ret,
                                         struct error *e)
{
    CALL(s, e);

    return call ? sqlite_submissions_list(s, q, a, ret, e) : e->code;
}

static enum err reading_outbox_targets(struct store *s, const struct target_query *q,
                                       struct arena *a, struct outbox_target **ret,
                                       size_t *ret_count, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_outbox_targets(s, q, a, ret, ret_count, e) : e->code;
}

static enum err reading_outbox_list(struct store *s, const struct outbox_query *q, struct arena *a,
                                    struct message_page *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_outbox_list(s, q, a, ret, e) : e->code;
}

static enum err reading_alert_list(struct store *s, const struct alert_query *q, struct arena *a,
                                   struct alert_page *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_alert_list(s, q, a, ret, e) : e->code;
}

static enum err reading_lock_list(struct store *s, const struct lock_query *q, struct arena *a,
                                  struct lock_page *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_lock_list(s, q, a, ret, e) : e->code;
}

static enum err reading_lock_held(struct store *s, struct slice lock, struct arena *a,
                                  struct lock_held *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_lock_held(s, lock, a, ret, e) : e->code;
}

static enum err reading_items_read(struct store *s, struct item_read *r, struct arena *a,
                                   struct error *e)
{
    CALL(s, e);

    return call ? sqlite_items_read(s, r, a, e) : e->code;
}

static enum err reading_items_outputs(struct store *s, struct item_outputs *o, struct arena *a,
                                      struct error *e)
{
    CALL(s, e);

    return call ? sqlite_items_outputs(s, o, a, e) : e->code;
}

static enum err reading_operation_list(struct store *s, const struct operation_query *q,
                                       struct arena *a, struct operation_page *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_operation_list(s, q, a, ret, e) : e->code;
}

static enum err reading_schedule_list(struct store *s, const struct schedule_query *q,
                                      struct arena *a, struct schedule_page *ret, struct error *e)
{
    CALL(s, e);

    return call ? sqlite_schedule_list(s, q, a, ret, e) : e->code;
}

static enum err reading_schedule_version(struct store *s, struct slice name, int64_t version,
                                         struct arena *a, struct schedule_version_row *ret,
                                         struct error *e)
{
    CALL(s, e);

    return call ? sqlite_schedule_version(s, name, version, a, ret, e) : e->code;
}

static void snapshot(struct store *base)
{
    struct sqlite_reading *r = reading_of(base);

    ASSERT(!r->snapshot);
    r->snapshot = true;
}

static void snapshot_end(struct store *base)
{
    struct sqlite_reading *r = reading_of(base);

    ASSERT(r->snapshot);
    r->snapshot = false;
    if (r->begun)
        end(r);
}

/* ---- life ---- */

static bool reading_is_usable(struct store *base)
{
    struct sqlite_reading *r = reading_of(base);

    return atomic_load(&r->usable) && !atomic_load(&r->of->broken);
}

static void reading_close(struct store *base)
{
    struct sqlite_store *s = sqlite_store_of(base);
    struct sqlite_reading *r = CONTAINER_OF(s, struct sqlite_reading, store);

    ASSERT(!r->busy);
    (void)pthread_mutex_lock(&r->of->reading_lock);
    r->of->reading = NULL;
    (void)pthread_mutex_unlock(&r->of->reading_lock);
    db_close(&s->reader);
    free(s->dir);
    free(s->path);
    free(s->wal_path);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->lock);
    free(r);
}

static const struct store_outbox_ops outbox_ops = {
    .targets = reading_outbox_targets,
    .list = reading_outbox_list,
};

static const struct store_submission_ops submissions_ops = {
    .list = reading_submissions_list,
};

static const struct store_alert_ops alerts_ops = {
    .list = reading_alert_list,
};

static const struct store_schedule_ops schedules_ops = {
    .list = reading_schedule_list,
    .version = reading_schedule_version,
};

static const struct store_lock_ops locks_ops = {
    .list = reading_lock_list,
    .held = reading_lock_held,
};

static const struct store_item_ops items_ops = {
    .read = reading_items_read,
    .outputs = reading_items_outputs,
};

static const struct store_operation_ops operations_ops = {
    .list = reading_operation_list,
};

static const struct store_retention_ops retention_ops = {
    .reserved = reading_reserved,
};

static const struct store_count_ops counts_ops = {
    .census = reading_census,
    .owners = reading_owners,
};

static const struct store_ops ops = {
    .close = reading_close,
    .is_usable = reading_is_usable,
    .snapshot = snapshot,
    .snapshot_end = snapshot_end,
    .get = reading_get,
    .list = reading_list,
    .audit_list = reading_audit_list,
    .outbox = &outbox_ops,
    .submissions = &submissions_ops,
    .alerts = &alerts_ops,
    .locks = &locks_ops,
    .items = &items_ops,
    .operations = &operations_ops,
    .schedules = &schedules_ops,
    .retention = &retention_ops,
    .counts = &counts_ops,
};

static char *copied(const char *text)
{
    char *copy = strdup(text);

    ASSERT(copy);
    return copy;
}

struct store *sqlite_reading_new(struct store *base)
{
    struct sqlite_store *of = sqlite_store_of(base);
    struct sqlite_reading *r = calloc(1, sizeof *r);
    pthread_condattr_t attr;

    ASSERT(r);
    (void)pthread_mutex_lock(&of->reading_lock);
    ASSERT(!of->reading);
    r->of = of;
    r->store = (struct sqlite_store){.base.ops = &ops,
                                     .dir = copied(of->dir),
                                     .path = copied(of->path),
                                     .wal_path = copied(of->wal_path),
                                     .file = of->file,
                                     .boot = of->boot};
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    r->wal = of->wal;
    atomic_store(&r->usable, !of->broken);
    r->way = of->broken ? WAY_HALTED : WAY_FREE;
    of->reading = r;
    (void)pthread_mutex_unlock(&of->reading_lock);
    return &r->store.base;
}

/* ---- on the store's own thread ---- */

/* It cannot go before `let_go`. NULL: there is none, and nothing to leave. */
static struct sqlite_reading *hold(struct sqlite_store *of)
{
    (void)pthread_mutex_lock(&of->reading_lock);
    if (of->reading)
        (void)pthread_mutex_lock(&of->reading->lock);
    else
        (void)pthread_mutex_unlock(&of->reading_lock);
    return of->reading;
}

static void let_go(struct sqlite_store *of)
{
    (void)pthread_mutex_unlock(&of->reading->lock);
    (void)pthread_mutex_unlock(&of->reading_lock);
}

bool reading_pause(struct sqlite_store *of, bool ask)
{
    struct sqlite_reading *r = hold(of);

    if (!r)
        return true;
    bool paused = !r->busy && r->way != WAY_HALTED;
    if (paused)
        r->way = WAY_PAUSED;
    else if (ask && r->way == WAY_FREE)
        r->way = WAY_ASKED;
    let_go(of);
    return paused;
}

static void set_free(struct sqlite_reading *r)
{
    r->way = WAY_FREE;
    (void)pthread_cond_broadcast(&r->changed);
}

void reading_go_on(struct sqlite_store *of)
{
    struct sqlite_reading *r = hold(of);

    if (!r)
        return;
    if (r->way == WAY_PAUSED)
        set_free(r);
    let_go(of);
}

void reading_halt(struct sqlite_store *of)
{
    struct sqlite_reading *r = hold(of);

    if (!r)
        return;
    atomic_store(&r->usable, false);
    atomic_store(&r->break_off, true);
    r->way = WAY_HALTED;
    (void)pthread_cond_broadcast(&r->changed);
    while (r->busy)
        (void)pthread_cond_wait(&r->changed, &r->lock);
    db_close(&r->store.reader);
    let_go(of);
}

void reading_resume(struct sqlite_store *of)
{
    struct sqlite_reading *r = hold(of);

    if (!r)
        return;
    if (r->way == WAY_HALTED) {
        r->wal = of->wal; /* no call is at work, and none begins */
        r->store.broken = false;
        atomic_store(&r->break_off, false);
        set_free(r);
        atomic_store(&r->usable, true);
    }
    let_go(of);
}
