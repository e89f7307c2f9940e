#include <stdio.h>

#include "cli/client.h"
#include "cli/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"ALERT", "STATE",  "WHAT",    "COUNT",
                                    "SINCE", "LATEST", "EXAMPLE", NULL};

static void add_state(struct table *t, const struct json *j)
{
    struct slice state = json_get_text(j, "state");

    if (slice_is(state, "open"))
        table_add_look(t, LOOK_BAD, state);
    else
        table_add(t, state);
}

static void print_page(const struct invocation *in, const struct json *alerts)
{
    CLEANUP(table_fini) struct table t;

    table_begin(&t, in, heads);
    for (const struct json *j = alerts ? alerts->child : NULL; j; j = j->next) {
        const struct json *examples = json_get(j, "examples");
        table_add(&t, json_get_text(j, "id"));
        add_state(&t, j);
        table_add(&t, json_get_text(j, "summary"));
        table_add(&t, json_get_raw(j, "count"));
        table_add_time(&t, json_get_text(j, "opened_at"));
        table_add_time(&t, json_get_text(j, "latest_at"));
        table_add(&t, examples && examples->child ? examples->child->text : SLICE_NONE);
    }
    table_print(&t);
}

/* Those that do not take what they are sent: who reads the list should know. */
static void tell_of_sinks(const struct json *sinks)
{
    for (const struct json *j = sinks ? sinks->child : NULL; j; j = j->next) {
        struct slice trouble = json_get_text(j, "trouble");
        if (trouble.ptr)
            fprintf(stderr, "%.*s takes no alerts now: %.*s\n", SLICE_ARG(json_get_text(j, "sink")),
                    SLICE_ARG(trouble));
    }
}

static void put_path(const struct invocation *in, int64_t limit, const struct buf *cursor,
                     struct buf *path)
{
    buf_fmt(path, "/v1/alerts?limit=%" PRId64, limit);
    if (given(in, "state")) {
        buf_str(path, "&state=");
        client_escape(path, slice_of(given(in, "state")));
    }
    if (cursor->len > 0) {
        buf_str(path, "&cursor=");
        client_escape(path, buf_view(cursor));
    }
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
    put_path(in, limit, cursor, &path);
    const struct json *page = client_ask(c, "GET", path.ptr, NULL, &a, &end);
    buf_clear(cursor);
    if (!page)
        return end;
    buf_slice(cursor, json_get_text(page, "next"));
    if (given(in, "json")) {
        client_print_body(c);
        return CLI_OK;
    }
    print_page(in, json_get(page, "alerts"));
    if (cursor->len == 0)
        tell_of_sinks(json_get(page, "sinks"));
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
    {.name = "state",
     .value = "STATE",
     .help = "open, acknowledged or resolved ones",
     .initial = "any",
     .kind = WORD_CHOICE,
     .choices = "open acknowledged resolved"},
    {.name = "limit", .value = "N", .help = "at most so many, up to 500", .initial = "50"},
    {.name = "all", .help = "page after page, all of them"},
    {0},
};

const struct verb verb_alert_list = {
    .noun = "alert",
    .name = "list",
    .summary = "list what a person is told of, newest first",
    .about = "Lists alerts, newest first: what needs a person, how often, since when, whether "
             "somebody said that he knows, and a task as an example. Tells of sinks that do not "
             "take them.",
    .flags = flags,
    .examples = {{"intact alert list --state open", "what nobody has said of that he knows"},
                 {"intact alert list --json | jq -r '.alerts[].examples[]'", "tasks to look at"}},
    .run = run,
};
