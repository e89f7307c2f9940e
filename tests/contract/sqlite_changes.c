/* What a change of a row costs in SQLite, as far as its statements tell. */

#include "shell.h"

#include "base/buf.h"
#include "store/sqlite_body.h"

/* How often it may come to that operation of SQLite's. */
static void operations_are(struct db *d, enum sql which, const char *operation, int most)
{
    sqlite3_stmt *q = NULL;
    CLEANUP(buf_fini) struct buf sql = {0};
    int count = 0;

    buf_fmt(&sql, "EXPLAIN %s", sql_text(which));
    CHECK(sqlite3_prepare_v2(d->handle, sql.ptr, -1, &q, NULL) == SQLITE_OK, "%s", sql.ptr);
    while (sqlite3_step(q) == SQLITE_ROW)
        count += strcmp((const char *)sqlite3_column_text(q, 1), operation) == 0;
    (void)sqlite3_finalize(q);
    CHECK(count <= most, "statement %d: %s %d times", (int)which, operation, count);
}

/* The table, and no index but those of columns that move. None makes a b-tree of its own. */
static void changes_of_rows_open_nothing_that_stays_as_it_is(void **state)
{
    struct world *w = *state;
    struct db *d = &sqlite_store_of(w->s)->writer;
    static const enum sql all[] = {SQL_INSERT,      SQL_UPDATE,           SQL_UPDATE_WAKE,
                                   SQL_UPDATE_MOVE, SQL_UPDATE_MOVE_WAKE, SQL_TAKE};

    operations_are(d, SQL_UPDATE, "OpenWrite", 1);
    operations_are(d, SQL_UPDATE_WAKE, "OpenWrite", 2);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        operations_are(d, all[i], "OpenEphemeral", 0);
}

/* With its number, without it, and with that of another one. */
static void a_row_is_found_by_its_number_if_it_is_that_of_its_id(void **state)
{
    struct world *w = *state;

    must(insert_row(w, a_row("one")), "one");
    must(insert_row(w, a_row("two")), "two");
    struct task_row row = fetch(w, "one");
    struct task_row other = fetch(w, "two");
    CHECK(row.seq != 0 && other.seq != row.seq, "numbers");
    row.revision++;
    must(put_change(w, (struct change){.kind = CHANGE_UPDATE, .row = row}), "its own");
    row.seq = 0;
    row.revision++;
    must(put_change(w, (struct change){.kind = CHANGE_UPDATE, .row = row}), "none");
    row.seq = other.seq;
    row.revision = 2;
    enum err err = put_change(w, (struct change){.kind = CHANGE_UPDATE, .row = row});
    CHECK(err == ERR_CONFLICT, "another one's: %s", err_text(err));
    CHECK(fetch(w, "two").revision == 1 && fetch(w, "one").revision == 3, "nothing was done");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SQLITE(changes_of_rows_open_nothing_that_stays_as_it_is),
        ON_SQLITE(a_row_is_found_by_its_number_if_it_is_that_of_its_id),
    };
    return cmocka_run_group_tests_name("changes in SQLite", tests, NULL, NULL);
}
