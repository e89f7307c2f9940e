/*
 * Opens, maintains and closes the state store in SQLite, and its table of operations. body.h lists
 * what the other files of this folder do.
 */
#include "store/sqlite/body.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "store/sqlite/gather.h"
#include "store/sqlite/guard.h"

/* The size of the writer's WAL, reported by SQLite after each commit. */
static int wal_grew(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct sqlite_store *s = arg;

    (void)db;
    (void)name;
    s->wal_frames = frames;
    s->busy_since = 0;
    atomic_store(&s->base.held_since, 0);
    s->quiet_at = clock_steady_ms() + QUIET_MS;
    s->wrote = true;
    return SQLITE_OK;
}

/* Waits while others write: who checkpoints has the lock to write, see guard.h. If he did
 * not get it, *frames is less than 0. */
static int checkpoint_begin(struct sqlite_store *s, int mode, int *frames, int *done)
{
    int64_t began = clock_steady_ms();
    int64_t until = began + (s->boot ? CHECKPOINT_WAIT_MS : START_WAIT_MS);

    for (int count = 0;; count++) {
        int rc = sqlite3_wal_checkpoint_v2(s->writer.handle, "main", mode, frames, done);
        if ((rc & 0xff) != SQLITE_BUSY || *frames >= 0 || clock_steady_ms() >= until)
            return rc;
        others_tell_of_waiting(s, clock_steady_ms() - began);
        others_pause(count);
    }
}

/* Leaves nothing to checkpoint behind: frames of a commit whose fsync failed may be in the WAL
 * without being on the disk, and must be neither read nor built upon. A reader of another process
 * or a full disk may block this, but only after the WAL was synced. */
static int wal_restart(struct sqlite_store *s)
{
    int frames = 0;
    int done = 0;

    int rc =
        fault() ? SQLITE_IOERR : checkpoint_begin(s, SQLITE_CHECKPOINT_RESTART, &frames, &done);
    if ((rc & 0xff) == SQLITE_BUSY && frames < 0)
        return rc;
    s->wal_frames = frames > done ? frames - done : 0;
    s->checkpoint_at = s->wal_frames + CHECKPOINT_FRAMES;
    return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_FULL ? SQLITE_OK : rc;
}

static int writer_settle(struct sqlite_store *s)
{
    struct db *d = &s->writer;
    char limit[64];

    int rc = db_exec(d, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; "
                        "PRAGMA wal_autocheckpoint = 0; PRAGMA temp_store = MEMORY; "
                        "PRAGMA cache_size = -16000; PRAGMA mmap_size = 0; "
                        "PRAGMA secure_delete = OFF; "
                        /* our words come from tables; a list of six costs SQLite a b-tree of its
                         * own for each row that is changed */
                        "PRAGMA ignore_check_constraints = ON");
    (void)snprintf(limit, sizeof limit, "PRAGMA journal_size_limit = %d", WAL_SIZE_KEPT);
    if (rc == SQLITE_OK)
        rc = db_exec(d, limit);
    if (rc != SQLITE_OK)
        return rc;
    s->data_version = 0;
    (void)sqlite3_wal_hook(d->handle, wal_grew, s);
    rc = wal_restart(s);
    gather_writes(d->handle);
    return rc;
}

static enum err connect_writer(struct sqlite_store *s, bool first, struct error *e)
{
    int rc = db_open(&s->writer, s->path, SQLITE_OPEN_READWRITE);
    if (rc == SQLITE_OK && sqlite3_db_readonly(s->writer.handle, "main") == 1)
        rc = SQLITE_READONLY;
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "open the file");
    others_wait_for(s);
    /* no statement of ours has a reason to write to the schema or its pages directly */
    (void)sqlite3_db_config(s->writer.handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    /* until it is known to be ours, closing it changes nothing */
    (void)sqlite3_db_config(s->writer.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    enum err err = schema_check(s, first, e);
    if (err != ERR_OK)
        return err;
    (void)sqlite3_db_config(s->writer.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    rc = writer_settle(s);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "prepare the file for writing");
}

static enum err connect_reader(struct sqlite_store *s, struct error *e)
{
    int rc = db_open(&s->reader, s->path, SQLITE_OPEN_READONLY);
    if (rc == SQLITE_OK)
        rc = db_exec(&s->reader, "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -4000; "
                                 "PRAGMA mmap_size = 0");
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "open the file for reading");
}

