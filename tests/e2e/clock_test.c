/*
 * The clock of a server in virtual time, as docs/openapi.yaml describes it: every answer of
 * /v1/clock and /v1/clock/advance. What time does to workflows: virtual_test.py.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

#define STEP \
    "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\"}]"

static const char *program;
static struct node node;

static void start(void)
{
    char line[64] = "";
    int out[2];

    CHECK(pipe(out) == 0, "a pipe");
    node.pid = fork();
    CHECK(node.pid >= 0, "a process");
    if (node.pid == 0) {
        (void)dup2(out[1], STDOUT_FILENO);
        (void)execl(program, program, "serve", "--virtual-time", "--clock", "manual", "--clock-at",
                    "2026-01-01T09:00:00Z", "--listen", "127.0.0.1:0", "--log", "error",
                    (char *)NULL);
        _exit(127);
    }
    (void)close(out[1]);
    CHECK(read(out[0], line, sizeof line - 1) > 0, "it did not start");
    (void)close(out[0]);
    CHECK(sscanf(line, "listening on port %d", &node.port) == 1, "it said %s", line);
}

static void stop(void)
{
    int status = -1;

    CHECK(kill(node.pid, SIGTERM) == 0 && waitpid(node.pid, &status, 0) == node.pid, "its end");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ended with %d", status);
}

static void test_it_goes_where_it_is_told(void **state)
{
    REPLY r = {0};

    (void)state;
    get(&node, &r, "/healthz");
    EXPECT_TEXT(&r, "virtual_time", "2026-01-01T09:00:00.000Z");
    get(&node, &r, "/v1/clock");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "next", "null");
    EXPECT_TEXT(&r, "mode", "manual");
    CHECK(head_has(&r, "Intact-Virtual-Time: 2026-01-01T09:00:00.000Z"), "every answer has it");
    post(&node, &r, "/v1/clock/advance", "{\"by\": \"36h\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "now", "2026-01-02T21:00:00.000Z");
    post(&node, &r, "/v1/clock/advance", "{\"to\": \"2026-01-03T00:00:00+01:00\"}");
    EXPECT_TEXT(&r, "now", "2026-01-02T23:00:00.000Z");
}

static void test_what_holds_it_is_named(void **state)
{
    REPLY r = {0};

    (void)state;
    CHECK(define(&node, "held", STEP) == 1, "a definition");
    submit(&node, "held", "t-1");
    post(&node, &r, "/v1/clock/advance", "{\"by\": \"1h\", \"patience\": \"1ms\"}");
    expect_problem(&r, 409, "clock-held");
    get(&node, &r, "/v1/clock");
    EXPECT_TEXT(&r, "held_by.0.kind", "agent");
    EXPECT_TEXT(&r, "held_by.0.agent", "ag");
    fetch(&node, &r, "ag", "ag-1");
    get(&node, &r, "/v1/clock");
    EXPECT_TEXT(&r, "held_by.0.kind", "attempt");
    EXPECT_TEXT(&r, "held_by.0.task", "t-1");
    post(&node, &r, "/v1/clock/advance", "{\"by\": \"1s\", \"regardless\": true}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "held_by", "[]"); /* but for what it was to disregard */
}

static void test_real_time_cannot_be_moved(void **state)
{
    struct node real;
    REPLY r = {0};

    (void)state;
    node_init(&real);
    node_start(&real, FLAGS(NULL));
    get(&real, &r, "/v1/clock");
    expect_problem(&r, 404, "real-time");
    CHECK(!head_has(&r, "Intact-Virtual-Time"), "its time is real");
    post(&real, &r, "/v1/clock/advance", "{\"by\": \"1d\"}");
    expect_problem(&r, 404, "real-time");
    node_stop(&real);
    node_fini(&real);
}

static void test_bad_wishes(void **state)
{
    REPLY r = {0};

    (void)state;
    post(&node, &r, "/v1/clock/advance", "{\"by\": \"soon\"}");
    expect_problem(&r, 422, "bad-advance");
    post(&node, &r, "/v1/clock/advance", "{\"by\": \"1h\", \"fast\": true}");
    expect_problem(&r, 422, "unknown-member");
    post(&node, &r, "/v1/clock/advance", "[]");
    expect_problem(&r, 422, "not-an-object");
    post(&node, &r, "/v1/clock/advance", "{");
    EXPECT(&r, 400);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_it_goes_where_it_is_told),
        cmocka_unit_test(test_what_holds_it_is_named),
        cmocka_unit_test(test_bad_wishes),
        cmocka_unit_test(test_real_time_cannot_be_moved),
    };

    kit_program(argc, argv);
    program = argv[1];
    start();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    stop();
    return failed;
}
