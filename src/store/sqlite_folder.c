#include "store/sqlite_body.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"

static void fd_close(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing that was written depends on it */
}

/* `what` failed with errno, at DIR/name. */
static enum err folder_failed(struct sqlite_store *s, struct error *e, const char *what,
                              const char *name)
{
    int code = errno;
    enum err err = code == ENOSPC || code == EDQUOT ? ERR_FULL : ERR_IO;

    return error_set(e, err,
                     "cannot %s %s%s%s: %s; give the server permissions and space in this "
                     "folder, or choose another one with --data",
                     what, s->dir, name ? "/" : "", name ? name : "", strerrordesc_np(code));
}

static bool outside_fails(void)
{
    if (!fault())
        return false;
    errno = EIO;
    return true;
}

/* Makes the names in a folder durable. */
static bool folder_sync(const char *path)
{
    CLEANUP(fd_close)
    int fd = outside_fails() ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd >= 0 && !outside_fails() && fsync(fd) == 0;
}

static enum err locked_by_another(struct sqlite_store *s, int fd, struct error *e)
{
    char pid[32] = "";
    ssize_t len = pread(fd, pid, sizeof pid - 1, 0);

    while (len > 0 && (pid[len - 1] < '0' || pid[len - 1] > '9'))
        len--;
    pid[len > 0 ? len : 0] = 0;
    return error_set(e, ERR_LOCKED,
                     "the state store %s is in use by another server (pid %s); stop it, or choose "
                     "another --data folder",
                     s->path, pid[0] ? pid : "unknown");
}

static enum err folder_make(struct sqlite_store *s, struct error *e)
{
    CLEANUP(buf_fini) struct buf parent = {0};

    if (outside_fails() || (mkdir(s->dir, 0700) != 0 && errno != EEXIST))
        return folder_failed(s, e, "make the folder", NULL);
    buf_fmt(&parent, "%s/..", s->dir);
    /* not every parent may be opened; then its owner's journal must do */
    (void)folder_sync(parent.ptr);
    return ERR_OK;
}

enum err folder_lock(struct sqlite_store *s, struct error *e)
{
    CLEANUP(fd_close) int fd = -1;
    char pid[32];

    enum err err = folder_make(s, e);
    if (err != ERR_OK)
        return err;
    int dir = outside_fails() ? -1 : open(s->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return folder_failed(s, e, "open the folder", NULL);
    fd =
        outside_fails() ? -1 : openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int code = errno;
    (void)close(dir);
    errno = code;
    if (fd < 0)
        return folder_failed(s, e, "open", "lock");

    if (outside_fails() || flock(fd, LOCK_EX | LOCK_NB) != 0)
        return errno == EWOULDBLOCK ? locked_by_another(s, fd, e)
                                    : folder_failed(s, e, "lock", "lock");
    int len = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
    if (outside_fails() || ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)len, 0) != len)
        return folder_failed(s, e, "write", "lock");
    s->lock_fd = fd;
    fd = -1; /* NOLINT: moved out, its cleanup reads it */
    return ERR_OK;
}

/* An empty file is made, so that it has the right mode from the start; SQLite gives the same one
 * to its companions. */
static enum err file_make(struct sqlite_store *s, struct error *e)
{
    CLEANUP(fd_close)
    int fd = outside_fails() ? -1 : open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return errno == EEXIST ? ERR_OK : folder_failed(s, e, "make", "intact.db");
    if (outside_fails() || fsync(fd) != 0 || !folder_sync(s->dir))
        return folder_failed(s, e, "make", "intact.db");
    return ERR_OK;
}

/* A power cut while the file was made leaves zeros, and the journal by which SQLite will empty it. */
static bool cut_short(struct sqlite_store *s, const unsigned char *head, size_t len)
{
    CLEANUP(buf_fini) struct buf journal = {0};

    for (size_t i = 0; i < len; i++)
        if (head[i] != 0)
            return false;
    buf_fmt(&journal, "%s-journal", s->path);
    return access(journal.ptr, F_OK) == 0;
}

/* Looks at the file without SQLite, which would write beside it (a journal, a WAL), and would
 * content itself with reading where it may not write. */
enum err folder_file(struct sqlite_store *s, bool first, struct error *e)
{
    unsigned char head[100];

    enum err err = first ? file_make(s, e) : ERR_OK;
    if (err != ERR_OK)
        return err;
    CLEANUP(fd_close)
    int fd = outside_fails() ? -1 : open(s->path, O_RDWR | O_CLOEXEC); /* may we write? */
    if (fd < 0)
        return folder_failed(s, e, "open", "intact.db");
    ssize_t len = outside_fails() ? -1 : pread(fd, head, sizeof head, 0);
    if (len < 0)
        return folder_failed(s, e, "read", "intact.db");
    if (len == 0 || cut_short(s, head, (size_t)len))
        return ERR_OK; /* made just now, or by a start that was cut short */
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
    return ERR_OK;
}
