/* Tests of scope.c: inputs, conditions and outputs of steps as they are evaluated on the values
 * of a task, the checks of a task's input, and the limits of an evaluation. */

#include "definition/definition_test_kit.h"

#include <stdlib.h>

/* ---- inputs, conditions, outputs ---- */

static void inputs_see_input_steps_and_task(void **state)
{
    static const struct {
        const char *template, *result; /* "!": the rest is in the error message */
    } in[] = {
        {"{\"sku\":\"${ .input.sku }\"}", "{\"sku\":\"A-1\"}"},
        {"\"${ .input.quantity }\"", "2.50"},
        {"\"n=${ .input.quantity }\"", "\"n=2.50\""},
        {"\"${ .input }\"", "{ \"sku\":\"A-1\", \"quantity\":2.50,\"total\":0 }"},
        {"\"x ${ .input }\"",
         "\"x {\\\"sku\\\":\\\"A-1\\\",\\\"quantity\\\":2.50,\\\"total\\\":0}\""},
        {"[1, {\"a\": [\"${ .steps.a.output.id }\", null]}]", "[1,{\"a\":[\"r-1\",null]}]"},
        {"\"${ .steps.a.input.k }-${ .steps.a.output.id }\"", "\"v-r-1\""},
        {"\"${ .task.id }\"", "\"o-17\""},
        {"{\"raw\": [1.0,  \"\\u00e9\"]}", "{\"raw\": [1.0,  \"\\u00e9\"]}"},
        {"\"$${ .input.sku }\"", "\"${ .input.sku }\""},
        {"\"a $${x} ${ 1 + 1 } b\"", "\"a ${x} 2 b\""},
        {"{\"a\": [\"$${x}\", 1]}", "{\"a\":[\"${x}\",1]}"},
        {"\"$$${ 1 }\"", "\"$${ 1 }\""},
        {"\"100$ and {}\"", "\"100$ and {}\""},
        {"\"${ \\\"}\\\" }\"", "\"}\""},
        {"\"${ {a: {b: \\\"}${\\\"}} }\"", "{\"a\":{\"b\":\"}${\"}}"},
        {"\"${ \\\"\\\\(.input.sku)!\\\" }\"", "\"A-1!\""},
        {"\"${ .input.sku }${ .input.sku }\"", "\"A-1A-1\""},
        {"\" ${ 1 }\"", "\" 1\""},
        {"\"${ null }\"", "null"},
        {"\"n: ${ null }\"", "\"n: null\""},
        {"{\"${ 1 }\": 2}", "{\"${ 1 }\": 2}"},
        {"{\"${ 1 }\": \"${ 2 }\"}", "{\"${ 1 }\":2}"},
        {"\"${ .input.sku.x }\"",
         "!steps[1].input of step \"b\": ${ .input.sku.x }: column 12: cannot index string"},
        {"\"${ .input.list[] }\"", "!cannot iterate over null"},
        {"\"${ empty }\"", "!yields no value"},
        {"\"${ 1, 2 }\"", "!yields several values"},
        {"\"${ .steps | keys }\"", "[\"a\",\"b\"]"},
        {"\"${ .steps | map(.output.id) }\"", "[\"r-1\",null]"},
        {"\"${ keys }\"", "[\"input\",\"steps\",\"task\"]"},
        {"\"${ [.input.sku, .steps.a.output.id] | join(\\\"/\\\") }\"", "\"A-1/r-1\""},
        {"\"${ .steps[.input.name // \\\"a\\\"].output.id }\"", "\"r-1\""},
        {"\"${ if .input.total > 0 then .steps.a.output.id else .task.id end }\"", "\"o-17\""},
        {"\"\xc3\xa9 ${ .input.sku } \\n\"", "\"\xc3\xa9 A-1 \\n\""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        CLEANUP(arena_fini) struct arena a = {0};
        struct world w = {.input = {"{\"k\":\"v\"}"}, .output = {"{\"id\":\"r-1\"}"}};
        struct slice ret = SLICE_NONE;
        struct error e = {0};
        buf_fmt(&b,
                "{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP(
                    "a", "") ","
                             "{\"name\":\"b\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\","
                             "\"input\":%s}]}",
                in[i].template);
        struct definition *d = defined(b.ptr);
        struct scope s = scope_of(d, "{ \"sku\":\"A-1\", \"quantity\":2.50,\"total\":0 }", &w);
        enum err err = definition_step_input(&s, 1, &a, &ret, &e);
        if (in[i].result[0] == '!')
            CHECK(err == ERR_INVALID && strstr(e.text, in[i].result + 1), "%s: %s", in[i].template,
                  e.text);
        else
            CHECK(err == ERR_OK && slice_is(ret, in[i].result), "%s gives %.*s %s", in[i].template,
                  SLICE_ARG(ret), e.text);
        definition_free(d);
    }
}

