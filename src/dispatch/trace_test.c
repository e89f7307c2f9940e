/* Tests of trace.c: valid, invalid and later versions of a traceparent, and the spans of
 * requests, which differ for each request of a trace. */

#include "dispatch/trace.h"

#include "base/test.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"
#define GOOD   "00-" TRACE "-" PARENT "-01"

static void expect(const char *text, const char *expected)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice got = trace_read(&a, slice_of(text));

    CHECK(expected ? slice_is(got, expected) : !got.ptr, "%s: %.*s", text, SLICE_ARG(got));
}

static void what_is_a_trace_is_read(void **state)
{
    (void)state;

    expect(GOOD, GOOD);
    expect("00-" TRACE "-" PARENT "-00", "00-" TRACE "-" PARENT "-00");
    expect("\t " GOOD " ", GOOD);
    /* unknown flags are not passed on */
    expect("00-" TRACE "-" PARENT "-ff", "00-" TRACE "-" PARENT "-03");
    /* a later version is read as far as it agrees with version 00 */
    expect("01-" TRACE "-" PARENT "-01", GOOD);
    expect("cc-" TRACE "-" PARENT "-01-what-the-future-will-be-like", GOOD);
}

static void what_is_none_is_not(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "x",
        "00-" TRACE "-" PARENT,
        "00-" TRACE "-" PARENT "-",
        "00-" TRACE "-" PARENT "-1",
        "00-" TRACE "-" PARENT "-0g",
        "00-" TRACE "-" PARENT "-01-more",
        "00-" TRACE "-" PARENT "-01.",
        "01-" TRACE "-" PARENT "-01.more",
        "ff-" TRACE "-" PARENT "-01",
        "0-" TRACE "-" PARENT "-01",
        "0x-" TRACE "-" PARENT "-01",
        "00-00000000000000000000000000000000-" PARENT "-01",
        "00-" TRACE "-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
        "00-" TRACE "-B7AD6B7169203331-01",
        "00_" TRACE "_" PARENT "_01",
        GOOD "," GOOD,
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect(bad[i], NULL);
    expect(NULL, NULL);
}

static void requests_have_spans_of_their_own(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    struct slice with = trace_of_request(&a, SLICE(GOOD), SLICE("o-17"), 0xabc);
    CHECK(slice_is(with, "00-" TRACE "-0000000000000abc-01"), "%.*s", SLICE_ARG(with));
    with = trace_of_request(&a, SLICE("00-" TRACE "-" PARENT "-00"), SLICE("o-17"), 0);
    CHECK(slice_is(with, "00-" TRACE "-0000000000000001-00"), "%.*s", SLICE_ARG(with));
    struct slice own = trace_of_request(&a, SLICE_NONE, SLICE("o-17"), 5);
    CHECK(slice_eq(trace_read(&a, own), own), "%.*s", SLICE_ARG(own));
    struct slice odd = trace_of_request(&a, SLICE("damaged"), SLICE("o-17"), 5);
    CHECK(slice_eq(odd, own), "%.*s", SLICE_ARG(odd));
    struct slice other = trace_of_request(&a, SLICE_NONE, SLICE("o-18"), 5);
    CHECK(!slice_eq(other, own), "another task, another trace");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_a_trace_is_read),
        cmocka_unit_test(what_is_none_is_not),
        cmocka_unit_test(requests_have_spans_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
