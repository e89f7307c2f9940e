/* Tests of a server in an unusual environment: inherited descriptors, closed standard streams,
 * limits, signals, terminals, and a strange system. odd.h starts it there. */

#include "odd.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUICK FLAGS("--scan-every", "50ms", "--grace", "200ms", "--drain", "200ms")

static struct node node;

static int begin(void **state)
{
    (void)state;
    node_init(&node);
    node_start(&node, QUICK);
    define_one(&node);
    return 0;
}

/* Its port is known, and it does not run. */
static int begin_stopped(void **state)
{
    int rc = begin(state);

    node_stop(&node);
    return rc;
}

static int end(void **state)
{
    (void)state;
    node_fini(&node);
    return 0;
}

static void whole_task(const char *id)
{
    submit(&node, "one", id);
    finish_one(&node, id);
}

/* ---- descriptors 0, 1 and 2 ---- */

static void close_all_three(void)
{
    for (int fd = 0; fd <= 2; fd++)
        (void)close(fd);
}

static void closed_descriptors_are_not_given_to_files(void **state)
{
    char path[120];
    char to[120];
    char lock[100] = "";
    (void)state;

    odd_node(&node, QUICK, close_all_three);
    whole_task("closed");
    for (int fd = 0; fd <= 2; fd++) {
        (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)node.pid, fd);
        ssize_t len = readlink(path, to, sizeof to - 1);
        CHECK(len > 0 && strncmp(to, "/dev/null", (size_t)len) == 0, "%s is %.*s", path,
              (int)max_i64(0, len), to);
    }
    (void)snprintf(path, sizeof path, "%s/lock", node.data);
    FILE *f = fopen(path, "r");
    CHECK(f && fgets(lock, sizeof lock, f), "%s", path);
    (void)fclose(f);
    CHECK(atoi(lock) == (int)node.pid && strspn(lock, "0123456789 \n") == strlen(lock), "%s", lock);
    node_stop(&node);
}

static void nobody_reads_what_we_say(void)
{
    int ends[2];

    if (pipe(ends) != 0 || dup2(ends[1], 1) < 0 || dup2(ends[1], 2) < 0 || close(ends[0]) != 0)
        _exit(126);
}

static void nowhere_to_write(void)
{
    int full = open("/dev/full", O_WRONLY);

    if (full < 0 || dup2(full, 1) < 0 || dup2(full, 2) < 0)
        _exit(126);
}

static void a_log_that_nobody_reads_stops_nothing(void **state)
{
    (void)state;

    odd_node(&node, QUICK, nobody_reads_what_we_say);
    whole_task("unread");
    node_stop(&node);
    odd_node(&node, QUICK, nowhere_to_write);
    whole_task("unwritten");
    node_stop(&node);
}

static int log_pipe[2];

static void into_a_small_pipe(void)
{
    if (setsid() < 0 || dup2(log_pipe[1], 2) < 0)
        _exit(126);
}

/* A terminal that was stopped, a journal that hangs: the reader is there, and does not read. */
static void a_log_that_is_stuck_stops_nothing(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int64_t until = steady_ms() + PATIENCE_MS;
    (void)state;

    CHECK(pipe2(log_pipe, O_CLOEXEC | O_NONBLOCK) == 0, "%s", strerror(errno));
    CHECK(fcntl(log_pipe[1], F_SETFL, 0) == 0 && fcntl(log_pipe[1], F_SETPIPE_SZ, 4096) > 0, "%s",
          strerror(errno));
    odd_node(&node, QUICK, into_a_small_pipe);
    for (int i = 0; i < 300; i++) { /* each one is a line, if it comes before the next */
        REPLY r = {0};
        node_signal(&node, SIGHUP);
        get(&node, &r, "/healthz");
        EXPECT(&r, 200);
    }
    whole_task("stuck");
    do { /* read again, and it goes on; what is missing is told */
        ssize_t len = read(log_pipe[0], buf_room(&b, 65536), 65536);
        b.len += len > 0 ? (size_t)len : 0;
        buf_str(&b, "");
        node_signal(&node, SIGHUP);
        sleep_ms(20);
        CHECK(steady_ms() < until, "nothing is said of lost lines: %s", b.ptr);
    } while (!strstr(b.ptr, "event=log_lost lines="));
    (void)close(log_pipe[0]);
    (void)close(log_pipe[1]);
    node_stop(&node);
}

static void full_output(void)
{
    int full = open("/dev/full", O_WRONLY);

    if (full < 0 || dup2(full, 1) < 0)
        _exit(126);
}

static void an_answer_that_cannot_be_written_is_no_success(void **state)
{
    static const char *const verbs[][3] = {{"--help"}, {"--version"}, {"serve", "--help"}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        CLEANUP(buf_fini) struct buf err = {0};
        const char *const args[] = {verbs[i][0], verbs[i][1], NULL};
        int status = odd_run(args, full_output, &err);
        CHECK(status == 1 && strstr(err.ptr, "No space left on device"), "%s: %d %s", verbs[i][0],
              status, err.ptr);
    }
}

