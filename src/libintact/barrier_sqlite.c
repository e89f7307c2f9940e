/* The barrier on a SQLite connection of the caller: see <intact/barrier.h>. It never begins a
 * transaction, except to clean. */
#include <intact/barrier.h>
#include <sqlite3.h>
#include <stdio.h>

#include "base/base.h"
#include "libintact/sqlite_commit.h"
#include "schema_barrier_sqlite.h"

/* clang-format off */
/* As in lib/barrier/sqlite.sql; a test compares them. */
#define STATEMENTS(X)                                                                           \
    X(FORWARD,        "INSERT INTO intact_barrier(forward_key) VALUES (:key)"                   \
                      " ON CONFLICT DO NOTHING")                                                \
    X(FORWARD_AGAIN,  "SELECT CASE outcome WHEN 'done' THEN 'repeat' ELSE 'undone' END"         \
                      " AS verdict, CASE outcome WHEN 'done' THEN output END AS output"         \
                      " FROM intact_barrier WHERE forward_key = :key")                          \
    X(UNDO,           "INSERT INTO intact_barrier(forward_key, outcome) VALUES (:key, 'barred')"\
                      " ON CONFLICT DO NOTHING")                                                \
    X(UNDO_DONE,      "UPDATE intact_barrier SET outcome = 'undone',"                           \
                      " at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"        \
                      " WHERE forward_key = :key AND outcome = 'done'")                         \
    X(UNDO_AGAIN,     "SELECT CASE outcome WHEN 'undone' THEN 'repeat' ELSE 'nothing' END"      \
                      " AS verdict, undo_output AS output"                                      \
                      " FROM intact_barrier WHERE forward_key = :key")                          \
    X(FORWARD_OUTPUT, "SELECT output FROM intact_barrier WHERE forward_key = :key")             \
    X(DONE,           "UPDATE intact_barrier SET output = :output"                              \
                      " WHERE forward_key = :key AND outcome = 'done' AND output IS NULL")      \
    X(DONE_UNDO,      "UPDATE intact_barrier SET undo_output = :output"                         \
                      " WHERE forward_key = :key AND outcome = 'undone' AND undo_output IS NULL")
/* clang-format on */

enum statement {
#define X(name, text) ST_##name,
    STATEMENTS(X)
#undef X
};

static const char *const sql[] = {
#define X(name, text) [ST_##name] = (text),
    STATEMENTS(X)
#undef X
};

static void statement_fini(sqlite3_stmt **st)
{
    (void)sqlite3_finalize(*st); /* reports the error of the last step again */
}

/* A temporary condition: another connection's lock, a full disk. */
static bool is_passing(int code)
{
    static const int passing[] = {SQLITE_BUSY,     SQLITE_LOCKED,   SQLITE_INTERRUPT,
                                  SQLITE_FULL,     SQLITE_IOERR,    SQLITE_NOMEM,
                                  SQLITE_CANTOPEN, SQLITE_PROTOCOL, SQLITE_SCHEMA};

    for (size_t i = 0; i < COUNT_OF(passing); i++)
        if ((code & 0xff) == passing[i])
            return true;
    return false;
}

static bool trouble(struct intact_barrier *b, sqlite3 *db)
{
    intact_barrier_set(b,
                       is_passing(sqlite3_errcode(db)) ? INTACT_BARRIER_AGAIN
                                                       : INTACT_BARRIER_FAILED,
                       NULL, sqlite3_errmsg(db));
    return false;
}

static bool prepare(struct intact_barrier *b, sqlite3 *db, enum statement which, sqlite3_stmt **ret)
{
    bool ok = sqlite3_prepare_v2(db, sql[which], -1, ret, NULL) == SQLITE_OK;

    ok = ok
         && sqlite3_bind_text(*ret, sqlite3_bind_parameter_index(*ret, ":key"),
                              intact_barrier_key(b), -1, SQLITE_TRANSIENT)
                == SQLITE_OK;
    return ok || trouble(b, db);
}

/* Runs a statement that changes rows and returns their number. False: the verdict says why. */
static bool change(struct intact_barrier *b, sqlite3 *db, enum statement which, const char *output,
                   int *ret_count)
{
    CLEANUP(statement_fini) sqlite3_stmt *st = NULL;

    if (!prepare(b, db, which, &st))
        return false;
    if (output
        && sqlite3_bind_text(st, sqlite3_bind_parameter_index(st, ":output"), output, -1,
                             SQLITE_STATIC)
               != SQLITE_OK)
        return trouble(b, db);
    if (sqlite3_step(st) != SQLITE_DONE)
        return trouble(b, db);
    *ret_count = sqlite3_changes(db);
    return true;
}

