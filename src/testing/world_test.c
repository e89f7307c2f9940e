/* Tests of the world of a test: effects happen once for each key, undo subtracts or does as it is
 * told, and effects that stay can be left out. */

#include "base/test.h"
#include "definition/expression/expression.h"
#include "testing/world.h"

static struct arena arena;
static struct world_state world;

static struct expression *expression(const char *text)
{
    struct expression *x = NULL;
    struct error e = {0};
    size_t column = 0;

    enum err err = expression_compile(slice_of(text), &arena, &x, &column, &e);
    CHECK(err == ERR_OK, "%s: %s", text, e.text);
    return x;
}

static const struct effect_spec *effect(const char *name, const char *text)
{
    struct effect_spec *e = arena_alloc(&arena, sizeof *e);

    e->is_given = true;
    e->count = 1;
    e->list = arena_alloc(&arena, sizeof *e->list);
    *e->list = (struct world_change){.name = slice_of(name), .value = expression(text)};
    return e;
}

static const struct json *root(void)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct json *j = NULL;

    json_open(&b, '{');
    json_key(&b, "world");
    world_write(&world, &b);
    json_member_raw(&b, "input", SLICE("{\"n\": 2}"));
    json_close(&b, '}');
    assert_int_equal(json_parse(&arena, arena_copy(&arena, buf_view(&b)), &j, NULL), ERR_OK);
    return j;
}

static bool take(const char *key, const struct effect_spec *spec)
{
    struct error e = {0};
    uint32_t at = 0;
    bool took = false;

    enum err err =
        world_take(&world, world_effect(&world, slice_of(key)), spec, root(), &took, &at, &e);
    CHECK(err == ERR_OK, "%s: %s", key, e.text);
    return took;
}

static bool undo(const char *key)
{
    struct error e = {0};
    uint32_t at = 0;
    bool undone = false;

    enum err err =
        world_undo(&world, world_effect(&world, slice_of(key)), root(), &undone, &at, &e);
    CHECK(err == ERR_OK, "%s: %s", key, e.text);
    return undone;
}

static void is(const char *name, const char *json)
{
    const struct world_member *m = world_member(&world, slice_of(name));

    CHECK(json_texts_equal(m->json, slice_of(json)), "%s is %.*s, expected %s", name,
          SLICE_ARG(m->json), json);
}

static int begin(void **state)
{
    (void)state;
    world_open(&world, SLICE("{\"n\": 10, \"list\": [1]}"), SLICE("{\"x\": 0.5}"), &arena);
    return 0;
}

static int end(void **state)
{
    (void)state;
    world_close(&world);
    arena_fini(&arena);
    return 0;
}

static void a_key_takes_effect_once(void **state)
{
    const struct effect_spec *less = effect("n", ".world.n - .input.n");

    (void)state;
    assert_true(take("a", less));
    is("n", "8");
    assert_false(take("a", less));
    is("n", "8");
    assert_true(take("b", less));
    is("n", "6");
}

static void undo_subtracts_what_was_added(void **state)
{
    (void)state;
    assert_true(take("a", effect("n", ".world.n + .input.n")));
    assert_true(take("b", effect("n", ".world.n * 2")));
    is("n", "24");
    assert_true(undo("a")); /* others keep what they added */
    is("n", "22");
    assert_false(undo("a"));
    assert_true(undo("b"));
    is("n", "10");
    assert_true(take("c", effect("x", ".world.x + 0.25")));
    assert_true(undo("c"));
    is("x", "0.5");
}

static void what_was_undone_first_takes_no_effect(void **state)
{
    (void)state;
    assert_false(undo("a"));
    assert_false(take("a", effect("n", "0")));
    is("n", "10");
}

static void other_values_are_undone_as_they_say(void **state)
{
    struct effect_record *r = world_effect(&world, SLICE("a"));
    struct error e = {0};
    uint32_t at = 0;
    bool undone = false;

    (void)state;
    assert_true(take("a", effect("list", ".world.list + [.input.n]")));
    is("list", "[1, 2]");
    assert_int_equal(world_undo(&world, r, root(), &undone, &at, &e), ERR_INVALID);
    is("list", "[1, 2]");
    r->reverse = effect("list", ".world.list - [.input.n]");
    assert_true(undo("a"));
    is("list", "[1]");
}

static void a_failed_effect_changes_nothing(void **state)
{
    struct effect_record *r = world_effect(&world, SLICE("a"));
    struct error e = {0};
    uint32_t at = 0;
    bool took = false;

    (void)state;
    assert_int_equal(world_take(&world, r, effect("n", "1 / 0"), root(), &took, &at, &e),
                     ERR_INVALID);
    CHECK(strstr(e.text, "zero"), "%s", e.text);
    is("n", "10");
    assert_false(r->took);
}

static void effects_that_stay_can_be_left_out(void **state)
{
    const struct world_member *n = world_member(&world, SLICE("n"));
    const struct world_member *list = world_member(&world, SLICE("list"));

    (void)state;
    world_effect(&world, SLICE("a"))->stays = true;
    world_effect(&world, SLICE("b"))->stays = true;
    assert_true(take("a", effect("n", ".world.n + 5")));
    assert_true(take("b", effect("list", "[]")));
    assert_true(take("c", effect("n", ".world.n + 1")));
    CHECK(json_texts_equal(world_without_staying(&world, n), SLICE("11")), "n");
    assert_null(world_without_staying(&world, list).ptr);
}

/* A service that is not idempotent: the second request fails, and changes nothing of what the undo
 * takes back. */
