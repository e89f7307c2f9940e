/*
 * A disk that is full while the server runs, and a read-only one. The disk is a small tmpfs in a
 * mount namespace of this process; the tests are skipped where that is not permitted.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit.h"

static struct node node;
static char filler[100];
static bool may_mount;

static int start(void **state)
{
    (void)state;
    node_init(&node);
    (void)snprintf(filler, sizeof filler, "%s/filler", node.data);
    assert_int_equal(mkdir(node.data, 0700), 0);
    may_mount = own_mounts() && mount("tmpfs", node.data, "tmpfs", 0, "size=4m,mode=0700") == 0;
    if (!may_mount) {
        fprintf(stderr, "skipped: no mounts are allowed here (%s)\n", strerror(errno));
        return 0;
    }
    node_start(&node, FLAGS("--scan-every", "100ms", "--grace", "200ms", "--drain", "500ms"));
    (void)define(&node, "one",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": "
                 "\"ag\", \"action\": \"x\", \"undo\": \"none\"}]");
    (void)define(
        &node, "list",
        "\"steps\": [{\"name\": \"pack\", \"for_each\": \"${ .input }\", \"max_items\": 100, "
        "\"agent\": \"pa\", \"action\": \"x\", \"undo\": \"none\"}]");
    (void)define(&node, "held",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": "
                 "\"he\", \"action\": \"x\", \"undo\": \"none\"}]");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    if (may_mount) {
        node_stop(&node);
        (void)umount(node.data);
    }
    node_fini(&node);
    return 0;
}

static void fill_disk(void)
{
    static char block[65536];
    int fd = open(filler, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    for (size_t size = sizeof block; size > 0;)
        if (write(fd, block, size) <= 0)
            size /= 2;
    (void)close(fd);
}

static off_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static void free_disk(void)
{
    assert_int_equal(unlink(filler), 0);
}

/* Submits until nothing at all fits any more, and the server knows; how many were accepted. *r is
 * the last refusal. */
static int submit_until_full(struct reply *r, const char *prefix)
{
    REPLY ready = {0};
    int accepted = 0;
    size_t len = 2000;

    for (int64_t until = steady_ms() + PATIENCE_MS; steady_ms() < until;) {
        post(&node, r, "/v1/tasks",
             "{\"workflow\": \"one\", \"id\": \"%s-%d\", \"input\": \"%0*d\"}", prefix, accepted,
             (int)len, 7);
        accepted += r->status == 201;
        if (r->status == 201)
            continue;
        if (len > 1) { /* what is left may do for a smaller one */
            len /= 10;
            continue;
        }
        /* or for the server's own look whether it works again; and a checkpoint, which makes room
         * in the WAL as long as the database need not grow, must have had its chance */
        sleep_ms(1500);
        get(&node, &ready, "/readyz");
        post(&node, r, "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"%s-%d\"}", prefix, accepted);
        accepted += r->status == 201;
        if (ready.status == 503 && r->status != 201)
            return accepted;
    }
    CHECK(false, "it is never full");
    return 0;
}

static int64_t tasks_like(const char *pattern)
{
    char query[100];

    (void)snprintf(query, sizeof query, "SELECT count(*) FROM task WHERE id LIKE '%s'", pattern);
    return sql_int(&node, query);
}

static void a_full_disk_is_told_and_gone_when_it_is_gone(void **state)
{
    REPLY r = {0};
    (void)state;

    if (!may_mount)
        skip();
    submit(&node, "held", "held-1");
    fetch(&node, &r, "he", "h");
    char *token = token_in(&r, 0);
    hand_in(&node, "he", "h", token, "\"error\": {\"code\": \"c\", \"retryable\": false}",
            "accepted");
    free(token);
    submit(&node, "one", "before");
    fetch(&node, &r, "ag", "i");
    token = token_in(&r, 0);
    fill_disk();

    int accepted = submit_until_full(&r, "full");
    expect_problem(&r, 503, "full");
    get(&node, &r, "/readyz");
    expect_problem(&r, 503, "store");
    CHECK(strstr(text_at(&r, "detail"), "full"), "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/healthz");
    EXPECT(&r, 200);
    task_of(&node, &r, "before"); /* reading goes on */
    EXPECT_TEXT(&r, "state", "processing");
    get(&node, &r, "/v1/tasks?limit=500");
    EXPECT(&r, 200);

    send_as(&node, &r, "POST", "/v1/agents/ag/work", "application/json",
            SLICE("{\"instance\": \"i\", \"max\": 1, \"wait\": \"10ms\"}"));
    CHECK(r.status == 200 || r.status == 503, "%d", r.status); /* but without work */
    CHECK(!at(&r, "requests.0"), "%.*s", SLICE_ARG(r.body));
    CLEANUP(buf_fini) struct buf b = {0};
    buf_fmt(&b,
            "{\"instance\": \"i\", \"max\": 0, \"results\": [{\"token\": \"%s\", \"output\": "
            "\"%04000d\"}]}",
            token, 7);
    send_as(&node, &r, "POST", "/v1/agents/ag/work", "application/json", buf_view(&b));
    CHECK(r.status == 503, "%d %.*s", r.status, SLICE_ARG(r.body));
    expect_problem(&r, 503, "full");
    post(&node, &r, "/v1/tasks/held-1/retry", "{\"reason\": \"try\"}");
    bool retried = r.status == 200; /* so little may still find room in the log */
    if (!retried)
        expect_problem(&r, 503, "full");
    assert_int_equal(sql_int(&node,
                             "SELECT count(*) FROM task WHERE id = 'held-1' AND state = 'error'"),
                     !retried); /* what was answered is what is stored */
    CHECK(tasks_like("full-%") == accepted, "%d accepted", accepted);

    free_disk();
    wait_until_ready(&node); /* by itself, nobody asking for anything that writes */
    CHECK(tasks_like("full-%") == accepted, "%d accepted", accepted);
    send_as(&node, &r, "POST", "/v1/agents/ag/work", "application/json", buf_view(&b));
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    wait_for_state(&node, "before", "processed");
    if (!retried) {
        post(&node, &r, "/v1/tasks/held-1/retry", "{\"reason\": \"try\"}");
        EXPECT(&r, 200);
    }
    for (int i = 0; i < accepted; i++)
        serve_step(&node, "ag", "i", "1");
    assert_int_equal(
        sql_int(&node, "SELECT count(*) FROM task WHERE workflow = 'one' AND state <> 'processed'"),
        0);
    free(token);
}

