/*
 * The power is cut at every change of the disk, and unsynced data survives or not, sector by sector
 * (disk.h); also after failed calls, syncs above all. The next start finds all that was
 * acknowledged, and all that was read after a commit of unknown outcome.
 *
 * Usage: store_power_test [RUNS [SEED [forgetful]]]: that many random runs, and a cut at every
 * change; by default at every third. A failing run prints its seed. On a forgetful disk (disk.h)
 * some runs are known to fail: a commit whose sync failed is found in the WAL at the next opening
 * and trusted, but may still be lost until the WAL restarts.
 */

#include <stdlib.h>

#include "base/prng.h"
#include "base/test.h"
#include "disk.h"
#include "script.h"
#include "vfs.h"

static char home[64];
static uint64_t runs = 40;
static uint32_t stride = 3;
static uint64_t first_seed = 1;
static char now_running[100]; /* a failing run names itself */

static struct script script; /* a test that fails leaves it as it is */

static bool outage;

static void lift(void *arg)
{
    (void)arg;
    if (outage && vfs_plan.fired > 0)
        vfs_plan = (struct vfs_plan){0};
}

/* Runs the script until the power goes at change `cut`, or at its end; how many changes there were.
 */
static uint32_t run(struct vfs_plan plan, uint64_t seed, uint32_t cut)
{
    char dir[sizeof home + 16];

    (void)snprintf(dir, sizeof dir, "%s/store", home);
    script_init(&script, dir);
    script.between = lift;
    /* A failed first start may leave a file that cannot be told from a foreign one. */
    script.may_be_refused = plan.calls != 0;
    vfs_register(seed, false); /* for its random numbers */
    disk_record(seed);
    disk_cut_after(cut);
    vfs_plan = plan;
    script_run(&script);
    bool met = disk_is_cut();
    CHECK(met || plan.calls || script.failures == 0, "%s", script.error.text);
    if (!met)
        disk_cut_now();
    uint32_t changes = disk_changes();
    vfs_plan = (struct vfs_plan){0};
    disk_return();
    script_verify(&script);
    script_fini(&script);
    script_remove(dir);
    return changes;
}

static void at_every_change(void **state)
{
    uint32_t changes = run((struct vfs_plan){0}, 1, 0);
    (void)state;

    CHECK(changes > 50, "only %u changes", changes);
    for (uint32_t cut = 1; cut <= changes; cut += stride) {
        uint64_t seed = first_seed + cut * 977;
        (void)snprintf(now_running, sizeof now_running, "cut at change %u of %u, seed %" PRIu64,
                       cut, changes, seed);
        (void)run((struct vfs_plan){0}, seed, cut);
    }
    now_running[0] = 0;
}

/* Calls fail, some time later the power goes. */
static void after_calls_failed(void **state)
{
    static const uint32_t calls[] = {VFS_ALL, BIT(VFS_SYNC), BIT(VFS_SYNC),
                                     BIT(VFS_SYNC) | BIT(VFS_WRITE)};
    static const uint32_t fires[] = {1, 1, 2, 3, 4, 6, UINT32_MAX};
    (void)state;

    for (uint64_t seed = first_seed; seed < first_seed + runs; seed++) {
        struct prng p = {seed};
        struct vfs_plan plan = {.calls = calls[prng_below(&p, COUNT_OF(calls))],
                                .fire = fires[prng_below(&p, COUNT_OF(fires))]};
        plan.skip = prng_below(&p, plan.calls == VFS_ALL ? 500 : 40);
        outage = prng_chance(&p, 50);
        uint32_t cut = 1 + prng_below(&p, 300);
        (void)snprintf(now_running, sizeof now_running,
                       "seed %" PRIu64 ": calls %x, skip %u, fire %u, outage %d, cut %u", seed,
                       plan.calls, plan.skip, plan.fire, outage, cut);
        (void)run(plan, seed, cut);
    }
    outage = false;
    now_running[0] = 0;
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
        fprintf(stderr, "it was: %s; boot %" PRIu64 ", batch %u\n", now_running, script.boot,
                script.batches);
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
        cmocka_unit_test_teardown(at_every_change, tell),
        cmocka_unit_test_teardown(after_calls_failed, tell),
    };

    if (argc > 1) {
        stride = 1;
        runs = strtoull(argv[1], NULL, 10);
    }
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    disk_forgets = argc > 3 && strcmp(argv[3], "forgetful") == 0;
    return cmocka_run_group_tests_name("store after a power cut", tests, start, end);
}
