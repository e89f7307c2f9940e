/* intact archive list, get, cat: records of deleted tasks and their items, read directly from the
 * archive's files. */

#include "archive/archive.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "cli/client/table.h"
#include "cli/terminal/print.h"
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
        print_row(stdout, "%s  %12" PRId64 "  %s", at.ptr, f->size, f->name);
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

/* Which lines of an archive, counted over all files, from 1; 0: none. */
struct lines {
    uint64_t first, last;
};

/* What to do with each line. */
struct visit {
    void (*line)(struct visit *v, struct slice line);
    bool with_items;     /* cat: also the lines of items */
    struct slice id;     /* get */
    struct buf found;    /* get: the last match */
    uint64_t count;      /* get: lines so far */
    uint64_t items_at;   /* get: where the latest items of the task begin; 0: there are none */
    struct lines chosen; /* get: the items of the last match */
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

static void print(struct slice line)
{
    print_text(stdout, line); /* errors are checked at the end of the program */
    (void)putchar('\n');
}

/* Does not parse the line, because its kind comes first. */
static bool begins_with(struct slice *line, struct slice text)
{
    if (line->len < text.len || memcmp(line->ptr, text.ptr, text.len) != 0)
        return false;
    *line = (struct slice){line->ptr + text.len, line->len - text.len};
    return true;
}

static bool is_of_items(struct slice line)
{
    return begins_with(&line, SLICE("{\"items_of\":"));
}

static bool is_record_of(struct slice line, struct slice id)
{
    return begins_with(&line, SLICE("{\"id\":\"")) && begins_with(&line, id)
           && begins_with(&line, SLICE("\""));
}

static bool are_items_of(struct slice *line, struct slice id)
{
    return begins_with(line, SLICE("{\"items_of\":\"")) && begins_with(line, id)
           && begins_with(line, SLICE("\",\"part\":"));
}

static void print_visited(struct visit *v, struct slice line)
{
    if (v->with_items || !is_of_items(line))
        print(line);
}

/* Items stand before their record. After a crash they may be there once more, from part 1 on. */
static void look_for(struct visit *v, struct slice line)
{
    struct slice rest = line;

    v->count++;
    if (is_record_of(line, v->id)) {
        buf_clear(&v->found);
        buf_slice(&v->found, line);
        v->chosen = (struct lines){v->items_at, v->items_at ? v->count : 0};
        v->items_at = 0;
    } else if (are_items_of(&rest, v->id) && begins_with(&rest, SLICE("1,"))) {
        v->items_at = v->count;
    }
}

static void print_items(struct visit *v, struct slice line)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice rest = line;
    struct json *j = NULL;

    v->count++;
    if (v->count < v->chosen.first || v->count > v->chosen.last || !are_items_of(&rest, v->id)
        || json_parse(&a, line, &j, NULL) != ERR_OK)
        return;
    const struct json *items = json_get(j, "items");
    for (const struct json *i = items ? items->child : NULL; i; i = i->next)
        print(i->raw);
}

/* What was found: the record, or its items, which are read once more. */
static enum err print_found(struct visit *v, const char *folder, bool items, struct error *e)
{
    if (!items) {
        print(buf_view(&v->found));
        return ERR_OK;
    }
    v->line = print_items;
    v->count = 0;
    return v->chosen.last ? visit_all(v, folder, e) : ERR_OK;
}

static int get(struct invocation *in)
{
    struct visit v = {.line = look_for, .id = slice_of(in->words[0])};
    const char *folder = folder_of(in);
    struct error e = {0};

    if (!folder)
        return CLI_USAGE;
    enum err err = visit_all(&v, folder, &e);
    bool found = v.found.len > 0;
    if (found) {
        enum err printed = print_found(&v, folder, given(in, "items"), &e);
        err = err == ERR_OK ? printed : err;
    }
    buf_fini(&v.found);
    if (err != ERR_OK)
        return failed(in, &e);
    return found ? CLI_OK
                 : verb_failed(in, CLI_NOT_WELL, "there is no task %s in %s", in->words[0], folder);
}

static int cat(struct invocation *in)
{
    struct visit v = {.line = print_visited, .with_items = given(in, "items")};
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

static const struct flag get_flags[] = {
    FOLDER,
    {.name = "items", .help = "print its items that had ended, one per line, instead"},
    {0},
};

static const struct flag cat_flags[] = {
    FOLDER,
    {.name = "items", .help = "also print the lines with items"},
    {0},
};

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
    .flags = get_flags,
    .examples = {{"intact archive get o-17 --folder /var/lib/intact/archive", "one task"},
                 {"intact archive get o-17 --items --folder /var/lib/intact/archive",
                  "its items that had ended"}},
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
    .flags = cat_flags,
    .examples = {{"intact archive cat --folder /var/lib/intact/archive | jq .id",
                  "ids of all tasks"}},
    .exits = "1 if a file is damaged",
    .is_local = true,
    .run = cat,
};
