/* `intact signal TASK NAME`: sends a signal; `intact signal --workflow W --tag K=V NAME`: to many
 * tasks; `intact signal drop`: drops those that no step took. */

#include <stdio.h>

#include "cli/client/client.h"
#include "cli/verbs.h"
#include "cli/verbs/task_show.h"

static void show_sent(const struct invocation *in, const struct intact_client *c)
{
    if (given(in, "json"))
        client_print_body(c);
    else
        printf("signal %s sent to task %s\n", in->words[1], in->words[0]);
}

static bool data_of(const struct invocation *in, struct buf *b)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    const char *value = given(in, "data");
    struct json_fault fault = {0};
    struct json *j = NULL;

    if (!value)
        value = "null";
    if (value[0] == '@' || strcmp(value, "-") == 0) {
        if (!client_read_file(value[0] == '@' ? value + 1 : value, b))
            return false;
    } else {
        buf_str(b, value);
    }
    if (json_parse(&arena, buf_view(b), &j, &fault) == ERR_OK)
        return true;
    verb_misused(in, "--data is not JSON: line %u, column %u: %s", fault.line, fault.column,
                 fault.what);
    return false;
}

/* ---- to many ---- */

static bool add_tags(const struct invocation *in, struct buf *b)
{
    const char *tag = NULL;

    json_key(b, "tags");
    json_open(b, '{');
    for (size_t at = 0; (tag = given_next(in, "tag", &at));) {
        const char *equals = strchr(tag, '=');
        if (!equals) {
            verb_misused(in, "--tag is \"%s\", expected KEY=VALUE", tag);
            return false;
        }
        json_key_slice(b, (struct slice){tag, (size_t)(equals - tag)});
        json_string(b, slice_of(equals + 1));
    }
    json_close(b, '}');
    return true;
}

static bool many_render(const struct invocation *in, struct slice data, struct buf *b)
{
    json_open(b, '{');
    json_member_text(b, "workflow", slice_of(given(in, "workflow")));
    json_member_text(b, "name", slice_of(in->words[0]));
    if (!add_tags(in, b))
        return false;
    json_member_raw(b, "data", data);
    if (given(in, "key"))
        json_member_text(b, "id", slice_of(given(in, "key")));
    if (given(in, "cursor"))
        json_member_text(b, "cursor", slice_of(given(in, "cursor")));
    json_close(b, '}');
    return true;
}

static void show_many(const struct invocation *in, const struct json *sent)
{
    const struct json *refused = json_get(sent, "refused");
    struct slice next = json_get_text(sent, "next");

    printf("signal %s sent to %" PRId64 " of %" PRId64 " tasks\n", in->words[0],
           json_get_int(sent, "sent", 0), json_get_int(sent, "tasks", 0));
    for (const struct json *m = refused ? refused->child : NULL; m; m = m->next)
        printf("%.*s: %.*s\n", SLICE_ARG(m->key), SLICE_ARG(m->raw));
    if (next.ptr)
        printf("there are more: --key %.*s --cursor %.*s\n", SLICE_ARG(json_get_text(sent, "id")),
               SLICE_ARG(next));
}

static int many_run(const struct invocation *in, struct slice data)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    int end = CLI_OK;

    if (in->word_count != 1)
        return verb_misused(in, "with --workflow: expected NAME, and no task");
    if (!given(in, "tag"))
        return verb_misused(in, "--tag KEY=VALUE is required beside --workflow");
    if (!many_render(in, data, &body))
        return CLI_USAGE;
    struct intact_client *c = client_begin(in);
    const struct json *sent = client_ask(c, "POST", "/v1/signals", &body, &a, &end);
    if (sent && given(in, "json"))
        client_print_body(c);
    else if (sent)
        show_many(in, sent);
    intact_client_free(c);
    return end;
}

/* ---- to one ---- */

