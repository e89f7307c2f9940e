/*
 * Processes that pause (SIGSTOP; a suspended machine, a frozen container) and continue: the server
 * for longer than its agents' deadlines, an agent beyond its own, and both.
 */

#include "odd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CONNECTIONS = 8 };

static struct node node;
static pid_t agent;

static int begin_with(const char *grace)
{
    node_init(&node);
    node_start(&node, FLAGS("--scan-every", "100ms", "--grace", grace, "--drain", "200ms"));
    (void)define(&node, "short",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
                 "\"action\": \"x\", \"complete_by\": \"1500ms\", \"undo\": \"none\"}]");
    (void)define(&node, "stock",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"reserve\", \"agent\": "
                 "\"stock\", \"action\": \"reserve\", \"input\": {\"sku\": \"widget\", "
                 "\"quantity\": 1}, \"complete_by\": \"3s\", \"undo\": \"none\", \"retry\": "
                 "{\"attempts\": 100, \"wait\": \"100ms\", \"max_wait\": \"100ms\"}}]");
    return 0;
}

static int begin(void **state)
{
    (void)state;
    return begin_with("500ms");
}

/* Nobody has to be quick. */
static int begin_patient(void **state)
{
    (void)state;
    return begin_with("60s");
}

static int end(void **state)
{
    (void)state;
    if (agent)
        odd_kill(agent);
    agent = 0;
    if (node.pid)
        (void)kill(node.pid, SIGCONT);
    node_fini(&node);
    return 0;
}

static void start_agent(const char *delay)
{
    char server[60];
    char path[100];
    char log[100];

    (void)snprintf(server, sizeof server, "http://127.0.0.1:%d", node.port);
    (void)snprintf(path, sizeof path, "%s/stock.db", node.home);
    (void)snprintf(log, sizeof log, "%s/agent.log", node.home);
    (void)setenv("INTACT_TOKEN", node.token, 1);
    agent =
        odd_agent(FLAGS("--server", server, "--instance", "s1", "--ledger", path, "--delay", delay),
                  log);
}

static int64_t effects(void)
{
    char command[200];
    long count = -1;

    (void)snprintf(command, sizeof command,
                   "sqlite3 -cmd '.timeout 5000' '%s/stock.db' 'SELECT count(*) FROM reservation'",
                   node.home);
    FILE *f = popen(command, "re");
    CHECK(f && fscanf(f, "%ld", &count) == 1, "%s", command);
    (void)pclose(f);
    return count;
}

static bool stands_still(pid_t pid)
{
    char path[64];
    char line[200] = "";

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    bool read = f && fgets(line, sizeof line, f);
    if (f)
        (void)fclose(f);
    const char *state = strrchr(line, ')');
    return read && state && state[2] == 'T';
}

static void stop_process(pid_t pid)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    CHECK(kill(pid, SIGSTOP) == 0, "%s", strerror(errno));
    while (!stands_still(pid)) {
        CHECK(steady_ms() < until, "it does not stop");
        sleep_ms(5);
    }
}

/* ---- the server ---- */

/* What fell due while it stood still has the grace time, who waits is still there, and what agents
 * did meanwhile is taken. */
static void a_server_that_stood_still_blames_nobody(void **state)
{
    REPLY r = {0};
    int fds[3];
    (void)state;

    submit(&node, "short", "due");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    fds[0] = ask(&node, "POST", "/v1/agents/other/work", "application/json",
                 SLICE("{\"instance\": \"o\", \"wait\": \"1s\"}"));
    fds[1] = ask(&node, "GET", "/v1/tasks/due?wait=5m", NULL, SLICE_NONE);
    fds[2] = ask(&node, "GET", "/v1/tasks/due/events", NULL, SLICE_NONE);
    stop_process(node.pid);
    sleep_ms(3000);
    int late = ask(&node, "GET", "/healthz", NULL, SLICE_NONE); /* the kernel takes it */
    node_signal(&node, SIGCONT);
    hear(late, &r);
    EXPECT(&r, 200);
    wait_until_logged(&node, "event=time_lost ", 1);
    sleep_ms(500); /* for some scans */
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
    wait_for_state(&node, "due", "processed");
    hear(fds[0], &r);
    EXPECT(&r, 200);
    hear(fds[1], &r);
    EXPECT_TEXT(&r, "state", "processed");
    (void)close(fds[2]);
    task_of(&node, &r, "due");
    assert_null(at(&r, "steps.0.attempts.1"));
    EXPECT_INT(&r, "steps.0.failure_count", 0);
    assert_int_equal(logged(&node, "event=clock_jump"), 0);
}

/* ---- an agent ---- */

/* It wakes up when its attempt is long given up: its effect, which is not done yet, does not
 * happen, and what it would have said is not sent. The next attempt has the only one. */
static void an_agent_that_stood_still_does_not_begin_too_late(void **state)
{
    REPLY r = {0};
    int64_t until = steady_ms() + PATIENCE_MS;
    (void)state;

    start_agent("1000"); /* before it begins with the effect */
    submit(&node, "stock", "late");
    wait_for_state(&node, "late", "processing");
    stop_process(agent);
    do { /* the supervisor gives it up, and the task waits for an agent */
        sleep_ms(50);
        task_of(&node, &r, "late");
        CHECK(steady_ms() < until, "it is not given up: %.*s", SLICE_ARG(r.body));
    } while (strcmp(text_at(&r, "steps.0.attempts.0.outcome"), "timed_out") != 0);
    assert_int_equal(effects(), 0);
    assert_int_equal(kill(agent, SIGCONT), 0);
    wait_for_state(&node, "late", "processed");
    task_of(&node, &r, "late");
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "timed_out");
    assert_int_equal(effects(), 1);
}