static const char *text_at(sqlite3_stmt *st, int column)
{
    return (const char *)sqlite3_column_text(st, column);
}

/* Reads the recorded outcome. */
static void read_again(struct intact_barrier *b, sqlite3 *db, bool is_undo)
{
    CLEANUP(statement_fini) sqlite3_stmt *st = NULL;

    if (!prepare(b, db, is_undo ? ST_UNDO_AGAIN : ST_FORWARD_AGAIN, &st))
        return;
    int rc = sqlite3_step(st);
    const char *said = rc == SQLITE_ROW ? text_at(st, 0) : NULL;
    if (rc == SQLITE_DONE)
        intact_barrier_set(b, INTACT_BARRIER_FAILED, NULL, "the record has disappeared");
    else if (!said)
        (void)trouble(b, db);
    else if (slice_is(slice_of(said), "repeat"))
        intact_barrier_set(b, INTACT_BARRIER_REPEAT, text_at(st, 1), NULL);
    else
        intact_barrier_set(b, is_undo ? INTACT_BARRIER_NOTHING : INTACT_BARRIER_UNDONE, NULL, NULL);
}

static void set_undo(struct intact_barrier *b, sqlite3 *db)
{
    CLEANUP(statement_fini) sqlite3_stmt *st = NULL;

    if (!prepare(b, db, ST_FORWARD_OUTPUT, &st))
        return;
    if (sqlite3_step(st) == SQLITE_ROW)
        intact_barrier_set(b, INTACT_BARRIER_DO, text_at(st, 0), NULL);
    else
        (void)trouble(b, db);
}

static void ask_forward(struct intact_barrier *b, sqlite3 *db)
{
    int new = 0;

    if (!change(b, db, ST_FORWARD, NULL, &new))
        return;
    if (new == 1)
        intact_barrier_set(b, INTACT_BARRIER_DO, NULL, NULL);
    else
        read_again(b, db, false);
}

static void ask_undo(struct intact_barrier *b, sqlite3 *db)
{
    int new = 0, undone = 0;

    if (!change(b, db, ST_UNDO, NULL, &new))
        return;
    if (new == 1) {
        intact_barrier_set(b, INTACT_BARRIER_NOTHING, NULL, NULL);
        return;
    }
    if (!change(b, db, ST_UNDO_DONE, NULL, &undone))
        return;
    if (undone == 1)
        set_undo(b, db);
    else
        read_again(b, db, true);
}

