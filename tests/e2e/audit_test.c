/* Tests of the audit, which records what people do and from where, and of the agents that a token
 * may work for. kit.h has the server under test. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

#define STEPS                                                                                  \
    "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": "  \
    "\"x\", \"undo\": {\"action\": \"y\"}}, {\"name\": \"b\", \"agent\": \"ag\", \"action\": " \
    "\"x\", \"undo\": \"none\"}]"

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "debug"));
    define(&node, "held", STEPS);
    return 0;
}

/* ---- agents ---- */

static void an_agents_token_works_for_that_agent_alone(void **state)
{
    char token[64];
    char other[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "ag", "\"agent:ag\"", NULL, token);
    make_token(&node, "other-agent", "\"agent:other\"", NULL, other);
    const struct node ag = as(&node, token);
    const struct node wrong = as(&node, other);
    submit(&node, "held", "for-ag");
    fetch(&ag, &r, "ag", "i");
    char *attempt = token_in(&r, 0);
    post(&wrong, &r, "/v1/agents/ag/work",
         "{\"instance\": \"i\", \"max\": 0, \"results\": [{\"token\": \"%s\", \"output\": 1}]}",
         attempt);
    expect_problem(&r, 403, "forbidden");
    /* nor by its own path: an attempt's token is good for its agent only */
    hand_in(&wrong, "other", "i", attempt, "\"output\": 1", "unknown");
    task_of(&node, &r, "for-ag");
    EXPECT_TEXT(&r, "steps.0.state", "running");
    hand_in(&ag, "ag", "i", attempt, "\"output\": 1", "accepted");
    free(attempt);
}

/* ---- the audit ---- */

static void operate_as(const struct node *n, const char *id, const char *verb, const char *body,
                       int status)
{
    char path[200];
    REPLY r = {0};

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/%s", id, verb);
    post(n, &r, path, "%s", body);
    EXPECT(&r, status);
}

static void expect_entry(const struct reply *r, const char *list, int i, const char *want)
{
    char got[300];
    char path[5][60];
    static const char *const members[] = {"actor", "verb", "task", "step", "reason"};
    const char *texts[5];

    for (size_t m = 0; m < COUNT_OF(members); m++) {
        (void)snprintf(path[m], sizeof path[m], "%s.%d.%s", list, i, members[m]);
        texts[m] = raw_is(r, path[m], "null") ? "null" : text_at(r, path[m]);
    }
    (void)snprintf(got, sizeof got, "%s %s %s %s %s", texts[0], texts[1], texts[2], texts[3],
                   texts[4]);
    CHECK(strcmp(got, want) == 0, "entry %d is \"%s\", expected \"%s\"", i, got, want);
    (void)snprintf(path[0], sizeof path[0], "%s.%d.at", list, i);
    CHECK(llabs(time_at(r, path[0]) - now_ms()) < 3600000, "at");
}

static void fail_a_step(void)
{
    REPLY r = {0};

    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token,
            "\"error\": {\"code\": \"broken\", \"retryable\": false, \"effect\": \"none\"}",
            "accepted");
    free(token);
}

static void what_people_do_is_written_down(void **state)
{
    char ann[64];
    char bob[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "ann", "\"operate\"", NULL, ann);
    make_token(&node, "bob", "\"operate\"", "1h", bob);
    const struct node a = as(&node, ann);
    const struct node b = as(&node, bob);
    submit(&node, "held", "t1");
    fail_a_step();
    operate_as(&a, "t1", "retry", "{\"reason\": \"mended\"}", 200);
    fail_a_step();
    operate_as(&b, "t1", "skip", "{\"step\": \"a\", \"reason\": \"by \\\"hand\\\"\"}", 200);
    fail_a_step(); /* step b */
    operate_as(&a, "t1", "undo", "{\"reason\": \"enough\"}", 200);
    operate_as(&a, "t1", "skip", "{\"step\": \"b\", \"reason\": \"refused\"}", 409);
    define(&b, "held", STEPS ", \"output\": 1");
    define(&b, "held", STEPS ", \"output\": 1"); /* stores nothing */

    get(&node, &r, "/v1/tasks/t1");
    CHECK(!at(&r, "operations.0.address"), "who may see a task may not read the audit");
    expect_entry(&r, "operations", 0, "ann retry t1 null mended");
    expect_entry(&r, "operations", 1, "bob skip t1 a by \"hand\"");
    expect_entry(&r, "operations", 2, "ann undo t1 null enough");
    CHECK(!at(&r, "operations.3"), "%.*s", SLICE_ARG(r.body));
    get(&a, &r, "/v1/audit?task=t1");
    expect_entry(&r, "entries", 0, "ann undo t1 null enough");
    expect_entry(&r, "entries", 2, "ann retry t1 null mended");
    EXPECT_TEXT(&r, "entries.0.address", "127.0.0.1");
    EXPECT_RAW(&r, "entries.0.forwarded_for", "null");
    EXPECT_RAW(&r, "next", "null");
    send_as(&node, &r, "DELETE", "/v1/tokens/bob", NULL, SLICE_NONE);
    EXPECT(&r, 204);
    get(&a, &r, "/v1/audit?limit=2");
    expect_entry(&r, "entries", 0, "admin token.delete null null bob");
    expect_entry(&r, "entries", 1, "bob workflow.put null null held, version 2");
    EXPECT_TEXT(&r, "entries.0.address", "127.0.0.1");
    EXPECT_TEXT(&r, "entries.1.address", "127.0.0.1");
    get(&a, &r, "/v1/audit?limit=4&cursor=%s", text_at(&r, "next"));
    expect_entry(&r, "entries", 3, "admin token.create null null bob: operate");
    node_kill(&node);
    node_start(&node, FLAGS("--log", "debug"));
    get(&node, &r, "/v1/tasks/t1");
    expect_entry(&r, "operations", 2, "ann undo t1 null enough");
}

