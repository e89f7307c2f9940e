/* Tests of a server's life: how it starts, refuses to start, drains, and ends by one signal or
 * two. hostile/process_test.c has unusual environments. */

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

#define LONG_DRAIN FLAGS("--drain", "10m", "--scan-every", "100ms", "--grace", "200ms")

static struct node node;

static int begin(void **state)
{
    (void)state;
    node_init(&node);
    node_start(&node, LONG_DRAIN);
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"undo\": \"none\"}, {\"name\": \"b\", \"agent\": \"ag\", "
                 "\"action\": \"y\", \"undo\": \"none\"}]");
    return 0;
}

static int end(void **state)
{
    (void)state;
    node_fini(&node);
    return 0;
}

static void expect_end(int signal, int expected)
{
    int status = node_wait(&node, PATIENCE_MS);

    CHECK(status >= 0, "it did not end after signal %d", signal);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected, "wait status %x", (unsigned)status);
}

/* ---- ends ---- */

static void without_work_it_ends_at_once(void **state)
{
    static const int signals[] = {SIGTERM, SIGINT};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        submit(&node, "one", i ? "idle-1" : "idle-0"); /* that nobody works on */
        node_signal(&node, signals[i]);
        expect_end(signals[i], 0);
        assert_true(node_log_has(&node, "event=ended"));
        node_start(&node, LONG_DRAIN);
    }
    wait_for_state(&node, "idle-0", "pending");
    wait_for_state(&node, "idle-1", "pending");
}

static void whoever_waits_is_answered_when_it_ends(void **state)
{
    REPLY r = {0};
    int calls[5];
    (void)state;

    submit(&node, "one", "waits");
    calls[0] = ask(&node, "POST", "/v1/agents/other/work", "application/json",
                   SLICE("{\"instance\": \"a\", \"wait\": \"5m\"}"));
    calls[1] = ask(&node, "POST", "/v1/agents/other/work", "application/json",
                   SLICE("{\"instance\": \"b\", \"wait\": \"5m\"}"));
    calls[2] = ask(&node, "GET", "/v1/tasks/waits?wait=5m", NULL, SLICE_NONE);
    calls[3] = ask(&node, "GET", "/v1/tasks/waits?wait=5m", NULL, SLICE_NONE);
    calls[4] = ask(&node, "POST", "/v1/tasks?wait=5m", "application/json",
                   SLICE("{\"workflow\": \"one\", \"id\": \"waits-too\"}"));
    do
        get(&node, &r, "/v1/tasks/waits-too");
    while (r.status == 404);
    let_read(&node);
    node_signal(&node, SIGTERM);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        hear(calls[i], &r);
        CHECK(r.status == (i == 4 ? 201 : 200), "%zu: %d %.*s", i, r.status, SLICE_ARG(r.body));
        if (i >= 2)
            EXPECT_TEXT(&r, "state", "pending");
    }
    expect_end(SIGTERM, 0);
}

static void it_takes_the_results_that_are_still_out(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "out-1");
    submit(&node, "one", "out-2");
    fetch(&node, &r, "ag", "i");
    char *first = token_in(&r, 0);
    fetch(&node, &r, "ag", "i");
    char *second = token_in(&r, 0);
    node_signal(&node, SIGTERM);
    do
        get(&node, &r, "/readyz");
    while (r.status == 200);
    expect_problem(&r, 503, "draining");
    get(&node, &r, "/healthz");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"out-3\"}");
    CHECK(r.status == 201 || r.status == 503, "%d", r.status);
    bool accepted = r.status == 201;
    hand_in(&node, "ag", "i", first, "\"output\": 1", "accepted");
    hand_in(&node, "ag", "i", first, "\"output\": 1", "repeated");
    task_of(&node, &r, "out-1");
    EXPECT_TEXT(&r, "steps.1.state", "waiting"); /* nothing new begins */
    int parked = ask(&node, "POST", "/v1/agents/ag/work", "application/json",
                     SLICE("{\"instance\": \"i\", \"wait\": \"5m\"}"));
    hand_in(&node, "ag", "i", second, "\"output\": 1", "accepted");
    expect_end(SIGTERM, 0);
    hear(parked, &r); /* let go of, without work */
    CHECK(r.status == 0 || raw_is(&r, "requests", "[]"), "%.*s", SLICE_ARG(r.body));

    node_start(&node, LONG_DRAIN);
    for (int i = 0; i < (accepted ? 4 : 2); i++)
        serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, "out-1", "processed");
    wait_for_state(&node, "out-2", "processed");
    assert_int_equal(sql_int(&node, "SELECT sum(failure_count) FROM task"), 0);
    free(first);
    free(second);
}

