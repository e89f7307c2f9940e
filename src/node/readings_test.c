/* Tests of readings.c: the lines of readings on the reading thread; whose turn it is, bounds of
 * time and memory, clients that leave, and who answers instead. */

#include "node/readings.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test.h"
#include "store/sqlite/sqlite.h"

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

/* How often somebody's time was counted, and who is told to rest. */
static unsigned parts;
static void *resting;

static uint64_t rests_until(void *arg, void *account, uint64_t now_ns)
{
    (void)arg;
    return account == resting ? now_ns + 1000000 : 0;
}

static void worked(void *arg, void *account, uint64_t now_ns, uint64_t took_ns)
{
    (void)arg;
    (void)account;
    (void)now_ns;
    (void)took_ns;
    parts++;
}

static int begin(void **state)
{
    const struct readings_config c = {.instead = &other,
                                      .line_max = 3,
                                      .rests_until = rests_until,
                                      .worked = worked};
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

static void takes_long(struct store_job *j)
{
    uint64_t end = uv_hrtime() + 2000000;

    while (uv_hrtime() < end)
        ;
    is_done(j);
}

static unsigned count_done(const struct entry *x, size_t count)
{
    unsigned done = 0;

    for (size_t i = 0; i < count; i++)
        done += x[i].done;
    return done;
}

static void wait_until_ran(unsigned count)
{
    for (int i = 0; atomic_load(&ran) < count; i++) {
        CHECK(i < PATIENCE_MS, "only %u ran", atomic_load(&ran));
        uv_sleep(1);
    }
}

/* However much was read: what takes more than a slice is one to a round. */
static void a_round_has_its_slice(void **state)
{
    struct entry held, x[3];
    (void)state;

    hold(&held);
    parts = 0;
    for (size_t i = 0; i < COUNT_OF(x); i++) {
        add(&x[i], "a", READING_ONE, enters);
        x[i].job.done = takes_long;
        x[i].job.account = x;
    }
    atomic_store(&holds, false);
    wait_until_ran(4);
    for (unsigned before = 0; before < 3; before = count_done(x, 3)) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        CHECK(count_done(x, 3) <= before + 1, "%u in one round", count_done(x, 3) - before);
    }
    CHECK(parts == 3, "it was charged %u times", parts);
}

static void who_rests_is_handed_back_later(void **state)
{
    struct entry held, a, b;
    (void)state;

    hold(&held);
    add(&a, "a", READING_ONE, enters);
    add(&b, "b", READING_ONE, enters);
    a.job.account = resting = &a;
    b.job.account = &b;
    atomic_store(&holds, false);
    wait_for(&b);
    CHECK(!a.done, "it rests");
    resting = NULL;
    wait_for(&a);
}

static void takes_memory(struct store_job *j, struct store *s)
{
    j->bytes = READINGS_HELD_MAX / 2 + 1;
    enters(j, s);
}

/* While the loop is busy, no more is read than may be held. */
static void what_is_read_is_bounded(void **state)
{
    struct entry held, x[6];
    struct readings_stats st;
    char token[2] = "a";
    (void)state;

    hold(&held);
    for (size_t i = 0; i < COUNT_OF(x); i++, token[0]++)
        add(&x[i], token, READING_ONE, takes_memory);
    atomic_store(&holds, false);
    wait_until_ran(3);
    uv_sleep(50); /* it may go wrong now */
    CHECK(atomic_load(&ran) == 3, "%u were read", atomic_load(&ran) - 1);
    readings_stats(readings, &st);
    CHECK(st.held == 2 * (size_t)(READINGS_HELD_MAX / 2 + 1), "%zu held", st.held);
    wait_for(&x[5]);
    readings_stats(readings, &st);
    CHECK(st.held == 0, "%zu held", st.held);
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
        cmocka_unit_test(a_round_has_its_slice),
        cmocka_unit_test(who_rests_is_handed_back_later),
        cmocka_unit_test(what_is_read_is_bounded),
        cmocka_unit_test(trouble_is_the_stores),
    };
    return cmocka_run_group_tests_name("readings", tests, begin, end);
}