static enum err connect_both(struct sqlite_store *s, bool first, struct error *e)
{
    enum err err = folder_file(s, first, e);
    if (err == ERR_OK)
        err = connect_writer(s, first, e);
    if (err == ERR_OK)
        err = connect_reader(s, e);
    if (err == ERR_OK)
        err = schema_secret(s, e);
    if (err == ERR_OK)
        err = schema_installation(s, e);
    if (err == ERR_OK)
        err = folder_wal(s, e);
    if (err == ERR_OK)
        sqlite_watch_again(s);
    s->broken = err != ERR_OK;
    if (err == ERR_OK)
        reading_resume(s);
    return err;
}

/* ---- what becomes of the files' names ---- */

/* A new start would not find the WAL, but the open connections can still read it: once all of it is
 * in the file, they may be closed, and the next ones begin a new WAL. */
static enum err wal_rescue(struct sqlite_store *s, struct error *e)
{
    int frames = 0;
    int done = 0;

    int rc = fault() ? SQLITE_IOERR
                     : sqlite3_wal_checkpoint_v2(s->writer.handle, "main",
                                                 SQLITE_CHECKPOINT_PASSIVE, &frames, &done);
    if (rc != SQLITE_OK || done != frames)
        return error_set(
            e, ERR_IO,
            "state store %s: its -wal or -shm was moved, removed or replaced while it "
            "was in use, and what it holds cannot be saved yet (SQLite %d); do not stop the "
            "server, or move that file back first",
            s->path, rc);
    s->wal = (struct file_id){0};
    s->broken = true;
    s->lost_wal = true;
    return error_set(e, ERR_IO,
                     "state store %s: its -wal or -shm was moved, removed or replaced while it was "
                     "in use; what it held is saved in intact.db, and it goes on by itself",
                     s->path);
}

static enum err wal_in_place(struct sqlite_store *s, struct error *e)
{
    enum place place = s->wal.ino ? folder_place(s, s->wal_path, &s->wal, e) : PLACE_KEPT;

    if (place == PLACE_KEPT && s->wal.ino && !others_share_index(s))
        place = PLACE_LOST;
    if (place == PLACE_LOST) {
        reading_halt(s); /* its snapshot would be in the way */
        return wal_rescue(s, e);
    }
    if (place == PLACE_KEPT && s->wal.ino && !s->broken)
        reading_resume(s); /* it may have come back */
    return place == PLACE_KEPT ? ERR_OK : e->code;
}

static enum err file_in_place(struct sqlite_store *s, struct error *e)
{
    enum place place = folder_place(s, s->path, &s->file, e);

    if (place == PLACE_LOST)
        return folder_lost(s, e);
    return place == PLACE_KEPT ? ERR_OK : e->code;
}

/* As long as a name is lost, the connections stay open: they are the only way to what it held. */
enum err store_ready(struct sqlite_store *s, struct error *e)
{
    enum err err = file_in_place(s, e);

    if (err != ERR_OK || !s->broken)
        return err;
    err = wal_in_place(s, e);
    if (err != ERR_OK)
        return err;
    backup_lose(s);
    others_before_close(s);
    reading_halt(s);
    db_close(&s->reader);
    db_close(&s->writer);
    s->wal = (struct file_id){0};
    err = others_are_gone(s, e);
    return err == ERR_OK ? connect_both(s, false, e) : err;
}

enum err store_ready_to_write(struct sqlite_store *s, struct error *e)
{
    enum err err = store_ready(s, e);

    return err == ERR_OK ? wal_in_place(s, e) : err;
}

/* Before the commit its place was looked at, to write nothing in vain; but it may have been lost
 * since then. */
enum err store_committed(struct sqlite_store *s, struct error *e)
{
    enum err err = file_in_place(s, e);

    if (err == ERR_OK)
        err = wal_in_place(s, e);
    if (err != ERR_OK)
        e->code = err = ERR_UNKNOWN;
    return err;
}

/* ---- the rest of the interface ---- */

static enum err sqlite_lease(struct store *base, const struct lease_try *want, struct arena *a,
                             struct lease *ret, struct error *e)
{
    (void)e;
    /* the folder's lock excludes everybody else; older starts had older epochs */
    *ret = (struct lease){.holder = arena_copy(a, want->holder),
                          .epoch = sqlite_store_of(base)->boot,
                          .until = want->now + want->length_ms};
    return ERR_OK;
}

/* A request is written here in the same process as the owner's, which is notified directly. */
static enum err sqlite_requested(struct store *base, struct slice locked_by, int64_t after_seq,
                                 size_t limit, struct arena *a, struct row_page *ret,
                                 struct error *e)
{
    (void)base;
    (void)locked_by;
    (void)after_seq;
    (void)limit;
    (void)a;
    (void)e;
    *ret = (struct row_page){0};
    return ERR_OK;
}

static const unsigned char *sqlite_secret(struct store *base)
{
    return sqlite_store_of(base)->secret;
}

