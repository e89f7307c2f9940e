/*
 * A backup while the store is in use: SQLite's own, from the connection that writes, so that what
 * is written meanwhile is carried over and nothing ever begins anew but after a transaction that
 * was undone. Between steps nothing of the store is held: the WAL is emptied as always.
 *
 * The copy is never synced. It is sent away and forgotten, and a start after a crash removes it.
 */

#include "store/sqlite/body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "store/sqlite/guard.h"

enum {
    RESTARTS_MAX = 20,
    RESTARTS_HELD = 3,                /* from then on applications have to wait for its end */
    CHUNK_PAGES = 16,                 /* between two looks at the clock */
    ROOM_KEPT_MAX = 64 * 1024 * 1024, /* for the store itself ... */
    ROOM_KEPT_PART = 20               /* ... or this part of the disk, if it is less */
};

static enum err copy_failed(struct sqlite_store *s, int rc, const char *what, struct error *e)
{
    enum err err = rc_err_now(rc);

    return error_set(e, err, "the backup in %s: cannot %s: %s (SQLite %d)%s", s->dir, what,
                     sqlite3_errstr(rc), rc,
                     err == ERR_FULL ? "; free some space on its disk" : "");
}

static void copy_path(struct sqlite_store *s, struct buf *b)
{
    buf_fmt(b, "%s/" BACKUP_PART, s->dir);
}

/* Ends it without an error. SQLite repeats an error that was reported before. */
static void copy_drop(struct sqlite_store *s)
{
    CLEANUP(buf_fini) struct buf path = {0};
    struct copy *c = &s->copy;

    guard_release(s->writer.handle);
    c->holds = false;
    (void)sqlite3_backup_finish(c->handle);
    db_close(&c->to);
    if (c->fd >= 0) {
        (void)close(c->fd);
        copy_path(s, &path);
        (void)unlink(path.ptr); /* the next start tries again */
    }
    *c = (struct copy){.fd = -1};
}

void backup_lose(struct sqlite_store *s)
{
    bool lost = s->copy.handle || s->copy.lost;

    copy_drop(s);
    s->copy.lost = lost;
}

/* A copy must not take the last of the disk from those who write. `left` bytes are still to come.
 */
static enum err room_check(struct sqlite_store *s, int64_t left, struct error *e)
{
    struct statvfs st;

    if (outside_fails() || statvfs(s->dir, &st) != 0)
        return folder_failed(s->dir, e, "ask for the free space of the folder", NULL);
    int64_t all = (int64_t)(st.f_blocks * st.f_frsize);
    int64_t room = (int64_t)(st.f_bavail * st.f_frsize);
    int64_t kept = min_i64(ROOM_KEPT_MAX, all / ROOM_KEPT_PART);
    if (room >= left + kept)
        return ERR_OK;
    return error_set(e, ERR_FULL,
                     "the backup needs %" PRId64 " MiB more on the disk of %s, and %" PRId64
                     " MiB for the store beside it; %" PRId64 " MiB are free; free some space, or "
                     "stop the server and copy from the folder with `intact backup --data`",
                     (left >> 20) + 1, s->dir, (kept >> 20) + 1, room >> 20);
}

static enum err audit_write(struct sqlite_store *s, const struct audit *audit, struct error *e)
{
    bool unknown = false;

    if (!audit)
        return ERR_OK;
    int rc = db_exec(&s->writer, "BEGIN IMMEDIATE");
    if (rc == SQLITE_OK)
        rc = audit_insert(&s->writer, audit);
    if (rc == SQLITE_OK)
        rc = db_commit(&s->writer, &unknown);
    if (rc == SQLITE_OK)
        return store_committed(s, e);
    db_rollback(&s->writer);
    (void)store_failed(s, rc, e, "write down who asked for a backup");
    if (unknown)
        e->code = ERR_UNKNOWN;
    return e->code;
}

static enum err copy_open(struct sqlite_store *s, struct error *e)
{
    CLEANUP(buf_fini) struct buf path = {0};
    struct copy *c = &s->copy;

