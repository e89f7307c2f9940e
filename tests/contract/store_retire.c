/* The contract of every store for the deletion of ended tasks: old ones go with all their rows,
 * nothing else does, ids stay reserved, and the counts are right. Each test names one promise and
 * runs on all stores (store_world.h). */

#include "store_world.h"

#include "base/buf.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

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

/* A part of looking and deleting, by one rule. */
struct part {
    int64_t ended_before, seq_before, budget_us, reserve_until, after_seq;
    uint32_t states;
    struct slice workflow;
    size_t scan_max;
    bool dry, more;
    const struct audit *audit;
    uint64_t count;
};

static struct part retire_of(int64_t ended_before)
{
    return (struct part){.ended_before = ended_before,
                         .states = 1U << TASK_PROCESSED | 1U << TASK_COMPENSATED,
                         .scan_max = 100};
}

static void look(struct world *w, struct part *p, struct retire_look *look)
{
    struct retire_rule *rule = arena_alloc(&w->a, sizeof *rule);

    *rule = (struct retire_rule){.states = p->states,
                                 .ended_before = p->ended_before,
                                 .seq_before = p->seq_before};
    *look = (struct retire_look){.rules = rule,
                                 .rule_count = 1,
                                 .workflow = p->workflow,
                                 .scan_max = p->scan_max,
                                 .after_seq = p->after_seq};
    must(w->s->ops->retention->look(w->s, look, &w->a, &w->e), w->e.text);
}

static void retire(struct world *w, struct part *p)
{
    struct retire_look l;

    look(w, p, &l);
    p->count = l.found_count;
    p->more = l.more;
    p->after_seq = l.after_seq;
    if (p->dry || l.found_count == 0)
        return;
    struct retire r = {.tasks = l.found,
                       .task_count = l.found_count,
                       .budget_us = p->budget_us,
                       .reserve_until = p->reserve_until,
                       .audit = p->audit,
                       .gone = arena_alloc(&w->a, l.found_count)};
    must(w->s->ops->retention->retire(w->s, &r, &w->e), w->e.text);
    CHECK(r.dealt_with >= 1 && r.dealt_with <= l.found_count, "%zu", r.dealt_with);
    p->count = 0;
    for (size_t i = 0; i < r.dealt_with; i++)
        p->count += r.gone[i];
    if (r.dealt_with < l.found_count) {
        p->after_seq = l.found[r.dealt_with].seq - 1;
        p->more = true;
    }
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
    struct part r = retire_of(5000);

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
    struct part r = retire_of(5000);
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
    struct part r = retire_of(5000);
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
    struct part r = retire_of(5000);
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
    struct part r = retire_of(5000);

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
    struct part r = retire_of(5000);

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
    struct part r = retire_of(5000);

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

/* --- messages --- */

/* A task that ended at 2000, and a message of it that came to be at that moment. */
static void insert_told(struct world *w, const char *id, int64_t at)
{
    const struct message m = {.name = slice_of(id),
                              .target = SLICE("https://a.example"),
                              .body = SLICE("{}"),
                              .created_at = at};
    struct task_row row = a_row(id);

    row.state = TASK_PROCESSED;
    row.ended_at = 2000;
    row.waiting_for = SLICE_NONE;
    must(put_change(w, (struct change){.kind = CHANGE_INSERT,
                                       .row = row,
                                       .messages = &m,
                                       .message_count = 1}),
         w->e.text);
}

static void settle(struct world *w, const char *task, bool aside, enum settle_kind kind)
{
    struct outbox_read r = {.target = aside ? SLICE("https://a.example") : SLICE_NONE,
                            .limit = 100,
                            .bytes_max = SIZE_MAX};

    must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), w->e.text);
    for (size_t i = 0; i < r.count; i++) {
        const struct settlement s = {
            .seq = r.messages[i].seq, .aside = aside, .kind = kind, .tries = 1, .retry_at = 9000};
        if (slice_is(r.messages[i].task, task))
            must(w->s->ops->outbox->settle(w->s, &s, 1, NULL, &w->e), w->e.text);
    }
}

