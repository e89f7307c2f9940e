/* The contract of every store for operations on many tasks: their rows, and the filters that
 * select their tasks. Each test names one promise and runs on all stores (store_world.h). */

#include "store_world.h"

#include <stdlib.h>

#include "base/buf.h"

/* ---- what a filter finds ---- */

static const char *const documents[] = {
    "{\"error\":{\"code\":\"declined\",\"message\":\"no\"},\"steps\":[{\"name\":\"reserve\","
    "\"state\":\"completed\"},{\"name\":\"charge\",\"state\":\"failed\",\"failure_count\":3}]}",
    "{\"steps\":[{\"name\":\"reserve\",\"state\":\"running\"},"
    "{\"name\":\"charge\",\"state\":\"waiting\"}]}",
    "{\"steps\":[{\"name\":\"reserve\",\"state\":\"completed\"},"
    "{\"name\":\"charge\",\"state\":\"waiting\",\"failure_count\":1}]}",
    "{\"error\":{\"code\":\"late\"},\"steps\":[{\"name\":\"reserve\",\"state\":\"undoing\"},"
    "{\"name\":\"charge\",\"state\":\"skipped\"}]}",
};

/* t0 to t19: the documents in turn; versions 1 to 3, workflows "w" and "v"; of every fifth it is
 * known when it ended. */
static void insert_varied(struct world *w)
{
    for (int i = 0; i < 20; i++) {
        CLEANUP(buf_fini) struct buf id = {0};
        buf_fmt(&id, "t%d", i);
        struct task_row row = a_row(id.ptr);
        row.doc = slice_of(documents[i % 4]);
        row.version = 1 + i % 3;
        row.workflow = i % 2 ? SLICE("v") : SLICE("w");
        row.state = i % 4 == 0 ? TASK_ERROR : i % 4 == 3 ? TASK_COMPENSATING : TASK_PENDING;
        row.waiting_for = i % 4 == 2 ? SLICE("bank") : SLICE_NONE;
        row.ended_at = i % 5 ? 0 : 1000 + i;
        must(insert_row(w, row), id.ptr);
    }
}

/* The numbers of all that are found, as bits, page after page. */
static uint32_t found_by(struct world *w, struct list_query q)
{
    uint32_t found = 0;
    struct row_page page = {.more = true};

    while (page.more) {
        must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), w->e.text);
        for (size_t i = 0; i < page.count; i++) {
            uint32_t bit = 1U << atoi(page.rows[i].id.ptr + 1);
            CHECK(!(found & bit), "%.*s comes twice", SLICE_ARG(page.rows[i].id));
            found |= bit;
        }
        q.before_seq = page.next_seq;
    }
    return found;
}

/* What has to be found, whatever the pages are. */
static void finds(struct world *w, struct list_query q, bool (*wanted)(int i), const char *what)
{
    static const size_t limits[] = {1, 3, 100};
    static const size_t scans[] = {0, 1, 2};
    uint32_t want = 0;

    for (int i = 0; i < 20; i++)
        want |= wanted(i) ? 1U << i : 0;
    for (size_t l = 0; l < COUNT_OF(limits); l++)
        for (size_t s = 0; s < COUNT_OF(scans); s++) {
            q.limit = limits[l];
            q.scan_max = scans[s];
            uint32_t found = found_by(w, q);
            CHECK(found == want, "%s, limit %zu, scan %zu: %x instead of %x", what, q.limit,
                  q.scan_max, found, want);
        }
}

static bool is_declined(int i)
{
    return i % 4 == 0;
}

static bool is_late_error(int i)
{
    return i % 4 == 3;
}

static bool is_at_charge(int i)
{
    return i % 4 == 0 || i % 4 == 2;
}

static bool is_at_reserve(int i)
{
    return i % 4 == 1 || i % 4 == 3;
}

static bool is_at_charge_of_w1(int i)
{
    return is_at_charge(i) && i % 2 == 0 && i % 3 == 0;
}

static bool is_at_bank_or_reserve(int i)
{
    return is_at_reserve(i) || i % 4 == 2;
}

static bool is_version_2(int i)
{
    return i % 3 == 1;
}

static bool ended_in_time(int i)
{
    return i == 5 || i == 10;
}

static bool is_named(int i)
{
    return i == 3 || i == 4 || i == 17;
}

static bool is_named_and_declined(int i)
{
    return i == 4;
}

static bool is_nobody(int i)
{
    (void)i;
    return false;
}

static void tasks_are_found_by_where_they_stand(void **state)
{
    struct world *w = *state;
    const struct list_place charge = {.step = SLICE("charge")};
    const struct list_place reserve = {.step = SLICE("reserve")};
    const struct list_place of_w1 = {SLICE("w"), 1, SLICE("charge")};
    const struct list_place none = {.step = SLICE("")};

    insert_varied(w);
    finds(w, (struct list_query){.error = SLICE("declined")}, is_declined, "error");
    finds(w, (struct list_query){.error = SLICE("late"), .states = 1U << TASK_COMPENSATING},
          is_late_error, "error and state");
    finds(w, (struct list_query){.places = &charge, .place_count = 1}, is_at_charge, "charge");
    finds(w, (struct list_query){.places = &reserve, .place_count = 1}, is_at_reserve, "reserve");
    finds(w, (struct list_query){.places = &of_w1, .place_count = 1}, is_at_charge_of_w1,
          "charge of version 1 of w");
    finds(w, (struct list_query){.places = &reserve, .place_count = 1, .agent = SLICE("bank")},
          is_at_bank_or_reserve, "an agent");
    finds(w, (struct list_query){.places = &none, .place_count = 1}, is_nobody, "no step");
    finds(w, (struct list_query){.error = SLICE("x' OR '1'='1")}, is_nobody, "no such code");
}

