/* What expressions see of failures: an undo sees its cause, later steps the ends of earlier ones,
 * the output the tolerated failures. The server is killed between the failure and its undo, so that
 * these values come from the row. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

#define SERVE FLAGS("--scan-every", "100ms", "--drain", "200ms")

static int start(void **state)
{
    *state = node_open(&node, SERVE);
    return 0;
}

static void kill_and_start(void)
{
    node_kill(&node);
    node_start(&node, SERVE);
}

static void submit_with(const char *workflow, const char *id, const char *input)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": %s}", workflow,
         id, input);
    EXPECT(&r, 201);
}

/* Fetches for the agent, which is to be asked with that input, and hands in `result`. */
static void serve_asked(const char *agent, const char *input, const char *result)
{
    REPLY r = {0};

    fetch(&node, &r, agent, "i");
    EXPECT_RAW(&r, "requests.0.input", input);
    char *token = token_in(&r, 0);
    hand_in(&node, agent, "i", token, result, "accepted");
    free(token);
}

static void serve_error(const char *agent, const char *error)
{
    REPLY r = {0};

    fetch(&node, &r, agent, "i");
    char *token = token_in(&r, 0);
    hand_in(&node, agent, "i", token, error, "accepted");
    free(token);
}

static void wait_until_it_goes_back(const char *id)
{
    for (int64_t until = steady_ms() + PATIENCE_MS;;) {
        REPLY r = {0};
        task_of(&node, &r, id);
        if (strcmp(text_at(&r, "direction"), "undo") == 0)
            return;
        CHECK(steady_ms() < until, "it does not go back: %.*s", SLICE_ARG(r.body));
        sleep_ms(5);
    }
}

#define DECLINED                                                                             \
    "\"error\": {\"code\": \"credit-limit\", \"message\": \"only 10 left\", \"retryable\": " \
    "false, "                                                                                \
    "\"effect\": \"none\"}"
#define LATER                                                                                   \
    "\"error\": {\"code\": \"busy\", \"message\": \"later\", \"retryable\": true, \"effect\": " \
    "\"none\"}"
#define NEVER                                                                                   \
    "\"error\": {\"code\": \"locked\", \"message\": \"no\", \"retryable\": false, \"effect\": " \
    "\"none\"}"

/* An order is made, credit is reserved; each has an undo of another agent, which is told why. */
#define WHY "{\"why\": \"${ .task.error }\", \"credit\": \"${ .steps.credit | {state, error} }\"}"

static void define_order(const char *name)
{
    (void)define(
        &node, name,
        "\"steps\": [{\"name\": \"make\", \"agent\": \"orders\", \"action\": \"make\", "
        "\"undo\": {\"agent\": \"undo-1\", \"action\": \"reject\", \"input\": " WHY
        ", \"retry\": {\"attempts\": 3, \"wait\": \"1ms\"}}}, "
        "{\"name\": \"stock\", \"agent\": \"stock\", \"action\": \"take\", \"undo\": "
        "{\"agent\": \"undo-2\", \"action\": \"put\", \"input\": \"${ .task.error.code }\"}}, "
        "{\"name\": \"credit\", \"agent\": \"credit\", \"action\": \"reserve\", \"undo\": "
        "\"none\"}]");
}

#define REASON                                                                                     \
    "{\"why\":{\"step\":\"credit\",\"code\":\"credit-limit\",\"message\":\"only 10 left\"},"       \
    "\"credit\":{\"state\":\"failed\",\"error\":{\"code\":\"credit-limit\",\"message\":\"only 10 " \
    "left\"}}}"

static void an_undo_is_told_the_first_failure_whatever_dies(void **state)
{
    REPLY r = {0};
    (void)state;

    define_order("order");
    submit_with("order", "o-1", "{}");
    serve_step(&node, "orders", "i", "1");
    serve_step(&node, "stock", "i", "2");
    serve_error("credit", DECLINED);
    wait_until_it_goes_back("o-1");
    kill_and_start();
    serve_asked("undo-2", "\"credit-limit\"", NEVER);
    wait_for_state(&node, "o-1", "error");
    task_of(&node, &r, "o-1");
    EXPECT_TEXT(&r, "error.code", "locked");
    EXPECT_RAW(&r, "cause",
               "{\"step\":\"credit\",\"code\":\"credit-limit\",\"message\":\"only 10 left\"}");
    kill_and_start();
    post(&node, &r, "/v1/tasks/o-1/retry", "{\"reason\": \"unlocked\"}");
    EXPECT(&r, 200);
    serve_asked("undo-2", "\"credit-limit\"", "\"output\": null");
    serve_asked("undo-1", REASON, LATER);
    kill_and_start();
    serve_asked("undo-1", REASON, "\"output\": null");
    wait_for_state(&node, "o-1", "compensated");
    task_of(&node, &r, "o-1");
    EXPECT_TEXT(&r, "error.code", "credit-limit"); /* why it was undone, not what was mended */
    EXPECT_TEXT(&r, "cause.step", "credit");
    char *step =
        sql(&node, "SELECT cause_step || ' ' || cause_code FROM task_view WHERE id = 'o-1'");
    CHECK(strcmp(step, "credit credit-limit") == 0, "%s", step);
    free(step);
}

