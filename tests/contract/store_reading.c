/* The contract of every store for its second handle, with which a thread reads while another one
 * writes: snapshots, pauses, and a WAL that stays short. Each test runs on all stores that have
 * one (store_world.h). */

#include "store_world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

static struct store *reading_of(struct world *w)
{
    CHECK(w->s->ops->reading, "there is no second way");
    struct store *r = w->s->ops->reading(w->s);
    CHECK(r && r->ops->is_usable(r), "it cannot be used");
    return r;
}

static bool reads(struct world *w, struct store *r, const char *id)
{
    struct task_row row;
    enum err err = r->ops->get(r, slice_of(id), &w->a, &row, &w->e);

    CHECK(err == ERR_OK || err == ERR_NOT_FOUND, "%s", w->e.text);
    return err == ERR_OK;
}

static void what_was_committed_is_read(void **state)
{
    struct world *w = *state;
    struct store *r = reading_of(w);

    for (int i = 0; i < 20; i++) {
        char id[20];
        struct row_page page;
        const struct list_query q = {.limit = 1};
        (void)snprintf(id, sizeof id, "t-%d", i);
        CHECK(!reads(w, r, id), "%s is not there yet", id);
        must(insert_row(w, a_row(id)), id);
        CHECK(reads(w, r, id), "%s is there", id);
        CHECK(r->ops->list(r, &q, &w->a, &page, &w->e) == ERR_OK, "%s", w->e.text);
        CHECK(page.count == 1 && slice_is(page.rows[0].id, id), "%s is the newest", id);
    }
    r->ops->close(r);
}

/* Several calls read one moment, and the next call reads what was committed meanwhile. */
static void a_snapshot_is_of_one_moment(void **state)
{
    struct world *w = *state;
    struct store *r = reading_of(w);

    CHECK(r->ops->snapshot && r->ops->snapshot_end, "there are no snapshots");
    for (int i = 0; i < 3; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "t-%d", i);
        r->ops->snapshot(r);
        CHECK(!reads(w, r, id), "%s is not there yet", id);
        must(insert_row(w, a_row(id)), id);
        CHECK(!reads(w, r, id), "%s came later", id);
        r->ops->snapshot_end(r);
        CHECK(reads(w, r, id), "%s is there", id);
    }
    r->ops->snapshot(r);
    r->ops->snapshot_end(r); /* nothing was read */
    CHECK(reads(w, r, "t-0"), "it reads on");
    r->ops->close(r);
}

/* Both say the same of everything that both can be asked for. */
static void all_that_reads_is_there(void **state)
{
    const struct target_query q = {.limit = 5, .most = 5};
    struct world *w = *state;
    struct store *r = reading_of(w);
    struct reservation gone;
    struct census counts;
    struct audit_page audits;
    struct submission_page submissions;
    struct message_page messages;
    struct alert_page alerts;
    struct operation_page operations;
    struct item_read items = {.task = SLICE("one"), .step = SLICE("a"), .limit = 5};
    struct outbox_target *targets = NULL;
    size_t count = 0;

    must(insert_row(w, a_row("one")), "one");
    CHECK(r->ops->retention->reserved(r, SLICE("two"), &w->a, &gone, &w->e) == ERR_NOT_FOUND,
          "reserved");
    CHECK(r->ops->counts->census(r, 1000, 10, &w->a, &counts, &w->e) == ERR_OK
              && counts.tasks[TASK_PENDING] == 1,
          "census: %s", w->e.text);
    CHECK(r->ops->audit_list(r, &(struct audit_query){.limit = 5}, &w->a, &audits, &w->e) == ERR_OK,
          "audit: %s", w->e.text);
    CHECK(r->ops->submissions->list(r, &(struct submission_query){.limit = 5}, &w->a, &submissions,
                                    &w->e)
              == ERR_OK,
          "submissions: %s", w->e.text);
    CHECK(r->ops->outbox->list(r, &(struct outbox_query){.limit = 5, .waiting = true}, &w->a,
                               &messages, &w->e)
              == ERR_OK,
          "messages: %s", w->e.text);
    CHECK(r->ops->outbox->targets(r, &q, &w->a, &targets, &count, &w->e) == ERR_OK, "targets: %s",
          w->e.text);
    CHECK(r->ops->alerts->list(r, &(struct alert_query){.limit = 5}, &w->a, &alerts, &w->e)
              == ERR_OK,
          "alerts: %s", w->e.text);
    CHECK(r->ops->operations->list(r, &(struct operation_query){.limit = 5}, &w->a, &operations,
                                   &w->e)
              == ERR_OK,
          "operations: %s", w->e.text);
    CHECK(r->ops->items->read(r, &items, &w->a, &w->e) == ERR_OK && items.count == 0, "items: %s",
          w->e.text);
    CHECK(!r->ops->nodes == !w->s->ops->nodes, "nodes");
    r->ops->close(r);
}

