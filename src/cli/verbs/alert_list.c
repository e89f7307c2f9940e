/* `intact alert list`: alerts page by page, and below them the sinks that fail now, because a
 * reader of the list should know. client/pages.c does the paging. */

#include <stdio.h>

#include "cli/client/pages.h"
#include "cli/client/table.h"
#include "cli/terminal/print.h"
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

static void print_alerts(const struct invocation *in, const struct json *alerts)
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

/* Sinks that fail now: a reader of the list should know. */
static void print_sinks(const struct json *sinks)
{
    for (const struct json *j = sinks ? sinks->child : NULL; j; j = j->next) {
        struct slice trouble = json_get_text(j, "trouble");
        if (trouble.ptr)
            print_row(stderr, "%.*s takes no alerts now: %.*s", SLICE_ARG(json_get_text(j, "sink")),
                      SLICE_ARG(trouble));
    }
}

static void print_page(const struct invocation *in, const struct json *page, bool is_last)
{
    print_alerts(in, json_get(page, "alerts"));
    if (is_last)
        print_sinks(json_get(page, "sinks"));
}

static int run(struct invocation *in)
{
    static const char *const parameters[] = {"state", NULL};

    return pages_show(in, &(struct pages){.path = "/v1/alerts",
                                          .flags = parameters,
                                          .print = print_page});
}

static const struct flag flags[] = {
    {.name = "state",
     .value = "STATE",
     .help = "open, acknowledged or resolved",
     .initial = "any",
     .kind = WORD_CHOICE,
     .choices = "open acknowledged resolved"},
    PAGES_FLAGS,
    {0},
};

const struct verb verb_alert_list = {
    .noun = "alert",
    .name = "list",
    .summary = "list alerts, newest first",
    .about = "Lists alerts, newest first: the condition, how often and since when "
             "it occurred, who acknowledged it, and an example task.",
    .flags = flags,
    .examples = {{"intact alert list --state open", "alerts that nobody has acknowledged"},
                 {"intact alert list --json | jq -r '.alerts[].examples[]'", "tasks to check"}},
    .run = run,
};
