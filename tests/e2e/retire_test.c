/* Tests of the deletion of old ended tasks, on request and with --keep. retention_test.c has the
 * rules of the configuration; contract/store_retire.c tests the stores. */

#include <sqlite3.h>
#include <stdlib.h>

#include "kit.h"

static struct node node;

#define STEPS                                                                                 \
    "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": " \
    "\"x\", \"undo\": {\"action\": \"y\"}}]"

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "info"));
    define(&node, "short", STEPS);
    define(&node, "idle",
           "\"steps\": [{\"name\": \"a\", \"agent\": \"nobody\", \"action\": \"x\", "
           "\"undo\": \"none\"}]");
    return 0;
}

static void change_stopped(const char *statement)
{
    char path[100];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, "%s", path);
    int rc = sqlite3_exec(db, statement, NULL, NULL, NULL);
    CHECK(rc == SQLITE_OK, "%s", sqlite3_errmsg(db));
    CHECK(sqlite3_close(db) == SQLITE_OK, "close");
}

/* The server stops, all that is stored becomes forty days older, and it starts with these flags. */
static void let_time_pass(const char *const *flags)
{
    node_stop(&node);
    change_stopped("UPDATE task SET submitted_at = submitted_at - 3456000000, "
                   "ended_at = ended_at - 3456000000");
    node_start(&node, flags);
}

/* Returns the token of its attempt, to be freed. */
static char *process(const char *id)
{
    REPLY r = {0};

    submit(&node, "short", id);
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    wait_for_state(&node, id, "processed");
    return token;
}

static void stop_in_error(const char *id)
{
    REPLY r = {0};

    submit(&node, "short", id);
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token,
            "\"error\": {\"code\": \"no\", \"message\": \"no\", \"retryable\": false, "
            "\"effect\": \"none\"}",
            "accepted");
    wait_for_state(&node, id, "error");
    free(token);
}

static int status_of(const char *id)
{
    REPLY r = {0};

    get(&node, &r, "/v1/tasks/%s", id);
    return r.status;
}

static void retire(struct reply *ret, const char *body, int64_t tasks)
{
    post(&node, ret, "/v1/retire", "%s", body);
    EXPECT(ret, 200);
    EXPECT_INT(ret, "tasks", tasks);
    EXPECT_RAW(ret, "next", "null");
}

/* ---- by hand ---- */

static void what_is_old_is_counted_and_deleted(void **state)
{
    REPLY r = {0};
    (void)state;

    char *old = process("old");
    free(process("old-2"));
    stop_in_error("stopped");
    submit(&node, "idle", "waiting");
    let_time_pass(FLAGS("--log", "info"));
    free(process("young"));

    retire(&r, "{\"older_than\": \"30d\", \"dry_run\": true}", 2);
    EXPECT_RAW(&r, "dry_run", "true");
    EXPECT_RAW(&r, "states", "[\"processed\",\"compensated\",\"closed\"]");
    CHECK(status_of("old") == 200, "it was only counted");
    retire(&r, "{\"older_than\": \"30d\"}", 2);
    CHECK(status_of("old") == 410 && status_of("old-2") == 410, "they are gone");
    CHECK(status_of("young") == 200 && status_of("stopped") == 200 && status_of("waiting") == 200,
          "all others stay");
    retire(&r, "{\"ended_before\": \"2001-01-01T00:00:00Z\", \"states\": [\"error\"]}", 0);
    retire(&r, "{\"older_than\": \"30d\", \"states\": [\"error\", \"processed\"]}", 1);
    CHECK(status_of("stopped") == 410, "as it was asked for");
    CHECK(sql_int(&node, "SELECT count(*) FROM task") == 2, "nothing else went");

    /* the agent says once more what was answered long ago */
    hand_in(&node, "ag", "i", old, "\"output\": 1", "unknown");
    free(old);
    post(&node, &r, "/v1/tasks/stopped/retry", "{\"reason\": \"too late\"}");
    expect_problem(&r, 410, "task-deleted");
    get(&node, &r, "/v1/tasks/never-there");
    expect_problem(&r, 404, "no-such-task");
}

