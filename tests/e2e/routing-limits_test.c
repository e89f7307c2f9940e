/* Tests of limits of agents and actions over HTTP, and of instances that fail more often than
 * others. dispatch/routing_test.c tests the same without a server. */

#include <signal.h>
#include <stdlib.h>

#include "kit.h"

static struct node node;
static struct node nodes[2];

#define SERVER FLAGS("--log", "error", "--scan-every", "100ms", "--grace", "200ms")

static int start(void **state)
{
    *state = node_open(&node, SERVER);
    return 0;
}

/* A workflow of that name with one step, which that agent does by the action of that name. */
static void define_action(const char *name, const char *agent)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(
        &b,
        "\"steps\": [{\"name\": \"s\", \"agent\": \"%s\", \"action\": \"%s\", \"undo\": \"none\", "
        "\"retry\": {\"attempts\": 50, \"wait\": \"1ms\", \"max_wait\": \"1ms\"}}]",
        agent, name);
    (void)define(&node, name, b.ptr);
}

static void set_limits(const char *agent, const char *limits)
{
    REPLY r = {0};
    char path[64];

    (void)snprintf(path, sizeof path, "/v1/agents/%s", agent);
    put(&node, &r, path, "{\"limits\": %s, \"breaker\": {\"enabled\": false}}", limits);
    EXPECT(&r, 200);
}

static void submit_many(const char *workflow, int count)
{
    char id[64];

    for (int i = 0; i < count; i++) {
        (void)snprintf(id, sizeof id, "%s-%d", workflow, i);
        submit(&node, workflow, id);
    }
}

/* One call with much room, that does not wait for long. */
static void fetch_all(struct reply *ret, const char *agent, const char *instance)
{
    char path[64];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/work", agent);
    post(&node, ret, path, "{\"instance\": \"%s\", \"max\": 100, \"wait\": \"300ms\"}", instance);
    EXPECT(ret, 200);
}

static int requests_in(const struct reply *r)
{
    const struct json *list = at(r, "requests");

    return list ? (int)list->count : 0;
}

/* Fetches until so many requests have come, and then no more; how many were of that action. The
 * tokens of these are added. */
static int fetch_until(int count, const char *agent, const char *action, char **tokens)
{
    int of_action = 0;
    int came = 0;
    int64_t give_up = steady_ms() + PATIENCE_MS;

    for (bool more = true; more || came < count;) {
        REPLY r = {0};
        CHECK(steady_ms() < give_up, "%d requests came, expected %d", came, count);
        fetch_all(&r, agent, "i-1");
        more = requests_in(&r) > 0;
        for (int i = 0; i < requests_in(&r); i++) {
            char path[40];
            (void)snprintf(path, sizeof path, "requests.%d.action", i);
            if (strcmp(text_at(&r, path), action) == 0)
                tokens[of_action++] = token_in(&r, i);
        }
        came += requests_in(&r);
    }
    CHECK(came == count, "%d requests came, expected %d", came, count);
    return of_action;
}

/* agents.N.NAME of GET /v1/agents for that agent, as text. */
static void agent_text(const char *agent, const char *name, char *ret, size_t size)
{
    REPLY r = {0};
    char path[80];

    get(&node, &r, "/v1/agents");
    EXPECT(&r, 200);
    for (int i = 0;; i++) {
        (void)snprintf(path, sizeof path, "agents.%d.agent", i);
        CHECK(at(&r, path), "agent %s is not listed: %.*s", agent, SLICE_ARG(r.body));
        if (strcmp(text_at(&r, path), agent) == 0) {
            (void)snprintf(path, sizeof path, "agents.%d.%s", i, name);
            (void)snprintf(ret, size, "%s", text_at(&r, path));
            return;
        }
    }
}

static void wait_for_text(const char *agent, const char *name, const char *expected)
{
    int64_t give_up = steady_ms() + PATIENCE_MS;
    char is[64];

    for (agent_text(agent, name, is, sizeof is); strcmp(is, expected) != 0; sleep_ms(20)) {
        CHECK(steady_ms() < give_up, "%s of %s is %s, expected %s", name, agent, is, expected);
        agent_text(agent, name, is, sizeof is);
    }
}

