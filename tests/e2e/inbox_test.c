/* Submissions that an application inserts by SQL, in the transactions of its own rows: each becomes
 * one task, or is kept as refused, whichever process dies at any moment. */

#include <libpq-fe.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/prng.h"
#include "kit.h"
#include "postgres/bouncer.h"
#include "postgres/cluster.h"

static struct node node;

/* ---- an application's connection ---- */

struct app {
    sqlite3 *lite;
    PGconn *pg;
};

static bool app_try(struct app *a, const char *text, char *ret_why, size_t size)
{
    if (a->lite) {
        int rc = sqlite3_exec(a->lite, text, NULL, NULL, NULL);
        (void)snprintf(ret_why, size, "%s", rc == SQLITE_OK ? "" : sqlite3_errmsg(a->lite));
        return rc == SQLITE_OK;
    }
    PGresult *r = PQexec(a->pg, text);
    bool good = PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;
    (void)snprintf(ret_why, size, "%s", good ? "" : PQerrorMessage(a->pg));
    PQclear(r);
    return good;
}

static void app_do(struct app *a, const char *text)
{
    char why[500];

    CHECK(app_try(a, text, why, sizeof why), "%s: %s", text, why);
}

static struct app app_open(void)
{
    struct app a = {0};
    char text[200];

    if (store_is_postgres()) {
        a.pg = PQconnectdb(cluster_conninfo());
        CHECK(PQstatus(a.pg) == CONNECTION_OK, "%s", PQerrorMessage(a.pg));
        (void)snprintf(text, sizeof text, "SET search_path = %s", node.schema);
        app_do(&a, text);
        return a;
    }
    (void)snprintf(text, sizeof text, "%s/intact.db", node.data);
    CHECK(sqlite3_open_v2(text, &a.lite, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, "open");
    CHECK(sqlite3_busy_timeout(a.lite, PATIENCE_MS) == SQLITE_OK, "wait");
    return a;
}

static void app_close(struct app *a)
{
    if (a->lite)
        CHECK(sqlite3_close(a->lite) == SQLITE_OK, "close");
    if (a->pg)
        PQfinish(a->pg);
}

#define APP CLEANUP(app_close) struct app

static int64_t count(const char *query)
{
    return sql_int(&node, query);
}

static void wait_for_count(const char *query, int64_t want)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (count(query) != want) {
        CHECK(steady_ms() < until, "%s is %" PRId64 ", not %" PRId64, query, count(query), want);
        sleep_ms(5);
    }
}

#define WAITING "SELECT count(*) FROM submission WHERE refused_at IS NULL"
#define REFUSED "SELECT count(*) FROM submission WHERE refused_at IS NOT NULL"

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "info"));
    define(&node, "order",
           "\"inputs\": {\"total\": {\"type\": \"number\", \"required\": true}}, \"steps\": "
           "[{\"name\": \"a\", \"agent\": \"nobody\", \"action\": \"x\", \"undo\": \"none\"}]");
    define(&node, "plain",
           "\"steps\": [{\"name\": \"a\", \"agent\": \"nobody\", \"action\": \"x\", "
           "\"undo\": \"none\"}]");
    APP a = app_open();
    app_do(&a, "CREATE TABLE app_order (id TEXT PRIMARY KEY)");
    return 0;
}

/* ---- what is put in ---- */

static void an_order_and_its_task_exist_together(void **state)
{
    (void)state;
    APP a = app_open();
    REPLY r = {0};

    app_do(&a, "BEGIN");
    app_do(&a, "INSERT INTO app_order VALUES ('o-0')");
    app_do(&a,
           "INSERT INTO submit (workflow, id, input) VALUES ('order', 'o-0', '{\"total\": 1}')");
    app_do(&a, "ROLLBACK");
    app_do(&a, "BEGIN");
    app_do(&a, "INSERT INTO app_order VALUES ('o-1')");
    app_do(&a, "INSERT INTO submit (workflow, id, input, priority, tags, not_before) VALUES "
               "('order', 'o-1', '{\"total\": 1}', 7, '{\"customer\": \"c-1\"}', "
               "'2020-01-31T10:00:00Z')");
    app_do(&a, "COMMIT");
    wait_for_count("SELECT count(*) FROM task WHERE id = 'o-1'", 1);
    CHECK(count(WAITING) == 0 && count(REFUSED) == 0, "its row went with it");
    task_of(&node, &r, "o-1");
    EXPECT_INT(&r, "priority", 7);
    EXPECT_TEXT(&r, "tags.customer", "c-1");
    EXPECT_INT(&r, "input.total", 1);
    EXPECT_TEXT(&r, "not_before", "2020-01-31T10:00:00.000Z");
    CHECK(count("SELECT count(*) FROM task WHERE id = 'o-0'") == 0, "what was undone is nothing");
}

