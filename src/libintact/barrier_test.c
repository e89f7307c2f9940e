/* Tests of the barrier on SQLite (intact/barrier.h): its verdicts and answers, misuse, deadlines,
 * savepoints, commits that fail, and the deletion of old records. tests/barrier has the barrier
 * on PostgreSQL. */

#include "base/test.h"

#include <intact/barrier.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libintact/request.h"

static char path[64];

static void must(sqlite3 *db, const char *sql)
{
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
}

static sqlite3 *open_db(void)
{
    char why[200] = "";
    sqlite3 *db = NULL;

    CHECK(sqlite3_open(path, &db) == SQLITE_OK, "%s", path);
    CHECK(intact_barrier_sqlite_setup(db, why, sizeof why), "%s", why);
    must(db, "CREATE TABLE IF NOT EXISTS world(delta INTEGER)");
    return db;
}

static void close_db(sqlite3 *db)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

    CHECK(sqlite3_close(db) == SQLITE_OK, "close");
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        char name[80];
        (void)snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        (void)unlink(name);
    }
}

static int number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *st = NULL;

    CHECK(sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK, "%s", sql);
    CHECK(sqlite3_step(st) == SQLITE_ROW, "%s", sql);
    int n = sqlite3_column_int(st, 0);
    (void)sqlite3_finalize(st);
    return n;
}

static struct intact_request request(enum intact_direction direction)
{
    bool undo = direction == INTACT_UNDO;

    return (struct intact_request){.task = "t",
                                   .step = "s",
                                   .action = undo ? "refund" : "charge",
                                   .direction = direction,
                                   .idempotency_key = undo ? "t/s/undo" : "t/s",
                                   .forward_key = undo ? "t/s" : NULL,
                                   .token = SLICE("k"),
                                   .deadline = INT64_MAX};
}

/* Plays a request from begin to answer; `said` is the answer. */
static enum intact_verdict play(sqlite3 *db, enum intact_direction direction, bool late,
                                char said[300])
{
    struct intact_request r = request(direction);
    struct intact_barrier *b = intact_barrier_of(&r);

    must(db, "BEGIN IMMEDIATE");
    if (intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO) {
        must(db, direction == INTACT_UNDO ? "INSERT INTO world VALUES (-1)"
                                          : "INSERT INTO world VALUES (1)");
        CHECK(intact_barrier_sqlite_done(b, db, direction == INTACT_UNDO ? NULL : "{\"n\":1}"),
              "%s", intact_barrier_why(b));
    }
    if (late)
        r.deadline = 0;
    bool ok = intact_barrier_sqlite_end(b, db);
    enum intact_verdict verdict = intact_barrier_verdict(b);
    CHECK(ok == (verdict <= INTACT_BARRIER_NOTHING), "committed, and why not: %s",
          intact_barrier_why(b));
    CHECK(sqlite3_get_autocommit(db), "the transaction has ended");
    intact_barrier_answer(b);
    (void)snprintf(said, 300, "%.*s", (int)r.result.len, r.result.len ? r.result.ptr : "");
    intact_barrier_free(b);
    buf_fini(&r.result);
    return verdict;
}

static void each_verdict_has_its_answer(void **state)
{
    static const struct {
        enum intact_direction direction;
        enum intact_verdict verdict;
        const char *said;
    } turns[] = {
        {INTACT_FORWARD, INTACT_BARRIER_DO, "\"output\":{\"n\":1}"},
        {INTACT_FORWARD, INTACT_BARRIER_REPEAT, "\"output\":{\"n\":1}"},
        {INTACT_UNDO, INTACT_BARRIER_DO, "\"output\":null"},
        {INTACT_UNDO, INTACT_BARRIER_REPEAT, "\"output\":null"},
        {INTACT_FORWARD, INTACT_BARRIER_UNDONE,
         "\"code\":\"undone\",\"message\":\"this step was undone and must not take effect\","
         "\"retryable\":false,\"effect\":\"none\""},
    };
    sqlite3 *db = open_db();
    char said[300];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(turns); i++) {
        enum intact_verdict verdict = play(db, turns[i].direction, false, said);
        CHECK(verdict == turns[i].verdict && strstr(said, turns[i].said), "%zu: %u, %s", i, verdict,
              said);
    }
    CHECK(number(db, "SELECT sum(delta) FROM world") == 0, "undone");
    must(db, "DELETE FROM intact_barrier; DELETE FROM world");
    CHECK(play(db, INTACT_UNDO, false, said) == INTACT_BARRIER_NOTHING
              && strstr(said, "\"output\":null"),
          "%s", said);
    CHECK(play(db, INTACT_FORWARD, false, said) == INTACT_BARRIER_UNDONE, "%s", said);
    CHECK(play(db, INTACT_UNDO, false, said) == INTACT_BARRIER_NOTHING, "%s", said);
    CHECK(number(db, "SELECT count(*) FROM world") == 0, "nothing happened");
    close_db(db);
}

