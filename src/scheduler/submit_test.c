/* Tests of submissions of children: what such a task has from its parent is stored with it. Other
 * submissions are tested in turn_test.c and lock_test.c. */

#include "scheduler/scheduler_test_kit.h"
#include "store/codec/codec.h"

#define AGENT "{\"name\":\"s\",\"agent\":\"ag\",\"action\":\"x\",\"undo\":\"none\"}"
#define LEAF  "\"steps\":[" AGENT "]"

enum { HOUR_MS = 3600000 };

static struct stage s;

static const struct client *submit_child(const char *workflow, int64_t cap)
{
    const struct ask a = {.kind = ASK_SUBMIT,
                          .id = SLICE("t-1@parcel:2"),
                          .definition = registry_find(&s.registry, slice_of(workflow), 0),
                          .input = SLICE("{}"),
                          .priority = 5,
                          .by_id = true,
                          .parent = SLICE("t-1"),
                          .root = SLICE("t-0"),
                          .parent_step = SLICE("parcel"),
                          .parent_number = 2,
                          .family = SLICE("{\"label\":3,\"other\":1}"),
                          .complete_by_cap = cap};
    const struct client *c = stage_ask(&s, &a);

    stage_until_answered(&s, c);
    return c;
}

static struct task stored(const struct client *c, struct arena *a)
{
    struct task_row row = {0};
    struct error e = {0};
    struct task t = {0};

    CHECK(s.store->ops->get(s.store, c->ask.id, a, &row, &e) == ERR_OK, "%s", e.text);
    enum err err =
        task_decode(&registry_find(&s.registry, row.workflow, 0)->workflow, &row, a, &t, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    return t;
}

static void a_child_has_what_its_parent_says(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w",
                 "\"steps\":[" AGENT ",{\"name\":\"l\",\"task\":{\"workflow\":\"label\"}}]");
    const struct task t = stored(submit_child("w", 0), &a);
    CHECK(slice_is(t.parent, "t-1") && slice_is(t.root, "t-0"), "whose child it is");
    CHECK(slice_is(t.parent_step, "parcel") && t.parent_number == 2, "which one");
    CHECK(slice_is(t.family, "{\"label\":3,\"other\":1}"), "the family of its root: %.*s",
          SLICE_ARG(t.family));
    CHECK(t.complete_by == 0, "without limit");
    stage_end(&s);
}

static void who_starts_no_children_needs_no_family(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    stage_begin(&s);
    stage_define(&s, "w", LEAF);
    const struct task t = stored(submit_child("w", 0), &a);
    CHECK(slice_is(t.parent, "t-1") && !t.family.ptr, "%.*s", SLICE_ARG(t.family));
    stage_end(&s);
}

static int64_t complete_by_of(const char *rest, int64_t cap_ms)
{
    CLEANUP(arena_fini) struct arena a = {0};

    stage_begin(&s);
    stage_define(&s, "w", rest);
    int64_t cap = cap_ms ? s.now + cap_ms : 0;
    const struct task t = stored(submit_child("w", cap), &a);
    int64_t after = t.complete_by ? t.complete_by - t.submitted_at : 0;
    stage_end(&s);
    return after;
}

static void the_earlier_complete_by_holds(void **state)
{
    (void)state;

    CHECK(complete_by_of(LEAF, 0) == 0, "neither");
    CHECK(complete_by_of("\"complete_by\":\"1h\"," LEAF, 0) == HOUR_MS, "its own");
    CHECK(complete_by_of(LEAF, HOUR_MS) == HOUR_MS, "its parent's");
    CHECK(complete_by_of("\"complete_by\":\"1h\"," LEAF, 1000) == 1000, "its parent's is earlier");
    CHECK(complete_by_of("\"complete_by\":\"1h\"," LEAF, 2 * HOUR_MS) == HOUR_MS,
          "its own is earlier");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_has_what_its_parent_says),
        cmocka_unit_test(who_starts_no_children_needs_no_family),
        cmocka_unit_test(the_earlier_complete_by_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