/* ---- limits ---- */

static rlim_t limit;

static void few_descriptors(void)
{
    const struct rlimit few = {limit, limit};

    if (setrlimit(RLIMIT_NOFILE, &few) != 0)
        _exit(126);
}

static void too_few_descriptors_are_refused_at_the_start(void **state)
{
    static const rlim_t refused[] = {6, 9, 13, 16, 30, 63};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        limit = refused[i];
        expect_refusal(FLAGS("serve", "--data", node.data, "--listen", "127.0.0.1:0"),
                       few_descriptors, "file descriptors, but needs 64", "LimitNOFILE=");
    }
    limit = 64;
    odd_node(&node, QUICK, few_descriptors);
    whole_task("few");
    assert_int_equal(logged(&node, "event=few_descriptors "), 1);
    node_stop(&node);
}

enum { NOBODY = 65534 };

/* Whoever may do everything has no such limit. */
static void nobody_without_threads(void)
{
    const struct rlimit none = {0, 0};

    (void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it would need one itself */
    if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0
        || setrlimit(RLIMIT_NPROC, &none) != 0)
        _exit(126);
}

static void without_a_thread_it_does_not_start(void **state)
{
    CLEANUP(buf_fini) struct buf err = {0};
    char data[100];
    (void)state;

    if (getuid() != 0)
        skip();
    (void)snprintf(data, sizeof data, "%s/nobody", node.home);
    CHECK(chmod(node.home, 0777) == 0, "%s", strerror(errno));
    int status = odd_run(FLAGS("serve", "--data", data, "--listen", "127.0.0.1:0"),
                         nobody_without_threads, &err);
    if (status >= 126) /* the program is where nobody may look */
        skip();
    CHECK(status == 1 && strstr(err.ptr, "cannot start the store's thread")
              && strstr(err.ptr, "TasksMax="),
          "%d: %s", status, err.ptr);
}

static void limit_files(rlim_t size)
{
    const struct rlimit files = {size, RLIM_INFINITY};

    CHECK(prlimit(node.pid, RLIMIT_FSIZE, &files, NULL) == 0, "%s", strerror(errno));
}

/* The system would send a signal that ends the process in the middle of a write. */
static void files_that_may_not_grow_are_trouble_and_no_death(void **state)
{
    REPLY r = {0};
    char id[32];
    int accepted = 0;
    (void)state;

    limit_files(300000);
    for (int64_t until = steady_ms() + PATIENCE_MS;; accepted++) {
        (void)snprintf(id, sizeof id, "grow-%d", accepted);
        post(&node, &r, "/v1/tasks",
             "{\"workflow\": \"one\", \"id\": \"%s\", \"input\": \"%05000d\"}", id, 7);
        if (r.status != 201)
            break;
        CHECK(steady_ms() < until, "it grows for ever");
    }
    EXPECT(&r, 503);
    wait_until_ready_is(&node, 503, &r);
    CHECK(strstr(text_at(&r, "detail"), "File too large")
              && strstr(text_at(&r, "detail"), "LimitFSIZE="),
          "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/metrics");
    CHECK(memmem(r.body.ptr, r.body.len, "\nintact_store_trouble 1\n", 24), "%.*s",
          SLICE_ARG(r.body));
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'grow-%'"), accepted);
    limit_files(RLIM_INFINITY);
    wait_until_ready_is(&node, 200, &r); /* by itself */
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'grow-%'"), accepted);
    for (int i = 0; i < accepted; i++)
        serve_step(&node, "ag", "i", "1");
    whole_task("grown");
}

static void tiny_files(void)
{
    const struct rlimit files = {limit, limit};

    if (setrlimit(RLIMIT_FSIZE, &files) != 0)
        _exit(126);
}

static void files_that_may_not_grow_are_refused_at_the_start(void **state)
{
    char data[100];
    (void)state;

    (void)snprintf(data, sizeof data, "%s/tiny", node.home);
    for (limit = 4096; limit <= 65536; limit += 12288) /* some page of the store */
        expect_refusal(FLAGS("serve", "--data", data, "--listen", "127.0.0.1:0"), tiny_files,
                       "File too large", "LimitFSIZE=");
    node_stop(&node);
    (void)snprintf(node.data, sizeof node.data, "%s/tiny",
                   node.home); /* none of it is in the way */
    node_start(&node, QUICK);
    define_one(&node);
    whole_task("large-enough");
}

/* ---- signals ---- */

static void without_terminal(void)
{
    if (setsid() < 0)
        _exit(126);
}

