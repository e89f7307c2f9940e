/* Tests that a data folder belongs to one server, by whatever path, name or mount it is opened,
 * and that a folder which is removed or unusable is reported. store/sqlite/folder.c has the
 * lock. */

#include "odd.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CROWD = 20 };

#define QUICK FLAGS("--scan-every", "50ms", "--grace", "200ms", "--drain", "200ms")

static struct node node;
static bool may_mount;

static int begin(void **state)
{
    (void)state;
    node_init(&node);
    node_start(&node, QUICK);
    define_one(&node);
    return 0;
}

static int end(void **state)
{
    (void)state;
    node_fini(&node);
    return 0;
}

/* Starts a crowd of servers at once: one continues, and its pid is returned. The others report
 * that. */
static pid_t start_crowd(void)
{
    pid_t crowd[CROWD];
    size_t left = CROWD;
    pid_t last = 0;
    int64_t until = steady_ms() + 4 * PATIENCE_MS;

    for (size_t i = 0; i < CROWD; i++)
        crowd[i] = odd_spawn(FLAGS("serve", "--data", node.data, "--listen", "127.0.0.1:0"),
                             node.log, NULL);
    while (left > 1) {
        left = 0;
        for (size_t i = 0; i < CROWD; i++) {
            int status = crowd[i] ? odd_wait(crowd[i], 0) : 0;
            CHECK(status < 0 || !crowd[i] || (WIFEXITED(status) && WEXITSTATUS(status) == 1),
                  "wait status %x", (unsigned)status);
            if (crowd[i] && status >= 0)
                crowd[i] = 0;
            left += crowd[i] != 0;
            last = crowd[i] ? crowd[i] : last;
        }
        CHECK(steady_ms() < until, "%zu of them run", left);
        sleep_ms(5);
    }
    CHECK(left == 1, "none of them runs");
    return last;
}

static void of_twenty_servers_one_runs(void **state)
{
    (void)state;

    node_kill(&node);
    unsigned started = logged(&node, "event=started ");
    for (unsigned round = 1; round <= 3; round++) {
        pid_t winner = start_crowd();
        wait_until_logged(&node, "event=started ", started + round);
        assert_int_equal(logged(&node, "is in use by another server"), round * (CROWD - 1));
        assert_int_equal(logged(&node, "event=started "), started + round);
        assert_true(odd_wait(winner, 100) < 0);
        odd_kill(winner); /* its locks die with it, and nothing is in the way of the next one */
    }
    node_start(&node, QUICK);
    submit(&node, "one", "after-all");
    finish_one(&node, "after-all");
}

static void expect_in_use(const char *data, void (*before)(void))
{
    expect_refusal(FLAGS("serve", "--data", data, "--listen", "127.0.0.1:0"), before,
                   "in use by another server", "--data folder");
}

static void go_home(void)
{
    if (chdir(node.home) != 0)
        _exit(126);
}

static void every_way_to_the_folder_is_the_same(void **state)
{
    char path[120];
    REPLY r = {0};
    (void)state;

    (void)snprintf(path, sizeof path, "%s/link", node.home);
    assert_int_equal(symlink(node.data, path), 0);
    expect_in_use(path, NULL);
    expect_in_use("data", go_home);
    expect_in_use("./data/../data/", go_home);
    if (may_mount) {
        (void)snprintf(path, sizeof path, "%s/mounted", node.home);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(mount(node.data, path, NULL, MS_BIND, NULL), 0);
        expect_in_use(path, NULL);
        assert_int_equal(umount(path), 0);
    }
    wait_until_ready_is(&node, 200, &r);
}

/* Its folder is not taken from under the server that has it: that is looked at before the backup.
 */
static void expect_restore_refused(void)
{
    CLEANUP(buf_fini) struct buf said = {0};

    int status = odd_run(FLAGS("restore", node.log, "--data", node.data, "--force"), NULL, &said);
    CHECK(status == 2 && strstr(said.ptr, "in use by another server"), "%d: %s", status, said.ptr);
}

