/*
 * The disk fails during a commit, at each of the operations of a SQLite commit, under the ledger
 * and the barrier, in the common journal modes. The request is repeated, by the same process or by
 * one started after a crash: its effect exists once. If the answer was "no effect", there is none
 * after a crash either.
 */

#include "base/test.h"

#include <intact/barrier.h>
#include <intact/ledger.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libintact/request.h"

/* ---- the disk ---- */

enum fault {
    FAULT_BEFORE, /* the operation is not executed */
    FAULT_AFTER,  /* it is executed (a write by half), and fails */
    FAULT_STAYS,  /* it and all following ones are not executed */
    FAULTS
};

static struct {
    bool on;
    enum fault fault;
    int at, count; /* the one that fails, from 1; how many there were */
} disk;

static sqlite3_vfs *unix_vfs;

struct disk_file {
    sqlite3_file base;
    sqlite3_file *real; /* the wrapped one */
};

static bool fails(void)
{
    if (!disk.on)
        return false;
    disk.count++;
    return disk.count == disk.at || (disk.fault == FAULT_STAYS && disk.count > disk.at);
}

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct disk_file *)f)->real;
}

static int disk_write(sqlite3_file *f, const void *bytes, int count, sqlite3_int64 at)
{
    sqlite3_file *real = real_of(f);

    if (!fails())
        return real->pMethods->xWrite(real, bytes, count, at);
    if (disk.fault == FAULT_AFTER)
        (void)real->pMethods->xWrite(real, bytes, count / 2, at);
    return SQLITE_IOERR_WRITE;
}

static int disk_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    sqlite3_file *real = real_of(f);
    bool failed = fails();

    if (failed && disk.fault != FAULT_AFTER)
        return SQLITE_IOERR_TRUNCATE;
    int rc = real->pMethods->xTruncate(real, size);
    return failed ? SQLITE_IOERR_TRUNCATE : rc;
}

/* Skips the sync, which takes long and tests nothing here. */
static int disk_sync(sqlite3_file *f, int flags)
{
    (void)f;
    (void)flags;
    return fails() ? SQLITE_IOERR_FSYNC : SQLITE_OK;
}

static int disk_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    bool failed = fails();

    (void)vfs;
    if (failed && disk.fault != FAULT_AFTER)
        return SQLITE_IOERR_DELETE;
    (void)sync;
    int rc = unix_vfs->xDelete(unix_vfs, name, 0);
    return failed ? SQLITE_IOERR_DIR_FSYNC : rc;
}

static int disk_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int disk_read(sqlite3_file *f, void *bytes, int count, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), bytes, count, at);
}

static int disk_size(sqlite3_file *f, sqlite3_int64 *ret)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int disk_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int disk_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int disk_is_reserved(sqlite3_file *f, int *ret)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int disk_control(sqlite3_file *f, int what, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), what, arg);
}

static int disk_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int disk_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int disk_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static int disk_map_lock(sqlite3_file *f, int at, int count, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), at, count, flags);
}

static void disk_map_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int disk_unmap(sqlite3_file *f, int remove)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
    static const sqlite3_io_methods methods = {.iVersion = 2,
                                               .xClose = disk_close,
                                               .xRead = disk_read,
                                               .xWrite = disk_write,
                                               .xTruncate = disk_truncate,
                                               .xSync = disk_sync,
                                               .xFileSize = disk_size,
                                               .xLock = disk_lock,
                                               .xUnlock = disk_unlock,
                                               .xCheckReservedLock = disk_is_reserved,
                                               .xFileControl = disk_control,
                                               .xSectorSize = disk_sector,
                                               .xDeviceCharacteristics = disk_traits,
                                               .xShmMap = disk_map,
                                               .xShmLock = disk_map_lock,
                                               .xShmBarrier = disk_map_barrier,
                                               .xShmUnmap = disk_unmap};
    struct disk_file *file = (struct disk_file *)f;

    (void)vfs;
    file->real = (sqlite3_file *)(file + 1);
    int rc = unix_vfs->xOpen(unix_vfs, name, file->real, flags, ret_flags);
    f->pMethods = file->real->pMethods ? &methods : NULL;
    return rc;
}

/* As the default. */
static void disk_register(void)
{
    static sqlite3_vfs vfs;

    unix_vfs = sqlite3_vfs_find("unix");
    vfs = *unix_vfs;
    vfs.zName = "disk";
    vfs.szOsFile = (int)sizeof(struct disk_file) + unix_vfs->szOsFile;
    vfs.xOpen = disk_open;
    vfs.xDelete = disk_delete;
    CHECK(sqlite3_vfs_register(&vfs, 1) == SQLITE_OK, "the disk");
}

