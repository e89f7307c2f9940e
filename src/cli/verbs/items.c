/* `intact items`: the items of a step with for_each, page by page; of one state all of them. Those
 * at work are in `intact get`, too (task_show.c). */

#include "cli/client/pages.h"
#include "cli/client/record.h"
#include "cli/client/table.h"
#include "cli/verbs.h"

static void add(struct table *t, const struct json *item)
{
    CLEANUP(buf_fini) struct buf attempts = {0};

    record_attempts(&attempts, item);
    table_add(t, json_get_text(item, "name"));
    table_add_state(t, json_get_text(item, "state"));
    table_add(t, attempts.len > 0 ? buf_view(&attempts) : SLICE("0"));
    table_add_number(t, json_get_int(item, "failure_count", 0));
    table_add(t, json_get_bool(item, "in_doubt", false) ? SLICE("yes") : SLICE_NONE);
    table_add(t, json_get_text(json_get(item, "error"), "code"));
    table_add(t, json_get_text(json_get(item, "child"), "id"));
}

static int run(struct invocation *in)
{
    static const char *const parameters[] = {"state", NULL};
    static const char *const heads[] = {"ITEM",     "STATE", "ATTEMPTS", "FAILURES",
                                        "IN DOUBT", "ERROR", "CHILD",    NULL};
    static const struct table_view rows = {.key = "items", .heads = heads, .add = add};
    CLEANUP(buf_fini) struct buf path = {0};

    if (given(in, "state") && (given(in, "limit") || given(in, "all")))
        return verb_misused(in, "with --state all items of that state are shown: say neither "
                                "--limit nor --all");
    buf_str(&path, "/v1/tasks/");
    client_escape(&path, slice_of(in->words[0]));
    buf_str(&path, "/items?step=");
    client_escape(&path, slice_of(in->words[1]));
    return pages_show(in, &(struct pages){.path = path.ptr,
                                          .flags = parameters,
                                          .rows = &rows,
                                          .whole = given(in, "state") != NULL});
}

static const struct flag flags[] = {
    {.name = "state",
     .value = "STATE",
     .help = "only those in this state, of all pages (waiting, running, completed, failed, "
             "skipped, undoing or undone)",
     .kind = WORD_CHOICE,
     .choices = "waiting running completed failed skipped undoing undone"},
    PAGES_FLAGS,
    {0},
};

const struct verb verb_items = {
    .name = "items",
    .summary = "list the items of a step with for_each",
    .about = "Lists the items of a step with for_each, by their numbers. How many are where is in "
             "intact get, and so are those that are at work. The verbs that take --step take an "
             "item that has begun, by its name (pack.3).",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}, {.name = "STEP"}},
    .flags = flags,
    .examples = {{"intact items o-17 pack --state failed", "which of them failed"},
                 {"intact items o-17 pack --all --json | jq -c '.items[] | .output'",
                  "what each of them answered"}},
    .run = run,
};
