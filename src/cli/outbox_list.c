#include <stdio.h>

#include "cli/client.h"
#include "cli/table.h"
#include "cli/verbs.h"

/* ---- outbox list ---- */

static void print_messages(const struct invocation *in, const struct json *messages)
{
    static const char *const heads[] = {"MESSAGE", "TARGET",   "STATE", "TRIES",
                                        "CREATED", "RETRY AT", "ERROR", NULL};
    CLEANUP(table_fini) struct table t;

    table_begin(&t, in, heads);
    for (const struct json *j = messages ? messages->child : NULL; j; j = j->next) {
        table_add(&t, json_get_text(j, "id"));
        table_add(&t, json_get_text(j, "target"));
        table_add(&t, json_get_text(j, "state"));
        table_add(&t, json_get_raw(j, "tries"));
        table_add_time(&t, json_get_text(j, "created_at"));
        table_add_time(&t, json_get_text(j, "retry_at"));
        table_add(&t, json_get_text(j, "error"));
    }
    table_print(&t);
}

static void add_filter(const struct invocation *in, struct buf *path, const char *flag)
{
    if (!given(in, flag))
        return;
    buf_fmt(path, "&%s=", flag);
    client_escape(path, slice_of(given(in, flag)));
}

/* `cursor`: of the page, empty for the first one; then of the next one. */
static int show_page(const struct invocation *in, struct intact_client *c, struct buf *cursor)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    int64_t limit = 50;
    int end = CLI_OK;

    if (!given_number(in, "limit", 1, 500, &limit))
        return CLI_USAGE;
    buf_fmt(&path, "/v1/outbox?limit=%" PRId64, limit);
    add_filter(in, &path, "state");
    add_filter(in, &path, "target");
    add_filter(in, &path, "task");
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
        print_messages(in, json_get(page, "messages"));
    return CLI_OK;
}

static int run_list(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf cursor = {0};
    struct intact_client *c = client_begin(in);
    int end = show_page(in, c, &cursor);

    while (end == CLI_OK && given(in, "all") && cursor.len > 0)
        end = show_page(in, c, &cursor);
    intact_client_free(c);
    return end;
}

static const struct flag list_flags[] = {
    {.name = "state",
     .value = "STATE",
     .help = "waiting, or dead: not tried any more",
     .initial = "waiting",
     .kind = WORD_CHOICES,
     .choices = "waiting dead"},
    {.name = "target", .value = "TARGET", .help = "for that target"},
    {.name = "task", .value = "TASK", .help = "of that task", .kind = WORD_TASK},
    {.name = "limit", .value = "N", .help = "at most so many, up to 500", .initial = "50"},
    {.name = "all", .help = "page after page, all of them"},
    {0},
};

const struct verb verb_outbox_list = {
    .noun = "outbox",
    .name = "list",
    .summary = "list status messages that were not delivered",
    .about =
        "Lists status messages that were not delivered yet, the oldest first: those that wait, "
        "or those that are dead. With --json each has its event.",
    .flags = list_flags,
    .examples = {{"intact outbox list", "what waits"},
                 {"intact outbox list --state dead", "what is not tried any more, and why"}},
    .run = run_list,
};

/* ---- target list ---- */

static int run_targets(struct invocation *in)
{
    static const char *const heads[] = {"TARGET",       "WAITING", "DEAD", "OLDEST",
                                        "PAUSED UNTIL", "ERROR",   NULL};
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(table_fini) struct table t;
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;
    const struct json *answer = client_ask(c, "GET", "/v1/targets", NULL, &a, &end);
    const struct json *targets = answer ? json_get(answer, "targets") : NULL;

    table_begin(&t, in, heads);
    for (const struct json *j = targets ? targets->child : NULL; j; j = j->next) {
        table_add(&t, json_get_text(j, "target"));
        table_add(&t, json_get_raw(j, "waiting"));
        table_add(&t, json_get_raw(j, "dead"));
        table_add_time(&t, json_get_text(j, "oldest_at"));
        table_add_time(&t, json_get_text(j, "paused_until"));
        table_add(&t, json_get_text(j, "error"));
    }
    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        table_print(&t);
    intact_client_free(c);
    return end;
}

const struct verb verb_target_list = {
    .noun = "target",
    .name = "list",
    .summary = "list the targets of status messages that are behind",
    .about = "Lists the targets for which messages were set aside: how many wait, how many are "
             "dead, since when, and why. A target to which all goes is not in it. Until when one "
             "is paused is known by the node that leads.",
    .examples = {{"intact target list", "who cannot be reached?"}},
    .run = run_targets,
};
