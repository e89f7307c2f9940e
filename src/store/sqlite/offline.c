/* Works on a store that no server uses: checks a file, makes a backup of a folder, and declares a
 * copied folder the one to continue from (--adopt). folder_take locks the folder meanwhile.
 * restore.c makes a folder from a backup; backup.c makes a backup while a server runs. */

#include "store/sqlite/body.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fault.h"

enum { CHUNK_PAGES = 1024 };

enum err offline_failed(int rc, const char *name, const char *what, struct error *e)
{
    enum err err = rc_err_now(rc);

    if (err == ERR_NOT_A_STORE)
        return error_set(e, err, "%s is not a state store", name);
    if (err == ERR_CORRUPT)
        return error_set(e, err, "%s is damaged: cannot %s: %s (SQLite %d); use another backup",
                         name, what, sqlite3_errstr(rc), rc);
    return error_set(e, err, "%s: cannot %s: %s (SQLite %d)", name, what, sqlite3_errstr(rc), rc);
}

enum err offline_version(struct db *d, const char *name, int64_t *ret_version, struct error *e)
{
    int64_t version = 0;
    int64_t id = 0;

    int rc = db_number(d, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK)
        rc = db_number(d, "PRAGMA application_id", &id);
    if (rc != SQLITE_OK)
        return offline_failed(rc, name, "read its version", e);
    if (id != APPLICATION_ID)
        return error_set(e, ERR_NOT_A_STORE, "%s is not a state store", name);
    if (version > schema_version)
        return error_set(e, ERR_NEWER,
                         "%s has schema version %" PRId64 ", this program knows up to %d; use the "
                         "newer program",
                         name, version, schema_version);
    if (version < 1)
        return error_set(e, ERR_CORRUPT, "%s has lost its schema; use another backup", name);
    *ret_version = version;
    return ERR_OK;
}

static int first_finding(void *arg, int count, char **values, char **names)
{
    struct buf *b = arg;

    (void)names;
    if (b->len == 0 && count > 0 && values[0])
        buf_str(b, values[0]);
    return 0;
}

enum err offline_integrity(struct db *d, const char *name, struct error *e)
{
    CLEANUP(buf_fini) struct buf finding = {0};

    int rc = fault() ? SQLITE_IOERR
                     : sqlite3_exec(d->handle, "PRAGMA integrity_check(1)", first_finding, &finding,
                                    NULL);
    if (rc != SQLITE_OK)
        return offline_failed(rc, name, "check it", e);
    if (slice_is(buf_view(&finding), "ok"))
        return ERR_OK;
    for (size_t i = 0; i < finding.len; i++)
        if (finding.ptr[i] == '\n')
            finding.ptr[i] = ' ';
    return error_set(e, ERR_CORRUPT, "%s is damaged: %.*s", name,
                     SLICE_ARG(slice_cut(buf_view(&finding), 120)));
}

enum err sqlite_file_check(const char *path, struct error *e)
{
    struct db d = {0};
    int64_t version = 0;
    enum err err;

    int rc = db_open(&d, path, SQLITE_OPEN_READONLY);
    if (rc != SQLITE_OK)
        return offline_failed(rc, path, "open it", e);
    err = offline_version(&d, path, &version, e);
    if (err == ERR_OK)
        err = offline_integrity(&d, path, e);
    db_close(&d);
    return err;
}

/* The folder is ours until the store is freed, its file open in `writer` and not looked into. */
static enum err folder_take(struct sqlite_store *s, struct error *e)
{
    if (access(s->path, F_OK) != 0)
        return error_set(e, ERR_NOT_FOUND, "there is no state store in %s; give its --data folder",
                         s->dir);
    enum err err = folder_lock(s, e);
    if (err == ERR_OK)
        err = folder_file(s, true, e);
    if (err != ERR_OK)
        return err;
    int rc = db_open(&s->writer, s->path, SQLITE_OPEN_READWRITE);
    if (rc != SQLITE_OK)
        return offline_failed(rc, s->path, "open it", e);
    (void)sqlite3_db_config(s->writer.handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return ERR_OK;
}

/* ---- adopting ---- */

static enum err adopt(struct sqlite_store *s, bool *ret_was_copy, struct error *e)
{
    int64_t version = 0;
    bool kept = true;

