/* Every order of orders.h on PostgreSQL. Each session asks the barrier on a thread of its own,
 * because it may have to wait in the database. pg_blocking_pids says which sessions wait, so
 * nothing depends on time. orders_sqlite_test.c does this on SQLite. */

#include "base/test.h"

#include <intact/barrier_pq.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../postgres/cluster.h"
#include "orders.h"

static struct line {
    PGconn *conn;
    int pid;
    pthread_t thread;
    bool asking;
    atomic_bool answered;
    struct intact_barrier *b;
} lines[SESSIONS_MAX];

static PGconn *monitor;
static unsigned step;
static unsigned answered; /* who got an answer that nobody has looked at yet; a bit each */
static const char *begin_sql;

static PGresult *must(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);

    CHECK(PQresultStatus(res) == PGRES_COMMAND_OK || PQresultStatus(res) == PGRES_TUPLES_OK,
          "%s: %s", sql, PQerrorMessage(conn));
    return res;
}

static void run(PGconn *conn, const char *sql)
{
    PQclear(must(conn, sql));
}

static PGconn *new_connection(void)
{
    PGconn *conn = PQconnectdb(cluster_conninfo());

    CHECK(PQstatus(conn) == CONNECTION_OK, "%s", PQerrorMessage(conn));
    return conn;
}

/* Each run has a step of its own, since what is deleted stays in the way until it is vacuumed. */
static void reset(bool done, char ret_key[OUTPUT_SIZE])
{
    char sql[200];

    step++;
    (void)snprintf(ret_key, OUTPUT_SIZE, "t/%u", step);
    if (!done)
        return;
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO intact_barrier(forward_key, output) VALUES ('t/%u', '\"before\"');"
                   " INSERT INTO world VALUES (%u, 1)",
                   step, step);
    run(monitor, sql);
}

static enum progress begin(struct session *s)
{
    struct line *l = &lines[s->number];

    if (!l->conn) {
        l->conn = new_connection();
        l->pid = PQbackendPID(l->conn);
    }
    run(l->conn, begin_sql);
    return IS_DONE;
}

static void *asks(void *arg)
{
    struct line *l = arg;

    (void)intact_barrier_pq(l->b, l->conn);
    atomic_store(&l->answered, true);
    return NULL;
}

static bool is_asking(int pid)
{
    for (unsigned i = 0; i < SESSIONS_MAX; i++)
        if (lines[i].asking && lines[i].pid == pid)
            return true;
    return false;
}

/* Its process waits for at least one that neither asks now itself, so that it will not end its
 * wait by itself, or waits in turn. */
static unsigned waiting_now(void)
{
    char sql[200];

    (void)snprintf(sql, sizeof sql,
                   "SELECT p, unnest(pg_blocking_pids(p)) FROM (VALUES (%d), (%d), (%d)) AS v(p)"
                   " WHERE p <> 0",
                   lines[0].pid, lines[1].pid, lines[2].pid);
    PGresult *res = must(monitor, sql);
    unsigned waits = 0;
    bool more = true;

    while (more) {
        more = false;
        for (int row = 0; row < PQntuples(res); row++) {
            int pid = atoi(PQgetvalue(res, row, 0)), by = atoi(PQgetvalue(res, row, 1));
            unsigned us = 0, them = 0;
            for (unsigned i = 0; i < SESSIONS_MAX; i++) {
                us |= lines[i].pid == pid ? BIT(i) : 0;
                them |= lines[i].pid == by ? BIT(i) : 0;
            }
            if (us && !(waits & us) && them && (!is_asking(by) || (waits & them))) {
                waits |= us;
                more = true;
            }
        }
    }
    PQclear(res);
    return waits;
}

