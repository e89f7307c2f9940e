/* Definitions with steps that are repeated: what is read, mistakes, and the condition that is
 * evaluated. */

#include "base/when.h"
#include "definition/definition_test_kit.h"
#include "definition/grammar.h"

#define OF(more, steps)    "{\"intact\":1,\"workflow\":\"w\"" more ",\"steps\":[\n" steps "]}"
#define UNDO               "\"undo\":\"none\""
#define CALL(undo, repeat) "{\"name\":\"r\",\"agent\":\"x\",\"action\":\"y\"," undo "," repeat "}"
#define REPEAT(rule)       OF("", CALL(UNDO, "\n\"repeat\":" rule))
#define RULE               "{\"until\":\".output.ok\",\"every\":\"5s\",\"for\":\"2h\"}"

static struct definition *with_input(const char *input)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text, OF("", CALL(UNDO, "\"input\":%s,\"repeat\":" RULE)), input);
    return defined(text.ptr);
}

static void the_rule_is_read(void **state)
{
    struct definition *d = defined(
        OF("", CALL(UNDO, "\"repeat\":{\"until\":\".output.ok\",\"every\":\"5s\",\"factor\":1.5,"
                          "\"max_every\":\"1m\",\"for\":\"2h\"}") "," STEP("b", "")));
    const struct repeat_rule *r = &d->workflow.steps[0].repeat;
    (void)state;

    CHECK(step_is_repeated(&d->workflow.steps[0]) && !step_is_repeated(&d->workflow.steps[1]),
          "one is repeated");
    CHECK(r->every_ms == 5000 && r->factor_milli == 1500 && r->max_every_ms == 60000
              && r->for_ms == 2 * MS_PER_H && !r->input_varies,
          "the rule");
    CHECK(d->steps[0].until && !d->steps[1].until && d->has_decisions, "the condition");
    CHECK(grammar_of(&d->workflow) == GRAMMAR_REPEAT, "its words are new");
    definition_free(d);
    d = defined(REPEAT(RULE));
    CHECK(d->workflow.steps[0].repeat.factor_milli == 1000, "no factor");
    definition_free(d);
    d = defined("{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "],\"on_undo\":[" CALL(
        UNDO, "\"repeat\":" RULE) "]}");
    CHECK(step_is_repeated(&d->workflow.steps[1]), "steps of on_undo, too");
    definition_free(d);
}

static void check_varies(const char *input, bool varies)
{
    struct definition *d = with_input(input);

    CHECK(d->workflow.steps[0].repeat.input_varies == varies, "%s", input);
    definition_free(d);
}

static void whether_the_input_varies_is_known(void **state)
{
    (void)state;
    check_varies("1", false);
    check_varies("\"${ .input.round }\"", false);
    check_varies("{\"n\":[\"at ${ .round + 1 }\"]}", true);
    check_varies("\"${ . }\"", true);
    struct definition *d =
        defined(OF("", "{\"name\":\"r\",\"agent\":\"x\",\"http\":{\"method\":\"GET\","
                       "\"path\":\"/a/${ .round }\"}," UNDO ",\"repeat\":" RULE "}"));
    CHECK(d->workflow.steps[0].repeat.input_varies, "a request");
    definition_free(d);
}

