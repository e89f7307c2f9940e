/* What ended long ago is deleted, with all that is its own, and nothing else is; and counts. */

#include "store_world.h"

#include <sqlite3.h>
#include <stdlib.h>

#include <libpq-fe.h>

#include "postgres/cluster.h"

static const struct payload long_values[] = {{1, {"\"long\"", 6}}, {2, {"\"longer\"", 8}}};

/* A task in that state, submitted at 1000 and ended then; 0: not ended. */
static void insert_ended(struct world *w, const char *id, enum task_state state, int64_t ended_at)
{
    struct task_row row = a_row(id);

    row.state = state;
    row.ended_at = ended_at;
    row.waiting_for = SLICE_NONE;
    row.tags = SLICE("{\"customer\":\"c-1\",\"n\":7,\"none\":null,\"yes\":true}");
    row.payloads = long_values;
    row.payload_count = COUNT_OF(long_values);
    must(insert_row(w, row), id);
}

static struct retire retire_of(int64_t ended_before)
{
    return (struct retire){.ended_before = ended_before,
                           .states = 1U << TASK_PROCESSED | 1U << TASK_COMPENSATED,
                           .scan_max = 100};
}

static void retire(struct world *w, struct retire *r)
{
    must(w->s->ops->retire(w->s, r, &w->e), w->e.text);
}

