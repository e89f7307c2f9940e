/* Tests of store_time.c: the clock of the database as a node estimates it from samples never goes
 * backwards, and stays within what was measured, also while several threads read it. */

#include "base/test.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/prng.h"
#include "store/store_time.h"

static void the_first_sample_is_believed_in_its_middle(void **state)
{
    struct store_time t;
    (void)state;

    store_time_init(&t, 500);
    CHECK(store_time_at(&t, 1000) == 1500, "until then what it was made with");
    CHECK(store_time_sample(&t, 1000, 1040, 90000) == 0, "nothing was known");
    CHECK(store_time_at(&t, 1020) == 90000, "%" PRId64, store_time_at(&t, 1020));
    CHECK(store_time_at(&t, 2020) == 91000, "it goes on by itself");
    store_time_fini(&t);
}

static void what_may_be_right_stays(void **state)
{
    struct store_time t;
    (void)state;

    store_time_init(&t, 0);
    (void)store_time_sample(&t, 0, 2, 1000);
    int64_t was = store_time_at(&t, 3);
    CHECK(store_time_sample(&t, 10, 5010, 1100) == 0, "a slow round trip says little");
    CHECK(store_time_sample(&t, 6000, 6010, 7008) == 0, "the answer was given late");
    CHECK(store_time_at(&t, 6013) == was + 6010, "nothing has moved");
    CHECK(store_time_sample(&t, 7000, 7010, 8100) == 96, "this one says that it is wrong");
    CHECK(store_time_at(&t, 7010) == 8105, "%" PRId64, store_time_at(&t, 7010));
    store_time_fini(&t);
}

static void a_store_that_is_ahead_is_followed_at_once(void **state)
{
    struct store_time t;
    (void)state;

    store_time_init(&t, 0);
    (void)store_time_sample(&t, 0, 0, 1000);
    CHECK(store_time_sample(&t, 100, 100, 3601100) == 3600000, "an hour");
    CHECK(store_time_at(&t, 100) == 3601100, "it is there");
    store_time_fini(&t);
}

static void a_store_that_is_behind_is_waited_for(void **state)
{
    struct store_time t;
    (void)state;

    store_time_init(&t, 0);
    (void)store_time_sample(&t, 0, 0, 100000);
    CHECK(store_time_sample(&t, 1000, 1000, 71000) == -30000, "half a minute behind");
    CHECK(store_time_at(&t, 1000) == 101000, "not a step back");
    CHECK(store_time_at(&t, 17000) == 116000, "a little less than what passes");
    CHECK(store_time_sample(&t, 161000, 161000, 231000) == 0, "it is as far behind as was known");
    CHECK(store_time_at(&t, 161000) == 251000, "and still being waited for");
    CHECK(store_time_at(&t, 481000) == 551000, "there they meet");
    CHECK(store_time_at(&t, 482000) == 552000, "and go on together");
    store_time_fini(&t);
}

static void it_never_goes_backwards_whatever_the_samples_say(void **state)
{
    struct prng p = {1};
    (void)state;

    for (unsigned run = 0; run < 200; run++) {
        struct store_time t;
        int64_t steady = 0;
        int64_t last = INT64_MIN;
        store_time_init(&t, 0);
        for (unsigned i = 0; i < 200; i++) {
            int64_t sent = steady;
            steady += prng_below(&p, 100);
            if (prng_below(&p, 3) == 0)
                (void)store_time_sample(&t, sent, steady,
                                        1000000 + steady + prng_below(&p, 40000) - 20000);
            int64_t now = store_time_at(&t, steady);
            CHECK(i == 0 || t.since == 0 || now >= last || last < 500000,
                  "%" PRId64 " after %" PRId64, now, last);
            last = now;
        }
        store_time_fini(&t);
    }
}

/* ---- threads ---- */

static void *samples(void *arg)
{
    struct store_time *t = arg;

    for (int64_t i = 0; i < 20000; i++) {
        int64_t steady = clock_boot_ms();
        (void)store_time_sample(t, steady, steady, steady + i % 7 * 1000);
    }
    return NULL;
}

static void readers_and_a_sampler_do_not_disturb_each_other(void **state)
{
    struct store_time t;
    pthread_t sampler;
    int64_t last = 0;
    (void)state;

    store_time_init(&t, 0);
    int rc = pthread_create(&sampler, NULL, samples, &t);
    CHECK(rc == 0, "a thread");
    for (unsigned i = 0; i < 20000; i++) {
        int64_t now = store_time_now(&t);
        CHECK(now >= last, "%" PRId64 " after %" PRId64, now, last);
        last = now;
    }
    (void)pthread_join(sampler, NULL);
    store_time_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_sample_is_believed_in_its_middle),
        cmocka_unit_test(what_may_be_right_stays),
        cmocka_unit_test(a_store_that_is_ahead_is_followed_at_once),
        cmocka_unit_test(a_store_that_is_behind_is_waited_for),
        cmocka_unit_test(it_never_goes_backwards_whatever_the_samples_say),
        cmocka_unit_test(readers_and_a_sampler_do_not_disturb_each_other),
    };
    return cmocka_run_group_tests_name("store time", tests, NULL, NULL);
}