    enum err err = offline_version(&s->writer, s->path, &version, e);
    if (err != ERR_OK || version < IDENTITY_VERSION)
        return err;
    int rc = identity_is_kept(&s->writer, s->path, &kept);
    if (rc != SQLITE_OK)
        return offline_failed(rc, s->path, "tell whether it is a copy", e);
    if (kept)
        return ERR_OK;
    err = offline_integrity(&s->writer, s->path, e);
    if (err == ERR_CORRUPT)
        return error_wrap(e, "the copy cannot be used (a folder that is copied while a server uses "
                             "it is often torn; `intact backup` copies that one)");
    if (err != ERR_OK)
        return err;
    rc = identity_renew(&s->writer, s->path, version);
    if (rc != SQLITE_OK)
        return offline_failed(rc, s->path, "write down that it goes on", e);
    *ret_was_copy = true;
    return ERR_OK;
}

enum err sqlite_store_adopt(const char *dir, bool *ret_was_copy, struct error *e)
{
    struct sqlite_store *s = sqlite_store_new(dir);

    *ret_was_copy = false;
    enum err err = access(s->path, F_OK) == 0 ? folder_take(s, e) : ERR_OK; /* as any first start */
    if (err == ERR_OK && s->writer.handle)
        err = adopt(s, ret_was_copy, e);
    sqlite_store_free(s);
    return err;
}

/* ---- copying ---- */

static int copy_all(struct db *from, struct db *to, const struct sqlite_progress *p)
{
    sqlite3_backup *b =
        fault() ? NULL : sqlite3_backup_init(to->handle, "main", from->handle, "main");
    int rc = b ? SQLITE_OK : SQLITE_IOERR;

    while (rc == SQLITE_OK) {
        rc = fault() ? SQLITE_IOERR : sqlite3_backup_step(b, CHUNK_PAGES);
        int64_t whole = sqlite3_backup_pagecount(b);
        if (p && p->tell)
            p->tell(p->arg, whole - sqlite3_backup_remaining(b), whole);
    }
    int end = sqlite3_backup_finish(b);
    return rc == SQLITE_DONE ? end : rc;
}

static enum err copy_file(struct sqlite_store *s, const char *path, const struct sqlite_progress *p,
                          struct error *e)
{
    struct db to = {0};

    int rc = db_open(&to, path, SQLITE_OPEN_READWRITE);
    if (rc == SQLITE_OK)
        rc = db_exec(&to, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; "
                          "PRAGMA locking_mode = EXCLUSIVE");
    if (rc == SQLITE_OK)
        rc = copy_all(&s->writer, &to, p);
    db_close(&to);
    return rc == SQLITE_OK ? ERR_OK : offline_failed(rc, path, "copy the store to it", e);
}

static enum err file_settle(const char *path, struct error *e)
{
    int fd = outside_fails() ? -1 : open(path, O_RDWR | O_CLOEXEC);
    bool ok = fd >= 0 && backup_settle(fd) && !outside_fails() && fsync(fd) == 0;
    enum err err = ok ? ERR_OK : error_set(e, ERR_IO, "%s: cannot make it durable", path);

    if (fd >= 0)
        (void)close(fd); /* it was synced */
    return err;
}

enum err sqlite_folder_backup(const char *dir, const char *path, const struct sqlite_progress *p,
                              struct error *e)
{
    struct sqlite_store *s = sqlite_store_new(dir);
    int64_t version = 0;

    enum err err = folder_take(s, e);
    if (err == ERR_OK)
        err = offline_version(&s->writer, s->path, &version, e);
    if (err == ERR_OK)
        err = copy_file(s, path, p, e);
    if (err == ERR_OK)
        err = file_settle(path, e);
    sqlite_store_free(s);
    return err;
}