static void a_limit_holds_its_action_and_no_other(void **state)
{
    REPLY r = {0};
    char *tokens[8] = {0};
    (void)state;

    define_action("charge", "bank");
    define_action("refund", "bank");
    set_limits("bank", "{\"actions\": {\"charge\": {\"concurrency\": 2}}}");
    submit_many("charge", 6);
    submit_many("refund", 3);
    CHECK(fetch_until(5, "bank", "charge", tokens) == 2, "two at a time, and all of the others");
    wait_for_text("bank", "held_by", "limit");
    wait_for_text("bank", "limits.rate", "");

    hand_in(&node, "bank", "i-1", tokens[0], "\"output\": 1", "accepted");
    CHECK(fetch_until(1, "bank", "charge", &tokens[2]) == 1, "one has ended, one begins");

    node_kill(&node);
    node_start(&node, SERVER);
    CHECK(fetch_until(0, "bank", "charge", &tokens[3]) == 0, "two are at work, as before");

    set_limits("bank", "{}");
    CHECK(fetch_until(3, "bank", "charge", &tokens[3]) == 3, "no limit any more, at once");
    for (int i = 1; i < 6; i++)
        hand_in(&node, "bank", "i-1", tokens[i], "\"output\": 1", "accepted");
    for (int i = 0; i < 6; i++)
        free(tokens[i]);
    get(&node, &r, "/v1/tasks/charge-5?wait=60s");
    EXPECT_TEXT(&r, "state", "processed");
}

static void what_is_held_back_is_told_why(void **state)
{
    REPLY r = {0};
    char *tokens[2] = {0};
    (void)state;

    define_action("print", "office");
    set_limits("office", "{\"concurrency\": 1}");
    submit_many("print", 2);
    CHECK(fetch_until(1, "office", "print", tokens) == 1, "one at a time");
    wait_for_text("office", "held_by", "limit");
    REPLY t = {0};
    task_of(&node, &t, "print-0");
    bool first = strcmp(text_at(&t, "steps.0.state"), "running") == 0;
    get(&node, &r, "/v1/tasks/print-%d/why", first ? 1 : 0);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "reasons.0.kind", "limit");
    CHECK(strstr(r.raw, "agent office runs at most 1 at a time"), "which one: %.*s",
          SLICE_ARG(r.body));
    free(tokens[0]);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void a_rate_holds_over_any_time(void **state)
{
    enum { TASKS = 30, RATE = 40 };
    int64_t began[TASKS];
    char id[32];
    (void)state;

    define_action("call", "phone");
    set_limits("phone", "{\"rate\": \"40/s\"}");
    submit_many("call", TASKS);
    for (int i = 0; i < TASKS; i++)
        serve_step(&node, "phone", "i-1", "1");
    for (int i = 0; i < TASKS; i++) {
        REPLY r = {0};
        (void)snprintf(id, sizeof id, "call-%d", i);
        wait_for_state(&node, id, "processed");
        task_of(&node, &r, id);
        began[i] = time_at(&r, "steps.0.attempts.0.started_at");
    }
    qsort(began, TASKS, sizeof began[0], by_number);
    for (int i = 0; i < TASKS; i++)
        for (int k = i; k < TASKS; k++) {
            int64_t most = 1 + (began[k] - began[i] + 100) * RATE / 1000;
            CHECK(k - i + 1 <= most, "%d began within %" PRId64 " ms", k - i + 1,
                  began[k] - began[i]);
        }
}

/* Serves one request of that instance, if there is one. */
static bool serve_one(const char *instance, bool well)
{
    REPLY r = {0};

    post(&node, &r, "/v1/agents/mill/work",
         "{\"instance\": \"%s\", \"max\": 1, \"wait\": \"50ms\"}", instance);
    EXPECT(&r, 200);
    if (requests_in(&r) == 0)
        return false;
    char *token = token_in(&r, 0);
    hand_in(&node, "mill", instance, token,
            well ? "\"output\": 1"
                 : "\"error\": {\"code\": \"broken\", \"retryable\": true, \"effect\": \"none\"}",
            "accepted");
    free(token);
    return true;
}

/* The number of that instance in the list of its agent. */
static int number_of(const char *instance)
{
    char path[40];
    char is[64];

    for (int i = 0;; i++) {
        (void)snprintf(path, sizeof path, "instances.%d.instance", i);
        agent_text("mill", path, is, sizeof is);
        CHECK(is[0], "there is no instance %s", instance);
        if (strcmp(is, instance) == 0)
            return i;
    }
}

static void health_of(const char *instance, char *ret, size_t size)
{
    char path[40];

    (void)snprintf(path, sizeof path, "instances.%d.health", number_of(instance));
    agent_text("mill", path, ret, size);
}