static void it_does_not_wait_for_results_beyond_its_limit(void **state)
{
    REPLY r = {0};
    (void)state;

    node_stop(&node);
    node_start(&node, FLAGS("--drain", "200ms"));
    submit(&node, "one", "limit");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    node_signal(&node, SIGTERM);
    expect_end(SIGTERM, 0);
    node_start(&node, LONG_DRAIN);
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
}

static void a_second_signal_ends_it_at_once_and_loses_nothing(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "second");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    node_signal(&node, SIGTERM);
    do
        get(&node, &r, "/readyz");
    while (r.status == 200);
    node_signal(&node, SIGTERM);
    expect_end(SIGTERM, 128 + SIGTERM);
    node_start(&node, LONG_DRAIN);
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, "second", "processed");
    free(token);
}

static void what_it_answered_before_it_ended_is_kept(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 2000; i++)
        buf_fmt(&b, "{\"workflow\": \"one\", \"id\": \"kept-%d\"}\n", i);
    for (int round = 0; round < 3; round++) {
        int call = ask(&node, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&b));
        sleep_ms(20 * round);
        node_signal(&node, SIGTERM);
        hear(call, &r);
        int64_t accepted = 0;
        for (size_t i = 0; i + 14 < r.body.len; i++)
            accepted += memcmp(r.body.ptr + i, "\"status\":20", 11) == 0;
        expect_end(SIGTERM, 0);
        node_start(&node, LONG_DRAIN);
        int64_t kept = sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'kept-%'");
        CHECK(kept >= accepted, "%" PRId64 " of %" PRId64, kept, accepted);
    }
}

/* ---- refuses to start ---- */

static void expect_refusal(const char *const *flags, int expected, const char *says)
{
    CLEANUP(buf_fini) struct buf err = {0};
    int status = serve_briefly(flags, &err);
    size_t lines = 0;

    CHECK(status == expected, "%s: exit status %d: %s", says, status, err.ptr);
    CHECK(strstr(err.ptr, says), "\"%s\" is not in: %s", says, err.ptr);
    CHECK(strncmp(err.ptr, "intact serve: ", 14) == 0, "%s", err.ptr);
    for (const char *p = err.ptr; (p = strchr(p, '\n')); p++)
        lines++;
    CHECK(lines == 1, "%zu lines: %s", lines, err.ptr);
}