static void without_an_id_it_gets_one(void **state)
{
    (void)state;
    APP a = app_open();

    app_do(&a, "INSERT INTO submit (workflow, input) VALUES ('order', '{\"total\": 2}')");
    app_do(&a, "INSERT INTO submit (workflow, input) VALUES ('order', '{\"total\": 2}')");
    wait_for_count("SELECT count(*) FROM task", 2);
    char *id = sql(&node, "SELECT min(id) FROM task");
    CHECK(strlen(id) == 36 && id[14] == '7' && strchr("89ab", id[19]), "a UUID: %s", id);
    free(id);
}

static void the_same_again_is_one_task(void **state)
{
    (void)state;
    APP a = app_open();
    REPLY r = {0};

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"order\", \"id\": \"o-1\", \"input\": {\"total\": 1}}");
    EXPECT(&r, 201);
    for (int i = 0; i < 3; i++)
        app_do(
            &a,
            "INSERT INTO submit (workflow, id, input) VALUES ('order', 'o-1', '{\"total\": 1}')");
    app_do(&a,
           "INSERT INTO submit (workflow, id, input) VALUES ('order', 'o-1', '{\"total\": 9}')");
    wait_for_count(WAITING, 0);
    CHECK(count("SELECT count(*) FROM task") == 1 && count(REFUSED) == 1, "one of each");
    get(&node, &r, "/v1/submissions");
    EXPECT_TEXT(&r, "submissions.0.reason",
                "task o-1 exists, and was submitted with other content");
}

