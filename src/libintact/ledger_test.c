/* Tests of the ledger (intact/ledger.h): whatever the order of requests and undos, crashes and
 * full disks, an effect happens once, and never after its undo. barrier_test.c has the barrier,
 * which shares the database of the effect. */

#include "base/test.h"

#include <intact/ledger.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/every.h"
#include "libintact/request.h"
#include "libintact/wire.h"

static char path[64];

static void remove_files(void)
{
    static const char *const suffixes[] = {"", "-wal", "-shm"};

    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        char name[80];
        snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static struct intact_ledger *open_ledger(void)
{
    char why[200] = "";
    struct intact_ledger *l = intact_ledger_open(path, why, sizeof(why));

    CHECK(l, "%s", why);
    /* The disk is not tested here, and this makes thousands of runs fast. */
    CHECK(sqlite3_exec(intact_ledger_db(l),
                       "PRAGMA synchronous = OFF; CREATE TABLE IF NOT EXISTS world(delta INTEGER)",
                       NULL, NULL, NULL)
              == SQLITE_OK,
          "%s", sqlite3_errmsg(intact_ledger_db(l)));
    return l;
}

static struct intact_request request(enum intact_direction direction)
{
    return (struct intact_request){.task = "t",
                                   .step = "s",
                                   .action = direction == INTACT_UNDO ? "refund" : "charge",
                                   .direction = direction,
                                   .idempotency_key = direction == INTACT_UNDO ? "t/s/undo" : "t/s",
                                   .forward_key = direction == INTACT_UNDO ? "t/s" : NULL,
                                   .token = SLICE("k"),
                                   .deadline = INT64_MAX};
}

static int number(struct intact_ledger *l, const char *sql)
{
    sqlite3_stmt *st = NULL;

    CHECK(sqlite3_prepare_v2(intact_ledger_db(l), sql, -1, &st, NULL) == SQLITE_OK, "%s", sql);
    CHECK(sqlite3_step(st) == SQLITE_ROW, "%s", sql);
    int n = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return n;
}

/* How a handler ends: completed, rolled back, crashed before the commit, too late. */
enum course { COMMIT, ROLLBACK, CRASH, LATE, COURSES };

/* The result of one request: the effect took place now, or the answer. */
static const char *play(struct intact_ledger **l, enum intact_direction direction,
                        enum course course, char ret_said[200])
{
    struct intact_request r = request(direction);
    const char *outcome = "answered";

    if (intact_ledger_begin(*l, &r)) {
        bool ok = sqlite3_exec(intact_ledger_db(*l),
                               direction == INTACT_UNDO ? "INSERT INTO world VALUES (-1)"
                                                        : "INSERT INTO world VALUES (1)",
                               NULL, NULL, NULL)
                  == SQLITE_OK;
        CHECK(ok, "%s", sqlite3_errmsg(intact_ledger_db(*l)));
        outcome = "nothing";
        if (course == LATE)
            r.deadline = 0;
        if (course == CRASH) {
            intact_ledger_rollback(*l); /* what SQLite does with the file of a process that died */
            intact_ledger_close(*l);
            *l = open_ledger();
        } else if (course == ROLLBACK) {
            intact_ledger_rollback(*l);
        } else if (intact_ledger_commit(*l, &r, "{\"n\":1}")) {
            outcome = "effect";
        }
    }
    snprintf(ret_said, 200, "%.*s", (int)r.result.len, r.result.len ? r.result.ptr : "");
    buf_fini(&r.result);
    return outcome;
}

/* Every order of up to five forward and undo requests, each with every course. A model of three
 * facts predicts each result. */
static void whatever_the_order_an_effect_happens_once_and_never_after_its_undo(void **state)
{
    struct every e = {0};
    unsigned walks = 0;

    (void)state;
    while (every_next(&e)) {
        struct intact_ledger *l = open_ledger();
        bool done = false;
        bool undone = false;
        bool barred = false;
        uint32_t length = 1 + every_pick(&e, 4);

        for (uint32_t i = 0; i < length; i++) {
            enum intact_direction d = every_pick(&e, 2) ? INTACT_UNDO : INTACT_FORWARD;
            enum course course = (enum course)every_pick(&e, i < 2 ? COURSES : 2);
            bool effect = d == INTACT_UNDO ? done && !undone : !done && !barred;
            char said[200];
            const char *what = play(&l, d, course, said);
            if (effect) {
                bool took = course == COMMIT;
                CHECK(strcmp(what, took ? "effect" : "nothing") == 0, "%s", what);
                CHECK(said[0] == 0, "said %s", said);
                done = done || (took && d == INTACT_FORWARD);
                undone = undone || (took && d == INTACT_UNDO);
                continue;
            }
            bool nothing = d == INTACT_UNDO && !done;
            CHECK(strcmp(what, "answered") == 0, "%s", what);
            CHECK(strstr(said, undone && d == INTACT_FORWARD
                                   ? "\"code\":\"undone\",\"message\":\"this step took effect and "
                                     "was undone\",\"retryable\":false,\"effect\":\"none\""
                               : barred && d == INTACT_FORWARD
                                   ? "\"code\":\"undone\",\"message\":\"this "
                                     "step was undone before it took "
                                     "effect\",\"retryable\":false,\"effect\":"
                                     "\"none\""
                               : nothing ? "\"output\":null"
                                         : "\"output\":{\"n\":1}"),
                  "said %s", said);
            barred = barred || nothing;
        }
        CHECK(number(l, "SELECT coalesce(sum(delta), 0) FROM world") == done - undone,
              "net effect");
        CHECK(number(l, "SELECT count(*) FROM effect WHERE outcome = 'done'") == done + undone,
              "records");
        CHECK(number(l, "SELECT count(*) FROM effect WHERE outcome = 'barred'") == barred, "bars");
        CHECK(sqlite3_exec(intact_ledger_db(l), "DELETE FROM effect; DELETE FROM world", NULL, NULL,
                           NULL)
                  == SQLITE_OK,
              "clear");
        intact_ledger_close(l);
        walks++;
    }
    CHECK(walks == 8 + 64 + 64 * 4 + 64 * 16, "%u walks", walks);
    remove_files();
}

static void a_record_outlives_its_process(void **state)
{
    struct intact_ledger *l = open_ledger();
    char said[200];

    (void)state;
    CHECK(strcmp(play(&l, INTACT_FORWARD, COMMIT, said), "effect") == 0, "first");
    intact_ledger_close(l);
    l = open_ledger();
    CHECK(strcmp(play(&l, INTACT_FORWARD, COMMIT, said), "answered") == 0, "again");
    intact_ledger_close(l);
    remove_files();
}

static void a_ledger_that_cannot_be_written_answers_with_a_retryable_error(void **state)
{
    struct intact_ledger *l = open_ledger();
    sqlite3 *other = NULL;
    char said[200];

    (void)state;
    CHECK(sqlite3_busy_timeout(intact_ledger_db(l), 0) == SQLITE_OK, "timeout");
    CHECK(sqlite3_open(path, &other) == SQLITE_OK, "open");
    CHECK(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK, "lock");
    CHECK(strcmp(play(&l, INTACT_FORWARD, COMMIT, said), "answered") == 0, "locked");
    CHECK(strstr(said, "\"retryable\":true,\"effect\":\"none\""), "%s", said);
    CHECK(sqlite3_close(other) == SQLITE_OK, "close");
    CHECK(strcmp(play(&l, INTACT_FORWARD, COMMIT, said), "effect") == 0, "it is usable again");
    intact_ledger_close(l);
    remove_files();
}

/* Simulates a full disk: the file must not grow. */
static void limit_files(rlim_t size)
{
    struct rlimit limit;

    CHECK(getrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
    limit.rlim_cur = size == RLIM_INFINITY ? limit.rlim_max : size;
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "limit");
}

static bool xfsz_is_blocked(void)
{
    sigset_t now;

    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0, "mask");
    return sigismember(&now, SIGXFSZ) == 1;
}

