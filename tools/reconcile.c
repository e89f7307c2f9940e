/*
 * intact-reconcile: does what the world saw agree with what the state store says?
 *
 * Reads the agents' ledgers and, by plain SQL, the server's database, and knows nothing else of
 * either. Copies of both go into one database in memory; each check is a query there that finds
 * nothing if all is well. Run it when nothing moves: the files are read one after another.
 *
 *     intact-reconcile [--allow-open] [--schema NAME] DIR/intact.db|CONNINFO LEDGER...
 *
 * CONNINFO ("postgres://...", "host=...") is a PostgreSQL database that nodes share, with its
 * tables in the schema NAME ("intact").
 *
 * Exit status: 0 all agrees, 1 something does not (one line each), 2 usage or unreadable files.
 */

#include <getopt.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "reconcile_postgres.h"

enum { PATIENCE_MS = 60000 };

static const char tables[] =
    "CREATE TABLE task(id TEXT PRIMARY KEY, state TEXT, input TEXT);"
    "CREATE TABLE step(task TEXT, name TEXT, state TEXT, in_doubt INTEGER,"
    " PRIMARY KEY (task, name));"
    "CREATE TABLE effect(key TEXT, task TEXT, step TEXT, action TEXT, direction TEXT,"
    " outcome TEXT);"
    "CREATE INDEX effect_step ON effect(task, step, direction, outcome);"
    "CREATE INDEX effect_key ON effect(key);"
    "CREATE TABLE stock(sku TEXT, initial INTEGER, on_hand INTEGER);"
    "CREATE TABLE reservation(key TEXT, task TEXT, sku TEXT, quantity INTEGER, released INTEGER);"
    "CREATE INDEX reservation_key ON reservation(key);"
    "CREATE INDEX reservation_sku ON reservation(sku);"
    "CREATE TABLE entry(key TEXT, task TEXT, amount INTEGER);"
    "CREATE INDEX entry_key ON entry(key);"
    "CREATE INDEX entry_task ON entry(task);"
    "CREATE TABLE parcel(key TEXT, task TEXT, cancelled INTEGER);"
    "CREATE INDEX parcel_key ON parcel(key);";

static const char from_server[] =
    "INSERT INTO task SELECT id, state, input FROM source.task_view;"
    "INSERT INTO step SELECT task, name, state, in_doubt FROM source.task_step;";

/* What a ledger may hold besides `effect`, and what of it concerns us. */
static const struct {
    const char *table, *sql;
} from_ledger[] = {
    {"effect", "INSERT INTO effect SELECT idempotency_key, task, step, action, direction, outcome"
               " FROM source.effect"},
    {"stock", "INSERT INTO stock SELECT sku, initial, on_hand FROM source.stock"},
    {"reservation",
     "INSERT INTO reservation"
     " SELECT idempotency_key, task, sku, quantity, released FROM source.reservation"},
    {"entry", "INSERT INTO entry SELECT idempotency_key, task, amount FROM source.entry"},
    {"parcel", "INSERT INTO parcel SELECT idempotency_key, task, cancelled FROM source.parcel"},
};