static void a_repeated_effect_that_fails_leaves_the_first_one(void **state)
{
    struct effect_record *r = world_effect(&world, SLICE("a"));
    struct error e = {0};
    uint32_t at = 0;
    bool took = false;

    (void)state;
    r->repeats = true;
    assert_true(take("a", effect("n", ".world.n + .input.n")));
    is("n", "12");
    assert_int_equal(world_take(&world, r, effect("n", "1 / 0"), root(), &took, &at, &e),
                     ERR_INVALID);
    assert_false(took);
    is("n", "12");
    assert_true(undo("a"));
    is("n", "10");
}

/* What was repeated is undone once. */
static void a_repeated_effect_is_undone_once(void **state)
{
    (void)state;
    world_effect(&world, SLICE("a"))->repeats = true;
    assert_true(take("a", effect("n", ".world.n + 5")));
    assert_true(take("a", effect("n", ".world.n + 5")));
    is("n", "20");
    assert_true(undo("a"));
    is("n", "15");
    assert_false(undo("a"));
}

static void fractions_return_to_what_they_were(void **state)
{
    (void)state;
    assert_true(take("a", effect("x", ".world.x + 0.1")));
    assert_true(take("b", effect("x", ".world.x + 0.2")));
    assert_true(undo("a")); /* not the newest: it is subtracted */
    assert_true(undo("b"));
    assert_true(world_values_equal(world_member(&world, SLICE("x"))->json, SLICE("0.5")));
    assert_true(world_values_equal(SLICE("0.30000000000000004"), SLICE("0.3")));
    assert_false(world_values_equal(SLICE("0.3001"), SLICE("0.3")));
    assert_false(world_values_equal(SLICE("1"), SLICE("\"1\"")));
    assert_true(take("c", effect("x", ".world.x + 0.1")));
    assert_true(take("d", effect("x", ".world.x + 0.7")));
    assert_true(undo("d")); /* the newest: nothing is rounded */
    is("x", "0.6");
}

/* An `undone` that looks at other effects sees them as they were: the newest goes first. */
static void what_stays_is_taken_away_newest_first(void **state)
{
    const struct world_member *list = world_member(&world, SLICE("list"));
    struct effect_record *a = world_effect(&world, SLICE("a"));
    struct effect_record *b = world_effect(&world, SLICE("b"));

    (void)state;
    a->stays = b->stays = true;
    assert_true(take("a", effect("list", ".world.list + [7]")));
    assert_true(take("b", effect("list", ".world.list + [8]")));
    a->reverse = effect("list", "if .world.list[-1] == 7 then .world.list[:-1] else [0] end");
    b->reverse = effect("list", "if .world.list[-1] == 8 then .world.list[:-1] else [0] end");
    CHECK(json_texts_equal(world_without_staying(&world, list), SLICE("[1]")), "list");
    is("list", "[1, 7, 8]");
}

static struct effect_record *of_step(const char *key, const char *step)
{
    struct effect_record *r = world_effect(&world, slice_of(key));

    r->step = slice_of(step);
    return r;
}

static void an_operator_undoes_items_and_children_as_undone_says(void **state)
{
    (void)state;
    of_step("a", "pack.0")->reverse = effect("list", ".world.list - [7]");
    of_step("b", "pack.1");
    of_step("c", "pack/label");
    of_step("d", "packing");
    assert_true(take("a", effect("list", ".world.list + [7]")));
    assert_true(take("b", effect("n", ".world.n + 1")));
    assert_true(take("c", effect("n", ".world.n + 10")));
    assert_true(take("d", effect("n", ".world.n + 100")));
    assert_true(take("e", effect("list", ".world.list + [9]")));
    assert_true(world_undo_by_hand(&world, SLICE("pack")));
    is("n", "110"); /* of packing */
    is("list", "[1, 9]");
    assert_false(world_undo_by_hand(&world, SLICE("pack")));
    assert_true(world_undo_by_hand(&world, SLICE("packing")));
    is("n", "10");
}

/* Nobody asked for the undo, so it has no input: null would be added, and nothing taken away. */
static void what_undone_takes_from_the_input_of_an_undo_is_subtracted(void **state)
{
    const struct world_member *n = world_member(&world, SLICE("n"));
    struct effect_record *r = of_step("a", "pay");

    (void)state;
    r->reverse = effect("n", ".world.n + .undo.input.cents");
    assert_true(take("a", effect("n", ".world.n - 5")));
    r->stays = true;
    CHECK(world_values_equal(world_without_staying(&world, n), SLICE("10")), "n");
    r->stays = false;
    assert_true(world_undo_by_hand(&world, SLICE("pay")));
    is("n", "10");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_takes_effect_once, begin, end),
        cmocka_unit_test_setup_teardown(undo_subtracts_what_was_added, begin, end),
        cmocka_unit_test_setup_teardown(what_was_undone_first_takes_no_effect, begin, end),
        cmocka_unit_test_setup_teardown(other_values_are_undone_as_they_say, begin, end),
        cmocka_unit_test_setup_teardown(a_failed_effect_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(effects_that_stay_can_be_left_out, begin, end),
        cmocka_unit_test_setup_teardown(a_repeated_effect_that_fails_leaves_the_first_one, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_repeated_effect_is_undone_once, begin, end),
        cmocka_unit_test_setup_teardown(fractions_return_to_what_they_were, begin, end),
        cmocka_unit_test_setup_teardown(what_stays_is_taken_away_newest_first, begin, end),
        cmocka_unit_test_setup_teardown(an_operator_undoes_items_and_children_as_undone_says, begin,
                                        end),
        cmocka_unit_test_setup_teardown(what_undone_takes_from_the_input_of_an_undo_is_subtracted,
                                        begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
