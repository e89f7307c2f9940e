/*
 * Retention as configured: rules, an archive written before any deletion, ids that stay reserved, a
 * file that shrinks; across kills and full disks.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/meets.h"
#include "kit.h"

static struct node node;
static const char *program;
static char config[100], archive[100];

static int start(void **state)
{
    (void)state;
    node_init(&node);
    (void)snprintf(config, sizeof config, "%s/server.yaml", node.home);
    (void)snprintf(archive, sizeof archive, "%s/archive", node.home);
    return 0;
}

static void configure(const char *text)
{
    int fd = open(config, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0, "%s", config);
    CHECK(dprintf(fd, "intact_server: 1\n%s", text) > 0 && close(fd) == 0, "%s", config);
}

/* With an archive below the home. */
static void configure_archived(const char *rules)
{
    char text[1000];

    (void)snprintf(text, sizeof text, "archive: {folder: %s, max_size: 64KiB}\n%s", archive, rules);
    configure(text);
}

static void start_plain(void)
{
    node_start(&node, FLAGS("--log", "info"));
    define(&node, "order",
           "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
           "\"undo\": \"none\"}]");
    define(&node, "other",
           "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
           "\"undo\": \"none\"}]");
}

static void start_configured(void)
{
    node_start(&node, FLAGS("--log", "info", "--config", config));
}

static void process(const char *workflow, const char *id)
{
    submit(&node, workflow, id);
    serve_step(&node, "ag", "i", "{\"paid\": 1}");
    wait_for_state(&node, id, "processed");
}

static void execute(const char *text)
{
    char path[100];
    char *why = NULL;
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, "%s", path);
    CHECK(sqlite3_exec(db, text, NULL, NULL, &why) == SQLITE_OK, "%s", why);
    CHECK(sqlite3_close(db) == SQLITE_OK, "close");
}

/* While the server stands still: all that is stored becomes forty days older. */
static void let_time_pass(void)
{
    execute("UPDATE task SET submitted_at = submitted_at - 3456000000, "
            "ended_at = ended_at - 3456000000");
}

/* While the server stands still: so many tasks more like that one, "ID-1" to "ID-N". */
static void multiply(const char *id, int count)
{
    char text[600];

    (void)snprintf(text, sizeof text,
                   "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
                   "INSERT INTO task (id, workflow, version, submitted_at, revision, state, "
                   "direction, priority, rank, failure_count, started_at, ended_at, doc) "
                   "SELECT id || '-' || i, workflow, version, submitted_at, revision, state, "
                   "direction, priority, rank, failure_count, started_at, ended_at, doc "
                   "FROM task, n WHERE id = '%s' ORDER BY i",
                   count, id);
    execute(text);
}

/* While the server stands still: those whose ids begin so are children of that task. */
static void make_children(const char *prefix, const char *parent)
{
    char text[400];

    (void)snprintf(text, sizeof text,
                   "UPDATE task SET parent = '%s', root = '%s', doc = json_set(doc, '$.parent', "
                   "json('{\"step\":\"a\",\"number\":1}')) WHERE id LIKE '%s%%'",
                   parent, parent, prefix);
    execute(text);
}

static int status_of(const char *id)
{
    REPLY r = {0};

    get(&node, &r, "/v1/tasks/%s", id);
    return r.status;
}

static void wait_until_gone(const char *id)
{
    for (int64_t until = steady_ms() + PATIENCE_MS; status_of(id) != 410; sleep_ms(20))
        CHECK(steady_ms() < until, "%s stays for ever", id);
}

static void wait_for_log(const char *text)
{
    for (int64_t until = steady_ms() + PATIENCE_MS; !node_log_has(&node, text); sleep_ms(20))
        CHECK(steady_ms() < until, "\"%s\" is never told", text);
}