static void what_is_wrong_is_refused_and_kept(void **state)
{
    (void)state;
    APP a = app_open();
    REPLY r = {0};

    app_do(&a, "BEGIN");
    app_do(&a, "INSERT INTO app_order VALUES ('o-1')");
    app_do(&a,
           "INSERT INTO submit (workflow, id, input) VALUES ('later', 'o-1', '{\"total\": 1}')");
    app_do(&a, "INSERT INTO submit (workflow, id, input) VALUES ('order', 'o-2', '{\"totl\": 1}')");
    app_do(&a, "INSERT INTO submit (workflow, id, input, priority) VALUES ('order', 'o-3', "
               "'{\"total\": 1}', 12)");
    app_do(&a, "COMMIT");
    wait_for_count(REFUSED, 3);
    CHECK(count("SELECT count(*) FROM app_order") == 1, "the application was not disturbed");
    get(&node, &r, "/v1/submissions?state=refused&limit=2");
    EXPECT_TEXT(&r, "submissions.0.id", "o-3");
    EXPECT_TEXT(&r, "submissions.0.reason", "priority is 12, expected a whole number from 0 to 9");
    CHECK(strstr(text_at(&r, "submissions.1.reason"), "input \"total\" is missing"), "why");
    CHECK(text_at(&r, "next")[0], "there is one more");
    CHECK(node_log_has(&node, "event=submission_refused"), "the log tells");

    define(&node, "later",
           "\"steps\": [{\"name\": \"a\", \"agent\": \"nobody\", \"action\": \"x\", "
           "\"undo\": \"none\"}]");
    post(&node, &r, "/v1/submissions/retry", "{\"all\": true, \"reason\": \"it is stored\"}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "submissions", 3);
    wait_for_count("SELECT count(*) FROM task WHERE id = 'o-1'", 1);
    wait_for_count(REFUSED, 2);
    get(&node, &r, "/v1/submissions");
    int64_t seq = int_at(&r, "submissions.0.seq");
    post(&node, &r, "/v1/submissions/drop", "{\"seq\": %" PRId64 ", \"reason\": \"a test\"}", seq);
    EXPECT_INT(&r, "submissions", 1);
    post(&node, &r, "/v1/submissions/drop", "{\"seq\": %" PRId64 ", \"reason\": \"a test\"}", seq);
    expect_problem(&r, 404, "no-such-submission");
    post(&node, &r, "/v1/submissions/drop", "{\"all\": true}");
    expect_problem(&r, 422, "no-reason");
    post(&node, &r, "/v1/submissions/drop", "{\"reason\": \"which?\"}");
    expect_problem(&r, 422, "bad-submission");
    get(&node, &r, "/v1/submissions?state=nowhere");
    expect_problem(&r, 422, "bad-state");
    CHECK(count("SELECT count(*) FROM audit WHERE verb LIKE 'submission.%'") == 2,
          "it is on record");
}

/* Nobody knows whom it excludes. */
static void what_others_than_the_submitter_approve_is_refused(void **state)
{
    (void)state;
    APP a = app_open();
    REPLY r = {0};

    define(&node, "expense",
           "\"steps\": [{\"name\": \"allow\", \"approve\": {\"by\": \"finance\", \"question\": "
           "\"Pay?\", \"not\": \"submitter\"}}]");
    app_do(&a, "INSERT INTO submit (workflow, id) VALUES ('expense', 'e-1')");
    wait_for_count(REFUSED, 1);
    get(&node, &r, "/v1/submissions?state=refused");
    EXPECT_TEXT(&r, "submissions.0.id", "e-1");
    CHECK(strstr(text_at(&r, "submissions.0.reason"), "is not known"), "why: %.*s",
          SLICE_ARG(r.body));
    CHECK(count("SELECT count(*) FROM task WHERE id = 'e-1'") == 0, "there is no task");
}

/* An object in reply_to is part of the text of the submission: it must end where the column does.
 */
static void a_column_adds_nothing_to_the_submission(void **state)
{
    static const char *const adds[] = {
        "\"paused\": true",
        "\"signals\": [{\"id\": \"s-1\", \"name\": \"go\", \"data\": 1}]",
        "\"traceparent\": \"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"",
    };
    char config[200];
    char text[500];
    FILE *f = NULL;
    (void)state;

    node_stop(&node);
    (void)snprintf(config, sizeof config, "%s/server.yaml", node.home);
    CHECK((f = fopen(config, "w")), "%s", config);
    fprintf(f, "intact_server: 1\nwebhooks:\n  - url: http://127.0.0.1:9/\n    secret: {env: "
               "INTACT_TEST_HOOK}\n    private: [127.0.0.0/8]\n");
    (void)fclose(f);
    CHECK(setenv("INTACT_TEST_HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1) == 0, "setenv");
    node_start(&node, FLAGS("--log", "info", "--config", config));
    APP a = app_open();
    for (size_t i = 0; i < COUNT_OF(adds); i++) {
        (void)snprintf(text, sizeof text,
                       "INSERT INTO submit (workflow, id, reply_to) VALUES ('plain', 'more-%zu', "
                       "'{\"to\": \"http://127.0.0.1:9/\", \"events\": [\"processed\"]}, %s')",
                       i, adds[i]);
        app_do(&a, text);
    }
    app_do(&a, "INSERT INTO submit (workflow, id, reply_to) VALUES ('plain', 'none-more', "
               "'{\"to\": \"http://127.0.0.1:9/\", \"events\": [\"processed\"]}')");
    wait_for_count("SELECT count(*) FROM task WHERE id = 'none-more'", 1);
    wait_for_count(WAITING, 0);
    CHECK(count("SELECT count(*) FROM task") == 1, "a column added members");
    CHECK(count(REFUSED " AND reason LIKE 'reply_to is not JSON%'") == 3, "why");
}

static void a_long_id_leaves_room_for_the_reason(void **state)
{
    static char text[100100];
    int64_t until = steady_ms() + PATIENCE_MS;
    (void)state;
    APP a = app_open();

    int len = snprintf(text, sizeof text, "INSERT INTO submit (workflow, id) VALUES ('plain', 'x");
    for (int i = 0; i < 50000; i++, len += 2)
        memcpy(text + len, "\xc3\xa4", 2);
    memcpy(text + len, "')", sizeof "')");
    app_do(&a, text);
    wait_for_count(REFUSED, 1);
    while (!node_log_has(&node, "expected 1 to 128 characters")) {
        CHECK(steady_ms() < until, "the log does not say why");
        sleep_ms(5);
    }
}

static void what_queues_brought_is_put_aside(void **state)
{
    REPLY r = {0};
    (void)state;

    int64_t before = count(REFUSED);
    post(&node, &r, "/v1/submissions/refused",
         "{\"source\": \"amqp:q\", \"reason\": \"not JSON\", \"message\": \"x y\"}");
    EXPECT(&r, 201);
    post(&node, &r, "/v1/submissions/refused",
         "{\"source\": \"amqp:q\", \"reason\": \"no such workflow\", \"submission\": {\"id\": "
         "\"q-1\", \"workflow\": \"queued\", \"input\": {\"a\": 1}, \"priority\": 3, \"tags\": "
         "{\"t\": \"v\"}}}");
    EXPECT_INT(&r, "submissions", 1);
    get(&node, &r, "/v1/submissions?source=amqp:q");
    EXPECT_TEXT(&r, "submissions.0.id", "q-1");
    EXPECT_TEXT(&r, "submissions.0.reason", "no such workflow");
    EXPECT_TEXT(&r, "submissions.0.tags", "{\"t\": \"v\"}");
    EXPECT_TEXT(&r, "submissions.1.input", "x y");
    int64_t seq = int_at(&r, "submissions.0.seq");
    define(&node, "queued",
           "\"steps\": [{\"name\": \"a\", \"agent\": \"nobody\", \"action\": \"x\", "
           "\"undo\": \"none\"}]");
    post(&node, &r, "/v1/submissions/retry", "{\"seq\": %" PRId64 ", \"reason\": \"stored\"}", seq);
    wait_for_count("SELECT count(*) FROM task WHERE id = 'q-1'", 1);
    wait_for_count(REFUSED, before + 1);

    post(&node, &r, "/v1/submissions/refused", "{\"source\": \"sql\", \"reason\": \"x\"}");
    expect_problem(&r, 422, "bad-submission");
    post(&node, &r, "/v1/submissions/refused", "{\"source\": \"amqp:q\"}");
    expect_problem(&r, 422, "bad-submission");
    post(&node, &r, "/v1/submissions/refused",
         "{\"source\": \"amqp:q\", \"reason\": \"x\", \"else\": 1}");
    expect_problem(&r, 422, "unknown-member");
}

/* What "raise" says of each, and that the transaction goes on. */
static void who_asks_for_it_is_told_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *columns, *values, *says;
    } cases[] = {
        {"workflow", "'nope'", "workflow is \"nope\""},
        {"workflow", "'order'", "input \"total\" is missing, expected number"},
        {"workflow, input", "'order', '{\"total\": \"a\"}'",
         "input \"total\" is \"a\", expected number"},
        {"workflow, input", "'order', '{\"total\": 1, \"x\": 1}'", "input \"x\" is unknown"},
        {"workflow, input", "'order', '[1]'", "input is [1], expected an object"},
        {"workflow, input, version", "'order', '{\"total\": 1}', 4", "the newest is 1"},
        {"workflow, input, id", "'order', '{\"total\": 1}', 'a b'",
         "id is \"a b\", expected 1 to 128"},
        {"workflow, input, priority", "'order', '{\"total\": 1}', 10", "priority is 10, expected"},
        {"workflow, input, tags", "'order', '{\"total\": 1}', '{\"a\": 1}'",
         "tag \"a\" is 1, expected"},
        {"workflow, input, reply_to", "'order', '{\"total\": 1}', ''", "expected an address"},
        {"workflow, input, id", "'order', '{\"total\": 2}', 'there'",
         "id \"there\" is that of another task, with another workflow or input, expected"},
    };
    APP a = app_open();
    char text[500];
    char why[800];

    app_do(&a, "INSERT INTO submit (workflow, id, input, on_error) VALUES ('order', 'there', "
               "'{\"total\": 1}', 'raise')");
    wait_for_count("SELECT count(*) FROM task", 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)snprintf(text, sizeof text, "INSERT INTO submit (on_error, %s) VALUES ('raise', %s)",
                       cases[i].columns, cases[i].values);
        app_do(&a, "BEGIN; INSERT INTO app_order VALUES ('x'); SAVEPOINT s");
        CHECK(!app_try(&a, text, why, sizeof why), "%s", text);
        CHECK(strstr(why, cases[i].says), "%s: %s", text, why);
        app_do(&a, "ROLLBACK TO s; DELETE FROM app_order; COMMIT");
    }
    CHECK(!app_try(&a, "INSERT INTO submit (workflow, on_error) VALUES ('order', 'rise')", why,
                   sizeof why)
              && strstr(why, "on_error is \"rise\""),
          "%s", why);
    CHECK(count("SELECT count(*) FROM submission") == 0, "nothing was put in");
}