static void what_is_still_to_be_told_keeps_its_task(void **state)
{
    struct world *w = *state;
    struct part r = retire_of(5000);

    insert_told(w, "waits", 2000);
    insert_told(w, "dead", 2000);
    insert_told(w, "told", 2000);
    insert_told(w, "new", 2000 + SUBMITTED_SLACK_MS);
    insert_ended(w, "newest", TASK_PENDING, 0);
    retire(w, &r);
    CHECK(r.count == 0, "of none it is known that all was told: %d", (int)r.count);
    settle(w, "waits", false, SETTLE_ASIDE);
    settle(w, "dead", false, SETTLE_DEAD);
    settle(w, "told", false, SETTLE_DELETE);
    r = retire_of(5000);
    retire(w, &r);
    CHECK(r.count == 0, "nor now: %d", (int)r.count);
    settle(w, "new", false, SETTLE_DELETE);
    insert_told(w, "later", 2001 + SUBMITTED_SLACK_MS); /* of one that was over long before */
    insert_ended(w, "newest of all", TASK_PENDING, 0);
    r = retire_of(5000);
    retire(w, &r);
    CHECK(r.count == 4 && exists(w, "waits"), "%d: all but the one that waits", (int)r.count);
    settle(w, "waits", true, SETTLE_DELETE);
    r = retire_of(5000);
    retire(w, &r);
    CHECK(r.count == 1 && !exists(w, "waits"), "it was told");
}

/* --- rules --- */

static void insert_of(struct world *w, const char *id, const char *workflow, int64_t ended_at)
{
    struct task_row row = a_row(id);

    row.workflow = slice_of(workflow);
    row.state = ended_at ? TASK_PROCESSED : TASK_PENDING;
    row.ended_at = ended_at;
    row.waiting_for = ended_at ? SLICE_NONE : SLICE("a");
    must(insert_row(w, row), id);
}

static void the_first_rule_that_is_for_it_counts(void **state)
{
    struct world *w = *state;
    const struct retire_rule rules[] = {
        {.workflow = SLICE("order"), .states = 1U << TASK_PROCESSED, .ended_before = 3000},
        {.workflow = SLICE("keep"), .states = RETIRE_STATES, .ended_before = 0},
        {.states = 1U << TASK_PROCESSED, .ended_before = 5000},
    };
    struct retire_look l = {.rules = rules, .rule_count = COUNT_OF(rules), .scan_max = 100};

    insert_of(w, "order-old", "order", 2000);
    insert_of(w, "order-new", "order", 4000);
    insert_of(w, "keep-old", "keep", 2000);
    insert_of(w, "other-old", "other", 4000);
    insert_of(w, "other-new", "other", 5000);
    insert_of(w, "newest", "other", 0);
    must(w->s->ops->retention->look(w->s, &l, &w->a, &w->e), w->e.text);
    CHECK(l.found_count == 2, "%zu found", l.found_count);
    CHECK(slice_is(l.found[0].id, "order-old") && l.found[0].rule == 0, "order-old");
    CHECK(slice_is(l.found[1].id, "other-old") && l.found[1].rule == 2, "other-old");
    CHECK(slice_is(l.found[0].workflow, "order") && l.found[0].state == TASK_PROCESSED, "what");
}

static void one_workflow_is_looked_through_by_itself(void **state)
{
    struct world *w = *state;
    struct part p = retire_of(5000);
    unsigned parts = 0;
    uint64_t count = 0;

    for (int i = 0; i < 30; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t-%d", i);
        insert_of(w, id, i % 3 ? "order" : "other", 2000);
    }
    insert_of(w, "newest", "order", 0);
    p.workflow = SLICE("order");
    p.scan_max = 7;
    do {
        CHECK(parts++ < 10, "it never ends");
        retire(w, &p);
        count += p.count;
    } while (p.more);
    CHECK(count == 20, "%d deleted", (int)count);
    CHECK(exists(w, "t-0") && exists(w, "t-27") && !exists(w, "t-1"), "only that one");
}

