/* `intact agent list`: a row for each instance of each agent, joined from /v1/agents (instances,
 * places) and /v1/stats (what waits for them). agent_get.c shows the settings of one agent. */

#include "cli/client/client.h"
#include "cli/client/table.h"
#include "cli/verbs.h"

static const char *const heads[] = {"AGENT",   "WAITING", "HELD BY",   "INSTANCE", "PLACES",
                                    "IN WORK", "HEALTH",  "LAST SEEN", NULL};

static const struct json *named(const struct json *agents, struct slice name)
{
    for (const struct json *j = agents ? agents->child : NULL; j; j = j->next)
        if (slice_eq(json_get_text(j, "agent"), name))
            return j;
    return NULL;
}

/* `counted`: its entry in /v1/stats. Steps wait in memory, tasks in the store. */
static void add_head(struct table *t, struct slice name, bool connected, const struct json *counted)
{
    table_add_look(t, connected ? LOOK_PLAIN : LOOK_BAD, name);
    table_add_number(t, json_get_int(counted, "waiting_steps", 0)
                            + json_get_int(counted, "waiting_tasks", 0));
    struct slice held = json_get_text(counted, "held_by");
    table_add_look(t, slice_is(held, "no-place") ? LOOK_PLAIN : LOOK_BAD, held);
}

/* "8"; "2 of 8" if it is given fewer than it announced. */
static void add_places(struct table *t, const struct json *instance)
{
    int64_t given = json_get_int(instance, "places_given", 0);
    int64_t places = json_get_int(instance, "places", 0);
    CLEANUP(buf_fini) struct buf b = {0};

    if (given < places)
        buf_fmt(&b, "%" PRId64 " of ", given);
    buf_fmt(&b, "%" PRId64, places);
    table_add_look(t, given < places ? LOOK_BAD : LOOK_PLAIN, buf_view(&b));
}

static void add_missing(struct table *t, const struct json *counted)
{
    add_head(t, json_get_text(counted, "agent"), false, counted);
    table_add_look(t, LOOK_BAD, SLICE("not connected"));
    for (int i = 0; i < 4; i++)
        table_add(t, SLICE_NONE);
}

/* A row for each instance; for an agent without instances, one that says so. */
static void add(struct table *t, const struct json *agent, const struct json *counted)
{
    const struct json *instances = json_get(agent, "instances");
    bool connected = json_get_bool(agent, "connected", false);

    if (!instances || !instances->child) {
        add_missing(t, counted ? counted : agent);
        return;
    }
    for (const struct json *j = instances->child; j; j = j->next) {
        add_head(t, json_get_text(agent, "agent"), connected, counted ? counted : agent);
        table_add(t, json_get_text(j, "instance"));
        add_places(t, j);
        table_add(t, json_get_raw(j, "open_attempts"));
        struct slice health = json_get_text(j, "health");
        table_add_look(t, slice_is(health, "good") ? LOOK_PLAIN : LOOK_BAD, health);
        table_add_time(t, json_get_text(j, "seen_at"));
    }
}

static int show(struct invocation *in, const struct json *agents)
{
    CLEANUP(table_fini) struct table t = {0};
    CLEANUP(arena_fini) struct arena a = {0};
    struct intact_client *c = client_begin(in); /* the other one still holds the text of `agents` */
    int end = CLI_OK;
    const struct json *stats = client_ask(c, "GET", "/v1/stats", NULL, &a, &end);

    const struct json *counted = json_get(stats, "agents");
    table_begin(&t, in, heads);
    for (const struct json *j = agents ? agents->child : NULL; j; j = j->next)
        add(&t, j, named(counted, json_get_text(j, "agent")));
    for (const struct json *j = counted ? counted->child : NULL; j; j = j->next)
        if (!named(agents, json_get_text(j, "agent"))) /* only tasks name it */
            add_missing(&t, j);
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
    .summary = "list agents and their instances",
    .about = "Lists agents that have called the server or that tasks wait for: how "
             "many tasks wait and why, and each instance with its places, running "
             "work, health and last call.",
    .examples = {{"intact agent list", "connected agents, and where work waits"},
                 {"intact agent list --json | jq -r '.agents[] | select(.connected | not).agent'",
                  "agents that are not connected"}},
    .run = run,
};
