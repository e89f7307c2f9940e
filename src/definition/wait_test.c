/* Tests of definitions with steps that wait (reader/wait_step.c): lengths and moments that are
 * read, mistakes and their places, and the evaluation of the moment. core/wait_test.c tests what
 * waits do. */

#include "base/when.h"
#include "definition/definition_test_kit.h"
#include "definition/grammar.h"

#define OF(more, steps)  "{\"intact\":1,\"workflow\":\"w\"" more ",\"steps\":[\n" steps "]}"
#define WAIT(name, wait) "{\"name\":\"" name "\",\"wait\":" wait "}"

static void lengths_and_moments_are_read(void **state)
{
    struct definition *d = defined(
        OF("",
           STEP("a", "") "," WAIT(
               "b",
               "\"3d\"") ","
                         "{\"name\":\"c\",\"wait\":{\"until\":\"${ .input.at }\",\"plus\":\"-2h\"},"
                         "\"if\":\".input.at\",\"after\":[\"a\"],\"on_failure\":\"continue\"}"));
    const struct workflow_step *s = d->workflow.steps;
    (void)state;

    CHECK(s[0].kind == KIND_CALL && s[1].kind == KIND_WAIT && s[2].kind == KIND_WAIT, "kinds");
    CHECK(s[1].wait_ms == 3 * MS_PER_D && !d->steps[1].wait_until, "a length");
    CHECK(s[2].wait_ms == 0 && d->steps[2].wait_until, "a moment");
    CHECK(d->steps[2].wait_plus_ms == -2 * MS_PER_H, "plus");
    CHECK(s[1].on_failure == ON_FAILURE_UNDO && s[2].on_failure == ON_FAILURE_CONTINUE, "failure");
    CHECK(s[1].undo_kind == UNDO_NONE && s[2].before_count == 1 && s[2].before[0] == 0, "graph");
    CHECK(d->has_decisions, "nobody is needed for a wait");
    CHECK(grammar_of(&d->workflow) == GRAMMAR_WAIT, "its words are new");
    definition_free(d);
}

/* clang-format off */
static const struct mistake_case mistake_cases[] = {
    {OF("", WAIT("b", "7")), 2, 20, "steps[0].wait", "7", "a duration like 3d, or an object with until"},
    {OF("", WAIT("b", "\"soon\"")), 2, 20, "steps[0].wait", "\"soon\"", "a duration"},
    {OF("", WAIT("b", "\"0s\"")), 2, 20, "steps[0].wait", "\"0s\"", "a duration"},
    {OF("", WAIT("b", "\"-3d\"")), 2, 20, "steps[0].wait", "\"-3d\"", "a duration"},
    {OF("", WAIT("b", "\"10001d\"")), 2, 20, "steps[0].wait", "\"10001d\"", "a duration"},
    {OF("", WAIT("b", "{}")), 2, 20, "steps[0].wait.until", "nothing", "a key \"until\""},
    {OF("", WAIT("b", "{\"until\":7}")), 2, 29, "steps[0].wait.until", "7", "a text: a time, or an ${ expression }"},
    {OF("", WAIT("b", "{\"until\":\"friday\"}")), 2, 29, "steps[0].wait.until", "\"friday\"", "a time with Z or an offset"},
    {OF("", WAIT("b", "{\"until\":\"2027-02-30T00:00:00Z\"}")), 2, 29, "steps[0].wait.until", "\"2027-02-30", "a time with Z"},
    {OF("", WAIT("b", "{\"until\":\"2027-01-01T00:00:00\"}")), 2, 29, "steps[0].wait.until", "\"2027-01-01", "a time with Z"},
    {OF("", WAIT("b", "{\"until\":\"${ .inputs.at }\",\"plus\":\"2\"}")), 2, 54, "steps[0].wait.plus", "\"2\"", "a duration like 2h or -2d"},
    {OF("", WAIT("b", "{\"until\":\"${ .input.at | nope }\"}")), 2, 45, "steps[0].wait.until", "unknown function", "an expression"},
    {OF("", WAIT("b", "{\"until\":\"${ .steps.z.output }\"}") "," STEP("z", "")), 2, 39, "steps[0].wait.until", "step \"z\"", "a step that ends before"},
    {OF("", WAIT("b", "{\"till\":1,\"until\":\"${ .input }\"}")), 2, 21, "steps[0].wait.till", "key \"till\"", ""},
    {OF("", "{\"name\":\"b\",\"wait\":\"1s\",\n\"agent\":\"x\"}"), 3, 9, "steps[0].agent", "\"x\"", "no such key: a step with wait has"},
    {OF("", "{\"name\":\"b\",\"wait\":\"1s\",\n\"undo\":\"none\"}"), 3, 8, "steps[0].undo", "\"none\"", "no such key"},
    {OF("", "{\"name\":\"b\",\"wait\":\"1s\",\n\"complete_by\":\"1m\"}"), 3, 15, "steps[0].complete_by", "\"1m\"", "no such key"},
    {OF("", "{\"wait\":\"1s\"}"), 2, 1, "steps[0].name", "nothing", "a key \"name\""},
    {OF("", STEP("b", "") "," WAIT("b", "\"1s\"")), 2, 61, "steps[1].name", "\"b\"", "a name that no other step has"},
    {OF(",\"complete_by\":\"1d\"", WAIT("b", "\"25h\"")), 2, 20, "steps[0].wait", "waits of 25h", "less than the task's complete_by"},
    {OF(",\"complete_by\":\"1d\"", WAIT("b", "\"13h\"") ",\n" WAIT("c", "\"12h\"")), 3, 20, "steps[1].wait", "waits of 25h", "less than"},
    {OF(",\"complete_by\":\"1d\"", WAIT("b", "\"13h\"") ",\n{\"name\":\"c\",\"wait\":\"12h\",\"if\":\".input.c\"}"), 3, 20, "steps[1].wait", "waits of 25h", "less than"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "],\"on_undo\":[\n" WAIT("b", "\"1s\"") "]}", 2, 20, "on_undo[0].wait", "\"1s\"", "an agent: on_undo has no other kinds"},
};
/* clang-format on */

