/* Tests of families (family.h): which workflows a task can reach, which versions of them it gets,
 * and everything that may be wrong with them. */

#include "definition/family.h"

#include "definition/definition_test_kit.h"

#define CHILD(name, workflow) "{\"name\":\"" name "\",\"task\":{\"workflow\":\"" workflow "\"}}"
#define PIVOT_CHILD(name, workflow) \
    PIVOTED("\"name\":\"" name "\",\"task\":{\"workflow\":\"" workflow "\"}")
#define PIVOTED(step) "{" step ",\"pivot\":true}"
#define PIVOT         PIVOTED("\"name\":\"p\",\"agent\":\"x\",\"action\":\"y\"")
#define APPROVAL                                                     \
    "{\"name\":\"ok\",\"approve\":{\"by\":\"g\",\"question\":\"?\"," \
    "\"not\":\"submitter\"}}"
#define LOCK ",\"lock\":{\"key\":\"k\"}"

enum { STORED_MAX = 200 };

/* The definitions that are stored. */
static struct {
    struct definition *list[STORED_MAX];
    size_t count;
    size_t lookups;
} stored;

static const struct definition *newest(void *arg, struct slice workflow)
{
    const struct definition *found = NULL;

    (void)arg;
    stored.lookups++;
    for (size_t i = 0; i < stored.count; i++)
        if (slice_eq(stored.list[i]->workflow.name, workflow)
            && (!found || found->workflow.version < stored.list[i]->workflow.version))
            found = stored.list[i];
    return found;
}

static size_t looks = FAMILY_LOOKS_MAX; /* more than any test but one needs */
static const struct family_source with_submitter = {newest, NULL, true};
static const struct family_source without_submitter = {newest, NULL, false};

static struct definition *make(const char *name, const char *more, const char *steps)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "{\"intact\":1,\n\"workflow\":\"%s\"%s,\"steps\":[\n%s]}", name, more, steps);
    return defined(b.ptr);
}

static struct definition *store(const char *name, int64_t version, const char *more,
                                const char *steps)
{
    struct definition *d = make(name, more, steps);

    CHECK(stored.count < STORED_MAX, "room");
    d->workflow.version = version;
    stored.list[stored.count++] = d;
    return d;
}

static int forget(void **state)
{
    (void)state;
    for (size_t i = 0; i < stored.count; i++)
        definition_free(stored.list[i]);
    memset(&stored, 0, sizeof stored);
    looks = FAMILY_LOOKS_MAX;
    return 0;
}

static void expect_family(const struct definition *d, const char *family)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct family_fault f = {0};
    struct slice ret = SLICE_NONE;

    enum err err = family_resolve(d, &without_submitter, &a, &ret, &f);
    CHECK(err == ERR_OK, "found %s, expected %s", f.path, f.expected);
    CHECK(family ? slice_is(ret, family) : !ret.ptr, "%.*s", SLICE_ARG(ret));
}

static void expect_fault(const struct definition *d, const struct family_source *source,
                         enum family_wrong what, int step, const char *path, const char *expected)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct family_fault f = {0};
    struct slice ret = SLICE("{}");

    CHECK(family_resolve(d, source, &a, &ret, &f) == ERR_INVALID && !ret.ptr, "%.*s",
          SLICE_ARG(ret));
    CHECK(f.what == what && f.step == step, "%d, step %d", (int)f.what, f.step);
    CHECK(strcmp(f.path, path) == 0, "found %s", f.path);
    CHECK(begins(f.expected, expected), "expected %s", f.expected);
}

/* ---- what it is ---- */

static void it_has_the_newest_of_all_that_can_be_reached(void **state)
{
    const struct definition *order = store(
        "order", 7, "",
        STEP("a", "") "," CHILD("b", "ship-one") "," CHILD("c", "bill") "," CHILD("d", "ship-one"));
    (void)state;

    store("ship-one", 3, "", STEP("a", ""));
    store("ship-one", 12, "", CHILD("a", "label"));
    store("ship-one", 11, "", CHILD("a", "never"));
    store("bill", 1, "", CHILD("a", "label"));
    store("label", 5, "", STEP("a", ""));
    store("other", 1, "", STEP("a", ""));
    expect_family(order, "{\"ship-one\":12,\"label\":5,\"bill\":1}");
    expect_family(newest(NULL, SLICE("bill")), "{\"label\":5}");
    expect_family(newest(NULL, SLICE("label")), NULL);
}