static void what_came_while_nobody_was_there_is_taken_at_the_start(void **state)
{
    (void)state;

    node_stop(&node);
    APP a = app_open();
    app_do(&a,
           "INSERT INTO submit (workflow, id, input) VALUES ('order', 'o-1', '{\"total\": 1}')");
    app_close(&a);
    a = (struct app){0};
    node_start(&node, FLAGS("--log", "info"));
    wait_for_count("SELECT count(*) FROM task WHERE id = 'o-1'", 1);
}

static void many_at_once_are_taken_in_parts(void **state)
{
    (void)state;
    APP a = app_open();

    app_do(&a, "BEGIN");
    for (int i = 0; i < 2500; i++) {
        char text[160];
        (void)snprintf(text, sizeof text,
                       "INSERT INTO submit (workflow, id, input) VALUES ('%s', 'm-%d', "
                       "'{\"total\": 1}')",
                       i % 100 == 7 ? "none" : "order", i);
        app_do(&a, text);
    }
    app_do(&a, "COMMIT");
    wait_for_count(WAITING, 0);
    CHECK(count("SELECT count(*) FROM task") == 2475 && count(REFUSED) == 25,
          "each was dealt with");
}

static int64_t parts_aside(void)
{
    static const char line[] = "\nintact_aside_total{of=\"bodies\"} ";
    REPLY r = {0};

    get(&node, &r, "/metrics");
    const char *at = strstr(r.raw, line);
    CHECK(at, "there is no such metric");
    return strtoll(at + strlen(line), NULL, 10);
}

