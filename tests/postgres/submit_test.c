/* Tests of submissions in SQL that only PostgreSQL has: times without an end, and roles that are
 * set after another one has logged in. tests/e2e/inbox_test.c has those of both stores. */

#include "e2e/kit.h"

#include <libpq-fe.h>
#include <stdlib.h>

#include "cluster.h"

static struct node node;
static PGconn *app;

static bool app_try(const char *text, char *ret_why, size_t size)
{
    PGresult *r = PQexec(app, text);
    bool good = PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;

    (void)snprintf(ret_why, size, "%s", good ? "" : PQerrorMessage(app));
    PQclear(r);
    return good;
}

static void app_do(const char *text)
{
    char why[500];

    CHECK(app_try(text, why, sizeof why), "%s: %s", text, why);
}

static int start(void **state)
{
    char text[100];

    *state = node_open(&node, FLAGS("--log", "info"));
    define(&node, "order",
           "\"inputs\": {\"total\": {\"type\": \"number\"}}, \"steps\": [{\"name\": \"a\", "
           "\"agent\": \"nobody\", \"action\": \"x\", \"undo\": \"none\"}]");
    app = PQconnectdb(cluster_conninfo());
    CHECK(PQstatus(app) == CONNECTION_OK, "%s", PQerrorMessage(app));
    (void)snprintf(text, sizeof text, "SET search_path = %s", node.schema);
    app_do(text);
    return 0;
}

static int stop(void **state)
{
    PQfinish(app);
    return node_end(state);
}

static void wait_for_count(const char *query, int64_t want)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (sql_int(&node, query) != want) {
        CHECK(steady_ms() < until, "%s is not %" PRId64, query, want);
        sleep_ms(5);
    }
}

#define REFUSED "SELECT count(*) FROM submission WHERE refused_at IS NOT NULL"

/* As no time it would begin at once. */
static void a_time_that_never_comes_is_refused(void **state)
{
    char why[500];
    (void)state;

    app_do("INSERT INTO submit (workflow, not_before) VALUES ('order', 'infinity')");
    wait_for_count(REFUSED " AND reason LIKE 'not_before is \"infinity\"%'", 1);
    CHECK(!app_try("INSERT INTO submit (workflow, not_before, on_error) VALUES ('order', "
                   "'-infinity', 'raise')",
                   why, sizeof why)
              && strstr(why, "not_before is -infinity, expected a time"),
          "%s", why);
    CHECK(sql_int(&node, "SELECT count(*) FROM task") == 0, "one was taken");
}

/* A pooler logs in as one role, which may read tasks, and sets another, which may not. */
static void the_role_that_is_set_learns_nothing(void **state)
{
    const char *insert = "INSERT INTO submit (workflow, id, input, on_error) VALUES ('order', "
                         "'there', '{\"total\": 2}', 'raise')";
    char text[200];
    char why[500];
    (void)state;

    app_do("INSERT INTO submit (workflow, id, input) VALUES ('order', 'there', '{\"total\": 1}')");
    wait_for_count("SELECT count(*) FROM task", 1);
    CHECK(!app_try(insert, why, sizeof why) && strstr(why, "is that of another task"), "%s", why);
    app_do("CREATE ROLE guesser");
    (void)snprintf(text, sizeof text,
                   "GRANT USAGE ON SCHEMA %s TO guesser; GRANT INSERT ON submit TO guesser",
                   node.schema);
    app_do(text);
    app_do("SET ROLE guesser");
    app_do(insert);
    app_do("RESET ROLE");
    app_do("DROP OWNED BY guesser; DROP ROLE guesser");
    wait_for_count(REFUSED, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_time_that_never_comes_is_refused, start, stop),
        cmocka_unit_test_setup_teardown(the_role_that_is_set_learns_nothing, start, stop),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests_name("submit", tests, NULL, NULL);
}