/* Standard output of the program with these words, and its exit status. */
static int run(struct buf *ret, const char *words)
{
    char command[500];
    char piece[4096];
    size_t n = 0;

    (void)snprintf(command, sizeof command, "%s %s", program, words);
    FILE *f = popen(command, "re");
    CHECK(f, "%s", command);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        buf_add(ret, piece, n);
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int archive_has(const char *id, struct buf *ret)
{
    char words[300];

    (void)snprintf(words, sizeof words, "archive get %s --folder %s 2>/dev/null", id, archive);
    return run(ret, words);
}

/* ---- rules ---- */

static void each_rule_lets_go_what_is_its_own(void **state)
{
    (void)state;

    start_plain();
    process("order", "order-old");
    process("order", "child"); /* goes with another task; not one of the newest four */
    process("other", "other-old");
    node_stop(&node);
    multiply("order-old", 9);
    multiply("child", 9);
    make_children("child", "other-old");
    let_time_pass();
    configure("retention:\n"
              "  - {workflow: order, states: [processed], keep: 30d, keep_last: 4}\n"
              "  - {workflow: other, keep: forever}\n"
              "  - {keep: 1d}\n");
    start_configured();
    submit(&node, "other", "newest");
    wait_until_gone("order-old-5");
    wait_for_log("event=tasks_deleted ");
    CHECK(sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'order-old%'") == 4,
          "the newest");
    CHECK(sql_int(&node, "SELECT count(*) FROM task WHERE parent = 'other-old'") == 10, "children");
    CHECK(status_of("order-old-9") == 200 && status_of("order-old-6") == 200, "of them");
    wait_for_log("event=tasks_deleted tasks=6 by=server archived=0");
    CHECK(status_of("other-old") == 200, "for ever");
    node_stop(&node);
}

static void by_hand_one_workflow_and_its_newest(void **state)
{
    CLEANUP(buf_fini) struct buf out = {0};
    char words[300];
    REPLY r = {0};
    (void)state;

    start_plain();
    process("order", "o");
    process("other", "p");
    node_stop(&node);
    multiply("o", 9);
    multiply("p", 3);
    let_time_pass();
    node_start(&node, FLAGS("--log", "info"));
    submit(&node, "other", "newest");
    (void)snprintf(words, sizeof words,
                   "retire --workflow order --keep-last 7 --dry-run --server "
                   "http://127.0.0.1:%d --token-file %s/admin-token",
                   node.port, node.data);
    CHECK(run(&out, words) == 0, "%s", out.ptr);
    CHECK(strstr(out.ptr, "3 tasks that ended") && strstr(out.ptr, "3 of order, processed"), "%s",
          out.ptr);
    post(&node, &r, "/v1/retire", "{\"workflow\": \"order\", \"keep_last\": 7}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "tasks", 3);
    EXPECT_TEXT(&r, "counts.0.workflow", "order");
    EXPECT_TEXT(&r, "counts.0.state", "processed");
    EXPECT_INT(&r, "counts.0.tasks", 3);
    CHECK(status_of("o-2") == 410 && status_of("o-3") == 200, "the oldest");
    post(&node, &r, "/v1/retire", "{\"older_than\": \"30d\"}");
    EXPECT_INT(&r, "tasks", 11);
    post(&node, &r, "/v1/retire", "{\"older_than\": \"30d\", \"archive\": true}");
    expect_problem(&r, 422, "bad-retire");
    post(&node, &r, "/v1/retire", "{\"keep_last\": 3}");
    expect_problem(&r, 422, "bad-retire");
    node_stop(&node);
}

/* ---- reserved ids ---- */

/* Whatever is asked of it, it ended and was deleted: 410, and 404 once nothing is known of it. */
static void expect_missing(const char *id, int status, const char *type)
{
    static const char *const verbs[] = {"retry",          "skip",   "undo",    "cancel",
                                        "pause",          "resume", "correct", "supply",
                                        "resolve",        "close",  "reopen",  "signals/go",
                                        "signals/go/drop"};
    static const char *const members[] = {
        [1] = ", \"step\": \"a\"",
        [6] = ", \"input\": 1",
        [7] = ", \"step\": \"a\", \"output\": 1",
        [8] = ", \"step\": \"a\", \"effect\": \"none\"",
        [12] = NULL,
    };
    char path[80];
    REPLY r = {0};

    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        (void)snprintf(path, sizeof path, "/v1/tasks/%s/%s", id, verbs[i]);
        post(&node, &r, path, "{\"reason\": \"r\"%s}", members[i] ? members[i] : "");
        expect_problem(&r, status, type);
    }
    get(&node, &r, "/v1/tasks/%s/why", id);
    expect_problem(&r, status, type);
    get(&node, &r, "/v1/tasks/%s/events", id);
    expect_problem(&r, status, type);
    get(&node, &r, "/v1/tasks/%s/signals", id);
    expect_problem(&r, status, type);
    get(&node, &r, "/v1/tasks/%s/items?step=a", id);
    expect_problem(&r, status, type);
    (void)snprintf(path, sizeof path, "/v1/approvals/%s/a/approve", id);
    post(&node, &r, path, "{}"); /* it tells nothing of a task to those whom it does not ask */
    expect_problem(&r, 404, "no-such-approval");
}

static void the_id_of_a_deleted_task_is_not_free(void **state)
{
    REPLY r = {0};
    (void)state;

    start_plain();
    process("order", "x");
    node_stop(&node);
    let_time_pass();
    node_start(&node, FLAGS("--log", "info"));
    submit(&node, "other", "newest");
    post(&node, &r, "/v1/retire", "{\"older_than\": \"30d\"}");
    EXPECT_INT(&r, "tasks", 1);
    get(&node, &r, "/v1/tasks/x");
    EXPECT(&r, 410);
    EXPECT_TEXT(&r, "type", "urn:intact:problem:task-deleted");
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_TEXT(&r, "workflow", "order");
    CHECK(time_at(&r, "ended_at") < now_ms() - INT64_C(39) * 86400000, "when it ended");
    CHECK(time_at(&r, "reserved_until") > now_ms() + INT64_C(89) * 86400000, "until when");
    expect_missing("x", 410, "task-deleted");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"order\", \"id\": \"x\"}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "deleted", "true");
    EXPECT_TEXT(&r, "state", "processed");
    post(&node, &r, "/v1/tasks?wait=1s", "{\"workflow\": \"order\", \"id\": \"x\"}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "deleted", "true");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"order\", \"id\": \"x\", \"input\": 7}");
    expect_problem(&r, 409, "task-exists");
    send_as(&node, &r, "POST", "/v1/tasks?wait=1s", "application/x-ndjson",
            SLICE("{\"workflow\": \"order\", \"id\": \"x\"}\n"));
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "deleted", "true");
    EXPECT_INT(&r, "status", 200);
    EXPECT_TEXT(&r, "state", "processed");
    CHECK(sql_int(&node, "SELECT count(*) FROM task WHERE id = 'x'") == 0, "nothing runs again");
    node_stop(&node);
    execute("UPDATE reserved SET until = 1");
    node_start(&node, FLAGS("--log", "info"));
    CHECK(status_of("x") == 404, "that is over");
    expect_missing("x", 404, "no-such-task");
    submit(&node, "order", "x");
    CHECK(status_of("x") == 200, "it is a new task");
    node_stop(&node);
}