/* d follows a, which failed and was allowed to (continue), b, which was skipped, and c. */
static void expressions_see_how_a_step_ended(void **state)
{
    static const struct {
        const char *template, *result;
    } in[] = {
        {"\"${ .steps.a.state }\"", "\"failed\""},
        {"\"${ .steps.a.error }\"",
         "{\"code\":\"declined\",\"message\":\"it was said \\\"so\\\"\"}"},
        {"\"${ .steps.a.error.code }\"", "\"declined\""},
        {"\"${ .steps.a.error.code == \\\"declined\\\" }\"", "true"},
        {"\"${ .steps.a.error.message | length }\"", "16"},
        {"\"${ .steps.b.state == \\\"skipped\\\" }\"", "true"},
        {"\"${ .steps.b.error }\"", "null"},
        {"\"${ .steps.b.error.code }\"", "null"},
        {"\"${ .steps | map(.state) | sort }\"",
         "[\"completed\",\"failed\",\"skipped\",\"waiting\"]"},
        {"\"${ .steps.c }\"",
         "{\"input\":null,\"output\":7,\"state\":\"completed\",\"error\":null}"},
        {"\"${ [.steps[(\\\"a\\\",\\\"b\\\",\\\"c\\\")] | select(.error) | .state] }\"",
         "[\"failed\"]"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        CLEANUP(arena_fini) struct arena a = {0};
        struct world w = {.output = {NULL, NULL, "7"},
                          .state = {STEP_FAILED, STEP_SKIPPED, STEP_COMPLETED, STEP_WAITING},
                          .code = {"declined"}};
        struct slice ret = SLICE_NONE;
        struct error e = {0};
        buf_fmt(&b,
                "{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "," STEP(
                    "b", "") "," STEP("c", "") ","
                                               "{\"name\":\"d\",\"agent\":\"x\",\"action\":\"y\","
                                               "\"undo\":\"none\",\"input\":%s}]}",
                in[i].template);
        struct definition *d = defined(b.ptr);
        struct scope s = scope_of(d, "{}", &w);
        CHECK(definition_step_input(&s, 3, &a, &ret, &e) == ERR_OK, "%s", e.text);
        CHECK(slice_is(ret, in[i].result), "%s gives %.*s", in[i].template, SLICE_ARG(ret));
        definition_free(d);
    }
}

