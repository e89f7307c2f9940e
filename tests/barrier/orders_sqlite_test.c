/* Every order of orders.h on SQLite, in both journal modes, with immediate and with deferred
 * transactions. */

#include "base/test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orders.h"

static char path[80];
static sqlite3 *dbs[SESSIONS_MAX], *monitor;
static const char *journal, *begin_sql;
static bool every; /* three sessions may crash, too: half of all there is to try */

static void must(sqlite3 *db, const char *sql)
{
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
}

static sqlite3 *open_db(void)
{
    sqlite3 *db = NULL;

    CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
    must(db, "PRAGMA synchronous = OFF"); /* the disk is not what is tested here */
    return db;
}

static void reset(bool done, char ret_key[OUTPUT_SIZE])
{
    (void)snprintf(ret_key, OUTPUT_SIZE, "t/s");
    must(monitor, "BEGIN IMMEDIATE; DELETE FROM intact_barrier; DELETE FROM world");
    if (done)
        must(monitor,
             "INSERT INTO intact_barrier(forward_key, output) VALUES ('t/s', '\"before\"');"
             "INSERT INTO world VALUES (1)");
    must(monitor, "COMMIT");
}

static enum progress begin(struct session *s)
{
    sqlite3 **db = &dbs[s->number];

    if (!*db)
        *db = open_db();
    int rc = sqlite3_exec(*db, begin_sql, NULL, NULL, NULL);
    CHECK(rc == SQLITE_OK || rc == SQLITE_BUSY, "%s", sqlite3_errmsg(*db));
    return rc == SQLITE_OK ? IS_DONE : REFUSED;
}

static enum progress ask(struct session *s)
{
    (void)intact_barrier_sqlite(s->b, dbs[s->number]);
    return IS_DONE;
}

static bool effect(struct session *s)
{
    must(dbs[s->number], s->direction == INTACT_UNDO ? "INSERT INTO world VALUES (-1)"
                                                     : "INSERT INTO world VALUES (1)");
    return true;
}

static bool record(struct session *s)
{
    return intact_barrier_sqlite_done(s->b, dbs[s->number], s->output);
}

static bool end(struct session *s, enum ending how)
{
    sqlite3 **db = &dbs[s->number];

    if (how == END_COMMIT)
        return intact_barrier_sqlite_end(s->b, *db);
    if (how == END_ROLLBACK) {
        must(*db, "ROLLBACK");
    } else { /* what the next connection does with the file of a process that died */
        CHECK(sqlite3_close(*db) == SQLITE_OK, "close");
        *db = NULL;
    }
    return false;
}

static int number(sqlite3_stmt *st, int column)
{
    return sqlite3_column_int(st, column);
}

static void text(sqlite3_stmt *st, int column, char ret[OUTPUT_SIZE])
{
    const unsigned char *t = sqlite3_column_text(st, column);

    (void)snprintf(ret, OUTPUT_SIZE, "%s", t ? (const char *)t : "");
}

static void look(char outcome[OUTPUT_SIZE], char output[OUTPUT_SIZE], char undo_output[OUTPUT_SIZE],
                 int *forward, int *undo)
{
    sqlite3_stmt *st = NULL;

    CHECK(sqlite3_prepare_v2(monitor,
                             "SELECT max(outcome), max(output), max(undo_output), count(*),"
                             " (SELECT count(*) FROM world WHERE delta = 1),"
                             " (SELECT count(*) FROM world WHERE delta = -1) FROM intact_barrier",
                             -1, &st, NULL)
                  == SQLITE_OK
              && sqlite3_step(st) == SQLITE_ROW,
          "%s", sqlite3_errmsg(monitor));
    text(st, 0, outcome);
    text(st, 1, output);
    text(st, 2, undo_output);
    CHECK(number(st, 3) <= 1, "%d records", number(st, 3));
    *forward = number(st, 4);
    *undo = number(st, 5);
    (void)sqlite3_finalize(st);
}

static void make(void)
{
    char why[200] = "", sql[80];

    CHECK(sqlite3_open(path, &monitor) == SQLITE_OK, "%s", path);
    (void)snprintf(sql, sizeof sql, "PRAGMA journal_mode = %s; PRAGMA synchronous = OFF", journal);
    must(monitor, sql);
    must(monitor, "CREATE TABLE world(delta INTEGER)");
    CHECK(intact_barrier_sqlite_setup(monitor, why, sizeof why), "%s", why);
    CHECK(intact_barrier_sqlite_setup(monitor, why, sizeof why), "again: %s", why);
}

