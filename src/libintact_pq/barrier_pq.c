/* The barrier on a PostgreSQL connection of the caller: see <intact/barrier_pq.h>. The rules are in
 * the database's functions (share/intact/barrier/postgresql.sql). */
#include <intact/barrier_pq.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema_barrier_postgresql.h"

enum { WHY_SIZE = 300 };

/* ---- errors ---- */

/* Whether a SQLSTATE is in the NULL-terminated list, by its class or as a whole. */
static bool is_among(const char *state, const char *const *list)
{
    for (; *list; list++)
        if (strncmp(state, *list, strlen(*list)) == 0)
            return true;
    return false;
}

/* A temporary condition. */
static bool is_passing(const char *state)
{
    static const char *const passing[] = {
        "40",    /* serialization failures and deadlocks */
        "08",    /* the connection */
        "53",    /* too many connections, disk full */
        "57",    /* shut down, cancelled, starting up */
        "58",    /* the operating system */
        "55P03", /* lock_timeout */
        "25006", /* read only: a standby */
        "25P02", /* an earlier statement failed */
        "25P03", /* idle_in_transaction_session_timeout */
        NULL,
    };

    return is_among(state, passing);
}

/* With these, the outcome of a commit is unknown. A pooler returns some of them for a lost
 * server. */
static bool leaves_open(const char *state)
{
    static const char *const open[] = {"08", "40003", "57", "58", "XX", NULL};

    return is_among(state, open);
}

static void first_line(char *text)
{
    text[strcspn(text, "\n")] = '\0';
}

/* The error for people, and whether it is temporary. */
static bool explain(PGconn *conn, const PGresult *res, char why[WHY_SIZE])
{
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    const char *said = res ? PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY) : NULL;

    snprintf(why, WHY_SIZE, "%s", said ? said : PQerrorMessage(conn));
    first_line(why);
    return state ? is_passing(state) : PQstatus(conn) != CONNECTION_OK;
}

static void trouble(struct intact_barrier *b, PGconn *conn, const PGresult *res)
{
    char why[WHY_SIZE];
    bool passing = explain(conn, res, why);

    intact_barrier_set(b, passing ? INTACT_BARRIER_AGAIN : INTACT_BARRIER_FAILED, NULL, why);
}

static bool succeeded(const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res); /* for NULL: PGRES_FATAL_ERROR */

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

bool intact_barrier_pq_ok(struct intact_barrier *b, struct pg_conn *conn,
                          const struct pg_result *res)
{
    if (succeeded(res))
        return true;
    trouble(b, conn, res);
    return false;
}

/* ---- the barrier ---- */

static PGresult *call(const struct intact_barrier *b, PGconn *conn, const char *sql,
                      const char *output, int count)
{
    bool is_undo = intact_barrier_direction(b) == INTACT_UNDO;
    const char *key = intact_barrier_key(b);
    const char *values[] = {is_undo ? NULL : key, is_undo ? key : NULL,
                            is_undo ? "undo" : "forward", output};

    return PQexecParams(conn, sql, count, NULL, values, NULL, NULL, 0);
}

static enum intact_verdict verdict_named(const char *name)
{
    static const char *const names[] = {[INTACT_BARRIER_DO] = "do",
                                        [INTACT_BARRIER_REPEAT] = "repeat",
                                        [INTACT_BARRIER_UNDONE] = "undone",
                                        [INTACT_BARRIER_NOTHING] = "nothing"};

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum intact_verdict)i;
    return INTACT_BARRIER_FAILED;
}

static void read_verdict(struct intact_barrier *b, const PGresult *res)
{
    const char *output = PQgetisnull(res, 0, 1) ? NULL : PQgetvalue(res, 0, 1);
    enum intact_verdict verdict = verdict_named(PQgetvalue(res, 0, 0));

    intact_barrier_set(b, verdict, output,
                       verdict == INTACT_BARRIER_FAILED
                           ? "the function intact_barrier is not the barrier's"
                           : NULL);
}

static const char *not_ready(const struct intact_barrier *b, const PGconn *conn)
{
    enum intact_direction direction = intact_barrier_direction(b);
    PGTransactionStatusType status = PQtransactionStatus(conn);

    if (direction != INTACT_FORWARD && direction != INTACT_UNDO)
        return "the direction is neither forward nor undo";
    if (*intact_barrier_key(b) == '\0')
        return "the key of the forward request is empty";
    if (status == PQTRANS_ACTIVE)
        return "the connection is busy with another statement";
    return status == PQTRANS_IDLE ? "no transaction is open; begin one first" : NULL;
}

enum intact_verdict intact_barrier_pq(struct intact_barrier *b, struct pg_conn *conn)
{
    const char *why = not_ready(b, conn);

    if (why) {
        intact_barrier_set(b, INTACT_BARRIER_FAILED, NULL, why);
        return INTACT_BARRIER_FAILED;
    }
    PGresult *res =
        call(b, conn, "SELECT verdict, output FROM intact_barrier($1, $2, $3)", NULL, 3);
    if (!succeeded(res))
        trouble(b, conn, res);
    else
        read_verdict(b, res);
    PQclear(res);
    return intact_barrier_verdict(b);
}