static void the_newest_may_be_kept(void **state)
{
    struct world *w = *state;
    struct part p = retire_of(5000);

    for (int i = 0; i < 9; i++)
        insert_of(w, (const char *const[]){"a", "b", "c", "d", "e", "f", "g", "h", "i"}[i], "w",
                  2000);
    insert_of(w, "newest", "w", 0);
    p.seq_before = fetch(w, "d").seq;
    retire(w, &p);
    CHECK(p.count == 3 && !p.more, "%d", (int)p.count);
    CHECK(!exists(w, "c") && exists(w, "d"), "from there on they stay");
}

static void what_was_closed_is_over(void **state)
{
    struct world *w = *state;
    struct part p = retire_of(5000);

    insert_ended(w, "open", TASK_ERROR, 2000);
    insert_ended(w, "closed", TASK_ERROR, 2000);
    insert_ended(w, "just-closed", TASK_ERROR, 2000);
    insert_ended(w, "newest", TASK_PENDING, 0);
    for (int i = 0; i < 2; i++) {
        struct task_row row = fetch(w, i ? "just-closed" : "closed");
        row.revision++;
        row.payload_count = 0;
        row.closed_at = i ? 6000 : 3000;
        must(update_row(w, row), "close");
    }
    p.states |= RETIRE_CLOSED;
    retire(w, &p);
    CHECK(p.count == 1 && !exists(w, "closed"), "%d", (int)p.count);
    CHECK(exists(w, "open") && exists(w, "just-closed"), "not the others");
}

/* What changed between looking and deleting stays. */
static void what_was_changed_since_it_was_found_stays(void **state)
{
    struct world *w = *state;
    struct part p = retire_of(5000);
    struct retire_look l;
    bool gone[2] = {true, false};

    insert_ended(w, "x", TASK_ERROR, 2000);
    insert_ended(w, "y", TASK_ERROR, 2000);
    insert_ended(w, "newest", TASK_PENDING, 0);
    p.states = RETIRE_STATES;
    look(w, &p, &l);
    CHECK(l.found_count == 2, "%zu", l.found_count);
    struct task_row row = fetch(w, "x");
    row.revision++;
    row.payload_count = 0;
    must(update_row(w, row), "a change");
    struct retire r = {.tasks = l.found, .task_count = 2, .gone = gone, .reserve_until = 9000};
    must(w->s->ops->retention->retire(w->s, &r, &w->e), w->e.text);
    CHECK(r.dealt_with == 2 && !gone[0] && gone[1], "which");
    CHECK(fetch(w, "x").payload_count == 2 && !exists(w, "y"), "x is whole");
    must(w->s->ops->retention->retire(w->s, &r, &w->e), w->e.text);
    CHECK(!gone[0] && !gone[1], "once more does nothing");
}

/* --- reserved ids --- */

static enum err insert_at(struct world *w, const char *id, int64_t submitted_at)
{
    struct task_row row = a_row(id);

    row.submitted_at = submitted_at;
    return insert_row(w, row);
}

