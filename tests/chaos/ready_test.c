/*
 * The server's readiness while its store hangs or fails. The program is faulty.c's; its plan of
 * faults is a pipe without a writer, on which each reader hangs.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../e2e/kit.h"

static struct node node;
static char plan[100];

static int start(void **state)
{
    (void)state;
    node_init(&node);
    (void)snprintf(plan, sizeof plan, "%s/faults", node.home);
    (void)setenv("INTACT_FAULTS", plan, 1);
    node_start(&node, FLAGS("--log", "error", "--scan-every", "100ms"));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    node_fini(&node);
    return 0;
}

/* Until readyz has that status, for that reason (NULL: any): a machine that stands still for a
 * moment gives it reasons of its own. */
static void wait_for_ready(int status, const char *reason, struct reply *r)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        get(&node, r, "/readyz");
        if (r->status == status && (!reason || strstr(text_at(r, "detail"), reason)))
            return;
        CHECK(steady_ms() < until, "readyz says %d: %.*s", r->status, SLICE_ARG(r->body));
        sleep_ms(20);
    }
}

static void expect_trouble(const char *reason)
{
    REPLY r = {0};

    wait_for_ready(503, reason, &r);
    expect_problem(&r, 503, "store");
    assert_true(head_has(&r, "\r\nRetry-After: 1\r\n"));
    get(&node, &r, "/healthz");
    EXPECT(&r, 200);
    get(&node, &r, "/metrics");
    EXPECT(&r, 200);
    assert_non_null(strstr(r.body.ptr, "\nintact_store_trouble 1\n"));
}

static void a_store_that_hangs_is_noticed_and_holds_up_nobody(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    int fd = -1;
    (void)state;

    wait_until_ready(&node);
    CHECK(mkfifo(plan, 0600) == 0, "%s", strerror(errno));
    expect_trouble("has not answered for");
    while ((fd = open(plan, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0) { /* until it is read */
        CHECK(errno == ENXIO && steady_ms() < until, "%s", strerror(errno));
        sleep_ms(1);
    }
    CHECK(unlink(plan) == 0, "%s", strerror(errno));
    (void)close(fd);
    wait_until_ready(&node);
    submit(&node, "w", "after-1");
}

static void let_fail(const char *faults)
{
    int fd = open(plan, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0, "%s", strerror(errno));
    CHECK(write(fd, faults, strlen(faults)) == (ssize_t)strlen(faults), "%s", strerror(errno));
    (void)close(fd);
}

/* For SQLite an I/O error, for people a disk that is full. */
static void a_quota_that_is_used_up_is_told_as_what_it_is(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};
    (void)state;

    let_fail("1000 quota write");
    for (int i = 0; strcmp(text_at(&r, "type"), "urn:intact:problem:full") != 0; i++) {
        CHECK(steady_ms() < until, "%.*s", SLICE_ARG(r.body));
        /* a new one each time, until the plan is read; of the first commit that fails nobody knows
         * whether it came through */
        post(&node, &r, "/v1/tasks", "{\"workflow\": \"w\", \"id\": \"quota-%d\"}", i);
    }
    EXPECT(&r, 503);
    expect_trouble("raise the quota");
    CHECK(unlink(plan) == 0, "%s", strerror(errno));
    wait_until_ready(&node);
    submit(&node, "w", "after-quota");
}

static void a_store_that_fails_is_told_with_its_reason(void **state)
{
    (void)state;

    let_fail("1000 io all");
    expect_trouble("check its disk"); /* it cannot be written, and then not be opened again */
    CHECK(unlink(plan) == 0, "%s", strerror(errno));
    wait_until_ready(&node);
    submit(&node, "w", "after-2");
}

static void who_drains_is_not_ready_but_healthy(void **state)
{
    REPLY r = {0};
    (void)state;

    fetch(&node, &r, "g", "g1"); /* an open attempt, for which it waits */
    node_signal(&node, SIGTERM);
    do
        wait_for_ready(503, NULL, &r);
    while (strcmp(text_at(&r, "type"), "urn:intact:problem:store") == 0);
    expect_problem(&r, 503, "draining");
    assert_true(head_has(&r, "\r\nRetry-After: 1\r\n"));
    get(&node, &r, "/healthz");
    EXPECT(&r, 200);
    CHECK(node_wait(&node, PATIENCE_MS) == 0, "it did not end well");
}

static int define_w(void **state)
{
    (void)start(state);
    (void)define(&node, "w",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"g\", \"action\": \"x\", \"undo\": "
                 "\"none\"}]");
    return 0;
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_that_hangs_is_noticed_and_holds_up_nobody),
        cmocka_unit_test(a_store_that_fails_is_told_with_its_reason),
        cmocka_unit_test(a_quota_that_is_used_up_is_told_as_what_it_is),
        cmocka_unit_test(who_drains_is_not_ready_but_healthy),
    };
    return cmocka_run_group_tests(tests, define_w, stop);
}