    copy_path(s, &path);
    (void)unlink(path.ptr); /* what an earlier one could not remove */
    c->fd = outside_fails()
                ? -1
                : open(path.ptr, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (c->fd < 0)
        return folder_failed(s->dir, e, "make", BACKUP_PART);
    int rc = db_open(&c->to, path.ptr, SQLITE_OPEN_READWRITE);
    if (rc == SQLITE_OK)
        rc = db_exec(&c->to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
                             "PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -2000");
    if (rc == SQLITE_OK && !fault())
        c->handle = sqlite3_backup_init(c->to.handle, "main", s->writer.handle, "main");
    if (rc == SQLITE_OK && !c->handle)
        rc = SQLITE_IOERR;
    return rc == SQLITE_OK ? ERR_OK : copy_failed(s, rc, "begin it", e);
}

enum err sqlite_backup_begin(struct store *base, const struct audit *audit, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    int64_t pages = 0;
    int64_t size = 0;

    ASSERT(!s->copy.handle);
    s->copy.lost = false;
    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = db_number(&s->writer, "PRAGMA page_count", &pages);
    if (rc == SQLITE_OK)
        rc = db_number(&s->writer, "PRAGMA page_size", &size);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read its size");
    err = room_check(s, pages * size, e);
    if (err == ERR_OK)
        err = copy_open(s, e);
    if (err == ERR_OK)
        err = audit_write(s, audit, e);
    if (err != ERR_OK)
        copy_drop(s);
    return err;
}

/* Write version and read version in the head of the file: 2 asks for a WAL. */
bool backup_settle(int fd)
{
    static const char rollback[2] = {1, 1};

    return !outside_fails() && pwrite(fd, rollback, sizeof rollback, 18) == sizeof rollback;
}

/* All pages are there. It loses its name: whatever happens now, nothing of it stays. */
static enum err copy_hand_over(struct sqlite_store *s, int *ret_fd, struct error *e)
{
    CLEANUP(buf_fini) struct buf path = {0};
    struct copy *c = &s->copy;

    guard_release(s->writer.handle);
    c->holds = false;
    int rc = sqlite3_backup_finish(c->handle);
    c->handle = NULL;
    if (rc == SQLITE_OK && fault())
        rc = SQLITE_IOERR;
    db_close(&c->to);
    if (rc == SQLITE_OK && !backup_settle(c->fd))
        rc = SQLITE_IOERR_WRITE;
    if (rc != SQLITE_OK)
        return copy_failed(s, rc, "end it", e);
    copy_path(s, &path);
    if (unlink(path.ptr) != 0)
        return folder_failed(s->dir, e, "take the name from", BACKUP_PART);
    *ret_fd = c->fd;
    c->fd = -1;
    return ERR_OK;
}

static int copy_pages(struct copy *c, struct backup_step *b, int64_t page_size)
{
    const int64_t until = clock_steady_us() + b->budget_us;
    int rc = SQLITE_OK;

    errno = 0;
    while (rc == SQLITE_OK) {
        rc = fault() ? SQLITE_IOERR : sqlite3_backup_step(c->handle, CHUNK_PAGES);
        b->copied += CHUNK_PAGES * page_size;
        if (clock_steady_us() >= until)
            break;
    }
    b->left = sqlite3_backup_remaining(c->handle) * page_size;
    b->whole = sqlite3_backup_pagecount(c->handle) * page_size;
    return rc;
}

/* Where every other transaction is undone, or applications write all the time, a copy that begins
 * anew each time would never end. Those can be made to wait. */
static enum err restarts_check(struct sqlite_store *s, const struct backup_step *b, struct error *e)
{
    struct copy *c = &s->copy;
    int64_t done = b->whole - b->left;

    c->restarts += done <= c->done;
    if (c->restarts >= RESTARTS_HELD && !c->holds)
        c->holds = guard_hold(s->writer.handle);
    c->done = done;
    if (c->restarts <= RESTARTS_MAX)
        return ERR_OK;
    return error_set(e, ERR_BUSY,
                     "the backup was given up: what is written into the state store %s fails again "
                     "and again, and each time it has to begin anew",
                     s->path);
}

static enum err copy_go_on(struct sqlite_store *s, struct backup_step *b, struct error *e)
{
    int64_t page_size = 0;

    int rc = db_number(&s->writer, "PRAGMA page_size", &page_size);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read its size");
    rc = copy_pages(&s->copy, b, page_size);
    if (rc == SQLITE_DONE)
        return copy_hand_over(s, &b->fd, e);
    if (rc != SQLITE_OK)
        return copy_failed(s, rc, "copy the store", e);
    enum err err = restarts_check(s, b, e);
    return err == ERR_OK ? room_check(s, b->left, e) : err;
}

enum err sqlite_backup_step(struct store *base, struct backup_step *b, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);

    *b = (struct backup_step){.budget_us = b->budget_us, .fd = -1};
    enum err err = store_ready(s, e);
    if (err == ERR_OK && s->copy.lost)
        err = error_set(e, ERR_IO,
                        "the backup was given up: the state store %s failed meanwhile, and was "
                        "opened again",
                        s->path);
    if (err == ERR_OK) {
        ASSERT(s->copy.handle);
        err = copy_go_on(s, b, e);
    }
    if (err != ERR_OK)
        copy_drop(s);
    return err;
}

void sqlite_backup_end(struct store *base)
{
    copy_drop(sqlite_store_of(base));
}