static void put_in(struct app *a, const char *id, const char *member, int bytes)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text,
            "INSERT INTO submit (workflow, id, input) VALUES ('order', '%s', '{\"%s\": %*d}')", id,
            member, bytes, 1);
    app_do(a, text.ptr);
}

/* As large bodies are; and so is what is more than a little in all. */
static void large_ones_are_read_beside_the_loop(void **state)
{
    int64_t before = parts_aside();
    (void)state;
    APP a = app_open();

    put_in(&a, "little", "total", 1000);
    wait_for_count("SELECT count(*) FROM task WHERE id = 'little'", 1);
    CHECK(parts_aside() == before, "a small one");
    put_in(&a, "large", "total", 100000);
    wait_for_count("SELECT count(*) FROM task WHERE id = 'large'", 1);
    CHECK(parts_aside() > before, "a large one");
    put_in(&a, "wrong", "totl", 100000);
    wait_for_count(REFUSED " AND id = 'wrong' AND reason LIKE '%did you mean \"total\"%'", 1);
    before = parts_aside();
    app_do(&a, "BEGIN");
    for (int i = 0; i < 10; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "part-%d", i);
        put_in(&a, id, "total", 60000);
    }
    app_do(&a, "COMMIT");
    wait_for_count("SELECT count(*) FROM task WHERE id LIKE 'part-%'", 10);
    CHECK(parts_aside() > before, "many that are not small");
    wait_for_count(WAITING, 0);
}

/* ---- whoever dies ---- */

/* Orders, each with its task, as fast as it can, until it is killed. Some share an id. */
static void be_an_application(uint32_t number)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct app a = app_open();
    char why[300];

    for (uint32_t i = 0;; i++) {
        char text[300];
        (void)
            snprintf(text, sizeof text,
                     "BEGIN%s; INSERT INTO app_order VALUES ('k-%u-%u'); INSERT INTO submit "
                     "(workflow, id, input) VALUES ('order', 'k-%u-%u', '{\"total\": %u}'); COMMIT",
                     store_is_postgres() ? "" : " IMMEDIATE", number, i, number, i, i);
        if (!app_try(&a, text, why, sizeof why))
            (void)app_try(&a, "ROLLBACK", why, sizeof why);
    }
}