static void a_version_is_found_in_it(void **state)
{
    const struct slice family = SLICE("{\"ship-one\":12,\"ship\":5}");
    (void)state;

    CHECK(family_version(family, SLICE("ship-one")) == 12, "the first");
    CHECK(family_version(family, SLICE("ship")) == 5, "the second");
    CHECK(family_version(family, SLICE("shi")) == 0, "not in it");
    CHECK(family_version(SLICE_NONE, SLICE("ship")) == 0, "no family");
    CHECK(family_version(SLICE("[1"), SLICE("ship")) == 0, "damaged");
}

/* ---- what is wrong ---- */

static void workflows_have_to_be_stored(void **state)
{
    const struct definition *order =
        store("order", 1, "", STEP("a", "") "," CHILD("b", "ship-one"));
    (void)state;

    expect_fault(order, &with_submitter, FAMILY_UNKNOWN, 1, "order -> ship-one",
                 "a workflow \"ship-one\" that is stored");
    store("ship-one", 1, "", CHILD("a", "label"));
    expect_fault(order, &with_submitter, FAMILY_UNKNOWN, 1, "order -> ship-one -> label",
                 "a workflow \"label\" that is stored");
    store("label", 1, "", STEP("a", ""));
    expect_family(order, "{\"ship-one\":1,\"label\":1}");
}

static void cycles_have_no_end(void **state)
{
    const struct definition *order = store("order", 1, "", CHILD("a", "x") "," CHILD("b", "y"));
    (void)state;

    store("x", 1, "", STEP("a", ""));
    store("y", 1, "", CHILD("a", "z"));
    store("z", 1, "", CHILD("a", "order"));
    expect_fault(order, &with_submitter, FAMILY_CYCLE, 1, "order -> y -> z -> order",
                 "children without a cycle");
    store("z", 2, "", CHILD("a", "y"));
    expect_fault(order, &with_submitter, FAMILY_CYCLE, 1, "order -> y -> z -> y",
                 "children without a cycle");
    store("z", 3, "", CHILD("a", "x"));
    expect_family(order, "{\"x\":1,\"y\":1,\"z\":3}");
}

/* "w1" starts "w2", ..., the last one nobody. */
static void store_line(int from, int last)
{
    for (int i = from; i <= last; i++) {
        CLEANUP(buf_fini) struct buf name = {0};
        CLEANUP(buf_fini) struct buf step = {0};
        buf_fmt(&name, "w%d", i);
        buf_fmt(&step, CHILD("a", "w%d"), i + 1);
        store(name.ptr, 1, "", i < last ? step.ptr : STEP("a", ""));
    }
}

static void it_has_eight_levels(void **state)
{
    (void)state;

    store_line(1, 9);
    expect_family(newest(NULL, SLICE("w2")),
                  "{\"w3\":1,\"w4\":1,\"w5\":1,\"w6\":1,\"w7\":1,\"w8\":1,\"w9\":1}");
    expect_fault(newest(NULL, SLICE("w1")), &with_submitter, FAMILY_TOO_DEEP, 0,
                 "w1 -> w2 -> w3 -> w4 -> w5 -> w6 -> w7 -> w8 -> w9", "at most 8 levels of tasks");
}

/* The way that is found second is the longer one. */
static void levels_are_those_of_the_longest_way(void **state)
{
    const struct definition *d =
        store("r", 1, "", CHILD("a", "w4") "," CHILD("b", "w1") "," CHILD("c", "w2"));
    (void)state;

    store_line(1, 7);
    expect_family(d, "{\"w4\":1,\"w5\":1,\"w6\":1,\"w7\":1,\"w1\":1,\"w2\":1,\"w3\":1}");
    store("w7", 2, "", CHILD("a", "w8"));
    store("w8", 1, "", STEP("a", ""));
    expect_fault(d, &with_submitter, FAMILY_TOO_DEEP, 1,
                 "r -> w1 -> w2 -> w3 -> w4 -> w5 -> w6 -> w7 -> w8", "at most 8 levels");
}

static void repeat_step(struct buf *b, const char *workflow, int count)
{
    buf_clear(b);
    for (int i = 0; i < count; i++)
        buf_fmt(b, "%s{\"name\":\"s%d\",\"after\":[],\"task\":{\"workflow\":\"%s\"}}", i ? "," : "",
                i, workflow);
}

static void it_has_a_hundred_thousand_tasks(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    store("leaf", 1, "", STEP("a", ""));
    repeat_step(&b, "leaf", 99);
    store("many", 1, "", b.ptr); /* 100 tasks */
    repeat_step(&b, "many", 1000);
    store("root", 1, "", b.ptr);
    expect_family(newest(NULL, SLICE("root")), "{\"many\":1,\"leaf\":1}");
    repeat_step(&b, "leaf", 100);
    store("many", 2, "", b.ptr);
    expect_fault(newest(NULL, SLICE("root")), &with_submitter, FAMILY_TOO_MANY, 990,
                 "root -> many -> leaf", "at most 100000 tasks in a family");
    repeat_step(&b, "many", 990);
    expect_family(store("root", 2, "", b.ptr), "{\"many\":2,\"leaf\":1}");
}