/* Another token is told as little of it as of one that is there, whatever it guesses. */
static void a_deleted_task_is_still_its_owners(void **state)
{
    char shop_token[64];
    char other_token[64];
    REPLY r = {0};
    (void)state;

    start_plain();
    make_token(&node, "shop", "\"submit\"", NULL, shop_token);
    make_token(&node, "other", "\"submit\"", NULL, other_token);
    struct node shop = as(&node, shop_token);
    process("order", "nobodys");
    submit(&shop, "order", "x");
    serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, "x", "processed");
    node_stop(&node);
    let_time_pass();
    execute("UPDATE task SET doc = json_remove(doc, '$.owner') WHERE id = 'nobodys'");
    node_start(&node, FLAGS("--log", "info"));
    shop = as(&node, shop_token);
    const struct node other = as(&node, other_token);
    submit(&node, "other", "newest");
    post(&node, &r, "/v1/retire", "{\"older_than\": \"30d\"}");
    EXPECT_INT(&r, "tasks", 2);

    post(&shop, &r, "/v1/tasks", "{\"workflow\": \"order\", \"id\": \"x\"}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "deleted", "true");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"order\", \"id\": \"x\"}");
    EXPECT(&r, 200); /* it may read all */
    for (int guess = 0; guess < 2; guess++) {
        post(&other, &r, "/v1/tasks", "{\"workflow\": \"order\", \"id\": \"x\", \"input\": %s}",
             guess ? "1" : "null");
        expect_problem(&r, 409, "task-exists");
        EXPECT_TEXT(&r, "detail", "task x exists, and was submitted with another token");
    }
    post(&other, &r, "/v1/tasks", "{\"workflow\": \"order\", \"id\": \"nobodys\"}");
    EXPECT(&r, 200); /* whoever repeats it gets its answer */
    node_stop(&node);
}