static pid_t start_application(uint32_t number)
{
    pid_t pid = fork();

    CHECK(pid >= 0, "fork");
    if (pid == 0) {
        be_an_application(number);
        _exit(1);
    }
    return pid;
}

static void kill_application(pid_t pid)
{
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "it was there");
}

static void orders_and_tasks_agree_whoever_is_killed(void **state)
{
    (void)state;
    struct prng random = {.state = (uint64_t)steady_ms()};
    pid_t apps[3] = {0};
    uint32_t number = 0;

    for (size_t i = 0; i < COUNT_OF(apps); i++)
        apps[i] = start_application(number++);
    for (int round = 0; round < 30; round++) {
        size_t i = prng_below(&random, COUNT_OF(apps));
        sleep_ms((int)prng_below(&random, 60));
        kill_application(apps[i]);
        apps[i] = start_application(number++);
        if (round % 3 == 0) {
            sleep_ms((int)prng_below(&random, 100));
            node_kill(&node);
            node_start(&node, FLAGS("--log", "info"));
        }
    }
    for (size_t i = 0; i < COUNT_OF(apps); i++)
        kill_application(apps[i]);
    wait_for_count(WAITING, 0);
    CHECK(count("SELECT count(*) FROM app_order") > 0, "there were orders");
    CHECK(count("SELECT count(*) FROM app_order AS o WHERE NOT EXISTS (SELECT 1 FROM task AS t "
                "WHERE t.id = o.id)")
              == 0,
          "each order has its task");
    CHECK(count("SELECT count(*) FROM task AS t WHERE NOT EXISTS (SELECT 1 FROM app_order AS o "
                "WHERE t.id = o.id)")
              == 0,
          "each task has its order");
    CHECK(count(REFUSED) == 0, "none was refused");
    if (!store_is_postgres()) {
        char *sound = sql(&node, "PRAGMA integrity_check");
        CHECK(strcmp(sound, "ok") == 0, "%s", sound);
        free(sound);
    }
}

/* ---- applications with bad habits ---- */

static void wait_for_log(const char *text)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (!node_log_has(&node, text)) {
        CHECK(steady_ms() < until, "the log tells of \"%s\"", text);
        sleep_ms(10);
    }
}

static void a_long_transaction_is_waited_for_and_named(void **state)
{
    (void)state;
    char who[80];

    if (store_is_postgres())
        return;
    APP a = app_open();
    app_do(&a, "BEGIN IMMEDIATE; INSERT INTO app_order VALUES ('slow')");
    int fd = ask(&node, "POST", "/v1/tasks", "application/json",
                 SLICE("{\"workflow\": \"order\", \"id\": \"o-1\", \"input\": {\"total\": 1}}"));
    (void)snprintf(who, sizeof who, "process %ld (", (long)getpid());
    wait_for_log("event=store_trouble");
    wait_for_log(who);
    app_do(&a, "COMMIT");
    wait_for_log("event=store_works_again");
    REPLY r = {0};
    hear(fd, &r);
    CHECK(r.status == 201 || r.status == 503, "answered %d", r.status);
    submit(&node, "plain", "o-2");
}

/* A value of the metrics, or -1. */
static int64_t metric(const char *name)
{
    REPLY r = {0};

    get(&node, &r, "/metrics");
    EXPECT(&r, 200);
    const char *found = strstr(r.raw, name); /* its HELP line has no digit behind it */
    while (found && (found[-1] != '\n' || found[strlen(name)] != ' '))
        found = strstr(found + 1, name);
    return found ? strtoll(found + strlen(name), NULL, 10) : -1;
}

static void how_long_it_is_held_up_is_a_metric(void **state)
{
    (void)state;
    int64_t until = steady_ms() + PATIENCE_MS;

    if (store_is_postgres())
        return;
    APP a = app_open();
    CHECK(metric("intact_store_held_seconds") == 0, "nobody is in the way");
    app_do(&a, "BEGIN IMMEDIATE; INSERT INTO app_order VALUES ('slow')");
    int fd = ask(&node, "POST", "/v1/tasks", "application/json",
                 SLICE("{\"workflow\": \"plain\", \"id\": \"o-1\"}"));
    while (metric("intact_store_held_seconds") < 2) {
        CHECK(steady_ms() < until, "it counts");
        sleep_ms(50);
    }
    app_do(&a, "COMMIT");
    wait_for_log("event=store_works_again");
    CHECK(metric("intact_store_held_seconds") == 0, "it is over");
    REPLY r = {0};
    hear(fd, &r);
}