/* 1000 to the power of 7: no counter overflows, and nothing is walked twice. */
static void many_ways_are_walked_once(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    store("w8", 1, "", STEP("a", ""));
    for (int i = 7; i >= 1; i--) {
        CLEANUP(buf_fini) struct buf name = {0};
        CLEANUP(buf_fini) struct buf child = {0};
        buf_fmt(&name, "w%d", i);
        buf_fmt(&child, "w%d", i + 1);
        repeat_step(&b, child.ptr, i == 7 ? 1000 : 5);
        store(name.ptr, 1, "", b.ptr);
    }
    stored.lookups = 0;
    expect_fault(newest(NULL, SLICE("w1")), &with_submitter, FAMILY_TOO_MANY, 0,
                 "w1 -> w2 -> w3 -> w4 -> w5 -> w6 -> w7 -> w8", "at most 100000 tasks");
    CHECK(stored.lookups == 8, "%zu", stored.lookups);
    expect_family(newest(NULL, SLICE("w5")), "{\"w6\":1,\"w7\":1,\"w8\":1}");
}

static void it_has_a_hundred_workflows(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(arena_fini) struct arena a = {0};
    struct family_fault f = {0};
    struct slice ret = SLICE_NONE;
    (void)state;

    for (int i = 0; i <= FAMILY_WORKFLOWS_MAX; i++) {
        CLEANUP(buf_fini) struct buf name = {0};
        buf_fmt(&name, "c%d", i);
        store(name.ptr, 1, "", STEP("a", ""));
        buf_fmt(&b, "%s{\"name\":\"s%d\",\"task\":{\"workflow\":\"c%d\"}}", i ? "," : "", i, i);
        if (i == FAMILY_WORKFLOWS_MAX - 1)
            CHECK(family_resolve(store("most", 1, "", b.ptr), &with_submitter, &a, &ret, &f)
                          == ERR_OK
                      && family_version(ret, SLICE("c99")) == 1,
                  "%s", f.path);
    }
    expect_fault(store("more", 1, "", b.ptr), &with_submitter, FAMILY_TOO_MANY, 100, "more -> c100",
                 "at most 100 workflows in a family");
}

/* Where a child may not be undone, its parent may not either. */
static void a_pivot_is_started_by_pivots(void **state)
{
    const struct definition *order = store("order", 1, "", CHILD("parcel", "ship-one"));
    (void)state;

    store("ship-one", 1, "", STEP("a", "") "," PIVOT);
    expect_fault(order, &with_submitter, FAMILY_PIVOT, 0, "order -> ship-one",
                 "pivot: true in step \"parcel\": workflow \"ship-one\" has a pivot");
    expect_family(store("order", 2, "", PIVOT_CHILD("parcel", "ship-one")), "{\"ship-one\":1}");
    store("ship-one", 2, "", PIVOT_CHILD("a", "label"));
    store("label", 1, "", STEP("a", ""));
    expect_fault(order, &with_submitter, FAMILY_PIVOT, 0, "order -> ship-one",
                 "pivot: true in step \"parcel\"");
    store("ship-one", 3, "", CHILD("a", "label"));
    expect_family(order, "{\"ship-one\":3,\"label\":1}");
    store("label", 2, "", PIVOT);
    expect_fault(order, &with_submitter, FAMILY_PIVOT, 0, "order -> ship-one -> label",
                 "pivot: true in step \"a\": workflow \"label\"");
}

static void children_hold_no_locks(void **state)
{
    const struct definition *order = store("order", 1, LOCK, CHILD("a", "ship-one"));
    (void)state;

    store("ship-one", 1, "", STEP("a", ""));
    expect_family(order, "{\"ship-one\":1}");
    store("ship-one", 2, LOCK, STEP("a", ""));
    expect_fault(order, &with_submitter, FAMILY_LOCK, 0, "order -> ship-one",
                 "a workflow without \"lock\"");
}

static void a_submitter_may_be_needed(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct definition *order = store("order", 1, "", CHILD("a", "ship-one"));
    struct family_fault f = {0};
    struct slice ret = SLICE_NONE;
    (void)state;

    store("ship-one", 1, "", APPROVAL);
    expect_fault(order, &without_submitter, FAMILY_SUBMITTER, 0, "order -> ship-one",
                 "a submitter who is known");
    CHECK(family_resolve(order, &with_submitter, &a, &ret, &f) == ERR_OK
              && slice_is(ret, "{\"ship-one\":1}"),
          "who submitted it is known: %s", f.path);
}

