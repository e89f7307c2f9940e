/* Ids of children: they name parent and step as far as an id has room, and are never those of
 * others. */

#include <string.h>

#include "base/names.h"
#include "base/test.h"
#include "tasks/family.h"

enum { ID_MAX = 128 };

static struct slice repeated(char *to, char c, size_t len)
{
    memset(to, c, len);
    return (struct slice){to, len};
}

static void an_id_names_parent_and_step(void **state)
{
    struct arena a = {0};
    (void)state;

    CHECK(slice_is(child_id(SLICE("o-1"), SLICE("parcel"), 1, &a), "o-1@parcel"), "the first");
    CHECK(slice_is(child_id(SLICE("o-1"), SLICE("parcel"), 12, &a), "o-1@parcel:12"), "another");
    arena_fini(&a);
}

static void a_long_one_ends_in_a_hash(void **state)
{
    struct arena a = {0};
    char text[ID_MAX];
    (void)state;

    struct slice parent = repeated(text, 'p', ID_MAX - 2);
    struct slice fits = child_id(parent, SLICE("s"), 1, &a);
    CHECK(fits.len == ID_MAX && fits.ptr[ID_MAX - 1] == 's', "%.*s", SLICE_ARG(fits));
    struct slice first = child_id(parent, SLICE("step"), 1, &a);
    struct slice second = child_id(parent, SLICE("step"), 2, &a);
    struct slice other = child_id(parent, SLICE("stop"), 1, &a);
    CHECK(first.len == ID_MAX && is_task_id(first), "%.*s", SLICE_ARG(first));
    CHECK(slice_eq(first, child_id(parent, SLICE("step"), 1, &a)), "always the same");
    CHECK(!slice_eq(first, second) && !slice_eq(first, other), "each has its own");
    CHECK(!is_name(first), "nobody can submit it");
    arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_names_parent_and_step),
        cmocka_unit_test(a_long_one_ends_in_a_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
