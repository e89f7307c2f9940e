/*
 * Every disk call of SQLite fails, the n-th for n from 0 on: once, until the end of the current
 * operation, and for good; as an error, a full disk or a short read. No operation may break its
 * contract (script.h), and the next start finds all that was acknowledged.
 *
 * Usage: store_faults_test [wide|thorough]. Default: every ninth single error and every 36th of
 * the other faults. Wide: every single error and every twelfth of the others. Thorough: all.
 */

#include "base/test.h"
#include "script.h"
#include "vfs.h"

enum span { ONCE, OUTAGE, FOR_GOOD };

static char home[64];
static unsigned stride = 36, stride_once = 9;
static char now_running[100]; /* a failing run names itself */

/* After the operation that met it an outage is over. */
static void lift(void *arg)
{
    const enum span *span = arg;

    if (*span == OUTAGE && vfs_plan.fired > 0)
        vfs_plan.fire = 0;
}

/* Says whether there was an n-th call to fail. */
static bool one(uint32_t calls, enum vfs_how how, enum span span, uint32_t n)
{
    static struct script s; /* a test that fails leaves it as it is */
    char dir[sizeof home + 16];

    (void)snprintf(dir, sizeof dir, "%s/%d", home, (int)how);
    script_init(&s, dir);
    s.between = lift;
    s.arg = &span;
    vfs_plan = (struct vfs_plan){.calls = calls,
                                 .how = how,
                                 .skip = n,
                                 .fire = span == ONCE ? 1 : UINT32_MAX};
    script_run(&s);
    bool fired = vfs_plan.fired > 0;
    CHECK(fired || s.failures == 0, "without a fault: %s", s.error.text);
    vfs_plan = (struct vfs_plan){0};
    script_verify(&s);
    script_fini(&s);
    script_remove(dir);
    return fired;
}

static void each(uint32_t calls, enum vfs_how how)
{
    static const char *const spans[] = {"once", "until the operation's end", "for good"};

    for (enum span span = ONCE; span <= FOR_GOOD; span++) {
        uint32_t step = how == VFS_IO && span == ONCE ? stride_once : stride;
        uint32_t tried = 0;
        bool fired = true;
        for (uint32_t n = span; fired; n += step, tried++) {
            (void)snprintf(now_running, sizeof now_running, "call %u fails %s (how %d, calls %x)",
                           n, spans[span], (int)how, calls);
            fired = one(calls, how, span, n);
        }
        CHECK(tried >= 80 / step, "only %u calls met", tried);
    }
    now_running[0] = 0;
}

static void every_call_may_fail(void **state)
{
    (void)state;
    each(VFS_ALL, VFS_IO);
}

static void every_write_may_find_the_disk_full(void **state)
{
    (void)state;
    each(BIT(VFS_WRITE), VFS_FULL);
}

static void every_read_may_be_short(void **state)
{
    (void)state;
    each(BIT(VFS_READ), VFS_SHORT);
}

static int start(void **state)
{
    (void)state;
    vfs_register(1, false);
    return script_folder(home, sizeof home) ? 0 : -1;
}

static int tell(void **state)
{
    (void)state;
    vfs_plan = (struct vfs_plan){0};
    if (now_running[0])
        fprintf(stderr, "it was: %s\n", now_running);
    return 0;
}

static int end(void **state)
{
    (void)state;
    script_remove(home);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_call_may_fail, tell),
        cmocka_unit_test_teardown(every_write_may_find_the_disk_full, tell),
        cmocka_unit_test_teardown(every_read_may_be_short, tell),
    };

    if (argc > 1) {
        stride_once = 1;
        stride = 12;
    }
    if (argc > 1 && strcmp(argv[1], "thorough") == 0)
        stride = 1;
    return cmocka_run_group_tests_name("store on a failing disk", tests, start, end);
}