static int submitted(const char *id, const char *to)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"other\", \"id\": \"%s\", \"input\": {\"to\": \"%s\"}}", id, to);
    return r.status;
}

/* The same again is the same, and another is another: of a task that is there, and of one that was
 * deleted; also where a version before, which knew content by its hash alone, wrote it. */
static void what_was_submitted_is_known_after_the_task_and_the_version(void **state)
{
    REPLY r = {0};
    (void)state;

    start_plain();
    CHECK(submitted("gone", MEETS_ONE) == 201 && submitted("there", MEETS_ONE) == 201, "new");
    post(&node, &r, "/v1/tasks/gone/undo", "{\"reason\": \"it is to end\"}");
    wait_for_state(&node, "gone", "compensated");
    node_stop(&node);
    let_time_pass();
    node_start(&node, FLAGS("--log", "info"));
    submit(&node, "other", "newest");
    post(&node, &r, "/v1/retire", "{\"older_than\": \"30d\"}");
    EXPECT_INT(&r, "tasks", 1);
    for (int before = 0; before <= 1; before++) {
        int meets = before ? 200 : 409; /* what is not known cannot be told apart */
        CHECK(submitted("there", MEETS_ONE) == 200, "the same");
        CHECK(submitted("gone", MEETS_ONE) == 200, "the same");
        CHECK(submitted("there", MEETS_OTHER) == meets, "of the same hash");
        CHECK(submitted("gone", MEETS_OTHER) == meets, "of the same hash");
        CHECK(submitted("there", "x") == 409 && submitted("gone", "x") == 409, "another");
        node_stop(&node);
        execute("UPDATE reserved SET sha256 = NULL; "
                "UPDATE task SET doc = json_remove(doc, '$.sha256')");
        node_start(&node, FLAGS("--log", "info"));
    }
    node_stop(&node);
}

static void ids_may_be_free_at_once(void **state)
{
    REPLY r = {0};
    (void)state;

    configure("reserve: 0\n");
    start_plain();
    process("order", "x");
    node_stop(&node);
    let_time_pass();
    start_configured();
    submit(&node, "other", "newest");
    post(&node, &r, "/v1/retire", "{\"older_than\": \"30d\"}");
    EXPECT_INT(&r, "tasks", 1);
    CHECK(status_of("x") == 404, "nothing is known of it");
    submit(&node, "order", "x");
    CHECK(status_of("x") == 200, "it is a new task");
    node_stop(&node);
}

/* ---- the archive ---- */

