/*
 * A server with a memory limit, as set by containers and systemd's MemoryMax=, under more large
 * requests than fit. Skipped without the permission to create a cgroup.
 */

#include "odd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CROWD = 60, LARGE = 3900000 };

static struct node node;
static char group[120];

static bool write_into(const char *name, const char *text)
{
    char path[200];

    (void)snprintf(path, sizeof path, "%s/%s", group, name);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        (void)close(fd);
    return ok;
}

/* A group with that limit, of either version of cgroups. False: not here. */
static bool make_group(const char *bytes)
{
    static const char *const roots[] = {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"};
    static const char *const limits[] = {"memory.limit_in_bytes", "memory.max"};

    for (size_t i = 0; i < COUNT_OF(roots); i++) {
        (void)snprintf(group, sizeof group, "%s/intact-test-%d", roots[i], (int)getpid());
        if (mkdir(group, 0755) != 0)
            continue;
        if (write_into(limits[i], bytes)) {
            (void)write_into("memory.swap.max", "0"); /* where there is any */
            (void)write_into("memory.memsw.limit_in_bytes", bytes);
            return true;
        }
        (void)rmdir(group);
    }
    group[0] = 0;
    return false;
}

static void remove_group(void)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (group[0] && rmdir(group) != 0 && errno == EBUSY && steady_ms() < until)
        sleep_ms(20); /* who was in it is still going */
    group[0] = 0;
}

static void enter_group(void)
{
    /* what the sanitizer keeps of freed memory is not the server's */
    (void)setenv("ASAN_OPTIONS", "quarantine_size_mb=1:malloc_context_size=2", 1);
    if (!write_into("cgroup.procs", "0"))
        _exit(126);
}

static int begin(void **state)
{
    (void)state;
    node_init(&node);
    node_start(&node, FLAGS("--drain", "200ms"));
    define_one(&node);
    node_stop(&node);
    return 0;
}

static int end(void **state)
{
    (void)state;
    node_fini(&node);
    remove_group();
    return 0;
}

/* In a process of its own, which must not fail the test: the server may be gone at any moment.
 * True: it was accepted. */
static bool post_large(const char *prefix, int number, struct slice filler)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)node.port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    char answer[13] = "";
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)
        return false;
    buf_fmt(&body, "{\"workflow\": \"one\", \"id\": \"%s-%d\", \"input\": \"", prefix, number);
    buf_slice(&body, filler);
    buf_str(&body, "\"}");
    buf_fmt(&b, "POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n");
    buf_slice(&b, authorization(&node));
    buf_fmt(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body.len);
    buf_slice(&b, buf_view(&body));
    say(fd, buf_view(&b));
    ssize_t len = recv(fd, answer, sizeof answer - 1, MSG_WAITALL);
    (void)close(fd);
    return len == 12 && strcmp(answer, "HTTP/1.1 201") == 0;
}

/* Each says how much it will send, and sends it as far as it is taken; then all answers are read.
 * How many were accepted. */
static int flood(const char *prefix)
{
    CLEANUP(buf_fini) struct buf filler = {0};
    int pids[CROWD];
    int accepted = 0;

    while (filler.len < LARGE)
        buf_str(&filler, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    for (int i = 0; i < CROWD; i++) { /* each one in a process: it is cut off, or has to wait */
        pids[i] = fork();
        CHECK(pids[i] >= 0, "%s", strerror(errno));
        if (pids[i] == 0) {
            _exit(post_large(prefix, i, buf_view(&filler)) ? 0 : 1);
        }
    }
    for (int i = 0; i < CROWD; i++) {
        int status = 0;
        CHECK(waitpid(pids[i], &status, 0) == pids[i], "%s", strerror(errno));
        accepted += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return accepted;
}

static int64_t stored(const char *pattern)
{
    char query[100];

    (void)snprintf(query, sizeof query, "SELECT count(*) FROM task WHERE id LIKE '%s'", pattern);
    return sql_int(&node, query);
}

/* Its own limits hold it below the group's, however many come: nobody is killed. */
static void within_its_limits_it_is_not_killed(void **state)
{
    REPLY r = {0};
    int accepted = 0;
    (void)state;

    if (!make_group("268435456"))
        skip();
    odd_node(&node, FLAGS("--limit", "memory=32MiB", "--drain", "200ms"), enter_group);
    for (int i = 0; i < 2; i++) {
        char prefix[20];
        (void)snprintf(prefix, sizeof prefix, "fits-%d", i);
        accepted += flood(prefix);
    }
    CHECK(odd_wait(node.pid, 0) < 0, "it ended");
    CHECK(accepted > 0, "none was taken");
    wait_until_ready_is(&node, 200, &r);
    CHECK(stored("fits-%") >= accepted, "%d accepted", accepted);
    submit(&node, "one", "small"); /* small ones go on all the time */
    node_stop(&node);
}

/* With limits that do not fit the kernel ends it, as SIGKILL would: all that was accepted is there
 * when it starts again. */
static void killed_for_its_memory_it_loses_nothing(void **state)
{
    int accepted = 0;
    (void)state;

    if (!make_group("62914560"))
        skip();
    odd_node(&node, FLAGS("--drain", "200ms"), enter_group);
    for (int i = 0; i < 50; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "kept-%d", i);
        submit(&node, "one", id);
    }
    int status = -1;
    for (int i = 0; i < 20 && status < 0; i++) {
        char prefix[20];
        (void)snprintf(prefix, sizeof prefix, "flood-%d", i);
        accepted += flood(prefix);
        status = node_wait(&node, 100);
    }
    CHECK(status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "wait status %x",
          (unsigned)status);
    node_start(&node, FLAGS("--drain", "200ms"));
    assert_int_equal(stored("kept-%"), 50);
    CHECK(stored("flood-%") >= accepted, "%d accepted", accepted);
    char *check = sql(&node, "PRAGMA integrity_check");
    assert_string_equal(check, "ok");
    free(check);
    node_stop(&node);
}

int main(int argc, char **argv)
{
    odd_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(within_its_limits_it_is_not_killed, begin, end),
        cmocka_unit_test_setup_teardown(killed_for_its_memory_it_loses_nothing, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
