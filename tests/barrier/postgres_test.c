/* The barrier on PostgreSQL: errors, lost connections, savepoints, rights, and the deletion of old
 * records. orders_postgres_test.c has the orders of concurrent sessions. */

#include "base/test.h"

#include <intact/barrier_pq.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../postgres/cluster.h"

static PGconn *conn;

static int run(PGconn *c, const char *sql) /* a number, if it gives one */
{
    PGresult *res = PQexec(c, sql);
    ExecStatusType status = PQresultStatus(res);
    int n = PQntuples(res) > 0 ? atoi(PQgetvalue(res, 0, 0)) : 0;

    CHECK(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, "%s: %s", sql,
          PQerrorMessage(c));
    PQclear(res);
    return n;
}

static struct intact_barrier *ask(enum intact_verdict expected)
{
    struct intact_barrier *b = intact_barrier_new("t/s", INTACT_FORWARD);

    (void)run(conn, "BEGIN");
    CHECK(intact_barrier_pq(b, conn) == expected, "%u: %s", intact_barrier_verdict(b),
          intact_barrier_why(b));
    return b;
}

static void check_said(struct intact_barrier *b, enum intact_verdict verdict, const char *why)
{
    CHECK(intact_barrier_verdict(b) == verdict && strstr(intact_barrier_why(b), why), "%u: %s",
          intact_barrier_verdict(b), intact_barrier_why(b));
    intact_barrier_free(b);
}

static void mistakes_are_told(void **state)
{
    struct intact_barrier *b = intact_barrier_new("t/s", INTACT_FORWARD);

    (void)state;
    (void)intact_barrier_pq(b, conn);
    check_said(b, INTACT_BARRIER_FAILED, "no transaction is open");
    b = intact_barrier_new("", INTACT_UNDO);
    (void)run(conn, "BEGIN");
    (void)intact_barrier_pq(b, conn);
    CHECK(!intact_barrier_pq_end(b, conn), "ended");
    check_said(b, INTACT_BARRIER_FAILED, "key of the forward request is empty");
    CHECK(PQtransactionStatus(conn) == PQTRANS_IDLE, "rolled back");
    b = ask(INTACT_BARRIER_DO);
    CHECK(!intact_barrier_pq_done(b, conn, "{"), "it is not JSON");
    CHECK(!intact_barrier_pq_end(b, conn), "ended");
    check_said(b, INTACT_BARRIER_FAILED, "invalid input syntax for type json");
    CHECK(run(conn, "SELECT count(*) FROM intact_barrier") == 0, "nothing is on record");
}

/* PostgreSQL answers such a COMMIT with success. */
static void a_failed_statement_that_nobody_looked_at_is_no_commit(void **state)
{
    struct intact_barrier *b = ask(INTACT_BARRIER_DO);

    (void)state;
    PQclear(PQexec(conn, "SELECT 1 / 0"));
    CHECK(!intact_barrier_pq_end(b, conn), "committed");
    check_said(b, INTACT_BARRIER_FAILED, "rolled back");
    CHECK(run(conn, "SELECT count(*) FROM intact_barrier") == 0, "nothing is on record");
}

static void the_error_of_an_effect_says_whether_to_begin_again(void **state)
{
    static const struct {
        const char *state;
        enum intact_verdict verdict;
    } cases[] = {{"40001", INTACT_BARRIER_AGAIN},  {"40P01", INTACT_BARRIER_AGAIN},
                 {"55P03", INTACT_BARRIER_AGAIN},  {"53100", INTACT_BARRIER_AGAIN},
                 {"23505", INTACT_BARRIER_FAILED}, {"42P01", INTACT_BARRIER_FAILED}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct intact_barrier *b = ask(INTACT_BARRIER_DO);
        char sql[200];
        (void)snprintf(sql, sizeof sql, "DO $$ BEGIN RAISE 'so' USING ERRCODE = '%s'; END $$",
                       cases[i].state);
        PGresult *res = PQexec(conn, sql);
        CHECK(!intact_barrier_pq_ok(b, conn, res), "%s is fine", cases[i].state);
        PQclear(res);
        CHECK(!intact_barrier_pq_done(b, conn, "1") && !intact_barrier_pq_end(b, conn), "done");
        check_said(b, cases[i].verdict, "so");
    }
}

