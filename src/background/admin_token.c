/*
 * The file with the token of the first admin. Whoever may read the file may do everything, so the
 * text is on the disk, with mode 0600, before the store knows its hash. Touches the data folder,
 * the store before its thread starts, and the tokens in memory.
 */

#include "background/admin_token.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "background/room.h"
#include "background/token_list.h"
#include "base/log.h"
#include "net/proof.h"
#include "node/access.h"
#include "node/node.h"

#define NAME "admin"

enum { TRIES = 10 };

struct admin_token {
    unsigned char key[PROOF_KEY_SIZE]; /* by which we show that we know the token */
    bool is_known;                     /* else nothing is shown */
    struct timespec written_at;        /* of the file that it was read from ... */
    uint64_t inode;
    enum {
        TOKEN_THERE,     /* it was there; */
        TOKEN_MADE,      /* it was made at this start; */
        TOKEN_ELSEWHERE, /* another node that shares the store has made it */
    } made;
};

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

static enum err temporary_name(const char *path, char ret[PATH_MAX], struct error *e)
{
    int len = snprintf(ret, PATH_MAX, "%s.new", path);

    if (len < 0 || len >= PATH_MAX)
        return error_set(e, ERR_INVALID, "%s: the name is too long", path);
    return ERR_OK;
}

/* Nobody ever sees half a token: it is whole and on the disk before it gets its name. */
static enum err file_write(const char *temporary, const char *token, struct error *e)
{
    char line[ACCESS_TOKEN_SIZE + 2];

    ASSERT(strlen(token) == ACCESS_TOKEN_SIZE);
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
    if (err != ERR_OK) {
        (void)unlink(temporary);
        return err;
    }
    return sync_folder(temporary, e);
}

static enum err file_name(const char *temporary, const char *path, struct error *e)
{
    if (rename(temporary, path) != 0)
        return failed(e, path, "give the file its name");
    return sync_folder(path, e);
}

static enum err put(struct server *sv, struct slice name, const char *text, struct error *e)
{
    CLEANUP(buf_fini) struct buf reason = {0};
    struct store *st = sv->config.store;
    const int64_t now = server_now(sv);
    struct token_row row = {.name = name,
                            .roles = SLICE("[\"admin\"]"),
                            .admin = true,
                            .created_at = now};

    ASSERT(name.len > 0 && name.len < ACCESS_NAME_MAX);
    bool ok = access_hash(sv->access, slice_of(text), row.hash);
    ASSERT(ok);
    buf_fmt(&reason, "%.*s: admin", SLICE_ARG(name));
    const struct audit audit = {.at = now,
                                .actor = SLICE("server"),
                                .verb = SLICE("token.create"),
                                .reason = buf_view(&reason)};
    return st->ops->token_put(st, &row, !st->shared, &audit, e);
}

/* The text is on the disk before the store knows its hash, and gets its name after that. A kill in
 * between leaves no file of that name: the next start finishes it where nodes share the store, and
 * makes another token in the place of this one where they do not. */
static enum err make(struct server *sv, struct slice name, const char *path, struct error *e)
{
    char text[ACCESS_TOKEN_SIZE + 1];
    char temporary[PATH_MAX];