/* Somebody who tidies up takes it for a remnant. */
static void without_its_lock_file_it_is_still_locked(void **state)
{
    char path[120];
    (void)state;

    submit(&node, "one", "locked");
    (void)snprintf(path, sizeof path, "%s/lock", node.data);
    assert_int_equal(unlink(path), 0);
    expect_in_use(node.data, NULL);
    expect_restore_refused();
    finish_one(&node, "locked");
    node_kill(&node);
    node_start(&node, QUICK);
}

static void a_file_with_two_names_is_refused(void **state)
{
    char other[100];
    char path[120];
    char link_path[120];
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "linked");
    (void)snprintf(other, sizeof other, "%s/other", node.home);
    assert_int_equal(mkdir(other, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    (void)snprintf(link_path, sizeof link_path, "%s/intact.db", other);
    assert_int_equal(link(path, link_path), 0);
    expect_refusal(FLAGS("serve", "--data", other, "--listen", "127.0.0.1:0"), NULL,
                   "has 2 names (hard links)", "remove the others");
    node_kill(&node); /* what was accepted last stands in the WAL, beside the one name only */
    expect_refusal(FLAGS("serve", "--data", other, "--listen", "127.0.0.1:0"), NULL,
                   "has 2 names (hard links)", "remove the others");
    expect_refusal(FLAGS("serve", "--data", node.data, "--listen", "127.0.0.1:0"), NULL,
                   "has 2 names (hard links)", "remove the others");
    assert_int_equal(unlink(link_path), 0);
    node_start(&node, QUICK);
    task_of(&node, &r, "linked");
}

/* One file, mounted over an empty one in another folder: there is one name, and two lock files. */
static void a_file_that_is_mounted_elsewhere_is_locked(void **state)
{
    char other[100];
    char path[120];
    char there[120];
    (void)state;

    if (!may_mount)
        skip();
    (void)snprintf(other, sizeof other, "%s/elsewhere", node.home);
    assert_int_equal(mkdir(other, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    (void)snprintf(there, sizeof there, "%s/intact.db", other);
    (void)close(open(there, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(mount(path, there, NULL, MS_BIND, NULL), 0);
    expect_in_use(other, NULL);
    assert_int_equal(umount(there), 0);
    submit(&node, "one", "goes-on");
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void a_folder_removed_while_it_runs_is_told(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "lost");
    assert_int_equal(nftw(node.data, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    wait_until_ready_is(&node, 503, &r); /* nobody asks for anything */
    CHECK(strstr(text_at(&r, "detail"), "moved, removed or replaced"), "%.*s", SLICE_ARG(r.body));
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"meanwhile\"}");
    EXPECT(&r, 503);
    assert_int_equal(logged(&node, "event=store_trouble "), 1);
    assert_int_equal(logged(&node, "event=store_trouble "), 1); /* and not for each who asks */
    node_stop(&node);                                           /* it ends, and makes nothing */
    assert_int_equal(access(node.data, F_OK), -1);
}

static void a_path_that_is_too_long_is_refused(void **state)
{
    static char part[201];
    char path[1000];
    (void)state;

    memset(part, 'x', 200);
    (void)snprintf(path, sizeof path, "%s/%s", node.home, part);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/%s/%s", node.home, part, part);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/%s/%s/%s", node.home, part, part, part);
    expect_refusal(FLAGS("serve", "--data", path, "--listen", "127.0.0.1:0"), NULL,
                   "bytes too long", "choose another folder");
    (void)snprintf(path, sizeof path, "%s/%s%s", node.home, part, part);
    expect_refusal(FLAGS("serve", "--data", path, "--listen", "127.0.0.1:0"), NULL, "is too long",
                   "choose another folder");
}

int main(int argc, char **argv)
{
    odd_program(argc, argv);
    may_mount = own_mounts();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(of_twenty_servers_one_runs, begin, end),
        cmocka_unit_test_setup_teardown(every_way_to_the_folder_is_the_same, begin, end),
        cmocka_unit_test_setup_teardown(without_its_lock_file_it_is_still_locked, begin, end),
        cmocka_unit_test_setup_teardown(a_file_with_two_names_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(a_file_that_is_mounted_elsewhere_is_locked, begin, end),
        cmocka_unit_test_setup_teardown(a_folder_removed_while_it_runs_is_told, begin, end),
        cmocka_unit_test_setup_teardown(a_path_that_is_too_long_is_refused, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