/* Returns when each of those who ask has its answer, or really waits for it. */
static void look_after(void)
{
    unsigned done = 0, asking = 0;

    for (unsigned i = 0; i < SESSIONS_MAX; i++)
        asking |= lines[i].asking ? BIT(i) : 0;
    for (bool first = true; asking & ~done; first = false) {
        for (unsigned i = 0; i < SESSIONS_MAX; i++) {
            struct line *l = &lines[i];
            if (!l->asking || !atomic_load(&l->answered))
                continue;
            CHECK(pthread_join(l->thread, NULL) == 0, "join");
            l->asking = false;
            done |= BIT(i);
        }
        if (!first && (asking & ~done & ~waiting_now()) == 0)
            break;
        if (first && (asking & ~done))
            (void)usleep(50); /* most are answered by now */
    }
    answered |= done;
}

static unsigned settle(void)
{
    look_after();
    unsigned done = answered;
    answered = 0;
    return done;
}

static enum progress ask(struct session *s)
{
    struct line *l = &lines[s->number];

    l->b = s->b;
    l->asking = true;
    atomic_store(&l->answered, false);
    CHECK(pthread_create(&l->thread, NULL, asks, l) == 0, "a thread");
    look_after();
    bool is_done = answered & BIT(s->number);
    answered &= ~BIT(s->number);
    return is_done ? IS_DONE : WAITS;
}

static bool effect(struct session *s)
{
    PGconn *conn = lines[s->number].conn;
    char sql[100];

    (void)snprintf(sql, sizeof sql, "INSERT INTO world VALUES (%u, %d)", step,
                   s->direction == INTACT_UNDO ? -1 : 1);
    PGresult *res = PQexec(conn, sql);
    bool ok = intact_barrier_pq_ok(s->b, conn, res);
    PQclear(res);
    return ok;
}

static bool record(struct session *s)
{
    return intact_barrier_pq_done(s->b, lines[s->number].conn, s->output);
}

/* As its server sees it when a client is killed. */
static void crash(struct line *l)
{
    char sql[100];
    bool gone = false;

    CHECK(shutdown(PQsocket(l->conn), SHUT_RDWR) == 0, "shutdown");
    PQfinish(l->conn);
    l->conn = NULL;
    (void)snprintf(sql, sizeof sql, "SELECT 1 FROM pg_stat_activity WHERE pid = %d", l->pid);
    while (!gone) {
        PGresult *res = must(monitor, sql);
        gone = PQntuples(res) == 0;
        PQclear(res);
    }
    l->pid = 0;
}

static bool end(struct session *s, enum ending how)
{
    struct line *l = &lines[s->number];

    if (how == END_COMMIT)
        return intact_barrier_pq_end(s->b, l->conn);
    if (how == END_ROLLBACK)
        run(l->conn, "ROLLBACK");
    else
        crash(l);
    return false;
}

static void look(char outcome[OUTPUT_SIZE], char output[OUTPUT_SIZE], char undo_output[OUTPUT_SIZE],
                 int *forward, int *undo)
{
    char sql[400];

    (void)snprintf(sql, sizeof sql,
                   "SELECT max(outcome), max(output::text), max(undo_output::text), count(*),"
                   " (SELECT count(*) FROM world WHERE delta = 1 AND step = %u),"
                   " (SELECT count(*) FROM world WHERE delta = -1 AND step = %u)"
                   " FROM intact_barrier WHERE forward_key = 't/%u'",
                   step, step, step);
    PGresult *res = must(monitor, sql);
    (void)snprintf(outcome, OUTPUT_SIZE, "%s", PQgetvalue(res, 0, 0));
    (void)snprintf(output, OUTPUT_SIZE, "%s", PQgetvalue(res, 0, 1));
    (void)snprintf(undo_output, OUTPUT_SIZE, "%s", PQgetvalue(res, 0, 2));
    CHECK(atoi(PQgetvalue(res, 0, 3)) <= 1, "%s records", PQgetvalue(res, 0, 3));
    *forward = atoi(PQgetvalue(res, 0, 4));
    *undo = atoi(PQgetvalue(res, 0, 5));
    PQclear(res);
}