static void what_is_nobodys_failure_has_no_step(void **state)
{
    static const char *const verbs[][3] = {
        {"undo", "undone_by_operator", "sold out"},
        {"cancel", "cancelled", "changed my mind"},
    };
    (void)state;

    define_order("wanted");
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        CLEANUP(buf_fini) struct buf path = {0};
        CLEANUP(buf_fini) struct buf why = {0};
        REPLY r = {0};
        submit_with("wanted", verbs[i][0], "{}");
        serve_step(&node, "orders", "i", "1");
        buf_fmt(&path, "/v1/tasks/%s/%s", verbs[i][0], verbs[i][0]);
        post(&node, &r, path.ptr, "{\"reason\": \"%s\"}", verbs[i][2]);
        EXPECT(&r, 200);
        kill_and_start();
        buf_fmt(&why,
                "{\"why\":{\"step\":null,\"code\":\"%s\",\"message\":\"%s\"},"
                "\"credit\":{\"state\":\"waiting\",\"error\":null}}",
                verbs[i][1], verbs[i][2]);
        serve_asked("undo-1", why.ptr, "\"output\": null");
        wait_for_state(&node, verbs[i][0], "compensated");
    }
}

/* An alternative after one failure, and what is done if nothing else was. */
static void later_steps_see_how_those_before_them_ended(void **state)
{
    static const char *const cases[][3] = {
        {"declined", "invoice", "{\"first\":\"declined\",\"how\":[\"failed\",\"completed\"]}"},
        {NULL, "thanks", "{\"first\":null,\"how\":[\"completed\",\"skipped\"]}"},
    };
    (void)state;

    (void)define(
        &node, "pay",
        "\"steps\": [{\"name\": \"card\", \"agent\": \"card\", \"action\": \"charge\", "
        "\"on_failure\": \"continue\", \"undo\": \"none\"}, "
        "{\"name\": \"invoice\", \"agent\": \"invoice\", \"action\": \"send\", \"undo\": \"none\", "
        "\"if\": \".steps.card.error.code == \\\"declined\\\"\", "
        "\"input\": \"${ .steps.card.state }: ${ .steps.card.error.message }\"}, "
        "{\"name\": \"thanks\", \"agent\": \"thanks\", \"action\": \"send\", \"undo\": \"none\", "
        "\"if\": \".steps.invoice.state == \\\"skipped\\\"\"}], "
        "\"output\": {\"first\": \"${ .task.error.code }\", \"how\": "
        "\"${ [.steps.card.state, .steps.invoice.state] }\"}");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        REPLY r = {0};
        bool fails = cases[i][0] != NULL;
        submit_with("pay", cases[i][1], "{}");
        if (fails)
            serve_error("card", "\"error\": {\"code\": \"declined\", \"message\": \"stolen\", "
                                "\"retryable\": false, \"effect\": \"none\"}");
        else
            serve_step(&node, "card", "i", "7");
        kill_and_start();
        if (fails)
            serve_asked("invoice", "\"failed: stolen\"", "\"output\": 1");
        else
            serve_step(&node, "thanks", "i", "1");
        wait_for_state(&node, cases[i][1], "processed");
        task_of(&node, &r, cases[i][1]);
        EXPECT_RAW(&r, "output", cases[i][2]);
        EXPECT_RAW(&r, "cause", "null");
    }
}

static void a_path_that_leads_nowhere_is_warned_of(void **state)
{
    static const char text[] =
        "{\"intact\": 1, \"workflow\": \"odd\", \"inputs\": {\"sku\": {\"type\": \"string\"}}, "
        "\"steps\": [\n{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": "
        "\"none\",\n"
        "\"input\": [\"${ .task.idd }\", \"${ .input.skv }\"]}]}";
    REPLY r = {0};
    (void)state;

    put(&node, &r, "/v1/workflows/odd", "%s", text);
    EXPECT(&r, 201);
    EXPECT_INT(&r, "warnings.0.line", 3);
    EXPECT_INT(&r, "warnings.0.column", 20);
    EXPECT_TEXT(&r, "warnings.0.path", "steps[0].input");
    EXPECT_TEXT(&r, "warnings.0.found", ".idd, which is always null");
    EXPECT_TEXT(&r, "warnings.0.expected", "did you mean .id?");
    EXPECT_TEXT(&r, "warnings.1.found", ".skv, which is always null");
    post(&node, &r, "/v1/validate", "%s", text);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "warnings.1.expected", "did you mean .sku?");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_undo_is_told_the_first_failure_whatever_dies),
        cmocka_unit_test(what_is_nobodys_failure_has_no_step),
        cmocka_unit_test(later_steps_see_how_those_before_them_ended),
        cmocka_unit_test(a_path_that_leads_nowhere_is_warned_of),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
