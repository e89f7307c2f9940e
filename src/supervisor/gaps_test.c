/*
 * Tests gaps without a supervisor: what falls into a gap has the grace time after it, and is not
 * postponed for ever, however many gaps follow. Gaps of random lengths, some joined, are compared
 * with what each of them promises.
 */
#include "supervisor/gaps.h"

#include "base/prng.h"
#include "base/test.h"

enum { GRACE = 10000 };

static void a_gap_within_the_grace_time_of_another_keeps_it(void **state)
{
    struct gaps g = {0};

    (void)state;
    gaps_add(&g, 1000, 5000, GRACE);
    CHECK(gaps_from(&g) == 1000, "one");
    gaps_add(&g, 14999, 20000, GRACE);
    CHECK(gaps_from(&g) == 1000, "what it put off fell due in the next one");
    gaps_add(&g, 25000, 40000, GRACE);
    CHECK(gaps_from(&g) == 14999, "the first one's grace time was over");
    gaps_add(&g, 50000, 60000, GRACE);
    CHECK(gaps_from(&g) == 50000, "all were over");
}

static void a_gap_may_turn_out_to_be_longer(void **state)
{
    struct gaps g = {0};

    (void)state;
    gaps_add(&g, 1000, 5000, GRACE);
    gaps_add(&g, 1000, 30000, GRACE);
    gaps_longer(&g, 31000);
    gaps_longer(&g, 30500);
    gaps_add(&g, 40999, 50000, GRACE);
    CHECK(gaps_from(&g) == 1000, "its end is the last one that was told");
    gaps_add(&g, 41000, 50000, GRACE);
    CHECK(gaps_from(&g) == 1000, "they end together, and so are one");
}

/* A store that is always slow. */
static void nothing_is_put_off_for_ever(void **state)
{
    static const int64_t lengths[] = {3001, 4000, 9000, 15000, 600000};

    (void)state;
    for (size_t k = 0; k < COUNT_OF(lengths); k++) {
        struct gaps g = {0};
        for (int64_t n = 0; n < 1000; n++) {
            int64_t at = n * lengths[k];
            gaps_add(&g, at, at + lengths[k], GRACE);
            CHECK(at - gaps_from(&g) < GRACE + 2 * lengths[k], "%d", (int)lengths[k]);
        }
    }
}

/* A long grace time contains many short gaps. */
static void what_falls_into_a_gap_has_its_grace_time(void **state)
{
    struct prng r;

    (void)state;
    r = (struct prng){7};
    for (int run = 0; run < 500; run++) {
        struct gaps g = {0};
        int64_t grace = 1000 + (int64_t)prng_below(&r, 300000);
        int64_t from[100];
        int64_t until[100];
        int64_t at = 0;
        for (size_t n = 0; n < COUNT_OF(from); n++) {
            from[n] = at + (int64_t)prng_below(&r, prng_below(&r, 4) ? 500 : 30000);
            until[n] = at = from[n] + 3001 + (int64_t)prng_below(&r, 20000);
            gaps_add(&g, from[n], until[n], grace);
            CHECK(g.count <= GAPS_MAX, "%zu are kept", g.count);
            for (size_t k = 0; k <= n; k++)
                CHECK(until[k] + grace <= from[n] || gaps_from(&g) <= from[k],
                      "run %d: gap %zu was dropped by gap %zu", run, k, n);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gap_within_the_grace_time_of_another_keeps_it),
        cmocka_unit_test(a_gap_may_turn_out_to_be_longer),
        cmocka_unit_test(nothing_is_put_off_for_ever),
        cmocka_unit_test(what_falls_into_a_gap_has_its_grace_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
