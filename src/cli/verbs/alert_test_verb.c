/* `intact alert test`: has the server send a test alert to every sink, and shows which accepted
 * it. The name does not end in _test.c, because that is the form of tests. alert_list.c shows
 * alerts. */

#include "cli/client/client.h"
#include "cli/client/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"SINK", "TOOK IT", "WHY NOT", NULL};

/* Returns whether all sinks accepted it. */
static bool print_sinks(const struct invocation *in, const struct json *sinks)
{
    CLEANUP(table_fini) struct table t;
    bool all = true;

    table_begin(&t, in, heads);
    for (const struct json *j = sinks ? sinks->child : NULL; j; j = j->next) {
        bool took = json_get_bool(j, "took", false);
        all &= took;
        table_add(&t, json_get_text(j, "sink"));
        if (took)
            table_add(&t, SLICE("yes"));
        else
            table_add_look(&t, LOOK_BAD, SLICE("no"));
        table_add(&t, json_get_text(j, "trouble"));
    }
    table_print(&t);
    return all;
}

static bool all_took(const struct json *sinks)
{
    for (const struct json *j = sinks ? sinks->child : NULL; j; j = j->next)
        if (!json_get_bool(j, "took", false))
            return false;
    return true;
}

static int run(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    bool all = false;
    int end = CLI_OK;

    const struct json *answer = client_ask(c, "POST", "/v1/alerts/test", NULL, &a, &end);
    const struct json *sinks = json_get(answer, "sinks");
    if (answer && given(in, "json")) {
        client_print_body(c);
        all = all_took(sinks);
    } else if (answer) {
        all = print_sinks(in, sinks);
    }
    intact_client_free(c);
    return end != CLI_OK ? end : all ? CLI_OK : CLI_NOT_WELL;
}

const struct verb verb_alert_test = {
    .noun = "alert",
    .name = "test",
    .summary = "send a test alert to all sinks",
    .about =
        "Sends a test alert to every sink of the server's configuration, and reports the outcome "
        "of each.",
    .examples = {{"intact alert test", "whether all sinks accept alerts"}},
    .exits = "1 if a sink did not accept it",
    .run = run,
};
