#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "server/internal.h"

/* The first admin's token: who may read the folder's file may do everything. */

#define NAME "admin"

static enum err failed(struct error *e, const char *path, const char *what)
{
    return error_set(e, ERR_IO, "%s: cannot %s: %s", path, what, strerror(errno));
}

static bool write_whole(int fd, const char *text, size_t len)
{
    ssize_t n = write(fd, text, len);

    return n >= 0 && (size_t)n == len && fsync(fd) == 0;
}

static enum err sync_folder(const char *path, struct error *e)
{
    char copy[PATH_MAX];

    (void)snprintf(copy, sizeof copy, "%s", path);
    int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = dir >= 0 && fsync(dir) == 0;
    enum err err = ok ? ERR_OK : failed(e, path, "make it durable");
    if (dir >= 0)
        (void)close(dir); /* it was only synced */
    return err;
}

/* Nobody ever sees half a token: it is whole and on the disk before it gets its name. */
static enum err file_write(const char *path, const char *token, struct error *e)
{
    char temporary[PATH_MAX];
    char line[ACCESS_TOKEN_SIZE + 2];

    int len = snprintf(temporary, sizeof temporary, "%s.new", path);
    if (len < 0 || (size_t)len >= sizeof temporary)
        return error_set(e, ERR_INVALID, "%s: the name is too long", path);
    (void)unlink(temporary); /* of a start that was cut off */
    int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed(e, temporary, "make the file");
    (void)snprintf(line, sizeof line, "%s\n", token); /* always fits */
    bool ok = fchmod(fd, 0600) == 0 && write_whole(fd, line, strlen(line));
    OPENSSL_cleanse(line, sizeof line);
    enum err err = ok ? ERR_OK : failed(e, temporary, "write the admin's token");
    if (close(fd) != 0 && err == ERR_OK)
        err = failed(e, temporary, "write the admin's token");
    if (err == ERR_OK && rename(temporary, path) != 0)
        err = failed(e, path, "give the file its name");
    if (err != ERR_OK) {
        (void)unlink(temporary);
        return err;
    }
    return sync_folder(path, e);
}

/* The store knows the hash before the file is there: a kill in between leaves no file, and the next
 * start makes another token in the place of this one. */
static enum err make(struct server *sv, const char *path, struct error *e)
{
    struct store *st = sv->config.store;
    char text[ACCESS_TOKEN_SIZE + 1];
    const int64_t now = server_now(sv);
    const struct audit audit = {.at = now,
                                .actor = SLICE("server"),
                                .verb = SLICE("token.create"),
                                .reason = SLICE(NAME ": admin")};
    struct token_row row = {.name = SLICE(NAME),
                            .roles = SLICE("[\"admin\"]"),
                            .admin = true,
                            .created_at = now};

    enum err err = access_make(text, e);
    if (err != ERR_OK)
        return err;
    bool ok = access_hash(sv->access, slice_of(text), row.hash);
    ASSERT(ok);
    err = st->ops->token_put(st, &row, true, &audit, e);
    if (err == ERR_OK)
        err = file_write(path, text, e);
    OPENSSL_cleanse(text, sizeof text);
    return err;
}

static bool file_read(const char *path, char ret[ACCESS_TOKEN_SIZE + 2])
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, ret, ACCESS_TOKEN_SIZE + 1) : -1;

    if (fd >= 0)
        (void)close(fd); /* it was only read */
    ret[n > 0 ? n : 0] = 0;
    return n == ACCESS_TOKEN_SIZE + 1 && ret[ACCESS_TOKEN_SIZE] == '\n';
}

/* Who reads the log should know where a token lies, and which one is there in vain. */
void admin_token_tell(struct server *sv)
{
    const char *path = sv->config.token_file;
    CLEANUP(buf_fini) struct buf header = {0};
    char line[ACCESS_TOKEN_SIZE + 2];
    const char *why = "it does not hold a token";

    if (access_is_open(sv->access))
        return;
    if (file_read(path, line)) {
        line[ACCESS_TOKEN_SIZE] = 0;
        buf_fmt(&header, "Bearer %s", line);
        if (access_who(sv->access, buf_view(&header), server_now(sv), &why))
            why = NULL;
        OPENSSL_cleanse(header.ptr, header.len);
    }
    OPENSSL_cleanse(line, sizeof line);
    if (sv->token_made)
        log_line(LOG_INFO, "event=admin_token_made file=%s", path);
    else if (why)
        log_line(
            LOG_WARN,
            "event=admin_token_useless file=%s reason=\"%s\" advice=\"remove the file, and the "
            "next start makes a new token\"",
            path, why);
}

/* A file that is there stays as it is. */
enum err admin_token_ensure(struct server *sv, struct error *e)
{
    const char *path = sv->config.token_file;
    struct stat st;

    if (lstat(path, &st) == 0)
        return ERR_OK;
    if (errno != ENOENT)
        return failed(e, path, "look for the admin's token");
    enum err err = make(sv, path, e);
    sv->token_made = err == ERR_OK;
    return err == ERR_OK ? tokens_load(sv, e) : err;
}