static void a_lost_connection_is_begun_again(void **state)
{
    PGconn *other = PQconnectdb(cluster_conninfo());
    char sql[80];

    (void)state;
    for (int at = 0; at < 2; at++) { /* between ask and done; at the commit */
        struct intact_barrier *b = ask(INTACT_BARRIER_DO);
        (void)snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d, 60000)::int",
                       PQbackendPID(conn));
        CHECK(run(other, sql) == 1, "it ends");
        if (at == 0)
            CHECK(!intact_barrier_pq_done(b, conn, "1"), "recorded");
        CHECK(!intact_barrier_pq_end(b, conn), "committed");
        check_said(b, INTACT_BARRIER_AGAIN, "");
        PQreset(conn);
        CHECK(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
    }
    struct intact_barrier *b = ask(INTACT_BARRIER_DO);
    CHECK(intact_barrier_pq_end(b, conn), "%s", intact_barrier_why(b));
    intact_barrier_free(b);
    b = ask(INTACT_BARRIER_REPEAT);
    CHECK(strcmp(intact_barrier_output(b), "null") == 0, "%s", intact_barrier_output(b));
    CHECK(intact_barrier_pq_end(b, conn), "%s", intact_barrier_why(b));
    intact_barrier_free(b);
    (void)run(conn, "DELETE FROM intact_barrier");
    PQfinish(other);
}

static void a_killed_database_is_begun_again(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct intact_barrier *b = ask(INTACT_BARRIER_DO);
        CHECK(intact_barrier_pq_done(b, conn, "1"), "%s", intact_barrier_why(b));
        if (i == 2)
            CHECK(intact_barrier_pq_end(b, conn), "%s", intact_barrier_why(b));
        cluster_kill();
        if (i < 2) {
            (void)intact_barrier_pq_end(b, conn);
            CHECK(intact_barrier_verdict(b) <= INTACT_BARRIER_DO
                      || intact_barrier_verdict(b) == INTACT_BARRIER_AGAIN,
                  "%s", intact_barrier_why(b));
        }
        bool said_done = intact_barrier_verdict(b) == INTACT_BARRIER_DO;
        intact_barrier_free(b);
        cluster_start();
        PQreset(conn);
        CHECK(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
        int there = run(conn, "SELECT count(*) FROM intact_barrier WHERE output IS NOT NULL");
        CHECK(!said_done || there == 1, "what was said to be committed is gone");
        CHECK(run(conn, "SELECT count(*) FROM intact_barrier") == there, "half of it");
        (void)run(conn, "DELETE FROM intact_barrier");
    }
}

static void *sets_up(void *ret_ok)
{
    PGconn *c = PQconnectdb(cluster_conninfo());
    char why[300] = "";
    bool ok = true;

    for (int i = 0; ok && i < 20; i++)
        ok = intact_barrier_pq_setup(c, why, sizeof why);
    if (!ok)
        fprintf(stderr, "%s\n", why);
    PQfinish(c);
    *(bool *)ret_ok = ok;
    return NULL;
}

static void several_make_the_table_at_once(void **state)
{
    enum { MANY = 6 };
    pthread_t threads[MANY];
    bool ok[MANY];

    (void)state;
    (void)run(conn, "DROP TABLE intact_barrier; DROP FUNCTION intact_barrier, intact_barrier_done,"
                    " intact_barrier_clean");
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_create(&threads[i], NULL, sets_up, &ok[i]) == 0, "a thread");
    for (int i = 0; i < MANY; i++)
        CHECK(pthread_join(threads[i], NULL) == 0 && ok[i], "%d", i);
}

static void old_records_go_in_parts(void **state)
{
    enum { DAY_MS = 24 * 3600 * 1000 };

    (void)state;
    (void)run(conn, "INSERT INTO intact_barrier(forward_key, at) SELECT n, clock_timestamp()"
                    " - CASE WHEN n > 5 THEN interval '2 days' ELSE '0' END"
                    " FROM generate_series(1, 25) AS n");
    CHECK(intact_barrier_pq_clean(conn, DAY_MS, 15) == 15, "in parts");
    CHECK(intact_barrier_pq_clean(conn, DAY_MS, 15) == 5, "the rest");
    CHECK(intact_barrier_pq_clean(conn, DAY_MS, 15) == 0, "all");
    CHECK(run(conn, "SELECT count(*) FROM intact_barrier") == 5, "the young ones stay");
    (void)run(conn, "DROP TABLE intact_barrier");
    CHECK(intact_barrier_pq_clean(conn, DAY_MS, 5) == -1, "no table");
}