    enum err err = temporary_name(path, temporary, e);
    if (err == ERR_OK)
        err = access_make(text, e);
    if (err != ERR_OK)
        return err;
    err = file_write(temporary, text, e);
    if (err == ERR_OK) {
        err = put(sv, name, text, e);
        if (err != ERR_OK && err != ERR_UNKNOWN) /* that one may be good */
            (void)unlink(temporary);
    }
    if (err == ERR_OK)
        err = file_name(temporary, path, e);
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

/* Does it hold a good token? If not, *ret_why tells why. */
static bool file_is_good(struct server *sv, const char *path, const char **ret_why)
{
    CLEANUP(buf_fini) struct buf header = {0};
    char line[ACCESS_TOKEN_SIZE + 2];
    bool good = false;

    *ret_why = "it does not hold a token";
    if (file_read(path, line)) {
        line[ACCESS_TOKEN_SIZE] = 0;
        buf_fmt(&header, "Bearer %s", line);
        good = access_who(sv->access, buf_view(&header), server_now(sv), ret_why);
        sv->background->admin_token->is_known = good;
        proof_key((struct slice){line, ACCESS_TOKEN_SIZE}, sv->background->admin_token->key);
        OPENSSL_cleanse(header.ptr, header.len);
    }
    OPENSSL_cleanse(line, sizeof line);
    return good;
}

/* Operators may replace the file, as the manual describes. Only a good token is remembered: one
 * that another node created may not be known here yet. */
static void refresh(struct server *sv)
{
    const char *path = sv->config.token_file;
    const char *why = NULL;
    struct stat st;

    if (!path || stat(path, &st) != 0
        || (st.st_ino == sv->background->admin_token->inode
            && st.st_mtim.tv_sec == sv->background->admin_token->written_at.tv_sec
            && st.st_mtim.tv_nsec == sv->background->admin_token->written_at.tv_nsec))
        return;
    if (!file_is_good(sv, path, &why))
        return;
    sv->background->admin_token->inode = st.st_ino;
    sv->background->admin_token->written_at = st.st_mtim;
}

/* The log names the file of a token, and a file whose token is of no use. */
void admin_token_log(struct server *sv)
{
    const char *path = sv->config.token_file;
    const char *why = NULL;

    if (access_is_open(sv->access))
        return;
    bool good = file_is_good(sv, path, &why);
    if (sv->background->admin_token->made == TOKEN_MADE)
        log_line(LOG_INFO, "event=admin_token_made file=%s", path);
    else if (sv->background->admin_token->made == TOKEN_ELSEWHERE)
        log_line(LOG_WARN,
                 "event=admin_token_elsewhere file=%s advice=\"the database already has an admin "
                 "token: it is in the data folder of the node that created it; create others with "
                 "it by intact token create\"",
                 path);
    else if (!good)
        log_line(
            LOG_WARN,
            "event=admin_token_useless file=%s reason=\"%s\" advice=\"remove the file, and the "
            "next start makes a new token\"",
            path, why);
}

/* ---- a rotation ---- */

bool admin_token_holds(const char *path, const unsigned char hash[TOKEN_HASH_SIZE])
{
    unsigned char found[TOKEN_HASH_SIZE];
    char line[ACCESS_TOKEN_SIZE + 2];

    bool ok = file_read(path, line)
              && EVP_Digest(line, ACCESS_TOKEN_SIZE, found, NULL, EVP_sha256(), NULL) == 1
              && memcmp(found, hash, sizeof found) == 0;
    OPENSSL_cleanse(line, sizeof line);
    return ok;
}

enum err admin_token_prepare(const char *path, const char *text, struct error *e)
{
    char temporary[PATH_MAX];

    enum err err = temporary_name(path, temporary, e);
    return err == ERR_OK ? file_write(temporary, text, e) : err;
}

enum err admin_token_settle(const char *path, bool good, struct error *e)
{
    char temporary[PATH_MAX];

