#include "store/postgres_body.h"

#include <stdlib.h>
#include <sys/random.h>

#include "base/log.h"
#include "schema_postgres_0001.h"

/*
 * The schema is made, and brought forward, in one transaction that begins by taking the row of its
 * version for itself: nodes that start at the same time wait for each other there. Making the very
 * first tables at the same time may fail for one of two (PostgreSQL looks before it locks): then
 * they are there, and it tries again.
 */

enum { TRIES = 5 };

static const char *const steps[PG_SCHEMA_VERSION] = {schema_postgres_0001};

static const char first[] =
    "CREATE TABLE IF NOT EXISTS ~meta (name TEXT COLLATE \"C\" PRIMARY KEY, value BYTEA NOT NULL);"
    "INSERT INTO ~meta (name, value) VALUES ('version', '0') ON CONFLICT (name) DO NOTHING";

/* Statements without parameters, as a script: outside of pipeline mode. */
static bool script(struct postgres_store *s, const char *text, PGresult **ret, char *ret_state)
{
    CLEANUP(buf_fini) struct buf sql = {0};

    pg_sql_expand(&sql, text, s->prefix);
    *ret = PQexec(s->conn, sql.ptr);
    const char *state = PQresultErrorField(*ret, PG_DIAG_SQLSTATE);
    (void)snprintf(ret_state, 6, "%s", state ? state : "");
    return PQresultStatus(*ret) == PGRES_COMMAND_OK || PQresultStatus(*ret) == PGRES_TUPLES_OK;
}

static bool run(struct postgres_store *s, const char *text, char *ret_state)
{
    CLEANUP(result_end) PGresult *r = NULL;

    return script(s, text, &r, ret_state);
}

static bool migrate(struct postgres_store *s, long from, char *ret_state)
{
    char version[80];

    for (long v = from; v < PG_SCHEMA_VERSION; v++)
        if (!run(s, steps[v], ret_state))
            return false;
    (void)snprintf(version, sizeof version, "UPDATE ~meta SET value = '%d' WHERE name = 'version'",
                   PG_SCHEMA_VERSION);
    return from == PG_SCHEMA_VERSION || run(s, version, ret_state);
}

/* ERR_OK, ERR_NEWER, or ERR_IO with the state of what failed. */
static enum err bring_forward(struct postgres_store *s, struct error *e, char *ret_state)
{
    CLEANUP(result_end) PGresult *r = NULL;

    if (!run(s, "BEGIN", ret_state)
        || !script(s,
                   "SELECT convert_from(value, 'UTF8') FROM ~meta WHERE name = 'version' "
                   "FOR UPDATE",
                   &r, ret_state))
        return ERR_IO;
    long version = PQntuples(r) == 1 ? strtol(PQgetvalue(r, 0, 0), NULL, 10) : 0;
    if (version > PG_SCHEMA_VERSION)
        return error_set(e, ERR_NEWER,
                         "the schema \"%s\" of the database is of version %ld, written by a newer "
                         "intact; this one knows %d",
                         s->schema, version, PG_SCHEMA_VERSION);
    if (!migrate(s, version, ret_state))
        return ERR_IO;
    return run(s, "COMMIT", ret_state) ? ERR_OK : ERR_IO;
}

static bool is_there(struct postgres_store *s)
{
    CLEANUP(result_end) PGresult *r = NULL;
    char state[6];

    return script(s, "SELECT 1 FROM ~meta WHERE name = 'version'", &r, state) && PQntuples(r) == 1;
}

/* May fail: it may have been made for us, by somebody who may. What follows tells. */
static void make_schema(struct postgres_store *s)
{
    char sql[128];
    char state[6];

    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA IF NOT EXISTS \"%s\"", s->schema);
    (void)run(s, sql, state);
}

static enum err check_once(struct postgres_store *s, struct error *e, char *ret_state)
{
    if (!is_there(s)) {
        make_schema(s);
        if (!run(s, first, ret_state))
            return ERR_IO;
    }
    return bring_forward(s, e, ret_state);
}

enum err pg_schema_check(struct postgres_store *s, struct error *e)
{
    char state[6] = "";
    enum err err = connection_ready(s, e);

    if (err != ERR_OK)
        return err;
    if (!PQexitPipelineMode(s->conn) || PQsetnonblocking(s->conn, 0) != 0)
        return error_set(e, ERR_IO, "the connection to the database cannot be used");
    for (int i = 0; i < TRIES; i++) {
        err = check_once(s, e, state);
        if (err == ERR_OK || err == ERR_NEWER)
            break;
        const char *text = PQerrorMessage(s->conn);
        error_set(e, ERR_IO, "cannot make or migrate the schema \"%s\": %.*s", s->schema,
                  (int)strcspn(text, "\n"), text);
        if (PQtransactionStatus(s->conn) != PQTRANS_IDLE)
            (void)run(s, "ROLLBACK", state);
        if (PQstatus(s->conn) != CONNECTION_OK)
            break;
    }
    connection_drop(s); /* the next one begins in the mode of all the rest */
    return err;
}

enum err pg_schema_node(struct postgres_store *s, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct query q[3];
    PGresult *r[3] = {0};

    if (getrandom(s->secret, sizeof s->secret, 0) != sizeof s->secret)
        return error_set(e, ERR_IO, "the system gives no random bytes");
    enum err err = connection_ready(s, e);
    if (err != ERR_OK)
        return err;
    int64_t sent_at = store_time_steady();
    query_of(&q[0], s, PG_SECRET_MAKE, &a);
    param_bytes(&q[0], s->secret, sizeof s->secret);
    query_of(&q[1], s, PG_SECRET_GET, &a);
    query_of(&q[2], s, PG_BOOT, &a);
    param_text(&q[2], slice_of(s->node));
    struct pg_end o = pg_transact(s, q, COUNT_OF(q), r, e, "begin");
    err = pg_end_err(&o, e);
    if (err == ERR_OK) {
        pg_time_heard(s, sent_at, result_number(r[2], 0, 1));
        struct slice secret = result_text(r[1], 0, 0);
        s->boot = (uint64_t)result_number(r[2], 0, 0);
        if (secret.len == sizeof s->secret)
            memcpy(s->secret, secret.ptr, secret.len);
        else
            err = error_set(e, ERR_CORRUPT, "the secret in %smeta is damaged", s->prefix);
    }
    results_clear(r, COUNT_OF(r));
    return err;
}
