/* The lines of changes: how many the store has at a time, whose turn it is, and the rest behind a
 * long one. */

#include "node/changes.h"

#include <stdlib.h>

#include "base/test.h"

static uv_loop_t loop;
static struct changes *changes;
static bool alone;

/* A store that says what it was handed, and does it when it is told to. */
static struct store_job *handed[8];
static size_t handed_count;

static void submit(struct store_queue *q, struct store_job *j)
{
    (void)q;
    CHECK(handed_count < COUNT_OF(handed), "too many");
    handed[handed_count++] = j;
}

static struct store_queue store = {submit};

static void do_one(int64_t took_us)
{
    CHECK(handed_count == 1, "the store has %zu", handed_count);
    struct store_job *j = handed[0];
    handed_count = 0;
    j->run(j, NULL);
    j->took_us = took_us;
    j->done(j);
}

struct entry {
    struct store_job job;
    unsigned place; /* 0: it did not run */
    bool done;
};

static unsigned ran;

static void enters(struct store_job *j, struct store *s)
{
    (void)s;
    CONTAINER_OF(j, struct entry, job)->place = ++ran;
}

static void is_done(struct store_job *j)
{
    CONTAINER_OF(j, struct entry, job)->done = true;
}

static void add(struct entry *x, struct slice token)
{
    *x = (struct entry){.job = {.run = enters, .done = is_done}};
    changes_add(changes, token, NULL, &x->job);
}

static bool is_alone(void *arg, void *account)
{
    (void)arg;
    (void)account;
    return alone;
}

static int begin(void **state)
{
    const struct changes_config c = {.store = &store, .is_alone = is_alone};
    (void)state;

    alone = false;
    ran = 0;
    handed_count = 0;
    CHECK(uv_loop_init(&loop) == 0, "no loop");
    changes = changes_new(&loop, &c);
    return 0;
}

static int end(void **state)
{
    (void)state;
    changes_close(changes);
    while (uv_run(&loop, UV_RUN_DEFAULT) != 0)
        ;
    CHECK(uv_loop_close(&loop) == 0, "something is open");
    changes_free(changes);
    return 0;
}

static void the_store_has_one_at_a_time(void **state)
{
    struct entry x[3];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(x); i++)
        add(&x[i], SLICE("a"));
    for (size_t i = 0; i < COUNT_OF(x); i++) {
        CHECK(handed_count == 1, "the store has %zu", handed_count);
        CHECK(changes_waiting(changes) == COUNT_OF(x) - i, "%zu", changes_waiting(changes));
        do_one(0);
        CHECK(x[i].done && x[i].place == i + 1, "in their order");
    }
    CHECK(handed_count == 0 && changes_waiting(changes) == 0, "no more");
}

static void tokens_take_turns(void **state)
{
    struct entry a[3], b, none;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(a); i++)
        add(&a[i], SLICE("a"));
    add(&b, SLICE("b"));
    add(&none, SLICE_NONE);
    for (int i = 0; i < 5; i++)
        do_one(0);
    CHECK(a[0].place == 1 && b.place < a[2].place && none.place < a[2].place, "b %u, none %u, a %u",
          b.place, none.place, a[2].place);
}

static void a_long_one_is_followed_by_a_rest(void **state)
{
    struct entry x[3];
    (void)state;

    for (size_t i = 0; i < COUNT_OF(x); i++)
        add(&x[i], SLICE("a"));
    do_one(5000);
    CHECK(x[0].done && handed_count == 0, "others come first now");
    while (handed_count == 0)
        (void)uv_run(&loop, UV_RUN_ONCE); /* it ends by itself */
    alone = true;
    do_one(5000);
    CHECK(handed_count == 1, "nobody is there to come first");
    do_one(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_store_has_one_at_a_time, begin, end),
        cmocka_unit_test_setup_teardown(tokens_take_turns, begin, end),
        cmocka_unit_test_setup_teardown(a_long_one_is_followed_by_a_rest, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
