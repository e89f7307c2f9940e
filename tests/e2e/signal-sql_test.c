/* Signals that an application inserts by SQL, in the transactions of its own rows: each is decided
 * once, or is kept as refused, whichever server dies at any moment. Over PostgreSQL with two
 * nodes. */

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "base/prng.h"
#include "kit.h"
#include "postgres/cluster.h"

enum { TASKS = 40, EACH = 5, KILLS = 8, CROWD = 2000, CROWD_STEPS = 100 };

static struct node nodes[2];
static size_t node_count;

/* ---- an application's connection ---- */

struct app {
    sqlite3 *lite;
    PGconn *pg;
};

static void app_do(struct app *a, const char *text)
{
    if (a->lite) {
        char *why = NULL;
        CHECK(sqlite3_exec(a->lite, text, NULL, NULL, &why) == SQLITE_OK, "%s: %s", text, why);
        return;
    }
    PGresult *r = PQexec(a->pg, text);
    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK, "%s: %s",
          text, PQerrorMessage(a->pg));
    PQclear(r);
}

static struct app app_open(void)
{
    struct app a = {0};
    char text[200];

    if (store_is_postgres()) {
        a.pg = PQconnectdb(cluster_conninfo());
        CHECK(PQstatus(a.pg) == CONNECTION_OK, "%s", PQerrorMessage(a.pg));
        (void)snprintf(text, sizeof text, "SET search_path = %s", nodes[0].schema);
        app_do(&a, text);
        return a;
    }
    (void)snprintf(text, sizeof text, "%s/intact.db", nodes[0].data);
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
    return sql_int(&nodes[0], query);
}

static void wait_for_count(const char *query, int64_t want)
{
    WAIT_FOR(count(query) == want, query);
}

#define WAITING "SELECT count(*) FROM notice WHERE refused_at IS NULL"

static void begin_with(struct node *n, const char *grace)
{
    char token[sizeof n->token];

    memcpy(token, n->token, sizeof token); /* that of the first node, which has the file */
    node_start(n, FLAGS("--scan-every", "100ms", "--drain", "200ms", "--grace", grace));
    memcpy(n->token, token, sizeof token);
}

static void begin(struct node *n)
{
    begin_with(n, "10s");
}

static int start(void **state)
{
    (void)state;
    node_count = store_is_postgres() ? 2 : 1;
    if (node_count == 1)
        node_init(&nodes[0]);
    else
        nodes_init(nodes, node_count);
    nodes_start(nodes, node_count, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    define(&nodes[0], "go", "\"steps\": [{\"name\": \"a\", \"signal\": {\"name\": \"go\"}}]");
    define(&nodes[0], "many",
           "\"steps\": [{\"name\": \"s0\", \"signal\": {\"name\": \"go\"}},"
           "{\"name\": \"s1\", \"signal\": {\"name\": \"go\"}},"
           "{\"name\": \"s2\", \"signal\": {\"name\": \"go\"}},"
           "{\"name\": \"s3\", \"signal\": {\"name\": \"go\"}},"
           "{\"name\": \"s4\", \"signal\": {\"name\": \"go\"}}]");
    CLEANUP(buf_fini) struct buf steps = {0};
    buf_str(&steps, "\"steps\": [");
    for (int i = 0; i < CROWD_STEPS; i++)
        buf_fmt(&steps, "%s{\"name\": \"s%d\", \"signal\": {\"name\": \"go\"}}", i ? "," : "", i);
    buf_str(&steps, "]");
    define(&nodes[0], "crowd", steps.ptr);
    APP a = app_open();
    app_do(&a, "CREATE TABLE app_payment (id TEXT PRIMARY KEY)");
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < node_count; i++)
        if (nodes[i].pid)
            node_kill(&nodes[i]);
    for (size_t i = 0; i < node_count; i++)
        node_fini(&nodes[i]);
    return 0;
}

static void submit_to(size_t n, const char *workflow, const char *id)
{
    submit(&nodes[n % node_count], workflow, id);
}

/* ---- what is inserted ---- */

