/* Tests of definitions stored and read over HTTP: YAML and JSON, mistakes and warnings, and
 * versions, which running tasks keep. definition/definition_test.c tests the compiler alone. */

#include <limits.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "warn"));
    return 0;
}

static void put_as(struct reply *r, const char *name, const char *type, const char *text)
{
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/workflows/%s", name);
    send_as(&node, r, "PUT", path, type, slice_of(text));
}

static const char yaml[] = "# A letter.\n"
                           "intact: 1\n"
                           "workflow: letter\n"
                           "steps:\n"
                           "  - name: write\n"
                           "    agent: writer\n"
                           "    action: write\n"
                           "    input:\n"
                           "      text: |\n"
                           "        Dear ${ .input.name },\n"
                           "        all is \"well\".\n"
                           "    undo: none\n";

static void a_definition_in_yaml_is_kept_as_it_was_written(void **state)
{
    static const char *const types[] = {"application/yaml", "text/yaml", "application/x-yaml",
                                        "application/yaml; charset=utf-8"};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(types); i++) {
        put_as(&r, "letter", types[i], yaml);
        EXPECT(&r, i ? 200 : 201);
        EXPECT_INT(&r, "version", 1);
        EXPECT_RAW(&r, "warnings", "[]");
    }
    for (int start_again = 0; start_again < 2; start_again++) {
        get(&node, &r, "/v1/workflows/letter/versions/1");
        EXPECT(&r, 200);
        EXPECT_TEXT(&r, "format", "yaml");
        EXPECT_TEXT(&r, "text", yaml);
        assert_null(at(&r, "definition"));
        put_as(&r, "letter", "application/yaml", yaml);
        EXPECT(&r, 200);
        node_stop(&node);
        node_start(&node, FLAGS("--log", "warn"));
    }
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"letter\", \"id\": \"l-1\", \"input\": {\"name\": \"A\"}}");
    EXPECT(&r, 201);
    fetch(&node, &r, "writer", "w-1");
    EXPECT_TEXT(&r, "requests.0.input.text", "Dear A,\nall is \"well\".\n");
    char *token = token_in(&r, 0);
    hand_in(&node, "writer", "w-1", token, "\"output\": 1", "accepted");
    free(token);
    wait_for_state(&node, "l-1", "processed");
}

static void yaml_that_looks_like_json_is_read_back_at_the_next_start(void **state)
{
    static const char flow[] = "{intact: 1, workflow: flow, steps: [{name: a, agent: f, action: x, "
                               "undo: none}]}";
    static const char json[] = "{\"intact\": 1, \"workflow\": \"named\", \"steps\": [{\"name\": "
                               "\"a\", \"agent\": \"f\", \"action\": \"x\", \"undo\": \"none\"}]}";
    REPLY r = {0};
    (void)state;

    put_as(&r, "flow", "application/json", flow);
    expect_problem(&r, 400, "bad-definition");
    put_as(&r, "flow", "application/yaml", flow);
    EXPECT(&r, 201);
    put_as(&r, "named", "application/yaml", json);
    EXPECT(&r, 201);
    put_as(&r, "named", "application/json", json);
    EXPECT(&r, 200);
    for (int start_again = 0; start_again < 2; start_again++) {
        get(&node, &r, "/v1/workflows/flow");
        EXPECT_TEXT(&r, "format", "yaml");
        EXPECT_TEXT(&r, "text", flow);
        get(&node, &r, "/v1/workflows/named");
        EXPECT_TEXT(&r, "format", "json");
        EXPECT_RAW(&r, "definition", json);
        node_kill(&node);
        node_start(&node, FLAGS("--log", "warn"));
    }
}

/* Whoever puts the same for ever costs those who change something nothing. */
static void what_is_there_is_not_stored_again(void **state)
{
    static const char json[] = "{\"intact\": 1, \"workflow\": \"same\", \"steps\": [{\"name\": "
                               "\"a\", \"agent\": \"f\", \"action\": \"x\", \"undo\": \"none\"}]}";
    static const char other[] = "{\"intact\": 1, \"workflow\": \"same\", \"steps\": [{\"name\": "
                                "\"b\", \"agent\": \"f\", \"action\": \"x\", \"undo\": \"none\"}]}";
    char path[PATH_MAX];
    sqlite3 *db = NULL;
    REPLY r = {0};
    (void)state;

    if (store_is_postgres())
        return;
    put_as(&r, "same", "application/json", json);
    EXPECT(&r, 201);
    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK, "it is free");
    for (int i = 0; i < 20; i++) { /* while nobody can write */
        put_as(&r, "same", "application/json", json);
        EXPECT(&r, 200);
        EXPECT_TEXT(&r, "name", "same");
    }
    CHECK(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK, "it was ours");
    (void)sqlite3_close(db);
    put_as(&r, "same", "application/json", other);
    EXPECT(&r, 201);
    put_as(&r, "same", "application/json", json); /* only the newest is there */
    EXPECT(&r, 201);
}