/* Each gives one text for each discrepancy. */
static const struct check {
    const char *sql;
    bool open; /* left out with --allow-open */
} checks[] = {
    {"SELECT 'task ' || id || ' is still ' || state FROM task"
     " WHERE state NOT IN ('processed', 'compensated', 'error')",
     true},
    {"SELECT 'task ' || task || ' step ' || step || ': ' || direction || ' happened '"
     " || count(*) || ' times' FROM effect WHERE outcome = 'done'"
     " GROUP BY task, step, direction HAVING count(*) > 1",
     false},
    {"SELECT 'task ' || task || ' step ' || step || ': an effect (' || key || ') without a step'"
     " FROM effect WHERE NOT EXISTS (SELECT 1 FROM step AS s"
     " WHERE s.task = effect.task AND s.name = effect.step)",
     false},
    {"SELECT 'task ' || s.task || ' step ' || s.name || ': completed, but there is no effect'"
     " FROM step AS s JOIN task AS t ON t.id = s.task"
     " WHERE t.state = 'processed' AND s.state = 'completed' AND NOT EXISTS ("
     "SELECT 1 FROM effect AS e WHERE e.task = s.task AND e.step = s.name"
     " AND e.direction = 'forward' AND e.outcome = 'done')",
     false},
    {"SELECT 'task ' || s.task || ' step ' || s.name || ': ' || s.state || ', but took effect'"
     " FROM step AS s JOIN task AS t ON t.id = s.task WHERE t.state = 'processed'"
     " AND s.state <> 'completed' AND NOT s.in_doubt AND EXISTS ("
     "SELECT 1 FROM effect AS e WHERE e.task = s.task AND e.step = s.name"
     " AND e.direction = 'forward' AND e.outcome = 'done')",
     false},
    {"SELECT 'task ' || e.task || ' step ' || e.step || ': processed, but undone'"
     " FROM effect AS e JOIN task AS t ON t.id = e.task"
     " WHERE t.state = 'processed' AND e.direction = 'undo'",
     false},
    {"SELECT 'task ' || e.task || ' step ' || e.step || ': compensated, but not undone'"
     " FROM effect AS e JOIN task AS t ON t.id = e.task"
     " WHERE t.state = 'compensated' AND e.direction = 'forward' AND e.outcome = 'done'"
     " AND NOT EXISTS (SELECT 1 FROM effect AS u WHERE u.task = e.task AND u.step = e.step"
     " AND u.direction = 'undo' AND u.outcome = 'done')",
     false},
    {"SELECT 'task ' || u.task || ' step ' || u.step || ': undone, but it had not happened'"
     " FROM effect AS u WHERE u.direction = 'undo' AND u.outcome = 'done'"
     " AND NOT EXISTS (SELECT 1 FROM effect AS e WHERE e.task = u.task AND e.step = u.step"
     " AND e.direction = 'forward' AND e.outcome = 'done')",
     false},
    {"SELECT 'task ' || u.task || ' step ' || u.step || ': a tombstone that bars nothing'"
     " FROM effect AS u WHERE u.direction = 'undo' AND u.outcome = 'nothing'"
     " AND NOT EXISTS (SELECT 1 FROM effect AS e WHERE e.task = u.task AND e.step = u.step"
     " AND e.direction = 'forward' AND e.outcome = 'barred')",
     false},
    /* the shelf */
    {"SELECT 'sku ' || sku || ': ' || on_hand || ' on hand and ' || taken || ' reserved of '"
     " || initial FROM (SELECT *, (SELECT coalesce(sum(quantity), 0) FROM reservation AS r"
     " WHERE r.sku = stock.sku AND NOT r.released) AS taken FROM stock)"
     " WHERE on_hand + taken <> initial",
     false},
    {"SELECT 'task ' || e.task || ': reserve is on record, the reservation is not' FROM effect AS e"
     " WHERE e.action = 'reserve' AND e.outcome = 'done'"
     " AND NOT EXISTS (SELECT 1 FROM reservation AS r WHERE r.key = e.key)",
     false},
    {"SELECT 'task ' || r.task || ': a reservation of ' || quantity || ' without a record'"
     " FROM reservation AS r WHERE NOT EXISTS (SELECT 1 FROM effect AS e"
     " WHERE e.key = r.key AND e.direction = 'forward' AND e.outcome = 'done')",
     false},
    {"SELECT 'task ' || r.task || ': reserved ' || r.quantity || ' where '"
     " || (t.input ->> '$.quantity') || ' were ordered'"
     " FROM reservation AS r JOIN task AS t ON t.id = r.task"
     " WHERE r.quantity <> t.input ->> '$.quantity'",
     false},
    {"SELECT 'task ' || r.task || ': released is ' || r.released || ', its undo says otherwise'"
     " FROM reservation AS r WHERE r.released <> EXISTS (SELECT 1 FROM effect AS e"
     " JOIN effect AS u ON u.task = e.task AND u.step = e.step AND u.direction = 'undo'"
     " AND u.outcome = 'done' WHERE e.key = r.key)",
     false},
    /* the money */
    {"SELECT 'task ' || e.task || ' ' || e.action || ': on record, but no money moved'"
     " FROM effect AS e WHERE e.action IN ('charge', 'refund') AND e.outcome = 'done'"
     " AND NOT EXISTS (SELECT 1 FROM entry AS m WHERE m.key = e.key)",
     false},
    {"SELECT 'task ' || m.task || ': ' || m.amount || ' moved without a record' FROM entry AS m"
     " WHERE NOT EXISTS (SELECT 1 FROM effect AS e WHERE e.key = m.key AND e.outcome = 'done')",
     false},
    {"SELECT 'task ' || t.id || ' is ' || t.state || ' and should have cost ' || due || ', not '"
     " || paid FROM (SELECT id, state, (SELECT coalesce(sum(amount), 0) FROM entry AS m"
     " WHERE m.task = task.id) AS paid, CASE WHEN state = 'processed' AND EXISTS ("
     "SELECT 1 FROM step AS s WHERE s.task = task.id AND s.name = 'charge'"
     " AND s.state = 'completed') THEN input ->> '$.amount' ELSE 0 END AS due FROM task) AS t"
     " WHERE state IN ('processed', 'compensated') AND paid <> due",
     false},
    /* the parcels */
    {"SELECT 'task ' || e.task || ': ship is on record, the parcel is not' FROM effect AS e"
     " WHERE e.action = 'ship' AND e.outcome = 'done'"
     " AND NOT EXISTS (SELECT 1 FROM parcel AS p WHERE p.key = e.key)",
     false},
    {"SELECT 'task ' || p.task || ': a parcel without a record' FROM parcel AS p"
     " WHERE NOT EXISTS (SELECT 1 FROM effect AS e WHERE e.key = p.key AND e.outcome = 'done')",
     false},
    {"SELECT 'task ' || p.task || ' is ' || t.state || ': its parcel is '"
     " || iif(p.cancelled, 'cancelled', 'on its way') FROM parcel AS p JOIN task AS t ON t.id = "
     "p.task"
     " WHERE (t.state = 'processed' AND p.cancelled)"
     " OR (t.state = 'compensated' AND NOT p.cancelled)",
     false},
};

