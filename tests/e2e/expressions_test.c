/* Expressions that fail while a task runs: a permanent failure of the step whose text has the
 * place, the expression, the column and the reason; wherever the expression is. */

#include <poll.h>

#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    return 0;
}

static void submit_with(const char *workflow, const char *id, const char *input)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": %s}", workflow,
         id, input);
    EXPECT(&r, 201);
}

/* An agent that has a place: only then a step's input is made. It gets nothing to do. */
static void offer_until_error(const char *id)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        REPLY r = {0};
        post(&node, &r, "/v1/agents/ag/work",
             "{\"instance\": \"i\", \"max\": 1, \"wait\": \"100ms\"}");
        EXPECT(&r, 200);
        EXPECT_RAW(&r, "requests", "[]");
        task_of(&node, &r, id);
        if (strcmp(text_at(&r, "state"), "error") == 0)
            return;
        CHECK(steady_ms() < until, "%s does not fail: %.*s", id, SLICE_ARG(r.body));
    }
}

static void expect_failure(const struct reply *r, const char *of, const char *message)
{
    char path[60];

    (void)snprintf(path, sizeof path, "%serror.code", of);
    EXPECT_TEXT(r, path, "expression");
    (void)snprintf(path, sizeof path, "%serror.message", of);
    CHECK(strcmp(text_at(r, path), message) == 0, "%s is \"%s\", expected \"%s\"", path,
          text_at(r, path), message);
}

/* Three steps; the last one has `third`, and the input of the task is one that does not fit. */
static void expect_third_fails(const char *workflow, const char *third, const char *message)
{
    REPLY r = {0};
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b,
            "\"on_failure\": \"hold\", \"steps\": ["
            "{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\"}, "
            "{\"name\": \"b\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\"}, "
            "{\"name\": \"c\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\", %s}]",
            third);
    (void)define(&node, workflow, b.ptr);
    submit_with(workflow, workflow, "{\"amount\": 12, \"big\": 9223372036854775808}");
    serve_step(&node, "ag", "i", "1");
    serve_step(&node, "ag", "i", "{\"list\": [1, 2]}");
    offer_until_error(workflow);
    task_of(&node, &r, workflow);
    EXPECT_TEXT(&r, "steps.2.state", "failed");
    EXPECT_INT(&r, "steps.2.failure_count", 1); /* it is not tried again: nothing would change */
    expect_failure(&r, "steps.2.", message);
    expect_failure(&r, "", message);
}

static void the_input_of_a_step(void **state)
{
    (void)state;
    expect_third_fails("input", "\"input\": {\"x\": 1, \"amount\": \"${ .input.amount.value }\"}",
                       "steps[2].input.amount of step \"c\": ${ .input.amount.value }: column 15: "
                       "cannot index number with \"value\"");
}

static void an_expression_inside_of_a_string(void **state)
{
    (void)state;
    expect_third_fails(
        "text", "\"input\": [[], {\"the sum\": \"${ 1 } of ${ .input | .big + 1 }\"}]",
        "steps[2].input[1][\"the sum\"] of step \"c\": ${ .input | .big + 1 }: column 16: "
        "number 9223372036854775808 is too large to calculate with");
}

static void no_value_and_several(void **state)
{
    (void)state;
    expect_third_fails("several", "\"input\": \"${ .steps.b.output.list[] }\"",
                       "steps[2].input of step \"c\": ${ .steps.b.output.list[] }: yields several "
                       "values; [...] makes an array of them");
    expect_third_fails(
        "none", "\"input\": \"${ empty }\"",
        "steps[2].input of step \"c\": ${ empty }: yields no value; // null would be one");
}

static void the_condition_of_a_step(void **state)
{
    (void)state;
    expect_third_fails("condition", "\"if\": \".input.amount | keys | length > 0\"",
                       "steps[2].if of step \"c\": .input.amount | keys | length > 0: column 17: "
                       "number (12) has no keys");
}

static void a_limit(void **state)
{
    (void)state;
    expect_third_fails(
        "limit", "\"input\": \"${ [range(1000; 0; -1) | range(1000)] }\"",
        "steps[2].input of step \"c\": ${ [range(1000; 0; -1) | range(1000)] }: column "
        "24: the expression makes more than 4194304 bytes");
}

static void a_failure_that_the_workflow_itself_wants(void **state)
{
    (void)state;
    expect_third_fails(
        "wanted", "\"input\": \"${ .input.iban // error(\\\"no iban for \\\\(.task.id)\\\") }\"",
        "steps[2].input of step \"c\": ${ .input.iban // error(\"no iban for "
        "\\(.task.id)\") }: column 17: no iban for wanted");
}