/* ---- whose tasks go on ---- */

static void insert_owned(struct world *w, const char *id, enum task_state state, const char *doc)
{
    struct task_row row = a_row(id);

    row.state = state;
    row.waiting_for = state == TASK_PENDING ? row.waiting_for : SLICE_NONE;
    row.ended_at = state == TASK_PROCESSED || state == TASK_ERROR ? 2000 : 0;
    row.doc = slice_of(doc);
    must(insert_row(w, row), id);
}

/* So many tasks of each go on, as the parts say together. */
static void count_owned(struct world *w, struct store *s, size_t most, size_t *ret_a, size_t *ret_b)
{
    struct owners_part p = {.state = TASK_PENDING, .most = most};

    *ret_a = *ret_b = 0;
    while (!p.over) {
        CHECK(s->ops->counts->owners(s, &p, &w->a, &w->e) == ERR_OK, "owners: %s", w->e.text);
        CHECK(p.count <= most, "%zu of %zu", p.count, most);
        for (size_t i = 0; i < p.count; i++) {
            *ret_a += slice_is(p.owners[i], "a");
            *ret_b += slice_is(p.owners[i], "b");
        }
    }
}

static void owners_are_counted_in_parts(void **state)
{
    static const char of_a[] = "{\"input\":{\"owner\":\"b\"},\"owner\":\"a\",\"steps\":[]}";
    static const char of_b[] = "{\"owner\":\"b\",\"steps\":[]}";
    struct world *w = *state;
    struct store *r = reading_of(w);

    insert_owned(w, "a1", TASK_PENDING, of_a);
    insert_owned(w, "b1", TASK_PENDING, of_b);
    insert_owned(w, "none", TASK_PENDING, "{\"steps\":[]}");
    insert_owned(w, "a2", TASK_PENDING, of_a);
    insert_owned(w, "a-running", TASK_PROCESSING, of_a);
    insert_owned(w, "a-back", TASK_COMPENSATING, of_a);
    insert_owned(w, "a-over", TASK_PROCESSED, of_a);
    insert_owned(w, "b-stopped", TASK_ERROR, of_b);
    for (size_t most = 1; most < 9; most++) {
        size_t a = 0;
        size_t b = 0;
        count_owned(w, w->s, most, &a, &b);
        CHECK(a == 4 && b == 1, "%zu at a time: %zu of a, %zu of b", most, a, b);
        count_owned(w, r, most, &a, &b);
        CHECK(a == 4 && b == 1, "%zu at a time, by the second way: %zu, %zu", most, a, b);
    }
    r->ops->close(r);
}

/* ---- on a thread of its own ---- */

struct lister {
    struct store *r;
    pthread_t thread;
    atomic_bool stop;
    atomic_size_t count;
    struct error e;
    enum err err;
};

/* Without a pause, each time all that is stored, and nothing of it fits. */
static void *lists(void *arg)
{
    struct lister *l = arg;
    const struct list_query q = {.error = SLICE("nope"), .limit = 10};

    while (!atomic_load(&l->stop) && l->err == ERR_OK) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct row_page page;
        l->err = l->r->ops->list(l->r, &q, &a, &page, &l->e);
        atomic_fetch_add(&l->count, 1);
    }
    return NULL;
}

