/*
 * Makes the schema of the database and brings it up to date, in one transaction that begins by
 * locking the row of its version: nodes that start at the same time wait for each other there.
 * Creating the very first tables may fail for one of two nodes (PostgreSQL checks before it locks);
 * then the tables exist and that node tries again. If there is nothing to do, nothing is written or
 * locked, so a role without those rights can start a node.
 */
#include "store/postgres/body.h"

#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#include "base/clock.h"
#include "store/postgres_migrations.h"

enum { TRIES = 10, PAUSE_MS = 50, MIGRATION_MS = 15 * 60 * 1000 };

/* A migration that was released is never changed. */
const int pg_schema_version = COUNT_OF(postgres_migrations);

static const char first[] =
    "CREATE TABLE IF NOT EXISTS ~meta (name TEXT COLLATE \"C\" PRIMARY KEY, value BYTEA NOT NULL);"
    "INSERT INTO ~meta (name, value) VALUES ('version', '0') ON CONFLICT (name) DO NOTHING";

static const char version_sql[] =
    "SELECT convert_from(value, 'UTF8') FROM ~meta WHERE name = 'version'";

/* What went wrong last. */
struct trouble {
    char state[6];
    char text[200];
};

/* A statement without parameters, or several; its result is good, or NULL. */
static PGresult *script(struct postgres_store *s, const char *text, int64_t wait_ms,
                        struct trouble *t)
{
    CLEANUP(buf_fini) struct buf sql = {0};

    pg_sql_expand(&sql, text, s->prefix);
    PGresult *r = s->conn ? pg_script(s, sql.ptr, wait_ms) : NULL;
    if (r && (PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK))
        return r;
    const char *state = r ? PQresultErrorField(r, PG_DIAG_SQLSTATE) : NULL;
    const char *why = r         ? PQresultErrorMessage(r)
                      : s->conn ? PQerrorMessage(s->conn)
                                : "it did not answer";
    (void)snprintf(t->state, sizeof t->state, "%s", state ? state : "");
    (void)snprintf(t->text, sizeof t->text, "%.*s", SLICE_ARG(pg_message_line(why ? why : "")));
    PQclear(r);
    return NULL;
}

static bool run(struct postgres_store *s, const char *text, struct trouble *t)
{
    CLEANUP(result_end) PGresult *r = script(s, text, MIGRATION_MS, t);

    return r != NULL;
}

/* -1: there is none, or it is unknown. */
static long version_of(const PGresult *r)
{
    return r && PQntuples(r) == 1 ? strtol(PQgetvalue(r, 0, 0), NULL, 10) : -1;
}

static enum err newer(const struct postgres_store *s, long version, struct error *e)
{
    return error_set(e, ERR_NEWER,
                     "the schema \"%s\" of the database is of version %ld, written by a newer "
                     "intact; this one knows %d",
                     s->schema, version, pg_schema_version);
}

static bool migrate(struct postgres_store *s, long from, struct trouble *t)
{
    char version[80];

    for (long v = from; v < pg_schema_version; v++)
        if (!run(s, postgres_migrations[v], t))
            return false;
    (void)snprintf(version, sizeof version, "UPDATE ~meta SET value = '%d' WHERE name = 'version'",
                   pg_schema_version);
    return run(s, version, t) && run(s, "COMMIT", t);
}

/* ERR_OK, ERR_NEWER, or ERR_IO with what failed. */
static enum err bring_forward(struct postgres_store *s, struct error *e, struct trouble *t)
{
    char sql[sizeof version_sql + 16];

    (void)snprintf(sql, sizeof sql, "%s FOR UPDATE", version_sql);
    if (!run(s, "BEGIN", t))
        return ERR_IO;
    CLEANUP(result_end) PGresult *r = script(s, sql, MIGRATION_MS, t);
    long version = version_of(r);
    if (version > pg_schema_version)
        return newer(s, version, e);
    if (version == pg_schema_version) /* another node was faster */
        return run(s, "ROLLBACK", t) ? ERR_OK : ERR_IO;
    return version >= 0 && migrate(s, version, t) ? ERR_OK : ERR_IO;
}

