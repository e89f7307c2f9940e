/* Evaluations that never end: the server ends itself, at most twice for one task. The fault point
 * exists only in builds with sanitizers (INTACT_FAULTS in src/node/overrun.c). */

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

enum { NODES = 2 };

#define SERVE FLAGS("--scan-every", "100ms", "--drain", "200ms")

static struct node nodes[NODES];
static struct node *const a = &nodes[0];
static struct node *const b = &nodes[1];

/* The evaluations of that task do not end; after so much processor time the server does. */
static void arm(const char *task)
{
    CHECK(setenv("INTACT_FAULT_ENDLESS", task, 1) == 0, "setenv");
    CHECK(setenv("INTACT_FAULT_ENDLESS_MS", "1500", 1) == 0, "setenv");
}

static void disarm(void)
{
    (void)unsetenv("INTACT_FAULT_ENDLESS");
    (void)unsetenv("INTACT_FAULT_ENDLESS_MS");
    (void)unsetenv("INTACT_FAULT_SLOW");
    (void)unsetenv("INTACT_FAULT_SLOW_MS");
}

static void define_both(const struct node *n)
{
    (void)define(n, "plain",
                 "\"steps\": [{\"name\": \"s\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"complete_by\": \"10m\", \"undo\": \"none\", "
                 "\"input\": {\"n\": \"${ .input.n }\"}}]");
    (void)define(n, "choice",
                 "\"steps\": [{\"name\": \"s\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"complete_by\": \"10m\", \"undo\": \"none\", \"if\": \".input.n > 0\"}]");
}

static int submit_to(const struct node *n, struct reply *r, const char *workflow, const char *id)
{
    post(n, r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": {\"n\": 1}}",
         workflow, id);
    return r->status;
}

/* A call for work that is never answered if the server ends meanwhile. */
static int call(const struct node *n)
{
    return ask(n, "POST", "/v1/agents/ag/work", "application/json",
               SLICE("{\"instance\": \"i\", \"max\": 1, \"wait\": \"60s\"}"));
}

static void ends_itself(struct node *n)
{
    int status = node_wait(n, PATIENCE_MS);

    CHECK(status != -1, "%s goes on", n->name);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "it ended with %x", (unsigned)status);
    CHECK(node_log_has(n, "event=evaluation_overrun"), "nothing was logged");
    CHECK(!node_log_has(n, "counted=no") && !node_log_has(n, "counted=unanswered")
              && !node_log_has(n, "counted=refused"),
          "it was not counted");
}

static void is_in_error(const struct node *n, const char *id)
{
    REPLY r = {0};
    REPLY why = {0};

    wait_for_state(n, id, "error");
    task_of(n, &r, id);
    EXPECT_TEXT(&r, "error.code", "overrun");
    get(n, &why, "/v1/tasks/%s/why", id);
    EXPECT(&why, 200);
    EXPECT_TEXT(&why, "reasons.0.kind", "stopped");
}

/* Somebody has it go on, and all is well by now. */
static void goes_on(const struct node *n, const char *id)
{
    REPLY r = {0};
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/retry", id);
    post(n, &r, path, "{\"reason\": \"mended\"}");
    EXPECT(&r, 200);
    serve_step(n, "ag", "i", "1");
    wait_for_state(n, id, "processed");
    CHECK(sql_int(n, "SELECT count(*) FROM overrun") == 0, "it is still counted");
}

static void a_task_ends_a_server_twice_and_no_more(void **state)
{
    REPLY r = {0};
    (void)state;

    node_init(a);
    arm("bad");
    node_start(a, SERVE);
    define_both(a);
    CHECK(submit_to(a, &r, "plain", "bad") == 201, "bad");
    CHECK(submit_to(a, &r, "plain", "good") == 201, "good");
    for (int i = 1; i <= 2; i++) {
        int fd = call(a);
        ends_itself(a);
        (void)close(fd);
        node_start(a, SERVE);
        CHECK(sql_int(a, "SELECT times FROM overrun WHERE task = 'bad'") == i, "%d times", i);
    }
    is_in_error(a, "bad");
    serve_step(a, "ag", "i", "1");
    wait_for_state(a, "good", "processed");
    node_stop(a);
    disarm();
    node_start(a, SERVE);
    is_in_error(a, "bad"); /* by itself it stays so */
    goes_on(a, "bad");
    node_stop(a);
    node_fini(a);
}

static void a_submission_ends_a_server_twice_and_is_refused(void **state)
{
    REPLY r = {0};
    (void)state;

    node_init(a);
    arm("sub");
    node_start(a, SERVE);
    define_both(a);
    for (int i = 0; i < 2; i++) {
        CHECK(submit_to(a, &r, "choice", "sub") == 0, "it was answered: %d", r.status);
        ends_itself(a);
        node_start(a, SERVE);
    }
    CHECK(submit_to(a, &r, "choice", "sub") == 409, "%d", r.status);
    expect_problem(&r, 409, "task-overran");
    CHECK(submit_to(a, &r, "choice", "good") == 201, "another one is taken");
    node_stop(a);
    disarm();
    node_fini(a);
}

/* A machine that is slow, and no more than that. */
static void what_ends_after_all_is_not_counted(void **state)
{
    REPLY r = {0};
    (void)state;

    node_init(a);
    CHECK(setenv("INTACT_FAULT_SLOW", "slow", 1) == 0, "setenv");
    CHECK(setenv("INTACT_FAULT_SLOW_MS", "2500", 1) == 0, "setenv");
    node_start(a, SERVE);
    define_both(a);
    CHECK(submit_to(a, &r, "plain", "slow") == 201, "slow");
    serve_step(a, "ag", "i", "1");
    wait_for_state(a, "slow", "processed");
    WAIT_FOR(node_log_has(a, "event=evaluation_was_slow task=slow"), "it was noticed");
    WAIT_FOR(sql_int(a, "SELECT count(*) FROM overrun") == 0, "it is taken back");
    node_stop(a);
    disarm();
    node_fini(a);
}

static void another_node_takes_over_what_is_known_of_it(void **state)
{
    REPLY r = {0};
    (void)state;

    nodes_init(nodes, NODES);
    arm("bad");
    node_start(a, SERVE);
    define_both(a);
    node_start(b, SERVE);
    memcpy(b->token, a->token, sizeof a->token);
    CHECK(submit_to(a, &r, "plain", "bad") == 201, "bad");
    CHECK(submit_to(a, &r, "plain", "good") == 201, "good");
    int to_a = call(a);
    ends_itself(a);
    int to_b = call(b); /* it has taken the task over, or will */
    ends_itself(b);
    (void)close(to_a);
    (void)close(to_b);
    node_start(a, SERVE);
    is_in_error(a, "bad");
    serve_step(a, "ag", "i", "1");
    wait_for_state(a, "good", "processed");
    node_stop(a);
    disarm();
    node_start(a, SERVE);
    goes_on(a, "bad");
    node_stop(a);
    for (size_t i = 0; i < NODES; i++)
        node_fini(&nodes[i]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_ends_a_server_twice_and_no_more),
        cmocka_unit_test(a_submission_ends_a_server_twice_and_is_refused),
        cmocka_unit_test(what_ends_after_all_is_not_counted),
        cmocka_unit_test(another_node_takes_over_what_is_known_of_it),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
