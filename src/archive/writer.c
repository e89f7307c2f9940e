/* Writes an archive: creates files, appends frames, syncs, and repairs after failures. See
 * archive.h. */
#include "archive/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fault.h"
#include "base/fd.h"

enum {
    LEVEL = 3,
    NAMES_TRIED = 100,
    MS_PER_DAY = 86400000,
};

struct archive_writer {
    struct archive_config config;
    char *folder, *node;
    int fd;       /* of the file; -1: none yet */
    int64_t day;  /* on which it was begun */
    int64_t size; /* of its valid part */
    bool named;   /* its name is durable */
    char name[ARCHIVE_NAME_MAX];
};

struct archive_writer *archive_writer_new(const struct archive_config *c, const char *node)
{
    struct archive_writer *w = calloc(1, sizeof *w);

    ASSERT(w);
    ASSERT(c->folder);
    *w = (struct archive_writer){.config = *c, .fd = -1};
    if (w->config.max_size == 0)
        w->config.max_size = ARCHIVE_SIZE_DEFAULT;
    w->folder = strdup(c->folder);
    w->node = strdup(node);
    ASSERT(w->folder && w->node);
    return w;
}

static void let_go(struct archive_writer *w)
{
    if (w->fd >= 0)
        (void)close(w->fd); /* its contents are durable already */
    w->fd = -1;
}

void archive_writer_free(struct archive_writer *w)
{
    if (!w)
        return;
    let_go(w);
    free(w->folder);
    free(w->node);
    free(w);
}

static enum err failed(const char *folder, const char *what, struct error *e)
{
    bool full = errno == ENOSPC || errno == EDQUOT;

    return error_set(e, full ? ERR_FULL : ERR_IO, "archive %s: cannot %s: %s; %s", folder, what,
                     strerror(errno),
                     full ? "free some space on its disk"
                          : "let the server's user make files there");
}

/* ---- the folder ---- */

static enum err folder_open(const char *folder, int *ret, struct error *e)
{
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return failed(folder, "make the folder", e);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return failed(folder, "open the folder", e);
    *ret = fd;
    return ERR_OK;
}

/* Syncs the folder and its parent, because the folder may be new. */
static enum err folder_sync(const char *folder, struct error *e)
{
    char up[PATH_MAX];
    int fd = -1;

    enum err err = folder_open(folder, &fd, e);
    if (err != ERR_OK)
        return err;
    if (fault() || fsync(fd) != 0)
        err = failed(folder, "write the folder to the disk", e);
    bool fits = snprintf(up, sizeof up, "%s/..", folder) < (int)sizeof up;
    int parent =
        fits ? open(up, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1; /* not openat: base/fd.h */
    if (parent >= 0) { /* if the parent cannot be opened, the file system's journal must suffice */
        (void)fsync(parent);
        (void)close(parent);
    }
    (void)close(fd);
    return err;
}

enum err archive_check(const struct archive_config *c, struct error *e)
{
    int fd = -1;

    enum err err = folder_open(c->folder, &fd, e);
    if (err != ERR_OK)
        return err;
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
        err = failed(c->folder, "make files in it", e);
    (void)close(fd);
    return err;
}

/* ---- a file ---- */

static void name_file(struct archive_writer *w, int64_t now, int nth)
{
    time_t seconds = (time_t)(now / 1000);
    struct tm t = {0};
    char stamp[32];
    char more[16] = "";

    (void)gmtime_r(&seconds, &t);
    (void)strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%S", &t);
    if (nth > 0)
        (void)snprintf(more, sizeof more, "-%d", nth);
    (void)snprintf(w->name, sizeof w->name, "%.100s-%s.%03dZ%s.ndjson%s", w->node, stamp,
                   (int)(now % 1000), more, w->config.plain ? "" : ".zst");
}

/* Never opens an existing file: another process of this node may have created it in the same
 * millisecond. */
static enum err begin_file(struct archive_writer *w, int64_t now, struct error *e)
{
    int folder = -1;
    int file = -1;

    enum err err = folder_open(w->folder, &folder, e);
    if (err != ERR_OK)
        return err;
    errno = EEXIST;
    for (int i = 0; file < 0 && errno == EEXIST && i < NAMES_TRIED; i++) {
        name_file(w, now, i);
        file =
            fault() ? -1 : openat(folder, w->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    if (file < 0) {
        err = failed(w->folder, "begin a file", e);
        (void)close(folder);
        return err;
    }
    fd_move(file, folder); /* this is not the loop's thread */
    w->fd = folder;
    w->size = 0;
    w->named = false;
    w->day = now / MS_PER_DAY;
    return ERR_OK;
}

static bool is_over(const struct archive_writer *w, int64_t now)
{
    return w->fd >= 0 && (now / MS_PER_DAY != w->day || w->size >= w->config.max_size);
}

static bool write_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = fault() ? -1 : write(fd, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

/* Truncates an incomplete write. If that fails, the file is left as it is, and another one
 * begun. */
static enum err take_back(struct archive_writer *w, const char *what, struct error *e)
{
    enum err err = failed(w->folder, what, e);

    if (ftruncate(w->fd, w->size) != 0 || lseek(w->fd, w->size, SEEK_SET) != w->size)
        let_go(w);
    return err;
}

static enum err append(struct archive_writer *w, const char *bytes, size_t len, struct error *e)
{
    if (!write_all(w->fd, bytes, len))
        return take_back(w, "write", e);
    if (fault()
        || fsync(w->fd) != 0) { /* after a failed fsync the state of these pages is unknown */
        enum err err = failed(w->folder, "write to the disk", e);
        let_go(w);
        return err;
    }
    if (!w->named) {
        enum err err = folder_sync(w->folder, e);
        if (err != ERR_OK) {
            let_go(w); /* its size is unknown: a later take_back would truncate too much */
            return err;
        }
    }
    w->named = true;
    w->size += (int64_t)len;
    return ERR_OK;
}

static enum err append_frame(struct archive_writer *w, struct slice lines, struct error *e)
{
    size_t room = ZSTD_compressBound(lines.len);
    char *frame = malloc(room);

    ASSERT(frame);
    size_t len = ZSTD_compress(frame, room, lines.ptr, lines.len, LEVEL);
    ASSERT(!ZSTD_isError(len)); /* the buffer has the maximum size */
    enum err err = append(w, frame, len, e);
    free(frame);
    return err;
}

enum err archive_write(struct archive_writer *w, struct slice lines, int64_t now, struct error *e)
{
    ASSERT(lines.len > 0);
    ASSERT(lines.ptr[lines.len - 1] == '\n');
    if (is_over(w, now))
        let_go(w);
    enum err err = w->fd >= 0 ? ERR_OK : begin_file(w, now, e);
    if (err != ERR_OK)
        return err;
    return w->config.plain ? append(w, lines.ptr, lines.len, e) : append_frame(w, lines, e);
}