/* A whole machine that slept: nobody is blamed, and the effect happens once. */
static void both_that_stood_still_come_to_an_end(void **state)
{
    REPLY r = {0};
    (void)state;

    start_agent("1000");
    submit(&node, "stock", "both");
    wait_for_state(&node, "both", "processing");
    stop_process(agent);
    stop_process(node.pid);
    sleep_ms(4000);
    assert_int_equal(kill(agent, SIGCONT), 0);
    node_signal(&node, SIGCONT);
    wait_for_state(&node, "both", "processed");
    task_of(&node, &r, "both");
    assert_int_equal(effects(), 1);
}

/* ---- descriptors used up ---- */

static void limit_descriptors(pid_t pid, rlim_t count)
{
    struct rlimit limit = {0};

    CHECK(prlimit(pid, RLIMIT_NOFILE, NULL, &limit) == 0, "%s", strerror(errno));
    limit.rlim_cur = count;
    CHECK(prlimit(pid, RLIMIT_NOFILE, &limit, NULL) == 0, "%s", strerror(errno));
}

static void move(const char *from, const char *to)
{
    char x[120];
    char y[120];

    (void)snprintf(x, sizeof x, "%s/%s", node.data, from);
    (void)snprintf(y, sizeof y, "%s/%s", node.data, to);
    CHECK(rename(x, y) == 0, "%s to %s: %s", x, y, strerror(errno));
}

/* On a connection that is there already. */
static void say_post(int fd, const char *id)
{
    CLEANUP(buf_fini) struct buf body = {0};
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&body, "{\"workflow\": \"short\", \"id\": \"%s\"}", id);
    buf_str(&b, "POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n");
    buf_slice(&b, authorization(&node));
    buf_fmt(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body.len);
    buf_slice(&b, buf_view(&body));
    say(fd, buf_view(&b));
}

/* Nothing can be opened: who is there is served, the store goes on, and if it has to open its files
 * again (its WAL was removed) it says what it lacks, and goes on by itself later. */
static void without_descriptors_the_store_goes_on(void **state)
{
    int fds[CONNECTIONS];
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = dial(&node);
    get(&node, &r, "/healthz"); /* they are accepted, being first */
    limit_descriptors(node.pid, 3);
    int outside = ask(&node, "GET", "/healthz", NULL, SLICE_NONE);
    wait_until_logged(&node, "event=accept_trouble ", 1);
    say_post(fds[0], "inside");
    hear(fds[0], &r);
    EXPECT(&r, 201);
    move("intact.db-wal", "away");
    int64_t until = steady_ms() + PATIENCE_MS;
    while (!logged(&node, "Too many open files")) {
        CHECK(steady_ms() < until, "it does not say what it lacks");
        sleep_ms(20);
    }
    say_post(fds[1], "refused");
    hear(fds[1], &r);
    EXPECT(&r, 503);
    limit_descriptors(node.pid, 1000);
    hear(outside, &r); /* it has waited */
    EXPECT(&r, 200);
    wait_until_ready_is(&node, 200, &r);
    assert_int_equal(logged(&node, "event=accept_trouble "), 1);
    assert_int_equal(logged(&node, "event=accept_works_again"), 1);
    task_of(&node, &r, "inside");
    submit(&node, "short", "after");
    for (int i = 2; i < CONNECTIONS; i++)
        (void)close(fds[i]);
}

/* It cannot connect, or open a file beside its ledger; nothing is lost, and nothing done twice. */
static void an_agent_without_descriptors_goes_on_later(void **state)
{
    REPLY r = {0};
    (void)state;

    start_agent("0");
    submit(&node, "stock", "first");
    wait_for_state(&node, "first", "processed");
    limit_descriptors(agent, 3);
    node_kill(&node); /* its connections are gone */
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    submit(&node, "stock", "second");
    sleep_ms(1500);
    task_of(&node, &r, "second");
    EXPECT_TEXT(&r, "state", "pending"); /* it waits, and no time runs */
    CHECK(odd_wait(agent, 0) < 0, "the agent ended");
    limit_descriptors(agent, 1000);
    wait_for_state(&node, "second", "processed");
    task_of(&node, &r, "second");
    assert_null(at(&r, "steps.0.attempts.1"));
    assert_int_equal(effects(), 2);
}

int main(int argc, char **argv)
{
    odd_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_server_that_stood_still_blames_nobody, begin_patient,
                                        end),
        cmocka_unit_test_setup_teardown(an_agent_that_stood_still_does_not_begin_too_late, begin,
                                        end),
        cmocka_unit_test_setup_teardown(both_that_stood_still_come_to_an_end, begin, end),
        cmocka_unit_test_setup_teardown(without_descriptors_the_store_goes_on, begin, end),
        cmocka_unit_test_setup_teardown(an_agent_without_descriptors_goes_on_later, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