/* clang-format off */
static const struct mistake_case mistake_cases[] = {
    {REPEAT("7"), 3, 10, "steps[0].repeat", "7", "an object"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"5s\"}"), 3, 10, "steps[0].repeat.for", "nothing", "a key \"for\""},
    {REPEAT("{\"every\":\"5s\",\"for\":\"1h\"}"), 3, 10, "steps[0].repeat.until", "nothing", "a key \"until\""},
    {REPEAT("{\"until\":\".output.ok\",\"for\":\"1h\"}"), 3, 10, "steps[0].repeat.every", "nothing", "a key \"every\""},
    {REPEAT("{\"until\":true,\"every\":\"5s\",\"for\":\"1h\"}"), 3, 19, "steps[0].repeat.until", "true", "an expression in a string"},
    {REPEAT("{\"until\":\".output.ok ==\",\"every\":\"5s\",\"for\":\"1h\"}"), 3, 33, "steps[0].repeat.until", "the end of the expression", "an expression"},
    {REPEAT("{\"until\":\".steps.r.output\",\"every\":\"5s\",\"for\":\"1h\"}"), 3, 26, "steps[0].repeat.until", "step \"r\"", "a step that ends before"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"0s\",\"for\":\"1h\"}"), 3, 40, "steps[0].repeat.every", "\"0s\"", "a duration longer than 0"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"5s\",\"for\":\"0s\"}"), 3, 51, "steps[0].repeat.for", "\"0s\"", "a duration longer than 0"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"5s\",\"for\":\"soon\"}"), 3, 51, "steps[0].repeat.for", "\"soon\"", "a duration"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"5s\",\"for\":\"1h\",\"factor\":0.9}"), 3, 65, "steps[0].repeat.factor", "0.9", "a number from 1"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"5s\",\"for\":\"1h\",\"factor\":\"2\"}"), 3, 65, "steps[0].repeat.factor", "\"2\"", "a number from 1"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"5s\",\"for\":\"1h\",\"max_every\":\"4s\"}"), 3, 68, "steps[0].repeat.max_every", "\"4s\"", "at least as long as every"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"5s\",\"for\":\"1h\",\"max_every\":\"0s\"}"), 3, 68, "steps[0].repeat.max_every", "\"0s\"", "a duration longer than 0"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"1s\",\"for\":\"10000s\"}"), 3, 51, "steps[0].repeat.for", "too many rounds", "10000 of them at most"},
    {REPEAT("{\"until\":\".output.ok\",\"every\":\"1s\",\"for\":\"1h\",\"times\":3}"), 3, 56, "steps[0].repeat.times", "key \"times\"", "one of until, every, factor, max_every, for"},
    {OF("", CALL("\"undo\":{\"action\":\"z\"}", "\n\"repeat\":" RULE)), 2, 45, "steps[0].undo", "an object", "undo: none beside repeat"},
    {OF("", CALL("\"pivot\":true", "\n\"repeat\":" RULE)), 3, 10, "steps[0].repeat", "repeat of a pivot", "undo: none beside repeat"},
    {OF("", "{\"name\":\"r\",\"wait\":\"1s\",\n\"repeat\":" RULE "}"), 3, 10, "steps[0].repeat", "an object", "no such key: a step with wait has"},
};
/* clang-format on */

static void every_mistake_has_its_place(void **state)
{
    (void)state;
    expect_mistakes(mistake_cases, COUNT_OF(mistake_cases));
}

static void rounds_are_bounded(void **state)
{
    (void)state;
    definition_free(
        defined(REPEAT("{\"until\":\".output.ok\",\"every\":\"1s\",\"for\":\"9999s\"}")));
    definition_free(defined(REPEAT("{\"until\":\".output.ok\",\"every\":\"1s\",\"factor\":2,"
                                   "\"for\":\"1000d\"}")));
}

/* A path that can never have a value is a warning. */
static void check_warnings(const char *text, const char *path)
{
    static struct mistakes m;
    static struct mistakes warnings;
    struct definition *d = NULL;

    CHECK(definition_parse(slice_of(text), DEFINITION_JSON, &d, &m, &warnings) == ERR_OK, "%s",
          text);
    CHECK(warnings.count == (path ? 1 : 0) && (!path || strcmp(warnings.list[0].path, path) == 0),
          "%s: %zu warnings", text, (size_t)warnings.count);
    definition_free(d);
}

static void what_an_expression_sees(void **state)
{
    (void)state;
    check_warnings(REPEAT(RULE), NULL);
    check_warnings(REPEAT("{\"until\":\".round > 3\",\"every\":\"5s\",\"for\":\"1h\"}"), NULL);
    check_warnings(REPEAT("{\"until\":\".round.x\",\"every\":\"5s\",\"for\":\"1h\"}"),
                   "steps[0].repeat.until");
    check_warnings(REPEAT("{\"until\":\"true\",\"every\":\"5s\",\"for\":\"1h\"}"),
                   "steps[0].repeat.until");
    check_warnings(OF("", CALL(UNDO, "\"repeat\":" RULE ",\"input\":\"${ .round }\"")), NULL);
    check_warnings(OF("", CALL(UNDO, "\"repeat\":" RULE ",\"input\":\"${ .output }\"")),
                   "steps[0].input");
    check_warnings(OF("", CALL(UNDO, "\"input\":\"${ .round }\"")), "steps[0].input");
    check_warnings(OF("", CALL(UNDO, "\"repeat\":" RULE) "," STEP("b", ",\"if\":\".round == 1\"")),
                   "steps[1].if");
}