static void mistakes_and_warnings_of_yaml_are_told(void **state)
{
    static const char wrong[] = "intact: 1\n"
                                "workflow: bad\n"
                                "steps:\n"
                                "  - name: a\n"
                                "    agnet: x\n"
                                "    action: y\n"
                                "    if: .input.a and foo\n"
                                "    undo:\n"
                                "      action: z\n"
                                "      input: ${ .steps.a.output.id }\n";
    static const char odd[] = "intact: 1\n"
                              "workflow: odd\n"
                              "steps:\n"
                              "  - {name: a, agent: x, action: y, undo: none, if: 'true'}\n";
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 2; i++) {
        send_as(&node, &r, i ? "POST" : "PUT", i ? "/v1/validate" : "/v1/workflows/bad",
                "application/yaml", slice_of(wrong));
        expect_problem(&r, 422, "bad-definition");
        assert_int_equal(at(&r, "errors")->count, 3);
        EXPECT_TEXT(&r, "errors.0.path", "steps[0].agent");
        EXPECT_INT(&r, "errors.1.line", 5);
        EXPECT_INT(&r, "errors.1.column", 5);
        EXPECT_TEXT(&r, "errors.1.found", "key \"agnet\"");
        EXPECT_INT(&r, "errors.2.line", 7);
        EXPECT_INT(&r, "errors.2.column", 22);
        assert_int_equal(at(&r, "warnings")->count, 1);
        EXPECT_INT(&r, "warnings.0.line", 10);

        send_as(&node, &r, i ? "POST" : "PUT", i ? "/v1/validate" : "/v1/workflows/odd",
                "application/yaml", slice_of(odd));
        EXPECT(&r, i ? 200 : 201);
        assert_int_equal(at(&r, "warnings")->count, 1);
        EXPECT_TEXT(&r, "warnings.0.path", "steps[0].if");
        EXPECT_INT(&r, "warnings.0.line", 4);

        send_as(&node, &r, i ? "POST" : "PUT", i ? "/v1/validate" : "/v1/workflows/bad",
                "application/yaml", SLICE("intact: 1\n\tworkflow: bad\n"));
        expect_problem(&r, 400, "bad-definition");
        EXPECT_INT(&r, "errors.0.line", 2);
        EXPECT_TEXT(&r, "errors.0.found", "a tab");
    }
}

static void without_a_name_in_the_path_the_definition_says_it(void **state)
{
    static const char text[] = "intact: 1\nworkflow: \"called\" # by itself\nsteps:\n"
                               "- {name: a, agent: c, action: x, undo: none}\n";
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 2; i++) {
        send_as(&node, &r, "POST", "/v1/workflows", "application/yaml", slice_of(text));
        EXPECT(&r, i ? 200 : 201);
        EXPECT_TEXT(&r, "name", "called");
        EXPECT_INT(&r, "version", 1);
    }
    get(&node, &r, "/v1/workflows/called");
    EXPECT_TEXT(&r, "text", text);
    put_as(&r, "other", "application/yaml", text);
    expect_problem(&r, 422, "other-name");
    send_as(&node, &r, "POST", "/v1/workflows", "application/yaml", SLICE("intact: 1\n"));
    expect_problem(&r, 422, "bad-definition");
    EXPECT_TEXT(&r, "errors.1.path", "workflow");
}

#define VERSION(step)                                      \
    "intact: 1\nworkflow: changing\nsteps:\n"              \
    "- {name: first, agent: c, action: one, undo: none}\n" \
    "- {name: " step ", agent: c, action: " step ", undo: none}\n"

/* Takes the next request and answers it; its step must be that one. */
static void serve_named(const char *step)
{
    REPLY r = {0};

    fetch(&node, &r, "c", "c-1");
    EXPECT_TEXT(&r, "requests.0.step", step);
    char *token = token_in(&r, 0);
    hand_in(&node, "c", "c-1", token, "\"output\": 1", "accepted");
    free(token);
}

static void a_task_keeps_the_version_it_began_with(void **state)
{
    REPLY r = {0};
    (void)state;

    put_as(&r, "changing", "application/yaml", VERSION("old"));
    EXPECT_INT(&r, "version", 1);
    submit(&node, "changing", "began-with-1");
    serve_named("first");
    put_as(&r, "changing", "application/yaml", VERSION("new"));
    EXPECT(&r, 201);
    EXPECT_INT(&r, "version", 2);
    node_kill(&node);
    node_start(&node, FLAGS("--log", "warn"));
    serve_named("old");
    wait_for_state(&node, "began-with-1", "processed");
    task_of(&node, &r, "began-with-1");
    EXPECT_INT(&r, "version", 1);

    submit(&node, "changing", "newest");
    serve_named("first");
    serve_named("new");
    wait_for_state(&node, "newest", "processed");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"changing\", \"id\": \"asks-for-1\", \"version\": 1}");
    EXPECT(&r, 201);
    serve_named("first");
    serve_named("old");
    wait_for_state(&node, "asks-for-1", "processed");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"changing\", \"version\": 3}");
    expect_problem(&r, 422, "no-such-workflow");

    get(&node, &r, "/v1/workflows/changing/versions/1");
    EXPECT_TEXT(&r, "text", VERSION("old"));
}