bool intact_barrier_sqlite_ok(struct intact_barrier *b, struct sqlite3 *db, int rc)
{
    bool is_last = sqlite3_errcode(db) == rc || sqlite3_extended_errcode(db) == rc;

    if (rc == SQLITE_OK || rc == SQLITE_ROW || rc == SQLITE_DONE)
        return true;
    intact_barrier_set(b, is_passing(rc) ? INTACT_BARRIER_AGAIN : INTACT_BARRIER_FAILED, NULL,
                       is_last ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
    return false;
}

enum intact_verdict intact_barrier_sqlite(struct intact_barrier *b, struct sqlite3 *db)
{
    enum intact_direction direction = intact_barrier_direction(b);
    bool has_key = *intact_barrier_key(b) != '\0';

    if (!has_key || (direction != INTACT_FORWARD && direction != INTACT_UNDO))
        intact_barrier_set(b, INTACT_BARRIER_FAILED, NULL,
                           has_key ? "the direction is neither forward nor undo"
                                   : "the key of the forward request is empty");
    else if (sqlite3_get_autocommit(db))
        intact_barrier_set(b, INTACT_BARRIER_FAILED, NULL,
                           "no transaction is open; begin one first (BEGIN IMMEDIATE)");
    else if (direction == INTACT_FORWARD)
        ask_forward(b, db);
    else
        ask_undo(b, db);
    return intact_barrier_verdict(b);
}

bool intact_barrier_sqlite_done(struct intact_barrier *b, struct sqlite3 *db,
                                const char *output_json)
{
    const char *output = output_json ? output_json : "null";
    bool is_undo = intact_barrier_direction(b) == INTACT_UNDO;
    int count = 0;

    if (intact_barrier_verdict(b) > INTACT_BARRIER_NOTHING)
        return false;
    if (sqlite3_get_autocommit(db)) {
        intact_barrier_set(b, INTACT_BARRIER_AGAIN, NULL,
                           "the transaction was rolled back by an error of the effect");
        return false;
    }
    if (!change(b, db, is_undo ? ST_DONE_UNDO : ST_DONE, output, &count))
        return false;
    if (intact_barrier_verdict(b) != INTACT_BARRIER_DO || count != 1) {
        intact_barrier_set(b, INTACT_BARRIER_FAILED, NULL,
                           "an output can be recorded once, and only after the verdict to do it");
        return false;
    }
    intact_barrier_set(b, INTACT_BARRIER_DO, output, NULL);
    return true;
}

/* A failed rollback cannot be handled. */
static void roll_back(sqlite3 *db)
{
    if (!sqlite3_get_autocommit(db)) /* some errors have rolled back already */
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

/* Whether the pragma returns the word; true if it cannot be read. */
static bool pragma_is(sqlite3 *db, const char *pragma, const char *word)
{
    CLEANUP(statement_fini) sqlite3_stmt *st = NULL;

    if (sqlite3_prepare_v2(db, pragma, -1, &st, NULL) != SQLITE_OK
        || sqlite3_step(st) != SQLITE_ROW)
        return true;
    return slice_is(slice_of(text_at(st, 0)), word);
}

/* Such a journal is not deleted by the commit: its header is overwritten. If that write fails
 * halfway, a reader may consider the journal ended and the transaction committed. */
static bool writes_over_its_journal(sqlite3 *db)
{
    return pragma_is(db, "PRAGMA journal_mode", "persist")
           || pragma_is(db, "PRAGMA locking_mode", "exclusive");
}

static bool commit(struct intact_barrier *b, sqlite3 *db)
{
    if (sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
        return true;
    int kind = sqlite3_errcode(db) & 0xff;
    bool certain = sqlite_commit_had_no_effect(db);
    (void)trouble(b, db); /* save the message before anything else uses the connection */
    if ((kind == SQLITE_FULL || kind == SQLITE_IOERR) && writes_over_its_journal(db))
        certain = false;
    if (!certain)
        intact_barrier_set_unsure(b, intact_barrier_why(b));
    return false;
}

bool intact_barrier_sqlite_end(struct intact_barrier *b, struct sqlite3 *db)
{
    enum intact_verdict verdict = intact_barrier_verdict(b);
    bool ok = false;

    if (verdict == INTACT_BARRIER_DO && intact_barrier_is_late(b))
        intact_barrier_set(b, INTACT_BARRIER_LATE, NULL, "its deadline has passed");
    else if (verdict <= INTACT_BARRIER_NOTHING && sqlite3_get_autocommit(db))
        intact_barrier_set_unsure(b, "the transaction had already ended");
    else if (verdict <= INTACT_BARRIER_NOTHING)
        ok = commit(b, db);
    roll_back(db);
    return ok;
}

bool intact_barrier_sqlite_setup(struct sqlite3 *db, char *why, size_t why_size)
{
    if (sqlite3_exec(db, schema_barrier_sqlite, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    if (why_size > 0)
        snprintf(why, why_size, "cannot create the table intact_barrier: %s", sqlite3_errmsg(db));
    return false;
}

int64_t intact_barrier_sqlite_clean(struct sqlite3 *db, int64_t age_ms, int64_t max)
{
    static const char clean[] =
        "DELETE FROM intact_barrier WHERE forward_key IN (SELECT forward_key FROM intact_barrier"
        " WHERE at < CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - ?1"
        " ORDER BY at LIMIT ?2)";
    CLEANUP(statement_fini) sqlite3_stmt *st = NULL;
    bool ok = sqlite3_prepare_v2(db, clean, -1, &st, NULL) == SQLITE_OK
              && sqlite3_bind_int64(st, 1, age_ms) == SQLITE_OK
              && sqlite3_bind_int64(st, 2, max < 0 ? 0 : max) == SQLITE_OK
              && sqlite3_step(st) == SQLITE_DONE;

    return ok ? sqlite3_changes(db) : -1;
}