static void a_payment_and_its_signal_are_one(void **state)
{
    REPLY r = {0};
    (void)state;
    APP a = app_open();

    submit_to(0, "go", "s-1");
    app_do(&a, "BEGIN");
    app_do(&a, "INSERT INTO app_payment VALUES ('p-0')");
    app_do(&a, "INSERT INTO signal (task, name, data, id) VALUES ('s-1', 'go', '0', 'p-0')");
    app_do(&a, "ROLLBACK");
    app_do(&a, "BEGIN");
    app_do(&a, "INSERT INTO app_payment VALUES ('p-1')");
    app_do(&a, "INSERT INTO signal (task, name, data, id) VALUES "
               "('s-1', 'go', '{\"amount\": 5}', 'p-1')");
    app_do(&a, "COMMIT");
    wait_for_state(&nodes[0], "s-1", "processed");
    task_of(&nodes[0], &r, "s-1");
    EXPECT_INT(&r, "steps.0.output.data.amount", 5);
    wait_for_count(WAITING, 0);
    CHECK(count("SELECT count(*) FROM task_signal WHERE task = 's-1' AND key = 'p-1'") == 1,
          "its key");
    get(&nodes[0], &r, "/v1/audit?task=s-1");
    EXPECT_TEXT(&r, "entries.0.verb", "signal");
    EXPECT_TEXT(&r, "entries.0.actor", "sql");
    EXPECT_TEXT(&r, "entries.0.detail.id", "p-1");
    CHECK(!at(&r, "entries.1"), "it counts once: %.*s", SLICE_ARG(r.body));
    post(&nodes[0], &r, "/v1/tokens", "{\"name\": \"sql\", \"roles\": [\"read\"]}");
    expect_problem(&r, 422, "bad-token");
}

static void a_signal_waits_for_its_submission(void **state)
{
    (void)state;
    APP a = app_open();

    app_do(&a, "BEGIN");
    app_do(&a, "INSERT INTO signal (task, name) VALUES ('s-2', 'go')");
    app_do(&a, "INSERT INTO submit (workflow, id) VALUES ('go', 's-2')");
    app_do(&a, "COMMIT");
    WAIT_FOR(count("SELECT count(*) FROM task WHERE id = 's-2' AND state = 'processed'") == 1,
             "it has both");
    wait_for_count(WAITING, 0);
}

static bool counts_refused(int64_t want)
{
    CLEANUP(buf_fini) struct buf line = {0};
    REPLY r = {0};

    get(&nodes[0], &r, "/metrics");
    buf_fmt(&line, "\nintact_signals_refused %d\n", (int)want);
    return memmem(r.body.ptr, r.body.len, line.ptr, line.len) != NULL;
}

static void what_cannot_be_taken_is_kept(void **state)
{
    (void)state;
    APP a = app_open();

    submit_to(0, "go", "s-3");
    app_do(&a, "INSERT INTO signal (task, name, id) VALUES ('nobody', 'go', 'k-1')");
    app_do(&a, "INSERT INTO signal (task, name, id) VALUES ('s-3', 'stop', 'k-2')");
    app_do(&a, "INSERT INTO signal (task, name, id) VALUES ('s-3', 'go', 'a b')");
    app_do(&a, "INSERT INTO signal (task, name, id) VALUES ('s-3', 'No!', 'k-4')");
    if (a.lite)
        app_do(&a, "INSERT INTO signal (task, name, data, id) VALUES ('s-3', 'go', '{', 'k-5')");
    wait_for_count("SELECT count(*) FROM refused_signal", a.lite ? 5 : 4);
    CHECK(count("SELECT count(*) FROM refused_signal WHERE id = 'k-1' AND reason LIKE '%no task%'")
              == 1,
          "no task");
    CHECK(count("SELECT count(*) FROM refused_signal WHERE id = 'k-2' AND reason LIKE '%waits for "
                "a signal%'")
              == 1,
          "no step");
    WAIT_FOR(counts_refused(a.lite ? 5 : 4), "the metric");
    app_do(&a, "DELETE FROM refused_signal");
    CHECK(count("SELECT count(*) FROM notice") == 0, "they can be dropped");
    WAIT_FOR(counts_refused(0), "the metric");
    app_do(&a, "INSERT INTO signal (task, name) VALUES ('s-3', 'go')");
    wait_for_state(&nodes[0], "s-3", "processed");
}

/* 20 of a name are kept. Later ones wait, also those of other names. */
static void what_a_task_has_no_room_for_waits(void **state)
{
    CLEANUP(buf_fini) struct buf steps = {0};
    char text[200];
    REPLY r = {0};
    (void)state;
    APP a = app_open();

    buf_str(&steps, "\"steps\": [{\"name\": \"s\", \"signal\": {\"name\": \"begin\"}}");
    for (int i = 0; i < 25; i++)
        buf_fmt(&steps, ",{\"name\": \"s%d\", \"signal\": {\"name\": \"go\"}}", i);
    buf_str(&steps, ",{\"name\": \"e\", \"signal\": {\"name\": \"end\"}}]");
    (void)define(&nodes[0], "late", steps.ptr);
    submit_to(0, "late", "s-8");
    app_do(&a, "BEGIN");
    for (int i = 0; i < 25; i++) {
        (void)snprintf(text, sizeof text,
                       "INSERT INTO signal (task, name, data) VALUES ('s-8', 'go', '%d')", i);
        app_do(&a, text);
    }
    app_do(&a, "INSERT INTO signal (task, name) VALUES ('s-8', 'end')");
    app_do(&a, "COMMIT");
    wait_for_count("SELECT count(*) FROM task_signal WHERE task = 's-8'", 20);
    wait_for_count(WAITING, 6);
    CHECK(count("SELECT count(*) FROM refused_signal") == 0, "none is refused");
    post(&nodes[0], &r, "/v1/tasks/s-8/signals/begin", "1");
    EXPECT(&r, 200);
    wait_for_state(&nodes[0], "s-8", "processed");
    task_of(&nodes[0], &r, "s-8");
    for (int i = 0; i < 25; i++) {
        (void)snprintf(text, sizeof text, "steps.%d.output.data", i + 1);
        CHECK(int_at(&r, text) == i, "step %d has %d", i, (int)int_at(&r, text));
    }
    wait_for_count(WAITING, 0);
    CHECK(count("SELECT count(*) FROM refused_signal") == 0, "none is refused");
}

