/* Steps that wait, with a real server that is killed in between: nothing is over early, nothing is
 * forgotten. */

#include <stdlib.h>

#include "base/when.h"
#include "kit.h"

static struct node node;

enum { MANY = 400 };

static const char trial[] =
    "\"steps\": ["
    "{\"name\": \"open\", \"agent\": \"ag\", \"action\": \"open\","
    " \"undo\": {\"action\": \"close\"}},"
    "{\"name\": \"first\", \"wait\": \"4s\"},"
    "{\"name\": \"until\", \"wait\": {\"until\": \"${ .input.at }\", \"plus\": \"-1h\"}},"
    "{\"name\": \"remind\", \"agent\": \"ag\", \"action\": \"remind\", \"undo\": \"none\"}]";
static const char nap[] = "\"steps\": [{\"name\": \"nap\", \"wait\": \"1s\"}]";
static const char days[] = "\"steps\": [{\"name\": \"days\", \"wait\": \"30d\"}]";
static const char moment[] =
    "\"steps\": [{\"name\": \"at\", \"wait\": {\"until\": \"${ .input.at }\"}}]";

static void begin(void)
{
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
}

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    (void)define(&node, "trial", trial);
    (void)define(&node, "nap", nap);
    (void)define(&node, "days", days);
    (void)define(&node, "moment", moment);
    return 0;
}

static void submit_with(const char *workflow, const char *id, const char *input)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": %s}", workflow,
         id, input);
    EXPECT(&r, 201);
}

static void submit_at(const char *workflow, const char *id, int64_t at)
{
    CLEANUP(buf_fini) struct buf input = {0};

    buf_str(&input, "{\"at\": \"");
    time_write(&input, at);
    buf_str(&input, "\"}");
    submit_with(workflow, id, input.ptr);
}

/* A server that is killed while the task waits, and one that is not there when the wait is over. */
static void a_wait_outlives_its_server(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_at("trial", "w-1", now_ms() + MS_PER_H + 500);
    serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, "w-1", "pending");
    task_of(&node, &r, "w-1");
    EXPECT_TEXT(&r, "waiting_for", "@wait");
    EXPECT_TEXT(&r, "steps.1.kind", "wait");
    int64_t begun_at = time_at(&r, "steps.1.begun_at");
    int64_t over_at = time_at(&r, "steps.1.wait_until");
    CHECK(begun_at != 0 && over_at == begun_at + 4000, "%.*s", SLICE_ARG(r.body));
    node_kill(&node);
    begin();
    task_of(&node, &r, "w-1");
    CHECK(time_at(&r, "steps.1.wait_until") == over_at, "%.*s", SLICE_ARG(r.body));
    node_kill(&node);
    WAIT_FOR(now_ms() > over_at + 100, "the wait is over");
    begin();
    serve_step(&node, "ag", "i", "2");
    wait_for_state(&node, "w-1", "processed");
    task_of(&node, &r, "w-1");
    EXPECT_TEXT(&r, "steps.2.state", "completed");
    CHECK(time_at(&r, "steps.2.begun_at") >= over_at, "%.*s", SLICE_ARG(r.body));
    CHECK(time_at(&r, "steps.3.attempts.0.started_at") >= time_at(&r, "steps.2.wait_until"), "%.*s",
          SLICE_ARG(r.body));
}