static void a_service_outlives_a_hangup(void **state)
{
    REPLY r = {0};
    (void)state;

    odd_node(&node, QUICK, without_terminal);
    node_signal(&node, SIGHUP);
    wait_until_logged(&node, "event=nothing_to_read_again", 1);
    whole_task("hung-up");
    wait_until_ready_is(&node, 200, &r);
    node_stop(&node);
}

static char terminal[64];

static void on_terminal(void)
{
    if (setsid() < 0 || open(terminal, O_RDWR) < 0)
        _exit(126); /* NOLINT: stays open: it is the controlling one now */
}

static void on_terminal_nohup(void)
{
    (void)signal(SIGHUP, SIG_IGN);
    on_terminal();
}

static int open_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0
              && ptsname_r(master, terminal, sizeof terminal) == 0,
          "%s", strerror(errno));
    return master;
}

static void a_terminal_that_closes_ends_its_server_in_order(void **state)
{
    REPLY r = {0};
    (void)state;

    int master = open_terminal();
    odd_node(&node, QUICK, on_terminal);
    whole_task("at-home");
    (void)close(master);
    int status = node_wait(&node, PATIENCE_MS);
    CHECK(status == 0, "wait status %x", (unsigned)status);
    assert_int_equal(logged(&node, "event=draining signal=1\n"), 1);

    master = open_terminal();
    odd_node(&node, QUICK, on_terminal_nohup);
    (void)close(master);
    whole_task("nohup");
    wait_until_ready_is(&node, 200, &r);
    node_stop(&node);
}

static void other_signals_are_nothing(void **state)
{
    static const int signals[] = {SIGPIPE, SIGXFSZ, SIGWINCH, SIGCHLD, SIGURG, SIGCONT};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(signals); i++)
        node_signal(&node, signals[i]);
    whole_task("signals");
}

/* ---- a strange world ---- */

static void strange_world(void)
{
    const char *asan = getenv("ASAN_OPTIONS");

    (void)clearenv();
    if (asan)
        (void)setenv("ASAN_OPTIONS", asan, 1);
    (void)setenv("TZ", ":/nowhere/at/all", 1);
    (void)setenv("LC_ALL", "tlh_QO.KOI-42", 1);
    (void)setenv("TMPDIR", "/nowhere", 1);
    (void)setenv("SQLITE_TMPDIR", "/nowhere", 1);
    (void)umask(0777);
}

static void wide_open(void)
{
    (void)umask(0);
}

static void expect_mode(const char *name, mode_t mode)
{
    char path[120];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/%s", node.data, name);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == mode, "%s: %o", path, st.st_mode);
}

/* No home, no place for temporary files, another language and time, and an odd umask. */
static void a_strange_environment_changes_nothing(void **state)
{
    static void (*const worlds[])(void) = {strange_world, wide_open};
    char data[100];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(worlds); i++) {
        (void)snprintf(data, sizeof data, "%s/new-%zu", node.home, i);
        (void)snprintf(node.data, sizeof node.data, "%.70s", data);
        odd_node(&node, QUICK, worlds[i]);
        define_one(&node);
        whole_task("strange");
        expect_mode("", 0700);
        expect_mode("intact.db", 0600);
        expect_mode("intact.db-wal", 0600);
        expect_mode("lock", 0600);
        expect_mode("admin-token", 0600);
        node_stop(&node);
    }
}

static void an_address_that_is_gone_is_named(void **state)
{
    (void)state;
    expect_refusal(FLAGS("serve", "--data", node.data, "--behind-proxy", "--listen",
                         "192.0.2.1:7420"),
                   NULL, "192.0.2.1:7420", "not available");
}

int main(int argc, char **argv)
{
    odd_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(closed_descriptors_are_not_given_to_files, begin_stopped,
                                        end),
        cmocka_unit_test_setup_teardown(a_log_that_nobody_reads_stops_nothing, begin_stopped, end),
        cmocka_unit_test_setup_teardown(a_log_that_is_stuck_stops_nothing, begin_stopped, end),
        cmocka_unit_test(an_answer_that_cannot_be_written_is_no_success),
        cmocka_unit_test_setup_teardown(too_few_descriptors_are_refused_at_the_start, begin_stopped,
                                        end),
        cmocka_unit_test_setup_teardown(without_a_thread_it_does_not_start, begin_stopped, end),
        cmocka_unit_test_setup_teardown(files_that_may_not_grow_are_trouble_and_no_death, begin,
                                        end),
        cmocka_unit_test_setup_teardown(files_that_may_not_grow_are_refused_at_the_start, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_service_outlives_a_hangup, begin_stopped, end),
        cmocka_unit_test_setup_teardown(a_terminal_that_closes_ends_its_server_in_order,
                                        begin_stopped, end),
        cmocka_unit_test_setup_teardown(other_signals_are_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_strange_environment_changes_nothing, begin_stopped, end),
        cmocka_unit_test_setup_teardown(an_address_that_is_gone_is_named, begin_stopped, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
