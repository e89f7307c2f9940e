#include <stdio.h>

#include "cli/client.h"
#include "cli/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"AT", "WHO", "DID", "TASK", "STEP", "REASON", NULL};

static void print_page(const struct invocation *in, const struct json *entries)
{
    CLEANUP(table_fini) struct table t;

    table_begin(&t, in, heads);
    for (const struct json *j = entries ? entries->child : NULL; j; j = j->next) {
        table_add_time(&t, json_get_text(j, "at"));
        table_add(&t, json_get_text(j, "actor"));
        table_add(&t, json_get_text(j, "verb"));
        table_add(&t, json_get_text(j, "task"));
        table_add(&t, json_get_text(j, "step"));
        table_add(&t, json_get_text(j, "reason"));
    }
    table_print(&t);
}

/* `cursor`: of the page, NONE for the first one; then of the next one. */
static int show_page(const struct invocation *in, struct intact_client *c, struct buf *cursor)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    int64_t limit = 50;
    int end = CLI_OK;

    if (!given_number(in, "limit", 1, 500, &limit))
        return CLI_USAGE;
    buf_fmt(&path, "/v1/audit?limit=%" PRId64, limit);
    if (given(in, "task")) {
        buf_str(&path, "&task=");
        client_escape(&path, slice_of(given(in, "task")));
    }
    if (cursor->len > 0) {
        buf_str(&path, "&cursor=");
        client_escape(&path, buf_view(cursor));
    }
    const struct json *page = client_ask(c, "GET", path.ptr, NULL, &a, &end);
    buf_clear(cursor);
    if (!page)
        return end;
    buf_slice(cursor, json_get_text(page, "next"));
    if (given(in, "json"))
        client_print_body(c);
    else
        print_page(in, json_get(page, "entries"));
    return CLI_OK;
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf cursor = {0};
    struct intact_client *c = client_begin(in);
    int end = show_page(in, c, &cursor);

    while (end == CLI_OK && given(in, "all") && cursor.len > 0)
        end = show_page(in, c, &cursor);
    intact_client_free(c);
    return end;
}

static const struct flag flags[] = {
    {.name = "task", .value = "TASK", .help = "of that task", .kind = WORD_TASK},
    {.name = "limit", .value = "N", .help = "at most so many, up to 500", .initial = "50"},
    {.name = "all", .help = "page after page, all of them"},
    {0},
};

const struct verb verb_audit_list = {
    .noun = "audit",
    .name = "list",
    .summary = "list what people did, newest first",
    .about = "Lists what was done by hand, newest first: who retried, skipped, undid or cancelled "
             "what and why, who stored a definition, made or deleted a token.",
    .flags = flags,
    .examples = {{"intact audit list", "the latest"},
                 {"intact audit list --task o-17", "who had a hand in this task, and why"}},
    .run = run,
};