/* It gives up while there is still room for those who write. */
static void a_backup_does_not_take_the_last_of_the_disk(void **state)
{
    REPLY r = {0};
    char part[120];
    char id[32];
    (void)state;

    if (!may_mount)
        skip();
    for (int i = 0; i < 10; i++) {
        (void)snprintf(id, sizeof id, "long-%d", i);
        post(&node, &r, "/v1/tasks",
             "{\"workflow\": \"held\", \"id\": \"%s\", \"input\": \"%0*d\"}", id, 50000, 7);
        EXPECT(&r, 201);
    }
    fill_disk();
    CHECK(truncate(filler, size_of(filler) - 500 * 1024) == 0, "%s", strerror(errno));
    send_as(&node, &r, "POST", "/v1/backup", NULL, SLICE(""));
    expect_problem(&r, 503, "full");
    CHECK(strstr(text_at(&r, "detail"), "backup"), "%.*s", SLICE_ARG(r.body));
    (void)snprintf(part, sizeof part, "%s/backup.part", node.data);
    CHECK(access(part, F_OK) != 0, "nothing of it is left");
    submit(&node, "one", "beside");
    get(&node, &r, "/readyz");
    EXPECT(&r, 200);
    free_disk();
    send_as(&node, &r, "POST", "/v1/backup", NULL, SLICE(""));
    EXPECT(&r, 200);
}

/* Results of so many items, each with an output of that length. */
static void write_results(struct buf *b, const struct reply *asked, int count, int len)
{
    char path[40];

    buf_str(b, "{\"instance\": \"i\", \"max\": 0, \"results\": [");
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "requests.%d.token", i);
        buf_fmt(b, "%s{\"token\": \"%s\", \"output\": \"%0*d\"}", i ? ", " : "",
                text_at(asked, path), len, 7);
    }
    buf_str(b, "]}");
}

/* Nothing of them is stored by half, and the same results are accepted when there is room. */
static void items_come_to_rest_when_there_is_room(void **state)
{
    enum { ITEMS = 10 };
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    if (!may_mount)
        skip();
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"list\", \"id\": \"items\", \"input\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}");
    EXPECT(&r, 201);
    post(&node, &r, "/v1/agents/pa/work", "{\"instance\": \"i\", \"max\": 10, \"wait\": \"10s\"}");
    EXPECT(&r, 200);
    CHECK(at(&r, "requests.9"), "%.*s", SLICE_ARG(r.body));
    write_results(&b, &r, ITEMS, 3000);
    fill_disk();
    (void)submit_until_full(&r, "beside");
    send_as(&node, &r, "POST", "/v1/agents/pa/work", "application/json", buf_view(&b));
    expect_problem(&r, 503, "full");
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM item"), 0);
    assert_int_equal(sql_int(&node, "SELECT items_begun - items_completed FROM task_step "
                                    "WHERE task = 'items'"),
                     ITEMS);
    free_disk();
    wait_until_ready(&node);
    send_as(&node, &r, "POST", "/v1/agents/pa/work", "application/json", buf_view(&b));
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "outcomes.9.status", "accepted");
    wait_for_state(&node, "items", "processed");
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM item WHERE state = 'completed'"), ITEMS);
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task_item WHERE length(output) = 3002"),
                     ITEMS);
}

