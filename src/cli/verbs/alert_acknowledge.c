/* `intact alert acknowledge`: stops the reminders of one alert, by its id, with a reason for the
 * audit. alert_list.c shows the ids. */

#include <stdio.h>

#include "cli/client/client.h"
#include "cli/verbs.h"
#include "cli/verbs/operate.h"

static int run(struct invocation *in)
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
    json_open(&body, '{');
    json_member_text(&body, "reason", slice_of(reason));
    json_close(&body, '}');
    struct intact_client *c = client_begin(in);
    buf_str(&path, "/v1/alerts/");
    client_escape(&path, slice_of(in->words[0]));
    buf_str(&path, "/acknowledge");
    const struct json *answer = client_ask(c, "POST", path.ptr, &body, &a, &end);
    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        printf("%s is acknowledged\n", in->words[0]);
    intact_client_free(c);
    return end;
}

static const struct flag flags[] = {REASON_FLAG, {0}};

const struct verb verb_alert_acknowledge = {
    .noun = "alert",
    .name = "acknowledge",
    .summary = "acknowledge an alert",
    .about = "Acknowledges an alert: no more reminders are sent. Its end is still "
             "reported, and so are failures after a quiet hour.",
    .arguments = {{.name = "ALERT"}},
    .flags = flags,
    .examples =
        {{"intact alert acknowledge a-0f3c9a1b2c3d4e5f --reason 'the bank knows, back at 5'",
          "stop the reminders"}},
    .run = run,
};