static void every_mistake_has_its_place(void **state)
{
    (void)state;
    expect_mistakes(mistake_cases, COUNT_OF(mistake_cases));
}

static void waits_that_may_not_both_take_place_are_no_sum(void **state)
{
    (void)state;
    definition_free(defined(OF(",\"complete_by\":\"1d\"",
                               "{\"name\":\"b\",\"wait\":\"23h\",\"if\":\".input.slow\"},"
                               "{\"name\":\"c\",\"wait\":\"20h\",\"if\":\".input.slow | not\"}")));
    definition_free(
        defined(OF(",\"complete_by\":\"1d\"",
                   WAIT("b", "\"23h\"") ",{\"name\":\"c\",\"wait\":\"20h\",\"after\":[]}")));
}

struct moment {
    const char *until, *plus, *input; /* as in the definition */
    const char *at;                   /* what comes of it; or how the failure goes on */
    bool fails;
};

static void check_moment(const struct moment *c)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf got = {0};
    struct error e = {0};
    int64_t at = 0;

    buf_fmt(&text, OF("", STEP("a", "") "," WAIT("b", "{\"until\":\"%s\",\"plus\":\"%s\"}")),
            c->until, c->plus);
    struct definition *d = defined(text.ptr);
    struct world w = {.output = {"{\"at\":\"2027-01-31T10:00:00Z\"}"}};
    struct scope s = scope_of(d, c->input, &w);
    enum err err = definition_wait_until(&s, 1, &a, &at, &e);
    CHECK((err == ERR_INVALID) == c->fails && (c->fails || err == ERR_OK), "%s: %s", text.ptr,
          e.text);
    if (!c->fails)
        time_write(&got, at);
    CHECK(c->fails ? strstr(e.text, c->at) && begins(e.text, "steps[1].wait.until of step \"b\": ")
                   : strcmp(got.ptr, c->at) == 0,
          "%s: %s%s", text.ptr, e.text, got.ptr);
    definition_free(d);
}

static void the_moment_is_evaluated(void **state)
{
    static const struct moment moments[] = {
        {"2027-01-31T10:00:00+02:00", "0s", "{}", "2027-01-31T08:00:00.000Z", false},
        {"${ .steps.a.output.at }", "2d", "{}", "2027-02-02T10:00:00.000Z", false},
        {"${ .steps.a.output.at }", "-90m", "{}", "2027-01-31T08:30:00.000Z", false},
        {"${ .input.day }T10:00:00Z", "0s", "{\"day\":\"2027-03-01\"}", "2027-03-01T10:00:00.000Z",
         false},
        {"1970-01-02T00:00:00Z", "-10d", "{}", "1970-01-01T00:00:00.001Z", false},
        {"${ .input.at }", "0s", "{}", "found null, expected a time", true},
        {"${ .input.at }", "0s", "{\"at\":1800000000}", "found 1800000000, expected a time", true},
        {"${ .input.at }", "0s", "{\"at\":\"2027-01-31\"}", "found \"2027-01-31\"", true},
        {"${ .input.at }", "0s", "{\"at\":\"10000-01-01T00:00:00Z\"}", "found \"10000-", true},
        {"${ .input.at }", "1d", "{\"at\":\"9999-12-31T00:00:01Z\"}", "after the year 9999", true},
        {"${ .input.at | tonumber }", "0s", "{\"at\":\"x\"}", "", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(moments); i++)
        check_moment(&moments[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_and_moments_are_read),
        cmocka_unit_test(every_mistake_has_its_place),
        cmocka_unit_test(waits_that_may_not_both_take_place_are_no_sum),
        cmocka_unit_test(the_moment_is_evaluated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
