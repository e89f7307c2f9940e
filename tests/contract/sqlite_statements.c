/* Tests of SQLite's query plans for the store's statements: every statement goes through an
 * index, and a change of a row touches nothing that stays as it is. tests/postgres/plans_test.c
 * has the plans of PostgreSQL. */

#include "shell.h"

#include "base/buf.h"
#include "store/sqlite/body.h"

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
    operations_are(d, SQL_UPDATE_MOVE_WAKE, "OpenWrite", 8);
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

static void plan_is(struct db *d, enum sql which, const char *want, bool scans)
{
    CLEANUP(buf_fini) struct buf sql = {0};
    CLEANUP(buf_fini) struct buf plan = {0};
    sqlite3_stmt *q = NULL;

    buf_fmt(&sql, "EXPLAIN QUERY PLAN %s", sql_text(which));
    CHECK(sqlite3_prepare_v2(d->handle, sql.ptr, -1, &q, NULL) == SQLITE_OK, "%s", sql.ptr);
    while (sqlite3_step(q) == SQLITE_ROW)
        buf_fmt(&plan, "%s\n", (const char *)sqlite3_column_text(q, 3));
    (void)sqlite3_finalize(q);
    CHECK(plan.ptr && strstr(plan.ptr, want), "statement %d:\n%s", (int)which, plan.ptr);
    CHECK(!strstr(plan.ptr, "TEMP B-TREE"), "statement %d sorts:\n%s", (int)which, plan.ptr);
    CHECK(scans || !strstr(plan.ptr, "SCAN"), "statement %d scans:\n%s", (int)which, plan.ptr);
}

/* Whatever the number of tasks stored, finished ones above all. */
static void every_statement_goes_through_an_index(void **state)
{
    struct world *w = *state;
    static const char by_id[] = "SEARCH task USING INDEX sqlite_autoindex_task_1 (id=?)";
    static const char by_seq[] = "SEARCH task USING INTEGER PRIMARY KEY (rowid<?)";
    static const char by_number[] = "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)";
    static const char number_by_id[] =
        "SEARCH task USING COVERING INDEX sqlite_autoindex_task_1 (id=?)";
    static const struct {
        enum sql which;
        const char *plan;
        bool scans;
    } cases[] = {
        {SQL_UPDATE, by_number, false},
        {SQL_UPDATE_WAKE, by_number, false},
        {SQL_UPDATE_MOVE, by_number, false},
        {SQL_UPDATE_MOVE_WAKE, by_number, false},
        {SQL_UPDATE, number_by_id, false},
        {SQL_UPDATE_WAKE, number_by_id, false},
        {SQL_UPDATE_MOVE, number_by_id, false},
        {SQL_UPDATE_MOVE_WAKE, number_by_id, false},
        {SQL_REQUEST, by_id, false},
        {SQL_RELEASE, by_id, false},
        {SQL_GET, by_id, false},
        {SQL_PAYLOAD_INSERT, "SEARCH task USING COVERING INDEX sqlite_autoindex_task_1", false},
        {SQL_TAG_INSERT, "SEARCH t USING INDEX sqlite_autoindex_task_1", true},
        {SQL_CLAIM_WAITING,
         "SEARCH task USING INDEX task_claim (waiting_for=? AND rank>? AND rank<?)", false},
        {SQL_CLAIM_OWNED, "SEARCH task USING INDEX task_lock (locked_by>? AND locked_by<?)", false},
        {SQL_TAKE, "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)", false},
        {SQL_PAYLOADS, "SEARCH payload USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)", false},
        {SQL_NOTICE_TOLD, "SEARCH notice USING INDEX notice_task (task=?)", false},
        {SQL_NOTICE_READ, "INDEX notice_task (task=? AND rowid<?)", false},
        {SQL_PAYLOAD, "SEARCH payload USING INTEGER PRIMARY KEY (rowid=?)", false},
        {SQL_OVERDUE, "USING INDEX task_wake (wake_at=? AND rowid>?)", false},
        {SQL_OVERDUE, "USING INDEX task_wake (wake_at>? AND wake_at<?)", false},
        {SQL_SCAN, "SEARCH t USING INTEGER PRIMARY KEY (rowid<?)", false},
        {SQL_SCAN_STATE, "SEARCH t USING INDEX task_state (state=? AND rowid<?)", false},
        {SQL_SCAN_WORKFLOW, "SEARCH t USING INDEX task_workflow (workflow=? AND rowid<?)", false},
        {SQL_SCAN_ASKED, "SEARCH t USING INDEX task_asked (seq<?)", false},
        {SQL_SCAN_PARENT, "SEARCH t USING INDEX task_parent (parent=? AND rowid<?)", false},
        {SQL_SCAN_ROOT, "SEARCH t USING INDEX task_root (root=? AND rowid<?)", false},
        {SQL_SCAN_PREFIX, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)", false},
        {SQL_SCAN_PREFIX,
         "SEARCH task USING COVERING INDEX sqlite_autoindex_task_1 (id>? AND id<?)", false},
        {SQL_COUNT_PREFIX,
         "SEARCH task USING COVERING INDEX sqlite_autoindex_task_1 (id>? AND id<?)", true},
        {SQL_SCAN_TAG, "SEARCH g USING PRIMARY KEY (key=? AND value=? AND task<?)", false},
        {SQL_SCAN_TAG, "SEARCH t USING INTEGER PRIMARY KEY (rowid=?)", false},
        {SQL_HAS_TAG, "SEARCH tag USING PRIMARY KEY (key=? AND value=? AND task=?)", false},
        {SQL_SEQ_BELOW, by_seq, false},
        {SQL_ROW, "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)", false},
        /* of messages, the first one */
        {SQL_RETIRE_SCAN, "SEARCH task USING INTEGER PRIMARY KEY (rowid>?)", true},
        {SQL_RETIRE_SCAN_ORPHANS, "SEARCH orphaned USING PRIMARY KEY (root>?)", true},
        {SQL_RETIRE_SCAN_ORPHANS, "SEARCH task USING INDEX task_root (root=?)", true},
        {SQL_RETIRE_STILL, "SEARCH c USING COVERING INDEX task_root (root=?)", false},
        {SQL_RETIRE_STILL, "SEARCH r USING COVERING INDEX sqlite_autoindex_task_1 (id=?)", false},
        {SQL_NEWEST, "SEARCH task", false},
        {SQL_TAGS_DELETE, "SEARCH tag USING PRIMARY KEY (key=? AND value=? AND task=?)", true},
        {SQL_PAYLOADS_DELETE, "SEARCH payload USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
         false},
        {SQL_ITEM_PUT, "SEARCH task USING COVERING INDEX sqlite_autoindex_task_1", false},
        {SQL_ITEM_UPDATE,
         "SEARCH item USING PRIMARY KEY (task=? AND step=? AND generation=? AND number=?)", false},
        {SQL_ITEMS_UP,
         "SEARCH i USING PRIMARY KEY (task=? AND step=? AND generation=? AND number>?)", false},
        {SQL_ITEMS_DOWN,
         "SEARCH i USING PRIMARY KEY (task=? AND step=? AND generation=? AND number<?)", false},
        {SQL_ITEMS_TO_UNDO,
         "SEARCH i USING PRIMARY KEY (task=? AND step=? AND generation=? AND number<?)", false},
        {SQL_ITEMS_OUTPUTS, "SEARCH i USING PRIMARY KEY (task=? AND step=? AND generation=?)",
         false},
        {SQL_PAYLOAD_DELETE, "SEARCH payload USING INTEGER PRIMARY KEY (rowid=?)", false},
        {SQL_ITEMS_DELETE, "SEARCH item USING PRIMARY KEY (task=?)", false},
        {SQL_TASK_DELETE, "SEARCH task USING INTEGER PRIMARY KEY (rowid=?)", false},
        {SQL_CENSUS, "SEARCH task USING COVERING INDEX task_state (state=?)", true},
        {SQL_CENSUS, "SEARCH task USING COVERING INDEX task_wake (wake_at<?)", true},
        {SQL_CENSUS_AGENT, "SEARCH task USING INDEX task_claim (waiting_for>?)", false},
        {SQL_CENSUS_WAITING, "SEARCH task USING INDEX task_claim (waiting_for=?)", true},
        {SQL_OWNERS, "SEARCH task USING INDEX task_state (state=? AND rowid>?)", false},
        {SQL_WORKFLOW_NEWEST, "(name=?)", false},
        {SQL_WORKFLOW_GET, "(name=?)", false},
        {SQL_TOKEN_DELETE, "(name=?)", false},
        {SQL_AUDIT_LIST, "SEARCH audit USING INTEGER PRIMARY KEY (rowid<?)", false},
        {SQL_AUDIT_TASK, "SEARCH audit USING INDEX audit_task (task=? AND rowid<?)", false},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++)
        plan_is(&sqlite_store_of(w->s)->writer, cases[i].which, cases[i].plan, cases[i].scans);
}