static void who_fails_gets_nothing_until_a_trial_succeeds(void **state)
{
    int64_t give_up = steady_ms() + PATIENCE_MS;
    char health[64] = "";
    (void)state;

    define_action("grind", "mill");
    set_limits("mill", "{}");
    submit_many("grind", 200);
    while (strcmp(health, "ill") != 0) {
        CHECK(steady_ms() < give_up, "it is %s", health);
        (void)serve_one("bad", false);
        (void)serve_one("well", true);
        health_of("bad", health, sizeof health);
    }
    health_of("well", health, sizeof health);
    CHECK(strcmp(health, "good") == 0, "the other one is %s", health);
    while (strcmp(health, "ill") == 0 || !serve_one("bad", true)) {
        CHECK(steady_ms() < give_up, "no trial comes");
        (void)serve_one("well", true);
    }
    health_of("bad", health, sizeof health);
    CHECK(strcmp(health, "good") == 0, "after a trial that succeeded it is %s", health);
}

/* ---- several nodes ---- */

static int start_two(void **state)
{
    (void)state;
    nodes_init(nodes, 2);
    node_start(&nodes[0], SERVER);
    (void)define(
        &nodes[0], "press",
        "\"steps\": [{\"name\": \"s\", \"agent\": \"mint\", \"action\": \"press\", "
        "\"undo\": \"none\", \"complete_by\": \"1h\"}, {\"name\": \"t\", \"agent\": \"twin\", "
        "\"action\": \"press\", \"undo\": \"none\", \"after\": []}]");
    node_start(&nodes[1], SERVER);
    memcpy(nodes[1].token, nodes[0].token, sizeof nodes[0].token);
    return 0;
}

static int end_two(void **state)
{
    (void)state;
    node_fini(&nodes[0]);
    node_fini(&nodes[1]);
    return 0;
}

/* A call of an instance that has nothing in work. True: it was given something. */
static bool gets_work(const struct node *n, struct reply *ret)
{
    post(n, ret, "/v1/agents/mint/work",
         "{\"instance\": \"m-1\", \"max\": 1, \"wait\": \"300ms\", \"holding\": []}");
    EXPECT(ret, 200);
    return at(ret, "requests.0");
}

/* A task has two running steps, one with a limit, and one ends at the other node: that the task is
 * the other node's from then on is seen here at the next request. */
static void what_ended_at_another_node_counts_no_more(void **state)
{
    int64_t give_up = steady_ms() + PATIENCE_MS;
    const struct node *here = &nodes[0];
    const struct node *there = &nodes[1];
    REPLY r = {0};
    REPLY t = {0};
    (void)state;

    put(here, &r, "/v1/agents/mint", "{\"limits\": {\"concurrency\": 2}}"); /* one each */
    EXPECT(&r, 200);
    for (bool knows = false; !knows; sleep_ms(20)) {
        REPLY a = {0};
        get(here, &a, "/v1/agents/mint");
        EXPECT(&a, 200);
        knows = int_at(&a, "limits.part") == 1;
        CHECK(steady_ms() < give_up, "it does not know of the other node");
    }
    submit(here, "press", "press-0");
    for (reply_fini(&r); !gets_work(here, &r); reply_fini(&r))
        CHECK(steady_ms() < give_up, "it has a part of the limit");
    char *limited = token_in(&r, 0);
    fetch(here, &t, "twin", "t-1");
    char *twin = token_in(&t, 0);
    hand_in(there, "twin", "t-1", twin, "\"output\": 1", "accepted");
    hand_in(here, "twin", "t-1", twin, "\"output\": 1", "repeated");
    hand_in(there, "mint", "m-1", limited, "\"output\": 1", "accepted");
    wait_for_state(there, "press-0", "processed");
    submit(here, "press", "press-1");
    for (reply_fini(&r); !gets_work(here, &r); reply_fini(&r))
        CHECK(steady_ms() < give_up, "it counts what is over: %.*s", SLICE_ARG(r.body));
    free(limited);
    free(twin);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_holds_its_action_and_no_other),
        cmocka_unit_test(what_is_held_back_is_told_why),
        cmocka_unit_test(a_rate_holds_over_any_time),
        cmocka_unit_test(who_fails_gets_nothing_until_a_trial_succeeds),
    };
    kit_program(argc, argv);
    const struct CMUnitTest together[] = {
        cmocka_unit_test(what_ended_at_another_node_counts_no_more),
    };
    return cmocka_run_group_tests_name("limits", tests, start, node_end)
           + cmocka_run_group_tests_name("limits of two nodes", together, start_two, end_two);
}
