/* A node's regular work, by the number of ended tasks in the store: the counts should not depend on
 * that number. */

#include <stdio.h>

#include "instructions/workload.h"
#include "store/sqlite/sqlite.h"

enum { BATCH = 1000, TIMES = 100, CLAIMED = 10, WAITING = 2 * TIMES * CLAIMED, WARM = 3 };

#define DONE_AT INT64_C(1700000000000)
#define NOW     INT64_C(1800000000000)

static struct store *store;
static long next_id;

static void open_store(void)
{
    struct error e = {0};

    must(sqlite_store_open(".", &store, &e), &e);
}

static void maintain(void)
{
    (void)sqlite_store_maintain(store, false);
}

/* A document of 900 bytes: the size of three completed steps. */
static struct slice document(void)
{
    static char text[1000];

    (void)snprintf(text, sizeof text,
                   "{\"input\":%s,\"content\":\"1234567890abcdef\",\"steps\":[{\"name\":\"first\","
                   "\"state\":\"completed\",\"attempt\":1,\"output\":%s}]}",
                   payload_in, payload_out);
    return slice_of(text);
}

static struct task_row finished(const char *id, long n)
{
    return (struct task_row){.id = slice_of(id),
                             .workflow = SLICE("order"),
                             .version = 1,
                             .revision = 1,
                             .priority = 5,
                             .state = TASK_PROCESSED,
                             .rank = n,
                             .submitted_at = DONE_AT + n,
                             .started_at = DONE_AT + n + 1,
                             .ended_at = DONE_AT + n + 2,
                             .tags = SLICE("{\"customer\":\"c-17\"}"),
                             .doc = document()};
}

static struct task_row waiting(const char *id, long n)
{
    return (struct task_row){.id = slice_of(id),
                             .workflow = SLICE("order"),
                             .version = 1,
                             .revision = 1,
                             .priority = 5,
                             .rank = n,
                             .waiting_for = SLICE("payment"),
                             .submitted_at = NOW + n,
                             .wake_at = NOW + n + 1000000000,
                             .doc = document()};
}

static void commit(struct batch *b)
{
    struct arena a = {0};
    struct error e = {0};

    must(store->ops->commit(store, b, &a, &e), &e);
    for (size_t i = 0; i < b->change_count; i++)
        must_be(b->changes[i].outcome == ERR_OK, "each change is stored");
    arena_fini(&a);
    maintain();
}

static void insert(long count, struct task_row (*row)(const char *id, long n))
{
    static struct change changes[BATCH];
    static char ids[BATCH][32];

    must_be(count <= BATCH, "so many in one batch");
    for (long i = 0; i < count; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "order-%09ld", next_id);
        changes[i] = (struct change){.kind = CHANGE_INSERT, .row = row(ids[i], next_id)};
        next_id++;
    }
    commit(&(struct batch){.changes = changes, .change_count = (size_t)count});
}

static void make(const struct workload *w)
{
    open_store();
    for (long left = w->arg; left > 0; left -= BATCH)
        insert(left < BATCH ? left : BATCH, finished);
    for (long left = WAITING; left > 0; left -= BATCH)
        insert(left < BATCH ? left : BATCH, waiting);
    while (sqlite_store_maintain(store, true))
        ;
    store->ops->close(store);
}

static void claim(void)
{
    struct claim c = {.kind = CLAIM_AGENT,
                      .agent = SLICE("payment"),
                      .locked_by = SLICE("n1/1"),
                      .now = NOW,
                      .limit = CLAIMED};
    struct batch b = {.claims = &c, .claim_count = 1};

    commit(&b);
    must_be(c.row_count == CLAIMED, "so many can be claimed");
}

static void scan(void)
{
    struct row_page page = {0};
    struct arena a = {0};
    struct error e = {0};

    must(store->ops->overdue(store, NOW, 0, 0, 256, &a, &page, &e), &e);
    arena_fini(&a);
}

static void submit(void)
{
    insert(CLAIMED, waiting);
}

static void read_one(void)
{
    static long n;
    struct arena a = {0};
    struct error e = {0};
    struct task_row row;
    char id[32];

    n = (n * 7919 + 13) % 1000;
    (void)snprintf(id, sizeof id, "order-%09ld", n);
    must(store->ops->get(store, slice_of(id), &a, &row, &e), &e);
    arena_fini(&a);
}

static void list_newest(void)
{
    /* The budget never ends the page early, because a shorter page is less work. */
    const struct list_query q = {.limit = 50, .budget_us = INT64_C(1000000000)};
    struct row_page page;
    struct arena a = {0};
    struct error e = {0};

    must(store->ops->list(store, &q, &a, &page, &e), &e);
    must_be(page.count == 50, "so many are listed");
    arena_fini(&a);
}

static void count(const struct workload *w, const char *what, void (*one)(void), long times)
{
    for (int i = 0; i < WARM; i++)
        one();
    count_begin();
    for (long i = 0; i < times; i++)
        one();
    count_end(w, what, times);
}

static void run(const struct workload *w, long rounds)
{
    next_id = w->arg + WAITING;
    open_store();
    must_be(rounds <= TIMES, "there are as many tasks to be claimed");
    count(w, "claim", claim, rounds);
    count(w, "scan", scan, rounds);
    count(w, "submit", submit, rounds);
    count(w, "get", read_one, rounds);
    count(w, "list", list_newest, rounds);
    store->ops->close(store);
}

const struct workload workloads_kept[] = {
    {"kept-1000", "10 claimed, a scan, ... where 1 000 tasks are kept", TIMES, run, make, 1000,
     NULL},
    {"kept-100000", "the same where 100 000 are", TIMES, run, make, 100000, NULL},
    {0},
};
