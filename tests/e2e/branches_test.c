/* Tests of the branches of one task: each continues when its own agent is there, forward and in
 * the undo, whatever the agents of other branches do. kit.h has the server under test. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "error", "--scan-every", "100ms", "--grace", "200ms"));
    return 0;
}

/* Steps a and b side by side, of the agents NAME-a and NAME-b, and c of NAME-c behind them. */
static void define_branches(const char *name)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b,
            "\"steps\": [{\"name\": \"a\", \"agent\": \"%s-a\", \"action\": \"do\", \"after\": [], "
            "\"undo\": {\"action\": \"undo\"}}, {\"name\": \"b\", \"agent\": \"%s-b\", "
            "\"action\": \"do\", \"after\": [], \"undo\": {\"action\": \"undo\"}}, {\"name\": "
            "\"c\", \"agent\": \"%s-c\", \"action\": \"do\", \"after\": [\"a\", \"b\"], "
            "\"undo\": \"none\"}]",
            name, name, name);
    (void)define(&node, name, b.ptr);
}

static void expect_steps(const char *id, const char *a, const char *b)
{
    REPLY r = {0};

    task_of(&node, &r, id);
    EXPECT_TEXT(&r, "steps.0.state", a);
    EXPECT_TEXT(&r, "steps.1.state", b);
}

static void each_starts_when_its_agent_is_there(void **state)
{
    REPLY r = {0};
    (void)state;

    define_branches("each");
    submit(&node, "each", "each-1");
    task_of(&node, &r, "each-1");
    EXPECT_TEXT(&r, "state", "pending");
    EXPECT_TEXT(&r, "waiting_for", "each-a,each-b");
    serve_step(&node, "each-b", "i", "1");
    expect_steps("each-1", "waiting", "completed");
    serve_step(&node, "each-a", "i", "1");
    serve_step(&node, "each-c", "i", "1");
    wait_for_state(&node, "each-1", "processed");
}

static void refuse_step(const char *agent)
{
    REPLY r = {0};

    fetch(&node, &r, agent, "i");
    char *token = token_in(&r, 0);
    hand_in(&node, agent, "i", token,
            "\"error\": {\"code\": \"no\", \"retryable\": false, \"effect\": \"none\"}",
            "accepted");
    free(token);
}

static void each_is_undone_when_its_agent_is_there(void **state)
{
    (void)state;

    define_branches("back");
    submit(&node, "back", "back-1");
    serve_step(&node, "back-a", "i", "1");
    serve_step(&node, "back-b", "i", "1");
    refuse_step("back-c");
    serve_step(&node, "back-b", "i", "null"); /* nobody is there for the compensation of a */
    expect_steps("back-1", "completed", "undone");
    serve_step(&node, "back-a", "i", "null");
    wait_for_state(&node, "back-1", "compensated");
}

static void a_kill_changes_nothing_of_it(void **state)
{
    (void)state;

    define_branches("kill");
    submit(&node, "kill", "kill-1");
    node_kill(&node);
    node_start(&node, FLAGS("--log", "error", "--scan-every", "100ms", "--grace", "200ms"));
    serve_step(&node, "kill-b", "i", "1");
    expect_steps("kill-1", "waiting", "completed");
    node_kill(&node);
    node_start(&node, FLAGS("--log", "error", "--scan-every", "100ms", "--grace", "200ms"));
    serve_step(&node, "kill-a", "i", "1");
    serve_step(&node, "kill-c", "i", "1");
    wait_for_state(&node, "kill-1", "processed");
}

static void an_operator_can_stop_and_go_on(void **state)
{
    REPLY r = {0};
    (void)state;

    define_branches("stop");
    submit(&node, "stop", "stop-1");
    post(&node, &r, "/v1/tasks/stop-1/pause", "{\"reason\": \"wait\"}");
    EXPECT(&r, 200);
    task_of(&node, &r, "stop-1");
    EXPECT_RAW(&r, "waiting_for", "null");
    post(&node, &r, "/v1/agents/stop-b/work",
         "{\"instance\": \"i\", \"max\": 1, \"wait\": \"300ms\"}");
    EXPECT_RAW(&r, "requests", "[]");
    post(&node, &r, "/v1/tasks/stop-1/resume", "{\"reason\": \"go on\"}");
    EXPECT(&r, 200);
    serve_step(&node, "stop-b", "i", "1");
    expect_steps("stop-1", "waiting", "completed");
}