#define LONG "a-name-that-is-as-long-as-names-may-be-which-is-long"

static void a_long_path_keeps_its_ends(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct definition *d = store("order-" LONG, 1, "", CHILD("a", "one-of-" LONG));
    struct family_fault f = {0};
    struct slice ret = SLICE_NONE;
    (void)state;

    store("one-of-" LONG, 1, "", CHILD("a", "unknown-but-for-its-name"));
    CHECK(family_resolve(d, &with_submitter, &a, &ret, &f) == ERR_INVALID, "unknown");
    CHECK(begins(f.path, "order-a-name") && strstr(f.path, " -> ... -> unknown-but-for-its-name"),
          "%s", f.path);
}

/* ---- warnings ---- */

static void expect_warning(const struct mistakes *w, size_t i, uint32_t line, uint32_t column,
                           const char *path, const char *found, const char *expected)
{
    const struct mistake *m = &w->list[i];

    CHECK(i < w->count, "%zu", w->count);
    CHECK(m->line == line && m->column == column, "%u:%u", m->line, m->column);
    CHECK(strcmp(m->path, path) == 0 && strcmp(m->found, found) == 0, "%s: %s", m->path, m->found);
    CHECK(begins(m->expected, expected), "%s", m->expected);
}

/* Each mistake once: both steps with "ship-one" would tell the same. */
static void each_step_is_warned_of(void **state)
{
    static struct mistakes w;
    struct definition *order =
        make("order", "",
             CHILD("a", "ship-one") ",\n" CHILD("b", "known") ",\n" CHILD("c", "bill") ",\n" CHILD(
                 "d", "ship-one") ",\n" CHILD("e", "z"));
    (void)state;

    w.count = 0;
    store("known", 1, "", STEP("a", ""));
    store("z", 1, "", CHILD("a", "order"));
    family_warn(order, &with_submitter, &looks, &w);
    CHECK(w.count == 3, "%zu", w.count);
    expect_warning(&w, 0, 3, 32, "steps[0].task.workflow", "order -> ship-one",
                   "a workflow \"ship-one\" that is stored");
    expect_warning(&w, 1, 5, 32, "steps[2].task.workflow", "order -> bill", "a workflow \"bill\"");
    expect_warning(&w, 2, 7, 32, "steps[4].task.workflow", "order -> z -> order",
                   "children without a cycle");
    definition_free(order);
    order = make("order", "", CHILD("a", "known"));
    w.count = 0;
    family_warn(order, &with_submitter, &looks, &w);
    CHECK(w.count == 0, "nothing is wrong: %s", w.list[0].found);
    definition_free(order);
}

#define FLOW "{intact: 1, workflow: order, steps: [{name: b, task: {workflow: ship-one}}]}"

static void a_place_does_not_count_the_byte_order_mark(void **state)
{
    static struct mistakes m;
    static struct mistakes w;
    struct definition *d = NULL;
    (void)state;

    enum err err = definition_parse(SLICE("\xef\xbb\xbf" FLOW), DEFINITION_YAML, &d, &m, &w);
    CHECK(err == ERR_OK && w.count == 0, "%s", m.list[0].expected);
    family_warn(d, &with_submitter, &looks, &w);
    CHECK(w.count == 1, "%zu", w.count);
    expect_warning(&w, 0, 1, 65, "steps[0].task.workflow", "order -> ship-one", "a workflow");
    definition_free(d);
}

static void parents_that_it_breaks_are_warned_of(void **state)
{
    static struct mistakes w;
    const struct definition *parents[] = {
        store("order", 1, "", CHILD("a", "ship-one")),
        store("broken", 1, "", CHILD("a", "ship-one") "," CHILD("b", "never")),
        store("pivots", 1, "", PIVOT_CHILD("a", "ship-one")),
        store("outer", 1, "", CHILD("a", "order")),
    };
    struct definition *next = make("ship-one", "", PIVOT);
    (void)state;

    w.count = 0;
    store("ship-one", 1, "", STEP("a", ""));
    family_warn_parents(next, &with_submitter, parents, COUNT_OF(parents), &looks, &w);
    CHECK(w.count == 2, "%zu", w.count);
    expect_warning(&w, 0, 2, 12, "workflow", "order -> ship-one",
                   "pivot: true in step \"a\": workflow \"ship-one\"");
    expect_warning(&w, 1, 2, 12, "workflow", "outer -> order -> ship-one", "pivot: true");
    definition_free(next);
    next = make("ship-one", "", CHILD("a", "order"));
    w.count = 0;
    family_warn_parents(next, &with_submitter, parents, COUNT_OF(parents), &looks, &w);
    CHECK(w.count == 3, "%zu", w.count);
    expect_warning(&w, 0, 2, 12, "workflow", "order -> ship-one -> order", "children without");
    definition_free(next);
    next = make("ship-one", "", STEP("b", ""));
    w.count = 0;
    family_warn_parents(next, &with_submitter, parents, COUNT_OF(parents), &looks, &w);
    CHECK(w.count == 0, "it suits them: %s", w.list[0].found);
    definition_free(next);
}