static void an_operator_ends_a_wait(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_with("days", "w-2", "{}");
    get(&node, &r, "/v1/tasks/w-2/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "wait");
    EXPECT_TEXT(&r, "reasons.0.text", "Step days waits for 30d 0h.");
    CHECK(strstr(text_at(&r, "reasons.0.moves"), "intact skip w-2 --step days"), "%.*s",
          SLICE_ARG(r.body));
    post(&node, &r, "/v1/tasks/w-2/retry", "{\"step\": \"days\", \"reason\": \"now\"}");
    expect_problem(&r, 409, "conflict");
    CHECK(strstr(text_at(&r, "detail"), "is a wait"), "%.*s", SLICE_ARG(r.body));
    post(&node, &r, "/v1/tasks/w-2/correct",
         "{\"step\": \"days\", \"input\": 1, \"reason\": \"x\"}");
    expect_problem(&r, 409, "conflict");
    post(&node, &r, "/v1/tasks/w-2/skip", "{\"step\": \"days\", \"reason\": \"now\"}");
    EXPECT(&r, 200);
    wait_for_state(&node, "w-2", "processed");
}

static void a_waiting_task_is_cancelled(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_at("trial", "w-3", now_ms() + 2 * MS_PER_H);
    serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, "w-3", "pending");
    post(&node, &r, "/v1/tasks/w-3/cancel", "{\"reason\": \"no more\"}");
    EXPECT(&r, 200);
    serve_step(&node, "ag", "i", "null");
    wait_for_state(&node, "w-3", "compensated");
    task_of(&node, &r, "w-3");
    EXPECT_TEXT(&r, "steps.0.state", "undone");
    EXPECT_TEXT(&r, "steps.1.state", "waiting");
}

static void impossible_moments_are_refused_clearly(void **state)
{
    static const char *const inputs[] = {"{}",
                                         "{\"at\": 1800000000}",
                                         "{\"at\": \"tomorrow\"}",
                                         "{\"at\": \"2027-02-30T00:00:00Z\"}",
                                         "{\"at\": \"2027-01-01T00:00:00\"}",
                                         "{\"at\": \"10000-01-01T00:00:00Z\"}",
                                         "{\"at\": [\"2027-01-01T00:00:00Z\"]}"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        REPLY r = {0};
        char id[16];
        (void)snprintf(id, sizeof id, "bad-%zu", i);
        submit_with("moment", id, inputs[i]);
        wait_for_state(&node, id, "compensated");
        task_of(&node, &r, id);
        EXPECT_TEXT(&r, "error.code", "expression");
        CHECK(strstr(text_at(&r, "error.message"), "expected a time"), "%.*s", SLICE_ARG(r.body));
    }
    submit_with("moment", "past", "{\"at\": \"1999-12-31T23:59:59+01:00\"}");
    wait_for_state(&node, "past", "processed");
}

static void a_definition_is_checked(void **state)
{
    REPLY r = {0};
    (void)state;

    put(&node, &r, "/v1/workflows/bad",
        "{\"intact\": 1, \"workflow\": \"bad\", \"steps\": [{\"name\": \"a\", \"wait\": \"1s\","
        " \"agent\": \"x\"}]}");
    EXPECT(&r, 422);
    CHECK(memmem(r.body.ptr, r.body.len, "a step with wait has", 20), "%.*s", SLICE_ARG(r.body));
}

/* Many at once, with a server that dies while they are over. */
static void many_waits_end_once_each(void **state)
{
    (void)state;

    for (int i = 0; i < MANY; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "n-%d", i);
        submit_with("nap", id, "{}");
    }
    CHECK(sql_int(&node, "SELECT count(*) FROM task_step WHERE name = 'nap' AND begun_at IS NULL")
              == 0,
          "all have begun");
    sleep_ms(700);
    node_kill(&node);
    begin();
    WAIT_FOR(sql_int(&node,
                     "SELECT count(*) FROM task WHERE workflow = 'nap' AND state = 'processed'")
                 == MANY,
             "all are over");
    CHECK(sql_int(&node,
                  "SELECT count(*) FROM task_step AS s, task_view AS t WHERE t.id = s.task AND "
                  "s.name = 'nap' AND t.ended_at < s.wait_until")
              == 0,
          "none was over early");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_outlives_its_server),
        cmocka_unit_test(an_operator_ends_a_wait),
        cmocka_unit_test(a_waiting_task_is_cancelled),
        cmocka_unit_test(impossible_moments_are_refused_clearly),
        cmocka_unit_test(a_definition_is_checked),
        cmocka_unit_test(many_waits_end_once_each),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
