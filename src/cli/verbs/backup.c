/* `intact backup`: a copy of the store from a server or a folder, checked before it gets its
 * name. */

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/client/client.h"
#include "cli/terminal/term.h"
#include "cli/verbs.h"
#include "store/sqlite/sqlite.h"

enum { MIB = 1 << 20 };

/* The target of a backup: FILE.part until it is complete and checked, or standard output. */
struct target {
    const struct invocation *in;
    const char *name; /* FILE */
    struct buf part;  /* FILE.part */
    int fd;
    int64_t done;
    enum term_color color;
    struct term_progress progress;
    int failure; /* errno of a write; 0: none */
};

/* ---- progress ---- */

/* It restarts with the first known total. */
static void show_progress(struct target *t, const char *what, int64_t done, int64_t whole)
{
    if (!t->progress.what || strcmp(t->progress.what, what) != 0) {
        term_progress_end(&t->progress);
        term_progress_begin(&t->progress, what, PROGRESS_BYTES, whole, t->color);
    }
    t->progress.total = max_i64(whole, 0);
    term_progress_at(&t->progress, done);
}

static void show_pages(void *arg, int64_t done, int64_t whole)
{
    enum { PAGE = 4096 };
    struct target *t = arg;

    show_progress(t, "copied", done * PAGE, whole * PAGE);
}

/* ---- the file ---- */

static bool target_is_stream(const struct target *t)
{
    return strcmp(t->name, "-") == 0;
}

static int target_failed(const struct target *t, const char *file, const char *what)
{
    return verb_failed(t->in, CLI_USAGE, "%s: cannot %s: %s", file, what, strerror(errno));
}

static int stream_open(struct target *t)
{
    if (isatty(STDOUT_FILENO))
        return verb_misused(t->in, "standard output is a terminal; name a file, or send it to one");
    if (given(t->in, "data"))
        return verb_misused(t->in, "--data takes a FILE, not -");
    t->fd = STDOUT_FILENO;
    return CLI_OK;
}

