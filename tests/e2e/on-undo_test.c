/* Steps that run whenever a task is undone, and processed tasks that an operator undoes; with a
 * real server that is killed in between. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

static const char trip[] =
    "\"undo_until\": \"1d\","
    "\"steps\": ["
    "{\"name\": \"flight\", \"agent\": \"ag\", \"action\": \"flight\","
    " \"undo\": {\"action\": \"unflight\"}},"
    "{\"name\": \"car\", \"agent\": \"ag\", \"action\": \"car\","
    " \"undo\": {\"action\": \"uncar\"}}],"
    "\"on_undo\": ["
    "{\"name\": \"tell\", \"agent\": \"ag\", \"action\": \"tell\", \"undo\": \"none\","
    " \"input\": {\"flight\": \"${ .steps.flight.output // null }\","
    " \"why\": \"${ .task.error }\"}},"
    "{\"name\": \"mail\", \"agent\": \"ag\", \"action\": \"mail\", \"undo\": \"none\","
    " \"if\": \".input.mail == true\", \"on_failure\": \"continue\"}],"
    "\"output\": \"${ .steps.car.output }\"";

static const char paid[] =
    "\"steps\": ["
    "{\"name\": \"reserve\", \"agent\": \"ag\", \"action\": \"reserve\","
    " \"undo\": {\"action\": \"release\"}},"
    "{\"name\": \"charge\", \"agent\": \"ag\", \"action\": \"charge\", \"pivot\": true}]";

static const char soon[] = "\"undo_until\": \"1ms\","
                           "\"steps\": ["
                           "{\"name\": \"reserve\", \"agent\": \"ag\", \"action\": \"reserve\","
                           " \"undo\": {\"action\": \"release\"}}]";

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    (void)define(&node, "trip", trip);
    (void)define(&node, "paid", paid);
    (void)define(&node, "soon", soon);
    return 0;
}

/* The next request is of that action, in that direction, under that key. */
static char *next(const char *action, const char *direction, const char *key)
{
    REPLY r = {0};

    fetch(&node, &r, "ag", "i");
    EXPECT_TEXT(&r, "requests.0.action", action);
    EXPECT_TEXT(&r, "requests.0.direction", direction);
    EXPECT_TEXT(&r, "requests.0.idempotency_key", key);
    return token_in(&r, 0);
}

static void answer(const char *action, const char *direction, const char *key, const char *result)
{
    char *token = next(action, direction, key);

    hand_in(&node, "ag", "i", token, result, "accepted");
    free(token);
}

#define GOOD   "\"output\": {\"no\": 7}"
#define BROKEN "\"error\": {\"code\": \"full\", \"message\": \"no car\", \"retryable\": false}"

static void operate(struct reply *ret, const char *id, const char *verb, const char *body)
{
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/%s", id, verb);
    post(&node, ret, path, "%s", body);
}

static void restart(void)
{
    node_kill(&node);
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
}

static void both_sides_are_told_after_the_last_compensation(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "trip", "t-1");
    answer("flight", "forward", "t-1/flight", GOOD);
    answer("car", "forward", "t-1/car", BROKEN);
    restart();
    answer("unflight", "undo", "t-1/flight/undo", "\"output\": null");
    char *token = next("tell", "forward", "t-1/tell"); /* of an agent, killed with its server */
    restart();
    task_of(&node, &r, "t-1");
    EXPECT_TEXT(&r, "state", "compensating");
    EXPECT_TEXT(&r, "steps.2.state", "running");
    EXPECT_RAW(&r, "steps.2.on_undo", "true");
    EXPECT_INT(&r, "steps.2.input.flight.no", 7);
    EXPECT_TEXT(&r, "steps.2.input.why.code", "full");
    EXPECT_TEXT(&r, "steps.2.input.why.step", "car");
    hand_in(&node, "ag", "i", token, GOOD, "accepted");
    free(token);
    wait_for_state(&node, "t-1", "compensated");
    task_of(&node, &r, "t-1");
    EXPECT_TEXT(&r, "error.code", "full");
    EXPECT_TEXT(&r, "steps.2.state", "completed");
    EXPECT_TEXT(&r, "steps.3.state", "skipped"); /* its `if` is false */
    assert_null(at(&r, "steps.0.on_undo"));
}

static void one_that_fails_stops_the_task_until_somebody_sees_to_it(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "trip", "t-2");
    answer("flight", "forward", "t-2/flight", BROKEN);
    answer("tell", "forward", "t-2/tell", BROKEN);
    wait_for_state(&node, "t-2", "error");
    get(&node, &r, "/v1/tasks/t-2/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "failed");
    EXPECT_TEXT(&r, "reasons.0.step", "tell");
    operate(&r, "t-2", "retry", "{\"step\": \"tell\", \"reason\": \"mended\"}");
    EXPECT(&r, 200);
    answer("tell", "forward", "t-2/tell", GOOD);
    wait_for_state(&node, "t-2", "compensated");
}

