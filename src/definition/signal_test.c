/* Definitions with steps that wait for a signal: what is read, mistakes, and the condition that is
 * evaluated. */

#include "base/when.h"
#include "definition/definition_test_kit.h"
#include "definition/grammar.h"

#define OF(more, steps)      "{\"intact\":1,\"workflow\":\"w\"" more ",\"steps\":[\n" steps "]}"
#define SIGNAL(name, signal) "{\"name\":\"" name "\",\"signal\":" signal "}"

static void names_and_times_are_read(void **state)
{
    struct definition *d = defined(OF(
        ",\"on_signal\":{\"cancelled\":\"undo\"}",
        STEP("a", "") "," SIGNAL(
            "b",
            "{\"name\":\"payment\"}") ","
                                      "{\"name\":\"c\",\"signal\":{\"name\":[\"paid\",\"refused\"],"
                                      "\"match\":"
                                      "\".data.amount >= "
                                      ".input.total\"},\"complete_by\":\"2d\",\"default\":{"
                                      "\"name\":\"nobody\"},\"if\":\".input.at\",\"after\":[\"a\"],"
                                      "\"on_failure\":\"continue\"}"));
    const struct workflow_step *s = d->workflow.steps;
    (void)state;

    CHECK(s[1].kind == KIND_SIGNAL && s[2].kind == KIND_SIGNAL, "kinds");
    CHECK(s[1].signal.count == 1 && slice_is(s[1].signal.names[0], "payment"), "a name");
    CHECK(s[1].signal.complete_by_ms == 0 && !s[1].signal.otherwise.ptr, "without limit");
    CHECK(s[2].signal.count == 2 && slice_is(s[2].signal.names[1], "refused"), "names");
    CHECK(s[2].signal.complete_by_ms == 2 * MS_PER_D, "a complete-by");
    CHECK(slice_is(s[2].signal.otherwise, "{\"name\":\"nobody\"}"), "a default");
    CHECK(!d->steps[1].match && d->steps[2].match, "match");
    CHECK(s[2].on_failure == ON_FAILURE_CONTINUE && s[2].before_count == 1, "as for other steps");
    CHECK(s[1].undo_kind == UNDO_NONE, "nothing to undo");
    CHECK(d->workflow.undo_signal_count == 1 && slice_is(d->workflow.undo_signals[0], "cancelled"),
          "on_signal");
    CHECK(d->has_decisions && d->has_signals, "it is decided without an agent");
    CHECK(grammar_of(&d->workflow) == GRAMMAR_SIGNAL, "its words are new");
    definition_free(d);
}

#define REPEATED                                                                     \
    "{\"name\":\"c\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\",\"repeat\":" \
    "{\"until\":\"true\",\"every\":\"5s\",\"for\":\"2h\"}}"

static void each_word_needs_the_grammar(void **state)
{
    struct definition *d = defined(TOP(",\"on_signal\":{\"stop\":\"undo\"}"));
    (void)state;

    CHECK(grammar_of(&d->workflow) == GRAMMAR_SIGNAL, "on_signal alone");
    definition_free(d);
    d = defined(OF("", SIGNAL("b", "{\"name\":\"s\"}") ",{\"name\":\"c\",\"wait\":\"1s\"}"));
    CHECK(grammar_of(&d->workflow) == GRAMMAR_SIGNAL, "beside a wait");
    definition_free(d);
    d = defined(OF("", REPEATED "," SIGNAL("b", "{\"name\":\"s\"}")));
    CHECK(grammar_of(&d->workflow) == GRAMMAR_SIGNAL, "after a repeated step");
    definition_free(d);
}

