/*
 * An agent whose effects lie in a PostgreSQL database: a bank that transfers money between
 * accounts. The barrier sees to it that each transfer takes place once, and none after its undo,
 * however often this process or the database dies.
 *
 *     bank "host=/run/postgresql dbname=bank"
 *
 * Action transfer, input {"from": "ann", "to": "bob", "amount": 5}; its undo takes it back.
 */

#include <intact/barrier_pq.h>
#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLACES = 8, TRIES = 10 };

static const char schema[] =
    "SET client_min_messages = warning;"
    "CREATE TABLE IF NOT EXISTS account(name text PRIMARY KEY, balance bigint NOT NULL);"
    "CREATE TABLE IF NOT EXISTS entry(key text PRIMARY KEY, source text NOT NULL,"
    " target text NOT NULL, amount bigint NOT NULL)";

/* $1: its key, $2: the input. Two rows are changed, or else it is not to be had. */
static const char transfer[] =
    "WITH e AS (INSERT INTO entry SELECT $1, j ->> 'from', j ->> 'to', (j ->> 'amount')::bigint"
    "           FROM (SELECT $2::json AS j) AS input RETURNING source, target, amount)"
    " UPDATE account AS a SET balance = balance + CASE WHEN a.name = target THEN amount ELSE "
    "-amount END"
    " FROM e WHERE a.name = target OR (a.name = source AND balance >= amount)";

/* $1: the key of the transfer, $2: what is said of it is not needed. */
static const char give_back[] =
    "WITH e AS (INSERT INTO entry SELECT key || '/undo', target, source, amount FROM entry"
    "           WHERE key = $1 AND $2::json IS NOT NULL RETURNING source, target, amount)"
    " UPDATE account AS a SET balance = balance + CASE WHEN a.name = target THEN amount ELSE "
    "-amount END"
    " FROM e WHERE a.name = target OR a.name = source";

/* Connections that nobody uses at the moment. There are as many in all as handlers run at once. */
static struct {
    pthread_mutex_t lock;
    const char *where;
    PGconn *idle[PLACES];
    unsigned count;
} bank = {.lock = PTHREAD_MUTEX_INITIALIZER};

static PGconn *take_connection(void)
{
    PGconn *conn = NULL;

    pthread_mutex_lock(&bank.lock);
    if (bank.count > 0)
        conn = bank.idle[--bank.count];
    pthread_mutex_unlock(&bank.lock);
    if (!conn)
        conn = PQconnectdb(bank.where);
    else if (PQstatus(conn) != CONNECTION_OK)
        PQreset(conn);
    return conn; /* if it is none, the barrier says so */
}

static void give_connection(PGconn *conn)
{
    pthread_mutex_lock(&bank.lock);
    bank.idle[bank.count++] = conn;
    pthread_mutex_unlock(&bank.lock);
}

static bool run(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    bool ok = PQresultStatus(res) == PGRES_COMMAND_OK;

    PQclear(res);
    return ok;
}

/* The money moves. False: it does not, as `b` says, or because it is not to be had. */
static bool move(struct intact_request *r, struct intact_barrier *b, PGconn *conn,
                 bool *ret_refused)
{
    bool undo = intact_request_direction(r) == INTACT_UNDO;
    const char *values[] = {intact_barrier_key(b), intact_request_input(r)};
    PGresult *res = PQexecParams(conn, undo ? give_back : transfer, 2, NULL, values, NULL, NULL, 0);
    bool ok = intact_barrier_pq_ok(b, conn, res);

    *ret_refused = ok && atoi(PQcmdTuples(res)) != 2;
    PQclear(res);
    return ok && !*ret_refused;
}

/* Once through it all. False: it was refused, and answered. */
static bool try_once(struct intact_request *r, struct intact_barrier *b, PGconn *conn)
{
    bool refused = false;

    (void)run(conn, "BEGIN"); /* if it fails, the barrier finds no transaction, or no connection */
    if (intact_barrier_pq(b, conn) == INTACT_BARRIER_DO && move(r, b, conn, &refused))
        (void)intact_barrier_pq_done(b, conn, "{\"moved\": true}");
    if (refused) { /* nothing stays on record: a later attempt decides anew */
        (void)run(conn, "ROLLBACK");
        intact_answer_error(r, "no_money", "there is no such account, or not so much on it",
                            INTACT_EFFECT_NONE);
        return false;
    }
    (void)intact_barrier_pq_end(b, conn);
    return true;
}

static void handle(struct intact_request *r, void *arg)
{
    struct intact_barrier *b = intact_barrier_of(r);
    PGconn *conn = take_connection();
    bool ours = true;

    (void)arg;
    for (int i = 0; ours && i < TRIES && !intact_request_should_stop(r); i++) {
        ours = try_once(r, b, conn);
        if (!ours || intact_barrier_verdict(b) != INTACT_BARRIER_AGAIN)
            break;
        if (PQstatus(conn) != CONNECTION_OK)
            PQreset(conn);
    }
    if (ours)
        intact_barrier_answer(b);
    intact_barrier_free(b);
    give_connection(conn);
}

static void on_term(int signal)
{
    (void)signal;
    intact_agent_stop();
}

static bool prepare(void)
{
    char why[300] = "";
    PGconn *conn = take_connection();
    bool ok = intact_barrier_pq_setup(conn, why, sizeof why);

    if (ok && !run(conn, schema)) {
        snprintf(why, sizeof why, "%s", PQerrorMessage(conn));
        ok = false;
    }
    if (!ok)
        fprintf(stderr, "bank: %s\n", why);
    give_connection(conn);
    return ok;
}

int main(int argc, char **argv)
{
    struct intact_agent *a = intact_agent_new("bank");
    int result = 1;

    if (argc < 2) {
        fprintf(stderr, "usage: bank CONNINFO [INSTANCE]\n");
        intact_agent_free(a);
        return 2;
    }
    bank.where = argv[1];
    if (argc > 2)
        intact_agent_set_instance(a, argv[2]);
    signal(SIGTERM, on_term);
    if (prepare()) {
        intact_agent_set_concurrency(a, PLACES);
        intact_agent_on(a, "transfer", INTACT_FORWARD, handle, NULL);
        intact_agent_on(a, "transfer", INTACT_UNDO, handle, NULL);
        result = (int)intact_agent_run(a);
    }
    intact_agent_free(a);
    while (bank.count > 0)
        PQfinish(bank.idle[--bank.count]);
    return result;
}
