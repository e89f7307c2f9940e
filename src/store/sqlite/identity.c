/*
 * Which file the store is. Two servers that continue from one state would do the same work twice,
 * so the store remembers the inode of its file and when that was made: another file with the same
 * content is found. Both survive a reboot, another mount and a new name of the folder; the device
 * number does not and is left out. A copy of a whole volume keeps them.
 */
#include "store/sqlite/body.h"

#include <fcntl.h>

#include "base/fault.h"

/* born_ns 0: the file system has no such time. */
struct identity {
    int64_t inode, born_ns;
};

static bool identity_of(const char *path, struct identity *ret)
{
    struct statx st;

    if (fault() || statx(AT_FDCWD, path, 0, STATX_INO | STATX_BTIME, &st) != 0)
        return false;
    *ret = (struct identity){.inode = (int64_t)st.stx_ino};
    if (st.stx_mask & STATX_BTIME)
        ret->born_ns = st.stx_btime.tv_sec * INT64_C(1000000000) + st.stx_btime.tv_nsec;
    return true;
}

static bool identity_eq(const struct identity *x, const struct identity *y)
{
    bool tells = x->born_ns != 0 && y->born_ns != 0;

    return x->inode == y->inode && (!tells || x->born_ns == y->born_ns);
}

int identity_write(struct db *d, const char *path)
{
    sqlite3_stmt *q = NULL;
    struct identity id;

    if (!identity_of(path, &id))
        return SQLITE_IOERR_FSTAT;
    int rc = fault() ? SQLITE_IOERR
                     : sqlite3_prepare_v2(d->handle,
                                          "INSERT OR REPLACE INTO file (one, inode, born_ns) "
                                          "VALUES (1, ?1, ?2)",
                                          -1, &q, NULL);
    if (rc == SQLITE_OK) {
        bind_number(q, 1, id.inode);
        bind_time(q, 2, id.born_ns);
        rc = query_run(q);
    }
    (void)sqlite3_finalize(q);
    return rc;
}

int identity_is_kept(struct db *d, const char *path, bool *ret)
{
    sqlite3_stmt *q = NULL;
    struct identity stored = {0};
    struct identity now;

    if (!identity_of(path, &now))
        return SQLITE_IOERR_FSTAT;
    int rc = fault()
                 ? SQLITE_IOERR
                 : sqlite3_prepare_v2(d->handle, "SELECT inode, born_ns FROM file", -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = query_step(q);
    if (rc == SQLITE_ROW)
        stored = (struct identity){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)};
    else if (rc == SQLITE_DONE)
        rc = SQLITE_CORRUPT;
    (void)sqlite3_finalize(q);
    if (rc != SQLITE_ROW)
        return rc;
    *ret = identity_eq(&stored, &now);
    return SQLITE_OK;
}

int identity_renew(struct db *d, const char *path, int64_t version)
{
    int rc = db_exec(d, "BEGIN IMMEDIATE");

    if (rc == SQLITE_OK && version >= IDENTITY_VERSION)
        rc = identity_write(d, path);
    if (rc == SQLITE_OK)
        rc = db_exec(d, "UPDATE node SET boot = max(boot, unixepoch())");
    if (rc == SQLITE_OK)
        rc = db_exec(d, "COMMIT");
    db_rollback(d);
    return rc;
}

enum err identity_check(struct sqlite_store *s, struct error *e)
{
    bool kept = false;

    int rc = identity_is_kept(&s->writer, s->path, &kept);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "tell whether it is the same file as before");
    if (kept)
        return ERR_OK;
    return error_set(e, ERR_COPIED,
                     "the state store %s is a copy: its original may be in use elsewhere, and two "
                     "servers that go on from one store do the same work twice; if the original "
                     "is not used any more, check it and go on with `intact serve --adopt --data "
                     "%s`",
                     s->path, s->dir);
}