static void nothing_is_committed_past_the_deadline(void **state)
{
    sqlite3 *db = open_db();
    char said[300];

    (void)state;
    CHECK(play(db, INTACT_FORWARD, true, said) == INTACT_BARRIER_LATE && !*said, "%s", said);
    CHECK(number(db, "SELECT count(*) FROM world") == 0, "no effect");
    CHECK(play(db, INTACT_FORWARD, false, said) == INTACT_BARRIER_DO, "%s", said);
    /* A recorded outcome is answered at any time. */
    CHECK(play(db, INTACT_FORWARD, true, said) == INTACT_BARRIER_REPEAT, "%s", said);
    close_db(db);
}

static void an_undo_is_told_what_its_forward_answered(void **state)
{
    sqlite3 *db = open_db();
    char said[300];

    (void)state;
    (void)play(db, INTACT_FORWARD, false, said);
    struct intact_barrier *b = intact_barrier_new("t/s", INTACT_UNDO);
    must(db, "BEGIN");
    CHECK(intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO, "%s", intact_barrier_why(b));
    CHECK(strcmp(intact_barrier_output(b), "{\"n\":1}") == 0, "%s", intact_barrier_output(b));
    must(db, "ROLLBACK");
    intact_barrier_free(b);
    close_db(db);
}

/* Misuse of the barrier: checks the verdict and its text. */
static void check_mistake(sqlite3 *db, const char *begin, const char *key,
                          enum intact_direction direction, const char *why)
{
    struct intact_barrier *b = intact_barrier_new(key, direction);

    CHECK(intact_barrier_verdict(b) == INTACT_BARRIER_FAILED, "before it was asked");
    must(db, begin);
    CHECK(intact_barrier_sqlite(b, db) == INTACT_BARRIER_FAILED
              && strstr(intact_barrier_why(b), why),
          "%u: %s", intact_barrier_verdict(b), intact_barrier_why(b));
    CHECK(!intact_barrier_sqlite_done(b, db, "1") && !intact_barrier_sqlite_end(b, db),
          "and after");
    CHECK(sqlite3_get_autocommit(db), "rolled back");
    intact_barrier_free(b);
}

static void mistakes_are_told(void **state)
{
    sqlite3 *db = open_db();

    (void)state;
    check_mistake(db, "", "t/s", INTACT_FORWARD, "no transaction is open");
    check_mistake(db, "BEGIN", "", INTACT_FORWARD, "key of the forward request is empty");
    check_mistake(db, "BEGIN", NULL, INTACT_UNDO, "key of the forward request is empty");
    check_mistake(db, "BEGIN", "t/s", INTACT_ANY, "neither forward nor undo");
    must(db, "DROP TABLE intact_barrier");
    check_mistake(db, "BEGIN", "t/s", INTACT_FORWARD, "no such table: intact_barrier");
    close_db(db);
}

static void an_output_is_recorded_once(void **state)
{
    sqlite3 *db = open_db();
    struct intact_barrier *b = intact_barrier_new("t/s", INTACT_FORWARD);

    (void)state;
    must(db, "BEGIN");
    CHECK(intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO, "%s", intact_barrier_why(b));
    CHECK(intact_barrier_sqlite_done(b, db, "1"), "%s", intact_barrier_why(b));
    CHECK(!intact_barrier_sqlite_done(b, db, "2"), "twice");
    CHECK(!intact_barrier_sqlite_end(b, db), "it would say one thing and mean another");
    CHECK(strstr(intact_barrier_why(b), "recorded once"), "%s", intact_barrier_why(b));
    CHECK(number(db, "SELECT count(*) FROM intact_barrier") == 0, "rolled back");
    intact_barrier_free(b);
    close_db(db);
}

