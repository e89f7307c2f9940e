/* `intact workflow list`: the names of stored workflows, their newest versions, and their numbers
 * of steps. client/table.c makes the call and the table. */

#include "cli/client/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"WORKFLOW", "VERSION", "STEPS", NULL};

static void add(struct table *t, const struct json *workflow)
{
    table_add(t, json_get_text(workflow, "name"));
    table_add(t, json_get_raw(workflow, "version"));
    table_add(t, json_get_raw(workflow, "steps"));
}

static int run(struct invocation *in)
{
    static const struct table_view view = {"/v1/workflows", "workflows", heads, add, NULL};

    return table_show(in, &view);
}

const struct verb verb_workflow_list = {
    .noun = "workflow",
    .name = "list",
    .summary = "list the stored workflows",
    .about = "Lists the stored workflows, each with its newest version.",
    .examples = {{"intact workflow list", "available workflows"}},
    .run = run,
};
