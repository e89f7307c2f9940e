/*
 * Backups of a running server: one at a time, interrupted in every way, restored; and copies of
 * folders that are not backups.
 */

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

/* What a sanitizer keeps beside each byte of the server. */
#if defined(__SANITIZE_THREAD__)
enum { SHADOW = 4 };
#else
enum { SHADOW = 0 };
#endif

static struct node node;
static const char *program;

static int start(void **state)
{
    (void)state;
    node_init(&node);
    node_start(&node, FLAGS("--scan-every", "100ms", "--grace", "500ms", "--drain", "500ms"));
    (void)define(&node, "one",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
                 "\"action\": \"x\", \"complete_by\": \"10s\", \"undo\": \"none\"}]");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    if (node.pid)
        node_stop(&node);
    node_fini(&node);
    return 0;
}

static const char *in_home(const char *name)
{
    static char paths[4][160];
    static unsigned next;
    char *path = paths[next++ % 4];

    (void)snprintf(path, sizeof paths[0], "%s/%s", node.home, name);
    return path;
}

static bool is_there(const char *name)
{
    return access(in_home(name), F_OK) == 0;
}

/* "intact VERB ...", asking the server; its exit status. What it said to people is in HOME/said. */
static int intact(const char *arguments)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "cd %s && INTACT_SERVER=http://127.0.0.1:%d INTACT_TOKEN=%s %s %s 2>said",
            node.home, node.port, node.token, program, arguments);
    int status = system(b.ptr); /* NOLINT: words of our own */
    CHECK(WIFEXITED(status), "%s: wait status %x", arguments, (unsigned)status);
    return WEXITSTATUS(status);
}

static bool said(const char *text)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int fd = open(in_home("said"), O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, buf_room(&b, 4000), 4000);

    (void)close(fd);
    b.len = n > 0 ? (size_t)n : 0;
    b.ptr[b.len] = 0;
    return strstr(b.ptr, text) != NULL;
}