static void a_processed_task_is_undone_with_a_reason(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "trip", "t-3");
    answer("flight", "forward", "t-3/flight", GOOD);
    answer("car", "forward", "t-3/car", GOOD);
    wait_for_state(&node, "t-3", "processed");
    task_of(&node, &r, "t-3");
    EXPECT_INT(&r, "output.no", 7);
    get(&node, &r, "/v1/tasks/t-3/why");
    CHECK(strstr(text_at(&r, "reasons.0.moves"), "intact undo t-3"), "%.*s", SLICE_ARG(r.body));
    operate(&r, "t-3", "undo", "{}");
    expect_problem(&r, 422, "no-reason");
    operate(&r, "t-3", "cancel", "{\"reason\": \"too late for that\"}");
    expect_problem(&r, 409, "conflict");
    operate(&r, "t-3", "undo", "{\"reason\": \"the wrong customer\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "direction", "undo");
    EXPECT_RAW(&r, "ended_at", "null");
    EXPECT_RAW(&r, "output", "null");
    EXPECT_TEXT(&r, "error.code", "undone_by_operator");
    EXPECT_TEXT(&r, "error.message", "the wrong customer");
    EXPECT_TEXT(&r, "operations.0.verb", "undo");
    EXPECT_TEXT(&r, "operations.0.reason", "the wrong customer");
    operate(&r, "t-3", "undo", "{\"reason\": \"twice\"}");
    EXPECT(&r, 200); /* it is being undone already */
    restart();
    answer("uncar", "undo", "t-3/car/undo", "\"output\": null");
    answer("unflight", "undo", "t-3/flight/undo", "\"output\": null");
    answer("tell", "forward", "t-3/tell", GOOD);
    wait_for_state(&node, "t-3", "compensated");
    task_of(&node, &r, "t-3");
    EXPECT_TEXT(&r, "steps.2.input.why.code", "undone_by_operator");
    EXPECT_TEXT(&r, "steps.2.input.why.message", "the wrong customer");
    operate(&r, "t-3", "undo", "{\"reason\": \"once more\"}");
    expect_problem(&r, 409, "conflict");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"trip\", \"id\": \"t-3\"}");
    EXPECT(&r, 200); /* the same submission: it is the same task */
    wait_for_state(&node, "t-3", "compensated");
}

static void refused(const char *id, const char *why)
{
    REPLY r = {0};

    operate(&r, id, "undo", "{\"reason\": \"the wrong customer\"}");
    expect_problem(&r, 409, "conflict");
    CHECK(strstr(text_at(&r, "detail"), why), "%.*s", SLICE_ARG(r.body));
    task_of(&node, &r, id);
    EXPECT_TEXT(&r, "state", "processed");
}

static void a_completed_pivot_stays(void **state)
{
    (void)state;
    submit(&node, "paid", "t-4");
    answer("reserve", "forward", "t-4/reserve", GOOD);
    answer("charge", "forward", "t-4/charge", GOOD);
    wait_for_state(&node, "t-4", "processed");
    refused("t-4", "step \"charge\" is a pivot that took effect");
}

static void after_undo_until_it_is_refused(void **state)
{
    (void)state;
    submit(&node, "soon", "t-5");
    answer("reserve", "forward", "t-5/reserve", GOOD);
    wait_for_state(&node, "t-5", "processed");
    sleep_ms(50);
    refused("t-5", "undo_until");
}

/* In bulk only if their state is named. */
static void many_are_undone_if_they_are_named(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/operations",
         "{\"verb\": \"undo\", \"filter\": {\"workflow\": \"paid\"}, \"reason\": \"all\","
         "\"dry_run\": true}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "matched", 0);
    post(&node, &r, "/v1/operations",
         "{\"verb\": \"undo\", \"filter\": {\"state\": \"processed\"}, \"reason\": \"all\","
         "\"dry_run\": true}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "matched", 2);
    EXPECT_INT(&r, "possible", 0);
    EXPECT_INT(&r, "refused.a pivot took effect, or may have", 1);
    EXPECT_INT(&r, "refused.the task was processed too long ago to be undone", 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_are_told_after_the_last_compensation),
        cmocka_unit_test(one_that_fails_stops_the_task_until_somebody_sees_to_it),
        cmocka_unit_test(a_processed_task_is_undone_with_a_reason),
        cmocka_unit_test(a_completed_pivot_stays),
        cmocka_unit_test(after_undo_until_it_is_refused),
        cmocka_unit_test(many_are_undone_if_they_are_named),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