static void who_starts_waits_for_a_transaction(void **state)
{
    (void)state;
    char who[80];

    if (store_is_postgres())
        return;
    node_stop(&node);
    APP a = app_open();
    app_do(&a, "BEGIN IMMEDIATE; INSERT INTO app_order VALUES ('slow')");
    app_do(&a,
           "INSERT INTO submit (workflow, id, input) VALUES ('order', 'o-1', '{\"total\": 1}')");
    node_begin(&node, FLAGS("--log", "info"));
    (void)snprintf(who, sizeof who, "process %ld (", (long)getpid());
    wait_for_log("event=store_waits");
    CHECK(node_log_has(&node, who), "it says for whom");
    CHECK(node_wait(&node, 2000) == -1, "it goes on waiting");
    app_do(&a, "COMMIT");
    wait_for_count("SELECT count(*) FROM task WHERE id = 'o-1'", 1);
}

static void what_applications_may_not_do_is_refused(void **state)
{
    (void)state;
    char why[300];

    if (store_is_postgres())
        return;
    APP a = app_open();
    (void)sqlite3_busy_timeout(a.lite, 0);
    CHECK(!app_try(&a, "PRAGMA journal_mode = DELETE", why, sizeof why), "the WAL stays");
    (void)sqlite3_busy_timeout(a.lite, PATIENCE_MS);
    app_do(&a, "PRAGMA wal_autocheckpoint = 1");
    for (int i = 0; i < 50; i++)
        app_do(&a, "INSERT INTO submit (workflow, input) VALUES ('order', '{\"total\": 1}')");
    int log = 0;
    int done = 0;
    CHECK(sqlite3_wal_checkpoint_v2(a.lite, NULL, SQLITE_CHECKPOINT_PASSIVE, &log, &done)
              == SQLITE_BUSY,
          "only the server checkpoints");
    app_do(&a, "VACUUM");
    wait_for_count("SELECT count(*) FROM task", 50);
    submit(&node, "plain", "after");
}

static void a_wal_that_is_deleted_costs_nothing(void **state)
{
    (void)state;
    char path[120];

    if (store_is_postgres())
        return;
    for (int i = 0; i < 2; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "o-%d", i);
        submit(&node, "plain", id);
        (void)snprintf(path, sizeof path, "%s/intact.db-%s", node.data, i ? "shm" : "wal");
        CHECK(unlink(path) == 0, "%s", path);
        REPLY r = {0};
        post(&node, &r, "/v1/tasks",
             "{\"workflow\": \"order\", \"id\": \"x\", \"input\": {\"total\": 1}}");
        wait_for_log("-wal or -shm was moved, removed or replaced");
        wait_until_ready(&node);
        submit(&node, "plain", i ? "z" : "y");
        CHECK(count("SELECT count(*) FROM task WHERE id LIKE 'o-%'") == i + 1, "nothing is lost");
        node_stop(&node);
        node_start(&node, FLAGS("--log", "info"));
    }
    CHECK(count("SELECT count(*) FROM task WHERE id = 'y'") == 1, "nor what came later");
}

/* ---- through a pooler ---- */

static void pooled_put(PGconn *c, int number, bool by_function)
{
    struct app a = {.pg = c};
    char text[300];

    if (by_function)
        (void)snprintf(text, sizeof text, "SELECT %s.submit(workflow => 'plain', id => 'p-%d')",
                       node.schema, number);
    else
        (void)snprintf(text, sizeof text,
                       "BEGIN; INSERT INTO %s.submit (workflow, id) VALUES ('plain', 'p-%d')",
                       node.schema, number);
    app_do(&a, text);
}