/* One number from the file of a store or a backup. */
static int64_t number_in(const char *name, const char *query)
{
    sqlite3_stmt *q = NULL;
    sqlite3 *db = NULL;

    CHECK(sqlite3_open_v2(in_home(name), &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK, "%s", name);
    CHECK(sqlite3_prepare_v2(db, query, -1, &q, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    CHECK(sqlite3_step(q) == SQLITE_ROW, "%s", query);
    int64_t n = sqlite3_column_int64(q, 0);
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(db);
    return n;
}

static void is_sound(const char *name)
{
    CHECK(number_in(name, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = "
                          "'ok'")
              == 1,
          "%s is damaged", name);
}

/* So much that a backup lasts, and more than what a socket takes without a reader. */
static void grow(int mib)
{
    CLEANUP(buf_fini) struct buf sql = {0};
    sqlite3 *db = NULL;

    node_stop(&node);
    CHECK(sqlite3_open(in_home("data/intact.db"), &db) == SQLITE_OK, "opened");
    buf_fmt(&sql,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
            "INSERT INTO payload (key, json) SELECT i + (1 << 40), hex(randomblob(524000)) FROM n",
            mib);
    CHECK(sqlite3_exec(db, sql.ptr, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "500ms"));
}

static int ask_backup(void)
{
    return ask(&node, "POST", "/v1/backup", "application/json", SLICE("{}"));
}

/* Somebody may be told that another one is at work yet, or about to end. */
static void can_be_made_again(void)
{
    REPLY r = {0};

    WAIT_FOR((hear(ask_backup(), &r), r.status != 409), "another backup may begin");
    EXPECT(&r, 200);
}

/* ---- */

static void a_backup_comes_as_a_database(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "t-1");
    send_as(&node, &r, "POST", "/v1/backup", NULL, SLICE(""));
    EXPECT(&r, 200);
    CHECK(head_has(&r, "\r\nContent-Type: application/vnd.sqlite3\r\n")
              && head_has(&r, "\r\nCache-Control: no-store\r\n"),
          "%.*s", SLICE_ARG(r.head));
    int fd = open(in_home("b.db"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(write(fd, r.body.ptr, r.body.len) == (ssize_t)r.body.len, "saved");
    (void)close(fd);
    is_sound("b.db");
    CHECK(number_in("b.db", "SELECT count(*) FROM task WHERE id = 't-1'") == 1, "the task");
    CHECK(number_in("b.db", "SELECT count(*) FROM audit WHERE verb = 'backup' AND actor = 'admin'")
              == 1,
          "who asked for it");
    CHECK(!is_there("data/backup.part"), "nothing stays");
    get(&node, &r, "/v1/audit");
    EXPECT_TEXT(&r, "entries.0.verb", "backup");
    send_as(&node, &r, "POST", "/v1/backup", "application/json", SLICE("{\"to\": \"/etc\"}"));
    expect_problem(&r, 422, "unknown-member");
    send_as(&node, &r, "POST", "/v1/backup", "application/json", SLICE("{"));
    expect_problem(&r, 400, "not-json");
    send_as(&node, &r, "POST", "/v1/backup", "text/plain", SLICE("x"));
    expect_problem(&r, 415, "content-type");
}

static void who_takes_nothing_costs_no_memory_and_nobody_else_begins(void **state)
{
    REPLY r = {0};
    (void)state;

    grow(48);
    int64_t before = node_resident_kb(&node);
    int fd = ask_backup();
    WAIT_FOR(node_log_has(&node, "event=backup_made"), "it is made");
    sleep_ms(100); /* it fills what the sockets hold */
    hear(ask_backup(), &r);
    expect_problem(&r, 409, "backup-running");
    int64_t grown = node_resident_kb(&node) - before;
    CHECK(grown < (1 + SHADOW) * 40 * 1024, "%" PRId64 " KiB for a backup that nobody takes",
          grown);
    submit(&node, "one", "meanwhile");
    serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, "meanwhile", "processed");
    (void)close(fd);
    can_be_made_again();
    CHECK(node_log_has(&node, "event=backup_cut_short"), "that is told");
}

static void who_goes_while_it_is_made_ends_it(void **state)
{
    (void)state;
    grow(64);
    for (int i = 0; !node_log_has(&node, "event=backup_given_up"); i++) {
        CHECK(i < 50, "it is always made before anybody can go");
        int fd = ask_backup();
        WAIT_FOR(is_there("data/backup.part"), "it is being made");
        (void)close(fd);
        WAIT_FOR(!is_there("data/backup.part"), "it is given up, or made");
    }
    can_be_made_again();
}

static void a_server_that_ends_does_not_wait_for_it(void **state)
{
    REPLY r = {0};
    bool told = false;
    (void)state;

    grow(64);
    for (int i = 0; !told; i++) {
        CHECK(i < 50, "it is always made before the server ends");
        int fd = ask_backup();
        WAIT_FOR(is_there("data/backup.part"), "it is being made");
        node_stop(&node);
        hear(fd, &r); /* cut short if it was being sent */
        told = r.status == 503;
        if (told)
            expect_problem(&r, 503, "draining");
        CHECK(told || r.status == 0, "%d", r.status);
        CHECK(!is_there("data/backup.part"), "nothing stays");
        node_start(&node, FLAGS("--drain", "500ms"));
    }
}

static void what_a_kill_leaves_is_removed_at_the_start(void **state)
{
    (void)state;
    grow(64);
    for (int i = 0;; i++) {
        CHECK(i < 50, "it is always made before the kill");
        int fd = ask_backup();
        WAIT_FOR(is_there("data/backup.part"), "it is being made");
        node_kill(&node);
        (void)close(fd);
        bool left = is_there("data/backup.part");
        node_start(&node, FLAGS("--drain", "500ms"));
        CHECK(!is_there("data/backup.part"), "it is removed");
        if (left)
            break;
    }
    CHECK(node_log_has(&node, "event=removed"), "that is told");
    can_be_made_again();
}

/* ---- the command line ---- */

static void the_verbs_make_and_restore_one(void **state)
{
    struct stat st;
    (void)state;

    submit(&node, "one", "t-1");
    CHECK(intact("backup b.db") == 0, "made");
    CHECK(stat(in_home("b.db"), &st) == 0 && (st.st_mode & 0777) == 0600, "for its owner alone");
    CHECK(!is_there("b.db.part"), "whole");
    is_sound("b.db");
    CHECK(intact("backup b.db") == 2 && said("--force"), "it is there");
    CHECK(intact("backup b.db --force") == 0, "replaced");
    CHECK(intact("backup none/b.db") == 2 && said("No such file"), "no such folder");
    CHECK(intact("backup data") == 2, "a folder");
    CHECK(intact("backup - > piped.db") == 0, "to standard output");
    is_sound("piped.db");
    CHECK(intact("backup c.db --data data") == 2 && said("a server uses"), "in use");
    CHECK(intact("restore b.db --data data") == 2 && said("in use"), "the same");
    CHECK(intact("restore b.db") == 2 && said("--data"), "where to?");
    CHECK(intact("restore none.db --data r") == 2 && said("none.db"), "no such file");
    CHECK(intact("restore data --data r") == 2, "a folder");
    CHECK(intact("restore said --data r") == 1 && said("not a backup"), "a text");
    CHECK(intact("restore b.db --data r") == 0, "restored");
    CHECK(intact("restore - --data r2 < piped.db") == 0, "from standard input");
    CHECK(number_in("r2/intact.db", "SELECT count(*) FROM task WHERE id = 't-1'") == 1, "there");
    CHECK(intact("restore b.db --data r") == 2 && said("--force"), "it is there");
    CHECK(intact("restore b.db --data r --force") == 0 && said("before-restore-"), "moved away");
    CHECK(intact("restore data/intact.db --data r3") == 2 && said("no backup"), "it has a WAL");

    struct node reader = as(&node, "");
    make_token(&node, "reader", "\"read\"", NULL, reader.token);
    memcpy(node.token, reader.token, sizeof node.token);
    CHECK(intact("backup d.db") == 1 && said("role admin"), "not for everybody");
    CHECK(!is_there("d.db") && !is_there("d.db.part"), "nothing stays");
    node_read_token(&node);
    node_stop(&node);
    CHECK(intact("backup d.db") == 3, "nobody there");
    CHECK(!is_there("d.db") && !is_there("d.db.part"), "nothing stays");
    CHECK(intact("backup d.db --data data") == 0, "from the folder");
    is_sound("d.db");
    CHECK(intact("backup e.db --data none") == 2 && said("no state store"), "none");
    CHECK(!is_there("none") && !is_there("e.db.part"), "nothing is made");
}

/* A server that ends in the middle: what came is not taken for a backup. */
static void half_a_backup_is_none(void **state)
{
    (void)state;
    grow(64);
    CHECK(system("true") == 0, "a shell");
    CLEANUP(buf_fini) struct buf b = {0};
    /* the reader of the pipe stands still until the server has ended */
    buf_fmt(&b, "cd %s && { INTACT_SERVER=http://127.0.0.1:%d INTACT_TOKEN=%s ", node.home,
            node.port, node.token);
    buf_fmt(&b, "%s backup - 2>said; echo $? >rc; } | { head -c 100000; touch begun; ", program);
    buf_fmt(&b, "while [ -d %s ] && [ ! -e go ]; do sleep 0.02; done; cat; } >/dev/null &",
            node.home);
    CHECK(system(b.ptr) == 0, "begun"); /* NOLINT: words of our own */
    WAIT_FOR(is_there("begun"), "some of it has come");
    node_stop(&node);
    (void)close(open(in_home("go"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    struct stat st;
    WAIT_FOR(stat(in_home("rc"), &st) == 0 && st.st_size > 0, "it has ended");
    CHECK(said("ended the transfer"), "that is told");
    FILE *f = fopen(in_home("rc"), "re");
    int rc = -1;
    CHECK(f && fscanf(f, "%d", &rc) == 1 && rc == 3, "exit status %d", rc);
    (void)fclose(f);
}

/* ---- afterwards ---- */

/* The deadline of what runs is over when the restored server starts; its agent still has its time.
 */
static void after_a_restore_agents_get_their_grace(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "t-1");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    CHECK(intact("backup b.db") == 0, "made");
    node_kill(&node);
    CHECK(intact("restore b.db --data data2") == 0, "restored");
    (void)snprintf(node.data, sizeof node.data, "%s", in_home("data2"));
    int64_t complete_by = number_in("b.db", "SELECT wake_at FROM task");
    WAIT_FOR(now_ms() > complete_by + 100, "its deadline is over");
    node_start(&node, FLAGS("--scan-every", "100ms", "--grace", "5m", "--drain", "500ms"));
    sleep_ms(500); /* some scans */
    task_of(&node, &r, "t-1");
    EXPECT_TEXT(&r, "state", "processing");
    EXPECT_INT(&r, "steps.0.failure_count", 0);
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    wait_for_state(&node, "t-1", "processed");
    free(token);
}

static void copy_folder(const char *from, const char *to)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "cp -r %s %s", in_home(from), in_home(to));
    (void)system(b.ptr); /* NOLINT: the WAL may go while it is copied */
}

static int serve(const char *folder, const char *flag, struct buf *ret_stderr)
{
    char path[160];

    (void)snprintf(path, sizeof path, "%s", in_home(folder));
    return serve_briefly(FLAGS("--data", path, "--listen", "127.0.0.1:0", flag), ret_stderr);
}

static void a_copied_folder_is_not_served_by_mistake(void **state)
{
    CLEANUP(buf_fini) struct buf err = {0};
    struct node copy = node;
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "t-1");
    node_stop(&node);
    copy_folder("data", "copy");
    int status = serve("copy", NULL, &err);
    CHECK(status == 1 && strstr(err.ptr, "--adopt") && strstr(err.ptr, "copy"), "%d %s", status,
          err.ptr);
    (void)snprintf(copy.data, sizeof copy.data, "%s", in_home("copy"));
    copy.pid = 0;
    copy.port = 0;
    node_start(&copy, FLAGS("--adopt"));
    task_of(&copy, &r, "t-1");
    EXPECT_TEXT(&r, "state", "pending");
    CHECK(node_log_has(&copy, "event=adopted"), "that is told");
    node_stop(&copy);
    node_start(&copy, FLAGS("--drain", "500ms"));
    node_stop(&copy);
    node_start(&copy, FLAGS("--adopt"));
    CHECK(node_log_has(&copy, "event=nothing_to_adopt"), "it is the one by now");
    node_stop(&copy);
    node_start(&node, FLAGS("--drain", "500ms")); /* the original is what it was */
}

/* Submits until it is killed. */
static pid_t submit_for_ever(int which)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)unsetenv("INTACT_RECORD");
    for (int n = 0;; n++) {
        CLEANUP(buf_fini) struct buf b = {0};
        REPLY r = {0};
        for (int i = 0; i < 50; i++)
            buf_fmt(&b, "{\"workflow\":\"one\",\"id\":\"s%d-%d-%d\",\"input\":\"%0*d\"}\n", which,
                    n, i, 40 * i, 7);
        send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&b));
    }
}

