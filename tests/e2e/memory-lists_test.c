/* Tests of lists of what a node has in memory (agents, definitions), which are rendered in slices:
 * nothing is left out or listed twice, and clients may hang up meanwhile. */

#include <stdlib.h>
#include <unistd.h>

#include "kit.h"

enum { MANY = 250 };

static struct node node;

/* In builds with sanitizers the server asserts that a turn renders few names (visit_counts). */
static int start(void **state)
{
    CHECK(setenv("INTACT_FAULT_VISITS", "20", 1) == 0, "setenv");
    *state = node_open(&node, FLAGS("--log", "error"));
    (void)unsetenv("INTACT_FAULT_VISITS");
    return 0;
}

static void call_once(const char *agent, const char *instance)
{
    REPLY r = {0};
    char path[64];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/work", agent);
    post(&node, &r, path, "{\"instance\": \"%s\", \"max\": 1, \"wait\": \"0s\"}", instance);
    EXPECT(&r, 200);
}

static size_t length(const struct reply *r, const char *path)
{
    const struct json *list = at(r, path);
    size_t count = 0;

    CHECK(list && list->type == JSON_ARRAY, "%s: %.*s", path, SLICE_ARG(r->body));
    for (const struct json *j = list->child; j; j = j->next)
        count++;
    return count;
}

/* Sorted, so each comes once. */
static void check_names(const struct reply *r, const char *list, const char *member, char letter)
{
    char path[64];
    char name[16];

    CHECK(length(r, list) == MANY, "%zu", length(r, list));
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(path, sizeof path, "%s.%d.%s", list, i, member);
        (void)snprintf(name, sizeof name, "%c-%03d", letter, i);
        EXPECT_TEXT(r, path, name);
    }
}

static void all_agents_are_listed(void **state)
{
    REPLY r = {0};
    char name[16];
    (void)state;

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "a-%03d", i);
        call_once(name, "me");
    }
    get(&node, &r, "/v1/agents");
    EXPECT(&r, 200);
    check_names(&r, "agents", "agent", 'a');
    for (int i = 0; i < MANY; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "agents.%d.instances.0.instance", i);
        EXPECT_TEXT(&r, path, "me");
    }
}

static void all_instances_of_an_agent_are_listed(void **state)
{
    REPLY alone = {0};
    REPLY all = {0};
    char name[16];
    (void)state;

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "i-%03d", i);
        call_once("a-000", name);
    }
    get(&node, &alone, "/v1/agents/a-000");
    EXPECT(&alone, 200);
    CHECK(length(&alone, "instances") == MANY + 1, "%zu", length(&alone, "instances"));
    EXPECT_TEXT(&alone, "instances.0.instance", "i-000");
    EXPECT_TEXT(&alone, "instances.250.instance", "me");
    CHECK(at(&alone, "settings"), "%.*s", SLICE_ARG(alone.body));
    get(&node, &all, "/v1/agents");
    EXPECT(&all, 200);
    CHECK(length(&all, "agents") == MANY, "%zu", length(&all, "agents"));
    CHECK(length(&all, "agents.0.instances") == MANY + 1, "%zu",
          length(&all, "agents.0.instances"));
    CHECK(length(&all, "agents.249.instances") == 1, "%zu", length(&all, "agents.249.instances"));
}

static void all_definitions_are_listed(void **state)
{
    REPLY r = {0};
    char name[16];
    (void)state;

    for (int i = 0; i < MANY; i++) {
        (void)snprintf(name, sizeof name, "w-%03d", i);
        (void)define(&node, name,
                     "\"steps\": [{\"name\": \"a\", \"agent\": \"a-000\", \"action\": \"x\", "
                     "\"undo\": \"none\"}]");
    }
    get(&node, &r, "/v1/workflows");
    EXPECT(&r, 200);
    check_names(&r, "workflows", "name", 'w');
}

/* Those of one token take turns with another's; whoever hangs up is forgotten. */
static void many_lists_at_once(void **state)
{
    enum { LISTS = 12 };
    static const char *const paths[] = {"/v1/workflows", "/v1/agents", "/v1/stats"};
    int fds[LISTS];
    char token[64];
    (void)state;

    make_token(&node, "reader", "\"read\"", NULL, token);
    const struct node reader = as(&node, token);
    for (int i = 0; i < LISTS; i++)
        fds[i] = ask(i % 2 ? &reader : &node, "GET", paths[i % 3], NULL, SLICE_NONE);
    for (int i = 0; i < LISTS; i++) {
        REPLY r = {0};
        if (i % 4 == 1) {
            (void)close(fds[i]);
            continue;
        }
        hear(fds[i], &r);
        EXPECT(&r, 200);
        size_t count = length(&r, i % 3 ? "agents" : "workflows");
        CHECK(count == MANY, "list %d: %zu", i, count);
    }
}

/* Also one that nobody has called for: a task waits for it. */
static void all_agents_have_figures(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "waits",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"z-alone\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"waits\", \"input\": {}}");
    EXPECT(&r, 201);
    get(&node, &r, "/v1/stats");
    EXPECT(&r, 200);
    CHECK(length(&r, "agents") == MANY + 1, "%zu", length(&r, "agents"));
    EXPECT_TEXT(&r, "agents.0.agent", "a-000");
    EXPECT_TEXT(&r, "agents.249.agent", "a-249");
    EXPECT_TEXT(&r, "agents.250.agent", "z-alone");
    CHECK(at(&r, "now") && at(&r, "agents.250.held_by"), "%.*s", SLICE_ARG(r.body));
}

/* The server ends, whether or not the list was answered. */
static void the_server_ends_meanwhile(void **state)
{
    const int fds[] = {ask(&node, "GET", "/v1/agents", NULL, SLICE_NONE),
                       ask(&node, "GET", "/v1/stats", NULL, SLICE_NONE),
                       ask(&node, "GET", "/v1/stats", NULL, SLICE_NONE)};
    (void)state;

    (void)close(fds[2]);
    node_stop(&node);
    for (size_t i = 0; i < 2; i++) {
        REPLY r = {0};
        hear(fds[i], &r);
        CHECK(r.status == 200 || r.status == 503 || r.status == 0, "%d", r.status);
    }
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_agents_are_listed),
        cmocka_unit_test(all_instances_of_an_agent_are_listed),
        cmocka_unit_test(all_definitions_are_listed),
        cmocka_unit_test(many_lists_at_once),
        cmocka_unit_test(all_agents_have_figures),
        cmocka_unit_test(the_server_ends_meanwhile),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
