/* `intact outbox retry` and `intact outbox drop`: what becomes of dead letters, by id or filter.
 * outbox_list.c lists them. */

#include <stdio.h>

#include "cli/client/client.h"
#include "cli/verbs.h"

static int ask(const struct invocation *in, const char *path, const struct buf *body,
               const char *done)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;
    const struct json *answer = client_ask(c, "POST", path, body, &a, &end);

    if (answer && given(in, "json")) {
        client_print_body(c);
    } else if (answer) {
        int64_t n = json_get_int(answer, "messages", 0);
        printf("%" PRId64 " message%s %s\n", n, n == 1 ? "" : "s", done);
    }
    intact_client_free(c);
    return end;
}

static int run(const struct invocation *in, const char *path, const char *done)
{
    CLEANUP(buf_fini) struct buf body = {0};
    int said = (given(in, "target") != NULL) + (given(in, "task") != NULL)
               + (given(in, "message") != NULL) + (given(in, "all") != NULL);

    if (said != 1)
        return verb_misused(in, "one of --target, --task, --message or --all is required");
    if (!given(in, "reason") || !*given(in, "reason"))
        return verb_misused(in, "--reason TEXT is required");
    json_open(&body, '{');
    json_member_text_if(&body, "target", slice_of(given(in, "target")));
    json_member_text_if(&body, "task", slice_of(given(in, "task")));
    json_member_text_if(&body, "message", slice_of(given(in, "message")));
    if (given(in, "all")) {
        json_member_bool(&body, "all", true);
    }
    json_member_text_if(&body, "reason", slice_of(given(in, "reason")));
    json_close(&body, '}');
    return ask(in, path, &body, done);
}

static int run_retry(struct invocation *in)
{
    return run(in, "/v1/outbox/retry", "will be tried now");
}

static int run_drop(struct invocation *in)
{
    return run(in, "/v1/outbox/drop", "dropped");
}

static const struct flag flags[] = {
    {.name = "target", .value = "TARGET", .help = "all for this target"},
    {.name = "task", .value = "TASK", .help = "all of this task", .kind = WORD_TASK},
    {.name = "message", .value = "ID", .help = "one message, as shown by outbox list"},
    {.name = "all", .help = "all messages"},
    {.name = "reason", .value = "TEXT", .help = "reason for the audit"},
    {0},
};

const struct verb verb_outbox_retry = {
    .noun = "outbox",
    .name = "retry",
    .summary = "retry status messages now",
    .about = "Retries undelivered status messages at once. Dead ones are then retried for as long "
             "as new ones.",
    .flags = flags,
    .examples =
        {{"intact outbox retry --target https://shop.example/messages --reason 'it is back'",
          "after a long outage"}},
    .run = run_retry,
};

const struct verb verb_outbox_drop = {
    .noun = "outbox",
    .name = "drop",
    .summary = "delete dead status messages",
    .about = "Deletes dead status messages. Waiting ones stay.",
    .flags = flags,
    .examples = {{"intact outbox drop --target https://old.example/ --reason 'shut down for good'",
                  "for a target that no longer exists"}},
    .run = run_drop,
};