/* Data of 10 MB, names of 1 MB, nothing at all: the application's transaction is done. */
static void what_is_no_signal_by_its_size_is_refused(void **state)
{
    (void)state;
    APP a = app_open();

    app_do(&a, "BEGIN");
    app_do(&a, a.lite ? "INSERT INTO signal (task, name, data) VALUES "
                        "('s-5', 'go', '\"' || hex(zeroblob(5000000)) || '\"')"
                      : "INSERT INTO signal (task, name, data) VALUES "
                        "('s-5', 'go', to_json(repeat('0', 10000000)))");
    app_do(&a, a.lite ? "INSERT INTO signal (task, name) VALUES (hex(zeroblob(500000)), 'go')"
                      : "INSERT INTO signal (task, name) VALUES (repeat('0', 1000000), 'go')");
    app_do(&a,
           a.lite
               ? "INSERT INTO signal (task, id, name) VALUES ('s-5', hex(zeroblob(500000)), 'go')"
               : "INSERT INTO signal (task, id, name) VALUES ('s-5', repeat('0', 1000000), 'go')");
    app_do(&a, "INSERT INTO signal (task, name) VALUES (NULL, NULL)");
    app_do(&a, "COMMIT");
    wait_for_count("SELECT count(*) FROM refused_signal", 4);
    CHECK(count("SELECT count(*) FROM refused_signal WHERE reason = "
                "'data has 10000002 bytes, expected at most 65536'")
              == 1,
          "data");
    CHECK(count(
              "SELECT count(*) FROM refused_signal WHERE reason LIKE 'task, name and id have 10%'")
              == 2,
          "names");
    CHECK(count("SELECT count(*) FROM refused_signal WHERE length(data) = 10000002") == 1,
          "it is not lost");
    app_do(&a, "DELETE FROM refused_signal");
}

/* More than a page of them, of which one change takes a few only. They stay in their order. */
static void a_crowd_to_one_task_holds_up_no_other(void **state)
{
    char text[200];
    REPLY r = {0};
    (void)state;
    APP a = app_open();

    submit_to(0, "crowd", "s-6");
    submit_to(1, "go", "s-7");
    app_do(&a, "BEGIN");
    for (int i = 0; i < CROWD; i++) {
        (void)snprintf(text, sizeof text,
                       "INSERT INTO signal (task, name, data) VALUES ('s-6', 'go', '%d')", i);
        app_do(&a, text);
    }
    app_do(&a, "INSERT INTO signal (task, name) VALUES ('s-7', 'go')");
    app_do(&a, "COMMIT");
    wait_for_state(&nodes[1 % node_count], "s-7", "processed");
    wait_for_state(&nodes[0], "s-6", "processed");
    wait_for_count(WAITING, 0);
    int64_t kept = count("SELECT count(*) FROM task_signal WHERE task = 's-6'");
    int64_t refused = count("SELECT count(*) FROM refused_signal WHERE task = 's-6'");
    CHECK(kept >= CROWD_STEPS && kept + refused == CROWD,
          "%d and %d: none is lost, none counts twice", (int)kept, (int)refused);
    task_of(&nodes[0], &r, "s-6");
    for (int i = 0; i < CROWD_STEPS; i++) {
        (void)snprintf(text, sizeof text, "steps.%d.output.data", i);
        CHECK(int_at(&r, text) == i, "step %d has %d", i, (int)int_at(&r, text));
    }
    app_do(&a, "DELETE FROM refused_signal");
}

/* No node runs when the signal is committed. Returns when its step's time is over; 0: the machine
 * is so slow that it was over before. */
