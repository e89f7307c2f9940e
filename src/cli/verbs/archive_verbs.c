/* intact archive list, get, cat: records of deleted tasks, read directly from the archive's
 * files. */

#include "archive/archive.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "cli/client/table.h"
#include "cli/verbs.h"
#include "json/json.h"

static const char *folder_of(const struct invocation *in)
{
    const char *folder = given(in, "folder");

    if (!folder || !*folder)
        (void)verb_misused(in, "say where the archive is: --folder DIR");
    return folder && *folder ? folder : NULL;
}

static int failed(const struct invocation *in, const struct error *e)
{
    return verb_failed(in, e->code == ERR_NOT_FOUND ? CLI_USAGE : CLI_NOT_WELL, "%s", e->text);
}

/* ---- list ---- */

static void put_file(const struct invocation *in, const struct archive_file *f)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf at = {0};

    time_write(&at, f->begun_at);
    if (!given(in, "json")) {
        printf("%s  %12" PRId64 "  %s\n", at.ptr, f->size, f->name);
        return;
    }
    json_open(&b, '{');
    json_member_text(&b, "file", slice_of(f->name));
    json_member_text(&b, "begun_at", buf_view(&at));
    json_member_number(&b, "bytes", f->size);
    json_close(&b, '}');
    printf("%s\n", b.ptr);
}

static int list(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct archive_file *files = NULL;
    const char *folder = folder_of(in);
    struct error e = {0};
    size_t count = 0;

    if (!folder)
        return CLI_USAGE;
    if (archive_list(folder, &a, &files, &count, &e) != ERR_OK)
        return failed(in, &e);
    for (size_t i = 0; i < count; i++)
        put_file(in, &files[i]);
    return CLI_OK;
}

/* ---- get, cat ---- */

/* What to do with each line. */
struct visit {
    void (*line)(struct visit *v, struct slice line);
    struct slice id;  /* get */
    struct buf found; /* get: the last match */
};

static enum err visit_file(struct visit *v, const char *folder, const char *name, struct error *e)
{
    struct archive_reader *r = archive_reader_open(folder, name, e);
    struct slice line = {0};

    if (!r)
        return e->code;
    enum err err = ERR_OK;
    while ((err = archive_next(r, &line, e)) == ERR_OK && line.ptr)
        v->line(v, line);
    if (err == ERR_OK && archive_reader_is_cut(r))
        fprintf(stderr,
                "%s/%s ends in the middle of a record, which was never acknowledged; all "
                "before it was read\n",
                folder, name);
    archive_reader_close(r);
    return err;
}

static enum err visit_all(struct visit *v, const char *folder, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct archive_file *files = NULL;
    size_t count = 0;

    enum err err = archive_list(folder, &a, &files, &count, e);
    for (size_t i = 0; err == ERR_OK && i < count; i++)
        err = visit_file(v, folder, files[i].name, e);
    return err;
}

static void print_line(struct visit *v, struct slice line)
{
    (void)v;
    (void)fwrite(line.ptr, 1, line.len, stdout); /* checked at the end of the program */
    (void)putchar('\n');
}

/* Does not parse the record, because the id comes first. */
static void look_for(struct visit *v, struct slice line)
{
    static const char before[] = "{\"id\":\"";
    size_t n = sizeof before - 1;

    if (line.len > n + v->id.len && memcmp(line.ptr, before, n) == 0
        && memcmp(line.ptr + n, v->id.ptr, v->id.len) == 0 && line.ptr[n + v->id.len] == '"') {
        buf_clear(&v->found);
        buf_slice(&v->found, line);
    }
}

static int get(struct invocation *in)
{
    struct visit v = {.line = look_for, .id = slice_of(in->words[0])};
    const char *folder = folder_of(in);
    struct error e = {0};

    if (!folder)
        return CLI_USAGE;
    enum err err = visit_all(&v, folder, &e);
    if (v.found.len > 0)
        print_line(&v, buf_view(&v.found));
    bool found = v.found.len > 0;
    buf_fini(&v.found);
    if (err != ERR_OK)
        return failed(in, &e);
    return found ? CLI_OK
                 : verb_failed(in, CLI_NOT_WELL, "there is no task %s in %s", in->words[0], folder);
}

static int cat(struct invocation *in)
{
    struct visit v = {.line = print_line};
    const char *folder = folder_of(in);
    struct error e = {0};
    enum err err = ERR_OK;

    if (!folder)
        return CLI_USAGE;
    if (in->word_count == 0)
        err = visit_all(&v, folder, &e);
    for (size_t i = 0; err == ERR_OK && i < in->word_count; i++)
        err = visit_file(&v, folder, in->words[i], &e);
    return err == ERR_OK ? CLI_OK : failed(in, &e);
}

#define FOLDER                                                                          \
    {                                                                                   \
        .name = "folder", .value = "DIR", .help = "of the archive", .kind = WORD_FOLDER \
    }

static const struct flag list_flags[] = {
    FOLDER,
    {.name = "json", .help = "one JSON object per line"},
    {0},
};

static const struct flag flags[] = {FOLDER, {0}};

const struct verb verb_archive_list = {
    .noun = "archive",
    .name = "list",
    .summary = "list the files of an archive",
    .about = "Lists the files of an archive: start time, bytes, name.",
    .flags = list_flags,
    .examples = {{"intact archive list --folder /var/lib/intact/archive", "all files"}},
    .is_local = true,
    .run = list,
};

const struct verb verb_archive_get = {
    .noun = "archive",
    .name = "get",
    .summary = "print the record of a deleted task",
    .about = "Finds a task in an archive, and prints its last record as JSON.",
    .arguments = {{.name = "TASK", .kind = WORD_ANY}},
    .flags = flags,
    .examples = {{"intact archive get o-17 --folder /var/lib/intact/archive", "one task"}},
    .exits = "1 if the task is not there, or a file is damaged",
    .is_local = true,
    .run = get,
};

const struct verb verb_archive_cat = {
    .noun = "archive",
    .name = "cat",
    .summary = "print all records of an archive, or of some files",
    .about = "Prints records, one per line. After a crash a task may occur more than once: the "
             "last record is valid.",
    .arguments = {{.name = "FILE", .kind = WORD_ANY, .optional = true, .repeats = true}},
    .flags = flags,
    .examples = {{"intact archive cat --folder /var/lib/intact/archive | jq .id",
                  "ids of all tasks"}},
    .exits = "1 if a file is damaged",
    .is_local = true,
    .run = cat,
};