static void who_is_in_the_way_is_told_as_such(void **state)
{
    sqlite3 *db = open_db(), *other = open_db();
    struct intact_request r = request(INTACT_FORWARD);
    struct intact_barrier *b = intact_barrier_of(&r);

    (void)state;
    must(other, "BEGIN IMMEDIATE");
    must(db, "BEGIN");
    CHECK(intact_barrier_sqlite(b, db) == INTACT_BARRIER_AGAIN, "%s", intact_barrier_why(b));
    CHECK(!intact_barrier_sqlite_end(b, db) && sqlite3_get_autocommit(db), "rolled back");
    intact_barrier_answer(b);
    CHECK(strstr(r.result.ptr, "\"code\":\"barrier\"")
              && strstr(r.result.ptr, "\"retryable\":true,\"effect\":\"none\""),
          "%s", r.result.ptr);
    intact_barrier_free(b);
    buf_fini(&r.result);
    must(other, "ROLLBACK");
    CHECK(sqlite3_close(other) == SQLITE_OK, "close");
    close_db(db);
}

/* The error of an effect has rolled back everything: what follows must not become a transaction of
 * its own. */
static void nothing_is_recorded_if_its_effect_was_rolled_back(void **state)
{
    sqlite3 *db = open_db();
    struct intact_barrier *b = intact_barrier_new("t/s", INTACT_FORWARD);

    (void)state;
    must(db, "BEGIN");
    CHECK(intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO, "%s", intact_barrier_why(b));
    must(db, "INSERT INTO world VALUES (1); ROLLBACK");
    CHECK(!intact_barrier_sqlite_done(b, db, "1"), "recorded");
    CHECK(!intact_barrier_sqlite_end(b, db), "committed");
    CHECK(intact_barrier_verdict(b) == INTACT_BARRIER_AGAIN, "%s", intact_barrier_why(b));
    CHECK(number(db, "SELECT count(*) FROM intact_barrier") == 0, "records");
    intact_barrier_free(b);
    close_db(db);
}

/* Simulates a full disk. */
static void limit_files(rlim_t size)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
    limit.rlim_cur = size == RLIM_INFINITY ? limit.rlim_max : size;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
}

/* Unlike other databases, SQLite continues a transaction in which a statement failed. */
static void nothing_is_committed_if_a_statement_of_the_effect_failed(void **state)
{
    sqlite3 *db = open_db();
    struct intact_barrier *b = intact_barrier_new("t/s", INTACT_FORWARD);

    (void)state;
    must(db, "CREATE TABLE card(n INTEGER PRIMARY KEY); INSERT INTO card VALUES (1);"
             "BEGIN IMMEDIATE");
    CHECK(intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO, "%s", intact_barrier_why(b));
    CHECK(intact_barrier_sqlite_ok(b, db, SQLITE_OK), "fine");
    CHECK(intact_barrier_sqlite_ok(b, db, SQLITE_DONE), "fine");
    CHECK(intact_barrier_sqlite_ok(b, db, SQLITE_ROW), "fine");
    CHECK(intact_barrier_verdict(b) == INTACT_BARRIER_DO, "%s", intact_barrier_why(b));
    int rc = sqlite3_exec(db, "INSERT INTO card VALUES (1)", NULL, NULL, NULL);
    CHECK(!intact_barrier_sqlite_ok(b, db, rc), "it failed");
    CHECK(intact_barrier_verdict(b) == INTACT_BARRIER_FAILED
              && strstr(intact_barrier_why(b), "UNIQUE constraint failed: card.n"),
          "%s", intact_barrier_why(b));
    CHECK(!intact_barrier_sqlite_done(b, db, "1") && !intact_barrier_sqlite_end(b, db),
          "it is not committed");
    CHECK(number(db, "SELECT count(*) FROM intact_barrier") == 0, "nothing is on record");
    CHECK(!intact_barrier_sqlite_ok(b, db, SQLITE_BUSY_SNAPSHOT), "it failed");
    CHECK(intact_barrier_verdict(b) == INTACT_BARRIER_AGAIN
              && strcmp(intact_barrier_why(b), "database is locked") == 0,
          "%s", intact_barrier_why(b));
    must(db, "DROP TABLE card");
    intact_barrier_free(b);
    close_db(db);
}

