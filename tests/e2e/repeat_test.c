/* Repeated steps, with a real server that is killed before and after each answer: each round is one
 * request under a key of its own, and none is forgotten. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

enum { ROUNDS = 5 };

/* After 300 ms each: long enough to be met between two rounds, and to be awaited. */
static const char asks[] =
    "\"steps\": [{\"name\": \"ready\", \"agent\": \"ag\", \"action\": \"look\", \"undo\": \"none\","
    " \"repeat\": {\"until\": \".output.done\", \"every\": \"300ms\", \"for\": \"10m\"}}]";
/* The next round is far away. */
static const char seldom[] =
    "\"steps\": [{\"name\": \"made\", \"agent\": \"ag\", \"action\": \"make\","
    " \"undo\": {\"action\": \"unmake\"}},"
    "{\"name\": \"ready\", \"agent\": \"ag\", \"action\": \"look\", \"undo\": \"none\","
    " \"repeat\": {\"until\": \".output.done\", \"every\": \"1h\", \"for\": \"10h\"}}]";

static void begin(void)
{
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
}

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    (void)define(&node, "asks", asks);
    (void)define(&node, "seldom", seldom);
    return 0;
}

static void restart(void)
{
    node_kill(&node);
    begin();
}

/* The agent gets the request with that key, and no other. */
static char *take(const char *key)
{
    REPLY r = {0};

    fetch(&node, &r, "ag", "i");
    EXPECT_TEXT(&r, "requests.0.idempotency_key", key);
    return token_in(&r, 0);
}

static void answer_taken(char *token, const char *output)
{
    CLEANUP(buf_fini) struct buf result = {0};

    buf_fmt(&result, "\"output\": %s", output);
    hand_in(&node, "ag", "i", token, result.ptr, "accepted");
    free(token);
}

static void answer(const char *key, const char *output)
{
    answer_taken(take(key), output);
}

static void expect_step(const char *task, const char *step, const char *state, int round)
{
    REPLY r = {0};
    char path[40];

    task_of(&node, &r, task);
    (void)snprintf(path, sizeof path, "steps.%s.state", step);
    EXPECT_TEXT(&r, path, state);
    (void)snprintf(path, sizeof path, "steps.%s.round", step);
    CHECK(int_at(&r, path) == round, "round %d: %.*s", round, SLICE_ARG(r.body));
}

static void no_round_is_lost_or_doubled_by_a_server_that_dies(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "asks", "r-1");
    for (int round = 1; round <= ROUNDS; round++) {
        char key[40];
        (void)snprintf(key, sizeof key, round == 1 ? "r-1/ready" : "r-1/ready@%d", round);
        char *token = take(key);
        restart();
        answer_taken(token, round == ROUNDS ? "{\"done\": true}" : "{\"done\": false}");
        restart();
    }
    wait_for_state(&node, "r-1", "processed");
    expect_step("r-1", "0", "completed", ROUNDS);
    task_of(&node, &r, "r-1");
    for (int i = 0; i < ROUNDS; i++) {
        char path[60];
        (void)snprintf(path, sizeof path, "steps.0.attempts.%d.round", i);
        CHECK(int_at(&r, path) == i + 1, "%s: %.*s", path, SLICE_ARG(r.body));
    }
    CHECK(!at(&r, "steps.0.attempts.5"), "one attempt for each round: %.*s", SLICE_ARG(r.body));
    EXPECT_RAW(&r, "steps.0.failure_count", "0");
    CHECK(sql_int(&node, "SELECT count(*) FROM task_step WHERE task = 'r-1' AND round = 5 AND "
                         "round_at < repeat_until")
              == 1,
          "the view has the rounds");
    CHECK(sql_int(&node, "SELECT sum(round) FROM task_attempt WHERE task = 'r-1'") == 15,
          "of each attempt, too");
}

static void an_operator_asks_now_and_anew(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "seldom", "r-2");
    answer("r-2/made", "1");
    answer("r-2/ready", "{\"done\": false}");
    wait_for_state(&node, "r-2", "pending");
    expect_step("r-2", "1", "waiting", 2);
    get(&node, &r, "/v1/tasks/r-2/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "round");
    post(&node, &r, "/v1/tasks/r-2/retry", "{\"step\": \"ready\", \"reason\": \"now\"}");
    EXPECT(&r, 200);
    answer("r-2/ready@2", "{\"done\": false}");
    post(&node, &r, "/v1/tasks/r-2/retry", "{\"from\": \"ready\", \"reason\": \"anew\"}");
    EXPECT(&r, 200);
    answer("r-2/ready~2", "{\"done\": true}");
    wait_for_state(&node, "r-2", "processed");
    expect_step("r-2", "1", "completed", 1);
}

static void a_task_is_undone_between_two_rounds_and_in_one(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "seldom", "r-3");
    answer("r-3/made", "1");
    answer("r-3/ready", "{\"done\": false}");
    wait_for_state(&node, "r-3", "pending");
    post(&node, &r, "/v1/tasks/r-3/cancel", "{\"reason\": \"no more\"}");
    EXPECT(&r, 200);
    answer("r-3/made/undo", "null");
    wait_for_state(&node, "r-3", "compensated");
    submit(&node, "seldom", "r-4");
    answer("r-4/made", "1");
    char *token = take("r-4/ready");
    post(&node, &r, "/v1/tasks/r-4/cancel", "{\"reason\": \"no more\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/agents/ag/work",
         "{\"instance\": \"i\", \"max\": 0, \"results\": [{\"token\": \"%s\", \"output\": "
         "{\"done\": false}}]}",
         token);
    EXPECT(&r, 200);
    free(token);
    answer("r-4/made/undo", "null");
    wait_for_state(&node, "r-4", "compensated");
}

static void a_paused_task_asks_when_it_goes_on(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "asks", "r-5");
    char *token = take("r-5/ready");
    post(&node, &r, "/v1/tasks/r-5/pause", "{\"reason\": \"wait\"}");
    EXPECT(&r, 200);
    answer_taken(token, "{\"done\": false}");
    restart();
    expect_step("r-5", "0", "waiting", 1);
    post(&node, &r, "/v1/tasks/r-5/resume", "{\"reason\": \"go on\"}");
    EXPECT(&r, 200);
    answer("r-5/ready@2", "{\"done\": true}");
    wait_for_state(&node, "r-5", "processed");
}

/* An answer that has no such member. */
static void an_until_that_is_neither_true_nor_false_fails_the_step(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "asks", "r-6");
    answer("r-6/ready", "{}");
    wait_for_state(&node, "r-6", "compensated");
    task_of(&node, &r, "r-6");
    EXPECT_TEXT(&r, "steps.0.error.code", "expression");
    CHECK(strstr(text_at(&r, "steps.0.error.message"), "repeat.until of step \"ready\""), "%.*s",
          SLICE_ARG(r.body));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_round_is_lost_or_doubled_by_a_server_that_dies),
        cmocka_unit_test(an_operator_asks_now_and_anew),
        cmocka_unit_test(a_task_is_undone_between_two_rounds_and_in_one),
        cmocka_unit_test(a_paused_task_asks_when_it_goes_on),
        cmocka_unit_test(an_until_that_is_neither_true_nor_false_fails_the_step),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