/* ---- files ---- */

static char path[64], crashed[80];
static const char *const suffixes[] = {"", "-wal", "-journal", "-shm"};

static void copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb");
    FILE *out = in ? fopen(to, "wb") : NULL;
    char block[4096];
    size_t n;

    while (out && (n = fread(block, 1, sizeof block, in)) > 0)
        CHECK(fwrite(block, 1, n, out) == n, "%s", to);
    if (out)
        CHECK(fclose(out) == 0, "%s", to);
    if (in)
        (void)fclose(in);
}

/* The files that a process finds after a crash; the shared memory is lost. */
static void take_crashed(void)
{
    for (size_t i = 0; i < 3; i++) {
        char from[100], to[100];
        (void)snprintf(from, sizeof from, "%s%s", path, suffixes[i]);
        (void)snprintf(to, sizeof to, "%s%s", crashed, suffixes[i]);
        copy_file(from, to);
    }
}

static void remove_files(const char *of)
{
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        char name[100];
        (void)snprintf(name, sizeof name, "%s%s", of, suffixes[i]);
        (void)unlink(name);
    }
}

static void must(sqlite3 *db, const char *sql)
{
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(db));
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

/* ---- the ledger and the barrier, as agents use them ---- */

struct agent {
    bool has_ledger;
    struct intact_ledger *ledger;
    sqlite3 *db;
};

static void agent_open(struct agent *a, const char *at, const char *mode)
{
    char why[200] = "";

    if (a->has_ledger) {
        a->ledger = intact_ledger_open(at, why, sizeof why);
        CHECK(a->ledger, "%s", why);
        a->db = intact_ledger_db(a->ledger);
    } else {
        CHECK(sqlite3_open(at, &a->db) == SQLITE_OK, "%s", at);
    }
    must(a->db, mode);
    must(a->db, "PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS world(delta INTEGER)");
    if (!a->has_ledger)
        CHECK(intact_barrier_sqlite_setup(a->db, why, sizeof why), "%s", why);
}

static void agent_close(struct agent *a)
{
    if (a->has_ledger)
        intact_ledger_close(a->ledger);
    else
        CHECK(sqlite3_close(a->db) == SQLITE_OK, "close");
}

static void by_ledger(struct agent *a, struct intact_request *r, const char *effect)
{
    if (!intact_ledger_begin(a->ledger, r))
        return;
    if (sqlite3_exec(a->db, effect, NULL, NULL, NULL) != SQLITE_OK) {
        intact_ledger_rollback(a->ledger);
        intact_answer_error(r, "disk", "not written", INTACT_RETRYABLE | INTACT_EFFECT_NONE);
        return;
    }
    if (intact_ledger_commit(a->ledger, r, "1"))
        intact_answer(r, "1");
}

static void by_barrier(struct agent *a, struct intact_request *r, const char *effect)
{
    struct intact_barrier *b = intact_barrier_of(r);

    must(a->db, "BEGIN IMMEDIATE");
    if (intact_barrier_sqlite(b, a->db) == INTACT_BARRIER_DO) {
        int rc = sqlite3_exec(a->db, effect, NULL, NULL, NULL);
        if (intact_barrier_sqlite_ok(b, a->db, rc))
            (void)intact_barrier_sqlite_done(b, a->db, "1");
    }
    (void)intact_barrier_sqlite_end(b, a->db);
    intact_barrier_answer(b);
    intact_barrier_free(b);
}

enum answer { ANSWER_OUTPUT, ANSWER_NONE, ANSWER_UNKNOWN };

/* Requests it while the disk behaves as `disk` says. */
static enum answer ask(struct agent *a, enum intact_direction direction)
{
    bool undo = direction == INTACT_UNDO;
    struct intact_request r = {.task = "t",
                               .step = "s",
                               .action = "a",
                               .direction = direction,
                               .idempotency_key = undo ? "t/s/undo" : "t/s",
                               .forward_key = undo ? "t/s" : NULL,
                               .token = SLICE("k"),
                               .deadline = INT64_MAX};

    (a->has_ledger ? by_ledger : by_barrier)(a, &r,
                                             undo ? "INSERT INTO world VALUES (-1)"
                                                  : "INSERT INTO world VALUES (1)");
    disk.on = false;
    enum answer answer = strstr(r.result.ptr, "\"output\"")               ? ANSWER_OUTPUT
                         : strstr(r.result.ptr, "\"effect\":\"none\"")    ? ANSWER_NONE
                         : strstr(r.result.ptr, "\"effect\":\"unknown\"") ? ANSWER_UNKNOWN
                                                                          : ANSWER_OUTPUT;
    CHECK(answer == ANSWER_OUTPUT || strstr(r.result.ptr, "\"retryable\":true"), "%s",
          r.result.ptr);
    buf_fini(&r.result);
    return answer;
}