/* ---- conditions ---- */

static void a_first_step_that_is_not_wanted_needs_nobody(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "wanted",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"gone\", \"action\": \"do\", \"if\": "
                 "\".input.a\", \"undo\": \"none\"}, {\"name\": \"b\", \"agent\": \"gone\", "
                 "\"action\": \"do\", \"if\": \".input.b\", \"undo\": \"none\"}, {\"name\": \"c\", "
                 "\"agent\": \"wanted-c\", \"action\": \"do\", \"if\": \".input.c\", \"undo\": "
                 "\"none\"}], \"output\": {\"done\": true}");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"wanted\", \"id\": \"w-1\", \"input\": {\"c\": true}}");
    EXPECT(&r, 201);
    task_of(&node, &r, "w-1");
    EXPECT_TEXT(&r, "state", "pending");
    EXPECT_TEXT(&r, "waiting_for", "wanted-c");
    EXPECT_TEXT(&r, "steps.0.state", "skipped");
    EXPECT_TEXT(&r, "steps.1.state", "skipped");
    serve_step(&node, "wanted-c", "i", "1");
    wait_for_state(&node, "w-1", "processed");
    post(&node, &r, "/v1/tasks?wait=5m",
         "{\"workflow\": \"wanted\", \"id\": \"w-2\", \"input\": {}}");
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "state", "processed"); /* nothing is left to be done */
    EXPECT_RAW(&r, "output", "{\"done\": true}");
}

static void a_first_condition_that_fails_is_told_at_once(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "fails",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"gone\", \"action\": \"do\", \"if\": "
                 "\".input.n + 1 > 0\", \"undo\": \"none\"}]");
    post(&node, &r, "/v1/tasks?wait=5m",
         "{\"workflow\": \"fails\", \"id\": \"f-1\", \"input\": {\"n\": \"x\"}}");
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "state", "compensated");
    EXPECT_TEXT(&r, "error.code", "expression");
}

/* It goes back before anybody has begun it, and what runs on undo waits for its agent. */
static void what_runs_on_undo_is_waited_for_all_the_same(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "tells",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"gone\", \"action\": \"do\", \"if\": "
                 "\".input.n + 1 > 0\", \"undo\": \"none\"}], \"on_undo\": [{\"name\": \"z\", "
                 "\"agent\": \"tells-z\", \"action\": \"tell\", \"undo\": \"none\"}]");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"tells\", \"id\": \"z-1\", \"input\": {\"n\": \"x\"}}");
    EXPECT(&r, 201);
    task_of(&node, &r, "z-1");
    EXPECT_TEXT(&r, "state", "pending");
    EXPECT_TEXT(&r, "direction", "undo");
    EXPECT_TEXT(&r, "waiting_for", "tells-z");
    serve_step(&node, "tells-z", "i", "1");
    wait_for_state(&node, "z-1", "compensated");
}

static void a_task_that_begins_later_decides_then(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "later",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"gone\", \"action\": \"do\", \"if\": "
                 "\".input.a\", \"undo\": \"none\"}]");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"later\", \"id\": \"l-1\", \"input\": {}, \"not_before\": "
         "\"2100-01-01T00:00:00Z\"}");
    EXPECT(&r, 201);
    task_of(&node, &r, "l-1");
    EXPECT_TEXT(&r, "steps.0.state", "waiting");
    EXPECT_TEXT(&r, "waiting_for", "time");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_starts_when_its_agent_is_there),
        cmocka_unit_test(each_is_undone_when_its_agent_is_there),
        cmocka_unit_test(a_kill_changes_nothing_of_it),
        cmocka_unit_test(an_operator_can_stop_and_go_on),
        cmocka_unit_test(a_first_step_that_is_not_wanted_needs_nobody),
        cmocka_unit_test(a_first_condition_that_fails_is_told_at_once),
        cmocka_unit_test(what_runs_on_undo_is_waited_for_all_the_same),
        cmocka_unit_test(a_task_that_begins_later_decides_then),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