/* ---- families ---- */

static const char order[] =
    "intact: 1\nworkflow: order\nsteps:\n  - {name: parcel, task: {workflow: ship-one}}\n";

#define LEAF(name, more)                   \
    "intact: 1\nworkflow: " name "\n" more \
    "steps:\n  - {name: a, agent: f, action: x, undo: none}\n"

static void expect_refused(const char *type, const char *path, const char *expected)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks", "{\"workflow\": \"order\", \"id\": \"refused\"}");
    expect_problem(&r, 422, type);
    CHECK(strstr(text_at(&r, "detail"), path) && strstr(text_at(&r, "detail"), expected), "%s",
          text_at(&r, "detail"));
    get(&node, &r, "/v1/tasks/refused");
    EXPECT(&r, 404);
}

/* A definition comes before those of its children, so there are only warnings. A task does not. */
static void families_are_warned_of_and_refused(void **state)
{
    REPLY r = {0};
    (void)state;

    put_as(&r, "order", "application/yaml", order);
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "warnings.0.path", "steps[0].task.workflow");
    EXPECT_INT(&r, "warnings.0.line", 4);
    EXPECT_INT(&r, "warnings.0.column", 37);
    EXPECT_TEXT(&r, "warnings.0.found", "order -> ship-one");
    EXPECT_TEXT(&r, "warnings.0.expected", "a workflow \"ship-one\" that is stored");
    expect_refused("no-such-workflow", "order -> ship-one", "\"ship-one\"");
    put_as(&r, "ship-one", "application/yaml",
           "intact: 1\nworkflow: ship-one\nsteps:\n  - {name: a, task: {workflow: order}}\n");
    EXPECT_TEXT(&r, "warnings.0.found", "ship-one -> order -> ship-one");
    expect_refused("bad-family", "order -> ship-one -> order", "without a cycle");
    send_as(&node, &r, "POST", "/v1/validate", "application/yaml",
            SLICE(LEAF("ship-one", "lock: {key: k}\n")));
    EXPECT_RAW(&r, "warnings", "[]"); /* it was no better before */
    put_as(&r, "ship-one", "application/yaml", LEAF("ship-one", ""));
    EXPECT_RAW(&r, "warnings", "[]");
    send_as(&node, &r, "POST", "/v1/validate", "application/yaml",
            SLICE(LEAF("ship-one", "lock: {key: k}\n")));
    EXPECT_TEXT(&r, "warnings.0.path", "workflow");
    EXPECT_TEXT(&r, "warnings.0.found", "order -> ship-one");
    put_as(&r, "ship-one", "application/yaml", LEAF("ship-one", "lock: {key: k}\n"));
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "warnings.0.found", "order -> ship-one");
    expect_refused("bad-family", "order -> ship-one", "without \"lock\"");
    put_as(&r, "ship-one", "application/yaml",
           "intact: 1\nworkflow: ship-one\nsteps:\n  - {name: a, approve: {by: g, question: \"?\", "
           "not: submitter}}\n");
    EXPECT_RAW(&r, "warnings", "[]");
    node_stop(&node);
    node_start(&node, FLAGS("--open", "--log", "warn")); /* which knows nobody */
    expect_refused("no-submitter", "order -> ship-one", "submitter who is known");
    node_stop(&node);
    node_start(&node, FLAGS("--log", "warn"));
}

/* Otherwise each of its tasks would be refused. */
static void a_schedule_has_a_whole_family(void **state)
{
    static const char text[] =
        "intact: 1\nschedule: nightly\nworkflow: lonely\ncron: \"0 0 1 1 *\"\n";
    REPLY r = {0};
    (void)state;

    put_as(&r, "lonely", "application/yaml",
           "intact: 1\nworkflow: lonely\nsteps:\n  - {name: a, task: {workflow: nowhere}}\n");
    EXPECT(&r, 201);
    send_as(&node, &r, "PUT", "/v1/schedules/nightly", "application/yaml", slice_of(text));
    expect_problem(&r, 422, "no-such-workflow");
    put_as(&r, "nowhere", "application/yaml", LEAF("nowhere", ""));
    send_as(&node, &r, "PUT", "/v1/schedules/nightly", "application/yaml", slice_of(text));
    EXPECT(&r, 201);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_definition_in_yaml_is_kept_as_it_was_written),
        cmocka_unit_test(yaml_that_looks_like_json_is_read_back_at_the_next_start),
        cmocka_unit_test(what_is_there_is_not_stored_again),
        cmocka_unit_test(mistakes_and_warnings_of_yaml_are_told),
        cmocka_unit_test(without_a_name_in_the_path_the_definition_says_it),
        cmocka_unit_test(a_task_keeps_the_version_it_began_with),
        cmocka_unit_test(families_are_warned_of_and_refused),
        cmocka_unit_test(a_schedule_has_a_whole_family),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