/* Submits one after the other, each when the one before was acknowledged, until it is killed. */
static pid_t submit_in_order(int which)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    (void)unsetenv("INTACT_RECORD");
    for (int n = 0;; n++) {
        REPLY r = {0};
        do
            post(&node, &r, "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"m%d-%d\"}", which, n);
        while (r.status != 200 && r.status != 201);
    }
}

/* What was acknowledged before it began is in it, and nothing without all that came before. */
static void a_backup_is_of_one_moment(void **state)
{
    static const char all[] = "SELECT count(*) FROM task";
    static const char gaps[] =
        "WITH t AS (SELECT substr(id, 1, 2) AS who, CAST(substr(id, 4) AS INTEGER) AS n FROM task) "
        "SELECT count(*) FROM (SELECT 1 FROM t GROUP BY who HAVING max(n) + 1 <> count(*))";
    pid_t pids[4];
    int64_t before = 0;
    (void)state;

    grow(32);
    for (int i = 0; i < 4; i++)
        pids[i] = submit_in_order(i);
    for (int round = 0; round < 4; round++) {
        WAIT_FOR(number_in("data/intact.db", all) > before, "some more have come");
        before = number_in("data/intact.db", all);
        CHECK(intact("backup m.db --force") == 0, "made");
        CHECK(number_in("m.db", gaps) == 0, "one is missing before another");
        CHECK(number_in("m.db", all) >= before, "one that was there is missing");
        before = number_in("m.db", all);
    }
    for (int i = 0; i < 4; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    CHECK(number_in("data/intact.db", all) > before, "they went on");
}

/* It is refused with a word, or it is whole. */
static void judge_torn(char letter)
{
    CLEANUP(buf_fini) struct buf err = {0};
    const char folder[] = {'t', 'o', 'r', 'n', letter, 0};
    struct node copy = node;

    int status = serve(folder, NULL, &err);
    CHECK(status == 1, "a copy is not served: %d %s", status, err.ptr);
    (void)snprintf(copy.data, sizeof copy.data, "%s", in_home(folder));
    (void)snprintf(copy.log, sizeof copy.log, "%.60s/%s.log", node.home, folder);
    copy.pid = 0;
    copy.port = 0;
    node_begin(&copy, FLAGS("--adopt", "--drain", "100ms"));
    int ended = -1;
    for (int64_t until = steady_ms() + PATIENCE_MS; ended == -1; ended = node_wait(&copy, 20)) {
        CHECK(steady_ms() < until, "neither refused nor ready");
        if (node_log_has(&copy, "event=adopted"))
            break;
    }
    if (ended >= 0) {
        CHECK(WIFEXITED(ended) && WEXITSTATUS(ended) == 1, "wait status %x", (unsigned)ended);
        CHECK(node_log_has(&copy, "often torn"), "what to do is told");
        return;
    }
    WAIT_FOR(node_log_has(&copy, "event=started"), "it is ready");
    sleep_ms(100);
    node_stop(&copy);
    char db[100];
    (void)snprintf(db, sizeof db, "%s/intact.db", folder);
    is_sound(db);
    CHECK(number_in(db, "SELECT count(*) FROM task WHERE NOT json_valid(doc)") == 0, "all whole");
}

static void a_copy_of_a_folder_in_use_is_refused_or_whole(void **state)
{
    pid_t pids[4];
    char name[16];
    (void)state;

    for (int i = 0; i < 4; i++)
        pids[i] = submit_for_ever(i);
    for (int i = 0; i < 4; i++) {
        sleep_ms(300);
        (void)snprintf(name, sizeof name, "torn%d", i);
        copy_folder("data", name);
    }
    for (int i = 0; i < 4; i++) {
        (void)kill(pids[i], SIGKILL);
        (void)waitpid(pids[i], NULL, 0);
    }
    for (int i = 0; i < 4; i++) {
        judge_torn((char)('0' + i));
    }
}

#define ON_NODE(f)                                                               \
    {                                                                            \
        .name = #f, .test_func = (f), .setup_func = start, .teardown_func = stop \
    }

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    program = realpath(argv[1], NULL); /* verbs are run in other folders */
    CHECK(program, "%s", argv[1]);
    const struct CMUnitTest tests[] = {
        ON_NODE(a_backup_comes_as_a_database),
        ON_NODE(who_takes_nothing_costs_no_memory_and_nobody_else_begins),
        ON_NODE(who_goes_while_it_is_made_ends_it),
        ON_NODE(a_server_that_ends_does_not_wait_for_it),
        ON_NODE(what_a_kill_leaves_is_removed_at_the_start),
        ON_NODE(a_backup_is_of_one_moment),
        ON_NODE(the_verbs_make_and_restore_one),
        ON_NODE(half_a_backup_is_none),
        ON_NODE(after_a_restore_agents_get_their_grace),
        ON_NODE(a_copied_folder_is_not_served_by_mistake),
        ON_NODE(a_copy_of_a_folder_in_use_is_refused_or_whole),
    };
    return cmocka_run_group_tests_name("backup", tests, NULL, NULL);
}
