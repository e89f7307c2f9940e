/*
 * A database whose clock is set, or whose standby has a different clock: the store uses a replaced
 * clock_timestamp() whose offset is read from a table.
 */

#include "base/test.h"

#include <stdlib.h>
#include <time.h>

#include <libpq-fe.h>

#include "cluster.h"
#include "store/postgres/postgres.h"

enum { HOUR_MS = 3600000, SLACK_MS = 600000 }; /* slack: however slow the machine is */

struct world {
    struct store *s;
    PGconn *conn;
    struct arena a;
    struct error e;
};

static void execute(struct world *w, const char *sql)
{
    PGresult *r = PQexec(w->conn, sql);

    CHECK(PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK, "%s",
          PQerrorMessage(w->conn));
    PQclear(r);
}

static void set_clock(struct world *w, int64_t off_ms)
{
    char sql[80];

    (void)snprintf(sql, sizeof sql, "UPDATE another.off SET ms = %" PRId64, off_ms);
    execute(w, sql);
}

static void open_store(struct world *w)
{
    char conninfo[300];

    (void)snprintf(conninfo, sizeof conninfo, "%s options='-csearch_path=another,pg_catalog'",
                   cluster_conninfo());
    const struct postgres_options o = {.conninfo = conninfo, .schema = "clock_test", .node = "n1"};
    enum err err = postgres_store_open(&o, &w->s, &w->e);
    CHECK(err == ERR_OK, "%s", w->e.text);
}

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);

    ASSERT(w);
    w->conn = PQconnectdb(cluster_conninfo());
    execute(w, "SET client_min_messages = warning");
    execute(
        w,
        "DROP SCHEMA IF EXISTS another CASCADE; DROP SCHEMA IF EXISTS clock_test CASCADE;"
        "CREATE SCHEMA another; CREATE TABLE another.off (ms BIGINT);"
        "INSERT INTO another.off VALUES (0);"
        "CREATE FUNCTION another.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS "
        "'SELECT pg_catalog.clock_timestamp() + ms * interval ''1 millisecond'' FROM another.off'");
    open_store(w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    w->s->ops->close(w->s);
    PQfinish(w->conn);
    arena_fini(&w->a);
    free(w);
    return 0;
}

static int64_t off(struct world *w)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return w->s->ops->now(w->s) - ((int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000);
}

static bool is_about(int64_t ms, int64_t want)
{
    return ms > want - SLACK_MS && ms < want + SLACK_MS;
}

static struct lease lease(struct world *w, const char *holder, int64_t length_ms)
{
    const struct lease_try want = {.name = SLICE("l"),
                                   .holder = slice_of(holder),
                                   .now = w->s->ops->now(w->s),
                                   .length_ms = length_ms};
    struct lease l = {0};
    enum err err = w->s->ops->lease(w->s, &want, &w->a, &l, &w->e);

    CHECK(err == ERR_OK, "%s", w->e.text);
    return l;
}

static void a_clock_that_is_set_ahead_is_followed_with_the_next_lease(void **state)
{
    struct world *w = *state;

    CHECK(is_about(off(w), 0), "%" PRId64, off(w));
    set_clock(w, HOUR_MS);
    CHECK(is_about(off(w), 0), "nobody has asked yet");
    struct lease l = lease(w, "n1/1", 30000);
    CHECK(is_about(off(w), HOUR_MS), "%" PRId64, off(w));
    CHECK(l.until <= w->s->ops->now(w->s) + SLACK_MS, "by the new one");
}

static void a_clock_that_is_set_back_is_waited_for(void **state)
{
    struct world *w = *state;

    set_clock(w, HOUR_MS);
    (void)lease(w, "n1/1", 30000);
    int64_t last = w->s->ops->now(w->s);
    set_clock(w, 0);
    for (unsigned i = 0; i < 50; i++) {
        (void)lease(w, "n1/1", 30000);
        int64_t now = w->s->ops->now(w->s);
        CHECK(now >= last, "%" PRId64 " after %" PRId64, now, last);
        last = now;
    }
    CHECK(is_about(off(w), HOUR_MS), "not a step back: %" PRId64, off(w));
}

static void leases_are_judged_by_the_clock_as_it_is_now(void **state)
{
    struct world *w = *state;

    struct lease l = lease(w, "n1/1", 30000);
    struct lease other = lease(w, "n2/1", 30000);
    CHECK(slice_is(other.holder, "n1/1"), "it runs");
    set_clock(w, HOUR_MS);
    other = lease(w, "n2/1", 30000);
    CHECK(slice_is(other.holder, "n2/1") && other.epoch == l.epoch + 1, "it has run out");
    set_clock(w, 0);
    l = lease(w, "n1/1", 30000);
    CHECK(slice_is(l.holder, "n1/1"), "nobody waits an hour for a lease of half a minute");
}

static void a_new_connection_asks_for_the_time(void **state)
{
    struct world *w = *state;
    struct task_row row;
    enum err err = ERR_IO;

    set_clock(w, HOUR_MS);
    execute(w, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = "
               "'intact'");
    for (unsigned i = 0; i < 1000 && err != ERR_NOT_FOUND; i++)
        err = w->s->ops->get(w->s, SLICE("x"), &w->a, &row, &w->e);
    CHECK(err == ERR_NOT_FOUND, "it works again: %s", w->e.text);
    CHECK(is_about(off(w), HOUR_MS), "%" PRId64, off(w));
}

static void a_node_starts_with_the_time_of_the_database(void **state)
{
    struct world *w = *state;

    set_clock(w, -HOUR_MS);
    w->s->ops->close(w->s);
    open_store(w);
    CHECK(is_about(off(w), -HOUR_MS), "%" PRId64, off(w));
}

int main(void)
{
#define WITH_WORLD(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_clock_that_is_set_ahead_is_followed_with_the_next_lease),
        WITH_WORLD(a_clock_that_is_set_back_is_waited_for),
        WITH_WORLD(leases_are_judged_by_the_clock_as_it_is_now),
        WITH_WORLD(a_new_connection_asks_for_the_time),
        WITH_WORLD(a_node_starts_with_the_time_of_the_database),
    };
    return cmocka_run_group_tests_name("clock of the database", tests, NULL, NULL);
}
