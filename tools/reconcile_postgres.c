/* Reads the server's side of intact-reconcile from a PostgreSQL database: copies what it needs
 * into tables of the SQLite database in which reconcile.c compares (reconcile_postgres.h). */

#include "reconcile_postgres.h"

#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

static bool has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool is_conninfo(const char *text)
{
    return has_prefix(text, "postgres://") || has_prefix(text, "postgresql://")
           || strstr(text, "host=") || strstr(text, "service=") || strstr(text, "dbname=");
}

static bool failed(PGconn *c)
{
    fprintf(stderr, "intact-reconcile: %s", PQerrorMessage(c));
    return false;
}

static bool insert_row(sqlite3_stmt *st, const PGresult *r, int row)
{
    for (int i = 0; i < PQnfields(r); i++) {
        const char *value = PQgetisnull(r, row, i) ? NULL : PQgetvalue(r, row, i);
        if (sqlite3_bind_text(st, i + 1, value, -1, SQLITE_TRANSIENT) != SQLITE_OK)
            return false;
    }
    return sqlite3_step(st) == SQLITE_DONE && sqlite3_reset(st) == SQLITE_OK;
}

/* What one query finds, into one table. */
static bool copy(sqlite3 *db, PGconn *c, const char *query, const char *insert)
{
    sqlite3_stmt *st = NULL;
    PGresult *r = PQexec(c, query);
    bool ok = PQresultStatus(r) == PGRES_TUPLES_OK || failed(c);

    if (ok) {
        ok = sqlite3_prepare_v2(db, insert, -1, &st, NULL) == SQLITE_OK;
        for (int i = 0; ok && i < PQntuples(r); i++)
            ok = insert_row(st, r, i);
        if (!ok)
            fprintf(stderr, "intact-reconcile: %s\n", sqlite3_errmsg(db));
    }
    (void)sqlite3_finalize(st);
    PQclear(r);
    return ok;
}

static bool use_schema(PGconn *c, const char *schema)
{
    const char *const values[] = {schema};
    PGresult *r = PQexecParams(c, "SELECT set_config('search_path', quote_ident($1), false)", 1,
                               NULL, values, NULL, NULL, 0);
    bool ok = PQresultStatus(r) == PGRES_TUPLES_OK || failed(c);

    PQclear(r);
    return ok;
}

bool read_postgres(sqlite3 *db, const char *conninfo, const char *schema)
{
    PGconn *c = PQconnectdb(conninfo);
    bool ok = PQstatus(c) == CONNECTION_OK || failed(c);

    ok = ok && use_schema(c, schema)
         && copy(db, c, "SELECT id, state, input FROM task_view",
                 "INSERT INTO task VALUES (?1, ?2, ?3)")
         && copy(db, c, "SELECT task, name, state, in_doubt::int FROM task_step",
                 "INSERT INTO step VALUES (?1, ?2, ?3, ?4)");
    PQfinish(c);
    return ok;
}
