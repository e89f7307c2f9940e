/* Tests of the ring of the last hour (overview.h): what is counted in which period, how close the
 * percentiles are, and clocks that jump. */

#include "node/overview.h"

#include "base/test.h"
#include "json/json.h"

#define T0 INT64_C(1769853600000)

static struct json *written(const struct overview *o, int64_t now, struct arena *a)
{
    struct buf b = {0};
    struct json *j = NULL;

    json_open(&b, '{');
    overview_write(o, now, &b);
    json_close(&b, '}');
    CHECK(json_parse(a, arena_copy(a, buf_view(&b)), &j, NULL) == ERR_OK, "%s", b.ptr);
    buf_fini(&b);
    return j;
}

static const struct json *period(const struct json *j, size_t n)
{
    const struct json *one = json_get(j, "series")->child;

    while (n-- > 0)
        one = one->next;
    return one;
}

static int64_t number(const struct json *period, const char *key)
{
    CHECK(json_get(period, key), "no %s", key);
    return json_get_int(period, key, -1);
}

static void each_period_has_what_happened_in_it(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct overview *o = overview_new(T0 + 1);
    (void)state;

    overview_submitted(o, T0 + 1);
    overview_submitted(o, T0 + 9999);
    overview_submitted(o, T0 + 10000);
    overview_ended(o, TASK_PROCESSED, 5, T0 + 30000);
    overview_ended(o, TASK_COMPENSATED, 5, T0 + 30000);
    overview_ended(o, TASK_ERROR, 5, T0 + 30000);
    const struct json *j = written(o, T0 + 35000, &a);
    assert_int_equal(json_get(j, "series")->count, 4);
    assert_int_equal(number(period(j, 0), "submitted"), 2);
    assert_int_equal(number(period(j, 1), "submitted"), 1);
    assert_int_equal(number(period(j, 1), "p50_ms"), -1);
    assert_int_equal(number(period(j, 2), "submitted"), 0);
    assert_int_equal(number(period(j, 3), "processed"), 1);
    assert_int_equal(number(period(j, 3), "compensated"), 1);
    assert_int_equal(number(period(j, 3), "error"), 1);
    overview_free(o);
}

static void the_ring_forgets_after_an_hour(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct overview *o = overview_new(T0);
    const int64_t hour = INT64_C(3600000);
    (void)state;

    for (int64_t at = 0; at < 2 * hour; at += 5000)
        overview_submitted(o, T0 + at);
    const struct json *j = written(o, T0 + 2 * hour - 1, &a);
    assert_int_equal(json_get(j, "series")->count, 360);
    for (size_t i = 0; i < 360; i++)
        assert_int_equal(number(period(j, i), "submitted"), 2);
    j = written(o, T0 + 5 * hour, &a); /* nothing happened since */
    for (size_t i = 0; i < 360; i++)
        assert_int_equal(number(period(j, i), "submitted"), 0);
    overview_free(o);
}

/* Each is right to within an eighth, from milliseconds to years. */
static void percentiles_are_close(void **state)
{
    static const int64_t years = INT64_C(3) << 36; /* ms */
    (void)state;

    for (int64_t ms = 0; ms < years; ms = ms * 3 / 2 + 1) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct overview *o = overview_new(T0);
        for (int i = 0; i < 99; i++)
            overview_ended(o, TASK_PROCESSED, ms, T0);
        overview_ended(o, TASK_PROCESSED, 4 * ms, T0);
        const struct json *p = period(written(o, T0, &a), 0);
        int64_t p50 = number(p, "p50_ms");
        CHECK(p50 >= ms - ms / 8 && p50 <= ms + ms / 8, "%" PRId64 ": %" PRId64, ms, p50);
        assert_int_equal(number(p, "p99_ms"), p50);
        overview_ended(o, TASK_PROCESSED, 4 * ms, T0);
        int64_t p99 = number(period(written(o, T0, &a), 0), "p99_ms");
        CHECK(p99 >= 4 * ms - ms / 2 && p99 <= 4 * ms + ms / 2, "%" PRId64 ": %" PRId64, ms, p99);
        overview_free(o);
    }
}

static void a_clock_that_jumps_mixes_no_periods(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct overview *o = overview_new(T0);
    (void)state;

    overview_submitted(o, T0 + 3600000); /* the same place in the ring */
    overview_submitted(o, T0);
    overview_ended(o, TASK_PROCESSED, -5, T0);
    overview_ended(o, TASK_PROCESSED, INT64_MAX, T0);
    const struct json *j = written(o, T0 + 1, &a);
    assert_int_equal(json_get(j, "series")->count, 1);
    assert_int_equal(number(period(j, 0), "submitted"), 1);
    assert_int_equal(number(period(j, 0), "processed"), 2);
    j = written(o, T0 - 3600000, &a); /* before the start */
    assert_int_equal(json_get(j, "series")->count, 1);
    assert_int_equal(number(period(j, 0), "submitted"), 0);
    overview_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_period_has_what_happened_in_it),
        cmocka_unit_test(the_ring_forgets_after_an_hour),
        cmocka_unit_test(percentiles_are_close),
        cmocka_unit_test(a_clock_that_jumps_mixes_no_periods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
