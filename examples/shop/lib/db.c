/* The shop's database: the same SQL for PostgreSQL and for the SQLite file of a server (db.h). A
 * lost connection is made again by the next query. An open transaction that failed can only be
 * rolled back. One thread uses it at a time. */

#include "db.h"

#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct db {
    char *url;
    PGconn *pg; /* one of the two, while it is connected */
    sqlite3 *lite;
    bool in_transaction;
    enum db_result broken; /* what ended the open transaction, which can only be rolled back now */
    char error[512];
};

struct db_rows {
    int count;
    int columns;
    char **texts; /* row by row */
};

static void *must(void *memory)
{
    if (!memory)
        abort(); /* a server that is started again is better than one that goes on without */
    return memory;
}

__attribute__((format(printf, 3, 4))) static enum db_result
fail(struct db *db, enum db_result result, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(db->error, sizeof(db->error), format, args);
    va_end(args);
    db->error[strcspn(db->error, "\n")] = '\0';
    return result;
}

static void disconnect(struct db *db)
{
    PQfinish(db->pg);
    sqlite3_close(db->lite);
    db->pg = NULL;
    db->lite = NULL;
}

static void rows_set(struct db_rows *rows, int column, const char *text)
{
    int row = rows->count - 1;
    rows->texts[row * rows->columns + column] = text ? must(strdup(text)) : NULL;
}

static void rows_grow(struct db_rows *rows)
{
    size_t size = (size_t)(rows->count + 1) * (size_t)rows->columns;
    rows->texts = must(realloc(rows->texts, size * sizeof(*rows->texts)));
    rows->count += 1;
}

/* ---- PostgreSQL ---- */

/* Two classes of SQLSTATE speak of what was given: its values, and the constraints. All others are
 * of the moment, or of a database that is not as it should be. */
static enum db_result pg_fail(struct db *db, PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    bool refused = state && (strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0);

    fail(db, DB_OK, "%s", PQerrorMessage(db->pg));
    if (PQstatus(db->pg) != CONNECTION_OK)
        disconnect(db);
    PQclear(result);
    return refused ? DB_REFUSED : DB_AWAY;
}