/* clang-format off */
static const struct mistake_case mistake_cases[] = {
    {OF("", SIGNAL("b", "7")), 2, 22, "steps[0].signal", "7", "an object with name"},
    {OF("", SIGNAL("b", "\"payment\"")), 2, 22, "steps[0].signal", "\"payment\"", "an object with name"},
    {OF("", SIGNAL("b", "{}")), 2, 22, "steps[0].signal.name", "nothing", "a key \"name\""},
    {OF("", SIGNAL("b", "{\"name\":\"Paid!\"}")), 2, 30, "steps[0].signal.name", "\"Paid!\"", "a name"},
    {OF("", SIGNAL("b", "{\"name\":[]}")), 2, 30, "steps[0].signal.name", "an array", "1 to 20 names"},
    {OF("", SIGNAL("b", "{\"name\":[\"a\",\"a\"]}")), 2, 35, "steps[0].signal.name[1]", "\"a\"", "each name once"},
    {OF("", SIGNAL("b", "{\"name\":\"a\",\"match\":7}")), 2, 42, "steps[0].signal.match", "7", "an expression in a string"},
    {OF("", SIGNAL("b", "{\"name\":\"a\",\"match\":\".data |\"}")), 2, 50, "steps[0].signal.match", "the end", "an expression"},
    {OF("", SIGNAL("b", "{\"name\":\"a\",\"match\":\".steps.z.output\"}") "," STEP("z", "")), 2, 49, "steps[0].signal.match", "step \"z\"", "a step that ends before"},
    {OF("", SIGNAL("b", "{\"name\":\"a\",\"mach\":\"true\"}")), 2, 34, "steps[0].signal.mach", "key \"mach\"", "did you mean \"match\"?"},
    {OF("", "{\"name\":\"b\",\"signal\":{\"name\":\"a\"},\n\"default\":1}"), 2, 1, "steps[0].complete_by", "nothing", "a key \"complete_by\""},
    {OF("", "{\"name\":\"b\",\"signal\":{\"name\":\"a\"},\"complete_by\":\"1m\",\n\"default\":\"${ .input }\"}"), 3, 11, "steps[0].default", "\"${ .input }\"", "a value without expressions"},
    {OF("", "{\"name\":\"b\",\"signal\":{\"name\":\"a\"},\n\"agent\":\"x\"}"), 3, 9, "steps[0].agent", "\"x\"", "no such key: a step with signal has"},
    {OF("", "{\"name\":\"b\",\"signal\":{\"name\":\"a\"},\n\"wait\":\"1s\"}"), 3, 8, "steps[0].wait", "\"1s\"", "no such key: a step with signal has"},
    {OF("", "{\"name\":\"b\",\"signal\":{\"name\":\"a\"},\n\"repeat\":{}}"), 3, 10, "steps[0].repeat", "an object", "no such key: a step with signal has"},
    {OF("", "{\"name\":\"b\",\"signal\":{\"name\":\"a\"},\n\"undo\":\"none\"}"), 3, 8, "steps[0].undo", "\"none\"", "no such key"},
    {OF("", "{\"signal\":{\"name\":\"a\"}}"), 2, 1, "steps[0].name", "nothing", "a key \"name\""},
    {TOP(",\n\"on_signal\":7"), 2, 13, "on_signal", "7", "an object of 1 to 20 names"},
    {TOP(",\n\"on_signal\":{}"), 2, 13, "on_signal", "an object", "an object of 1 to 20 names"},
    {TOP(",\n\"on_signal\":{\"stop\":\"pause\"}"), 2, 21, "on_signal.stop", "\"pause\"", "undo"},
    {OF(",\"on_signal\":{\"a\":\"undo\"}", SIGNAL("b", "{\"name\":\"a\"}")), 1, 45, "on_signal.a", "\"undo\"", "a name that no step waits for"},
    {"{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "],\"on_undo\":[\n" SIGNAL("b", "{\"name\":\"a\"}") "]}", 2, 22, "on_undo[0].signal", "an object", "an agent: on_undo has no other kinds"},
};
/* clang-format on */

static void every_mistake_has_its_place(void **state)
{
    (void)state;
    expect_mistakes(mistake_cases, COUNT_OF(mistake_cases));
}

static size_t warnings_of(const char *match, struct mistakes *ret)
{
    static struct mistakes m;
    CLEANUP(buf_fini) struct buf text = {0};
    struct definition *d = NULL;

    buf_fmt(&text, OF("", SIGNAL("b", "{\"name\":\"a\",\"match\":\"%s\"}")), match);
    CHECK(definition_parse(buf_view(&text), DEFINITION_JSON, &d, &m, ret) == ERR_OK, "%s", match);
    definition_free(d);
    return ret->count;
}

static void paths_that_can_never_be_there_are_warned_of(void **state)
{
    static struct mistakes w;
    (void)state;

    CHECK(warnings_of(".data.amount > 1 and .name == \\\"a\\\"", &w) == 0, "what it sees");
    CHECK(warnings_of(".dat.amount > 1", &w) == 1 && strstr(w.list[0].expected, ".data"), "a slip");
    CHECK(warnings_of(".name.first", &w) == 1, "a name is a text");
}

static bool matches(const char *match, const char *data)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    struct world w = {.output = {"{\"id\":7}"}};

    buf_fmt(&text, OF("", STEP("a", "") "," SIGNAL("b", "{\"name\":\"s\",\"match\":\"%s\"}")),
            match);
    struct definition *d = defined(text.ptr);
    struct scope s = scope_of(d, "{\"total\":100}", &w);
    bool is = definition_match(&s, 1, SLICE("s"), slice_of(data), &a);
    definition_free(d);
    return is;
}