static const char summary[] =
    "SELECT t.state, count(*), sum((SELECT count(*) FROM effect AS e WHERE e.task = t.id"
    " AND e.direction = 'forward' AND e.outcome = 'done')),"
    " sum((SELECT count(*) FROM effect AS e WHERE e.task = t.id AND e.direction = 'undo'"
    " AND e.outcome = 'done')), sum((SELECT count(*) FROM effect AS e WHERE e.task = t.id"
    " AND e.outcome = 'barred')) FROM task AS t GROUP BY t.state ORDER BY t.state";

static bool failed(sqlite3 *db, const char *what)
{
    fprintf(stderr, "intact-reconcile: %s: %s\n", what, sqlite3_errmsg(db));
    return false;
}

static bool attach(sqlite3 *db, const char *path)
{
    char *uri = sqlite3_mprintf("file:%s?mode=ro", path); /* never touches what it judges */
    sqlite3_stmt *st = NULL;
    bool ok = sqlite3_prepare_v2(db, "ATTACH ?1 AS source", -1, &st, NULL) == SQLITE_OK
              && sqlite3_bind_text(st, 1, uri, -1, SQLITE_TRANSIENT) == SQLITE_OK
              && sqlite3_step(st) == SQLITE_DONE;

    sqlite3_free(uri);
    (void)sqlite3_finalize(st); /* repeats what the step said */
    return ok || failed(db, path);
}

static bool has_table(sqlite3 *db, const char *table)
{
    sqlite3_stmt *st = NULL;
    bool found =
        sqlite3_prepare_v2(db, "SELECT 1 FROM source.sqlite_schema WHERE name = ?1", -1, &st, NULL)
            == SQLITE_OK
        && sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC) == SQLITE_OK
        && sqlite3_step(st) == SQLITE_ROW;

    (void)sqlite3_finalize(st);
    return found;
}