static const char *sqlite_installation(struct store *base)
{
    return sqlite_store_of(base)->installation;
}

static uint64_t sqlite_boot(struct store *base)
{
    return sqlite_store_of(base)->boot;
}

static uint64_t sqlite_syncs(struct store *base)
{
    (void)base;
    return guard_syncs();
}

static int64_t sqlite_used_until(struct store *base)
{
    return sqlite_store_of(base)->used_until;
}

void sqlite_store_free(struct sqlite_store *s)
{
    ASSERT(!s->reading);
    (void)pthread_mutex_destroy(&s->reading_lock);
    sqlite_backup_end(&s->base);
    db_close(&s->reader);
    db_close(&s->writer); /* the last one: checkpoints and removes the WAL */
    if (s->lost_shm_fd >= 0)
        (void)close(s->lost_shm_fd);
    if (s->watch_fd >= 0)
        (void)close(s->watch_fd);
    if (s->file_fd >= 0)
        (void)close(s->file_fd); /* not sooner: it would take SQLite's locks with it */
    if (s->lock_fd >= 0)
        (void)close(s->lock_fd);
    free(s->wal_path);
    free(s->path);
    free(s->dir);
    free(s);
}

static void sqlite_close(struct store *base)
{
    sqlite_store_free(sqlite_store_of(base));
}

static const struct store_outbox_ops outbox_ops = {
    .read = sqlite_outbox_read,
    .settle = sqlite_outbox_settle,
    .targets = sqlite_outbox_targets,
    .list = sqlite_outbox_list,
    .apply = sqlite_outbox_do,
    .census = sqlite_outbox_census,
};

static const struct store_submission_ops submissions_ops = {
    .describe = sqlite_workflow_describe,
    .take = sqlite_submissions_take,
    .settle = sqlite_submissions_settle,
    .put = sqlite_submissions_put,
    .list = sqlite_submissions_list,
    .apply = sqlite_submissions_verb,
};

static const struct store_notice_ops notices_ops = {
    .read = sqlite_notices_read,
    .refused = sqlite_notices_refused,
    .told = sqlite_notices_told,
    .settle = sqlite_notices_settle,
    .put = sqlite_notices_put,
};

static const struct store_alert_ops alerts_ops = {
    .stopped = sqlite_stopped,
    .put = sqlite_alert_put,
    .list = sqlite_alert_list,
    .acknowledge = sqlite_alert_acknowledge,
};

static const struct store_schedule_ops schedules_ops = {
    .write = sqlite_schedule_write,
    .look = sqlite_schedule_look,
    .list = sqlite_schedule_list,
    .version = sqlite_schedule_version,
    .remove = sqlite_schedule_remove,
};

static const struct store_session_ops sessions_ops = {
    .put = sqlite_session_put,
    .remove = sqlite_session_delete,
    .list = sqlite_session_list,
};

static const struct store_lock_ops locks_ops = {
    .list = sqlite_lock_list,
    .held = sqlite_lock_held,
};

static const struct store_item_ops items_ops = {
    .read = sqlite_items_read,
    .outputs = sqlite_items_outputs,
};

static const struct store_operation_ops operations_ops = {
    .put = sqlite_operation_put,
    .list = sqlite_operation_list,
};

static const struct store_retention_ops retention_ops = {
    .look = sqlite_retire_look,
    .retire = sqlite_retire,
    .reserved = sqlite_reserved,
    .sweep = sqlite_reserved_sweep,
};

static const struct store_count_ops counts_ops = {
    .census = sqlite_census,
    .owners = sqlite_owners,
};

static const struct store_backup_ops backup_ops = {
    .begin = sqlite_backup_begin,
    .step = sqlite_backup_step,
    .end = sqlite_backup_end,
};

static const struct store_ops ops = {
    .close = sqlite_close,
    .reading = sqlite_reading_new,
    .commit = sqlite_commit,
    .probe = sqlite_probe,
    .get = sqlite_get,
    .glance = sqlite_glance,
    .overdue = sqlite_overdue,
    .list = sqlite_list,
    .shrink = sqlite_shrink,
    .workflow_put = sqlite_workflow_put,
    .workflow_get = sqlite_workflow_get,
    .workflow_list = sqlite_workflow_list,
    .watch = sqlite_watch,
    .token_put = sqlite_token_put,
    .token_change = sqlite_token_change,
    .token_delete = sqlite_token_delete,
    .token_list = sqlite_token_list,
    .audit_list = sqlite_audit_list,
    .audit_put = sqlite_audit_put,
    .agent_put = sqlite_agent_put,
    .agent_since = sqlite_agent_since,
    .overrun_count = sqlite_overrun_count,
    .overrun_list = sqlite_overrun_list,
    .requested = sqlite_requested,
    .lease = sqlite_lease,
    .secret = sqlite_secret,
    .installation = sqlite_installation,
    .boot = sqlite_boot,
    .used_until = sqlite_used_until,
    .syncs = sqlite_syncs,
    .outbox = &outbox_ops,
    .submissions = &submissions_ops,
    .notices = &notices_ops,
    .alerts = &alerts_ops,
    .locks = &locks_ops,
    .items = &items_ops,
    .operations = &operations_ops,
    .schedules = &schedules_ops,
    .retention = &retention_ops,
    .counts = &counts_ops,
    .sessions = &sessions_ops,
    .backup = &backup_ops,
};