static void an_id_stays_reserved(void **state)
{
    struct world *w = *state;
    struct part p = retire_of(5000);
    struct reservation kept;
    size_t swept = 0;

    struct task_row row = a_row("x");
    row.state = TASK_COMPENSATED;
    row.ended_at = 2000;
    row.waiting_for = SLICE_NONE;
    row.doc =
        SLICE("{\"input\":{\"content\":\"1111111111111111\"},"
              "\"content\":\"00000000000000ab\",\"sha256\":"
              "\"47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU\",\"owner\":\"shop\",\"steps\":[]}");
    must(insert_row(w, row), "x");
    insert_ended(w, "newest", TASK_PENDING, 0);
    CHECK(w->s->ops->retention->reserved(w->s, SLICE("x"), &w->a, &kept, &w->e) == ERR_NOT_FOUND,
          "it is there");
    p.reserve_until = 9000;
    retire(w, &p);
    CHECK(p.count == 1, "%d", (int)p.count);
    world_restart(w);
    CHECK(insert_at(w, "x", 8999) == ERR_CONFLICT && !exists(w, "x"), "it is reserved");
    must(w->s->ops->retention->reserved(w->s, SLICE("x"), &w->a, &kept, &w->e), w->e.text);
    CHECK(kept.content.hash == 0xab && kept.until == 9000, "%d", (int)kept.content.hash);
    CHECK(slice_is(kept.content.sha256, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"), "%.*s",
          SLICE_ARG(kept.content.sha256));
    CHECK(slice_is(kept.owner, "shop"), "%.*s", SLICE_ARG(kept.owner));
    CHECK(kept.state == TASK_COMPENSATED && kept.ended_at == 2000, "how it ended");
    CHECK(slice_eq(kept.workflow, row.workflow) && kept.version == row.version, "what it was");
    must(w->s->ops->retention->sweep(w->s, 8999, 9, &swept, &w->e), w->e.text);
    CHECK(swept == 0, "not yet");
    must(insert_at(w, "x", 9000), "it is free, swept or not");
    must(w->s->ops->retention->sweep(w->s, 9000, 9, &swept, &w->e), w->e.text);
    CHECK(swept == 1, "%zu", swept);
    CHECK(w->s->ops->retention->reserved(w->s, SLICE("x"), &w->a, &kept, &w->e) == ERR_NOT_FOUND,
          "forgotten");
}

/* As a version before wrote it, or wrote it again. */
static void of_some_reserved_ids_the_hash_alone_is_known(void **state)
{
    struct world *w = *state;
    struct part p = retire_of(5000);
    struct reservation kept;

    struct task_row row = a_row("x");
    row.state = TASK_COMPENSATED;
    row.ended_at = 2000;
    row.waiting_for = SLICE_NONE;
    row.doc = SLICE("{\"content\":\"00000000000000ab\",\"steps\":[]}");
    must(insert_row(w, row), "x");
    insert_ended(w, "newest", TASK_PENDING, 0);
    p.reserve_until = 9000;
    retire(w, &p);
    must(w->s->ops->retention->reserved(w->s, SLICE("x"), &w->a, &kept, &w->e), w->e.text);
    CHECK(kept.content.hash == 0xab && !kept.content.sha256.ptr, "the hash alone");
    CHECK(!kept.owner.ptr, "nobody's");
}

static void reserved_ids_are_forgotten_in_parts(void **state)
{
    struct world *w = *state;
    struct part p = retire_of(5000);
    size_t swept = 0;

    for (int i = 0; i < 5; i++)
        insert_ended(w, (const char *const[]){"a", "b", "c", "d", "e"}[i], TASK_PROCESSED, 2000);
    insert_ended(w, "newest", TASK_PENDING, 0);
    p.reserve_until = 9000;
    retire(w, &p);
    must(w->s->ops->retention->sweep(w->s, 10000, 3, &swept, &w->e), w->e.text);
    CHECK(swept == 3, "%zu", swept);
    must(w->s->ops->retention->sweep(w->s, 10000, 3, &swept, &w->e), w->e.text);
    CHECK(swept == 2, "%zu", swept);
    must(w->s->ops->retention->sweep(w->s, 10000, 3, &swept, &w->e), w->e.text);
    CHECK(swept == 0, "%zu", swept);
}

/* One reserved id in a batch concerns nothing else of it. */
static void a_reserved_id_concerns_its_own_insertion_only(void **state)
{
    struct world *w = *state;
    struct part p = retire_of(5000);
    struct change c[3] = {{0}};
    struct batch b = {.changes = c, .change_count = 3};

    insert_ended(w, "x", TASK_PROCESSED, 2000);
    insert_ended(w, "newest", TASK_PENDING, 0);
    p.reserve_until = 9000;
    retire(w, &p);
    for (int i = 0; i < 3; i++)
        c[i] = (struct change){.kind = CHANGE_INSERT,
                               .row = a_row((const char *const[]){"u", "x", "v"}[i])};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), w->e.text);
    CHECK(c[0].outcome == ERR_OK && c[1].outcome == ERR_CONFLICT && c[2].outcome == ERR_OK, "each");
}

