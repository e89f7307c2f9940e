/*
 * No space: at the start, under load, and for an agent's ledger; and a file system that becomes
 * read-only under the server, as ext4 does when its disk fails. The disks are small and belong to
 * the test; skipped where mounts are not permitted. See also tests/e2e/disk_test.c.
 */

#include "odd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUICK FLAGS("--scan-every", "100ms", "--grace", "200ms", "--drain", "500ms")

enum { PAGE = 4096, CROWD = 50 };

static struct node node;
static char ledger[100]; /* folder */
static bool may_mount;
static pid_t agent;

static void mount_small(const char *path, const char *options)
{
    CHECK(mkdir(path, 0700) == 0 && mount("tmpfs", path, "tmpfs", 0, options) == 0, "%s: %s", path,
          strerror(errno));
}

static int begin(void **state)
{
    (void)state;
    node_init(&node);
    (void)snprintf(ledger, sizeof ledger, "%s/ledger", node.home);
    if (!may_mount)
        return 0;
    mount_small(node.data, "size=4m,mode=0700");
    mount_small(ledger, "size=1m,mode=0700");
    return 0;
}

static int end(void **state)
{
    (void)state;
    if (agent)
        odd_kill(agent);
    agent = 0;
    if (node.pid)
        node_kill(&node);
    if (may_mount) {
        (void)umount(node.data);
        (void)umount(ledger);
    }
    node_fini(&node);
    return 0;
}

/* Fills the disk of that folder but for so many bytes. */
static void fill(const char *folder, off_t but)
{
    static char block[65536];
    char path[120];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/filler", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t size = sizeof block; size > 0;)
        if (write(fd, block, size) <= 0)
            size /= 2;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(ftruncate(fd, st.st_size > but ? st.st_size - but : 0), 0);
    (void)close(fd);
}

static void make_room(const char *folder)
{
    char path[120];

    (void)snprintf(path, sizeof path, "%s/filler", folder);
    assert_int_equal(unlink(path), 0);
}

/* ---- at the start ---- */

/* True: it came up, and was stopped. Otherwise it said why not. */
static bool try_to_start(void)
{
    CLEANUP(buf_fini) struct buf err = {0};
    char log[] = "/tmp/intact-hostile.XXXXXX";
    ssize_t len = 0;
    int status = -1;
    int64_t until = steady_ms() + PATIENCE_MS;
    int fd = mkstemp(log);

    pid_t pid = odd_spawn(FLAGS("serve", "--data", node.data, "--listen", "127.0.0.1:0", "--drain",
                                "100ms"),
                          log, NULL);
    for (bool up = false; !up && status < 0;) {
        CHECK(steady_ms() < until, "it neither starts nor ends: %s", err.ptr);
        status = odd_wait(pid, 20);
        while ((len = read(fd, buf_room(&err, 4096), 4096)) > 0)
            err.len += (size_t)len;
        buf_str(&err, "");
        up = strstr(err.ptr, "event=started ") != NULL;
    }
    (void)close(fd);
    (void)unlink(log);
    bool started = strstr(err.ptr, "event=started ") != NULL;
    if (status < 0) {
        (void)kill(pid, SIGTERM);
        status = odd_wait(pid, PATIENCE_MS);
        CHECK(status == 0, "wait status %x: %s", (unsigned)status, err.ptr);
    }
    CHECK(started || (WIFEXITED(status) && WEXITSTATUS(status) == 1), "wait status %x: %s",
          (unsigned)status, err.ptr);
    CHECK(started || strstr(err.ptr, "No space left on device") || strstr(err.ptr, "is full"),
          "it does not say that the disk is full: %s", err.ptr);
    return started;
}

/* With a page more each time: wherever it ran out, it says so, and what it left is in nobody's
 * way. */
static void a_start_without_room_says_so_and_leaves_nothing_in_the_way(void **state)
{
    int refused = 0;
    (void)state;

    if (!may_mount)
        skip();
    fill(node.data, 0);
    while (!try_to_start()) {
        CHECK(++refused < 200, "it never has enough");
        make_room(node.data);
        fill(node.data, (off_t)refused * 3 * PAGE);
    }
    CHECK(refused > 3, "%d", refused);
    make_room(node.data);
    node_start(&node, QUICK);
    define_one(&node);
    submit(&node, "one", "room");
    finish_one(&node, "room");
    node_stop(&node);
}

/* Killed with a WAL beside the file, started again without room: what was answered is there, or it
 * does not start. */
static void a_restart_without_room_loses_nothing(void **state)
{
    (void)state;

    if (!may_mount)
        skip();
    node_start(&node, QUICK);
    define_one(&node);
    for (int i = 0; i < 50; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "kept-%d", i);
        submit(&node, "one", id);
    }
    node_kill(&node);
    for (int pages = 0; pages < 20; pages += 4) {
        fill(node.data, (off_t)pages * PAGE);
        (void)try_to_start();
        make_room(node.data);
    }
    node_start(&node, QUICK);
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'kept-%'"), 50);
    node_stop(&node);
}

