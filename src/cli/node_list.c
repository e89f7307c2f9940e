#include "cli/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"NODE", "STARTS", "VERSION", NULL};

static void add(struct table *t, const struct json *node)
{
    table_add(t, json_get_text(node, "node"));
    table_add(t, json_get_raw(node, "boot"));
    table_add(t, json_get_text(node, "version"));
}

static int run(struct invocation *in)
{
    static const struct table_view view = {"/v1/nodes", "nodes", heads, add};

    return table_show(in, &view);
}

const struct verb verb_node_list = {
    .noun = "node",
    .name = "list",
    .summary = "list the servers",
    .about = "Lists the servers of this installation: how often each was started, and its version.",
    .examples = {{"intact node list", "which version runs?"}},
    .run = run,
};