/* Those of a deleted task go with it, long values too; others stay. */
static void a_task_takes_its_signals_along(void **state)
{
    CLEANUP(buf_fini) struct buf longer = {0};
    REPLY r = {0};
    (void)state;

    define(&node, "signals",
           "\"steps\": [{\"name\": \"a\", \"signal\": {\"name\": \"go\"}},"
           "{\"name\": \"b\", \"signal\": {\"name\": \"go\"}}],"
           "\"output\": \"${ .task.signals.go }\"");
    for (int i = 0; i < 3000; i++)
        buf_byte(&longer, '7');
    for (int i = 0; i < 2; i++) {
        post(&node, &r, "/v1/tasks",
             "{\"workflow\": \"signals\", \"id\": \"r-%d\", \"signals\": [{\"id\": \"a\", "
             "\"name\": \"go\", \"data\": \"%s\"}]}",
             i, longer.ptr);
        EXPECT(&r, 201);
    }
    post(&node, &r, "/v1/tasks/r-0/signals/go", "1");
    EXPECT(&r, 200);
    wait_for_state(&node, "r-0", "processed");
    task_of(&node, &r, "r-0");
    char *url = strdup(strstr(text_at(&r, "output"), "/v1/"));
    CHECK(url, "memory");
    CHECK(sql_int(&node, "SELECT count(*) FROM task_signal WHERE task LIKE 'r-%'") == 3, "before");
    let_time_pass(FLAGS("--log", "info"));
    retire(&r, "{\"older_than\": \"30d\", \"workflow\": \"signals\"}", 1);
    CHECK(status_of("r-0") == 410 && status_of("r-1") == 200, "one of them was over");
    CHECK(sql_int(&node, "SELECT count(*) FROM task_signal WHERE task = 'r-0'") == 0, "they went");
    CHECK(sql_int(&node, "SELECT count(*) FROM task_signal WHERE task = 'r-1'") == 1, "it stays");
    CHECK(sql_int(&node, "SELECT count(*) FROM payload AS p WHERE NOT EXISTS (SELECT 1 FROM task "
                         "AS t WHERE t.seq = p.key / 1048576)")
              == 0,
          "no value is left behind");
    post(&node, &r, "/v1/tasks/r-0/signals/go", "1");
    expect_problem(&r, 410, "task-deleted");
    post(&node, &r, url, "1");
    expect_problem(&r, 410, "task-deleted");
    node_stop(&node);
    change_stopped("DELETE FROM reserved WHERE id = 'r-0'"); /* in time it is forgotten */
    node_start(&node, FLAGS("--log", "info"));
    post(&node, &r, url, "1");
    expect_problem(&r, 404, "no-such-task");
    free(url);
}

static void who_deleted_is_on_record(void **state)
{
    REPLY r = {0};
    (void)state;

    get(&node, &r, "/v1/audit");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "entries.0.verb", "retire");
    EXPECT_TEXT(&r, "entries.0.actor", "admin");
    CHECK(strstr(text_at(&r, "entries.0.reason"), ": processed, error"), "%s",
          text_at(&r, "entries.0.reason"));
    EXPECT_TEXT(&r, "entries.1.verb", "retire");
    EXPECT_TEXT(&r, "entries.2.verb", "workflow.put"); /* no dry run, none that deleted nothing */
    get(&node, &r, "/metrics");
    CHECK(memmem(r.body.ptr, r.body.len, "\nintact_tasks_deleted_total 3\n", 30), "%.*s",
          SLICE_ARG(r.body));
    CHECK(node_log_has(&node, "event=tasks_deleted tasks=2 by=admin"), "in the log, too");
}

static void mistakes_are_refused(void **state)
{
    static const char *const bodies[] = {
        "{}",
        "{\"older_than\": \"30d\", \"ended_before\": \"2001-01-01T00:00:00Z\"}",
        "{\"older_than\": 30}",
        "{\"older_than\": \"a month\"}",
        "{\"older_than\": \"59s\"}",
        "{\"ended_before\": \"yesterday\"}",
        "{\"ended_before\": \"9998-01-01T00:00:00Z\"}",
        "{\"older_than\": \"30d\", \"states\": []}",
        "{\"older_than\": \"30d\", \"states\": [\"pending\"]}",
        "{\"older_than\": \"30d\", \"states\": \"error\"}",
        "{\"older_than\": \"30d\", \"dry_run\": 1}",
        "{\"older_than\": \"30d\", \"cursor\": 7}",
        "{\"older_than\": \"30d\", \"cursor\": \"x\"}",
    };
    char token[64];
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        post(&node, &r, "/v1/retire", "%s", bodies[i]);
        expect_problem(&r, 422, "bad-retire");
    }
    post(&node, &r, "/v1/retire", "{\"older_then\": \"30d\"}");
    EXPECT(&r, 422);
    make_token(&node, "ops", "\"operate\", \"read\"", NULL, token);
    const struct node ops = as(&node, token);
    post(&ops, &r, "/v1/retire", "{\"older_than\": \"30d\"}");
    expect_problem(&r, 403, "forbidden");
    CHECK(status_of("young") == 200, "nothing was deleted");
}

/* ---- by itself ---- */

static void what_is_not_to_be_kept_goes_by_itself(void **state)
{
    REPLY r = {0};
    (void)state;

    free(process("done"));
    stop_in_error("broken");
    let_time_pass(FLAGS("--log", "info", "--keep", "30d"));
    submit(&node, "idle", "newest");
    for (int64_t until = steady_ms() + PATIENCE_MS; status_of("done") != 410; sleep_ms(20))
        CHECK(steady_ms() < until, "it stays for ever");
    CHECK(status_of("broken") == 200 && status_of("waiting") == 200, "all others stay");
    for (int64_t until = steady_ms() + PATIENCE_MS;
         !node_log_has(&node, "event=tasks_deleted tasks=2 by=server"); sleep_ms(20))
        CHECK(steady_ms() < until, "and the log tells");
    get(&node, &r, "/v1/audit?limit=1");
    CHECK(strcmp(text_at(&r, "entries.0.actor"), "server") != 0, "nobody did it by hand");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_old_is_counted_and_deleted),
        cmocka_unit_test(who_deleted_is_on_record),
        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(what_is_not_to_be_kept_goes_by_itself),
        cmocka_unit_test(a_task_takes_its_signals_along),
    };
    return cmocka_run_group_tests_name("retire", tests, start, node_end);
}
