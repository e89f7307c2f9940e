/* What was planted in the file does nothing when the server opens it: its views and triggers may
 * use functions without effects alone, and no statement writes to the schema by itself. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/sqlite/body.h"
#include "store/sqlite/sqlite.h"

static char folder[] = "/tmp/intact-hardened-XXXXXX";
static unsigned calls;

/* Any function that has an effect: the shell's edit(), load_extension() and the like. */
static void spy(sqlite3_context *c, int count, sqlite3_value **values)
{
    (void)count;
    (void)values;
    calls++;
    sqlite3_result_null(c);
}

static int run(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static struct store *open_store(void)
{
    struct store *s = NULL;
    struct error e = {0};

    assert_int_equal(sqlite_store_open(folder, &s, &e), ERR_OK);
    return s;
}

/* By the server's user with the shell, say, or in a backup that is handed over. */
static void plant(void)
{
    char path[sizeof folder + 16];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", folder);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(run(db, "CREATE TABLE planted(n); INSERT INTO planted VALUES (1);"
                             "CREATE VIEW planted_view AS SELECT spy() FROM planted;"
                             "CREATE TRIGGER planted_trigger AFTER INSERT ON planted "
                             "BEGIN SELECT spy(); END"),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void what_was_planted_has_no_effect(void **state)
{
    (void)state;
    struct store *s = open_store();
    s->ops->close(s);
    plant();
    s = open_store();
    struct sqlite_store *q = sqlite_store_of(s);
    sqlite3 *const both[] = {q->writer.handle, q->reader.handle};
    for (size_t i = 0; i < COUNT_OF(both); i++) {
        assert_int_equal(sqlite3_create_function(both[i], "spy", 0, SQLITE_UTF8, NULL, spy, NULL,
                                                 NULL),
                         SQLITE_OK);
        assert_int_equal(run(both[i], "SELECT spy()"), SQLITE_OK); /* a statement of ours may */
        assert_int_equal(calls, i + 1);
        assert_int_equal(run(both[i], "SELECT * FROM planted_view"), SQLITE_ERROR);
        assert_non_null(strstr(sqlite3_errmsg(both[i]), "unsafe use of spy()"));
    }
    assert_int_equal(run(q->writer.handle, "INSERT INTO planted VALUES (2)"), SQLITE_ERROR);
    assert_int_equal(calls, COUNT_OF(both));
    s->ops->close(s);
}

static void nothing_writes_to_the_schema(void **state)
{
    (void)state;
    struct store *s = open_store();
    sqlite3 *db = sqlite_store_of(s)->writer.handle;
    assert_int_equal(run(db, "PRAGMA writable_schema = ON"), SQLITE_OK);
    assert_int_equal(run(db, "DELETE FROM sqlite_schema"), SQLITE_ERROR);
    assert_non_null(strstr(sqlite3_errmsg(db), "may not be modified"));
    s->ops->close(s);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    static const char *const names[] = {"intact.db", "intact.db-wal", "intact.db-shm", "lock"};
    char path[sizeof folder + 16];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        (void)remove(path); /* some are not there */
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_planted_has_no_effect),
        cmocka_unit_test(nothing_writes_to_the_schema),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
