/* Tests of row_request.c: a supervisor's request survives its text, the text is as documented, and
 * a text that is damaged or from elsewhere requests nothing. */

#include "base/test.h"

#include "base/prng.h"
#include "store/row_request.h"

static void check_read(const char *text, size_t count)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct request r = {0};

    row_request_read(slice_of(text), &a, &r);
    CHECK(r.count == count, "%s: %zu items", text, r.count);
}

static void it_is_written_as_documented(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct request_item list[] = {
        {.kind = REQUEST_ATTEMPT,
         .step = SLICE("charge"),
         .direction = DIRECTION_UNDO,
         .attempt = 2,
         .outlook = SLICE("hold")},
        {.kind = REQUEST_EXTEND, .until = 1800000000000},
        {.kind = REQUEST_DEADLINE},
    };
    (void)state;

    row_request_write(&b, &(struct request){list, COUNT_OF(list)});
    CHECK(slice_is(buf_view(&b), "[{\"step\":\"charge\",\"direction\":\"undo\",\"attempt\":2,"
                                 "\"do\":\"hold\"},{\"do\":\"extend\",\"until\":1800000000000},"
                                 "{\"do\":\"deadline\"}]"),
          "%s", b.ptr);
}

static struct request_item any_item(struct prng *p)
{
    static const char *const steps[] = {"a", "charge", "with \"quotes\"", "\xc3\xa4"};
    static const char *const outlooks[] = {"retry", "undo", "hold", "continue"};
    struct request_item i = {.kind = (enum request_kind)prng_below(p, 3)};

    if (i.kind == REQUEST_EXTEND)
        i.until = 1 + (int64_t)prng_below(p, UINT32_MAX) * 1000;
    if (i.kind != REQUEST_ATTEMPT)
        return i;
    i.step = slice_of(steps[prng_below(p, COUNT_OF(steps))]);
    i.direction = prng_chance(p, 50) ? DIRECTION_UNDO : DIRECTION_FORWARD;
    i.attempt = 1 + prng_below(p, UINT32_MAX - 1);
    i.outlook = slice_of(outlooks[prng_below(p, COUNT_OF(outlooks))]);
    return i;
}

static void what_is_written_is_read(void **state)
{
    enum { ROUNDS = 2000, ITEMS = 6 };
    struct prng p = {.state = 1};
    (void)state;

    for (int round = 0; round < ROUNDS; round++) {
        CLEANUP(buf_fini) struct buf b = {0};
        CLEANUP(arena_fini) struct arena a = {0};
        struct request_item list[ITEMS];
        struct request r = {list, prng_below(&p, ITEMS + 1)};
        struct request back = {0};
        for (size_t i = 0; i < r.count; i++)
            list[i] = any_item(&p);
        row_request_write(&b, &r);
        row_request_read(buf_view(&b), &a, &back);
        CHECK(back.count == r.count, "round %d: %zu of %zu", round, back.count, r.count);
        for (size_t i = 0; i < r.count; i++) {
            const struct request_item *x = &list[i];
            const struct request_item *y = &back.list[i];
            CHECK(x->kind == y->kind && x->direction == y->direction && x->attempt == y->attempt
                      && x->until == y->until && slice_eq(x->step, y->step)
                      && slice_eq(x->outlook, y->outlook),
                  "round %d: item %zu", round, i);
        }
    }
}

static void what_is_no_request_requests_nothing(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct request r = {.count = 1};
    (void)state;

    row_request_read(SLICE_NONE, &a, &r);
    CHECK(r.count == 0, "no text");
    check_read("", 0);
    check_read("[", 0);
    check_read("{}", 0);
    check_read("[]", 0);
    check_read("[{\"step\":\"a\",\"direction\":\"sideways\",\"attempt\":1}]", 0);
    check_read("[{\"step\":\"a\",\"attempt\":1},{\"do\":\"deadline\"}]", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_written_as_documented),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_is_no_request_requests_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