/* Regression: a definition that others validated walked through the families of all workflows. */
static void it_looks_at_so_many_steps_and_no_more(void **state)
{
    static struct mistakes w;
    const struct definition *parents[STORED_MAX / 2];
    struct definition *next = make("leaf", "", PIVOT);
    char name[20];
    (void)state;

    store("leaf", 1, "", STEP("a", ""));
    for (size_t i = 0; i < COUNT_OF(parents); i++) {
        (void)snprintf(name, sizeof name, "parent-%zu", i);
        parents[i] = store(name, 1, "", CHILD("a", "leaf") "," CHILD("b", "leaf"));
    }
    w.count = 0;
    looks = 400;
    stored.lookups = 0;
    family_warn_parents(next, &with_submitter, parents, COUNT_OF(parents), &looks, &w);
    CHECK(looks == 0, "%zu are left", looks);
    CHECK(w.count >= 1 && w.count <= 4, "%zu of %zu", w.count, COUNT_OF(parents));
    CHECK(stored.lookups <= 400, "%zu lookups", stored.lookups);
    definition_free(next);
}

/* A submission walks through its family on the event loop. */
static void steps_below_the_root_cost_no_looks(void **state)
{
    static struct mistakes w;
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;

    for (int i = 0; i < 1000; i++)
        buf_fmt(&b, "%s{\"name\":\"s%d\",\"task\":{\"workflow\":\"%s\"}}", i ? "," : "", i,
                i % 2 ? "leaf" : "other");
    store("leaf", 1, "", STEP("a", ""));
    store("other", 1, "", STEP("a", ""));
    store("wide", 1, "", b.ptr);
    w.count = 0;
    family_warn(store("root", 1, "", CHILD("a", "wide")), &with_submitter, &looks, &w);
    CHECK(w.count == 0, "%s", w.list[0].found);
    CHECK(FAMILY_LOOKS_MAX - looks == 3, "wide, leaf and other: %zu", FAMILY_LOOKS_MAX - looks);
    expect_family(newest(NULL, SLICE("root")), "{\"wide\":1,\"other\":1,\"leaf\":1}");
}

/* What was not looked at is not known to have been right before. */
static void what_was_not_looked_at_is_not_warned_of(void **state)
{
    static struct mistakes w;
    struct definition *next = make("leaf", "", PIVOT);
    const struct definition *parent = NULL;
    (void)state;

    store("leaf", 1, "", STEP("a", ""));
    parent = store("parent", 1, "", CHILD("a", "leaf") "," CHILD("b", "never"));
    for (size_t most = 1; most < 200; most++) {
        w.count = 0;
        looks = most;
        family_warn_parents(next, &with_submitter, &parent, 1, &looks, &w);
        CHECK(w.count == 0, "%zu: it was wrong before: %s", most, w.list[0].found);
    }
    definition_free(next);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_has_the_newest_of_all_that_can_be_reached),
        TEST(a_version_is_found_in_it),
        TEST(workflows_have_to_be_stored),
        TEST(cycles_have_no_end),
        TEST(it_has_eight_levels),
        TEST(levels_are_those_of_the_longest_way),
        TEST(it_has_a_hundred_thousand_tasks),
        TEST(many_ways_are_walked_once),
        TEST(it_has_a_hundred_workflows),
        TEST(a_pivot_is_started_by_pivots),
        TEST(children_hold_no_locks),
        TEST(a_submitter_may_be_needed),
        TEST(a_long_path_keeps_its_ends),
        TEST(each_step_is_warned_of),
        TEST(a_place_does_not_count_the_byte_order_mark),
        TEST(parents_that_it_breaks_are_warned_of),
        TEST(it_looks_at_so_many_steps_and_no_more),
        TEST(what_was_not_looked_at_is_not_warned_of),
        TEST(steps_below_the_root_cost_no_looks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
