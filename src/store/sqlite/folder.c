/*
 * The data folder: makes it, locks it, and checks the files in it before SQLite opens them. Links
 * and files of others are refused. identity.c finds out whether the file is a copy.
 */
#include "store/sqlite/body.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/when.h"

/* The lock file: the pid of its holder, and on the second line the time when it last wrote. The
 * first line has always this length, so that the two are written one without the other. */
enum { DYING_MS = 2000, PID_LINE = 11, TIME_LINE = 25, LOCK_SIZE = PID_LINE + TIME_LINE };

enum { PATH_LEN_MAX = 511 };

enum { FILE_LOCK_AT = 0x3ffffff0 /* of intact.db; SQLite locks 0x40000000 and 511 bytes more */ };

static void fd_close(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing that was written depends on it */
}

/* `what` failed with errno, at DIR/name. */
enum err folder_failed(const char *dir, struct error *e, const char *what, const char *name)
{
    int code = errno;
    enum err err = code == ENOSPC || code == EDQUOT ? ERR_FULL : ERR_IO;
    const char *remedy = errno_advice(code);

    if (code == ENAMETOOLONG) /* it comes last, because it will be cut off */
        return error_set(e, ERR_INVALID,
                         "a name in the path of the data folder is too long; choose another folder "
                         "with --data: %s",
                         dir);
    return error_set(e, err, "cannot %s %s%s%s: %s; %s, or choose another folder with --data", what,
                     dir, name ? "/" : "", name ? name : "", strerrordesc_np(code),
                     remedy ? remedy : "make it a folder that the server can write to");
}

bool outside_fails(void)
{
    if (!fault())
        return false;
    errno = EIO;
    return true;
}

/* Makes the names in a folder durable. */
bool folder_sync(const char *path)
{
    CLEANUP(fd_close)
    int fd = outside_fails() ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && !outside_fails() && fsync(fd) == 0;
}

bool folder_give(const char *dir, const char *name)
{
    CLEANUP(buf_fini) struct buf path = {0};
    struct stat st;

    if (geteuid() != 0)
        return true;
    if (outside_fails() || stat(dir, &st) != 0)
        return false;
    buf_fmt(&path, "%s/%s", dir, name);
    return st.st_uid == 0 || lchown(path.ptr, st.st_uid, st.st_gid) == 0;
}

/* Empty, and without another name: made just now. */
static bool lock_give(const struct sqlite_store *s, int fd)
{
    struct stat st;

    if (outside_fails() || fstat(fd, &st) != 0)
        return false;
    return st.st_size > 0 || st.st_nlink != 1 || folder_give(s->dir, "lock");
}

static enum err locked_by_another(struct sqlite_store *s, int fd, struct error *e)
{
    char pid[PID_LINE + 1] = "";

    if (pread(fd, pid, PID_LINE, 0) < 0)
        pid[0] = 0;
    pid[strspn(pid, "0123456789")] = 0;
    return error_set(e, ERR_LOCKED,
                     "the state store %s is in use by another server (pid %s); stop it, or choose "
                     "another --data folder",
                     s->path, pid[0] ? pid : "unknown");
}

static enum err folder_make(struct sqlite_store *s, struct error *e)
{
    CLEANUP(buf_fini) struct buf parent = {0};

    if (outside_fails() || (mkdir(s->dir, 0700) != 0 && errno != EEXIST))
        return folder_failed(s->dir, e, "make the folder", NULL);
    buf_fmt(&parent, "%s/..", s->dir);
    /* not every parent may be opened; then its owner's journal must do */
    (void)folder_sync(parent.ptr);
    return ERR_OK;
}

/* SQLite makes names absolute, and then knows no longer ones than 511 bytes. */
static enum err folder_fits(struct sqlite_store *s, struct error *e)
{
    char *whole = outside_fails() ? NULL : realpath(s->dir, NULL);

    if (!whole)
        return folder_failed(s->dir, e, "find the folder", NULL);
    size_t len = strlen(whole) + strlen("/intact.db-journal");
    free(whole);
    if (len <= PATH_LEN_MAX)
        return ERR_OK;
    return error_set(
        e, ERR_INVALID,
        "the path of the data folder is %zu bytes too long; choose another folder with "
        "--data: %s",
        len - PATH_LEN_MAX, s->dir);
}

