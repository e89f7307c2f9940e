/* `intact signal TASK NAME`: sends a signal; `intact signal drop`: drops those that no step took.
 */

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

static int send_run(struct invocation *in)
{
    CLEANUP(buf_fini) struct buf data = {0};

    if (given(in, "key") && !*given(in, "key"))
        return verb_misused(in, "--key is empty");
    if (!data_of(in, &data))
        return CLI_USAGE;
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
     .help = "names the signal: sent again with the same key, it is the same one"},
    {0},
};

const struct verb verb_signal = {
    .name = "signal",
    .summary = "send a signal to a task",
    .about = "Sends a signal to a task: the first step that waits for that name takes it. A signal "
             "that no step takes yet is kept for later ones.",
    .arguments = {{.name = "TASK", .kind = WORD_TASK}, {.name = "NAME"}},
    .flags = send_flags,
    .examples = {{"intact signal o-17 payment --data '{\"amount\": 100}'", "with a value"},
                 {"intact signal o-17 payment --data @payment.json --key p-88",
                  "safe to repeat: it counts once"},
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
