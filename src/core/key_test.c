/* Tests of idempotency keys: their text is as the documents show it, and requests share a key
 * only if they are attempts of the same step, direction, generation and round. */

#include "base/test.h"

#include "core/key.h"

static void check_key(struct idempotency_key k, const char *expected)
{
    char text[80];
    size_t len = idempotency_key_len(&k);

    CHECK(len < sizeof text, "%s: %zu bytes", expected, len);
    memset(text, '#', sizeof text);
    idempotency_key_write(&k, text);
    CHECK(slice_is((struct slice){text, len}, expected), "%.*s instead of %s", (int)len, text,
          expected);
    CHECK(text[len] == '#', "%s: one byte too many", expected);
}

static void a_key_names_task_step_and_direction(void **state)
{
    struct idempotency_key k = {.task = SLICE("t-1"), .step = SLICE("pay")};
    (void)state;

    check_key(k, "t-1/pay");
    k.direction = DIRECTION_UNDO;
    check_key(k, "t-1/pay/undo");
    k.prefix = SLICE("shop:");
    check_key(k, "shop:t-1/pay/undo");
}

static void a_generation_has_a_key_of_its_own(void **state)
{
    struct idempotency_key k = {.task = SLICE("t"), .step = SLICE("s")};
    (void)state;

    k.generation = 1;
    check_key(k, "t/s~2");
    k.generation = 8;
    check_key(k, "t/s~9");
    k.generation = 9;
    check_key(k, "t/s~10");
    k.direction = DIRECTION_UNDO;
    check_key(k, "t/s~10/undo");
    k.generation = UINT32_MAX;
    check_key(k, "t/s~4294967296/undo");
}

static void a_round_has_a_key_of_its_own(void **state)
{
    struct idempotency_key k = {.task = SLICE("t"), .step = SLICE("s")};
    (void)state;

    k.round = 1;
    check_key(k, "t/s");
    k.round = 2;
    check_key(k, "t/s@2");
    k.round = 10000;
    check_key(k, "t/s@10000");
    k.generation = 1;
    check_key(k, "t/s~2@10000");
    k.prefix = SLICE("shop:");
    check_key(k, "shop:t/s~2@10000");
}

static void check_child(const char *parent, const char *step, uint32_t number, const char *want)
{
    char got[80] = {0};
    size_t len = child_id_len(slice_of(parent), slice_of(step), number);

    CHECK(len == strlen(want), "%s: %zu", want, len);
    child_id_write(slice_of(parent), slice_of(step), number, got);
    CHECK(strcmp(got, want) == 0, "%s: %s", want, got);
}

static void a_child_is_named_by_its_step_and_number(void **state)
{
    (void)state;

    check_child("t", "s", 1, "t@s");
    check_child("t", "s", 2, "t@s:2");
    check_child("o-17", "parcel", 10, "o-17@parcel:10");
    check_child("o-17@parcel:2", "label", 4294967295, "o-17@parcel:2@label:4294967295");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_named_by_its_step_and_number),
        cmocka_unit_test(a_key_names_task_step_and_direction),
        cmocka_unit_test(a_generation_has_a_key_of_its_own),
        cmocka_unit_test(a_round_has_a_key_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
