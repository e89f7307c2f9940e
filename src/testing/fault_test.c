/* Tests of faults: which one strikes where, and that what is written is read again as it was. The
 * e2e tests play them. */

#include "base/test.h"
#include "testing/suite.h"

static const char head[] = "{\"workflow\": \"w.yaml\", \"tests\": [{\"name\": \"t\", \"faults\": [";
static const char tail[] = "], \"expect\": {\"state\": \"processed\"}}]}";

static struct fault_point point(enum fault_place place, const char *name, bool is_undo,
                                uint32_t number)
{
    return (struct fault_point){.place = place,
                                .name = slice_of(name),
                                .is_undo = is_undo,
                                .number = number};
}

static void test_a_fault_strikes_where_it_is(void **state)
{
    (void)state;
    struct fault_point there = point(PLACE_REQUEST, "charge", false, 2);
    struct fault f[] = {fault_make(FAULT_ANSWER_LOST, &there)};
    const struct fault_list l = {f, 1};
    struct fault_point others[] = {point(PLACE_REQUEST, "charge", false, 1),
                                   point(PLACE_REQUEST, "charge", false, 3),
                                   point(PLACE_REQUEST, "charge", true, 2),
                                   point(PLACE_REQUEST, "ship", false, 2),
                                   point(PLACE_COMMIT, NULL, false, 2)};

    assert_ptr_equal(fault_at(&l, &there), f);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_null(fault_at(&l, &others[i]));
}

static void test_one_that_lasts_gives_way_to_one_that_is_named(void **state)
{
    (void)state;
    struct fault_point first = point(PLACE_REQUEST, "a", false, 1);
    struct fault_point second = point(PLACE_REQUEST, "a", false, 2);
    struct fault_point third = point(PLACE_REQUEST, "a", false, 3);
    struct fault f[] = {fault_make(FAULT_REQUEST_LOST, &first), fault_make(FAULT_SLOW, &second)};
    const struct fault_list l = {f, 2};

    f[0].lasts = true;
    assert_ptr_equal(fault_at(&l, &first), &f[0]);
    assert_ptr_equal(fault_at(&l, &second), &f[1]);
    assert_ptr_equal(fault_at(&l, &third), &f[0]);
}

static void test_a_service_does_not_refuse_what_it_did(void **state)
{
    (void)state;
    struct fault_point p = point(PLACE_REQUEST, "a", false, 2);

    assert_true(fault_fits(fault_spec(FAULT_REFUSED), &p));
    p.took = true;
    assert_false(fault_fits(fault_spec(FAULT_REFUSED), &p));
    assert_true(fault_fits(fault_spec(FAULT_ANSWER_LOST), &p));
    p.is_undo = true;
    assert_false(fault_fits(fault_spec(FAULT_CANCELLED), &p));
    assert_false(fault_fits(fault_spec(FAULT_KILLED_AFTER), &p));
}

/* Each kind, with and without what it may have. */
static void test_what_is_written_is_read_again(void **state)
{
    (void)state;
    for (int k = FAULT_NONE + 1; k < FAULT_KINDS; k++) {
        const struct fault_spec *s = fault_spec((enum fault_kind)k);
        bool is_counted = s->place == PLACE_COMMIT || s->place == PLACE_STOP;
        struct fault_point p =
            point(s->place, is_counted ? NULL : "name", s->place == PLACE_REQUEST, 3);
        struct fault f = fault_make((enum fault_kind)k, &p);
        CLEANUP(buf_fini) struct buf text = {0};
        CLEANUP(buf_fini) struct buf told = {0};
        struct suite *suite = NULL;
        static struct mistakes m;

        f.lasts = s->may_last;
        f.ms = s->length_ms >= 0 ? 1234 : 0;
        buf_str(&text, head);
        fault_write(&text, &f);
        buf_str(&text, tail);
        assert_int_equal(suite_parse(buf_view(&text), SOURCE_JSON, "t.json", &suite, &m), ERR_OK);
        assert_int_equal(suite->tests[0].faults.count, 1);
        assert_true(fault_equal(&suite->tests[0].faults.list[0], &f));
        fault_tell(&told, &f);
        assert_true(told.len > 10);
        suite_free(suite);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_fault_strikes_where_it_is),
        cmocka_unit_test(test_one_that_lasts_gives_way_to_one_that_is_named),
        cmocka_unit_test(test_a_service_does_not_refuse_what_it_did),
        cmocka_unit_test(test_what_is_written_is_read_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