    enum err err = temporary_name(path, temporary, e);
    if (err == ERR_OK && good)
        return file_name(temporary, path, e);
    if (err == ERR_OK)
        (void)unlink(temporary); /* it is of no use, and is replaced by the next one */
    return err;
}

void admin_token_renewed(struct server *sv)
{
    const char *why = NULL;

    (void)file_is_good(sv, sv->config.token_file, &why); /* by it we show that we know the token */
    log_line(LOG_WARN, "event=admin_token_rotated file=%s", sv->config.token_file);
}

/* ---- a store that nodes share: one admin's token for all of them ---- */

static bool has_good_admin(struct server *sv)
{
    size_t count = 0;
    const struct bearer *list = access_list(sv->access, &count);
    int64_t now = server_now(sv);

    for (size_t i = 0; i < count; i++)
        if (list[i].roles & ROLE_ADMIN && (list[i].expires_at == 0 || list[i].expires_at > now))
            return true;
    return false;
}

static bool is_taken(const struct server *sv, const char *name)
{
    size_t count = 0;
    const struct bearer *list = access_list(sv->access, &count);

    for (size_t i = 0; i < count; i++)
        if (slice_is(list[i].name, name))
            return true;
    return false;
}

/* "admin", or, if there is one that is good no more, "admin-2", ... Nodes that see the same list
 * choose the same name, so that the store takes one of them. */
static void choose_name(const struct server *sv, char ret[ACCESS_NAME_MAX])
{
    (void)snprintf(ret, ACCESS_NAME_MAX, NAME);
    for (unsigned n = 2; is_taken(sv, ret); n++)
        (void)snprintf(ret, ACCESS_NAME_MAX, NAME "-%u", n);
}

/* What a start that was cut off has made: the store knows it, and the file has no name yet. */
static bool finish_earlier(struct server *sv, const char *path)
{
    char temporary[PATH_MAX];
    const char *why = NULL;
    struct error e = {0};

    return temporary_name(path, temporary, &e) == ERR_OK && file_is_good(sv, temporary, &why)
           && file_name(temporary, path, &e) == ERR_OK;
}

static enum err make_one_for_all(struct server *sv, const char *path, struct error *e)
{
    char name[ACCESS_NAME_MAX];

    sv->background->admin_token->made = TOKEN_MADE;
    if (finish_earlier(sv, path))
        return ERR_OK;
    for (int i = 0; i < TRIES && !has_good_admin(sv); i++) {
        choose_name(sv, name);
        enum err made = make(sv, slice_of(name), path, e);
        if (made != ERR_OK && made != ERR_CONFLICT)
            return made;
        enum err err = token_list_load(sv, e);
        if (err != ERR_OK || made == ERR_OK)
            return err;
    }
    sv->background->admin_token->made = TOKEN_ELSEWHERE;
    return ERR_OK;
}

/* Two processes may have been given the same folder. The lock goes with the descriptor. */
static int lock_folder(const char *path)
{
    char copy[PATH_MAX];

    (void)snprintf(copy, sizeof copy, "%s", path);
    int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0)
        (void)flock(dir, LOCK_EX); /* without it they may get in each other's way */
    return dir;
}

static enum err ensure(struct server *sv, const char *path, struct error *e)
{
    struct stat st;

    if (lstat(path, &st) == 0) {
        (void)finish_earlier(sv, path); /* a rotation, which was cut off; else it stays as it is */
        return ERR_OK;
    }
    if (errno != ENOENT)
        return failed(e, path, "look for the admin's token");
    if (sv->config.store->shared)
        return make_one_for_all(sv, path, e);
    enum err err = make(sv, SLICE(NAME), path, e);
    if (err != ERR_OK)
        return err;
    sv->background->admin_token->made = TOKEN_MADE;
    return token_list_load(sv, e);
}

enum err admin_token_ensure(struct server *sv, struct error *e)
{
    const char *path = sv->config.token_file;
    int lock = sv->config.store->shared ? lock_folder(path) : -1;

    enum err err = ensure(sv, path, e);
    if (lock >= 0)
        (void)close(lock);
    return err;
}

bool admin_token_prove(struct server *sv, struct slice challenge, int port,
                       char ret[PROOF_SIZE + 1])
{
    refresh(sv);
    if (!sv->background->admin_token->is_known)
        return false;
    proof_make(sv->background->admin_token->key, challenge, port, ret);
    return true;
}

struct admin_token *admin_token_new(void)
{
    struct admin_token *t = calloc(1, sizeof *t);

    ASSERT(t);
    return t;
}

void admin_token_free(struct admin_token *t)
{
    free(t);
}