/* A server that was killed just now has its lock until the kernel has taken its memory apart. */
static bool lock_take(int fd)
{
    int64_t until = clock_steady_ms() + DYING_MS;

    for (int count = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; count++) {
        if (errno != EWOULDBLOCK || clock_steady_ms() >= until)
            return false;
        others_pause(count);
    }
    return true;
}

enum err folder_lock(struct sqlite_store *s, struct error *e)
{
    CLEANUP(fd_close) int fd = -1;
    char pid[32];

    enum err err = folder_make(s, e);
    if (err == ERR_OK)
        err = folder_fits(s, e);
    if (err != ERR_OK)
        return err;
    int dir = outside_fails() ? -1 : open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return folder_failed(s->dir, e, "open the folder", NULL);
    fd =
        outside_fails() ? -1 : openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int code = errno;
    (void)close(dir);
    errno = code;
    if (fd < 0)
        return folder_failed(s->dir, e, "open", "lock");

    if (outside_fails() || !lock_take(fd))
        return errno == EWOULDBLOCK ? locked_by_another(s, fd, e)
                                    : folder_failed(s->dir, e, "lock", "lock");
    if (!lock_give(s, fd))
        return folder_failed(s->dir, e, "give to the folder's owner", "lock");
    int len = snprintf(pid, sizeof pid, "%-10ld\n", (long)getpid());
    ASSERT(len == PID_LINE);
    if (outside_fails() || pwrite(fd, pid, PID_LINE, 0) != PID_LINE)
        return folder_failed(s->dir, e, "write", "lock");
    s->lock_fd = fd;
    fd = -1; /* NOLINT: moved out, its cleanup reads it */
    return ERR_OK;
}

/* ---- times ---- */

static int64_t changed_at(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return 0;
    return (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
}

/* The lock file has it by the server's own clock. Should the power have failed before that line
 * reached the disk, there are the times of the files. */
void folder_used(struct sqlite_store *s)
{
    char lock[LOCK_SIZE];
    int64_t marked_at = 0;

    if (pread(s->lock_fd, lock, LOCK_SIZE, 0) == LOCK_SIZE
        && !time_parse((struct slice){lock + PID_LINE, TIME_LINE - 1}, &marked_at))
        marked_at = 0;
    s->used_until = max_i64(marked_at, max_i64(changed_at(s->path), changed_at(s->wal_path)));
}

/* Neither synced nor waited for: it is wanted after the clock was set, and can be missed. */
void folder_mark_time(struct sqlite_store *s)
{
    CLEANUP(buf_fini) struct buf b = {0};

    time_write(&b, s->now);
    buf_byte(&b, '\n');
    if (b.len == TIME_LINE && pwrite(s->lock_fd, b.ptr, b.len, PID_LINE) != TIME_LINE)
        log_line(LOG_DEBUG, "event=time_not_marked errno=%d", errno);
}

/* ---- the file ---- */

static struct file_id file_id(const struct stat *st)
{
    return (struct file_id){st->st_dev, st->st_ino};
}

static bool file_id_eq(const struct file_id *x, const struct file_id *y)
{
    return x->dev == y->dev && x->ino == y->ino;
}

static bool file_id_of(const char *path, struct file_id *ret)
{
    struct stat st;

    if (outside_fails() || stat(path, &st) != 0)
        return false;
    *ret = file_id(&st);
    return true;
}

/* Not SQLITE_FCNTL_HAS_MOVED: that knows nothing of the WAL. */
enum place folder_place(struct sqlite_store *s, const char *path, const struct file_id *id,
                        struct error *e)
{
    struct file_id now;

    if (file_id_of(path, &now))
        return file_id_eq(&now, id) ? PLACE_KEPT : PLACE_LOST;
    if (errno == ENOENT || errno == ENOTDIR)
        return PLACE_LOST;
    (void)folder_failed(s->dir, e, "look at", path + strlen(s->dir) + 1);
    return PLACE_UNKNOWN;
}

enum err folder_lost(struct sqlite_store *s, struct error *e)
{
    return error_set(e, ERR_IO,
                     "state store %s: the file was moved, removed or replaced while it was in use, "
                     "and nothing is accepted until it is back; move it back, or stop the server "
                     "and restore a backup",
                     s->path);
}

enum err folder_wal(struct sqlite_store *s, struct error *e)
{
    return file_id_of(s->wal_path, &s->wal) ? ERR_OK
                                            : folder_failed(s->dir, e, "look at", "intact.db-wal");
}

void folder_sweep(struct sqlite_store *s)
{
    static const char *const parts[] = {BACKUP_PART, RESTORE_PART};
    bool there = access(s->path, F_OK) == 0;

    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        CLEANUP(buf_fini) struct buf path = {0};
        buf_fmt(&path, "%s/%s", s->dir, parts[i]);
        if ((there || i == 0) && unlink(path.ptr) == 0)
            log_line(LOG_INFO, "event=removed file=%s reason=\"it was incomplete\"", path.ptr);
    }
}

