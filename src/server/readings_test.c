/* The lines of readings: whose turn it is, who leaves, and who is asked instead. */

#include "server/readings.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "store/sqlite.h"

enum { PATIENCE_MS = 180000 };

static atomic_bool holds, is_held;
static uv_loop_t loop;
static struct store *store;
static struct readings *readings;
static char dir[] = "/tmp/intact-readings-XXXXXX";

/* Readings that say in which order they ran. */
struct entry {
    struct store_job job;
    atomic_uint place; /* 0: it did not run */
    bool done;
};

static atomic_uint ran;

static void enters(struct store_job *j, struct store *s)
{
    (void)s;
    atomic_store(&CONTAINER_OF(j, struct entry, job)->place, atomic_fetch_add(&ran, 1) + 1);
}

static void holds_up(struct store_job *j, struct store *s)
{
    while (atomic_load(&holds)) {
        atomic_store(&is_held, true);
        uv_sleep(1);
    }
    enters(j, s);
}

static void is_done(struct store_job *j)
{
    CONTAINER_OF(j, struct entry, job)->done = true;
}

static atomic_uint asked_instead;

static void instead(struct store_queue *q, struct store_job *j)
{
    (void)q;
    (void)j;
    (void)atomic_fetch_add(&asked_instead, 1);
}

static struct store_queue other = {instead};

static int begin(void **state)
{
    const struct readings_config c = {NULL, &other, 3};
    struct readings_config with = c;
    struct error e = {0};
    (void)state;

    CHECK(mkdtemp(dir), "no folder");
    CHECK(sqlite_store_open(dir, &store, &e) == ERR_OK, "%s", e.text);
    with.store = store;
    CHECK(uv_loop_init(&loop) == 0 && readings_start(&loop, &with, &readings) == 0, "no thread");
    return 0;
}

static int end(void **state)
{
    char command[80];
    (void)state;

    readings_stop(readings);
    while (uv_run(&loop, UV_RUN_DEFAULT) != 0)
        ;
    CHECK(uv_loop_close(&loop) == 0, "something is open");
    store->ops->close(store);
    (void)snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}

static void add(struct entry *x, const char *token, enum reading_kind kind,
                void (*run)(struct store_job *j, struct store *s))
{
    *x = (struct entry){.job = {.run = run, .done = is_done}};
    readings_add(readings, slice_of(token), kind, &x->job);
}

static void wait_for(const struct entry *x)
{
    for (int i = 0; !x->done; i++) {
        CHECK(i < PATIENCE_MS, "it never comes back");
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        uv_sleep(1);
    }
}

/* One that is at work until it is let go. */
static void hold(struct entry *x)
{
    atomic_store(&holds, true);
    atomic_store(&is_held, false);
    atomic_store(&ran, 0);
    add(x, "first", READING_MANY, holds_up);
    for (int i = 0; !atomic_load(&is_held); i++) {
        CHECK(i < PATIENCE_MS, "it never begins");
        uv_sleep(1);
    }
}

static void lines_take_turns(void **state)
{
    struct entry held, a[3], b, one;
    (void)state;

    hold(&held);
    for (size_t i = 0; i < COUNT_OF(a); i++)
        add(&a[i], "a", READING_MANY, enters);
    add(&b, "b", READING_MANY, enters);
    add(&one, "a", READING_ONE, enters);
    atomic_store(&holds, false);
    wait_for(&a[2]);
    CHECK(held.place == 1 && a[0].place == 2 && b.place == 3 && one.place == 4, "%u %u %u %u",
          held.place, a[0].place, b.place, one.place);
    CHECK(a[1].place == 5 && a[2].place == 6, "%u %u", a[1].place, a[2].place);
}

static void who_leaves_is_not_read_for(void **state)
{
    struct entry held, gone, next;
    struct readings_stats st;
    (void)state;

    hold(&held);
    add(&gone, "a", READING_MANY, enters);
    add(&next, "a", READING_MANY, enters);
    readings_drop(readings, &gone.job);
    readings_drop(readings, &gone.job); /* once is enough */
    readings_drop(readings, &held.job); /* it has begun */
    readings_stats(readings, &st);
    CHECK(st.waiting == 1, "%zu wait", st.waiting);
    wait_for(&gone); /* whatever else is at work */
    CHECK(!held.done, "the one at work was cut short");
    atomic_store(&holds, false);
    wait_for(&next);
    CHECK(gone.place == 0 && next.place == 2, "%u %u", gone.place, next.place);
}

static void a_line_is_bounded(void **state)
{
    struct entry held, a[3];
    (void)state;

    hold(&held);
    for (size_t i = 0; i < COUNT_OF(a); i++) {
        CHECK(readings_have_room(readings, SLICE("a"), READING_MANY), "no room for %zu", i);
        add(&a[i], "a", READING_MANY, enters);
    }
    CHECK(!readings_have_room(readings, SLICE("a"), READING_MANY), "it is full");
    CHECK(readings_have_room(readings, SLICE("a"), READING_ONE), "the other one is not");
    CHECK(readings_have_room(readings, SLICE("b"), READING_MANY), "nor that of another");
    atomic_store(&holds, false);
    wait_for(&a[2]);
    CHECK(readings_have_room(readings, SLICE("a"), READING_MANY), "it is empty again");
}

/* A store whose file is gone can only tell that itself. */
static void trouble_is_the_stores(void **state)
{
    struct entry x;
    struct arena a = {0};
    struct task_row row;
    struct error e = {0};
    char wal[80];
    (void)state;

    (void)snprintf(wal, sizeof wal, "%s/intact.db-wal", dir);
    CHECK(unlink(wal) == 0, "there is no WAL");
    CHECK(store->ops->probe(store, &e) != ERR_OK, "it has its WAL no more");
    add(&x, "a", READING_ONE, enters);
    for (int i = 0; atomic_load(&asked_instead) == 0; i++) {
        CHECK(i < PATIENCE_MS, "nobody is asked instead");
        uv_sleep(1);
    }
    CHECK(x.place == 0, "it was read all the same");
    (void)store->ops->get(store, SLICE("none"), &a, &row, &e); /* opens it again */
    add(&x, "a", READING_ONE, enters);
    wait_for(&x);
    CHECK(atomic_load(&asked_instead) == 1, "asked %u times", atomic_load(&asked_instead));
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_take_turns),
        cmocka_unit_test(who_leaves_is_not_read_for),
        cmocka_unit_test(a_line_is_bounded),
        cmocka_unit_test(trouble_is_the_stores),
    };
    return cmocka_run_group_tests_name("readings", tests, begin, end);
}
