#include "cli/client.h"
#include "cli/table.h"
#include "cli/verbs.h"

static void show(const struct json *workflows)
{
    CLEANUP(table_fini) struct table t = {.columns = 3};

    table_add(&t, SLICE("WORKFLOW"));
    table_add(&t, SLICE("VERSION"));
    table_add(&t, SLICE("STEPS"));
    for (const struct json *j = workflows ? workflows->child : NULL; j; j = j->next) {
        table_add(&t, json_get_text(j, "name"));
        table_add(&t, json_get_raw(j, "version"));
        table_add(&t, json_get_raw(j, "steps"));
    }
    table_print(&t);
}

static int run(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;
    const struct json *answer = client_ask(c, "GET", "/v1/workflows", NULL, &a, &end);

    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        show(json_get(answer, "workflows"));
    intact_client_free(c);
    return end;
}

const struct verb verb_workflow_list = {
    .noun = "workflow",
    .name = "list",
    .summary = "list the workflows that are stored",
    .about = "Lists the workflows that are stored, each with its newest version.",
    .examples = {{"intact workflow list", "what can be submitted"}},
    .run = run,
};