static void what_is_archived_is_the_whole_record(void **state)
{
    CLEANUP(buf_fini) struct buf line = {0};
    CLEANUP(buf_fini) struct buf listed = {0};
    char words[300];
    REPLY r = {0};
    REPLY before = {0};
    (void)state;

    start_plain();
    process("order", "x");
    node_stop(&node);
    let_time_pass();
    configure_archived("retention: [{keep: 30d}]\n");
    node_start(&node, FLAGS("--log", "info"));
    submit(&node, "other", "newest");
    get(&node, &before, "/v1/tasks/x");
    EXPECT(&before, 200);
    node_stop(&node);
    start_configured();
    wait_until_gone("x");
    CHECK(archive_has("x", &line) == 0, "it is in the archive");
    CHECK(line.len == before.body.len + 1
              && memcmp(line.ptr, before.body.ptr, before.body.len) == 0,
          "%.*s\n%s", SLICE_ARG(before.body), line.ptr);
    CHECK(archive_has("newest", &line) == 1, "and nothing else");
    (void)snprintf(words, sizeof words, "archive list --folder %s", archive);
    CHECK(run(&listed, words) == 0 && strstr(listed.ptr, ".ndjson.zst"), "%s", listed.ptr);
    wait_for_log("event=tasks_deleted tasks=1 by=server archived=1");
    get(&node, &r, "/metrics");
    CHECK(memmem(r.body.ptr, r.body.len, "\nintact_tasks_archived_total 1\n", 31), "counted");
    node_stop(&node);
}

/* Its children are of another workflow, which no rule is for, and go in several parts. */
static void a_family_goes_with_its_root(void **state)
{
    CLEANUP(buf_fini) struct buf line = {0};
    (void)state;

    start_plain();
    process("order", "r");
    process("other", "c");
    node_stop(&node);
    multiply("c", 1200);
    let_time_pass();
    make_children("c-", "r");
    configure_archived("retention: [{workflow: order, keep: 30d}]\n");
    start_configured();
    submit(&node, "other", "newest");
    wait_for_log("event=tasks_deleted tasks=1201 by=server archived=1201");
    CHECK(status_of("r") == 410 && status_of("c-7") == 404, "children reserve no ids");
    CHECK(status_of("c") == 200, "it is nobody's child");
    CHECK(archive_has("r", &line) == 0 && archive_has("c-1200", &line) == 0, "all are kept there");
    node_stop(&node);
}

/* What others sent is stored as it was sent, also in several lines; and the signals are there. */
static void a_record_is_archived_in_one_line(void **state)
{
    CLEANUP(buf_fini) struct buf line = {0};
    REPLY r = {0};
    (void)state;

    start_plain();
    define(&node, "waits",
           "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
           "\"undo\": \"none\"}, {\"name\": \"b\", \"signal\": {\"name\": \"go\"}}]");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"waits\",\n\"id\": \"lines\", \"input\": {\n\"n\":\r\n [1,\n2]}}");
    EXPECT(&r, 201);
    serve_step(&node, "ag", "i", "{\n\"paid\":\n 1}");
    for (int i = 0; i < 2; i++)
        send_as(&node, &r, "POST", "/v1/tasks/lines/signals/go",
                "application/json\r\nIdempotency-Key: k", SLICE("{\n\"sum\": 7\n}"));
    EXPECT(&r, 200);
    wait_for_state(&node, "lines", "processed");
    node_stop(&node);
    let_time_pass();
    node_start(&node, FLAGS("--log", "info"));
    submit(&node, "other", "newer"); /* the newest task stays */
    node_stop(&node);
    configure_archived("retention: [{keep: 30d}]\n");
    start_configured();
    wait_until_gone("lines");
    CHECK(archive_has("lines", &line) == 0, "it is in the archive");
    CHECK(memchr(line.ptr, '\n', line.len) == line.ptr + line.len - 1, "one line: %s", line.ptr);
    CHECK(strstr(line.ptr, "\"state\":\"taken\",\"step\":\"b\",\"data\":{ \"sum\": 7 }}]"), "%s",
          line.ptr);
    node_stop(&node);
}