static void what_a_savepoint_took_back_is_asked_anew(void **state)
{
    sqlite3 *db = open_db();
    struct intact_barrier *b = intact_barrier_new("t/s", INTACT_FORWARD);

    (void)state;
    must(db, "BEGIN IMMEDIATE; SAVEPOINT before");
    CHECK(intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO, "%s", intact_barrier_why(b));
    must(db, "ROLLBACK TO before");
    CHECK(!intact_barrier_sqlite_done(b, db, "1"), "it is not on record any more");
    CHECK(intact_barrier_sqlite(b, db) == INTACT_BARRIER_DO, "%s", intact_barrier_why(b));
    must(db, "RELEASE before");
    CHECK(intact_barrier_sqlite_done(b, db, "2"), "%s", intact_barrier_why(b));
    CHECK(intact_barrier_sqlite_end(b, db), "%s", intact_barrier_why(b));
    CHECK(number(db, "SELECT output FROM intact_barrier") == 2, "what was committed");
    must(db, "DELETE FROM intact_barrier");
    intact_barrier_free(b);
    close_db(db);
}

static void a_commit_that_cannot_be_written_certainly_had_no_effect(void **state)
{
    sqlite3 *db = open_db();
    struct stat log;
    char said[300], name[80];

    (void)state;
    must(db, "PRAGMA journal_mode = WAL; INSERT INTO world VALUES (0)");
    (void)snprintf(name, sizeof name, "%s-wal", path);
    CHECK(stat(name, &log) == 0, "%s", name);
    (void)signal(SIGXFSZ, SIG_IGN);
    limit_files((rlim_t)log.st_size + 100);
    enum intact_verdict verdict = play(db, INTACT_FORWARD, false, said);
    limit_files(RLIM_INFINITY);
    CHECK(verdict == INTACT_BARRIER_AGAIN, "%u: %s", verdict, said);
    CHECK(strstr(said, "\"retryable\":true,\"effect\":\"none\""), "%s", said);
    CHECK(number(db, "SELECT count(*) FROM intact_barrier") == 0, "records");
    CHECK(play(db, INTACT_FORWARD, false, said) == INTACT_BARRIER_DO, "%s", said);
    close_db(db);
}

static void old_records_go_in_parts(void **state)
{
    enum { DAY_MS = 24 * 3600 * 1000 };
    sqlite3 *db = open_db();

    (void)state;
    must(db, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 25)"
             " INSERT INTO intact_barrier(forward_key) SELECT i FROM n;"
             "UPDATE intact_barrier SET at = at - 2 * 86400000 WHERE forward_key > '2'");
    int old = number(db, "SELECT count(*) FROM intact_barrier WHERE forward_key > '2'");
    CHECK(intact_barrier_sqlite_clean(db, DAY_MS, 5) == 5, "in parts");
    CHECK(intact_barrier_sqlite_clean(db, DAY_MS, 1000) == old - 5, "the rest");
    CHECK(intact_barrier_sqlite_clean(db, DAY_MS, 1000) == 0, "all");
    CHECK(number(db, "SELECT count(*) FROM intact_barrier") == 25 - old, "the young ones stay");
    must(db, "DROP TABLE intact_barrier");
    CHECK(intact_barrier_sqlite_clean(db, DAY_MS, 5) == -1, "no table");
    close_db(db);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_verdict_has_its_answer),
        cmocka_unit_test(nothing_is_committed_past_the_deadline),
        cmocka_unit_test(an_undo_is_told_what_its_forward_answered),
        cmocka_unit_test(mistakes_are_told),
        cmocka_unit_test(an_output_is_recorded_once),
        cmocka_unit_test(who_is_in_the_way_is_told_as_such),
        cmocka_unit_test(nothing_is_recorded_if_its_effect_was_rolled_back),
        cmocka_unit_test(nothing_is_committed_if_a_statement_of_the_effect_failed),
        cmocka_unit_test(what_a_savepoint_took_back_is_asked_anew),
        cmocka_unit_test(a_commit_that_cannot_be_written_certainly_had_no_effect),
        cmocka_unit_test(old_records_go_in_parts),
    };

    (void)snprintf(path, sizeof path, "/tmp/intact-barrier-unit-%ld.db", (long)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