static void the_input_of_an_undo(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(
        &node, "undo",
        "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": "
        "{\"action\": "
        "\"unx\", \"input\": {\"id\": \"${ .steps.a.output.id + {} }\"}}}, {\"name\": \"b\", "
        "\"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\", \"input\": \"${ "
        "error(\\\"stop\\\") "
        "}\"}]");
    submit_with("undo", "undone", "{}");
    serve_step(&node, "ag", "i", "{\"id\": \"r-1\"}");
    offer_until_error("undone");
    task_of(&node, &r, "undone");
    EXPECT_TEXT(&r, "direction", "undo");
    expect_failure(&r, "steps.1.",
                   "steps[1].input of step \"b\": ${ error(\"stop\") }: column 2: stop");
    expect_failure(&r, "steps.0.",
                   "steps[0].undo.input.id of step \"a\": ${ .steps.a.output.id + {} }: column 21: "
                   "string (\"r-1\") and object ({}) cannot be added");
}

/* All steps took effect: the task is processed all the same, and says so. */
static void the_output_of_a_task(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(
        &node, "output",
        "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\"}], "
        "\"output\": {\"parcels\": [\"${ 1 }\", \"${ .steps.a.output.id.parcel }\"]}");
    submit_with("output", "output", "{}");
    serve_step(&node, "ag", "i", "{\"id\": 5}");
    wait_for_state(&node, "output", "processed");
    task_of(&node, &r, "output");
    EXPECT_RAW(&r, "output", "null");
    expect_failure(&r, "",
                   "output.parcels[1] of the workflow: ${ .steps.a.output.id.parcel }: column "
                   "20: cannot index number with \"parcel\"");
}

/* What is no expression never gets as far. */
static void a_mistake_is_told_with_its_place_when_the_workflow_is_stored(void **state)
{
    REPLY r = {0};
    (void)state;

    put(&node, &r, "/v1/workflows/wrong",
        "{\"intact\": 1, \"workflow\": \"wrong\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
        "\"action\": \"x\", \"undo\": \"none\",\n\"input\": \"${ .input | test(\\\"a\\\") }\"}]}");
    expect_problem(&r, 422, "bad-definition");
    EXPECT_INT(&r, "errors.0.line", 2);
    EXPECT_INT(&r, "errors.0.column", 23);
    CHECK(strstr(r.body.ptr, "regular expressions are outside the subset"), "%.*s",
          SLICE_ARG(r.body));
}

/* Each of the conditions takes nearly all that it may. The submission waits for all of them, and
 * nobody else does: each gets many answers meanwhile. */
static void others_are_served_while_much_is_evaluated(void **state)
{
    enum { CONDITIONS = 300, ZEROS = 80000, ANSWERS = 10 };
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    unsigned answers = 0;
    (void)state;

    buf_str(&b, "\"steps\": [");
    for (int i = 0; i < CONDITIONS; i++)
        buf_fmt(&b,
                "%s{\"name\": \"s%d\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\", "
                "\"after\": [], \"if\": \".input.a[0] == 1\"}",
                i ? "," : "", i);
    buf_byte(&b, ']');
    (void)define(&node, "much", b.ptr);
    buf_clear(&b);
    buf_str(&b, "{\"workflow\": \"much\", \"id\": \"much\", \"input\": {\"a\": [0");
    for (int i = 1; i < ZEROS; i++)
        buf_str(&b, ",0");
    buf_str(&b, "]}}");
    int fd = ask(&node, "POST", "/v1/tasks", "application/json", buf_view(&b));
    for (struct pollfd p = {.fd = fd, .events = POLLIN}; poll(&p, 1, 0) == 0; answers++) {
        REPLY health = {0};
        get(&node, &health, "/healthz");
        EXPECT(&health, 200);
    }
    hear(fd, &r);
    EXPECT(&r, 201);
    CHECK(answers >= ANSWERS, "the server said no more than %u times that it is well", answers);
    wait_for_state(&node, "much", "processed");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_input_of_a_step),
        cmocka_unit_test(an_expression_inside_of_a_string),
        cmocka_unit_test(no_value_and_several),
        cmocka_unit_test(the_condition_of_a_step),
        cmocka_unit_test(a_limit),
        cmocka_unit_test(a_failure_that_the_workflow_itself_wants),
        cmocka_unit_test(the_input_of_an_undo),
        cmocka_unit_test(the_output_of_a_task),
        cmocka_unit_test(others_are_served_while_much_is_evaluated),
        cmocka_unit_test(a_mistake_is_told_with_its_place_when_the_workflow_is_stored),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