/* A barrier about the same step, asked in the open transaction. */
static struct intact_barrier *ask_again(enum intact_direction direction,
                                        enum intact_verdict verdict)
{
    struct intact_barrier *b = intact_barrier_new("t/clerk", direction);

    CHECK(intact_barrier_pq(b, conn) == verdict, "%u: %s", intact_barrier_verdict(b),
          intact_barrier_why(b));
    return b;
}

static void once(enum intact_direction direction, enum intact_verdict verdict)
{
    (void)run(conn, "BEGIN");
    struct intact_barrier *b = ask_again(direction, verdict);
    if (verdict == INTACT_BARRIER_DO)
        CHECK(intact_barrier_pq_done(b, conn, "1"), "%s", intact_barrier_why(b));
    CHECK(intact_barrier_pq_end(b, conn), "%s", intact_barrier_why(b));
    intact_barrier_free(b);
}

static void a_role_needs_no_more_than_the_page_says(void **state)
{
    (void)state;
    (void)run(conn, "DELETE FROM intact_barrier");
    (void)run(conn, "CREATE ROLE clerk");
    (void)run(conn, "GRANT SELECT, INSERT, UPDATE ON intact_barrier TO clerk");
    (void)run(conn, "SET ROLE clerk");
    once(INTACT_FORWARD, INTACT_BARRIER_DO);
    once(INTACT_FORWARD, INTACT_BARRIER_REPEAT);
    once(INTACT_UNDO, INTACT_BARRIER_DO);
    once(INTACT_UNDO, INTACT_BARRIER_REPEAT);
    once(INTACT_FORWARD, INTACT_BARRIER_UNDONE);
    (void)run(conn, "RESET ROLE");
    (void)run(conn, "DROP OWNED BY clerk");
    (void)run(conn, "DROP ROLE clerk");
    (void)run(conn, "DELETE FROM intact_barrier");
}

static void what_a_savepoint_took_back_is_asked_anew(void **state)
{
    (void)state;
    (void)run(conn, "BEGIN");
    (void)run(conn, "SAVEPOINT before");
    struct intact_barrier *b = ask_again(INTACT_FORWARD, INTACT_BARRIER_DO);
    (void)run(conn, "ROLLBACK TO before");
    CHECK(!intact_barrier_pq_done(b, conn, "1"), "it is not on record any more");
    intact_barrier_free(b);
    (void)run(conn, "ROLLBACK TO before");
    b = ask_again(INTACT_FORWARD, INTACT_BARRIER_DO);
    CHECK(intact_barrier_pq_done(b, conn, "2"), "%s", intact_barrier_why(b));
    (void)run(conn, "SAVEPOINT behind");
    (void)run(conn, "ROLLBACK TO behind");
    CHECK(intact_barrier_pq_end(b, conn), "%s", intact_barrier_why(b));
    intact_barrier_free(b);
    once(INTACT_FORWARD, INTACT_BARRIER_REPEAT);
    (void)run(conn, "DELETE FROM intact_barrier");
}

static void why_there_is_no_connection_is_told(void **state)
{
    PGconn *c = PQconnectdb("host=/nowhere-at-all");
    char why[300] = "";

    (void)state;
    CHECK(!intact_barrier_pq_setup(c, why, sizeof why) && strstr(why, "/nowhere-at-all"), "%s",
          why);
    PQfinish(c);
}

static int set_up(void **state)
{
    char why[200] = "";

    (void)state;
    conn = PQconnectdb(cluster_conninfo());
    CHECK(intact_barrier_pq_setup(conn, why, sizeof why), "%s", why);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    PQfinish(conn);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(a_failed_statement_that_nobody_looked_at_is_no_commit),
        cmocka_unit_test(the_error_of_an_effect_says_whether_to_begin_again),
        cmocka_unit_test(a_lost_connection_is_begun_again),
        cmocka_unit_test(a_killed_database_is_begun_again),
        cmocka_unit_test(a_role_needs_no_more_than_the_page_says),
        cmocka_unit_test(what_a_savepoint_took_back_is_asked_anew),
        cmocka_unit_test(why_there_is_no_connection_is_told),
        cmocka_unit_test(several_make_the_table_at_once),
        cmocka_unit_test(old_records_go_in_parts),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