/* A restore that was cut short has moved the old store away, or there was none. To begin with an
 * empty one would pass for the restored one. */
static enum err refuse_half_restored(struct sqlite_store *s, struct error *e)
{
    CLEANUP(buf_fini) struct buf path = {0};

    buf_fmt(&path, "%s/" RESTORE_PART, s->dir);
    if (access(s->path, F_OK) == 0 || access(path.ptr, F_OK) != 0)
        return ERR_OK;
    return error_set(e, ERR_CORRUPT,
                     "%s is missing: a restore into this folder was cut short; run `intact restore "
                     "--force` again, or remove %s",
                     s->path, path.ptr);
}

/* Without the file its companions are of no use, but what was accepted last may be in them: a new
 * and empty store beside them would be a loss in silence. A start of ours that was cut short leaves
 * none of them: the file has its name, and then its schema, before there is a WAL. */
static enum err refuse_remains(struct sqlite_store *s, struct error *e)
{
    static const char *const ends[] = {"wal", "shm", "journal"};
    struct stat st;
    bool there = stat(s->path, &st) == 0;

    if (there ? st.st_size > 0 : errno != ENOENT)
        return ERR_OK; /* for others to judge */
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        CLEANUP(buf_fini) struct buf path = {0};
        buf_fmt(&path, "%s-%s", s->path, ends[i]);
        if (stat(path.ptr, &st) != 0 || (there && (i > 0 || st.st_size == 0)))
            continue;
        return error_set(
            e, ERR_CORRUPT,
            "%s is %s, but intact.db-%s, which belongs to it, is there: its tasks were "
            "moved or removed; put both files back as they were or restore a backup; "
            "to begin without these tasks, remove intact.db-%s or choose another "
            "--data folder",
            s->path, there ? "empty" : "missing", ends[i], ends[i]);
    }
    return ERR_OK;
}

/* An empty file is made, so that it has the right mode from the start; SQLite gives the same one
 * to its companions. */
static enum err file_make(struct sqlite_store *s, struct error *e)
{
    CLEANUP(fd_close)
    int fd = outside_fails() ? -1 : open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno == EEXIST ? ERR_OK : folder_failed(s->dir, e, "make", "intact.db");
    if (!folder_give(s->dir, "intact.db") || outside_fails() || fsync(fd) != 0
        || !folder_sync(s->dir))
        return folder_failed(s->dir, e, "make", "intact.db");
    return ERR_OK;
}

/* A power cut while the file was made leaves zeros, and the journal by which SQLite will empty it.
 */
static bool cut_short(struct sqlite_store *s, const unsigned char *head, size_t len)
{
    CLEANUP(buf_fini) struct buf journal = {0};

    for (size_t i = 0; i < len; i++)
        if (head[i] != 0)
            return false;
    buf_fmt(&journal, "%s-journal", s->path);
    return access(journal.ptr, F_OK) == 0;
}

/* The first time it is remembered which one it is. */
static enum err same_file(struct sqlite_store *s, int fd, bool first, struct error *e)
{
    struct stat st;

    if (outside_fails() || fstat(fd, &st) != 0)
        return folder_failed(s->dir, e, "look at", "intact.db");
    const struct file_id id = file_id(&st);
    if (first)
        s->file = id;
    return file_id_eq(&id, &s->file) ? ERR_OK : folder_lost(s, e);
}

static bool is_that_file(const char *path, const struct stat *file)
{
    struct stat st;

    return lstat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

static void unlink_store(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        CLEANUP(buf_fini) struct buf file = {0};
        buf_fmt(&file, "%s%s", path, ends[i]);
        (void)unlink(file.ptr); /* not each is there */
    }
}

/* A restore names the old store a second time, in the folder that keeps it, before it takes away
 * the first name. One that was cut short between the two has changed nothing: the second goes. */
