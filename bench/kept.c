/*
 * The cost of keeping ended tasks: the times of a node's regular work with FINISHED of them stored.
 * Usage: kept FINISHED [CONNINFO]; without CONNINFO in SQLite, in a folder below the current one.
 * The data stays for inspection: a schema "kept_FINISHED", or a folder. With KEPT in the
 * environment the existing data is measured again.
 */

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "postgres/many.h"
#include "store/postgres/postgres.h"
#include "store/sqlite/sqlite.h"

enum { TIMES = 101, SHRINK_MOST = 2000000 };

static struct store *store;
static struct error error;

static int64_t now_us(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void must(enum err err)
{
    if (err == ERR_OK)
        return;
    fprintf(stderr, "kept: %s\n", error.text);
    exit(1);
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void measure(const char *what, void (*run)(struct arena *a, int i))
{
    int64_t took[TIMES];

    for (int i = 0; i < TIMES; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        int64_t from = now_us();
        run(&a, i);
        took[i] = now_us() - from;
    }
    qsort(took, TIMES, sizeof took[0], by_size);
    printf("%-28s %8" PRId64 " us, at most %8" PRId64 " us\n", what, took[TIMES / 2],
           took[TIMES - 1]);
}

static int64_t finished;

static void get(struct arena *a, int i)
{
    char id[40];
    struct task_row row;

    (void)snprintf(id, sizeof id, "done-%" PRId64,
                   41 + finished / 10 + finished / 10 * 8 / TIMES * i);
    must(store->ops->get(store, slice_of(id), a, &row, &error));
}

static void claim_one(struct arena *a, int i)
{
    struct claim c = {.kind = CLAIM_AGENT,
                      .agent = SLICE("agent-1"),
                      .locked_by = SLICE("n1/1"),
                      .limit = 1};
    struct batch b = {.claims = &c, .claim_count = 1};

    (void)i;
    must(store->ops->commit(store, &b, a, &error));
    if (c.row_count != 1)
        exit(1);
}

static void scan(struct arena *a, int i)
{
    struct row_page page;

    (void)i;
    must(store->ops->overdue(store, 1000, 0, 0, 100, a, &page, &error));
}

static void list(struct arena *a, struct list_query q)
{
    struct row_page page;

    q.limit = 50;
    must(store->ops->list(store, &q, a, &page, &error));
}

static void list_newest(struct arena *a, int i)
{
    (void)i;
    list(a, (struct list_query){0});
}

static void list_middle(struct arena *a, int i)
{
    list(a, (struct list_query){.before_seq = finished / TIMES * (i + 1) + 50});
}

static void list_state(struct arena *a, int i)
{
    (void)i;
    list(a, (struct list_query){.states = 1U << TASK_ERROR});
}

static void list_workflow(struct arena *a, int i)
{
    (void)i;
    list(a, (struct list_query){.workflow = SLICE("order-3")});
}

static void list_tag(struct arena *a, int i)
{
    struct tag tag = {SLICE("customer"), SLICE("c-7")};

    (void)i;
    list(a, (struct list_query){.tags = &tag, .tag_count = 1});
}

static void census(struct arena *a, int i)
{
    struct census c;

    (void)i;
    must(store->ops->counts->census(store, 1000, 1000, a, &c, &error));
}

static int64_t retired_to;
static uint64_t retired;

static void retire(struct arena *a, int i)
{
    const struct retire_rule rule = {.states = 1U << TASK_PROCESSED,
                                     .ended_before = INT64_C(1) << 40};
    struct retire_look l = {.rules = &rule,
                            .rule_count = 1,
                            .scan_max = (size_t)(finished / 10 / TIMES + 1),
                            .after_seq = retired_to};

    (void)i;
    if (l.scan_max > 500)
        l.scan_max = 500;
    must(store->ops->retention->look(store, &l, a, &error));
    struct retire r = {.tasks = l.found,
                       .task_count = l.found_count,
                       .reserve_until = INT64_C(1) << 50,
                       .gone = arena_alloc(a, l.found_count + 1)};
    must(store->ops->retention->retire(store, &r, &error));
    retired_to = l.after_seq;
    for (size_t k = 0; k < r.dealt_with; k++)
        retired += r.gone[k];
}

static int64_t inserted;

/* Ten new tasks in one batch. */
static void submit_ten(struct arena *a, int i)
{
    struct change *c = arena_alloc(a, 10 * sizeof *c);
    struct batch b = {.changes = c, .change_count = 10};

    (void)i;
    for (int k = 0; k < 10; k++) {
        CLEANUP(buf_fini) struct buf id = {0};
        buf_fmt(&id, "new-%d-%" PRId64, (int)getpid(), inserted++); /* unique in kept data too */
        c[k] = (struct change){.kind = CHANGE_INSERT,
                               .row = {.id = arena_copy(a, buf_view(&id)),
                                       .workflow = SLICE("order-1"),
                                       .version = 1,
                                       .revision = 1,
                                       .submitted_at = finished + 1000 + inserted,
                                       .direction = DIRECTION_FORWARD,
                                       .state = TASK_PENDING,
                                       .priority = 5,
                                       .rank = INT64_C(1) << 40,
                                       .waiting_for = SLICE("agent-2"),
                                       .doc = SLICE("{\"steps\":[]}")}};
    }
    must(store->ops->commit(store, &b, a, &error));
}

static int64_t size_of_file(void)
{
    char path[80];
    struct stat st = {0};

    (void)snprintf(path, sizeof path, "kept_%" PRId64 "/intact.db", finished);
    return stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

/* Deletes all remaining tasks and shrinks the file as far as possible. */
static void delete_and_shrink(void)
{
    int64_t began = now_us();
    int64_t before = size_of_file();
    struct shrink k = {.budget_us = 2000, .more = true};
    int64_t longest = 0;
    int64_t parts = 0;

    for (uint64_t was = UINT64_MAX; was != retired;) {
        CLEANUP(arena_fini) struct arena a = {0};
        was = retired;
        retire(&a, 0);
        (void)sqlite_store_maintain(store, false);
    }
    printf("deleted all %" PRIu64 " in %" PRId64 " ms\n", retired, (now_us() - began) / 1000);
    began = now_us();
    for (; k.more; parts++) {
        int64_t from = now_us();
        must(store->ops->shrink(store, &k, &error));
        longest = max_i64(longest, now_us() - from);
        (void)sqlite_store_maintain(store, false);
    }
    while (sqlite_store_maintain(store, true))
        ;
    printf("file: %" PRId64 " MB, then %" PRId64 " MB; %" PRId64 " parts, the longest %" PRId64
           " us, %" PRId64 " ms in all\n",
           before / 1000000, size_of_file() / 1000000, parts, longest, (now_us() - began) / 1000);
}

static void make_sqlite(const char *dir)
{
    static const char sql[] =
        "BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %lld) "
        "INSERT INTO task (id, workflow, version, submitted_at, tags, revision, state, direction, "
        "priority, waiting_for, wake_at, locked_by, rank, failure_count, started_at, ended_at, "
        "doc) "
        "SELECT CASE WHEN i > %lld THEN 'waiting-' || i ELSE 'done-' || i END, 'order-' || (i %% "
        "10), "
        "1, i, CASE WHEN i > %lld THEN NULL ELSE '{\"customer\":\"c-' || (i %% 1000) || '\"}' END, "
        "9, "
        "CASE WHEN i > %lld THEN 'pending' WHEN i < 21 THEN 'error' ELSE 'processed' END, "
        "'forward', "
        "5, CASE WHEN i > %lld THEN 'agent-1' END, NULL, NULL, i, 0, i, i, "
        "'{\"steps\":[' || printf('%%.*c', 900, ' ') || ']}' FROM n; "
        "INSERT INTO tag SELECT 'customer', 'c-' || (submitted_at %% 1000), seq FROM task "
        "WHERE tags IS NOT NULL ORDER BY 1, 2, 3; "
        "INSERT INTO payload (key, json) SELECT seq * 1048576 + 1, '\"' || printf('%%.*c', 3000, "
        "'y') "
        "|| '\"' FROM task WHERE seq %% 10 = 0; COMMIT; PRAGMA wal_checkpoint(TRUNCATE)";
    char path[200];
    char text[2000];
    char *why = NULL;
    sqlite3 *db = NULL;
    long long n = (long long)finished;

    (void)snprintf(path, sizeof path, "%s/intact.db", dir);
    (void)snprintf(text, sizeof text, sql, n + 300, n, n, n, n);
    if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_exec(db, text, NULL, NULL, &why)) {
        fprintf(stderr, "kept: %s\n", why ? why : sqlite3_errmsg(db));
        exit(1);
    }
    (void)sqlite3_close(db);
}

static void open_sqlite(void)
{
    char dir[60];

    (void)snprintf(dir, sizeof dir, "kept_%" PRId64, finished);
    if (getenv("KEPT") == NULL) {
        (void)mkdir(dir, 0700);
        must(sqlite_store_open(dir, &store, &error));
        store->ops->close(store);
        make_sqlite(dir);
    }
    must(sqlite_store_open(dir, &store, &error));
}

static void open_postgres(const char *conninfo)
{
    char schema[60];

    (void)snprintf(schema, sizeof schema, "kept_%" PRId64, finished);
    const struct postgres_options o = {.conninfo = conninfo, .schema = schema, .node = "n1"};
    must(postgres_store_open(&o, &store, &error));
    if (getenv("KEPT") == NULL)
        many_make(conninfo, schema, finished, 1);
}

int main(int argc, char **argv)
{
    finished = argc > 1 ? strtoll(argv[1], NULL, 10) : 0;
    if (finished < TIMES || argc > 3) {
        fprintf(stderr, "usage: bench-kept FINISHED [CONNINFO]; FINISHED from %d\n", TIMES);
        return 2;
    }
    int64_t from = now_us();
    if (argc > 2)
        open_postgres(argv[2]);
    else
        open_sqlite();
    printf("%" PRId64 " finished tasks, made in %" PRId64 " s\n", finished,
           (now_us() - from) / 1000000);
    measure("get", get);
    measure("claim of one", claim_one);
    measure("scan for what is overdue", scan);
    measure("listing: the newest", list_newest);
    measure("listing: further down", list_middle);
    measure("listing: a state", list_state);
    measure("listing: a workflow", list_workflow);
    measure("listing: a tag", list_tag);
    measure("census", census);
    measure("submission of ten", submit_ten);
    int64_t began = now_us();
    measure("deleting, a part", retire);
    printf("deleted %" PRIu64 " in %" PRId64 " ms\n", retired, (now_us() - began) / 1000);
    if (store->ops->shrink && finished <= SHRINK_MOST)
        delete_and_shrink();
    store->ops->close(store);
    return 0;
}