static void play(struct body *body)
{
    static const enum intact_direction F = INTACT_FORWARD, U = INTACT_UNDO;
    const struct orders all[] = {
        {.count = 2, .directions = {F, F}, .crashes = true},
        {.count = 2, .directions = {F, U}, .crashes = true},
        {.count = 2, .directions = {U, U}, .crashes = true},
        {.count = 2, .directions = {F, U}, .fine = true},
        {.count = 2, .directions = {F, F}, .tries = 1},
        {.count = 2, .directions = {F, U}, .tries = 1},
        {.count = 2, .directions = {U, U}, .tries = 1},
        {.count = 3, .directions = {F, F, F}},
        {.count = 3, .directions = {F, F, U}},
        {.count = 3, .directions = {F, U, U}},
        {.count = 3, .directions = {U, U, U}},
    };
    const char *orders = getenv("ORDERS");
    bool is_full = orders && strcmp(orders, "full") == 0;
    unsigned verdicts = 0, waits = 0;

    body->reset = reset;
    body->begin = begin;
    body->ask = ask;
    body->effect = effect;
    body->record = record;
    body->end = end;
    body->settle = settle;
    body->look = look;
    for (size_t i = 0; i < 2 * COUNT_OF(all); i++) {
        struct orders o = all[i / 2];
        if (body->snapshots && o.count == 3 && !is_full)
            continue; /* with ORDERS=full in the environment */
        if (body->may_refuse && o.count == 3 && o.directions[0] == o.directions[2])
            continue; /* takes long, and says no more than at the other levels */
        o.body = body;
        o.done_before = i % 2;
        orders_play(&o);
        waits += o.waits;
        printf("%s: %u%s, %s: %u runs, %u waits, %u refusals\n", body->name, o.count,
               o.fine ? " in detail" : "", o.done_before ? "done before" : "from nothing", o.runs,
               o.waits, o.refusals);
        (void)fflush(stdout);
        for (unsigned v = 0; v <= INTACT_BARRIER_FAILED; v++)
            verdicts |= o.verdicts[v] ? BIT(v) : 0;
    }
    unsigned wanted = BIT(INTACT_BARRIER_DO) | BIT(INTACT_BARRIER_REPEAT)
                      | BIT(INTACT_BARRIER_UNDONE) | BIT(INTACT_BARRIER_NOTHING)
                      | (body->snapshots ? BIT(INTACT_BARRIER_AGAIN) : 0);
    CHECK(verdicts == wanted && waits > 0, "verdicts met: %x, not %x", verdicts, wanted);
}

static void read_committed(void **state)
{
    (void)state;
    begin_sql = "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT 1";
    play(&(struct body){.name = "read committed"});
}

static void repeatable_read(void **state)
{
    (void)state;
    begin_sql = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    play(&(struct body){.name = "repeatable read", .snapshots = true});
}

static void serializable(void **state)
{
    (void)state;
    begin_sql = "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT 1";
    play(&(struct body){.name = "serializable", .snapshots = true, .may_refuse = true});
}

static int set_up(void **state)
{
    char why[200] = "";

    (void)state;
    monitor = new_connection();
    run(monitor, "CREATE TABLE world(step bigint, delta integer);"
                 " CREATE INDEX ON world(step)");
    CHECK(intact_barrier_pq_setup(monitor, why, sizeof why), "%s", why);
    CHECK(intact_barrier_pq_setup(monitor, why, sizeof why), "again: %s", why);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    PQfinish(monitor);
    return 0;
}

/* Also after a failure, in the midst of it all. */
static int hang_up(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SESSIONS_MAX; i++) {
        struct line *l = &lines[i];
        if (l->conn)
            (void)shutdown(PQsocket(l->conn), SHUT_RDWR);
        if (l->asking)
            (void)pthread_join(l->thread, NULL);
        PQfinish(l->conn);
        *l = (struct line){0};
    }
    answered = 0;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(read_committed, hang_up),
        cmocka_unit_test_teardown(repeatable_read, hang_up),
        cmocka_unit_test_teardown(serializable, hang_up),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