static int64_t commit_in_time(const char *id, int limit_s)
{
    char rest[160];
    char signal[100];
    REPLY r = {0};
    APP a = app_open();

    (void)snprintf(rest, sizeof rest,
                   "\"steps\": [{\"name\": \"a\", \"signal\": {\"name\": \"go\"}, "
                   "\"complete_by\": \"%ds\", \"default\": 7}]",
                   limit_s);
    (void)snprintf(signal, sizeof signal,
                   "INSERT INTO signal (task, name, data) VALUES ('%s', 'go', '1')", id);
    (void)define(&nodes[0], "soon", rest);
    submit_to(0, "soon", id);
    task_of(&nodes[0], &r, id);
    int64_t by = time_at(&r, "steps.0.complete_by");
    CHECK(by > 0, "it has a limit");
    for (size_t i = 0; i < node_count; i++)
        node_kill(&nodes[i]);
    app_do(&a, signal);
    return now_ms() < by ? by : 0;
}

/* Nobody reads it before that moment, and there is hardly any grace time. */
static void what_is_committed_in_time_counts(void **state)
{
    char id[20];
    REPLY r = {0};
    int64_t by = 0;
    (void)state;

    for (int limit_s = 1; by == 0; limit_s *= 4) {
        (void)snprintf(id, sizeof id, "s-9-%d", limit_s);
        by = commit_in_time(id, limit_s);
        WAIT_FOR(now_ms() > by, "it is over");
        for (size_t i = 0; i < node_count; i++)
            begin_with(&nodes[i], "1ms");
    }
    wait_for_state(&nodes[0], id, "processed");
    task_of(&nodes[0], &r, id);
    EXPECT_INT(&r, "steps.0.output.data", 1);
}

/* A repeated insert, under the same key, is the same signal. */
static void a_key_counts_once(void **state)
{
    REPLY r = {0};
    (void)state;
    APP a = app_open();

    submit_to(0, "many", "s-4");
    for (int i = 0; i < 3; i++)
        app_do(&a, "INSERT INTO signal (task, name, data, id) VALUES ('s-4', 'go', '1', 'k')");
    wait_for_count(WAITING, 0);
    task_of(&nodes[0], &r, "s-4");
    EXPECT_TEXT(&r, "steps.0.state", "completed");
    EXPECT_TEXT(&r, "steps.1.state", "waiting");
    CHECK(count("SELECT count(*) FROM refused_signal") == 0, "none was refused");
}

/* Each task takes its signals once, while servers are killed; in their order, if one node reads
 * them. */
static void servers_are_killed_meanwhile(void **state)
{
    struct prng chance = {.state = 7};
    char text[200];
    REPLY r = {0};
    (void)state;
    APP a = app_open();

    for (int i = 0; i < TASKS; i++) {
        (void)snprintf(text, sizeof text, "k-%d", i);
        submit_to((size_t)i, "many", text);
    }
    for (int k = 0; k < KILLS; k++) {
        size_t which = prng_below(&chance, (uint32_t)node_count);
        for (int n = k * EACH * TASKS / KILLS; n < (k + 1) * EACH * TASKS / KILLS; n++) {
            (void)snprintf(text, sizeof text,
                           "INSERT INTO signal (task, name, data) VALUES ('k-%d', 'go', '%d')",
                           n % TASKS, n / TASKS);
            app_do(&a, text);
        }
        sleep_ms((int)prng_below(&chance, 40));
        node_kill(&nodes[which]);
        begin(&nodes[which]);
    }
    wait_for_count(WAITING, 0);
    for (int i = 0; i < TASKS; i++) {
        (void)snprintf(text, sizeof text, "k-%d", i);
        wait_for_state(&nodes[0], text, "processed");
        task_of(&nodes[0], &r, text);
        int64_t sum = 0;
        for (int n = 0; n < EACH; n++) {
            (void)snprintf(text, sizeof text, "steps.%d.output.data", n);
            CHECK(node_count > 1 || int_at(&r, text) == n, "in their order: %.*s",
                  SLICE_ARG(r.body));
            sum += int_at(&r, text);
        }
        CHECK(sum == EACH * (EACH - 1) / 2, "each once: %.*s", SLICE_ARG(r.body));
    }
    CHECK(count("SELECT count(*) FROM notice") == 0, "none was refused");
    CHECK(count("SELECT count(*) FROM task_signal WHERE task LIKE 'k-%'") == TASKS * EACH,
          "each once");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_payment_and_its_signal_are_one),
        cmocka_unit_test(a_signal_waits_for_its_submission),
        cmocka_unit_test(what_cannot_be_taken_is_kept),
        cmocka_unit_test(what_a_task_has_no_room_for_waits),
        cmocka_unit_test(what_is_no_signal_by_its_size_is_refused),
        cmocka_unit_test(a_crowd_to_one_task_holds_up_no_other),
        cmocka_unit_test(what_is_committed_in_time_counts),
        cmocka_unit_test(a_key_counts_once),
        cmocka_unit_test(servers_are_killed_meanwhile),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, end);
}