static void wrong_flags_are_named(void **state)
{
    static const struct {
        const char *flags[4];
        const char *says;
    } cases[] = {
        {{"--nonsense"}, "--nonsense"},
        {{"--data"}, "--data"},
        {{"-x"}, "x"},
        {{"extra"}, "extra"},
        {{"--listen", "0.0.0.0:0"}, "loopback"},
        {{"--open", "--listen", "0.0.0.0:0"}, "--open asks nobody for a token"},
        {{"--listen", "example.com:80", "--open"}, "--open asks nobody for a token"},
        {{"--listen", "192.168.0.1:7420"}, "loopback"},
        {{"--listen", "127.0.0.1.example.com:7420"}, "loopback"},
        {{"--listen", "127.0.0.1"}, "expected ADDR:PORT"},
        {{"--listen", "127.0.0.1:99999"}, "expected ADDR:PORT"},
        {{"--listen", "::1:7420"}, "expected ADDR:PORT"},
        {{"--listen", "127.0.0.1:http"}, "http"},
        {{"--listen", ":7420"}, "loopback"},
        {{"--scan-every", "5"}, "--scan-every"},
        {{"--scan-every", "0s"}, "--scan-every"},
        {{"--grace", "-1s"}, "--grace"},
        {{"--drain", "soon"}, "--drain"},
        {{"--log", "loud"}, "--log"},
        {{"--data", ""}, "--data"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *flags[8] = {0};
        size_t n = 0;
        for (; cases[i].flags[n]; n++)
            flags[n] = cases[i].flags[n];
        if (strcmp(flags[0], "--data") != 0) {
            flags[n++] = "--data";
            flags[n] = node.data;
        }
        expect_refusal(flags, 2, cases[i].says);
    }
    struct stat st;
    assert_int_equal(stat(node.data, &st), -1); /* nothing was made on the way */
}

static int home_only(void **state)
{
    (void)state;
    node_init(&node);
    return 0;
}

static void one_folder_has_one_server_and_one_port_too(void **state)
{
    char listen[40];
    char other[100];
    REPLY r = {0};
    (void)state;

    expect_refusal(FLAGS("--data", node.data, "--listen", "127.0.0.1:0"), 1, "in use");
    (void)snprintf(listen, sizeof listen, "127.0.0.1:%d", node.port);
    (void)snprintf(other, sizeof other, "%s/other", node.home);
    expect_refusal(FLAGS("--data", other, "--listen", listen), 1, listen);
    submit(&node, "one", "still-there");
    get(&node, &r, "/readyz");
    EXPECT(&r, 200);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    CHECK(f, "%s: %s", path, strerror(errno));
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static void folders_that_cannot_be_used_are_named(void **state)
{
    char path[120];
    (void)state;

    expect_refusal(FLAGS("--data", "/proc/intact", "--listen", "127.0.0.1:0"), 1, "/proc/intact");
    (void)snprintf(path, sizeof path, "%s/a/b/c", node.home);
    expect_refusal(FLAGS("--data", path, "--listen", "127.0.0.1:0"), 1, path);
    (void)snprintf(path, sizeof path, "%s/file", node.home);
    write_file(path, "x");
    expect_refusal(FLAGS("--data", path, "--listen", "127.0.0.1:0"), 1, path);
    (void)snprintf(path, sizeof path, "%s/link", node.home);
    assert_int_equal(symlink("/dev/null/x", path), 0);
    expect_refusal(FLAGS("--data", path, "--listen", "127.0.0.1:0"), 1, path);
}

static void run_sql(const char *path, const char *text)
{
    sqlite3 *db = NULL;

    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    int rc = sqlite3_exec(db, text, NULL, NULL, NULL);
    CHECK(rc == SQLITE_OK, "%s: %s", text, sqlite3_errmsg(db));
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static uint64_t file_hash(const char *path)
{
    FILE *f = fopen(path, "rb");
    uint64_t h = 1469598103934665603u;
    int c = 0;

    CHECK(f, "%s", path);
    while ((c = fgetc(f)) != EOF)
        h = (h ^ (uint64_t)c) * 1099511628211u;
    (void)fclose(f);
    return h;
}

static void files_that_are_not_ours_are_left_alone(void **state)
{
    static const char *const kinds[] = {"not a database, but long enough to be taken for one: "
                                        "..............................................",
                                        "short", NULL};
    char path[120];
    (void)state;

    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        (void)mkdir(node.data, 0700);
        (void)unlink(path);
        if (kinds[i])
            write_file(path, kinds[i]);
        else
            run_sql(path, "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)");
        uint64_t before = file_hash(path);
        expect_refusal(FLAGS("--data", node.data, "--listen", "127.0.0.1:0"), 1, path);
        assert_true(file_hash(path) == before);
    }
    (void)unlink(path);
    node_start(&node, LONG_DRAIN);
    node_stop(&node);
    run_sql(path, "PRAGMA user_version = 99");
    uint64_t before = file_hash(path);
    expect_refusal(FLAGS("--data", node.data, "--listen", "127.0.0.1:0"), 1, "newer");
    assert_true(file_hash(path) == before);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_work_it_ends_at_once, begin, end),
        cmocka_unit_test_setup_teardown(whoever_waits_is_answered_when_it_ends, begin, end),
        cmocka_unit_test_setup_teardown(it_takes_the_results_that_are_still_out, begin, end),
        cmocka_unit_test_setup_teardown(it_does_not_wait_for_results_beyond_its_limit, begin, end),
        cmocka_unit_test_setup_teardown(a_second_signal_ends_it_at_once_and_loses_nothing, begin,
                                        end),
        cmocka_unit_test_setup_teardown(what_it_answered_before_it_ended_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(wrong_flags_are_named, home_only, end),
        cmocka_unit_test_setup_teardown(one_folder_has_one_server_and_one_port_too, begin, end),
        cmocka_unit_test_setup_teardown(folders_that_cannot_be_used_are_named, home_only, end),
        cmocka_unit_test_setup_teardown(files_that_are_not_ours_are_left_alone, home_only, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
