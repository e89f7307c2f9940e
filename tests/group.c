/*
 * Groups of tests whose set-up or teardown fails.
 *
 * cmocka 1.1.5 prints such a failure, and returns 0: what a teardown finds, as a report of a
 * sanitizer in a server's log, would fail no test. Each test program is linked with this wrapper.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef int run_group(const char *name, const struct CMUnitTest *tests, size_t count,
                      CMFixtureFunction set_up, CMFixtureFunction tear_down);

/* Names that the linker makes for --wrap: NOLINTBEGIN(bugprone-reserved-identifier) */
run_group __real__cmocka_run_group_tests;
run_group __wrap__cmocka_run_group_tests;

static struct {
    CMFixtureFunction set_up;
    CMFixtureFunction tear_down;
    bool failed;
} group;

/* A failed check leaves a fixture by longjmp, so the group counts as failed until it returns. */
static int run_fixture(CMFixtureFunction fixture, void **state)
{
    bool failed = group.failed;

    group.failed = true;
    int rc = fixture(state);
    group.failed = failed || rc != 0;
    return rc;
}

static int set_up(void **state)
{
    return run_fixture(group.set_up, state);
}

static int tear_down(void **state)
{
    return run_fixture(group.tear_down, state);
}

int __wrap__cmocka_run_group_tests(const char *name, const struct CMUnitTest *tests, size_t count,
                                   CMFixtureFunction first, CMFixtureFunction last)
{
    group.set_up = first;
    group.tear_down = last;
    group.failed = false;
    int failed = __real__cmocka_run_group_tests(name, tests, count, first ? set_up : NULL,
                                                last ? tear_down : NULL);
    return failed + group.failed;
}
/* NOLINTEND(bugprone-reserved-identifier) */