static void a_signal_matches(void **state)
{
    (void)state;

    CHECK(matches(".data.amount >= .input.total", "{\"amount\":100}"), "enough");
    CHECK(!matches(".data.amount >= .input.total", "{\"amount\":99}"), "too little");
    CHECK(matches(".data.id == .steps.a.output.id", "{\"id\":7}"), "the output of a step");
    CHECK(matches(".name == \\\"s\\\"", "null"), "its name");
    CHECK(!matches(".data.a.b.c", "7"), "an expression that fails says no");
    CHECK(!matches(".data | error", "\"oh\""), "so does one that raises an error");
    CHECK(!matches(".data", "null"), "null is no");
}

#define SAYS(input) \
    "{\"name\":\"x\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\",\"input\":\"" input "\"}"
#define TWO SIGNAL("b", "{\"name\":[\"paid\",\"refused\"]}") "," SIGNAL("c", "{\"name\":\"paid\"}")

static void urls_are_what_expressions_see(void **state)
{
    static const struct {
        const char *input, *expected;
        int urls; /* so many were made */
    } cases[] = {
        {"${ .task.signals.paid }", "\"https://x/paid\"", 3},
        {"${ .task.signals }",
         "{\"cancelled\":\"https://x/cancelled\",\"paid\":\"https://x/paid\",\"refused\":"
         "\"https://x/refused\"}",
         3},
        {"${ .task.id } ${ .task.signals.refused }", "\"o-17 https://x/refused\"", 3},
        {"${ .task | .signals.paid }", "\"https://x/paid\"", 3},
        {"${ .task[\\\"signals\\\"].paid }", "\"https://x/paid\"", 3},
        {"${ .task.id }", "\"o-17\"", 0}, /* it costs nothing */
        /* A task that is passed on whole does not include the URLs. */
        {"${ .task | has(\\\"id\\\") }", "true", 0},
        {"${ .task }", "{\"id\":\"o-17\",\"workflow\":\"order\"}", 0},
        {"${ .task | has(\\\"sig\\\" + \\\"nals\\\") }", "false", 0},
        {"${ . | .task | has(\\\"sig\\\" + \\\"nals\\\") }", "false", 0},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf text = {0};
        struct slice json = SLICE_NONE;
        struct world w = {0};
        struct error e = {0};
        buf_fmt(&text, OF(",\"on_signal\":{\"cancelled\":\"undo\"}", SAYS("%s") "," TWO),
                cases[i].input);
        struct definition *d = defined(text.ptr);
        struct scope s = scope_of(d, "{}", &w);
        CHECK(definition_step_input(&s, 0, &a, &json, &e) == ERR_OK, "%s", e.text);
        CHECK(slice_is(json, cases[i].expected), "%s: %.*s", cases[i].input, SLICE_ARG(json));
        CHECK(w.urls == cases[i].urls, "%s: %d", cases[i].input, w.urls);
        definition_free(d);
    }
}

static void a_url_of_no_signal_is_warned_of(void **state)
{
    static struct mistakes m, w;
    static const struct {
        const char *text, *expected; /* NULL: no warning */
    } cases[] = {
        {OF("", SAYS("${ .task.signals.paid }") "," TWO), NULL},
        {OF("", SAYS("${ .task.signals.refuse }") "," TWO), "did you mean .refused?"},
        {OF("", SAYS("${ .task.signals.x }") "," TWO),
         ".paid or .refused of the workflow's signals"},
        {OF("", SAYS("${ .task.signals.x }") "," STEP("b", "")),
         ".id, .workflow, .version or .submitted_at of the task"},
        {OF(",\"on_signal\":{\"stop\":\"undo\"}", SAYS("${ .task.signals.stop }")), NULL},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct definition *d = NULL;
        CHECK(definition_parse(slice_of(cases[i].text), DEFINITION_JSON, &d, &m, &w) == ERR_OK,
              "%s", cases[i].text);
        CHECK(w.count == (cases[i].expected ? 1 : 0), "%s: %zu", cases[i].text, (size_t)w.count);
        if (cases[i].expected)
            CHECK(strcmp(w.list[0].expected, cases[i].expected) == 0, "%s", w.list[0].expected);
        definition_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_times_are_read),
        cmocka_unit_test(each_word_needs_the_grammar),
        cmocka_unit_test(every_mistake_has_its_place),
        cmocka_unit_test(paths_that_can_never_be_there_are_warned_of),
        cmocka_unit_test(a_signal_matches),
        cmocka_unit_test(urls_are_what_expressions_see),
        cmocka_unit_test(a_url_of_no_signal_is_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
