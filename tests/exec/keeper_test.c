/*
 * The keeper of a command: how it ends one. kill() is slow here, so that what two calls do to the
 * same process is seen: signals that come together count as one.
 */

#include "agents/exec/keeper.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

int __real_kill(pid_t pid, int how);
int __wrap_kill(pid_t pid, int how);

int __wrap_kill(pid_t pid, int how)
{
    int ret = __real_kill(pid, how);

    (void)usleep(50000);
    return ret;
}

/* Reads until `ends_with` has come, or all. */
static void read_until(int fd, const char *ends_with, char *text, size_t size)
{
    size_t len = strlen(text);

    while (len + 1 < size && !(ends_with && strstr(text, ends_with))) {
        ssize_t n = read(fd, text + len, size - 1 - len);
        if (n <= 0)
            return;
        len += (size_t)n;
        text[len] = 0;
    }
}

/* A shell would run its trap a second time within the first, and print twice. */
static void test_a_command_is_told_once(void **state)
{
    (void)state;
    char program[] = "/bin/sh";
    char option[] = "-c";
    char script[] = "trap 'echo told; sleep 0.3; exit 69' TERM; echo ready; "
                    "while :; do sleep 0.01; done";
    char path[] = "PATH=/usr/bin:/bin";
    char *argv[] = {program, option, script, NULL};
    char *envp[] = {path, NULL};
    struct keeper_order o = {
        .program = program, .directory = "/", .argv = argv, .envp = envp, .ruleset = -1};
    struct keeper_report report = {0};
    char text[100] = "";
    int pipes[KEEPER_ENDS][2];
    int status;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &o.files), 0);
    for (int i = 0; i < KEEPER_ENDS; i++) {
        bool is_read_by_it = i == KEEPER_IN || i == KEEPER_CONTROL;
        assert_int_equal(pipe2(pipes[i], O_CLOEXEC), 0);
        o.ends[i] = pipes[i][is_read_by_it ? 0 : 1];
    }
    pid_t keeper = keeper_start(&o);
    assert_true(keeper > 0);
    for (int i = 0; i < KEEPER_ENDS; i++)
        assert_int_equal(close(o.ends[i]), 0);

    read_until(pipes[KEEPER_OUT][0], "ready\n", text, sizeof text);
    assert_int_equal(write(pipes[KEEPER_CONTROL][1], &(char){KEEPER_TERM}, 1), 1);
    read_until(pipes[KEEPER_OUT][0], NULL, text, sizeof text);
    assert_string_equal(text, "ready\ntold\n");
    assert_int_equal(read(pipes[KEEPER_STATUS][0], &report, sizeof report), sizeof report);
    assert_int_equal(report.what, KEEPER_ENDED);
    assert_int_equal(WEXITSTATUS(report.value), 69);
    assert_int_equal(waitpid(keeper, &status, 0), keeper);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_command_is_told_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