/* Applications share fewer connections than there are of them: nothing may hang on the session. */
static void a_pooler_in_between_makes_no_difference(void **state)
{
    PGconn *c[8];
    (void)state;

    if (!store_is_postgres())
        return;
    for (int i = 0; i < (int)COUNT_OF(c); i++) {
        c[i] = PQconnectdb(bouncer_conninfo());
        CHECK(PQstatus(c[i]) == CONNECTION_OK, "%s", PQerrorMessage(c[i]));
    }
    for (int i = 0; i < 40; i++) {
        PGconn *one = c[i % (int)COUNT_OF(c)];
        pooled_put(one, i, i % 4 == 0);
        struct app a = {.pg = one};
        if (i % 4 != 0)
            app_do(&a, i % 4 == 1 ? "ROLLBACK" : "COMMIT");
    }
    wait_for_count("SELECT count(*) FROM task WHERE id LIKE 'p-%'", 30);
    wait_for_count(WAITING, 0);
    for (size_t i = 0; i < COUNT_OF(c); i++)
        PQfinish(c[i]);
}

/* ---- quiet ---- */

/* When each file of the folder was last written, and what this process has given to the disk. */
static void put_traces(struct buf *ret)
{
    static const char *const names[] = {"intact.db", "intact.db-wal", "lock", "."};
    char path[160];
    char line[100];

    buf_clear(ret);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct stat st = {0};
        (void)snprintf(path, sizeof path, "%s/%s", node.data, names[i]);
        CHECK(stat(path, &st) == 0, "%s", path);
        buf_fmt(ret, "%s %ld.%09ld %ld; ", names[i], (long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec,
                (long)st.st_size);
    }
    (void)snprintf(path, sizeof path, "/proc/%ld/io", (long)node.pid);
    FILE *f = fopen(path, "r");
    CHECK(f, "%s", path);
    while (fgets(line, sizeof line, f))
        if (strncmp(line, "write_bytes", 11) == 0)
            buf_str(ret, line);
    (void)fclose(f);
    buf_byte(ret, 0);
}

/* It watches the file, and looks into it once a second. */
static void while_nothing_happens_nothing_is_written(void **state)
{
    enum { QUIET_MS = 5000 };
    CLEANUP(buf_fini) struct buf before = {0};
    CLEANUP(buf_fini) struct buf after = {0};
    int64_t until = steady_ms() + PATIENCE_MS;
    (void)state;

    if (store_is_postgres())
        return;
    APP a = app_open();
    app_do(&a, "INSERT INTO submit (workflow, id) VALUES ('plain', 'o-1')");
    wait_for_count("SELECT count(*) FROM task WHERE id = 'o-1'", 1);
    do { /* what was put off until it is quiet comes first: a checkpoint, the mark of the time */
        put_traces(&before);
        sleep_ms(QUIET_MS);
        put_traces(&after);
        CHECK(steady_ms() < until, "it writes on and on:\n%s\n%s", before.ptr, after.ptr);
    } while (strcmp(before.ptr, after.ptr) != 0);
    app_do(&a, "INSERT INTO submit (workflow, id) VALUES ('plain', 'o-2')");
    wait_for_count("SELECT count(*) FROM task WHERE id = 'o-2'", 1); /* and it still watches */
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, start, node_end)
        T(an_order_and_its_task_exist_together),
        T(without_an_id_it_gets_one),
        T(the_same_again_is_one_task),
        T(what_others_than_the_submitter_approve_is_refused),
        T(what_is_wrong_is_refused_and_kept),
        T(a_column_adds_nothing_to_the_submission),
        T(a_long_id_leaves_room_for_the_reason),
        T(what_queues_brought_is_put_aside),
        T(who_asks_for_it_is_told_at_once),
        T(what_came_while_nobody_was_there_is_taken_at_the_start),
        T(many_at_once_are_taken_in_parts),
        T(large_ones_are_read_beside_the_loop),
        T(orders_and_tasks_agree_whoever_is_killed),
        T(a_long_transaction_is_waited_for_and_named),
        T(how_long_it_is_held_up_is_a_metric),
        T(who_starts_waits_for_a_transaction),
        T(what_applications_may_not_do_is_refused),
        T(a_wal_that_is_deleted_costs_nothing),
        T(while_nothing_happens_nothing_is_written),
        T(a_pooler_in_between_makes_no_difference),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests_name("inbox", tests, NULL, NULL);
}