/* Overwrites the rest of an interrupted backup. A running backup holds a lock on the file. */
static int target_open(struct target *t)
{
    struct stat st;

    if (target_is_stream(t))
        return stream_open(t);
    if (stat(t->name, &st) == 0 && !S_ISREG(st.st_mode))
        return verb_failed(t->in, CLI_USAGE, "%s: it is no plain file; name another one", t->name);
    if (lstat(t->name, &st) == 0 && !given(t->in, "force"))
        return verb_failed(t->in, CLI_USAGE, "%s is there; name another file, or give --force",
                           t->name);
    buf_fmt(&t->part, "%s.part", t->name);
    t->fd = open(t->part.ptr, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (t->fd < 0)
        return target_failed(t, t->part.ptr, "make it");
    if (flock(t->fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(t->fd);
        t->fd = -1;
        return verb_failed(t->in, CLI_USAGE, "%s: another backup is being written to it",
                           t->part.ptr);
    }
    if (fchmod(t->fd, 0600) != 0 || ftruncate(t->fd, 0) != 0)
        return target_failed(t, t->part.ptr, "empty it");
    return CLI_OK;
}

static void target_fini(struct target *t)
{
    bool is_stream = target_is_stream(t);

    term_progress_end(&t->progress);
    if (!is_stream && t->fd >= 0) {
        (void)unlink(t->part.ptr); /* a finished one was renamed */
        (void)close(t->fd);
    }
    buf_fini(&t->part);
}

static bool folder_of_is_durable(const char *path)
{
    char copy[PATH_MAX];

    (void)snprintf(copy, sizeof copy, "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        (void)close(fd); /* only fsync matters */
    return ok;
}

static int target_finish(struct target *t)
{
    struct error e = {0};

    if (target_is_stream(t))
        return CLI_OK;
    term_progress_label(&t->progress, "checking it");
    bool synced = fsync(t->fd) == 0;
    int why = errno;
    bool checked = synced && sqlite_file_check(t->part.ptr, &e) == ERR_OK;
    term_progress_end(&t->progress); /* an error gets its own line */
    errno = why;
    if (!synced)
        return target_failed(t, t->part.ptr, "write it");
    if (!checked)
        return verb_failed(t->in, CLI_NOT_WELL, "%s", e.text);
    if (rename(t->part.ptr, t->name) != 0)
        return target_failed(t, t->name, "give it its name");
    (void)close(t->fd); /* synced; another file may have the old name by now */
    t->fd = -1;
    if (!folder_of_is_durable(t->name))
        return target_failed(t, t->name, "make its name durable");
    return CLI_OK;
}

/* ---- from a server ---- */

static bool take(void *arg, const char *bytes, size_t size, int64_t whole)
{
    struct target *t = arg;

    while (size > 0) {
        ssize_t n = write(t->fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            t->failure = errno;
            return false;
        }
        bytes += n;
        size -= (size_t)n;
        t->done += n;
    }
    show_progress(t, "received", t->done, whole);
    return true;
}

static int from_server(struct target *t)
{
    struct intact_client *c = client_begin(t->in);

    term_progress_label(&t->progress, "the server copies its store");
    enum intact_status status = intact_client_fetch(c, "POST", "/v1/backup", take, t);
    int end = CLI_OK;
    term_progress_end(&t->progress);
    if (t->failure) {
        errno = t->failure;
        end = target_failed(t, target_is_stream(t) ? "standard output" : t->part.ptr, "write it");
    } else if (status == INTACT_UNREACHABLE && t->done > 0) {
        end = verb_failed(t->in, CLI_UNREACHED,
                          "the server ended the transfer after %" PRId64
                          " MiB; look at its log, and ask again",
                          t->done / MIB);
    } else if (status != INTACT_OK) {
        end = client_complain(c, status);
    }
    intact_client_free(c);
    return end;
}

/* ---- from a folder ---- */

static int from_folder(struct target *t, const char *dir)
{
    const struct sqlite_progress progress = {show_pages, t};
    struct error e = {0};

    enum err err = sqlite_folder_backup(dir, t->part.ptr, &progress, &e);
    term_progress_end(&t->progress);
    if (err == ERR_OK)
        return CLI_OK;
    if (err == ERR_LOCKED)
        return verb_failed(t->in, CLI_USAGE,
                           "a server uses %s; without --data that server is asked", dir);
    return verb_failed(t->in, err == ERR_NOT_FOUND ? CLI_USAGE : CLI_NOT_WELL, "%s", e.text);
}

static void report(const struct target *t)
{
    struct stat st;

    if (!target_is_stream(t) && stat(t->name, &st) == 0)
        fprintf(stderr, "%s: %" PRId64 " bytes, checked; it is as secret as the store itself\n",
                t->name, (int64_t)st.st_size);
}

static int run(struct invocation *in)
{
    struct target t = {.in = in, .name = in->words[0], .fd = -1};
    const char *dir = given(in, "data");

    (void)given_color(in, &t.color); /* checked when it was read */
    term_progress_begin(&t.progress, "", PROGRESS_BYTES, 0, t.color);
    int end = target_open(&t);
    if (end == CLI_OK)
        end = dir ? from_folder(&t, dir) : from_server(&t);
    if (end == CLI_OK)
        end = target_finish(&t);
    if (end == CLI_OK)
        report(&t);
    target_fini(&t);
    return end;
}

static const struct flag flags[] = {
    {.name = "data",
     .value = "DIR",
     .help = "copy from this folder of a stopped server",
     .kind = WORD_FOLDER},
    {.name = "force", .help = "replace an existing FILE"},
    {0},
};

const struct verb verb_backup = {
    .name = "backup",
    .summary = "copy the state store to a file",
    .about = "Takes a consistent copy of the state store while the server runs. The "
             "copy is checked before FILE exists. It is as secret as the store.\n\n"
             "With - the copy goes to standard output unchecked: the exit status "
             "says whether it is complete.",
    .arguments = {{.name = "FILE", .kind = WORD_FILE}},
    .flags = flags,
    .examples = {{"intact backup /backups/intact-monday.db", "write a backup"},
                 {"intact backup - | gzip > intact.db.gz", "compressed"},
                 {"intact backup before.db --data intact-data", "of a stopped server"}},
    .exits = "1 if the server refused, or the backup is damaged",
    .run = run,
};