/* ---- in the middle of it ---- */

static void start_with_agent(const char *complete_by, const char *delay)
{
    char server[60];
    char path[120];
    char step[400];
    char log[100];

    node_start(&node, QUICK);
    (void)snprintf(
        step, sizeof step,
        "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"reserve\", \"agent\": \"stock\", "
        "\"action\": \"reserve\", \"input\": {\"sku\": \"widget\", \"quantity\": 1}, "
        "\"complete_by\": \"%s\", \"undo\": \"none\", \"retry\": {\"attempts\": 1000, "
        "\"wait\": \"100ms\", \"max_wait\": \"200ms\"}}]",
        complete_by);
    (void)define(&node, "stock", step);
    (void)snprintf(server, sizeof server, "http://127.0.0.1:%d", node.port);
    (void)snprintf(path, sizeof path, "%s/stock.db", ledger);
    (void)snprintf(log, sizeof log, "%s/agent.log", node.home);
    (void)setenv("INTACT_TOKEN", node.token, 1);
    agent = odd_agent(FLAGS("--server", server, "--instance", "s1", "--ledger", path, "--delay",
                            delay, "--concurrency", "4"),
                      log);
}

static int64_t in_ledger(const char *what)
{
    char command[300];
    long count = -1;

    (void)snprintf(command, sizeof command, "sqlite3 -cmd '.timeout 5000' '%s/stock.db' '%s'",
                   ledger, what);
    FILE *f = popen(command, "re");
    CHECK(f && fscanf(f, "%ld", &count) == 1, "%s", command);
    (void)pclose(f);
    return count;
}

/* Submits until the server refuses it and knows why. How many were accepted. */
static int submit_until_full(struct reply *r, const char *workflow, const char *prefix)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY ready = {0};
    int accepted = 0;

    for (;;) {
        post(&node, r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s-%d\"}", workflow, prefix,
             accepted);
        accepted += r->status == 201;
        get(&node, &ready, "/readyz");
        if (r->status == 503 && ready.status == 503)
            return accepted;
        CHECK(steady_ms() < until, "it is never full: %d", accepted);
        sleep_ms(1);
    }
}

/* An agent had the request when the disk was filled: its answer waits with it, and is taken as soon
 * as there is room. The effect happens once, and no attempt more is needed. */
static void agents_keep_their_answers_until_there_is_room(void **state)
{
    REPLY r = {0};
    (void)state;

    if (!may_mount)
        skip();
    start_with_agent("10m", "1500");
    submit(&node, "stock", "before");
    wait_for_state(&node, "before", "processing");
    fill(node.data, 0);
    int accepted = submit_until_full(&r, "stock", "full");
    int64_t until = steady_ms() + PATIENCE_MS;
    while (in_ledger("SELECT count(*) FROM reservation") == 0)
        CHECK(steady_ms() < until, "the agent does not work");
    sleep_ms(500); /* it hands in, and is refused, but for what room a checkpoint made */
    make_room(node.data);
    wait_for_state(&node, "before", "processed");
    task_of(&node, &r, "before");
    assert_null(at(&r, "steps.0.attempts.1"));
    for (int i = 0; i < accepted; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "full-%d", i);
        wait_for_state(&node, id, "processed");
    }
    assert_int_equal(in_ledger("SELECT count(*) FROM reservation"), accepted + 1);
}

/* Clients go on asking for all that time. */
static void a_full_disk_is_logged_once_for_each_time(void **state)
{
    REPLY r = {0};
    (void)state;

    if (!may_mount)
        skip();
    node_start(&node, QUICK);
    define_one(&node);
    submit(&node, "one", "before");
    fill(node.data, 0);
    (void)submit_until_full(&r, "one", "a");
    sleep_ms(1500); /* what room a checkpoint found is used up as well */
    (void)submit_until_full(&r, "one", "b");
    unsigned works = logged(&node, "event=store_works_again");
    unsigned lines = logged(&node, "");
    for (int refused = 0; refused < 200;) {
        int fds[CROWD];
        for (int i = 0; i < CROWD; i++)
            fds[i] = ask(&node, "POST", "/v1/tasks", "application/json",
                         SLICE("{\"workflow\": \"one\", \"input\": \"all of them ask\"}"));
        for (int i = 0; i < CROWD; i++) {
            hear(fds[i], &r);
            CHECK(r.status == 503 || r.status == 201, "%d", r.status); /* a checkpoint makes room */
            refused += r.status == 503;
        }
        task_of(&node, &r, "before"); /* reading goes on */
    }
    unsigned turns = logged(&node, "event=store_works_again") - works;
    lines = logged(&node, "") - lines;
    CHECK(lines <= 6 * (turns + 1), "%u lines, %u turns", lines, turns);
    (void)submit_until_full(&r, "one", "c");
    get(&node, &r, "/metrics");
    CHECK(memmem(r.body.ptr, r.body.len, "\nintact_store_troubles_total ", 29), "%.*s",
          SLICE_ARG(r.body));
    works = logged(&node, "event=store_works_again");
    make_room(node.data);
    wait_until_ready_is(&node, 200, &r);
    wait_until_logged(&node, "event=store_works_again", works + 1);
    node_stop(&node);
}