struct sqlite_store *sqlite_store_new(const char *dir)
{
    struct sqlite_store *s = calloc(1, sizeof *s);

    ASSERT(s);
    *s = (struct sqlite_store){.base.ops = &ops,
                               .lock_fd = -1,
                               .file_fd = -1,
                               .copy.fd = -1,
                               .watch_fd = -1,
                               .lost_shm_fd = -1,
                               .reading_lock = PTHREAD_MUTEX_INITIALIZER};
    s->dir = strdup(dir);
    ASSERT(s->dir);
    int len = asprintf(&s->path, "%s/intact.db", dir);
    ASSERT(len > 0);
    len = asprintf(&s->wal_path, "%s-wal", s->path);
    ASSERT(len > 0);
    return s;
}

static enum err messages_known(struct sqlite_store *s, struct error *e)
{
    int rc = messages_begin(s);

    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "find the last message");
}

enum err sqlite_store_open(const char *dir, struct store **ret, struct error *e)
{
    struct sqlite_store *s = sqlite_store_new(dir);

    enum err err = folder_lock(s, e);
    if (err == ERR_OK) {
        folder_used(s);
        folder_sweep(s);
    }
    if (err == ERR_OK)
        err = connect_both(s, true, e);
    if (err == ERR_OK)
        err = schema_boot(s, e);
    if (err == ERR_OK)
        err = messages_known(s, e);
    if (err != ERR_OK) {
        sqlite_store_free(s);
        return err;
    }
    *ret = &s->base;
    return ERR_OK;
}

/* PASSIVE: does not wait. What a reader still needs is left for another time. */
static void checkpoint_now(struct sqlite_store *s)
{
    int frames = 0;
    int done = 0;

    int rc = fault() ? SQLITE_IOERR
             : s->wal_frames >= CHECKPOINT_URGENT_FRAMES
                 ? checkpoint_begin(s, SQLITE_CHECKPOINT_PASSIVE, &frames, &done)
                 : sqlite3_wal_checkpoint_v2(s->writer.handle, "main", SQLITE_CHECKPOINT_PASSIVE,
                                             &frames, &done);
    if ((rc & 0xff) == SQLITE_BUSY) { /* others write just now */
        s->checkpoint_at = s->wal_frames + CHECKPOINT_FRAMES / 64;
        s->quiet_at = clock_steady_ms() + QUIET_MS;
    } else if (rc == SQLITE_OK && done == frames) {
        s->wal_frames = 0; /* the next commit begins the WAL anew, over the old one */
        s->checkpoint_at = CHECKPOINT_FRAMES;
    } else {
        s->checkpoint_at = s->wal_frames + CHECKPOINT_FRAMES;
        s->quiet_at = clock_steady_ms() + QUIET_MS;
    }
}

/* A reader without pauses always holds a snapshot, and the WAL grows. When it is long, the reader
 * is asked to pause, and the checkpoint is tried again later. */
static void checkpoint(struct sqlite_store *s)
{
    bool is_long = s->wal_frames >= s->checkpoint_at;
    bool paused = reading_pause(s, is_long);

    if (paused || !is_long || s->wal_frames >= s->checkpoint_at + CHECKPOINT_FRAMES)
        checkpoint_now(s);
    if (paused)
        reading_go_on(s);
}

static void mark_time(struct sqlite_store *s)
{
    if (s->now >= s->marked_at && s->now < s->marked_at + MARK_EVERY_MS)
        return;
    folder_mark_time(s);
    s->marked_at = s->now;
}

bool sqlite_store_maintain(struct store *base, bool idle)
{
    struct sqlite_store *s = sqlite_store_of(base);

    if (s->wrote && s->now)
        mark_time(s);
    s->wrote = false;
    if (s->broken || s->wal_frames == 0)
        return false;
    if (idle || s->wal_frames >= s->checkpoint_at || clock_steady_ms() >= s->quiet_at)
        checkpoint(s);
    return s->wal_frames > 0;
}
