/* Tests of definitions with on_undo and undo_until: mistakes and their places, to which steps
 * expressions may refer, and their evaluation. core/on_undo_test.c tests when these steps run. */

#include "definition/definition_test_kit.h"

#define BACK(steps) \
    "{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "],\n\"on_undo\":" steps "}"
#define OWN(more) "{\"name\":\"t\",\"agent\":\"x\",\"action\":\"y\"" more "}"

static void they_are_steps_of_their_own(void **state)
{
    static const char text[] =
        "{\"intact\":1,\"workflow\":\"w\",\"on_failure\":\"continue\",\"undo_until\":\"30d\","
        "\"steps\":["
        "{\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"},"
        "{\"name\":\"b\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"}],"
        "\"on_undo\":["
        "{\"name\":\"c\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"},"
        "{\"name\":\"d\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\",\"after\":[],"
        "\"on_failure\":\"continue\"},"
        "{\"name\":\"e\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\","
        "\"after\":[\"c\",\"d\"]}]}";
    struct definition *d = defined(text);
    const struct workflow *w = &d->workflow;
    (void)state;

    CHECK(w->undo_until_ms == INT64_C(30) * 86400000, "undo_until");
    CHECK(w->step_count == 5 && workflow_step_index(w, SLICE("e")) == 4, "steps");
    for (uint16_t i = 0; i < 5; i++)
        CHECK(w->steps[i].on_undo == (i >= 2) && w->steps[i].undo_kind == UNDO_NONE, "%u", i);
    CHECK(w->steps[0].on_failure == ON_FAILURE_CONTINUE, "the workflow's");
    CHECK(w->steps[2].on_failure == ON_FAILURE_HOLD, "hold, whatever the workflow says");
    CHECK(w->steps[3].on_failure == ON_FAILURE_CONTINUE, "its own");
    CHECK(w->steps[2].before_count == 0, "the first waits for none of the others");
    CHECK(w->steps[1].after_count == 0, "nor does the last of these stand before it");
    CHECK(w->steps[4].before_count == 2 && w->steps[4].before[0] == 2, "their own graph");
    definition_free(d);
}