/* May fail: a role with the privilege may have made it for us. The next statements show it. */
static void make_schema(struct postgres_store *s)
{
    struct trouble ignored;
    char sql[128];

    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA IF NOT EXISTS \"%s\"", s->schema);
    (void)run(s, sql, &ignored);
}

static enum err check_once(struct postgres_store *s, struct error *e, struct trouble *t)
{
    CLEANUP(result_end) PGresult *r = script(s, version_sql, s->wait_ms, t);
    long version = version_of(r);

    if (version > pg_schema_version)
        return newer(s, version, e);
    if (version == pg_schema_version)
        return ERR_OK;
    if (version < 0) {
        if (!s->conn)
            return ERR_IO;
        make_schema(s);
        if (!run(s, first, t))
            return ERR_IO;
    }
    return bring_forward(s, e, t);
}

static enum err tell_trouble(const struct postgres_store *s, const struct trouble *t,
                             struct error *e)
{
    const char *hint = "";

    if (strstr(t->text, "statement pooling"))
        hint = "; the pooler needs pool_mode = transaction, or session";
    else if (strcmp(t->state, "42501") == 0 || strcmp(t->state, "3F000") == 0)
        hint = "; start a node once with a role that may, or have the rights granted";
    return error_set(e, ERR_IO, "cannot make or migrate the schema \"%s\": %s%s", s->schema,
                     t->text, hint);
}

static void pause_shortly(struct postgres_store *s)
{
    const struct timespec t = {.tv_nsec = (long)(1 + prng_below(&s->random, PAUSE_MS)) * 1000000};

    (void)nanosleep(&t, NULL);
}

enum err pg_schema_check(struct postgres_store *s, struct error *e)
{
    struct trouble t = {0};
    enum err err = connection_ready(s, e);

    if (err != ERR_OK)
        return err;
    if (!pg_scripts_begin(s))
        return error_set(e, ERR_IO, "the connection to the database cannot be used");
    for (int i = 0; i < TRIES; i++) {
        err = check_once(s, e, &t);
        if (err == ERR_OK || err == ERR_NEWER)
            break;
        tell_trouble(s, &t, e);
        if (s->conn && PQtransactionStatus(s->conn) != PQTRANS_IDLE)
            (void)run(s, "ROLLBACK", &t);
        if (!s->conn || PQstatus(s->conn) != CONNECTION_OK)
            break;
        pause_shortly(s);
    }
    if (err != ERR_OK || !pg_scripts_end(s))
        connection_drop(s); /* the next one begins in the mode of all the rest */
    return err;
}

enum err pg_schema_node(struct postgres_store *s, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct query q[6];
    PGresult *r[6] = {0};
    unsigned char random[16];

    if (getrandom(s->secret, sizeof s->secret, 0) != sizeof s->secret
        || getrandom(random, sizeof random, 0) != sizeof random)
        return error_set(e, ERR_IO, "the system gives no random bytes");
    enum err err = connection_ready(s, e);
    if (err != ERR_OK)
        return err;
    int64_t sent_at = clock_boot_ms();
    query_of(&q[0], s, PG_SECRET_MAKE, &a);
    param_bytes(&q[0], s->secret, sizeof s->secret);
    query_of(&q[1], s, PG_SECRET_GET, &a);
    query_of(&q[2], s, PG_BOOT, &a);
    param_text(&q[2], slice_of(s->node));
    /* A schema from before there were such ids gets its own here. When nodes start together, one
     * inserts it and the others wait for its commit; nodes of an older version do not look at
     * it. */
    uuid_write(random, s->installation);
    query_of(&q[3], s, PG_INSTALLATION_MAKE, &a);
    param_bytes(&q[3], s->installation, UUID_SIZE - 1);
    query_of(&q[4], s, PG_INSTALLATION_GET, &a);
    query_of(&q[5], s, PG_WAITS_CLEAN, &a);
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
        if (err == ERR_OK && !uuid_read(result_text(r[4], 0, 0), s->installation))
            err = error_set(e, ERR_CORRUPT, "the installation in %smeta is no UUID", s->prefix);
    }
    results_clear(r, COUNT_OF(r));
    return err;
}
