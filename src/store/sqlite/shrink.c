/*
 * Gives space back. Deleted tasks leave free pages, which later tasks use. If there are many more
 * of them, pages from the end of the file are moved into them, a few at a time, and the file
 * becomes shorter. The file must have been made for that (auto_vacuum = INCREMENTAL): files from
 * before version 6 are not, until sqlite_store_compact() has rebuilt them.
 */
#include "store/sqlite/body.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/clock.h"
#include "base/fault.h"

enum {
    INCREMENTAL = 2,    /* as PRAGMA auto_vacuum has it */
    PAGES_AT_ONCE = 16, /* between two looks at the clock */
    FREE_MIN = 1024,    /* pages that stay free ... */
    FREE_PART = 10,     /* ... and one of so many, for what comes next */
    ROOM_TIMES = 2,     /* meanwhile the compacted pages are in a temporary file and in the WAL */
};

/* How many pages are to go. */
static int surplus(struct db *d, int64_t *ret)
{
    int64_t mode = 0;
    int64_t pages = 0;
    int64_t unused = 0;

    int rc = db_number(d, "PRAGMA auto_vacuum", &mode);
    if (rc == SQLITE_OK)
        rc = db_number(d, "PRAGMA page_count", &pages);
    if (rc == SQLITE_OK)
        rc = db_number(d, "PRAGMA freelist_count", &unused);
    *ret = mode == INCREMENTAL ? max_i64(0, unused - max_i64(FREE_MIN, pages / FREE_PART)) : 0;
    return rc;
}

/* One transaction, for each costs a wait for the disk. */
static int shrink_some(struct db *d, int64_t left, int64_t budget_us, int64_t *ret_done)
{
    int64_t until = clock_steady_us() + budget_us;
    char sql[64];
    bool unknown;
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    *ret_done = 0;
    while (rc == SQLITE_OK && *ret_done < left && (*ret_done == 0 || clock_steady_us() < until)) {
        int64_t pages = min_i64(left - *ret_done, PAGES_AT_ONCE);
        (void)snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%" PRId64 ")", pages);
        rc = db_exec(d, sql);
        *ret_done += pages;
    }
    if (rc == SQLITE_OK)
        rc = db_commit(d, &unknown); /* whether it is shorter or not changes nothing */
    db_rollback(d);
    return rc;
}

/* Empties the WAL as well, if there is no reader. */
static int wal_truncate(struct sqlite_store *s)
{
    int frames = 0;
    int done = 0;

    int rc = fault() ? SQLITE_IOERR
                     : sqlite3_wal_checkpoint_v2(s->writer.handle, "main",
                                                 SQLITE_CHECKPOINT_TRUNCATE, &frames, &done);
    if (rc == SQLITE_OK)
        s->wal_frames = 0;
    return (rc & 0xff) == SQLITE_BUSY ? SQLITE_OK : rc;
}

enum err sqlite_shrink(struct store *base, struct shrink *k, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    int64_t left = 0;
    int64_t done = 0;

    enum err err = store_ready_to_write(s, e);
    if (err != ERR_OK)
        return err;
    int rc = surplus(&s->writer, &left);
    if (rc == SQLITE_OK && left > 0)
        rc = shrink_some(&s->writer, left, k->budget_us, &done);
    if (rc == SQLITE_OK && done > 0 && done == left)
        rc = wal_truncate(s);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "make the file shorter");
    k->pages = (uint64_t)done;
    k->more = done < left;
    return ERR_OK;
}

/* ---- the whole file at once, while it is not in use ---- */

static enum err room_check(struct sqlite_store *s, int64_t needed, struct error *e)
{
    struct statvfs v;

    if (fault() || statvfs(s->dir, &v) != 0)
        return error_set(e, ERR_IO, "cannot tell how much room %s has: errno %d", s->dir, errno);
    int64_t room = (int64_t)v.f_bavail * (int64_t)v.f_frsize;
    if (room >= needed)
        return ERR_OK;
    return error_set(e, ERR_FULL,
                     "compacting %s takes %" PRId64 " MiB beside it, meanwhile, and its disk has "
                     "%" PRId64 " MiB: free some",
                     s->path, needed >> 20, room >> 20);
}

static int sizes(struct db *d, int64_t *ret_size, int64_t *ret_used)
{
    int64_t pages = 0;
    int64_t unused = 0;
    int64_t page = 0;

    int rc = db_number(d, "PRAGMA page_count", &pages);
    if (rc == SQLITE_OK)
        rc = db_number(d, "PRAGMA freelist_count", &unused);
    if (rc == SQLITE_OK)
        rc = db_number(d, "PRAGMA page_size", &page);
    *ret_size = pages * page;
    *ret_used = (pages - unused) * page;
    return rc;
}

/* VACUUM writes the whole into a nameless file and from there, as one transaction, into the log:
 * after a crash the file is either as it was or as it is to be. */
static int vacuum(struct sqlite_store *s)
{
    int rc = setenv("SQLITE_TMPDIR", s->dir, 1) == 0 ? SQLITE_OK : SQLITE_NOMEM;

    db_close(&s->reader);
    if (rc == SQLITE_OK)
        rc = db_exec(&s->writer,
                     "PRAGMA temp_store = FILE; PRAGMA auto_vacuum = INCREMENTAL; VACUUM");
    return rc == SQLITE_OK ? wal_truncate(s) : rc;
}

enum err sqlite_store_compact(struct store *base, struct sqlite_compact *c, struct error *e)
{
    struct sqlite_store *s = sqlite_store_of(base);
    int64_t used = 0;
    int64_t ignored = 0;

    int rc = sizes(&s->writer, &c->before, &used);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "look at its size");
    enum err err = room_check(s, used * ROOM_TIMES, e);
    if (err != ERR_OK)
        return err;
    s->broken = true; /* whatever comes of it, the connections are not as they were */
    rc = vacuum(s);
    if (rc == SQLITE_OK)
        rc = sizes(&s->writer, &c->after, &ignored);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "compact the file");
}
