/* `intact operation list`, `get`, `stop` and `continue`: operations on many tasks that were
 * started before. operation_show.c shows one, operation_start.c starts one. */

#include "cli/client/client.h"
#include "cli/client/table.h"
#include "cli/verbs.h"
#include "cli/verbs/operation_show.h"

static void print_list(const struct invocation *in, const struct json *list)
{
    static const char *const heads[] = {"ID",   "VERB", "STATE",   "MATCHED", "DONE",
                                        "GONE", "BY",   "STARTED", "REASON",  NULL};
    CLEANUP(table_fini) struct table t;

    table_begin(&t, in, heads);
    for (const struct json *j = list ? list->child : NULL; j; j = j->next) {
        table_add(&t, json_get_text(j, "id"));
        table_add(&t, json_get_text(j, "verb"));
        table_add(&t, json_get_text(j, "state"));
        table_add(&t, json_get_raw(j, "matched"));
        table_add(&t, json_get_raw(j, "done"));
        table_add(&t, json_get_raw(j, "gone"));
        table_add(&t, json_get_text(j, "by"));
        table_add_time(&t, json_get_text(j, "started_at"));
        table_add(&t, json_get_text(j, "reason"));
    }
    table_print(&t);
}

static int list(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    int64_t limit = 20;
    int end = CLI_OK;

    if (!given_number(in, "limit", 1, 100, &limit))
        return CLI_USAGE;
    buf_fmt(&path, "/v1/operations?limit=%" PRId64, limit);
    struct intact_client *c = client_begin(in);
    const struct json *page = client_ask(c, "GET", path.ptr, NULL, &a, &end);
    if (page && given(in, "json"))
        client_print_body(c);
    else if (page)
        print_list(in, json_get(page, "operations"));
    intact_client_free(c);
    return end;
}

static int get(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;

    if (given(in, "wait")) {
        end = operation_follow(in, c, slice_of(in->words[0]), 0);
        intact_client_free(c);
        return end;
    }
    buf_str(&path, "/v1/operations/");
    client_escape(&path, slice_of(in->words[0]));
    const struct json *j = client_ask(c, "GET", path.ptr, NULL, &a, &end);
    if (j && given(in, "json"))
        client_print_body(c);
    else if (j)
        operation_show(j);
    intact_client_free(c);
    return end;
}

static int change(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    const char *reason = given(in, "reason");
    int end = CLI_OK;

    if (!reason || !*reason) {
        verb_misused(in, "--reason TEXT is required");
        return CLI_USAGE;
    }
    buf_str(&path, "/v1/operations/");
    client_escape(&path, slice_of(in->words[0]));
    buf_fmt(&path, "/%s", in->verb->name);
    json_open(&body, '{');
    json_member_text(&body, "reason", slice_of(reason));
    json_close(&body, '}');
    struct intact_client *c = client_begin(in);
    const struct json *j = client_ask(c, "POST", path.ptr, &body, &a, &end);
    if (j && given(in, "json"))
        client_print_body(c);
    else if (j)
        operation_show(j);
    intact_client_free(c);
    return end;
}

static const struct flag list_flags[] = {
    {.name = "limit", .value = "N", .help = "maximum number, up to 100", .initial = "20"},
    {0},
};

static const struct flag get_flags[] = {
    {.name = "wait", .help = "wait until it has ended or was stopped"},
    {0},
};

static const struct flag change_flags[] = {
    {.name = "reason", .value = "TEXT", .help = "reason for the audit; required"},
    {0},
};

const struct verb verb_operation_list = {
    .noun = "operation",
    .name = "list",
    .summary = "list operations, newest first",
    .about = "Lists operations on many tasks, newest first.",
    .flags = list_flags,
    .examples = {{"intact operation list", "the latest 20"}},
    .run = list,
};

const struct verb verb_operation_get = {
    .noun = "operation",
    .name = "get",
    .summary = "show the progress of an operation",
    .about = "Shows the progress of an operation. Each matching task is counted once: as done, "
             "refused (with the reason), failed, or gone.",
    .arguments = {{.name = "ID"}},
    .flags = get_flags,
    .examples = {{"intact operation get ID --wait", "wait for its end"}},
    .exits =
        "1 if there is none, or with --wait if it was stopped or some tasks were refused or failed",
    .run = get,
};

const struct verb verb_operation_stop = {
    .noun = "operation",
    .name = "stop",
    .summary = "stop an operation",
    .about = "Stops an operation. Its effects stay, and it can be continued.",
    .arguments = {{.name = "ID"}},
    .flags = change_flags,
    .examples = {{"intact operation stop ID --reason 'not at noon'", "stop it for now"}},
    .run = change,
};

const struct verb verb_operation_continue = {
    .noun = "operation",
    .name = "continue",
    .summary = "continue a stopped operation",
    .about = "Continues a stopped operation where it stopped.",
    .arguments = {{.name = "ID"}},
    .flags = change_flags,
    .examples = {{"intact operation continue ID --reason 'it is night'", "continue it"}},
    .run = change,
};