/* clang-format off */
static const struct mistake_case mistake_cases[] = {
    {BACK("{}"), 2, 11, "on_undo", "an object", "an array of steps"},
    {BACK("[]"), 2, 11, "on_undo", "an array", "at least one step"},
    {BACK("[7]"), 2, 12, "on_undo[0]", "7", "an object"},
    {BACK("[\n" OWN("") "]"), 3, 1, "on_undo[0].undo", "nothing", "undo: none"},
    {BACK("[\n" OWN(",\"undo\":{\"action\":\"z\"}") "]"), 3, 45, "on_undo[0].undo", "an object", "none: a step of on_undo is not undone"},
    {BACK("[\n" OWN(",\"pivot\":true") "]"), 3, 46, "on_undo[0].pivot", "true", "undo: none: a step of on_undo cannot be a pivot"},
    {BACK("[\n" STEP("t", ",\n\"on_failure\":\"undo\"") "]"), 4, 14, "on_undo[0].on_failure", "\"undo\"", "hold or continue: the task is already being undone"},
    {BACK("[\n" STEP("t", ",\n\"on_failure\":\"stop\"") "]"), 4, 14, "on_undo[0].on_failure", "\"stop\"", "undo, hold or continue"},
    {BACK("[\n" STEP("a", "") "]"), 3, 9, "on_undo[0].name", "\"a\"", "a name that no other step has"},
    {BACK("[\n" STEP("t", ",\n\"after\":[\"a\"]") "]"), 4, 10, "on_undo[0].after[0]", "\"a\"", "a step of on_undo: these always come after all compensations"},
    {BACK("[\n" STEP("t", ",\n\"after\":[\"q\"]") "]"), 4, 10, "on_undo[0].after[0]", "\"q\"", "the name of a step"},
    {BACK("[" STEP("t", "") ",\n" STEP("u", ",\n\"after\":[\"u\"]") "]"), 4, 10, "on_undo[1].after[0]", "\"u\"", "another step"},
    {BACK("[\n" STEP("t", ",\n\"after\":[\"u\"]") "," STEP("u", "") "]"), 4, 9, "on_undo[0].after", "t after u after t", "steps without a cycle"},
    {BACK("[" STEP("t", "") ",\n" STEP("u", ",\n\"retry\":{\"attempts\":0}") "]"), 4, 21, "on_undo[1].retry.attempts", "0", "a whole number"},
    {BACK("[" STEP("t", "") ",\n" STEP("u", ",\"after\":[],\n\"input\":\"${ .steps.t.output.id }\"") "]"), 4, 19, "on_undo[1].input", "step \"t\"", "a step that ends before"},
    {BACK("[" STEP("t", ",\n\"input\":\"${ .steps.q.output.id }\"") "]"), 3, 19, "on_undo[0].input", "step \"q\"", "the name of a step"},
    {BACK("[" STEP("t", ",\n\"input\":\"${ foo }\"") "]"), 3, 13, "on_undo[0].input", "unknown function \"foo\"", "an expression"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[\n" STEP("a", ",\n\"after\":[\"t\"]") "],\"on_undo\":[" STEP("t", "") "]}", 3, 10, "steps[0].after[0]", "\"t\"", "a step of steps: those of on_undo come after all others"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[\n" STEP("a", ",\n\"input\":\"${ .steps.t.output }\"") "],\"on_undo\":[" STEP("t", "") "]}", 3, 19, "steps[0].input", "a step of on_undo", "a step of steps: those of on_undo run after all others"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[\n{\"name\":\"a\",\"agent\":\"x\",\"action\":\"y\",\n\"undo\":{\"action\":\"z\",\"input\":\"${ .steps.t.output }\"}}],\"on_undo\":[" STEP("t", "") "]}", 3, 40, "steps[0].undo.input", "a step of on_undo", "a step of steps"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "],\"on_undo\":[" STEP("t", "") "],\n\"output\":\"${ .steps.t.output }\"}", 2, 20, "output", "a step of on_undo", "a step of steps"},
    {TOP(",\n \"undo_until\":30"), 2, 15, "undo_until", "30", "a duration"},
    {TOP(",\n \"undo_until\":\"0s\""), 2, 15, "undo_until", "\"0s\"", "a duration longer than 0"},
    {TOP(",\n \"on_undoo\":[]"), 2, 2, "on_undoo", "key \"on_undoo\"", "did you mean \"on_undo\"?"},
    {ONE(",\n\"on_undo\":[]"), 3, 1, "steps[0].on_undo", "key \"on_undo\"", "one of name, agent"},
    {"{\"intact\":1,\"workflow\":\"w\",\"undo_complete_by\":\"1m\",\"steps\":[" STEP("a", "") "],\"on_undo\":[\n" STEP("t", ",\n\"retry\":{\"defer\":\"1m\",\"defers\":1}") "]}",
     3, 9, "on_undo[0].retry", "tries that wait for at least 67s", "less than the undo_complete_by"},
};
/* clang-format on */

static void every_mistake_has_its_place(void **state)
{
    (void)state;
    expect_mistakes(mistake_cases, COUNT_OF(mistake_cases));
}

static size_t warnings_of(const char *text, struct mistakes *warnings)
{
    static struct mistakes m;
    struct definition *d = NULL;

    CHECK(definition_parse(slice_of(text), DEFINITION_JSON, &d, &m, warnings) == ERR_OK, "%s: %s",
          text, m.list[0].found);
    definition_free(d);
    return warnings->count;
}

/* The outcome of other steps may be unknown. */
static void they_may_look_at_all_others(void **state)
{
    static struct mistakes w;
    (void)state;

    CHECK(warnings_of(BACK("[" STEP("t", ",\"input\":\"${ .steps.a.output.id // null }\"") "]"), &w)
              == 0,
          "with care");
    CHECK(warnings_of(BACK("[" STEP("t", ",\n\"input\":\"${ .steps.a.output.id + 1 }\"") "]"), &w)
              == 1,
          "without");
    CHECK(w.list[0].line == 3 && begins(w.list[0].found, "output of step \"a\""), "%s",
          w.list[0].found);
    CHECK(warnings_of(BACK("[" STEP("t", ",\"complete_by\":\"1m\"") "]"), &w) == 0, "no limit");
    CHECK(warnings_of(BACK("[" STEP("t", ",\"input\":\"${ .task.error.code }\"") "]"), &w) == 0,
          "why it goes back");
}

static void a_failure_names_its_place(void **state)
{
    struct definition *d = defined(BACK("[" STEP("t", ",\"if\":\".input.go\"") "," STEP(
        "u", ",\"input\":{\"id\":\"${ .input.go.x }\",\"was\":\"${ .steps.a.output.id // null "
             "}\"}") "]"));
    struct world w = {.input = {"{}"}, .output = {"{\"id\":7}"}};
    struct scope s = scope_of(d, "{\"go\":1}", &w);
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice ret = SLICE_NONE;
    struct error e = {0};
    bool holds = false;
    (void)state;

    CHECK(definition_condition(&s, 1, &a, &holds, &e) == ERR_OK && holds, "its condition");
    CHECK(definition_step_input(&s, 1, &a, &ret, &e) == ERR_OK && slice_is(ret, "{\"go\":1}"),
          "the input of its task");
    CHECK(definition_step_input(&s, 2, &a, &ret, &e) == ERR_INVALID
              && begins(e.text, "on_undo[1].input.id of step \"u\""),
          "%s", e.text);
    s = scope_of(d, "{\"go\":{\"x\":2}}", &w);
    CHECK(definition_step_input(&s, 2, &a, &ret, &e) == ERR_OK
              && slice_is(ret, "{\"id\":2,\"was\":7}"),
          "%.*s", SLICE_ARG(ret));
    definition_free(d);
}

static void there_is_room_for_so_many_steps_in_all(void **state)
{
    static struct mistakes m;
    (void)state;

    for (int more = 0; more < 2; more++) {
        CLEANUP(buf_fini) struct buf b = {0};
        struct definition *d = NULL;
        buf_str(&b, "{\"intact\":1,\"workflow\":\"w\",\"steps\":[");
        for (int i = 0; i < STEPS_MAX; i++) {
            bool turn = i == STEPS_MAX / 2;
            buf_str(&b, i == 0 ? "" : turn ? "],\"on_undo\":[" : ",");
            buf_fmt(&b, "{\"name\":\"s%d\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\"}", i);
        }
        buf_fmt(&b, "%s]}", more ? "," STEP("t", "") : "");
        enum err err = definition_parse(buf_view(&b), DEFINITION_JSON, &d, &m, NULL);
        CHECK((err == ERR_OK) == (more == 0), "%s", m.list[0].found);
        CHECK(!more || begins(m.list[0].expected, "1000 of them at most, with those of steps"),
              "%s", m.list[0].expected);
        definition_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_steps_of_their_own),
        cmocka_unit_test(every_mistake_has_its_place),
        cmocka_unit_test(they_may_look_at_all_others),
        cmocka_unit_test(a_failure_names_its_place),
        cmocka_unit_test(there_is_room_for_so_many_steps_in_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
