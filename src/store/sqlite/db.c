/*
 * A connection to the file and its prepared statements: open, run, bind, commit. Every call that
 * may fail in real life may fail by an injected fault.
 */
#include "store/sqlite/body.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "store/sqlite/guard.h"

int db_open(struct db *d, const char *path, int flags)
{
    ASSERT(!d->handle);
    errno = 0;
    int rc =
        fault() ? SQLITE_CANTOPEN
                : sqlite3_open_v2(path, &d->handle,
                                  flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, guard_vfs());
    if (rc != SQLITE_OK) {
        int code = errno;
        db_close(d);
        errno = code;
        return rc;
    }
    /* Views and triggers that were planted in the file may only use functions without effects. */
    (void)sqlite3_db_config(d->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    return rc;
}

void db_close(struct db *d)
{
    for (size_t i = 0; i < SQL_COUNT; i++)
        (void)sqlite3_finalize(d->stmts[i]); /* repeats the last failure, which was reported */
    int rc = sqlite3_close(d->handle);
    ASSERT(rc == SQLITE_OK); /* it only fails if a statement was forgotten */
    *d = (struct db){0};
}

int db_exec(struct db *d, const char *sql)
{
    errno = 0;
    return fault() ? SQLITE_IOERR : sqlite3_exec(d->handle, sql, NULL, NULL, NULL);
}

int db_number(struct db *d, const char *sql, int64_t *ret)
{
    sqlite3_stmt *q = NULL;
    int rc = fault() ? SQLITE_IOERR : sqlite3_prepare_v2(d->handle, sql, -1, &q, NULL);

    if (rc == SQLITE_OK)
        rc = query_step(q);
    if (rc == SQLITE_DONE)
        rc = SQLITE_CORRUPT;
    if (rc == SQLITE_ROW) {
        *ret = sqlite3_column_int64(q, 0);
        rc = query_step(q); /* what changes something is committed only at its end */
    }
    (void)sqlite3_finalize(q);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int db_query(struct db *d, enum sql which, sqlite3_stmt **ret)
{
    sqlite3_stmt **q = &d->stmts[which];
    bool is_new = !*q;
    int rc = SQLITE_OK;

    if (is_new)
        rc = fault() ? SQLITE_IOERR
                     : sqlite3_prepare_v3(d->handle, sql_text(which), -1, SQLITE_PREPARE_PERSISTENT,
                                          q, NULL);
    if (rc != SQLITE_OK)
        return rc;
    if (is_new && which >= SQL_INSERT && which < SQL_TASK_WRITES_END)
        row_params(d, which);
    *ret = *q;
    return SQLITE_OK;
}

int query_step(sqlite3_stmt *q)
{
    errno = 0;
    return fault() ? SQLITE_IOERR : sqlite3_step(q);
}

int query_run(sqlite3_stmt *q)
{
    int rc = query_step(q);

    ASSERT(rc != SQLITE_ROW);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void query_end(sqlite3_stmt **q)
{
    (void)sqlite3_reset(*q); /* repeats the result of the last step */
}

void bind_text(sqlite3_stmt *q, int i, struct slice s)
{
    int rc = sqlite3_bind_text64(q, i, s.ptr, s.len, SQLITE_STATIC, SQLITE_UTF8);

    ASSERT(rc == SQLITE_OK);
}

void bind_number(sqlite3_stmt *q, int i, int64_t v)
{
    int rc = sqlite3_bind_int64(q, i, v);

    ASSERT(rc == SQLITE_OK);
}

void bind_time(sqlite3_stmt *q, int i, int64_t at)
{
    int rc = at ? sqlite3_bind_int64(q, i, at) : sqlite3_bind_null(q, i);

    ASSERT(rc == SQLITE_OK);
}

struct slice query_text(sqlite3_stmt *q, int col)
{
    const char *text = (const char *)sqlite3_column_text(q, col);

    return text ? (struct slice){text, (size_t)sqlite3_column_bytes(q, col)} : SLICE_NONE;
}

void db_rollback(struct db *d)
{
    if (d->handle && !sqlite3_get_autocommit(d->handle))
        (void)sqlite3_exec(d->handle, "ROLLBACK", NULL, NULL, NULL); /* the cause was reported */
}

/* A disk that is full stops the writing of the WAL before its commit mark; a lock was never had.
 * After anything else the mark may or may not have reached the disk. The fault after the commit
 * simulates an answer that was lost. */
int db_commit(struct db *d, bool *ret_unknown)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    int rc = db_query(d, SQL_COMMIT, &q);

    *ret_unknown = false;
    if (rc != SQLITE_OK)
        return rc;
    rc = query_run(q);
    if (rc == SQLITE_OK && fault())
        rc = SQLITE_IOERR;
    *ret_unknown = rc != SQLITE_OK && (rc & 0xff) != SQLITE_FULL && (rc & 0xff) != SQLITE_BUSY;
    return rc;
}

enum err rc_err(int rc)
{
    switch (rc & 0xff) { /* the first byte is the kind, the rest are details */
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return ERR_OK;
    case SQLITE_FULL:
        return ERR_FULL;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
        return ERR_BUSY;
    case SQLITE_NOTADB:
        return ERR_NOT_A_STORE;
    case SQLITE_CORRUPT:
    case SQLITE_ERROR: /* a statement of ours does not fit the schema: it was tampered with */
        return ERR_CORRUPT;
    case SQLITE_TOOBIG:
        return ERR_TOO_BIG;
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
        return ERR_INVALID;
    default: /* IOERR, CANTOPEN, READONLY, PERM, NOMEM, PROTOCOL, ... */
        return ERR_IO;
    }
}

const char *errno_advice(int code)
{
    switch (code) {
    case ENOSPC:
        return "free some space on its disk";
    case EDQUOT:
        return "free some space, or raise the quota of the server's user";
    case EFBIG:
        return "let the server write larger files (ulimit -f, LimitFSIZE=)";
    case EMFILE:
    case ENFILE:
        return "let the server have more file descriptors (ulimit -n, LimitNOFILE=)";
    case EROFS:
        return "its file system is read-only: find out why (dmesg), and make it writable";
    case EACCES:
    case EPERM:
        return "give the server's user permission to read and write it";
    case EIO:
        return "its disk fails: look at it (dmesg)";
    default:
        return NULL;
    }
}

static const char *advice(enum err err)
{
    switch (err) {
    case ERR_FULL:
        return errno_advice(ENOSPC);
    case ERR_BUSY:
        return "another program is writing to it; end that program";
    case ERR_CORRUPT:
    case ERR_NOT_A_STORE:
        return "the file is damaged; stop the server and restore it from a backup";
    case ERR_IO:
        return "check its disk and the permissions of its folder";
    case ERR_OK:
    case ERR_UNKNOWN:
    case ERR_PARSE:
    case ERR_INVALID:
    case ERR_NOT_FOUND:
    case ERR_CONFLICT:
    case ERR_TAKEN:
    case ERR_TOO_BIG:
    case ERR_NEWER:
    case ERR_COPIED:
    case ERR_LOCKED:
        break;
    }
    return "it cannot be stored";
}

/* The system's last error, for a call of SQLite's that failed with rc: errno was 0 before it and is
 * what its last failure left. 0: nothing, or nothing that explains it. SQLite reports it to its
 * callers only for some statements, and COMMIT is not one of them. */
static int system_errno(int rc)
{
    switch (rc) {
    case SQLITE_IOERR_READ:
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
    case SQLITE_IOERR_TRUNCATE:
    case SQLITE_IOERR_FSTAT:
    case SQLITE_IOERR_SHMOPEN:
    case SQLITE_IOERR_SHMSIZE:
    case SQLITE_IOERR_SHMMAP:
    case SQLITE_IOERR_LOCK:
    case SQLITE_CANTOPEN:
        return errno;
    default:
        return 0;
    }
}

/* SQLite knows only of disks that are full. */
static bool is_quota(enum err err, int code)
{
    return err == ERR_IO && code == EDQUOT;
}

enum err rc_err_now(int rc)
{
    enum err err = rc_err(rc);

    return is_quota(err, system_errno(rc)) ? ERR_FULL : err;
}

/* A server that runs tries again and again; one that starts does not. */
static const char *goes_on(const struct sqlite_store *s, enum err err)
{
    bool will = err == ERR_FULL || err == ERR_BUSY || err == ERR_IO;

    return s->boot && will ? "; it goes on by itself" : "";
}

/* Another program has a transaction open. */
static enum err busy_failed(struct sqlite_store *s, struct error *e, const char *what)
{
    char who[120];
    int64_t since = s->busy_since ? (clock_steady_ms() - s->busy_since) / 1000 : 0;

    others_tell(s, who, sizeof who);
    if (since > 0)
        return error_set(e, ERR_BUSY,
                         "state store %s: cannot %s: %s, for %" PRId64 " s by now; end that "
                         "transaction, or that program%s",
                         s->path, what, who, since, goes_on(s, ERR_BUSY));
    return error_set(e, ERR_BUSY,
                     "state store %s: cannot %s: %s; end that transaction, or that program%s",
                     s->path, what, who, goes_on(s, ERR_BUSY));
}

enum err store_failed(struct sqlite_store *s, int rc, struct error *e, const char *what)
{
    enum err err = rc_err(rc);
    int code = system_errno(rc);
    const char *why = code ? strerrordesc_np(code) : NULL;

    ASSERT(err != ERR_OK);
    if (rc == SQLITE_INTERRUPT)
        return error_set(e, ERR_BUSY, "state store %s: cannot %s: it was broken off; try again",
                         s->path, what);
    if (err != ERR_FULL && err != ERR_BUSY && err != ERR_INVALID && err != ERR_TOO_BIG)
        s->broken = true;
    if (is_quota(err, code))
        err = ERR_FULL;
    if (err == ERR_BUSY && s->writer.handle)
        return busy_failed(s, e, what);
    const char *remedy = errno_advice(code);
    return error_set(e, err, "state store %s: cannot %s: %s%s%s (SQLite %d); %s%s", s->path, what,
                     sqlite3_errstr(rc), why ? ", " : "", why ? why : "", rc,
                     remedy ? remedy : advice(err), goes_on(s, err));
}