static void the_audit_is_asked_for_in_known_words(void **state)
{
    static const struct {
        const char *query, *type;
    } cases[] = {
        {"limit=0", "bad-limit"},         {"limit=501", "bad-limit"},
        {"limit=x", "bad-limit"},         {"cursor=x", "bad-cursor"},
        {"cursor=", "bad-cursor"},        {"tasks=x", "unknown-parameter"},
        {"actor=x", "unknown-parameter"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        get(&node, &r, "/v1/audit?%s", cases[i].query);
        expect_problem(&r, 422, cases[i].type);
    }
    get(&node, &r, "/v1/audit?task=nobody");
    EXPECT_RAW(&r, "entries", "[]");
    get(&node, &r, "/v1/audit?limit=500&cursor=900000000000000000");
    EXPECT(&r, 200);
}

static void delete_as_passed_on(const char *name)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};

    buf_fmt(&b,
            "DELETE /v1/tokens/%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%.*s"
            "X-Forwarded-For: 203.0.113.9, caf\xc3\xa9 for x\r\n\r\n",
            name, SLICE_ARG(authorization(&node)));
    int fd = dial(&node);
    say(fd, buf_view(&b));
    hear(fd, &r);
    EXPECT(&r, 204);
}

/* Whoever is not behind a proxy could say what he likes. */
static void the_audit_says_from_where_it_was_asked_for(void **state)
{
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "one", "\"read\"", NULL, token);
    make_token(&node, "two", "\"read\"", NULL, token);
    delete_as_passed_on("one");
    get(&node, &r, "/v1/audit?limit=1");
    EXPECT_TEXT(&r, "entries.0.address", "127.0.0.1");
    EXPECT_RAW(&r, "entries.0.forwarded_for", "null");
    node_stop(&node);
    node_start(&node, FLAGS("--log", "debug", "--behind-proxy"));
    delete_as_passed_on("two");
    get(&node, &r, "/v1/audit");
    EXPECT_TEXT(&r, "entries.0.address", "127.0.0.1");
    EXPECT_TEXT(&r, "entries.0.forwarded_for", "203.0.113.9, caf?? for x");
    EXPECT_TEXT(&r, "entries.5.actor", "server"); /* the first token: nobody asked for it */
    EXPECT_RAW(&r, "entries.5.address", "null");
}

/* A task shows the latest hundred. */
static void many_operations_are_shown_in_part(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "often");
    for (int i = 0; i < 105; i++) {
        char body[60];
        fail_a_step();
        (void)snprintf(body, sizeof body, "{\"reason\": \"try %d\"}", i);
        operate_as(&node, "often", "retry", body, 200);
    }
    get(&node, &r, "/v1/tasks/often");
    expect_entry(&r, "operations", 0, "admin retry often null try 5");
    expect_entry(&r, "operations", 99, "admin retry often null try 104");
    CHECK(!at(&r, "operations.100"), "no more");
}

#define ON(f) cmocka_unit_test_setup_teardown(f, start, node_end)

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        ON(an_agents_token_works_for_that_agent_alone),
        ON(what_people_do_is_written_down),
        ON(the_audit_is_asked_for_in_known_words),
        ON(the_audit_says_from_where_it_was_asked_for),
        ON(many_operations_are_shown_in_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