/* Its answer is an error that is retried; nothing happens twice, or halfway. */
static void a_ledger_without_room_is_tried_again(void **state)
{
    REPLY r = {0};
    (void)state;

    if (!may_mount)
        skip();
    start_with_agent("30s", "0");
    submit(&node, "stock", "first");
    wait_for_state(&node, "first", "processed");
    fill(ledger, 0);
    /* what room there is in its WAL is used up first */
    int64_t until = steady_ms() + PATIENCE_MS;
    char id[20];
    int count = 0;
    bool full = false;
    while (!full) {
        (void)snprintf(id, sizeof id, "more-%d", count++);
        submit(&node, "stock", id);
        do {
            task_of(&node, &r, id);
            full = strcmp(text_at(&r, "steps.0.attempts.0.error.code"), "ledger") == 0;
            CHECK(steady_ms() < until, "it is never full: %.*s", SLICE_ARG(r.body));
        } while (!full && strcmp(text_at(&r, "state"), "processed") != 0);
    }
    make_room(ledger);
    wait_for_state(&node, id, "processed");
    assert_int_equal(in_ledger("SELECT count(*) FROM reservation"), count + 1);
    assert_int_equal(in_ledger("SELECT initial - on_hand FROM stock WHERE sku = \"widget\""),
                     count + 1);
}

/* ---- read-only ---- */

PRINTF(1, 2) static bool command(const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return system(text) == 0; /* NOLINT: paths of our own */
}

/* Makes ext4 turn read-only, as it does after an error of its disk. */
static bool trip(const char *data)
{
    return command("d=$(findmnt -no SOURCE '%s') && "
                   "echo 1 > \"/sys/fs/ext4/${d##*/}/trigger_fs_error\"",
                   data);
}

static void a_disk_that_turns_read_only_is_told_and_nothing_is_lost(void **state)
{
    char image[100];
    REPLY r = {0};
    char id[20];
    int accepted = 0;
    (void)state;

    (void)snprintf(image, sizeof image, "%s/image", node.home);
    if (may_mount)
        (void)umount(node.data);
    if (!may_mount || getuid() != 0
        || !command("truncate -s 32M '%s' && PATH=$PATH:/sbin:/usr/sbin mkfs.ext4 -q '%s'", image,
                    image)
        || !command("mount -o loop,errors=remount-ro '%s' '%s' 2>/dev/null", image, node.data)) {
        fprintf(stderr, "skipped: no ext4 on a loop device here\n");
        skip();
    }
    node_start(&node, QUICK);
    define_one(&node);
    submit(&node, "one", "before");
    if (!trip(node.data)) {
        fprintf(stderr, "skipped: this kernel does not let us trip ext4\n");
        skip();
    }
    for (int64_t until = steady_ms() + PATIENCE_MS;; accepted++) {
        (void)snprintf(id, sizeof id, "ro-%d", accepted);
        post(&node, &r, "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"%s\"}", id);
        if (r.status != 201)
            break;
        CHECK(steady_ms() < until, "it takes tasks for ever");
    }
    EXPECT(&r, 503);
    wait_until_ready_is(&node, 503, &r);
    CHECK(strstr(text_at(&r, "detail"), "read-only") || strstr(text_at(&r, "detail"), "Read-only"),
          "%.*s", SLICE_ARG(r.body));
    sleep_ms(1000);
    CHECK(logged(&node, "event=store_trouble ") <= 4, "%u", logged(&node, "event=store_trouble "));
    node_kill(&node);
    expect_refusal(FLAGS("serve", "--data", node.data, "--listen", "127.0.0.1:0"), NULL,
                   "Read-only file system", "make it writable");
    assert_int_equal(umount(node.data), 0);
    (void)command("PATH=$PATH:/sbin:/usr/sbin e2fsck -pf '%s' >/dev/null", image); /* mends */
    assert_true(command("mount -o loop '%s' '%s'", image, node.data));
    node_start(&node, QUICK);
    task_of(&node, &r, "before");
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'ro-%'"), accepted);
    node_stop(&node);
}

int main(int argc, char **argv)
{
    odd_program(argc, argv);
    may_mount = own_mounts();
    if (!may_mount)
        fprintf(stderr, "skipped: no mounts are allowed here (%s)\n", strerror(errno));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_start_without_room_says_so_and_leaves_nothing_in_the_way,
                                        begin, end),
        cmocka_unit_test_setup_teardown(a_restart_without_room_loses_nothing, begin, end),
        cmocka_unit_test_setup_teardown(agents_keep_their_answers_until_there_is_room, begin, end),
        cmocka_unit_test_setup_teardown(a_full_disk_is_logged_once_for_each_time, begin, end),
        cmocka_unit_test_setup_teardown(a_ledger_without_room_is_tried_again, begin, end),
        cmocka_unit_test_setup_teardown(a_disk_that_turns_read_only_is_told_and_nothing_is_lost,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
