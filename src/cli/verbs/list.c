/* `intact list`: tasks by state, workflow, tags and other filters, page by page, as a table or as
 * JSON. get.c shows one of them. */

#include "cli/client/client.h"
#include "cli/client/table.h"
#include "cli/verbs.h"

#include <stdio.h>

static void add_query(struct buf *b, const char *prefix, struct slice name, struct slice value)
{
    if (b->len)
        buf_byte(b, '&');
    buf_str(b, prefix);
    client_escape(b, name);
    buf_byte(b, '=');
    client_escape(b, value);
}

static bool add_tags(const struct invocation *in, struct buf *query)
{
    const char *tag = NULL;

    for (size_t at = 0; (tag = given_next(in, "tag", &at));) {
        const char *equals = strchr(tag, '=');
        if (!equals) {
            verb_misused(in, "--tag is \"%s\", expected KEY=VALUE", tag);
            return false;
        }
        add_query(query, "tag.", (struct slice){tag, (size_t)(equals - tag)}, slice_of(equals + 1));
    }
    return true;
}

static bool add_filters(const struct invocation *in, struct buf *query)
{
    static const struct {
        const char *flag, *name;
    } filters[] = {
        {"state", "state"},
        {"workflow", "workflow"},
        {"after", "submitted_after"},
        {"before", "submitted_before"},
        {"limit", "limit"},
        {"paused", "paused"},
        {"version", "version"},
        {"at-step", "step"},
        {"agent", "agent"},
        {"error", "error"},
        {"ended-after", "ended_after"},
        {"ended-before", "ended_before"},
        {"ids", "ids"},
        {"id-prefix", "id_prefix"},
        {"closed", "closed"},
        {"parent", "parent"},
        {"root", "root"},
    };

    for (size_t i = 0; i < COUNT_OF(filters); i++) {
        const char *value = given(in, filters[i].flag);
        if (value)
            add_query(query, "", slice_of(filters[i].name), slice_of(value));
    }
    if (given(in, "children"))
        add_query(query, "", SLICE("children"), SLICE("true"));
    return add_tags(in, query);
}

/* Rejects what the server would refuse with a shorter message. */
static bool check_filters(const struct invocation *in)
{
    int64_t limit = 0;
    int64_t version = 0;

    return given_number(in, "limit", 1, 500, &limit)
           && given_number(in, "version", 1, INT64_MAX, &version) && given_moment(in, "after")
           && given_moment(in, "before") && given_moment(in, "ended-after")
           && given_moment(in, "ended-before");
}

static void print_page(const struct invocation *in, const struct json *tasks)
{
    static const char *const heads[] = {"ID",       "WORKFLOW",    "STATE",
                                        "PRIORITY", "FAILURES",    "SUBMITTED",
                                        "ENDED",    "WAITING FOR", NULL};
    CLEANUP(table_fini) struct table t;

    table_begin(&t, in, heads);
    for (const struct json *j = tasks ? tasks->child : NULL; j; j = j->next) {
        table_add(&t, json_get_text(j, "id"));
        table_add(&t, json_get_text(j, "workflow"));
        table_add_task_state(&t, j);
        table_add(&t, json_get_raw(j, "priority"));
        table_add(&t, json_get_raw(j, "failure_count"));
        table_add_time(&t, json_get_text(j, "submitted_at"));
        table_add_time(&t, json_get_text(j, "ended_at"));
        table_add(&t, json_get_text(j, "waiting_for"));
    }
    table_print(&t);
}

static int list_pages(const struct invocation *in, struct intact_client *c, struct buf *query)
{
    const size_t plain = query->len;

    for (;;) {
        CLEANUP(arena_fini) struct arena a = {0};
        enum intact_status status = intact_client_list(c, query->len ? query->ptr : NULL);
        const struct json *page = status == INTACT_OK ? client_answer(c, &a) : NULL;

        if (!page)
            return status == INTACT_OK ? CLI_NOT_WELL : client_complain(c, status);
        struct slice next = json_get_text(page, "next");
        if (given(in, "json"))
            client_print_body(c);
        else
            print_page(in, json_get(page, "tasks"));
        if (!given(in, "all") || !next.len)
            return CLI_OK;
        query->len = plain;
        add_query(query, "", SLICE("cursor"), next);
    }
}

static int run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf query = {0};

    if (!check_filters(in) || !add_filters(in, &query))
        return CLI_USAGE;
    struct intact_client *c = client_begin(in);
    int end = list_pages(in, c, &query);
    intact_client_free(c);
    return end;
}

static const struct flag flags[] = {
    {.name = "state",
     .value = "STATE",
     .help = "in this state; several separated by commas",
     .kind = WORD_CHOICES,
     .choices = "pending processing processed compensating compensated error"},
    {.name = "workflow", .value = "NAME", .help = "of this workflow", .kind = WORD_WORKFLOW},
    {.name = "tag", .value = "KEY=VALUE", .help = "with this tag", .repeats = true},
    {.name = "after", .value = "DATE", .help = "submitted then or later: 2026-01-31T10:00:00Z"},
    {.name = "before", .value = "DATE", .help = "submitted before"},
    {.name = "paused",
     .value = "BOOL",
     .help = "paused or not",
     .kind = WORD_CHOICE,
     .choices = "true false"},
    {.name = "closed",
     .value = "BOOL",
     .help = "closed or not",
     .kind = WORD_CHOICE,
     .choices = "true false"},
    {.name = "version", .value = "N", .help = "of this version of the workflow"},
    {.name = "at-step",
     .value = "STEP",
     .help = "at this step: it runs, has failed, or waits for a retry"},
    {.name = "agent",
     .value = "AGENT",
     .help = "at a step of this agent, or waiting for it",
     .kind = WORD_AGENT},
    {.name = "error", .value = "CODE", .help = "with this error code"},
    {.name = "ended-after", .value = "DATE", .help = "ended then or later"},
    {.name = "ended-before", .value = "DATE", .help = "ended before"},
    {.name = "ids", .value = "ID,...", .help = "these ids, at most 100"},
    {.name = "id-prefix", .value = "TEXT", .help = "whose ids begin so"},
    {.name = "children", .help = "tasks that are children, too, whatever the other filters are"},
    {.name = "parent", .value = "ID", .help = "children of this task", .kind = WORD_TASK},
    {.name = "root",
     .value = "ID",
     .help = "all descendants of this task, which has no parent",
     .kind = WORD_TASK},
    {.name = "limit", .value = "N", .help = "maximum number, up to 500", .initial = "50"},
    {.name = "all", .help = "all pages"},
    {0},
};

const struct verb verb_list = {
    .name = "list",
    .summary = "list tasks, newest first",
    .about = "Lists tasks, newest first: 50, or as many as --limit says, or --all.\n\nTasks that "
             "other tasks started, their children, are listed if the filters name states, a step, "
             "an agent, an error, ids, a parent or a root; otherwise with --children.",
    .flags = flags,
    .examples = {{"intact list --state error", "tasks in error"},
                 {"intact list --state error --closed false", "tasks that wait for an operator"},
                 {"intact list --workflow order --state pending,processing", "active orders"},
                 {"intact list --tag customer=17 --after 2026-01-31T00:00:00Z --all",
                  "tasks of a customer since then"},
                 {"intact list --all --json | jq -r '.tasks[].id'", "ids for a script"}},
    .run = run,
};