static int send_run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf data = {0};

    if (given(in, "key") && !*given(in, "key"))
        return verb_misused(in, "--key is empty");
    if (!data_of(in, &data))
        return CLI_USAGE;
    if (given(in, "workflow"))
        return many_run(in, buf_view(&data));
    if (given(in, "tag") || given(in, "cursor"))
        return verb_misused(in, "--%s needs --workflow NAME beside it",
                            given(in, "tag") ? "tag" : "cursor");
    if (in->word_count != 2)
        return verb_misused(in, "expected TASK NAME, or --workflow NAME --tag KEY=VALUE NAME");
    struct intact_client *c = client_begin(in);
    enum intact_status status =
        intact_client_signal(c, in->words[0], in->words[1], data.ptr, given(in, "key"));
    int end = CLI_OK;
    if (status == INTACT_OK)
        show_sent(in, c);
    else
        end = client_complain(c, status);
    intact_client_free(c);
    return end;
}

static const struct flag send_flags[] = {
    {.name = "data",
     .value = "JSON",
     .help = "its value: JSON, @FILE, or - for standard input [null]"},
    {.name = "key",
     .value = "KEY",
     .help = "identifies the signal: with the same key it is the same one"},
    {.name = "workflow",
     .value = "NAME",
     .help = "to all open tasks of this workflow with the tags, at most 1000",
     .kind = WORD_WORKFLOW},
    {.name = "tag", .value = "KEY=VALUE", .help = "of these tasks", .repeats = true},
    {.name = "cursor", .value = "CURSOR", .help = "to those after the first 1000, as printed"},
    {0},
};

const struct verb verb_signal = {
    .name = "signal",
    .summary = "send a signal to a task, or to many",
    .about = "Sends a signal to a task, for the first step that waits for that "
             "name, now or later.\n\nWith --workflow and --tag, and NAME alone, it "
             "is sent to all such tasks.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}, {.name = "NAME", .optional = true}},
    .flags = send_flags,
    .examples = {{"intact signal o-17 payment --data '{\"amount\": 100}'", "with a value"},
                 {"intact signal o-17 payment --data @payment.json --key p-88",
                  "safe to repeat: it counts once"},
                 {"intact signal --workflow order --tag shop=north reopened",
                  "to all open orders of a shop"},
                 {"intact signal drop o-17 payment --reason '...'",
                  "signals that no step has taken"}},
    .run = send_run,
};

/* ---- drop ---- */

static int drop_run(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    int end = CLI_OK;

    if (!given(in, "reason") || !*given(in, "reason"))
        return verb_misused(in, "--reason TEXT is required");
    if (given(in, "key") && !*given(in, "key"))
        return verb_misused(in, "--key is empty");
    buf_str(&path, "/v1/tasks/");
    client_escape(&path, slice_of(in->words[0]));
    buf_str(&path, "/signals/");
    client_escape(&path, slice_of(in->words[1]));
    buf_str(&path, "/drop");
    json_open(&body, '{');
    if (given(in, "key"))
        json_member_text(&body, "id", slice_of(given(in, "key")));
    json_member_text(&body, "reason", slice_of(given(in, "reason")));
    json_close(&body, '}');
    struct intact_client *c = client_begin(in);
    const struct json *task = client_ask(c, "POST", path.ptr, &body, &a, &end);
    if (task && given(in, "json"))
        client_print_body(c);
    else if (task)
        task_show(in, task);
    intact_client_free(c);
    return end;
}

static const struct flag drop_flags[] = {
    {.name = "key", .value = "KEY", .help = "only the signal with this key"},
    {.name = "reason", .value = "TEXT", .help = "reason for the audit"},
    {0},
};

const struct verb verb_signal_drop = {
    .noun = "signal",
    .name = "drop",
    .summary = "drop signals that no step has taken",
    .about = "Drops the signals of that name which no step of the task has taken.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}, {.name = "NAME"}},
    .flags = drop_flags,
    .examples = {{"intact signal drop o-17 payment --reason 'sent to the wrong order'",
                  "all of that name"}},
    .run = drop_run,
};