/* The process is not killed either: the signal of that limit has its default action here. */
static void a_commit_that_cannot_be_written_certainly_had_no_effect(void **state)
{
    struct intact_ledger *l = open_ledger();
    struct stat log;
    char said[200];
    char name[80];

    (void)state;
    snprintf(name, sizeof(name), "%s-wal", path);
    CHECK(stat(name, &log) == 0, "%s", name);
    for (int i = 0; i < 2; i++) {
        limit_files((rlim_t)log.st_size + 100);
        const char *what = play(&l, i == 0 ? INTACT_FORWARD : INTACT_UNDO, COMMIT, said);
        limit_files(RLIM_INFINITY);
        CHECK(strcmp(what, i == 0 ? "nothing" : "answered") == 0, "%s", what);
        CHECK(strstr(said, "\"code\":\"ledger\""), "%s", said);
        CHECK(strstr(said, "\"retryable\":true,\"effect\":\"none\""), "%s", said);
        CHECK(!xfsz_is_blocked(), "the thread's mask is as it was");
    }
    CHECK(number(l, "SELECT count(*) FROM effect") == 0, "records");
    CHECK(strcmp(play(&l, INTACT_FORWARD, COMMIT, said), "effect") == 0, "it is usable again");
    CHECK(number(l, "SELECT sum(delta) FROM world") == 1, "effect");
    intact_ledger_close(l);
    remove_files();
}

static void nothing_is_recorded_if_its_effect_was_rolled_back(void **state)
{
    struct intact_ledger *l = open_ledger();
    struct intact_request r = request(INTACT_FORWARD);
    char said[200];

    (void)state;
    CHECK(intact_ledger_begin(l, &r), "begin");
    /* SQLite does so itself if a statement of the handler meets a full disk. */
    CHECK(sqlite3_exec(intact_ledger_db(l), "INSERT INTO world VALUES (1); ROLLBACK", NULL, NULL,
                       NULL)
              == SQLITE_OK,
          "rollback");
    CHECK(!intact_ledger_commit(l, &r, "7"), "commit");
    CHECK(strstr(r.result.ptr, "\"retryable\":true,\"effect\":\"none\""), "%s", r.result.ptr);
    buf_fini(&r.result);
    CHECK(number(l, "SELECT count(*) FROM effect") == 0, "records");
    CHECK(strcmp(play(&l, INTACT_FORWARD, COMMIT, said), "effect") == 0, "it takes effect later");
    intact_ledger_close(l);
    remove_files();
}

static void what_is_no_ledger_is_not_opened(void **state)
{
    char why[200] = "";

    (void)state;
    CHECK(!intact_ledger_open("/nonexistent/ledger", why, sizeof(why)), "opened");
    CHECK(strstr(why, "/nonexistent/ledger: unable to open"), "%s", why);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_the_order_an_effect_happens_once_and_never_after_its_undo),
        cmocka_unit_test(a_record_outlives_its_process),
        cmocka_unit_test(a_ledger_that_cannot_be_written_answers_with_a_retryable_error),
        cmocka_unit_test(a_commit_that_cannot_be_written_certainly_had_no_effect),
        cmocka_unit_test(nothing_is_recorded_if_its_effect_was_rolled_back),
        cmocka_unit_test(what_is_no_ledger_is_not_opened),
    };

    snprintf(path, sizeof(path), "/tmp/intact-ledger-test-%ld.db", (long)getpid());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
