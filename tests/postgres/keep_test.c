/*
 * Retention does not trust the database's clock alone: the store uses a replaced clock_timestamp()
 * set ahead, like the clock of another server after a failover.
 */

#include <libpq-fe.h>

#include "cluster.h"
#include "e2e/kit.h"

static struct node node;

static void execute(const char *sql)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());
    PGresult *r = PQexec(conn, sql);

    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK, "%s", PQerrorMessage(conn));
    PQclear(r);
    PQfinish(conn);
}

static int start(void **state)
{
    char store[300];

    execute("CREATE SCHEMA another; CREATE TABLE another.off (ms BIGINT);"
            "INSERT INTO another.off VALUES (0);"
            "CREATE FUNCTION another.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE "
            "AS 'SELECT pg_catalog.clock_timestamp() + ms * interval ''1 millisecond'' FROM "
            "another.off'");
    (void)snprintf(store, sizeof store, "%s options='-csearch_path=another,pg_catalog'",
                   cluster_conninfo());
    *state = node_open(&node, FLAGS("--store", store, "--node", "n1", "--keep", "30d"));
    define(&node, "w",
           "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": "
           "\"none\"}]");
    return 0;
}

static void a_clock_that_stands_ahead_makes_nothing_old(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "w", "young");
    serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, "young", "processed");
    execute("UPDATE another.off SET ms = 60 * 24 * 3600000::bigint");
    int64_t until = steady_ms() + PATIENCE_MS;
    do { /* until the node goes by it */
        CHECK(steady_ms() < until, "the clock is not heard of");
        sleep_ms(50);
        get(&node, &r, "/v1/stats");
    } while (time_at(&r, "now") < now_ms() + INT64_C(59) * 24 * 3600000);
    post(&node, &r, "/v1/retire", "{\"older_than\": \"30d\"}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "tasks", 0);
    post(&node, &r, "/v1/retire", "{\"ended_before\": \"9000-01-01T00:00:00Z\"}");
    expect_problem(&r, 422, "bad-retire");
    sleep_ms(8000); /* a pass of --keep and more: it begins with the first second */
    get(&node, &r, "/v1/tasks/young");
    EXPECT(&r, 200);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clock_that_stands_ahead_makes_nothing_old),
    };
    return cmocka_run_group_tests_name("keeping", tests, start, node_end);
}