/* ---- evaluation ---- */

static uint32_t third(void *arg, int step)
{
    (void)arg;
    CHECK(step == 0, "of step %d", step);
    return 3;
}

static enum err evaluate_until(const char *until, const char *output, bool *ret, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text, REPEAT("{\"until\":\"%s\",\"every\":\"5s\",\"for\":\"2h\"}"), until);
    struct definition *d = defined(text.ptr);
    struct world w = {.output = {output}};
    struct scope s = scope_of(d, "{\"n\":2}", &w);
    s.step_round = third;
    enum err err = definition_until(&s, 0, &a, ret, e);
    definition_free(d);
    return err;
}

static void the_condition_is_evaluated(void **state)
{
    static const struct {
        const char *until, *output;
        bool holds;
        const char *fails; /* how the message ends; NULL: it does not fail */
    } cases[] = {
        {".output.ok", "{\"ok\":true}", true, NULL},
        {".output.ok", "{\"ok\":false}", false, NULL},
        {".output.n > .input.n", "{\"n\":3}", true, NULL},
        {".output.n > .input.n", "{\"n\":2}", false, NULL},
        {".output == [1] and .round == 3", "[1]", true, NULL},
        {".round == 4", "1", false, NULL},
        {".task.id == .output", "\"o-17\"", true, NULL},
        {"keys == [\\\"input\\\",\\\"output\\\",\\\"round\\\",\\\"steps\\\",\\\"task\\\"]", "1",
         true, NULL},
        {".output.ok", "{}", false, ".output.ok: it gave null, expected true or false"},
        {".output.ok", "{\"ok\":\"yes\"}", false, "it gave a string, expected true or false"},
        {".output.ok", "[1]", false, ""},
        {".output.ok // false", "null", false, NULL},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct error e = {0};
        bool holds = !cases[i].holds;
        enum err err = evaluate_until(cases[i].until, cases[i].output, &holds, &e);
        const char *fails = cases[i].fails;
        CHECK(err == (fails ? ERR_INVALID : ERR_OK), "%s: %s", cases[i].until, e.text);
        CHECK(fails || holds == cases[i].holds, "%s of %s", cases[i].until, cases[i].output);
        CHECK(!fails
                  || (begins(e.text, "steps[0].repeat.until of step \"r\": ")
                      && strstr(e.text, fails)),
              "%s", e.text);
    }
}

static void check_input(const char *text, int step, const char *input)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct definition *d = defined(text);
    struct world w = {0};
    struct scope s = scope_of(d, "{}", &w);
    struct slice json = {0};
    struct error e = {0};

    s.step_round = third;
    CHECK(definition_step_input(&s, step, &a, &json, &e) == ERR_OK && slice_is(json, input),
          "%s: %s%.*s", text, e.text, SLICE_ARG(json));
    definition_free(d);
}

static void the_round_is_in_the_input(void **state)
{
    (void)state;
    check_input(OF("", CALL(UNDO, "\"input\":{\"n\":\"${ .round }\"},\"repeat\":" RULE)), 0,
                "{\"n\":3}");
    check_input(OF("", CALL(UNDO, "\"input\":\"round ${ .round }\",\"repeat\":" RULE)), 0,
                "\"round 3\"");
    check_input(OF("", CALL(UNDO, "\"input\":\"${ keys }\",\"repeat\":" RULE)), 0,
                "[\"input\",\"round\",\"steps\",\"task\"]");
    check_input(OF("", CALL(UNDO, "\"input\":\"${ keys }\"")), 0,
                "[\"input\",\"steps\",\"task\"]"); /* of other steps as ever */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rule_is_read),
        cmocka_unit_test(whether_the_input_varies_is_known),
        cmocka_unit_test(every_mistake_has_its_place),
        cmocka_unit_test(rounds_are_bounded),
        cmocka_unit_test(what_an_expression_sees),
        cmocka_unit_test(the_condition_is_evaluated),
        cmocka_unit_test(the_round_is_in_the_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