bool folder_drop_aside(struct sqlite_store *s, const struct stat *file)
{
    CLEANUP(buf_fini) struct buf pattern = {0};
    glob_t found = {0};
    bool dropped = false;

    buf_fmt(&pattern, "%s/" ASIDE_PREFIX "*/intact.db", s->dir);
    if (glob(pattern.ptr, GLOB_NOSORT, NULL, &found) != 0)
        found.gl_pathc = 0;
    for (size_t i = 0; i < found.gl_pathc && !dropped; i++) {
        dropped = is_that_file(found.gl_pathv[i], file);
        if (dropped)
            unlink_store(found.gl_pathv[i]);
    }
    globfree(&found);
    return dropped;
}

/* A file with two names has two WALs, one beside each: whoever opens it by the other name does not
 * see what is in ours, and overwrites the pages it belongs to. */
static enum err one_name(struct sqlite_store *s, int fd, struct error *e)
{
    struct stat st;

    if (outside_fails() || fstat(fd, &st) != 0)
        return folder_failed(s->dir, e, "look at", "intact.db");
    if (st.st_nlink == 2 && folder_drop_aside(s, &st))
        st.st_nlink--;
    if (st.st_nlink <= 1)
        return ERR_OK;
    return error_set(e, ERR_LOCKED,
                     "%s has %ld names (hard links): used by two of them it would be destroyed; "
                     "remove the others (find / -xdev -samefile %s), or choose another --data "
                     "folder",
                     s->path, (long)st.st_nlink, s->path);
}

/* The lock file can be removed, and the file be reached by another folder: so it has a lock of its
 * own, of a byte that SQLite does not lock, and of the kind that ends with its descriptor. */
enum err folder_file_lock(struct sqlite_store *s, int fd, struct error *e)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = FILE_LOCK_AT,
                         .l_len = 1};

    if (!outside_fails() && fcntl(fd, F_OFD_SETLK, &lock) == 0)
        return ERR_OK;
    if (errno != EAGAIN && errno != EACCES)
        return folder_failed(s->dir, e, "lock", "intact.db");
    return error_set(e, ERR_LOCKED,
                     "the state store %s is in use by another server, which has it by another "
                     "folder, or whose lock file was removed; stop that server, or choose another "
                     "--data folder",
                     s->path);
}

/* The descriptor is kept: closing it would take SQLite's locks on the same file with it. */
static enum err file_hold(struct sqlite_store *s, int *fd, struct error *e)
{
    enum err err = one_name(s, *fd, e);

    if (err == ERR_OK)
        err = folder_file_lock(s, *fd, e);
    if (err != ERR_OK)
        return err;
    s->file_fd = *fd;
    *fd = -1;
    return ERR_OK;
}

/* Looks at the file without SQLite, which would write beside it (a journal, a WAL), and would
 * content itself with reading where it may not write. */
enum err folder_file(struct sqlite_store *s, bool first, struct error *e)
{
    unsigned char head[100];

    enum err err = first ? refuse_half_restored(s, e) : ERR_OK;
    if (err == ERR_OK && first)
        err = refuse_remains(s, e);
    if (err == ERR_OK && first)
        err = file_make(s, e);
    if (err != ERR_OK)
        return err;
    CLEANUP(fd_close)
    int fd = outside_fails() ? -1 : open(s->path, O_RDWR | O_CLOEXEC); /* may we write? */
    if (fd < 0)
        return folder_failed(s->dir, e, "open", "intact.db");
    err = same_file(s, fd, first, e);
    if (err != ERR_OK)
        return err;
    ssize_t len = outside_fails() ? -1 : pread(fd, head, sizeof head, 0);
    if (len < 0)
        return folder_failed(s->dir, e, "read", "intact.db");
    if (len == 0 || cut_short(s, head, (size_t)len)) /* by a start that did not come further */
        return first ? file_hold(s, &fd, e) : ERR_OK;
    if (len < (ssize_t)sizeof head || memcmp(head, "SQLite format 3", 16) != 0)
        return error_set(e, ERR_NOT_A_STORE,
                         "%s is not a state store; choose another --data folder", s->path);
    uint32_t id =
        (uint32_t)head[68] << 24 | (uint32_t)head[69] << 16 | (uint32_t)head[70] << 8 | head[71];
    if (id != APPLICATION_ID)
        return error_set(e, ERR_NOT_A_STORE,
                         "%s is the SQLite database of another program; choose another --data "
                         "folder",
                         s->path);
    return first ? file_hold(s, &fd, e) : ERR_OK;
}