static void lines_of_many_say_for_themselves_that_the_disk_is_full(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    if (!may_mount)
        skip();
    fill_disk();
    (void)submit_until_full(&r, "lines");
    buf_str(&b, "nonsense\n");
    buf_fmt(&b, "{\"workflow\": \"one\", \"id\": \"line-2\", \"input\": \"%04000d\"}\n", 7);
    send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&b));
    EXPECT(&r, 200);
    CHECK(memmem(r.body.ptr, r.body.len, "\"line\":1,\"status\":400", 21), "%.*s",
          SLICE_ARG(r.body));
    CHECK(memmem(r.body.ptr, r.body.len, "\"line\":2,\"status\":503,\"id\":\"line-2\"", 35), "%.*s",
          SLICE_ARG(r.body));
    put(&node, &r, "/v1/workflows/bigger",
        "{\"intact\": 1, \"workflow\": \"bigger\", \"steps\": [{\"name\": \"a\", \"agent\": "
        "\"ag\", "
        "\"action\": \"x\", \"input\": \"%04000d\", \"undo\": \"none\"}]}",
        7);
    expect_problem(&r, 503, "full");
    get(&node, &r, "/v1/workflows/bigger");
    EXPECT(&r, 404);
    free_disk();
    wait_until_ready(&node);
    assert_int_equal(tasks_like("line-2"), 0);
    send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&b));
    CHECK(memmem(r.body.ptr, r.body.len, "\"line\":2,\"status\":201", 21), "%.*s",
          SLICE_ARG(r.body));
}

static void what_was_accepted_before_the_disk_was_full_outlives_a_kill(void **state)
{
    REPLY r = {0};
    (void)state;

    if (!may_mount)
        skip();
    fill_disk();
    int accepted = submit_until_full(&r, "killed");
    node_kill(&node);
    free_disk();
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "500ms"));
    assert_int_equal(tasks_like("killed-%"), accepted);
}

static void a_disk_that_may_not_be_written_is_refused_until_it_may(void **state)
{
    CLEANUP(buf_fini) struct buf err = {0};
    REPLY r = {0};
    (void)state;

    if (!may_mount)
        skip();
    submit(&node, "one", "read-only");
    node_stop(&node);
    assert_int_equal(mount(NULL, node.data, NULL, MS_REMOUNT | MS_RDONLY, NULL), 0);
    int status = serve_briefly(FLAGS("--data", node.data, "--listen", "127.0.0.1:0"), &err);
    assert_int_equal(mount(NULL, node.data, NULL, MS_REMOUNT, NULL), 0);
    assert_int_equal(status, 1);
    CHECK(strstr(err.ptr, "ead-only") && strstr(err.ptr, node.data), "%s", err.ptr);
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "500ms"));
    task_of(&node, &r, "read-only");
    EXPECT_TEXT(&r, "state", "pending");
}

/* ---- applications ---- */

static bool put_in(sqlite3 *db, int number)
{
    char text[3000];

    (void)snprintf(text, sizeof text,
                   "INSERT INTO submit (workflow, id, input) VALUES ('one', 'sql-%d', "
                   "'\"%01900d\"')",
                   number, 7);
    int rc = sqlite3_exec(db, text, NULL, NULL, NULL);
    CHECK(rc == SQLITE_OK || rc == SQLITE_FULL || rc == SQLITE_IOERR || rc == SQLITE_BUSY, "%s",
          sqlite3_errmsg(db));
    return rc == SQLITE_OK;
}

/* An application puts submissions into the file until the disk is full. What it was told is there
 * becomes a task, be it later; what it was told is not never does. */
static void what_applications_put_in_is_kept_or_refused_at_once(void **state)
{
    enum { MANY = 3000 };
    static bool taken[MANY];
    char path[120];
    sqlite3 *db = NULL;
    int good = 0;
    int bad = 0;
    (void)state;

    if (!may_mount)
        skip();
    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, "open");
    (void)sqlite3_busy_timeout(db, PATIENCE_MS);
    fill_disk();
    for (int i = 0; i < MANY && bad < 20; i++) {
        taken[i] = put_in(db, i);
        good += taken[i];
        bad += !taken[i];
    }
    CHECK(bad >= 20, "the disk is full at last, after %d", good);
    free_disk();
    wait_until_ready(&node);
    for (int64_t until = steady_ms() + PATIENCE_MS; tasks_like("sql-%") < good; sleep_ms(20))
        CHECK(steady_ms() < until, "%d of %d", (int)tasks_like("sql-%"), good);
    CHECK(sql_int(&node, "SELECT count(*) FROM submission") == 0, "none is left");
    for (int i = 0; i < MANY; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "sql-%d", i);
        CHECK(tasks_like(id) == taken[i], "%s: %d", id, taken[i]);
    }
    CHECK(sqlite3_close(db) == SQLITE_OK, "close");
    submit(&node, "one", "after");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_disk_is_told_and_gone_when_it_is_gone),
        cmocka_unit_test(a_backup_does_not_take_the_last_of_the_disk),
        cmocka_unit_test(items_come_to_rest_when_there_is_room),
        cmocka_unit_test(lines_of_many_say_for_themselves_that_the_disk_is_full),
        cmocka_unit_test(what_was_accepted_before_the_disk_was_full_outlives_a_kill),
        cmocka_unit_test(a_disk_that_may_not_be_written_is_refused_until_it_may),
        cmocka_unit_test(what_applications_put_in_is_kept_or_refused_at_once),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