/* With its steps that left the document; and these go with it. */
static void a_long_task_is_archived_as_a_whole(void **state)
{
    enum { STEPS = 20 };
    CLEANUP(buf_fini) struct buf line = {0};
    char output[400];
    REPLY before = {0};
    (void)state;

    node_start(&node, FLAGS("--log", "info"));
    define_long(&node, "long", STEPS, "\"undo\": \"none\"", "");
    submit(&node, "long", "x");
    (void)snprintf(output, sizeof output, "\"%0390d\"", 7);
    for (int i = 0; i < STEPS; i++)
        serve_step(&node, "ag", "i", output);
    wait_for_state(&node, "x", "processed");
    CHECK(sql_int(&node, "SELECT count(*) FROM payload") > 2, "it has groups");
    get(&node, &before, "/v1/tasks/x");
    node_stop(&node);
    execute("UPDATE task SET ended_at = ended_at - 3456000000");
    configure_archived("retention: [{keep: 30d}]\n");
    start_configured();
    define_long(&node, "other", 1, "\"undo\": \"none\"", "");
    submit(&node, "other", "newest");
    wait_until_gone("x");
    CHECK(archive_has("x", &line) == 0, "it is in the archive");
    const char *steps = strstr(line.ptr, "\"steps\":");
    const char *were = strstr(before.body.ptr, "\"steps\":");
    CHECK(steps && were, "%s", line.ptr);
    CHECK(strcspn(steps, "\n") == strlen(were) && strncmp(steps, were, strlen(were)) == 0, "%s\n%s",
          steps, were);
    CHECK(sql_int(&node, "SELECT count(*) FROM payload") == 0, "the groups went with it");
    node_stop(&node);
}

/* Killed again and again while it writes and deletes: what is not in the store is in the archive.
 */