static bool run(sqlite3 *db, const char *sql, const char *what)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK || failed(db, what);
}

static bool read_ledger(sqlite3 *db, const char *path)
{
    if (!attach(db, path))
        return false;
    if (!has_table(db, "effect")) {
        fprintf(stderr, "intact-reconcile: %s is no ledger: it has no table `effect`\n", path);
        return false;
    }
    for (size_t i = 0; i < sizeof(from_ledger) / sizeof(from_ledger[0]); i++)
        if (has_table(db, from_ledger[i].table) && !run(db, from_ledger[i].sql, path))
            return false;
    return run(db, "DETACH source", path);
}

static bool read_server(sqlite3 *db, const char *source, const char *schema)
{
    if (is_conninfo(source))
        return read_postgres(db, source, schema);
    return attach(db, source) && run(db, from_server, source) && run(db, "DETACH source", source);
}

static bool read_all(sqlite3 *db, const char *schema, char **paths, int count)
{
    if (!run(db, tables, "memory") || !read_server(db, paths[0], schema))
        return false;
    for (int i = 1; i < count; i++)
        if (!read_ledger(db, paths[i]))
            return false;
    return true;
}

static bool print_summary(sqlite3 *db)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, summary, -1, &st, NULL);

    printf("%-14s %9s %9s %9s %9s\n", "STATE", "TASKS", "EFFECTS", "UNDONE", "BARRED");
    for (rc = rc == SQLITE_OK ? sqlite3_step(st) : rc; rc == SQLITE_ROW; rc = sqlite3_step(st))
        printf("%-14s %9d %9d %9d %9d\n", (const char *)sqlite3_column_text(st, 0),
               sqlite3_column_int(st, 1), sqlite3_column_int(st, 2), sqlite3_column_int(st, 3),
               sqlite3_column_int(st, 4));
    (void)sqlite3_finalize(st);
    return rc == SQLITE_DONE || failed(db, "summary");
}

/* Prints what one check finds, and adds to the count. */
static bool print_findings(sqlite3 *db, const struct check *c, long *count)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, c->sql, -1, &st, NULL);

    for (rc = rc == SQLITE_OK ? sqlite3_step(st) : rc; rc == SQLITE_ROW; rc = sqlite3_step(st)) {
        const char *text = (const char *)sqlite3_column_text(st, 0);
        printf("%s\n", text ? text : "a row with missing values");
        ++*count;
    }
    (void)sqlite3_finalize(st);
    return rc == SQLITE_DONE || failed(db, c->sql);
}

static int reconcile(sqlite3 *db, bool allow_open)
{
    long count = 0;

    if (!print_summary(db))
        return 2;
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        if (!(allow_open && checks[i].open) && !print_findings(db, &checks[i], &count))
            return 2;
    printf("discrepancies: %ld\n", count);
    return count ? 1 : 0;
}

int main(int argc, char **argv)
{
    static const struct option flags[] = {{"allow-open", no_argument, NULL, 'o'},
                                          {"schema", required_argument, NULL, 's'},
                                          {NULL, 0, NULL, 0}};
    bool allow_open = false;
    const char *schema = "intact";
    sqlite3 *db = NULL;
    int status = 2;

    for (int f = getopt_long(argc, argv, "", flags, NULL); f != -1;
         f = getopt_long(argc, argv, "", flags, NULL)) {
        if (f == 's')
            schema = optarg;
        else if (f == 'o')
            allow_open = true;
        else
            return 2;
    }
    if (argc - optind < 2) {
        fprintf(stderr, "usage: intact-reconcile [--allow-open] [--schema NAME] "
                        "DIR/intact.db|CONNINFO LEDGER...\n");
        return 2;
    }
    if (sqlite3_open_v2(":memory:", &db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL)
            == SQLITE_OK
        && sqlite3_busy_timeout(db, PATIENCE_MS) == SQLITE_OK /* a log that is being recovered */
        && read_all(db, schema, argv + optind, argc - optind))
        status = reconcile(db, allow_open);
    (void)sqlite3_close(db);
    return status;
}