static void remove_all(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

    for (unsigned i = 0; i < SESSIONS_MAX; i++) {
        CHECK(sqlite3_close(dbs[i]) == SQLITE_OK, "close");
        dbs[i] = NULL;
    }
    CHECK(sqlite3_close(monitor) == SQLITE_OK, "close");
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        char name[100];
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

static void play(struct body *body)
{
    static const enum intact_direction F = INTACT_FORWARD, U = INTACT_UNDO;
    const struct orders all[] = {
        {.count = 2, .directions = {F, F}, .fine = true, .crashes = true},
        {.count = 2, .directions = {F, U}, .fine = true, .crashes = true},
        {.count = 2, .directions = {U, U}, .fine = true, .crashes = true},
        {.count = 2, .directions = {F, F}, .tries = 1},
        {.count = 2, .directions = {F, U}, .tries = 1},
        {.count = 2, .directions = {U, U}, .tries = 1},
        {.count = 3, .directions = {F, F, F}},
        {.count = 3, .directions = {F, F, U}, .crashes = true},
        {.count = 3, .directions = {F, U, U}, .crashes = true},
        {.count = 3, .directions = {U, U, U}},
    };
    unsigned verdicts = 0;

    body->reset = reset;
    body->begin = begin;
    body->ask = ask;
    body->effect = effect;
    body->record = record;
    body->end = end;
    body->look = look;
    make();
    for (size_t i = 0; i < 2 * COUNT_OF(all); i++) {
        struct orders o = all[i / 2];
        o.crashes = o.crashes && (every || o.count < SESSIONS_MAX);
        o.body = body;
        o.done_before = i % 2;
        orders_play(&o);
        printf("%s: %u%s, %s: %u runs, %u refusals\n", body->name, o.count,
               o.fine ? " in detail" : "", o.done_before ? "done before" : "from nothing", o.runs,
               o.refusals);
        for (unsigned v = 0; v <= INTACT_BARRIER_FAILED; v++)
            verdicts |= o.verdicts[v] ? BIT(v) : 0;
    }
    unsigned wanted = BIT(INTACT_BARRIER_DO) | BIT(INTACT_BARRIER_REPEAT)
                      | BIT(INTACT_BARRIER_UNDONE) | BIT(INTACT_BARRIER_NOTHING)
                      | (body->begin_is_waited ? 0 : BIT(INTACT_BARRIER_AGAIN));
    CHECK(verdicts == wanted, "verdicts met: %x, not %x", verdicts, wanted);
    remove_all();
}

static void immediate_with_a_write_ahead_log(void **state)
{
    (void)state;
    journal = "WAL";
    begin_sql = "BEGIN IMMEDIATE";
    play(&(struct body){.name = "immediate, WAL",
                        .snapshots = true,
                        .asking_holds = true,
                        .begin_is_waited = true});
}

static void immediate_with_a_rollback_journal(void **state)
{
    (void)state;
    journal = "DELETE";
    begin_sql = "BEGIN IMMEDIATE";
    play(&(
        struct body){.name = "immediate, journal", .asking_holds = true, .begin_is_waited = true});
}

static void deferred_after_a_read_with_a_write_ahead_log(void **state)
{
    (void)state;
    journal = "WAL";
    begin_sql = "BEGIN; SELECT count(*) FROM world";
    play(&(struct body){.name = "deferred, WAL", .snapshots = true, .asking_holds = true});
}

static void deferred_after_a_read_with_a_rollback_journal(void **state)
{
    (void)state;
    journal = "DELETE";
    begin_sql = "BEGIN; SELECT count(*) FROM world";
    play(&(struct body){.name = "deferred, journal",
                        .asking_holds = true,
                        .readers_hold_off_commits = true});
}

/* Usage: orders_sqlite_test [every] */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(immediate_with_a_write_ahead_log),
        cmocka_unit_test(immediate_with_a_rollback_journal),
        cmocka_unit_test(deferred_after_a_read_with_a_write_ahead_log),
        cmocka_unit_test(deferred_after_a_read_with_a_rollback_journal),
    };

    every = argc > 1 && strcmp(argv[1], "every") == 0;
    const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(path, sizeof path, "%s/intact-barrier-test-%ld.db", folder, (long)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
