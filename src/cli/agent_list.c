#include "cli/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"AGENT",   "WAITING",   "INSTANCE", "PLACES",
                                    "IN WORK", "LAST SEEN", NULL};

static void add_head(struct table *t, const struct json *agent)
{
    bool connected = json_get_bool(agent, "connected", false);

    table_add_look(t, connected ? LOOK_PLAIN : LOOK_BAD, json_get_text(agent, "agent"));
    table_add(t, json_get_raw(agent, "waiting_steps"));
}

/* A row of each instance; of an agent without one that it is not there. */
static void add(struct table *t, const struct json *agent)
{
    const struct json *instances = json_get(agent, "instances");

    for (const struct json *j = instances ? instances->child : NULL; j; j = j->next) {
        add_head(t, agent);
        table_add(t, json_get_text(j, "instance"));
        table_add(t, json_get_raw(j, "places"));
        table_add(t, json_get_raw(j, "open_attempts"));
        table_add_time(t, json_get_text(j, "seen_at"));
    }
    if (instances && instances->child)
        return;
    add_head(t, agent);
    table_add_look(t, LOOK_BAD, SLICE("not connected"));
    for (int i = 0; i < 3; i++)
        table_add(t, SLICE_NONE);
}

static int run(struct invocation *in)
{
    static const struct table_view view = {"/v1/agents", "agents", heads, add};

    return table_show(in, &view);
}

const struct verb verb_agent_list = {
    .noun = "agent",
    .name = "list",
    .summary = "list the agents and their instances",
    .about = "Lists the agents that the server has heard of or has work for: how many steps wait "
             "for each, and its instances with their places, what they have in work, and when "
             "they were last heard of.",
    .examples = {{"intact agent list", "who is connected, and where does work pile up?"},
                 {"intact agent list --json | jq -r '.agents[] | select(.connected | not).agent'",
                  "who is missing"}},
    .run = run,
};
