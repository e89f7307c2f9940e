/* `intact node list`: the nodes of the installation, whether each is alive, which one leads, and
 * their versions. client/table.c makes the call and the table. */

#include <stdio.h>

#include "cli/client/table.h"
#include "cli/terminal/print.h"
#include "cli/verbs.h"

static const char *const heads[] = {"NODE",   "STATE", "URL",     "ROLES",
                                    "STARTS", "SINCE", "VERSION", NULL};

/* "leads" implies "alive". */
static void add_state(struct table *t, const struct json *node)
{
    if (!json_get_bool(node, "alive", true))
        table_add_look(t, LOOK_BAD, SLICE("gone"));
    else if (json_get_bool(node, "draining", false))
        table_add_look(t, LOOK_BAD, SLICE("draining"));
    else
        table_add(t, json_get_bool(node, "leads", false) ? SLICE("leads") : SLICE("alive"));
}

static void add_roles(struct table *t, const struct json *roles)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (const struct json *j = roles ? roles->child : NULL; j; j = j->next) {
        buf_str(&b, b.len ? "," : "");
        buf_slice(&b, j->text);
    }
    table_add(t, b.len ? buf_view(&b) : SLICE_NONE);
}

static void add_version(struct table *t, const struct json *node)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice build = json_get_text(node, "build");

    buf_slice(&b, json_get_text(node, "version"));
    if (build.len > 0)
        buf_fmt(&b, "+%.*s", SLICE_ARG(build));
    table_add(t, buf_view(&b));
}

static void add(struct table *t, const struct json *node)
{
    table_add(t, json_get_text(node, "node"));
    add_state(t, node);
    table_add(t, json_get_text(node, "url"));
    add_roles(t, json_get(node, "roles"));
    table_add(t, json_get_raw(node, "boot"));
    table_add_time(t, json_get_text(node, "started_at"));
    add_version(t, node);
}

static void tail(const struct json *answer)
{
    struct slice id = json_get_text(answer, "installation");

    if (id.len > 0) /* older servers do not report it */
        print_row(stdout, "installation %.*s", SLICE_ARG(id));
}

static int run(struct invocation *in)
{
    static const struct table_view view = {"/v1/nodes", "nodes", heads, add, tail};

    return table_show(in, &view);
}

const struct verb verb_node_list = {
    .noun = "node",
    .name = "list",
    .summary = "list the nodes of the installation",
    .about = "Lists the nodes of the installation, and its id: state (leads: its "
             "supervisor is active; alive, draining or gone), address, roles, "
             "number and time of starts, version and build. Nodes that have been "
             "gone for more than a day are omitted.",
    .examples = {{"intact node list", "nodes and their versions"},
                 {"intact node list --json | jq -r '.nodes[] | select(.leads).node'",
                  "the node that leads"}},
    .run = run,
};
