/* Implements many.h: a store with very many tasks, made by the database itself with INSERT ...
 * SELECT from generate_series. plans_test.c looks at the plans over it. */

#include "many.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"

static void run(PGconn *conn, const char *sql)
{
    PGresult *r = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(r);

    PQclear(r);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
        return;
    fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(conn));
    abort();
}

/* Those with a number from `from` to `to`, as a SELECT of the columns below. */
#define TASKS                                                                                     \
    "INSERT INTO task (id, workflow, version, submitted_at, tags, revision, state, direction, "   \
    "priority, locked_by, wake_at, waiting_for, rank, request, failure_count, started_at, "       \
    "ended_at, doc) SELECT %s || i, 'order-' || i %% 10, 1, i, %s, 9, %s, 'forward', 5, %s, %s, " \
    "%s, i, %s, 0, i, %s, rpad('{\"steps\":[', 900, ' ') || ']}' "                                \
    "FROM generate_series(%lld::bigint, %lld::bigint) AS i"

struct kind {
    const char *name, *state, *locked_by, *wake_at, *waiting_for, *request;
    long long count;
    int ended;
};

static void add(PGconn *conn, const struct kind *k, long long from)
{
    char sql[2000];

    (void)snprintf(sql, sizeof sql, TASKS, k->name,
                   k->ended ? "'{\"customer\":\"c-' || i % 1000 || '\"}'" : "NULL", k->state,
                   k->locked_by, k->wake_at, k->waiting_for, k->request, k->ended ? "i" : "NULL",
                   from, from + k->count - 1);
    run(conn, sql);
}

void many_make(const char *conninfo, const char *schema, int64_t finished, int analyze)
{
    const struct kind kinds[] = {
        {"'errored-'", "'error'", "NULL", "NULL", "NULL", "NULL", 20, 1},
        {"'undone-'", "'compensated'", "NULL", "NULL", "NULL", "NULL", 20, 1},
        {"'done-'", "'processed'", "NULL", "NULL", "NULL", "NULL", finished, 1},
        {"'waiting-'", "'pending'", "NULL", "NULL", "'agent-1'", "NULL", 300, 0},
        {"'asleep-'", "'pending'", "NULL", "NULL", "'time'", "NULL", 30, 0},
        {"'overdue-'", "'processing'", "'n9/1'", "900", "NULL", "NULL", 20, 0},
        {"'asked-'", "'processing'", "'n9/1'", "NULL", "NULL", "'[]'", 10, 0},
        {"'working-'", "'processing'", "'n9/1'", "9000000000000", "NULL", "NULL", 20, 0},
    };
    PGconn *conn = PQconnectdb(conninfo);
    char path[120];
    long long from = 1;

    (void)snprintf(path, sizeof path, "SET search_path = %s", schema);
    run(conn, path);
    run(conn, "SET synchronous_commit = off");
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        add(conn, &kinds[i], from);
        from += kinds[i].count;
    }
    run(conn, "INSERT INTO tag (key, value, task) SELECT 'customer', 'c-' || submitted_at % 1000, "
              "seq FROM task WHERE tags IS NOT NULL");
    run(conn,
        "INSERT INTO payload (task, number, json) SELECT seq, 1, '\"' || rpad('x', 3000, 'y') "
        "|| '\"' FROM task WHERE seq % 10 = 0");
    run(conn, "INSERT INTO audit (at, actor, verb, task) SELECT submitted_at, 'me', 'retry', id "
              "FROM task WHERE seq % 100 = 0");
    if (analyze)
        run(conn, "ANALYZE task, payload, tag, audit");
    PQfinish(conn);
}