/* A late result may be that of one item of a list of which all else is undone. */
static void the_last_item_to_be_undone_is_read_alone(void **state)
{
    enum { ITEMS = 1000, LATE = 990, STEPS_MANY = 500 };
    struct world *w = *state;
    struct item_row *items = arena_alloc(&w->a, ITEMS * sizeof *items);
    struct change c = {.kind = CHANGE_UPDATE, .row = a_row("one")};
    struct item_read r = {.task = SLICE("one"),
                          .step = SLICE("pack"),
                          .generation = 1,
                          .order = ITEMS_TO_UNDO,
                          .from = LATE + 1,
                          .limit = 1,
                          .is_all = true};

    must(insert_row(w, c.row), "one");
    for (uint32_t i = 0; i < ITEMS; i++)
        items[i] = (struct item_row){.step = r.step,
                                     .generation = r.generation,
                                     .number = i,
                                     .state = i == LATE ? STEP_COMPLETED : STEP_UNDONE,
                                     .needs_undo = i == LATE,
                                     .doc = SLICE("{}")};
    c.row.revision = 2;
    c.row.items = items;
    c.row.item_count = ITEMS;
    must(put_change(w, c), "items");
    must(w->s->ops->items->read(w->s, &r, &w->a, &w->e), w->e.text);
    CHECK(r.count == 1 && r.rows[0].number == LATE, "%zu items", r.count);
    int steps = sqlite3_stmt_status(sqlite_store_of(w->s)->reader.stmts[SQL_ITEMS_TO_UNDO],
                                    SQLITE_STMTSTATUS_VM_STEP, 1);
    CHECK(steps < STEPS_MANY, "%d operations", steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SQLITE(changes_of_rows_open_nothing_that_stays_as_it_is),
        ON_SQLITE(a_row_is_found_by_its_number_if_it_is_that_of_its_id),
        ON_SQLITE(the_last_item_to_be_undone_is_read_alone),
        ON_SQLITE(every_statement_goes_through_an_index),
    };
    return cmocka_run_group_tests_name("statements in SQLite", tests, NULL, NULL);
}