/* Rows of a table, asked for behind the store's back. */
static int64_t rows_of(struct world *w, const char *table)
{
    char sql[200];
    int64_t count = -1;

    if (w->sqlite) {
        sqlite3 *db = NULL;
        sqlite3_stmt *q = NULL;
        (void)snprintf(sql, sizeof sql, "%s/intact.db", w->dir);
        CHECK(sqlite3_open_v2(sql, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK, "open");
        (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", table);
        CHECK(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
        CHECK(sqlite3_step(q) == SQLITE_ROW, "%s", sqlite3_errmsg(db));
        count = sqlite3_column_int64(q, 0);
        (void)sqlite3_finalize(q);
        (void)sqlite3_close(db);
    } else if (w->postgres) {
        PGconn *conn = PQconnectdb(cluster_conninfo());
        (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM %s.%s", w->dir, table);
        PGresult *r = PQexec(conn, sql);
        CHECK(PQntuples(r) == 1, "%s", PQerrorMessage(conn));
        count = atoll(PQgetvalue(r, 0, 0));
        PQclear(r);
        PQfinish(conn);
    }
    return count;
}

static void what_ended_before_is_deleted_and_nothing_else(void **state)
{
    struct world *w = *state;
    static const char *const stay[] = {"late", "running", "sleeping", "stopped", "held", "newest"};
    struct retire r = retire_of(5000);

    insert_ended(w, "old", TASK_PROCESSED, 4999);
    insert_ended(w, "undone", TASK_COMPENSATED, 2000);
    insert_ended(w, "late", TASK_PROCESSED, 5000);
    insert_ended(w, "running", TASK_PROCESSING, 0);
    insert_ended(w, "sleeping", TASK_PENDING, 0);
    insert_ended(w, "stopped", TASK_ERROR, 2000);
    insert_ended(w, "held", TASK_PROCESSED, 2000);
    struct task_row held = fetch(w, "held");
    held.revision++;
    held.payload_count = 0;
    held.locked_by = SLICE("n1/1");
    must(update_row(w, held), "held");
    insert_ended(w, "newest", TASK_PENDING, 0);
    retire(w, &r);
    CHECK(r.count == 2 && !r.more, "%d deleted", (int)r.count);
    CHECK(!exists(w, "old") && !exists(w, "undone"), "they are gone");
    for (size_t i = 0; i < COUNT_OF(stay); i++)
        CHECK(fetch(w, stay[i]).payload_count == 2, "%s is whole", stay[i]);
    if (w->sqlite || w->postgres) {
        CHECK(rows_of(w, "payload") == 2 * COUNT_OF(stay), "payloads of what is gone");
        CHECK(rows_of(w, "tag") == 4 * COUNT_OF(stay), "tags of what is gone");
    }
    r = retire_of(5000);
    r.states = 1U << TASK_ERROR;
    retire(w, &r);
    CHECK(r.count == 1 && !exists(w, "stopped"), "those in error only if asked for");
}

static void a_dry_run_counts_and_deletes_nothing(void **state)
{
    struct world *w = *state;
    struct retire r = retire_of(5000);
    const struct audit a = {.actor = SLICE("ann"), .verb = SLICE("retire")};
    const struct audit_query all = {.limit = 9};
    struct audit_page page;

    insert_ended(w, "old", TASK_PROCESSED, 2000);
    insert_ended(w, "stopped", TASK_ERROR, 2000);
    insert_ended(w, "newest", TASK_PENDING, 0);
    r.dry = true;
    r.audit = &a;
    retire(w, &r);
    CHECK(r.count == 1 && !r.more, "%d counted", (int)r.count);
    CHECK(exists(w, "old"), "it is still there");
    must(w->s->ops->audit_list(w->s, &all, &w->a, &page, &w->e), "audit");
    CHECK(page.count == 0, "there is nothing to tell of");
    r = retire_of(1);
    r.audit = &a;
    retire(w, &r);
    must(w->s->ops->audit_list(w->s, &all, &w->a, &page, &w->e), "audit");
    CHECK(r.count == 0 && page.count == 0, "nor if nothing is deleted");
    r = retire_of(5000);
    r.audit = &a;
    retire(w, &r);
    must(w->s->ops->audit_list(w->s, &all, &w->a, &page, &w->e), "audit");
    CHECK(r.count == 1 && page.count == 1 && slice_is(page.entries[0].actor, "ann"), "who did it");
}

/* 40 tasks, every fourth of which is not over. */
static void parts_follow_each_other(void **state)
{
    struct world *w = *state;
    struct retire r = retire_of(5000);
    unsigned parts = 0;
    uint64_t count = 0;

    for (int i = 0; i < 40; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t-%d", i);
        insert_ended(w, id, i % 4 ? TASK_PROCESSED : TASK_PENDING, i % 4 ? 2000 : 0);
    }
    insert_ended(w, "newest", TASK_PENDING, 0);
    r.scan_max = 7;
    do {
        CHECK(parts++ < 50, "it never ends");
        retire(w, &r);
        CHECK(r.count <= 7, "%d at once", (int)r.count);
        count += r.count;
    } while (r.more);
    CHECK(count == 30 && parts == 6, "%d deleted in %u parts", (int)count, parts);
    r = retire_of(5000);
    retire(w, &r);
    CHECK(r.count == 0 && !r.more, "nothing was left out");
}

/* A part that has no time for more than one leaves the others to the next. */
static void a_part_ends_when_its_time_is_over(void **state)
{
    struct world *w = *state;
    struct retire r = retire_of(5000);
    unsigned parts = 0;

    for (int i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t-%d", i);
        insert_ended(w, id, TASK_PROCESSED, 2000);
    }
    insert_ended(w, "newest", TASK_PENDING, 0);
    r.budget_us = 1;
    do {
        retire(w, &r);
        CHECK(r.count >= 1 && parts++ < 20, "%d in part %u", (int)r.count, parts);
    } while (r.more);
    CHECK(!exists(w, "t-19"), "the last one is gone");
}

/* Those submitted too late to have ended by then are not even looked at. */
static void it_ends_at_what_is_too_new(void **state)
{
    struct world *w = *state;
    struct retire r = retire_of(5000);

    insert_ended(w, "old", TASK_PROCESSED, 2000);
    for (int i = 0; i < 9; i++) {
        struct task_row row =
            a_row((const char *const[]){"a", "b", "c", "d", "e", "f", "g", "h", "i"}[i]);
        row.submitted_at = 5000 + SUBMITTED_SLACK_MS;
        must(insert_row(w, row), "new");
    }
    r.scan_max = 3;
    retire(w, &r);
    CHECK(r.count == 1 && !r.more, "%d, more is %d", (int)r.count, r.more);
}

/* An id may be used again; a number in the order of submission is not. */
static void an_id_may_be_used_again_and_a_number_is_not(void **state)
{
    struct world *w = *state;
    struct retire r = retire_of(5000);

    insert_ended(w, "x", TASK_PROCESSED, 2000);
    insert_ended(w, "last", TASK_PROCESSED, 2000);
    int64_t last = fetch(w, "last").seq;
    retire(w, &r);
    CHECK(r.count >= 1 && !exists(w, "x"), "it is gone");
    insert_ended(w, "x", TASK_PENDING, 0);
    struct task_row again = fetch(w, "x");
    CHECK(again.seq > last && again.revision == 1 && again.payload_count == 2, "a new one");
    struct list_query q = {.before_seq = again.seq, .limit = 9};
    struct row_page page;
    must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "list");
    CHECK(page.count == exists(w, "last"), "cursors mean what they meant");
    world_restart(w);
    insert_ended(w, "y", TASK_PENDING, 0);
    CHECK(fetch(w, "y").seq > again.seq, "nor after a restart");
}

/* Somebody had read the row before it was deleted: his change comes too late, and says so. */
static void a_change_of_what_was_deleted_is_a_conflict(void **state)
{
    struct world *w = *state;
    struct retire r = retire_of(5000);

    insert_ended(w, "x", TASK_ERROR, 2000);
    insert_ended(w, "y", TASK_ERROR, 2000);
    insert_ended(w, "newest", TASK_PENDING, 0);
    struct task_row gone = fetch(w, "x");
    struct task_row kept = fetch(w, "y");
    kept.revision++;
    kept.state = TASK_PROCESSING;
    kept.ended_at = 0;
    kept.payload_count = 0;
    must(update_row(w, kept), "a retry that came in time");
    r.states = RETIRE_STATES;
    retire(w, &r);
    CHECK(r.count == 1 && exists(w, "y"), "what goes on stays");
    gone.revision++;
    gone.payload_count = 0;
    CHECK(update_row(w, gone) == ERR_CONFLICT, "too late");
    CHECK(put_change(w, (struct change){.kind = CHANGE_REQUEST, .row = gone}) == ERR_CONFLICT,
          "nor is anything requested");
    CHECK(!exists(w, "x"), "it stays away");
}

/* --- counts --- */

static struct census census_at(struct world *w, int64_t now, size_t most)
{
    struct census c;

    must(w->s->ops->census(w->s, now, most, &w->a, &c, &w->e), "census");
    return c;
}

static void insert_counted(struct world *w)
{
    struct task_row sleeps = a_row("sleeps");
    struct task_row runs = a_row("runs");
    struct task_row ended = a_row("ended");

    for (int i = 0; i < 5; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "b-%d", i);
        struct task_row row = a_row(id);
        row.waiting_for = SLICE("b");
        row.rank = 50 - i; /* the last one comes first */
        row.submitted_at = 100 + i;
        must(insert_row(w, row), "insert");
    }
    must(insert_row(w, a_row("a")), "insert");
    sleeps.waiting_for = SLICE("time");
    must(insert_row(w, sleeps), "insert");
    runs.state = TASK_PROCESSING;
    runs.locked_by = SLICE("n1/1");
    runs.waiting_for = SLICE_NONE;
    runs.wake_at = 900;
    must(insert_row(w, runs), "insert");
    ended.state = TASK_ERROR;
    ended.waiting_for = SLICE_NONE;
    must(insert_row(w, ended), "insert");
}

static void what_is_not_over_is_counted_to_a_limit(void **state)
{
    struct world *w = *state;

    struct census c = census_at(w, 1000, 10);
    CHECK(c.tasks[TASK_PENDING] + c.overdue + c.agent_count == 0 && c.overdue_since == 0, "empty");
    CHECK(c.agents_most == 10, "%zu", c.agents_most);
    insert_counted(w);
    c = census_at(w, 1000, 30);
    CHECK(c.tasks[TASK_PENDING] == 7 && c.tasks[TASK_PROCESSING] == 1 && c.tasks[TASK_ERROR] == 1
              && c.tasks[TASK_PROCESSED] == 0,
          "%d pending", (int)c.tasks[TASK_PENDING]);
    CHECK(c.sleeping == 1, "%d asleep", (int)c.sleeping);
    CHECK(c.overdue == 1 && c.overdue_since == 900, "%d overdue", (int)c.overdue);
    CHECK(census_at(w, 0, 10).overdue == 0, "nothing is overdue then");
    CHECK(c.agent_count == 2, "%zu agents", c.agent_count);
    CHECK(slice_is(c.agents[0].agent, "a") && c.agents[0].tasks == 1, "a");
    CHECK(slice_is(c.agents[1].agent, "b") && c.agents[1].tasks == 5
              && c.agents[1].first_submitted_at == 104,
          "b: %d", (int)c.agents[1].tasks);
    c = census_at(w, 1000, 7); /* of that two agents and "time" have a part each */
    CHECK(c.tasks[TASK_PENDING] == 7 && c.agents_most == 3 && c.agents[1].tasks == 3, "%zu",
          c.agents_most);
    CHECK(census_at(w, 1000, 3).tasks[TASK_PENDING] == 3, "no further than asked for");
}

static void agents_are_counted_to_a_limit(void **state)
{
    struct world *w = *state;

    for (unsigned i = 0; i < CENSUS_AGENTS + 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "a-%03u", i);
        insert_ranked(w, id, id, 1);
    }
    struct census c = census_at(w, 1000, 10);
    CHECK(c.agent_count == CENSUS_AGENTS && c.agents_most == 1, "%zu agents", c.agent_count);
    CHECK(slice_is(c.agents[0].agent, "a-000") && slice_is(c.agents[199].agent, "a-199"), "names");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(what_ended_before_is_deleted_and_nothing_else),
        ON_ALL(a_dry_run_counts_and_deletes_nothing),
        ON_ALL(parts_follow_each_other),
        ON_ALL(a_part_ends_when_its_time_is_over),
        ON_ALL(it_ends_at_what_is_too_new),
        ON_ALL(an_id_may_be_used_again_and_a_number_is_not),
        ON_ALL(a_change_of_what_was_deleted_is_a_conflict),
        ON_SQLITE(what_is_not_over_is_counted_to_a_limit),
        ON_POSTGRES(what_is_not_over_is_counted_to_a_limit),
        ON_SQLITE(agents_are_counted_to_a_limit),
        ON_POSTGRES(agents_are_counted_to_a_limit),
    };
    return cmocka_run_group_tests_name("store retire", tests, NULL, NULL);
}