static void an_undo_and_the_output_see_why(void **state)
{
    static const char text[] =
        "{\"intact\":1,\"workflow\":\"w\",\"steps\":[{\"name\":\"a\",\"agent\":\"x\","
        "\"action\":\"y\",\"undo\":{\"action\":\"z\",\"input\":"
        "\"${ .task.error.step }: ${ .task.error.message }\"}}],"
        "\"output\":{\"code\":\"${ .task.error.code }\"}}";
    struct definition *d = defined(text);
    struct world w = {.error = "{\"step\":\"b\",\"code\":\"declined\",\"message\":\"no\"}"};
    struct scope s = scope_of(d, "{}", &w);
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice ret = SLICE_NONE;
    struct error e = {0};
    (void)state;

    CHECK(definition_undo_input(&s, 0, &a, &ret, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_is(ret, "\"b: no\""), "%.*s", SLICE_ARG(ret));
    CHECK(definition_output(&s, &a, &ret, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_is(ret, "{\"code\":\"declined\"}"), "%.*s", SLICE_ARG(ret));
    w.error = "null";
    CHECK(definition_output(&s, &a, &ret, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_is(ret, "{\"code\":null}"), "%.*s", SLICE_ARG(ret));
    definition_free(d);
}

static void only_what_is_looked_at_is_asked_for(void **state)
{
    static const struct {
        const char *template;
        int asked;
    } in[] = {
        {"{\"a\":1}", 0},
        {"\"${ .input.x }\"", 0},
        {"\"${ .task.id }\"", 0},
        {"\"${ .steps.a.output }\"", 1},
        {"\"${ .steps.a.output } ${ .steps.a.input }\"", 2},
        {"\"${ .steps[\\\"b\\\"].output | .id }\"", 1},
        {"[\"${ .steps.a.output }\", \"${ .steps.b.output }\"]", 2},
        {"\"${ .steps.a.state }${ .steps.a.state }\"", 1},
        {"\"${ .steps.a.error.code }${ .steps.b.input }\"", 2},
        {"\"${ .steps.a.stat }\"", 0},
        {"\"${ .steps.a }\"", 4},
        {"\"${ .steps.a }${ .steps.a.output }\"", 4},
        {"\"${ .steps }\"", 12},
        {"\"${ . | length }\"", 12},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        CLEANUP(arena_fini) struct arena a = {0};
        struct world w = {0};
        struct slice ret = SLICE_NONE;
        struct error e = {0};
        buf_fmt(&b,
                "{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "," STEP(
                    "b", "") ","
                             "{\"name\":\"c\",\"agent\":\"x\",\"action\":\"y\",\"undo\":\"none\","
                             "\"input\":%s}]}",
                in[i].template);
        struct definition *d = defined(b.ptr);
        struct scope s = scope_of(d, "{}", &w);
        CHECK(definition_step_input(&s, 2, &a, &ret, &e) == ERR_OK, "%s", e.text);
        CHECK(w.asked == in[i].asked, "%s asked %d times", in[i].template, w.asked);
        definition_free(d);
    }
}

static void the_order_example_evaluates(void **state)
{
    struct definition *d = defined(order_text);
    struct world w = {.input = {"{\"sku\":\"A-1\",\"quantity\":2}"},
                      .output = {"{\"id\":\"r-1\"}", NULL, "{\"id\":\"p-9\"}"}};
    struct scope s = scope_of(d, "{\"sku\":\"A-1\",\"quantity\":2,\"total\":5}", &w);
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice ret = SLICE_NONE;
    struct error e = {0};
    bool yes = false;
    (void)state;

    CHECK(definition_step_input(&s, 0, &a, &ret, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_is(ret, "{\"sku\":\"A-1\",\"quantity\":2}"), "%.*s", SLICE_ARG(ret));
    CHECK(definition_step_input(&s, 2, &a, &ret, &e) == ERR_OK && slice_eq(ret, s.input),
          "the task's");
    CHECK(definition_undo_input(&s, 0, &a, &ret, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_is(ret, "{\"reservation\":\"r-1\"}"), "%.*s", SLICE_ARG(ret));
    CHECK(definition_undo_input(&s, 1, &a, &ret, &e) == ERR_OK, "%s", e.text);
    CHECK(slice_is(ret, "{\"input\":null,\"output\":null}"), "%.*s", SLICE_ARG(ret));
    CHECK(definition_output(&s, &a, &ret, &e) == ERR_OK && slice_is(ret, "{\"parcel\":\"p-9\"}"),
          "%.*s", SLICE_ARG(ret));
    CHECK(definition_condition(&s, 1, &a, &yes, &e) == ERR_OK && yes, "%s", e.text);
    CHECK(definition_condition(&s, 0, &a, &yes, &e) == ERR_OK && yes,
          "no condition is always true");
    s.input = SLICE("{\"total\":0}");
    CHECK(definition_condition(&s, 1, &a, &yes, &e) == ERR_OK && !yes, "total is 0");
    s.input = SLICE("5");
    CHECK(definition_condition(&s, 1, &a, &yes, &e) == ERR_INVALID, "no object");
    CHECK(begins(e.text,
                 "steps[1].if of step \"charge\": .input.total > 0: column 7: cannot index number"),
          "%s", e.text);
    w.output[2] = "{broken";
    CHECK(definition_output(&s, &a, &ret, &e) == ERR_CORRUPT, "what we recorded does not parse");
    definition_free(d);
    d = graph_of("a");
    s.definition = d;
    CHECK(definition_output(&s, &a, &ret, &e) == ERR_OK && !ret.ptr, "no output is NONE");
    definition_free(d);
}

static void a_result_stays_within_its_limits(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct definition *d = defined(ONE(",\"input\":[\"${ .input }\"]"));
    struct world w = {0};
    struct slice ret = SLICE_NONE;
    struct error e = {0};
    (void)state;
    for (int i = 0; i < EXPRESSION_DEPTH_MAX; i++)
        buf_str(&b, "[");
    for (int i = 0; i < EXPRESSION_DEPTH_MAX; i++)
        buf_str(&b, "]");
    struct scope s = scope_of(d, b.ptr, &w);
    CHECK(definition_step_input(&s, 0, &a, &ret, &e) == ERR_INVALID, "one level too deep");
    CHECK(strstr(e.text, "nested too deeply"), "%s", e.text);
    s.input = (struct slice){b.ptr + 1, b.len - 2};
    CHECK(definition_step_input(&s, 0, &a, &ret, &e) == ERR_OK, "%s", e.text);
    definition_free(d);

    d = defined(ONE(",\"input\":[\"${ \\\"x\\\" * 3000000 }\",\"${ \\\"x\\\" * 3000000 }\"]"));
    s.definition = d;
    CHECK(definition_step_input(&s, 0, &a, &ret, &e) == ERR_INVALID, "too long");
    CHECK(strstr(e.text, "longer than"), "%s", e.text);
    definition_free(d);
}

/* ---- inputs of a task ---- */

static void an_input_is_checked_and_completed(void **state)
{
    static const char inputs[] = TOP(",\"inputs\":{\"s\":{\"type\":\"string\",\"required\":true},"
                                     "\"i\":{\"type\":\"integer\",\"default\":1},"
                                     "\"n\":{\"type\":\"number\"},\"b\":{\"type\":\"boolean\"},"
                                     "\"a\":{\"type\":\"array\",\"default\":[]},"
                                     "\"o\":{\"type\":\"object\"},\"any_of\":{\"type\":\"any\"}}");
    static const struct {
        const char *input, *result; /* "!": the rest is in the error message */
    } in[] = {
        {"{\"s\":\"x\",\"i\":2,\"a\":[1]}", "{\"s\":\"x\",\"i\":2,\"a\":[1]}"},
        {" {\"s\":\"x\",  \"i\":2,\"a\":[1]}", " {\"s\":\"x\",  \"i\":2,\"a\":[1]}"},
        {"{\"s\":\"x\"}", "{\"s\":\"x\",\"i\":1,\"a\":[]}"},
        {"{\"s\":\"\\u00e9\",\"n\":1.50,\"b\":false,\"o\":{ },\"any_of\":null}",
         "{\"s\":\"\\u00e9\",\"n\":1.50,\"b\":false,\"o\":{ },\"any_of\":null,\"i\":1,\"a\":[]}"},
        {"{\"s\":\"x\",\"i\":123456789012345678901234567890,\"a\":[]}",
         "{\"s\":\"x\",\"i\":123456789012345678901234567890,\"a\":[]}"},
        {"{}", "!input \"s\" is missing, expected a string"},
        {"null", "!input \"s\" is missing"},
        {"[]", "!input: found an array, expected an object"},
        {"{\"s\":5}", "!input \"s\": found 5, expected a string"},
        {"{\"s\":\"x\",\"i\":1.5}", "!input \"i\": found 1.5, expected an integer"},
        {"{\"s\":\"x\",\"i\":\"1\"}", "!input \"i\": found \"1\", expected an integer"},
        {"{\"s\":\"x\",\"b\":null}", "!input \"b\": found null, expected true or false"},
        {"{\"s\":\"x\",\"o\":[]}", "!input \"o\": found [], expected an object"},
        {"{\"s\":\"x\",\"a\":{}}", "!input \"a\": found {}, expected an array"},
        {"{\"s\":\"x\",\"n\":true}", "!input \"n\": found true, expected a number"},
        {"{\"s\":\"x\",\"any-of\":1}", "!input \"any-of\" is unknown, did you mean \"any_of\"?"},
        {"{\"s\":\"x\",\"foo\":1}", "!input \"foo\" is unknown"},
        {"{\"foo\":1,\"i\":\"1\"}", "!input \"foo\" is unknown; input \"s\" is missing, expected a "
                                    "string; input \"i\": found \"1\""},
    };
    struct definition *d = defined(inputs);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct slice ret = SLICE_NONE;
        struct error e = {0};
        enum err err = definition_check_input(d, slice_of(in[i].input), &a, &ret, &e);
        if (in[i].result[0] == '!')
            CHECK(err == ERR_INVALID && strstr(e.text, in[i].result + 1), "%s: %s", in[i].input,
                  e.text);
        else
            CHECK(err == ERR_OK && slice_is(ret, in[i].result), "%s gives %.*s", in[i].input,
                  SLICE_ARG(ret));
    }
    definition_free(d);
}

static void without_inputs_any_value_goes(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct definition *d = defined(ONE(""));
    struct slice ret = SLICE_NONE;
    struct error e = {0};
    (void)state;
    CHECK(definition_check_input(d, SLICE("[1, 2]"), &a, &ret, &e) == ERR_OK
              && slice_is(ret, "[1, 2]"),
          "any");
    CHECK(definition_check_input(d, SLICE_NONE, &a, &ret, &e) == ERR_OK && slice_is(ret, "null"),
          "none");
    CHECK(definition_check_input(d, SLICE("{"), &a, &ret, &e) == ERR_INVALID, "no JSON");
    definition_free(d);
    d = defined(TOP(",\"inputs\":{}"));
    CHECK(definition_check_input(d, SLICE("null"), &a, &ret, &e) == ERR_OK && slice_is(ret, "{}"),
          "no inputs");
    CHECK(definition_check_input(d, SLICE("{\"a\":1}"), &a, &ret, &e) == ERR_INVALID,
          "none are known");
    definition_free(d);
}

static char *zeros(size_t count)
{
    char *text = malloc(2 * count + 2);

    ASSERT(text);
    text[0] = '[';
    for (size_t i = 0; i < count; i++)
        memcpy(text + 1 + 2 * i, i + 1 < count ? "0," : "0]", 2);
    text[2 * count + 1] = 0;
    return text;
}

/* Neither memory nor time exceeds the budget, whatever an expression refers to. A value that is
 * passed on unchanged may be large, and so may members beside the one referred to. */
static void what_an_expression_looks_at_has_a_bound(void **state)
{
    enum { TREE_MAX = 64 << 20 };
    static const struct {
        const char *template, *result; /* "!": the rest is in the error message */
        unsigned least;                /* steps */
    } in[] = {
        {"\"${ .steps | length }\"", "!reading the output of a step: ", 0},
        {"\"${ .steps.a.output | length }\"", "!reading the output of a step: ", 0},
        {"\"${ .input.zeros[0] }\"", "!reading the input of the task: ", 0},
        {"\"${ .input.some | length }\"", "20000", 10000},
        {"\"${ .input.n }\"", "1", 0},
        {"{\"n\": \"${ .input.n + 1 }\", \"m\": \"${ .input.m }\"}", "{\"n\":2,\"m\":3}", 0},
        {"\"${ .input.zeros }\"", "[0,0,", 0},
        {"\"${ .steps.a.output }\"", "[0,0,", 0},
        {"\"x ${ .input.zeros }\"", "!reading the input of the task: ", 0},
        {"\"${ .input.zeros.x? // 5 }\"", "5", 0},
    };
    char *long_array = zeros(1000000);
    char *some = zeros(20000);
    CLEANUP(buf_fini) struct buf input = {0};
    (void)state;

    buf_fmt(&input, "{\"n\":1,\"zeros\":%s,\"m\":3,\"some\":%s}", long_array, some);
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        CLEANUP(arena_fini) struct arena a = {0};
        struct world w = {.output = {long_array, long_array, long_array}};
        struct slice ret = SLICE_NONE;
        struct error e = {0};
        buf_fmt(&b,
                "{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", "") "," STEP(
                    "b", "") "," STEP("c", "") ","
                                               "{\"name\":\"d\",\"agent\":\"x\",\"action\":\"y\","
                                               "\"undo\":\"none\",\"input\":%s}]}",
                in[i].template);
        struct definition *d = defined(b.ptr);
        struct scope s = scope_of(d, input.ptr, &w);
        uint64_t spent = 0;
        s.spent = &spent;
        enum err err = definition_step_input(&s, 3, &a, &ret, &e);
        CHECK(spent >= in[i].least, "%s costs %llu", in[i].template, (unsigned long long)spent);
        if (in[i].result[0] == '!')
            CHECK(err == ERR_INVALID && strstr(e.text, in[i].result + 1) && strstr(e.text, "steps"),
                  "%s: %s", in[i].template, e.text);
        else
            CHECK(err == ERR_OK && strncmp(ret.ptr, in[i].result, strlen(in[i].result)) == 0,
                  "%s gives %.*s %s", in[i].template, SLICE_ARG(slice_cut(ret, 60)), e.text);
        CHECK(a.total < TREE_MAX, "%s took %zu bytes", in[i].template, a.total);
        definition_free(d);
    }
    free(long_array);
    free(some);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_see_input_steps_and_task),
        cmocka_unit_test(expressions_see_how_a_step_ended),
        cmocka_unit_test(an_undo_and_the_output_see_why),
        cmocka_unit_test(only_what_is_looked_at_is_asked_for),
        cmocka_unit_test(the_order_example_evaluates),
        cmocka_unit_test(a_result_stays_within_its_limits),
        cmocka_unit_test(what_an_expression_looks_at_has_a_bound),
        cmocka_unit_test(an_input_is_checked_and_completed),
        cmocka_unit_test(without_inputs_any_value_goes),
    };
    return cmocka_run_group_tests_name("definition-evaluate", tests, NULL, NULL);
}