static void a_kill_loses_nothing(void **state)
{
    enum { TASKS = 1500 };
    static bool kept[TASKS + 1];
    CLEANUP(buf_fini) struct buf all = {0};
    char words[300];
    char id[32];
    int left = TASKS;
    (void)state;

    start_plain();
    process("order", "o");
    node_stop(&node);
    multiply("o", TASKS);
    let_time_pass();
    configure_archived("retention: [{keep: 30d}]\n");
    for (int i = 0; left > 1; i++) {
        start_configured();
        if (i == 0)
            submit(&node, "other", "newest");
        int64_t until = steady_ms() + PATIENCE_MS;
        int before = left;
        int some = 1 + i * 37 % 400;
        while ((left = (int)sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'o%'")) > 0
               && before - left < some && steady_ms() < until)
            sleep_ms(2);
        node_kill(&node);
        CHECK(left < before || left == 0, "nothing is deleted");
    }
    start_configured();
    wait_until_gone("o-1");
    wait_until_gone("o-1500");
    (void)snprintf(words, sizeof words, "archive cat --folder %s 2>/dev/null", archive);
    CHECK(run(&all, words) == 0, "all files can be read");
    for (const char *p = all.ptr; (p = strstr(p, "{\"id\":\"o-")); p++) {
        int n = atoi(p + 9);
        CHECK(n >= 1 && n <= TASKS, "%d", n);
        kept[n] = true;
    }
    for (int i = 1; i <= TASKS; i++) {
        (void)snprintf(id, sizeof id, "o-%d", i);
        CHECK(kept[i], "%s is lost", id);
    }
    node_stop(&node);
}

static void a_full_archive_keeps_all_tasks(void **state)
{
    static char block[4096];
    char filler[120];
    REPLY r = {0};
    (void)state;

    CHECK(mkdir(archive, 0700) == 0, "%s", archive);
    if (!own_mounts() || mount("tmpfs", archive, "tmpfs", 0, "size=256k,mode=0700") != 0) {
        fprintf(stderr, "skipped: no mounts are allowed here (%s)\n", strerror(errno));
        skip();
    }
    start_plain();
    process("order", "o");
    node_stop(&node);
    multiply("o", 200);
    let_time_pass();
    (void)snprintf(filler, sizeof filler, "%s/filler", archive);
    int fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0, "%s", filler);
    while (write(fd, block, sizeof block) > 0)
        ;
    (void)close(fd);
    configure_archived("retention: [{keep: 1m}]\n");
    start_configured();
    submit(&node, "other", "newest");
    wait_for_log("event=deleting_failed");
    CHECK(node_log_has(&node, "free some space on its disk"), "what to do");
    get(&node, &r, "/metrics");
    CHECK(memmem(r.body.ptr, r.body.len, "\nintact_retention_trouble 1\n", 28), "%.*s",
          SLICE_ARG(r.body));
    CHECK(sql_int(&node, "SELECT count(*) FROM task") == 202, "all are there");
    post(&node, &r, "/v1/retire", "{\"older_than\": \"1d\"}");
    expect_problem(&r, 503, "full");
    CHECK(sql_int(&node, "SELECT count(*) FROM task") == 202, "all are there");
    int64_t until = steady_ms() + PATIENCE_MS;
    do {
        get(&node, &r, "/v1/alerts?state=open");
        CHECK(steady_ms() < until, "nobody is told: %.*s", SLICE_ARG(r.body));
    } while (!at(&r, "alerts.0"));
    EXPECT_TEXT(&r, "alerts.0.condition", "retention_trouble");
    CHECK(unlink(filler) == 0, "room again");
    wait_until_gone("o-200");
    wait_for_log("event=deleting_works_again");
    CLEANUP(buf_fini) struct buf line = {0};
    CHECK(archive_has("o-200", &line) == 0 && archive_has("o", &line) == 0, "they are archived");
    node_stop(&node);
    CHECK(umount(archive) == 0, "%s", strerror(errno));
}

/* ---- the file ---- */

static off_t size_of_file(void)
{
    char path[120];
    struct stat st;

    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    CHECK(stat(path, &st) == 0, "%s", path);
    return st.st_size;
}

static void the_file_becomes_smaller_by_itself(void **state)
{
    (void)state;

    start_plain();
    process("order", "o");
    node_stop(&node);
    multiply("o", 30000);
    let_time_pass();
    off_t before = size_of_file();
    configure("retention: [{keep: 30d}]\nreserve: 0\n");
    start_configured();
    submit(&node, "other", "newest");
    for (int64_t until = steady_ms() + PATIENCE_MS; size_of_file() > before / 2; sleep_ms(50))
        CHECK(steady_ms() < until, "%d of %d bytes", (int)size_of_file(), (int)before);
    CHECK(status_of("newest") == 200, "what stays is there");
    node_stop(&node);
}

static int compact(int kill_after_ms)
{
    pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        (void)execl(program, program, "compact", "--data", node.data, (char *)NULL);
        _exit(127);
    }
    if (kill_after_ms >= 0) {
        sleep_ms(kill_after_ms);
        (void)kill(pid, SIGKILL);
    }
    CHECK(waitpid(pid, &status, 0) == pid, "wait");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void compacting_survives_kills(void **state)
{
    (void)state;

    configure("");
    start_plain();
    process("order", "o");
    CHECK(compact(-1) == 2, "a server uses it");
    node_stop(&node);
    multiply("o", 30000);
    execute("DELETE FROM task WHERE seq % 10 <> 0");
    int64_t left = 0;
    off_t before = size_of_file();
    for (int i = 0; i < 12; i++) {
        (void)compact(i * 15);
        start_configured();
        int64_t now = sql_int(&node, "SELECT count(*) FROM task");
        CHECK(left == 0 || now == left, "%d, then %d tasks", (int)left, (int)now);
        left = now;
        CHECK(status_of("o-1999") == 200, "it is there");
        node_stop(&node);
    }
    CHECK(compact(-1) == 0, "compacted");
    CHECK(size_of_file() < before / 2, "%d of %d bytes", (int)size_of_file(), (int)before);
    start_configured();
    CHECK(sql_int(&node, "SELECT count(*) FROM task") == left, "all are there");
    char *sound = sql(&node, "PRAGMA integrity_check");
    CHECK(strcmp(sound, "ok") == 0, "%s", sound);
    free(sound);
    node_stop(&node);
}

