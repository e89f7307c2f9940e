/* Tests of offload.c: jobs that run on a thread beside the loop; whose turn it is, who has room,
 * and what is dropped when a client leaves. */

#include "node/offload.h"

#include <stdatomic.h>
#include <sys/resource.h>

#include "base/test.h"

enum { COUNT_MAX = 16, BYTES_MAX = 1600 };

static uv_loop_t loop;
static struct offload *o;
static atomic_bool holds;
static atomic_uint ran;

static atomic_int nice_there;

struct entry {
    struct offload_job job;
    unsigned place; /* 0: it did not run */
    bool done;
};

static void enters(struct offload_job *j)
{
    CONTAINER_OF(j, struct entry, job)->place = atomic_fetch_add(&ran, 1) + 1;
}

static void looks_at_its_thread(struct offload_job *j)
{
    atomic_store(&nice_there, getpriority(PRIO_PROCESS, 0));
    enters(j);
}

static void holds_up(struct offload_job *j)
{
    while (atomic_load(&holds))
        uv_sleep(1);
    enters(j);
}

static void is_done(struct offload_job *j)
{
    CONTAINER_OF(j, struct entry, job)->done = true;
}

static int begin(void **state)
{
    (void)state;
    CHECK(uv_loop_init(&loop) == 0, "no loop");
    o = offload_new(&loop, COUNT_MAX, BYTES_MAX);
    atomic_store(&ran, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    offload_free(o);
    return uv_loop_close(&loop);
}

static void add(struct entry *x, const char *token, enum offload_rank rank, size_t bytes)
{
    *x = (struct entry){.job = {.run = enters, .done = is_done, .bytes = bytes}};
    offload_add(o, slice_of(token), rank, &x->job);
}

/* One that is at work until it is let go. */
static void hold(struct entry *x)
{
    atomic_store(&holds, true);
    *x = (struct entry){.job = {.run = holds_up, .done = is_done}};
    offload_add(o, SLICE("held"), OFFLOAD_SOON, &x->job);
}

static void go_on(void)
{
    atomic_store(&holds, false);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
}

static void tokens_take_turns(void **state)
{
    struct entry held, a[3], b, late;
    (void)state;

    hold(&held);
    add(&late, "b", OFFLOAD_LATER, 1);
    for (size_t i = 0; i < COUNT_OF(a); i++)
        add(&a[i], "a", OFFLOAD_SOON, 1);
    add(&b, "b", OFFLOAD_SOON, 1);
    go_on();
    CHECK(held.place == 1 && a[0].place == 2 && b.place == 3, "%u %u %u", held.place, a[0].place,
          b.place);
    CHECK(a[1].place == 4 && a[2].place == 5, "%u %u", a[1].place, a[2].place);
    CHECK(late.place == 6 && late.done, "what may wait has not: %u", late.place);
}

static bool room(const char *token, enum offload_rank rank, size_t bytes)
{
    return offload_has_room(o, slice_of(token), rank, bytes);
}

static void no_token_fills_it(void **state)
{
    struct entry held, a[COUNT_MAX / 4], b;
    struct offload_stats st;
    (void)state;

    hold(&held);
    for (size_t i = 0; i < COUNT_OF(a); i++) {
        CHECK(room("a", OFFLOAD_SOON, 100), "no room for %zu", i);
        add(&a[i], "a", OFFLOAD_SOON, 100);
    }
    CHECK(!room("a", OFFLOAD_SOON, 0), "it has a quarter of all places");
    CHECK(room("b", OFFLOAD_SOON, 1200), "another one has none");
    add(&b, "b", OFFLOAD_SOON, 400);
    CHECK(!room("b", OFFLOAD_SOON, 1), "it has a quarter of all bytes");
    CHECK(room("c", OFFLOAD_SOON, 800) && !room("c", OFFLOAD_SOON, 801), "all have so many bytes");
    offload_stats(o, &st);
    CHECK(st.waiting == 6 && st.bytes == 800 && st.refused == 3, "%zu, %zu, %" PRIu64, st.waiting,
          st.bytes, st.refused);
    go_on();
    CHECK(room("a", OFFLOAD_SOON, 5000), "one alone has no room");
}

static void what_may_wait_has_half_of_it(void **state)
{
    struct entry held, x[COUNT_MAX / 2];
    char token[2] = "a";
    (void)state;

    hold(&held);
    for (size_t i = 0; i < COUNT_OF(x); i++, token[0]++) {
        CHECK(room(token, OFFLOAD_LATER, 100), "no room for %zu", i);
        add(&x[i], token, OFFLOAD_LATER, 100);
    }
    CHECK(!room("z", OFFLOAD_LATER, 0), "it has half of all places");
    CHECK(room("z", OFFLOAD_SOON, 800), "the others have not the other half");
    go_on();
}

static void what_is_dropped_is_not_done(void **state)
{
    struct entry held, a, b;
    (void)state;

    hold(&held);
    add(&a, "a", OFFLOAD_SOON, 1);
    add(&b, "a", OFFLOAD_SOON, 1);
    CHECK(!offload_drop(&held.job), "it has begun");
    CHECK(offload_drop(&a.job), "it has not begun");
    CHECK(!offload_drop(&a.job), "once is enough");
    go_on();
    CHECK(held.done && b.done && b.place == 2 && !a.done && a.place == 0, "%u %u", a.place,
          b.place);
}

/* What is done beside the loop gives way to the loop where processors are short. */
/* A token may use 4 of 16 jobs and 400 of 1600 bytes. */
static void places_are_of_the_share(void **state)
{
    struct offload_place p[5] = {0};
    struct entry x = {0};
    (void)state;

    for (int i = 0; i < 4; i++)
        CHECK(offload_place_take(o, SLICE("a"), OFFLOAD_SOON, 90, &p[i]), "place %d", i);
    CHECK(!offload_place_take(o, SLICE("a"), OFFLOAD_SOON, 1, &p[4]), "a fifth place");
    CHECK(!offload_has_room(o, SLICE("a"), OFFLOAD_SOON, 1), "a job beside four places");
    CHECK(offload_place_take(o, SLICE("a"), OFFLOAD_LATER, 400, &p[4]), "the other rank");
    offload_place_leave(&p[4]);
    CHECK(offload_has_room(o, SLICE("b"), OFFLOAD_SOON, 400), "another token");
    offload_place_leave(&p[0]);
    CHECK(!offload_has_room(o, SLICE("a"), OFFLOAD_SOON, 200), "more bytes than are left");
    CHECK(offload_has_room(o, SLICE("a"), OFFLOAD_SOON, 90), "what left its place");
    add(&x, "a", OFFLOAD_SOON, 90);
    for (int i = 0; i < 5; i++)
        offload_place_leave(&p[i]); /* twice is harmless */
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(x.done, "the job is lost");
    CHECK(offload_place_take(o, SLICE("a"), OFFLOAD_SOON, BYTES_MAX, &p[0]), "a large one alone");
    offload_place_leave(&p[0]);
}

static void its_thread_gives_way(void **state)
{
    struct entry x = {.job = {.run = looks_at_its_thread, .done = is_done}};
    int nice_here = getpriority(PRIO_PROCESS, 0);
    (void)state;

    offload_add(o, SLICE("a"), OFFLOAD_SOON, &x.job);
    while (!x.done)
        (void)uv_run(&loop, UV_RUN_ONCE);
    CHECK(nice_there > nice_here || nice_here == 19, "%d there, %d here", nice_there, nice_here);
    CHECK(getpriority(PRIO_PROCESS, 0) == nice_here, "we are another thread");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tokens_take_turns, begin, end),
        cmocka_unit_test_setup_teardown(no_token_fills_it, begin, end),
        cmocka_unit_test_setup_teardown(what_may_wait_has_half_of_it, begin, end),
        cmocka_unit_test_setup_teardown(what_is_dropped_is_not_done, begin, end),
        cmocka_unit_test_setup_teardown(places_are_of_the_share, begin, end),
        cmocka_unit_test_setup_teardown(its_thread_gives_way, begin, end),
    };
    return cmocka_run_group_tests_name("offload", tests, NULL, NULL);
}
