/* Tests of group.c: a group of tests whose set-up or teardown fails is a failure of its program,
 * which cmocka alone does not report. Each case runs in a child process. */

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void passes(void **state)
{
    (void)state;
}

static int succeeds(void **state)
{
    (void)state;
    return 0;
}

static int returns_an_error(void **state)
{
    (void)state;
    return -1;
}

static int fails_a_check(void **state)
{
    (void)state;
    assert_true(false);
    return 0;
}

/* What a program with that group exits with. */
static int exit_status(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(passes)};
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
            _exit(99);
        _exit(cmocka_run_group_tests(tests, set_up, tear_down));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void fixtures_that_succeed(void **state)
{
    (void)state;
    assert_int_equal(exit_status(NULL, NULL), 0);
    assert_int_equal(exit_status(succeeds, succeeds), 0);
}

static void a_failing_set_up(void **state)
{
    (void)state;
    assert_int_not_equal(exit_status(returns_an_error, succeeds), 0);
    assert_int_not_equal(exit_status(fails_a_check, NULL), 0);
}

static void a_failing_teardown(void **state)
{
    (void)state;
    assert_int_not_equal(exit_status(succeeds, returns_an_error), 0);
    assert_int_not_equal(exit_status(NULL, fails_a_check), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fixtures_that_succeed),
        cmocka_unit_test(a_failing_set_up),
        cmocka_unit_test(a_failing_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
