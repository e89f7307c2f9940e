/* `intact restore`: makes a store from a backup file. Calls no server: store/sqlite/restore.c
 * does the work and replaces the old store safely. backup.c makes backups. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/verbs.h"
#include "store/sqlite/sqlite.h"

/* If a file was copied from a folder by hand, its newest part may be in a file beside it. */
static int refuse_beside(const struct invocation *in, const char *name)
{
    CLEANUP(buf_fini) struct buf wal = {0};
    struct stat st;

    buf_fmt(&wal, "%s-wal", name);
    if (stat(wal.ptr, &st) != 0 || st.st_size == 0)
        return CLI_OK;
    return verb_failed(in, CLI_USAGE,
                       "%s holds changes that are not in %s yet: this is the file of a server, no "
                       "backup; make one with `intact backup FILE --data DIR` of that folder",
                       wal.ptr, name);
}

static int source_open(const struct invocation *in, const char *name, int *ret_fd)
{
    struct stat st;

    if (strcmp(name, "-") == 0) {
        if (isatty(STDIN_FILENO))
            return verb_misused(in, "standard input is a terminal; name a file");
        *ret_fd = STDIN_FILENO;
        return CLI_OK;
    }
    int end = refuse_beside(in, name);
    if (end != CLI_OK)
        return end;
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        (void)close(fd);
        fd = -1;
        errno = EISDIR;
    }
    if (fd < 0)
        return verb_failed(in, CLI_USAGE, "%s: %s", name, strerror(errno));
    *ret_fd = fd;
    return CLI_OK;
}

/* Is it an error in the command line, or of the file and the disk? */
static int status_of(enum err err)
{
    return err == ERR_CONFLICT || err == ERR_LOCKED ? CLI_USAGE : CLI_NOT_WELL;
}

static int run(struct invocation *in)
{
    const char *name = in->words[0];
    const char *dir = given(in, "data");
    struct error e = {0};
    int fd = -1;

    if (!dir || !*dir)
        return verb_misused(in, "say where to: --data DIR");
    int end = source_open(in, name, &fd);
    if (end != CLI_OK)
        return end;
    struct sqlite_restore r = {.dir = dir,
                               .fd = fd,
                               .name = fd == STDIN_FILENO ? "standard input" : name,
                               .replace = given(in, "force") != NULL,
                               .is_new = given(in, "new-installation") != NULL};
    enum err err = sqlite_folder_restore(&r, &e);
    if (fd != STDIN_FILENO)
        (void)close(fd); /* it was only read */
    if (err != ERR_OK)
        return verb_failed(in, status_of(err), "%s", e.text);
    if (r.aside[0])
        fprintf(stderr, "what was there before is in %s/%s\n", dir, r.aside);
    fprintf(stderr, "restored; `intact serve --data %s` goes on from there\n", dir);
    return CLI_OK;
}

static const struct flag flags[] = {
    {.name = "data", .value = "DIR", .help = "folder to restore into", .kind = WORD_FOLDER},
    {.name = "force", .help = "move an existing store into a folder inside DIR"},
    {.name = "new-installation",
     .help = "give the store a new id and key, to run beside the original"},
    {0},
};

const struct verb verb_restore = {
    .name = "restore",
    .summary = "create a state store from a backup",
    .about = "Restores a backup into a folder that no server uses. The backup is "
             "checked before anything is changed.\n\nStop the original for good "
             "before a server starts on the restored store, which has the same "
             "installation id. To run both, use --new-installation: clients and "
             "agents of the original refuse such a copy, and it refuses their "
             "results.",
    .arguments = {{.name = "FILE", .kind = WORD_FILE}},
    .flags = flags,
    .examples = {{"intact restore /backups/intact-monday.db --data intact-data",
                  "restore a server"},
                 {"intact restore monday.db --data trial --new-installation", "a copy for tests"},
                 {"gunzip -c intact.db.gz | intact restore - --data intact-data",
                  "from a compressed file"}},
    .exits = "1 if the backup is damaged, or the folder cannot be written",
    .is_local = true,
    .run = run,
};
