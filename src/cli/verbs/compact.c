/* `intact compact`: shrinks the SQLite store in a folder, which no server may use meanwhile.
 * Calls no server: the work is in store/sqlite/shrink.c. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "cli/verbs.h"
#include "store/sqlite/sqlite.h"

static int status_of(enum err err)
{
    return err == ERR_LOCKED ? CLI_USAGE : CLI_NOT_WELL;
}

static int compact(const struct invocation *in, const char *dir)
{
    struct sqlite_compact c = {0};
    struct store *store = NULL;
    struct error e = {0};

    enum err err = sqlite_store_open(dir, &store, &e);
    if (err == ERR_LOCKED)
        return verb_failed(in, CLI_USAGE, "a server uses %s: stop it first", dir);
    if (err != ERR_OK)
        return verb_failed(in, status_of(err), "%s", e.text);
    err = sqlite_store_compact(store, &c, &e);
    store->ops->close(store);
    if (err != ERR_OK)
        return verb_failed(in, CLI_NOT_WELL, "%s", e.text);
    printf("%s/intact.db: %" PRId64 " bytes before, %" PRId64 " bytes now\n", dir, c.before,
           c.after);
    return CLI_OK;
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf path = {0};
    const char *dir = given(in, "data");
    struct stat st;

    if (!dir || !*dir)
        return verb_misused(in, "say of which store: --data DIR");
    buf_fmt(&path, "%s/intact.db", dir);
    if (stat(path.ptr, &st) != 0)
        return verb_failed(in, CLI_USAGE, "%s: %s", path.ptr, strerror(errno));
    return compact(in, dir);
}

static const struct flag flags[] = {
    {.name = "data", .value = "DIR", .help = "folder of the state store", .kind = WORD_FOLDER},
    {0},
};

const struct verb verb_compact = {
    .name = "compact",
    .summary = "shrink the file of a stopped server",
    .about = "Rewrites the file of a state store without the space of deleted "
             "tasks. No server may use the folder. It needs twice the final size. "
             "If it is interrupted, run it again.\n\nA file from a version before "
             "0.2 is converted, so that a server shrinks it by itself when tasks "
             "are deleted.",
    .flags = flags,
    .examples = {{"intact compact --data intact-data", "after many tasks were deleted"}},
    .exits = "1 if there is not enough space, or the file is damaged",
    .is_local = true,
    .run = run,
};