static enum db_result pg_script(struct db *db, const char *sql)
{
    PGresult *result = PQexec(db->pg, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return pg_fail(db, result);
    PQclear(result);
    return DB_OK;
}

static enum db_result pg_connect(struct db *db)
{
    const char *const names[] = {"dbname", "connect_timeout", "fallback_application_name", NULL};
    const char *const values[] = {db->url, "10", "shop", NULL};
    db->pg = PQconnectdbParams(names, values, 1);
    if (PQstatus(db->pg) != CONNECTION_OK) {
        fail(db, DB_AWAY, "%s", PQerrorMessage(db->pg));
        disconnect(db);
        return DB_AWAY;
    }
    return pg_script(db, "SET client_min_messages = warning; SET search_path TO public, intact");
}

static enum db_result pg_query(struct db *db, struct db_rows *rows, const char *sql, int count,
                               const char *const *args)
{
    PGresult *result = PQexecParams(db->pg, sql, count, NULL, args, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return pg_fail(db, result);

    rows->columns = PQnfields(result);
    for (int row = 0; row < PQntuples(result); row++) {
        rows_grow(rows);
        for (int column = 0; column < rows->columns; column++) {
            bool null = PQgetisnull(result, row, column) == 1;
            rows_set(rows, column, null ? NULL : PQgetvalue(result, row, column));
        }
    }
    PQclear(result);
    return DB_OK;
}

/* ---- SQLite ---- */

static enum db_result lite_fail(struct db *db)
{
    int code = sqlite3_errcode(db->lite);
    fail(db, DB_OK, "%s", sqlite3_errmsg(db->lite));
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
        return DB_AWAY;
    if (code == SQLITE_ERROR || code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH)
        return DB_REFUSED;
    disconnect(db); /* the disk, the file, memory */
    return DB_AWAY;
}

/* What was given is not to blame if the statement cannot even be prepared: a table is missing. */
static enum db_result lite_fail_of(struct db *db, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    enum db_result result = lite_fail(db);
    if (result == DB_REFUSED
        && sqlite3_prepare_v2(db->lite, sql, -1, &statement, NULL) != SQLITE_OK)
        result = DB_AWAY;
    sqlite3_finalize(statement);
    return result;
}

/* The server makes the file and looks after it. We wait for it, and for others that write. */
static enum db_result lite_connect(struct db *db)
{
    if (sqlite3_open_v2(db->url, &db->lite, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        fail(db, DB_AWAY, "%s: %s", db->url, sqlite3_errmsg(db->lite));
        disconnect(db);
        return DB_AWAY;
    }
    sqlite3_busy_timeout(db->lite, 30000);
    return DB_OK;
}

static enum db_result lite_query(struct db *db, struct db_rows *rows, const char *sql, int count,
                                 const char *const *args)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(db->lite, sql, -1, &statement, NULL) != SQLITE_OK)
        return lite_fail_of(db, sql);
    for (int i = 0; i < count; i++) {
        char name[16]; /* to SQLite, $2 is a name and not a number */
        snprintf(name, sizeof(name), "$%d", i + 1);
        int index = sqlite3_bind_parameter_index(statement, name);
        if (index > 0)
            sqlite3_bind_text(statement, index, args[i], -1, SQLITE_STATIC);
    }

    rows->columns = sqlite3_column_count(statement);
    int step = sqlite3_step(statement);
    for (; step == SQLITE_ROW; step = sqlite3_step(statement)) {
        rows_grow(rows);
        for (int column = 0; column < rows->columns; column++)
            rows_set(rows, column, (const char *)sqlite3_column_text(statement, column));
    }
    sqlite3_finalize(statement);
    return step == SQLITE_DONE ? DB_OK : lite_fail_of(db, sql);
}

static enum db_result lite_script(struct db *db, const char *sql)
{
    const char *const parts[] = {"BEGIN IMMEDIATE", sql, "COMMIT"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (sqlite3_exec(db->lite, parts[i], NULL, NULL, NULL) != SQLITE_OK) {
            enum db_result result = lite_fail(db);
            if (db->lite && !sqlite3_get_autocommit(db->lite))
                sqlite3_exec(db->lite, "ROLLBACK", NULL, NULL, NULL);
            return result;
        }
    return DB_OK;
}

/* ---- Both ---- */

static bool is_postgres(const struct db *db)
{
    return strncmp(db->url, "postgresql:", 11) == 0 || strncmp(db->url, "postgres:", 9) == 0;
}

static enum db_result connected(struct db *db)
{
    if (db->pg || db->lite)
        return DB_OK;
    return is_postgres(db) ? pg_connect(db) : lite_connect(db);
}

struct db *db_open(const char *url)
{
    struct db *db = must(calloc(1, sizeof(*db)));
    db->url = must(strdup(url));
    return db;
}

void db_close(struct db *db)
{
    if (!db)
        return;
    disconnect(db);
    free(db->url);
    free(db);
}

const char *db_error(const struct db *db)
{
    return db->error;
}

static enum db_result query_once(struct db *db, struct db_rows **ret, const char *sql, int count,
                                 const char *const *args)
{
    if (db->in_transaction && db->broken != DB_OK)
        return db->broken;
    enum db_result result = connected(db);
    if (result != DB_OK)
        return result;
    struct db_rows *rows = must(calloc(1, sizeof(*rows)));
    result = db->pg ? pg_query(db, rows, sql, count, args) : lite_query(db, rows, sql, count, args);
    if (result == DB_OK && ret)
        *ret = rows;
    else
        db_free(rows);
    db->broken = result;
    return result;
}

enum db_result db_query(struct db *db, struct db_rows **ret, const char *sql, int count,
                        const char *const *args)
{
    bool was_connected = db->pg || db->lite;
    enum db_result result = query_once(db, ret, sql, count, args);
    /* A connection that nobody used for a while may have ended without our knowing. */
    if (result == DB_AWAY && !db->in_transaction && was_connected && !db->pg && !db->lite)
        result = query_once(db, ret, sql, count, args);
    return result;
}

enum db_result db_script(struct db *db, const char *sql)
{
    enum db_result result = connected(db);
    if (result != DB_OK)
        return result;
    return db->pg ? pg_script(db, sql) : lite_script(db, sql);
}

enum db_result db_begin(struct db *db)
{
    db_rollback(db);
    const char *begin = is_postgres(db) ? "BEGIN" : "BEGIN IMMEDIATE";
    enum db_result result = db_query(db, NULL, begin, 0, NULL);
    db->in_transaction = result == DB_OK;
    return result;
}

enum db_result db_commit(struct db *db)
{
    enum db_result result = query_once(db, NULL, "COMMIT", 0, NULL);
    if (result == DB_OK)
        db->in_transaction = false;
    else
        db_rollback(db);
    return result;
}

void db_rollback(struct db *db)
{
    if (db->in_transaction && db->pg)
        (void)pg_script(db, "ROLLBACK"); /* if it fails, the connection's end did it */
    if (db->in_transaction && db->lite)
        sqlite3_exec(db->lite, "ROLLBACK", NULL, NULL, NULL); /* SQLite may have done it itself */
    db->in_transaction = false;
}

int db_count(const struct db_rows *rows)
{
    return rows ? rows->count : 0;
}

const char *db_text(const struct db_rows *rows, int row, int column)
{
    return rows->texts[row * rows->columns + column];
}

void db_free(struct db_rows *rows)
{
    if (!rows)
        return;
    for (int i = 0; i < rows->count * rows->columns; i++)
        free(rows->texts[i]);
    free(rows->texts);
    free(rows);
}
