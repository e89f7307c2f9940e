/* `intact outbox list` (messages that wait or are dead letters, page by page) and `intact target
 * list` (their receivers, with counts). outbox_verbs.c retries and drops messages. */

#include <stdio.h>

#include "cli/client/pages.h"
#include "cli/client/table.h"
#include "cli/verbs.h"

/* ---- outbox list ---- */

static void print_page(const struct invocation *in, const struct json *page, bool is_last)
{
    const struct json *messages = json_get(page, "messages");
    static const char *const heads[] = {"MESSAGE", "TARGET",   "STATE", "TRIES",
                                        "CREATED", "RETRY AT", "ERROR", NULL};
    CLEANUP(table_fini) struct table t;
    (void)is_last;

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

static int run_list(struct invocation *in)
{
    static const char *const flags[] = {"state", "target", "task", NULL};

    return pages_show(in,
                      &(struct pages){.path = "/v1/outbox", .flags = flags, .print = print_page});
}

static const struct flag list_flags[] = {
    {.name = "state",
     .value = "STATE",
     .help = "waiting, or dead (no longer retried)",
     .initial = "waiting",
     .kind = WORD_CHOICES,
     .choices = "waiting dead"},
    {.name = "target", .value = "TARGET", .help = "for this target"},
    {.name = "task", .value = "TASK", .help = "of this task", .kind = WORD_TASK},
    PAGES_FLAGS,
    {0},
};

const struct verb verb_outbox_list = {
    .noun = "outbox",
    .name = "list",
    .summary = "list undelivered status messages",
    .about = "Lists undelivered status messages, oldest first: those that wait, or those that are "
             "dead. With --json each has its event.",
    .flags = list_flags,
    .examples = {{"intact outbox list", "waiting messages"},
                 {"intact outbox list --state dead", "dead messages, and why"}},
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
    .summary = "list targets with undelivered messages",
    .about = "Lists targets with undelivered messages: how many wait, how many are "
             "dead, since when, and why. Only the node that leads knows until when "
             "a target is paused.",
    .examples = {{"intact target list", "unreachable targets"}},
    .run = run_targets,
};