bool intact_barrier_pq_done(struct intact_barrier *b, struct pg_conn *conn, const char *output_json)
{
    const char *output = output_json ? output_json : "null";

    if (intact_barrier_verdict(b) > INTACT_BARRIER_NOTHING)
        return false;
    if (PQtransactionStatus(conn) == PQTRANS_IDLE) { /* it would be a transaction of its own */
        intact_barrier_set(b, INTACT_BARRIER_FAILED, NULL, "the transaction had already ended");
        return false;
    }
    PGresult *res = call(b, conn, "SELECT intact_barrier_done($1, $2, $3, $4)", output, 4);
    bool ok = succeeded(res);
    if (ok)
        intact_barrier_set(b, INTACT_BARRIER_DO, output, NULL);
    else
        trouble(b, conn, res);
    PQclear(res);
    return ok;
}

static bool commit(struct intact_barrier *b, PGconn *conn)
{
    char why[WHY_SIZE];
    PGresult *res = PQexec(conn, "COMMIT");
    const char *state = res ? PQresultErrorField(res, PG_DIAG_SQLSTATE) : NULL;
    bool ok = false;

    if (succeeded(res)) {
        ok = strcmp(PQcmdStatus(res), "COMMIT") == 0;
        if (!ok)
            intact_barrier_set(b, INTACT_BARRIER_FAILED, NULL,
                               "a statement of the transaction failed, so it was rolled back");
    } else if (state && !leaves_open(state)) {
        trouble(b, conn, res); /* the server refused it */
    } else {
        (void)explain(conn, res, why);
        intact_barrier_set_unsure(b, why);
    }
    PQclear(res);
    return ok;
}

bool intact_barrier_pq_end(struct intact_barrier *b, struct pg_conn *conn)
{
    enum intact_verdict verdict = intact_barrier_verdict(b);
    bool ok = false;

    if (verdict == INTACT_BARRIER_DO && intact_barrier_is_late(b))
        intact_barrier_set(b, INTACT_BARRIER_LATE, NULL, "its deadline has passed");
    else if (verdict <= INTACT_BARRIER_NOTHING && PQtransactionStatus(conn) == PQTRANS_UNKNOWN)
        intact_barrier_set(b, INTACT_BARRIER_AGAIN, NULL,
                           "the connection was lost before the commit");
    else if (verdict <= INTACT_BARRIER_NOTHING && PQtransactionStatus(conn) == PQTRANS_IDLE)
        intact_barrier_set_unsure(b, "the transaction had already ended");
    else if (verdict <= INTACT_BARRIER_NOTHING)
        ok = commit(b, conn);
    PGTransactionStatusType status = PQtransactionStatus(conn);
    if (status == PQTRANS_INTRANS || status == PQTRANS_INERROR)
        PQclear(PQexec(conn, "ROLLBACK")); /* a failed rollback cannot be handled */
    return ok;
}

/* ---- the table ---- */

/* Concurrent calls would see each other's incomplete tables, so they run one at a time, until each
 * commits. An existing table is not worth a notice. */
static const char take_turns[] = "SELECT pg_advisory_xact_lock(5641378213471922034),"
                                 " set_config('client_min_messages', 'warning', true);";

bool intact_barrier_pq_setup(struct pg_conn *conn, char *why, size_t why_size)
{
    char said[WHY_SIZE];
    size_t size = sizeof take_turns + sizeof schema_barrier_postgresql;
    char *sql = malloc(size);

    if (!sql)
        abort(); /* as everywhere in libintact */
    snprintf(sql, size, "%s%s", take_turns, schema_barrier_postgresql);
    /* One transaction. Without a connection, PQexec would overwrite the reason for that. */
    PGresult *res = PQstatus(conn) == CONNECTION_OK ? PQexec(conn, sql) : NULL;
    bool ok = succeeded(res);
    if (!ok) {
        (void)explain(conn, res, said);
        if (why_size > 0)
            snprintf(why, why_size, "cannot create the table intact_barrier: %s", said);
    }
    PQclear(res);
    free(sql);
    return ok;
}

int64_t intact_barrier_pq_clean(struct pg_conn *conn, int64_t age_ms, int max)
{
    char age[32], most[16];
    const char *values[] = {age, most};

    snprintf(age, sizeof age, "%lld", (long long)age_ms);
    snprintf(most, sizeof most, "%d", max < 0 ? 0 : max);
    PGresult *res = PQexecParams(
        conn, "SELECT intact_barrier_clean($1::bigint * interval '1 millisecond', $2::integer)", 2,
        NULL, values, NULL, NULL, 0);
    int64_t count =
        PQresultStatus(res) == PGRES_TUPLES_OK ? strtoll(PQgetvalue(res, 0, 0), NULL, 10) : -1;
    PQclear(res);
    return count;
}