/* ---- mistakes ---- */

static void mistakes_of_the_configuration_are_told_in_their_places(void **state)
{
    static const struct {
        const char *text, *told;
    } cases[] = {
        {"retention: 7", "retention"},
        {"retention: [{workflow: order}]", "keep: DURATION"},
        {"retention: [{keep: 30}]", "retention[0].keep"},
        {"retention: [{keep: 10s}]", "retention[0].keep"},
        {"retention: [{keep: 30d, states: [pending]}]", "retention[0].states[0]"},
        {"retention: [{keep: 30d, states: []}]", "retention[0].states"},
        {"retention: [{keep_last: 0}]", "retention[0].keep_last"},
        {"retention: [{keep: 30d, archive: true}]", "retention[0].archive"},
        {"retention: [{keep: 30d, wrokflow: x}]", "wrokflow"},
        {"retention: [{keep: 30d, workflow: A B}]", "retention[0].workflow"},
        {"retention: [{keep: 30d}, {workflow: a, keep: 3d}]", "retention[1]: "},
        {"retention: [{workflow: a, keep: 3d, states: [error]}, {keep: 3d},"
         " {workflow: a, keep: 9d, states: [closed]}]",
         "retention[2]: "},
        {"archive: {max_size: 1MiB}", "folder"},
        {"archive: {folder: x, max_size: 1}", "archive.max_size"},
        {"reserve: 7", "reserve"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf story = {0};
        configure(cases[i].text);
        CHECK(serve_briefly(FLAGS("--data", node.data, "--config", config), &story) == 2, "%s",
              cases[i].text);
        CHECK(strstr(story.ptr, cases[i].told), "%s: %s", cases[i].text, story.ptr);
    }
    configure("archive: {folder: /proc/none/x}\nretention: [{keep: 30d}]");
    CLEANUP(buf_fini) struct buf story = {0};
    CHECK(serve_briefly(FLAGS("--data", node.data, "--config", config), &story) == 1, "no folder");
    CHECK(strstr(story.ptr, "/proc/none/x"), "%s", story.ptr);
}

static int end(void **state)
{
    (void)state;
    node_fini(&node);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    program = argv[1];
    const struct CMUnitTest tests[] = {
        TEST(each_rule_lets_go_what_is_its_own),
        TEST(by_hand_one_workflow_and_its_newest),
        TEST(the_id_of_a_deleted_task_is_not_free),
        TEST(a_deleted_task_is_still_its_owners),
        TEST(what_was_submitted_is_known_after_the_task_and_the_version),
        TEST(ids_may_be_free_at_once),
        TEST(what_is_archived_is_the_whole_record),
        TEST(a_family_goes_with_its_root),
        TEST(a_record_is_archived_in_one_line),
        TEST(a_long_task_is_archived_as_a_whole),
        TEST(a_kill_loses_nothing),
        TEST(a_full_archive_keeps_all_tasks),
        TEST(the_file_becomes_smaller_by_itself),
        TEST(compacting_survives_kills),
        TEST(mistakes_of_the_configuration_are_told_in_their_places),
    };
    return cmocka_run_group_tests_name("retention", tests, NULL, NULL);
}