static void tasks_are_found_by_version_end_and_id(void **state)
{
    struct world *w = *state;
    const struct slice ids[] = {SLICE("t17"), SLICE("t3"), SLICE("nobody"), SLICE("t4")};

    insert_varied(w);
    finds(w, (struct list_query){.version = 2}, is_version_2, "version");
    finds(w, (struct list_query){.ended_after = 1005, .ended_before = 1011}, ended_in_time, "end");
    finds(w, (struct list_query){.ids = ids, .id_count = COUNT_OF(ids)}, is_named, "ids");
    finds(w, (struct list_query){.ids = ids, .id_count = COUNT_OF(ids), .error = SLICE("declined")},
          is_named_and_declined, "ids and error");
    finds(w, (struct list_query){.ids = &ids[2], .id_count = 1}, is_nobody, "an unknown id");
}

static void a_page_tells_how_much_was_looked_at(void **state)
{
    struct world *w = *state;
    struct list_query q = {.error = SLICE("declined"), .limit = 100};
    struct row_page page;

    insert_varied(w);
    must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "list");
    CHECK(page.count == 5 && !page.more && page.scanned == 20, "%zu of %zu", page.count,
          page.scanned);
}

/* ---- the table ---- */

static struct operation_row an_operation(const char *id)
{
    return (struct operation_row){
        .id = slice_of(id),
        .revision = 1,
        .open = true,
        .state = SLICE("running"),
        .verb = SLICE("retry"),
        .actor = SLICE("ann"),
        .reason = SLICE("the service is back"),
        .started_at = 5000,
        .doc = SLICE("{\"filter\":{\"state\":\"error\"}}"),
    };
}

static enum err put(struct world *w, const struct operation_row *row)
{
    return w->s->ops->operations->put(w->s, row, NULL, &w->e);
}

static struct operation_page list(struct world *w, struct operation_query q)
{
    struct operation_page page = {0};

    must(w->s->ops->operations->list(w->s, &q, &w->a, &page, &w->e), w->e.text);
    return page;
}

static void an_operation_is_kept_and_fenced_by_its_revision(void **state)
{
    struct world *w = *state;
    struct operation_row row = an_operation("o-1");
    const struct audit a = {.at = 5, .actor = SLICE("ann"), .verb = SLICE("operation.start")};
    const struct audit_query all = {.limit = 9};
    struct audit_page audits;

    must(w->s->ops->operations->put(w->s, &row, &a, &w->e), "the first");
    CHECK(w->s->ops->operations->put(w->s, &row, &a, &w->e) == ERR_CONFLICT, "it exists");
    row.revision = 3;
    CHECK(put(w, &row) == ERR_CONFLICT, "of another revision");
    row.revision = 2;
    row.open = false;
    row.state = SLICE("done");
    row.ended_at = 7000;
    row.doc = SLICE("{\"filter\":{\"state\":\"error\"},\"done\":12}");
    must(put(w, &row), "the next revision");
    CHECK(put(w, &row) == ERR_CONFLICT, "twice");
    world_restart(w);
    struct operation_page page = list(w, (struct operation_query){.id = SLICE("o-1"), .limit = 1});
    const struct operation_row *got = page.rows;
    CHECK(page.count == 1 && !page.more, "it is there");
    CHECK(got->revision == 2 && !got->open && got->started_at == 5000 && got->ended_at == 7000,
          "numbers");
    CHECK(slice_is(got->state, "done") && slice_is(got->verb, "retry")
              && slice_is(got->actor, "ann") && slice_is(got->reason, "the service is back")
              && slice_eq(got->doc, row.doc),
          "texts");
    must(w->s->ops->audit_list(w->s, &all, &w->a, &audits, &w->e), "audit");
    CHECK(audits.count == 1, "what was refused is not audited: %zu", audits.count);
}

static void operations_are_listed_newest_first(void **state)
{
    struct world *w = *state;
    struct operation_query q = {.limit = 3};
    int next = 9;
    struct operation_page page = {.more = true};

    for (int i = 0; i < 10; i++) {
        CLEANUP(buf_fini) struct buf id = {0};
        buf_fmt(&id, "o-%d", i);
        struct operation_row row = an_operation(id.ptr);
        row.open = i % 2;
        must(put(w, &row), id.ptr);
    }
    while (page.more) {
        page = list(w, q);
        for (size_t i = 0; i < page.count; i++, next--)
            CHECK(page.rows[i].id.ptr[2] == '0' + next, "%.*s", SLICE_ARG(page.rows[i].id));
        q.before_seq = page.rows[page.count - 1].seq;
    }
    CHECK(next == -1, "all of them");
    page = list(w, (struct operation_query){.open = true, .limit = 9});
    CHECK(page.count == 5 && !page.more && slice_is(page.rows[0].id, "o-9"), "open ones");
    page = list(w, (struct operation_query){.open = true, .id = SLICE("o-4"), .limit = 1});
    CHECK(page.count == 0, "that one is not open");
    page = list(w, (struct operation_query){.id = SLICE("o-10"), .limit = 1});
    CHECK(page.count == 0, "there is none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(tasks_are_found_by_where_they_stand),
        ON_ALL(tasks_are_found_by_version_end_and_id),
        ON_ALL(a_page_tells_how_much_was_looked_at),
        ON_ALL(an_operation_is_kept_and_fenced_by_its_revision),
        ON_ALL(operations_are_listed_newest_first),
    };
    return cmocka_run_group_tests_name("store operation", tests, NULL, NULL);
}