static void list_begin(struct lister *l, struct store *r)
{
    *l = (struct lister){.r = r};
    CHECK(pthread_create(&l->thread, NULL, lists, l) == 0, "no thread");
    while (atomic_load(&l->count) == 0)
        (void)usleep(1000);
}

static void list_end(struct lister *l)
{
    atomic_store(&l->stop, true);
    CHECK(pthread_join(l->thread, NULL) == 0, "join");
    CHECK(l->err == ERR_OK, "%s", l->e.text);
}

static void changes_go_on_beside_it(void **state)
{
    struct world *w = *state;
    struct lister l;

    for (int i = 0; i < 100; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "before-%d", i);
        must(insert_row(w, a_row(id)), id);
    }
    list_begin(&l, reading_of(w));
    for (int i = 0; i < 100; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "beside-%d", i);
        must(insert_row(w, a_row(id)), id);
        CHECK(exists(w, id), "%s", id);
    }
    list_end(&l);
    l.r->ops->close(l.r);
}

/* A snapshot that is always there would let it grow for ever. */
static void the_log_stays_short(void **state)
{
    enum { CHANGES = 1500, LONG = 60000, MOST = 48 << 20 };
    struct world *w = *state;
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf wal = {0};
    struct stat st = {0};
    struct lister l;

    buf_byte(&text, '"');
    for (int i = 0; i < LONG; i++)
        buf_byte(&text, 'x');
    buf_byte(&text, '"');
    buf_fmt(&wal, "%s/intact.db-wal", w->dir);
    const struct payload payload = {1, buf_view(&text)};
    for (int i = 0; i < 1000; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "before-%d", i);
        must(insert_row(w, a_row(id)), id);
    }
    list_begin(&l, reading_of(w));
    for (int i = 0; i < CHANGES; i++) {
        char id[20];
        struct task_row row;
        (void)snprintf(id, sizeof id, "long-%d", i);
        row = a_row(id);
        row.payloads = &payload;
        row.payload_count = 1;
        must(insert_row(w, row), id);
        (void)sqlite_store_maintain(w->s, false);
        CHECK(stat(wal.ptr, &st) == 0 && st.st_size <= MOST, "after %d changes it has %zu bytes", i,
              (size_t)st.st_size);
    }
    list_end(&l);
    l.r->ops->close(l.r);
}

/* The store goes on by another WAL, and so does who reads. */
static void a_lost_log_is_left_by_both(void **state)
{
    struct world *w = *state;
    CLEANUP(buf_fini) struct buf wal = {0};
    struct store *r = reading_of(w);

    must(insert_row(w, a_row("before")), "before");
    CHECK(reads(w, r, "before"), "before");
    buf_fmt(&wal, "%s/intact.db-wal", w->dir);
    CHECK(unlink(wal.ptr) == 0, "no WAL");
    CHECK(insert_row(w, a_row("lost")) != ERR_OK, "its WAL is gone");
    CHECK(!r->ops->is_usable(r), "it reads on by the old one");
    must(insert_row(w, a_row("after")), "after");
    CHECK(r->ops->is_usable(r), "it can be used again");
    CHECK(reads(w, r, "before") && reads(w, r, "after"), "both");
    r->ops->close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SQLITE(what_was_committed_is_read),    ON_POSTGRES(what_was_committed_is_read),
        ON_SQLITE(a_snapshot_is_of_one_moment),   ON_SQLITE(all_that_reads_is_there),
        ON_POSTGRES(all_that_reads_is_there),     ON_SQLITE(owners_are_counted_in_parts),
        ON_POSTGRES(owners_are_counted_in_parts), ON_SQLITE(changes_go_on_beside_it),
        ON_POSTGRES(changes_go_on_beside_it),     ON_SQLITE(the_log_stays_short),
        ON_SQLITE(a_lost_log_is_left_by_both),
    };
    return cmocka_run_group_tests_name("store reading", tests, NULL, NULL);
}
