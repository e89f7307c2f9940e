/*
 * Makes a folder from a backup. The new file is written beside the old one as DIR/restore.part,
 * checked and synced. Then each old file gets a second name in a folder of its own before any loses
 * its first name: intact.db is renamed first, so that no server starts here from then on, and its
 * WAL, which must never meet another file, before the new file gets its name.
 */
#include "store/sqlite/body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"

enum { BLOCK = 1 << 20, HEAD = 100 };

/* In the order in which they lose their names. */
static const char *const files[] = {"intact.db", "intact.db-wal", "intact.db-shm",
                                    "intact.db-journal"};

static void path_in(struct buf *b, const char *dir, const char *name)
{
    buf_clear(b);
    buf_fmt(b, "%s/%s", dir, name);
}

static bool is_there(const char *dir, const char *name)
{
    CLEANUP(buf_fini) struct buf path = {0};

    path_in(&path, dir, name);
    return faccessat(AT_FDCWD, path.ptr, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- the new file ---- */

/* Spares the copying of what is no backup at all. */
static enum err head_check(const struct sqlite_restore *r, const char *head, size_t len,
                           struct error *e)
{
    if (len >= HEAD && memcmp(head, "SQLite format 3", 16) == 0)
        return ERR_OK;
    return error_set(e, ERR_NOT_A_STORE, "%s is not a backup of a state store%s", r->name,
                     len == 0 ? ": it is empty" : "");
}

/* As much as there is, up to a block. -1: errno is set. */
static ssize_t read_block(int fd, char *block)
{
    size_t len = 0;

    while (len < BLOCK) {
        ssize_t n = outside_fails() ? -1 : read(fd, block + len, BLOCK - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

static bool write_block(int fd, const char *block, size_t len)
{
    while (len > 0) {
        ssize_t n = outside_fails() ? -1 : write(fd, block, len);
        if (n < 0)
            return false;
        block += n;
        len -= (size_t)n;
    }
    return true;
}

static enum err copy_bytes(const struct sqlite_restore *r, int to, struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char *block = buf_room(&b, BLOCK);
    bool first = true;
    ssize_t n;

    ASSERT(block);
    do {
        n = read_block(r->fd, block);
        if (n < 0)
            return error_set(e, ERR_IO, "%s: cannot read it: %s", r->name, strerrordesc_np(errno));
        enum err err = first ? head_check(r, block, (size_t)n, e) : ERR_OK;
        if (err != ERR_OK)
            return err;
        first = false;
        if (!write_block(to, block, (size_t)n))
            return folder_failed(r->dir, e, "write", RESTORE_PART);
    } while (n == BLOCK);
    if (outside_fails() || fsync(to) != 0)
        return folder_failed(r->dir, e, "write", RESTORE_PART);
    return ERR_OK;
}

static enum err part_write(const struct sqlite_restore *r, const char *part, struct error *e)
{
    (void)unlink(part); /* of one that was cut short */
    int fd =
        outside_fails() ? -1 : open(part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return folder_failed(r->dir, e, "make", RESTORE_PART);
    enum err err = folder_give(r->dir, RESTORE_PART)
                       ? copy_bytes(r, fd, e)
                       : folder_failed(r->dir, e, "give to the folder's owner", RESTORE_PART);
    (void)close(fd); /* it was synced */
    return err;
}

/* The first start makes another id. With the old key the copy would take results of attempts that
 * the original has handed out, from agents that do not send an id. */
static int installation_renew(struct db *d)
{
    int rc = db_exec(d, "DELETE FROM meta WHERE name = 'installation'");

    return rc == SQLITE_OK ? schema_secret_make(d) : rc;
}

/* Checks it as it is on the disk, and makes it a store of its own. */
static enum err part_check(const struct sqlite_restore *r, const char *part, struct error *e)
{
    struct db d = {0};
    int64_t version = 0;
    enum err err;

    int rc = db_open(&d, part, SQLITE_OPEN_READWRITE);
    if (rc == SQLITE_OK)
        rc = db_exec(&d, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL");
    err = rc == SQLITE_OK ? offline_version(&d, r->name, &version, e)
                          : offline_failed(rc, r->name, "open it", e);
    if (err == ERR_OK)
        err = offline_integrity(&d, r->name, e);
    if (err == ERR_OK) {
        rc = identity_renew(&d, part, version);
        if (rc == SQLITE_OK && r->is_new)
            rc = installation_renew(&d);
        if (rc != SQLITE_OK)
            err = offline_failed(rc, r->name, "prepare its copy in the folder", e);
    }
    db_close(&d);
    return err;
}

/* ---- the old ones ---- */

static enum err aside_make(struct sqlite_restore *r, struct buf *ret_path, struct error *e)
{
    time_t now = (time_t)(clock_wall_ms() / 1000);
    struct tm tm;

    (void)gmtime_r(&now, &tm);
    size_t len = strftime(r->aside, sizeof r->aside, ASIDE_PREFIX "%Y%m%dT%H%M%SZ", &tm);
    for (int n = 2;; n++) {
        path_in(ret_path, r->dir, r->aside);
        if (!outside_fails() && mkdir(ret_path->ptr, 0700) == 0)
            return ERR_OK;
        if (errno != EEXIST || n == 100)
            break;
        (void)snprintf(r->aside + len, sizeof r->aside - len, "-%d", n);
    }
    enum err err = folder_failed(r->dir, e, "make the folder", r->aside);
    r->aside[0] = 0;
    return err;
}

static enum err name_twice(const struct sqlite_restore *r, const char *aside, struct error *e)
{
    CLEANUP(buf_fini) struct buf from = {0};
    CLEANUP(buf_fini) struct buf to = {0};

    for (size_t i = 0; i < COUNT_OF(files); i++) {
        path_in(&from, r->dir, files[i]);
        path_in(&to, aside, files[i]);
        if (is_there(r->dir, files[i]) && (outside_fails() || link(from.ptr, to.ptr) != 0))
            return folder_failed(r->dir, e, "move away", files[i]);
    }
    if (!folder_sync(aside) || !folder_sync(r->dir))
        return folder_failed(r->dir, e, "make durable what is in", r->aside);
    return ERR_OK;
}

static enum err unname(const struct sqlite_restore *r, struct error *e)
{
    CLEANUP(buf_fini) struct buf path = {0};

    for (size_t i = 0; i < COUNT_OF(files); i++) {
        path_in(&path, r->dir, files[i]);
        if (outside_fails() || (unlink(path.ptr) != 0 && errno != ENOENT))
            return folder_failed(r->dir, e, "move away", files[i]);
        if (i == 0 && !folder_sync(r->dir))
            return folder_failed(r->dir, e, "move away", files[i]);
    }
    if (!folder_sync(r->dir))
        return folder_failed(r->dir, e, "move away", files[0]);
    return ERR_OK;
}

static bool any_there(const char *dir)
{
    bool any = false;

    for (size_t i = 0; i < COUNT_OF(files); i++)
        any |= is_there(dir, files[i]);
    return any;
}

static enum err move_aside(struct sqlite_restore *r, struct error *e)
{
    CLEANUP(buf_fini) struct buf aside = {0};

    if (!any_there(r->dir))
        return ERR_OK;
    enum err err = aside_make(r, &aside, e);
    if (err == ERR_OK && !folder_give(r->dir, r->aside))
        err = folder_failed(r->dir, e, "give to the folder's owner", r->aside);
    if (err == ERR_OK)
        err = name_twice(r, aside.ptr, e);
    return err == ERR_OK ? unname(r, e) : err;
}

/* ---- all of it ---- */

static enum err part_name(const struct sqlite_restore *r, const char *part, struct error *e)
{
    CLEANUP(buf_fini) struct buf path = {0};

    path_in(&path, r->dir, files[0]);
    if (outside_fails() || rename(part, path.ptr) != 0 || !folder_sync(r->dir))
        return folder_failed(r->dir, e, "put the restored file in place as", files[0]);
    return ERR_OK;
}

/* A server that has the old file by another folder, or whose lock file was removed, would go on
 * with what was moved away. And what an earlier restore began to move is moved once only. */
static enum err old_take(struct sqlite_store *s, struct error *e)
{
    struct stat st;

    s->file_fd = outside_fails() ? -1 : open(s->path, O_RDWR | O_CLOEXEC);
    if (s->file_fd < 0)
        return errno == ENOENT ? ERR_OK : folder_failed(s->dir, e, "open", files[0]);
    enum err err = folder_file_lock(s, s->file_fd, e);
    if (err != ERR_OK)
        return err;
    if (outside_fails() || fstat(s->file_fd, &st) != 0)
        return folder_failed(s->dir, e, "look at", files[0]);
    if (st.st_nlink == 2)
        (void)folder_drop_aside(s, &st);
    return ERR_OK;
}

static enum err restore(struct sqlite_store *s, struct sqlite_restore *r, struct error *e)
{
    CLEANUP(buf_fini) struct buf part = {0};

    if (!r->replace && any_there(r->dir))
        return error_set(e, ERR_CONFLICT,
                         "there is a state store in %s; choose another --data folder, or give "
                         "--force, which moves it into a folder inside",
                         r->dir);
    enum err err = old_take(s, e);
    if (err != ERR_OK)
        return err;
    path_in(&part, r->dir, RESTORE_PART);
    err = part_write(r, part.ptr, e);
    if (err == ERR_OK)
        err = part_check(r, part.ptr, e);
    if (err != ERR_OK) {
        (void)unlink(part.ptr); /* nothing else was touched */
        return err;
    }
    err = move_aside(r, e);
    return err == ERR_OK ? part_name(r, part.ptr, e) : err;
}

enum err sqlite_folder_restore(struct sqlite_restore *r, struct error *e)
{
    struct sqlite_store *s = sqlite_store_new(r->dir);

    r->aside[0] = 0;
    enum err err = folder_lock(s, e);
    if (err == ERR_OK)
        err = restore(s, r, e);
    sqlite_store_free(s);
    return err;
}
