/* Tests of gather.c: the WAL that it writes is the one that SQLite alone would write, also when
 * writes fail or another connection reads meanwhile. pwrite is replaced here, because SQLite
 * calls this one instead of the C library's. */

#include "store/sqlite/gather.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/test.h"

static unsigned writes;
static bool full;

/* SQLite calls this one instead of the C library's. */
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at)
{
    writes++;
    if (!full)
        return syscall(SYS_pwrite64, fd, bytes, count, at);
    errno = ENOSPC;
    return -1;
}

/* Two connections of one file: the first one's writes are gathered. */
struct pair {
    char dir[40];
    struct buf path;
    sqlite3 *ours, *other;
};

static void must(sqlite3 *db, const char *sql)
{
    char *why = NULL;

    int rc = sqlite3_exec(db, sql, NULL, NULL, &why);
    CHECK(rc == SQLITE_OK, "%s: %s", sql, why);
}

static int64_t number(sqlite3 *db, const char *sql)
{
    sqlite3_stmt *q = NULL;

    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    CHECK(rc == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
    rc = sqlite3_step(q);
    CHECK(rc == SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(db));
    int64_t v = sqlite3_column_int64(q, 0);
    (void)sqlite3_finalize(q);
    return v;
}

static void whole(struct pair *p, int64_t rows, int64_t sum)
{
    sqlite3 *const both[] = {p->ours, p->other};

    for (size_t i = 0; i < COUNT_OF(both); i++) {
        CHECK(number(both[i], "SELECT count(*) FROM t") == rows, "rows, connection %zu", i);
        CHECK(number(both[i], "SELECT sum(n) FROM t") == sum, "sum, connection %zu", i);
        CHECK(number(both[i], "SELECT integrity_check = 'ok' FROM pragma_integrity_check") == 1,
              "the file, connection %zu", i);
    }
}

static int begin(void **state)
{
    struct pair *p = calloc(1, sizeof *p);

    ASSERT(p);
    (void)snprintf(p->dir, sizeof p->dir, "/tmp/intact-gather.XXXXXX");
    ASSERT(mkdtemp(p->dir));
    buf_fmt(&p->path, "%s/db", p->dir);
    int rc = sqlite3_open(p->path.ptr, &p->ours);
    CHECK(rc == SQLITE_OK, "opened");
    gather_writes(p->ours); /* harmless: it has no WAL yet */
    must(p->ours,
         "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; "
         "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, text TEXT)");
    gather_writes(p->ours);
    gather_writes(p->ours); /* as is the second time */
    rc = sqlite3_open(p->path.ptr, &p->other);
    CHECK(rc == SQLITE_OK, "opened again");
    *state = p;
    return 0;
}

static int end(void **state)
{
    struct pair *p = *state;
    CLEANUP(buf_fini) struct buf rm = {0};

    full = false;
    (void)sqlite3_close(p->other);
    (void)sqlite3_close(p->ours);
    buf_fmt(&rm, "rm -r %s", p->dir);
    CHECK(system(rm.ptr) == 0, "%s", rm.ptr); /* NOLINT(cert-env33-c): a name of ours */
    buf_fini(&p->path);
    free(p);
    return 0;
}

/* Some 300 pages. */
#define MANY                                                                          \
    "WITH RECURSIVE i(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM i WHERE n < 1000) " \
    "INSERT INTO t (n, text) SELECT n, printf('%.*c', 1000, 'x') FROM i"

static void a_commit_writes_much_at_once(void **state)
{
    struct pair *p = *state;
    unsigned before = writes;

    must(p->ours, MANY);
    CHECK(writes - before < 20, "%u writes", writes - before);
    CHECK(writes > before, "none is held back");
    whole(p, 1000, 500500);
    before = writes;
    must(p->other, "UPDATE t SET n = n + 1"); /* whose writes are its own */
    CHECK(writes - before > 300, "%u writes", writes - before);
    whole(p, 1000, 501500);
}

/* Pages that leave the memory before the commit are found again, and are invisible to others. */
static void what_is_written_before_the_commit_can_be_read(void **state)
{
    struct pair *p = *state;

    must(p->ours, "PRAGMA cache_size = 10; BEGIN; " MANY);
    must(p->ours, "UPDATE t SET n = n * 2");
    CHECK(number(p->ours, "SELECT sum(n) FROM t") == 1001000, "as changed");
    CHECK(number(p->other, "SELECT count(*) FROM t") == 0, "seen too early");
    must(p->ours, "COMMIT");
    whole(p, 1000, 1001000);
    must(p->ours, "BEGIN; UPDATE t SET n = 0; SAVEPOINT s; DELETE FROM t; ROLLBACK TO s; ROLLBACK");
    whole(p, 1000, 1001000);
    must(p->ours, "BEGIN; UPDATE t SET n = 1; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
    whole(p, 1000, 1000);
}

/* Pages of it had left the memory, and were to lie where the other's lie now. */
static void what_was_rolled_back_is_not_written_over_what_others_committed(void **state)
{
    struct pair *p = *state;

    must(p->ours, "PRAGMA wal_checkpoint(TRUNCATE)"); /* or its end would read the WAL */
    must(p->ours, "PRAGMA cache_size = 10; BEGIN; " MANY "; ROLLBACK");
    must(p->other, MANY);
    must(p->ours, "UPDATE t SET n = n + 1 WHERE id = 1");
    whole(p, 1000, 500501);
    must(p->ours, "BEGIN; SAVEPOINT s; " MANY "; ROLLBACK TO s");
    must(p->ours, "UPDATE t SET n = n + 1 WHERE id = 1; COMMIT");
    must(p->other, MANY);
    whole(p, 2000, 1001002);
}

static void a_commit_that_finds_no_room_is_none(void **state)
{
    struct pair *p = *state;

    must(p->ours, "INSERT INTO t (n) VALUES (7)");
    for (int i = 0; i < 2; i++) {
        must(p->ours, "BEGIN; INSERT INTO t (n) VALUES (8)");
        full = true;
        int rc = sqlite3_exec(p->ours, "COMMIT", NULL, NULL, NULL);
        full = false;
        CHECK(rc == SQLITE_FULL, "%d", rc);
        if (!sqlite3_get_autocommit(p->ours))
            must(p->ours, "ROLLBACK");
        whole(p, 1, 7);
    }
    must(p->ours, "INSERT INTO t (n) VALUES (9)");
    whole(p, 2, 16);
}

/* Another connection sees it, and so does whoever comes after all were killed, and has to find out
 * from the file alone what was committed. */
static void found_by_others(struct pair *p, int64_t sum, const char *what)
{
    CLEANUP(buf_fini) struct buf cp = {0};
    CLEANUP(buf_fini) struct buf path = {0};
    sqlite3 *later = NULL;

    CHECK(number(p->other, "SELECT sum(n) FROM t") == sum, "%s, at once", what);
    buf_fmt(&cp, "cd %s && rm -rf later && mkdir later && cp db db-wal later", p->dir);
    CHECK(system(cp.ptr) == 0, "%s", cp.ptr); /* NOLINT(cert-env33-c): a name of ours */
    buf_fmt(&path, "%s/later/db", p->dir);
    int rc = sqlite3_open(path.ptr, &later);
    CHECK(rc == SQLITE_OK, "opened, after a kill");
    CHECK(number(later, "SELECT sum(n) FROM t") == sum, "%s, after a kill", what);
    (void)sqlite3_close(later);
}

static void a_commit_without_a_sync_is_written_all_the_same(void **state)
{
    struct pair *p = *state;

    must(p->ours, "PRAGMA synchronous = NORMAL; INSERT INTO t (n) VALUES (7)");
    found_by_others(p, 7, "one page");
    must(p->ours, MANY);
    found_by_others(p, 500507, "many pages");
    must(p->ours, "PRAGMA cache_size = 10; BEGIN; UPDATE t SET n = n + 1");
    must(p->ours, "UPDATE t SET n = n + 1; COMMIT");
    found_by_others(p, 502509, "pages that left the memory before");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_commit_writes_much_at_once, begin, end),
        cmocka_unit_test_setup_teardown(what_is_written_before_the_commit_can_be_read, begin, end),
        cmocka_unit_test_setup_teardown(
            what_was_rolled_back_is_not_written_over_what_others_committed, begin, end),
        cmocka_unit_test_setup_teardown(a_commit_that_finds_no_room_is_none, begin, end),
        cmocka_unit_test_setup_teardown(a_commit_without_a_sync_is_written_all_the_same, begin,
                                        end),
    };
    return cmocka_run_group_tests_name("gathered writes", tests, NULL, NULL);
}