/* ---- checks ---- */

struct sums {
    int none, unknown, there, operations;
};

static const char *const counts[] = {"SELECT count(*) FROM world WHERE delta = 1",
                                     "SELECT count(*) FROM world WHERE delta = -1"};

/* After a crash at that moment the answer is true, and a repeated request leaves one effect. */
static void check_crashed(struct agent like, const char *mode, enum intact_direction direction,
                          enum answer said, struct sums *sums)
{
    struct agent a = {.has_ledger = like.has_ledger};
    int which = direction == INTACT_UNDO;

    agent_open(&a, crashed, mode);
    int there = number(a.db, counts[which]);
    CHECK(said != ANSWER_NONE || there == 0, "%s: it said that there was no effect", mode);
    CHECK(said != ANSWER_OUTPUT || there == 1, "%s: it was answered, and is lost", mode);
    sums->there += said == ANSWER_UNKNOWN && there == 1;
    CHECK(ask(&a, direction) == ANSWER_OUTPUT, "asked again");
    CHECK(number(a.db, counts[which]) == 1, "%s: %d times", mode, number(a.db, counts[which]));
    agent_close(&a);
    remove_files(crashed);
}

/* False: the commit has fewer operations than that. */
static bool fail_at(bool has_ledger, const char *mode, enum intact_direction direction,
                    enum fault fault, int at, struct sums *sums)
{
    struct agent a = {.has_ledger = has_ledger};
    int which = direction == INTACT_UNDO;

    agent_open(&a, path, mode);
    if (direction == INTACT_UNDO)
        CHECK(ask(&a, INTACT_FORWARD) == ANSWER_OUTPUT, "there is something to undo");
    disk.fault = fault;
    disk.at = at;
    disk.count = 0;
    disk.on = true;
    enum answer said = ask(&a, direction);
    bool reached = disk.count >= at;
    take_crashed();
    check_crashed(a, mode, direction, said, sums);
    sums->none += said == ANSWER_NONE;
    sums->unknown += said == ANSWER_UNKNOWN;
    sums->operations += reached;
    CHECK(ask(&a, direction) == ANSWER_OUTPUT, "asked again");
    CHECK(number(a.db, counts[which]) == 1, "%s: %d times", mode, number(a.db, counts[which]));
    agent_close(&a);
    remove_files(path);
    return reached;
}

static void fail_everywhere(bool has_ledger, const char *mode, struct sums *sums)
{
    for (int undo = 0; undo < 2; undo++)
        for (int fault = 0; fault < FAULTS; fault++)
            for (int at = 1; fail_at(has_ledger, mode, undo ? INTACT_UNDO : INTACT_FORWARD,
                                     (enum fault)fault, at, sums);
                 at++)
                CHECK(at < 100, "a commit has few operations");
}

static void a_failing_disk_under_the_ledger(void **state)
{
    struct sums sums = {0};

    (void)state;
    fail_everywhere(true, "PRAGMA wal_autocheckpoint = 1000", &sums);
    fail_everywhere(true, "PRAGMA wal_autocheckpoint = 1", &sums);
    CHECK(sums.none > 0 && sums.unknown > 0 && sums.there > 0 && sums.operations > 20,
          "none %d, unknown %d, there %d, of %d", sums.none, sums.unknown, sums.there,
          sums.operations);
}

static void a_failing_disk_under_the_barrier(void **state)
{
    static const char *const modes[] = {"DELETE", "TRUNCATE", "PERSIST", "WAL",
                                        "DELETE; PRAGMA locking_mode = EXCLUSIVE"};
    struct sums sums = {0};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        char mode[100];
        (void)snprintf(mode, sizeof mode, "PRAGMA journal_mode = %s", modes[i]);
        fail_everywhere(false, mode, &sums);
    }
    CHECK(sums.none > 0 && sums.unknown > 0 && sums.there > 0 && sums.operations > 60,
          "none %d, unknown %d, there %d, of %d", sums.none, sums.unknown, sums.there,
          sums.operations);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_disk_under_the_ledger),
        cmocka_unit_test(a_failing_disk_under_the_barrier),
    };

    (void)snprintf(path, sizeof path, "/tmp/intact-commit-test-%ld.db", (long)getpid());
    (void)snprintf(crashed, sizeof crashed, "%s.crashed", path);
    disk_register();
    return cmocka_run_group_tests_name("commits on a failing disk", tests, NULL, NULL);
}