/* --- room --- */

/* A file that was made by this version gives room back, in small parts, with all that is in it. */
static void the_file_becomes_shorter(void **state)
{
    struct world *w = *state;
    struct part p = retire_of(5000);
    struct shrink k = {.budget_us = 2000, .more = true};
    CLEANUP(buf_fini) struct buf filler = {0};
    char path[100];
    struct stat before;
    struct stat after;
    unsigned parts = 0;

    (void)snprintf(path, sizeof path, "%s/intact.db", w->dir);
    buf_str(&filler, "{\"input\":\"");
    for (int i = 0; i < 300; i++)
        buf_str(&filler, "0123456789");
    buf_str(&filler, "\"}");
    for (int i = 0; i < 6000; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "t-%d", i);
        struct task_row row = a_row(id);
        row.state = i == 3000 ? TASK_PENDING : TASK_PROCESSED;
        row.ended_at = i == 3000 ? 0 : 2000;
        row.doc = buf_view(&filler);
        must(insert_row(w, row), id);
    }
    (void)sqlite_store_maintain(w->s, true);
    CHECK(stat(path, &before) == 0, "its size");
    do
        retire(w, &p);
    while (p.more);
    while (k.more) {
        CHECK(parts++ < 100000, "it never ends");
        must(w->s->ops->shrink(w->s, &k, &w->e), w->e.text);
    }
    (void)sqlite_store_maintain(w->s, true);
    CHECK(stat(path, &after) == 0, "its size");
    CHECK(after.st_size < before.st_size / 2, "%d of %d bytes", (int)after.st_size,
          (int)before.st_size);
    CHECK(parts > 1, "in one go");
    CHECK(slice_eq(fetch(w, "t-3000").doc, buf_view(&filler)), "what stays is whole");
    CHECK(exists(w, "t-5999"), "and the newest");
    world_restart(w);
    CHECK(slice_eq(fetch(w, "t-3000").doc, buf_view(&filler)), "after a restart, too");
}

/* --- counts --- */

static struct census census_at(struct world *w, int64_t now, size_t most)
{
    struct census c;

    must(w->s->ops->counts->census(w->s, now, most, &w->a, &c, &w->e), "census");
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
        ON_ALL(what_is_still_to_be_told_keeps_its_task),
        ON_ALL(the_first_rule_that_is_for_it_counts),
        ON_ALL(one_workflow_is_looked_through_by_itself),
        ON_ALL(the_newest_may_be_kept),
        ON_ALL(what_was_closed_is_over),
        ON_ALL(what_was_changed_since_it_was_found_stays),
        ON_ALL(an_id_stays_reserved),
        ON_ALL(of_some_reserved_ids_the_hash_alone_is_known),
        ON_ALL(reserved_ids_are_forgotten_in_parts),
        ON_ALL(a_reserved_id_concerns_its_own_insertion_only),
        ON_SQLITE(the_file_becomes_shorter),
        ON_SQLITE(what_is_not_over_is_counted_to_a_limit),
        ON_POSTGRES(what_is_not_over_is_counted_to_a_limit),
        ON_SQLITE(agents_are_counted_to_a_limit),
        ON_POSTGRES(agents_are_counted_to_a_limit),
    };
    return cmocka_run_group_tests_name("store retire", tests, NULL, NULL);
}
