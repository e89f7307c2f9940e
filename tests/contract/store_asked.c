/* The contract of every store for tasks of which people are asked: they are listed apart from
 * others, in pages, until they are decided. Each test runs on all stores (store_world.h). */

#include <stdio.h>

#include "store_world.h"

enum { TASKS = 9 };

/* Every other one asks people, from t-0 to t-8. */
static void insert_tasks(struct world *w)
{
    for (int i = 0; i < TASKS; i++) {
        char *id = arena_bytes(&w->a, 16);
        (void)snprintf(id, 16, "t-%d", i);
        struct task_row row = a_row(id);
        row.asked = i % 2 == 0 ? SLICE(",board,finance,") : SLICE_NONE;
        must(insert_row(w, row), id);
    }
}

static struct row_page listed(struct world *w, const struct list_query *q)
{
    struct row_page page = {0};

    must(w->s->ops->list(w->s, q, &w->a, &page, &w->e), "list");
    return page;
}

static void has(const struct row_page *page, const char *const *ids, size_t count, bool more)
{
    CHECK(page->count == count && page->more == more, "%zu of %zu, more: %d", page->count, count,
          page->more);
    for (size_t i = 0; i < count; i++) {
        CHECK(slice_is(page->rows[i].id, ids[i]), "%.*s, not %s", SLICE_ARG(page->rows[i].id),
              ids[i]);
        CHECK(slice_is(page->rows[i].asked, ",board,finance,"), "who is asked of %s", ids[i]);
        CHECK(page->rows[i].seq > 0, "the place of %s", ids[i]);
    }
}

static void what_is_asked_is_listed_in_pages(void **state)
{
    struct world *w = *state;
    struct list_query q = {.asked = true, .groups = true, .limit = 2};

    insert_tasks(w);
    struct row_page page = listed(w, &q);
    has(&page, (const char *const[]){"t-8", "t-6"}, 2, true);
    q.before_seq = page.next_seq;
    page = listed(w, &q);
    has(&page, (const char *const[]){"t-4", "t-2"}, 2, true);
    q.before_seq = page.rows[0].seq; /* between two pages, too */
    page = listed(w, &q);
    has(&page, (const char *const[]){"t-2", "t-0"}, 2, false);
    q = (struct list_query){.asked = true, .limit = 9};
    page = listed(w, &q);
    has(&page, (const char *const[]){"t-8", "t-6", "t-4", "t-2", "t-0"}, 5, false);
}

static void what_is_decided_is_not_listed(void **state)
{
    const struct list_query q = {.asked = true, .limit = 2};
    struct world *w = *state;

    insert_tasks(w);
    struct task_row row = a_row("t-6");
    row.revision = 2;
    must(update_row(w, row), "t-6");
    row = a_row("t-3");
    row.revision = 2;
    row.asked = SLICE(",board,finance,");
    must(update_row(w, row), "t-3");
    struct row_page page = listed(w, &q);
    has(&page, (const char *const[]){"t-8", "t-4"}, 2, true);
    const struct list_query next = {.asked = true, .limit = 2, .before_seq = page.next_seq};
    page = listed(w, &next);
    has(&page, (const char *const[]){"t-3", "t-2"}, 2, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(what_is_asked_is_listed_in_pages),
        ON_ALL(what_is_decided_is_not_listed),
    };
    return cmocka_run_group_tests_name("store-asked", tests, NULL, NULL);
}
