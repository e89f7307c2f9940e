#include "cli/client.h"
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

static bool is_among(const struct json *agents, struct slice name)
{
    for (const struct json *j = agents ? agents->child : NULL; j; j = j->next)
        if (slice_eq(json_get_text(j, "agent"), name))
            return true;
    return false;
}

/* Those that only tasks know of: nobody of that name has called. They are counted, not listed. */
static void add_missing(struct table *t, const struct json *agents, const struct json *counted)
{
    for (const struct json *j = counted ? counted->child : NULL; j; j = j->next) {
        if (is_among(agents, json_get_text(j, "agent")))
            continue;
        table_add_look(t, LOOK_BAD, json_get_text(j, "agent"));
        table_add(t, json_get_raw(j, "waiting_tasks"));
        table_add_look(t, LOOK_BAD, SLICE("not connected"));
        for (int i = 0; i < 3; i++)
            table_add(t, SLICE_NONE);
    }
}

static int show(struct invocation *in, const struct json *agents)
{
    CLEANUP(table_fini) struct table t = {0};
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in); /* the other one still holds the text of `agents` */
    int end = CLI_OK;
    const struct json *stats = client_ask(c, "GET", "/v1/stats", NULL, &a, &end);

    table_begin(&t, in, heads);
    for (const struct json *j = agents ? agents->child : NULL; j; j = j->next)
        add(&t, j);
    add_missing(&t, agents, json_get(stats, "agents"));
    table_print(&t);
    intact_client_free(c);
    return end;
}

static int run(struct invocation *in)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in);
    int end = CLI_OK;
    const struct json *answer = client_ask(c, "GET", "/v1/agents", NULL, &a, &end);

    if (answer && given(in, "json"))
        client_print_body(c);
    else if (answer)
        end = show(in, json_get(answer, "agents"));
    intact_client_free(c);
    return end;
}

const struct verb verb_agent_list = {
    .noun = "agent",
    .name = "list",
    .summary = "list the agents and their instances",
    .about = "Lists the agents that the server has heard of, and those that tasks wait for: how "
             "many wait "
             "for each, and its instances with their places, what they have in work, and when "
             "they were last heard of.",
    .examples = {{"intact agent list", "who is connected, and where does work pile up?"},
                 {"intact agent list --json | jq -r '.agents[] | select(.connected | not).agent'",
                  "who is missing"}},
    .run = run,
};
