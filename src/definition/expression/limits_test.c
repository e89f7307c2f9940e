/* Tests of the limits of expressions: steps and memory of an evaluation, nesting of expressions
 * and results, and that all expressions of one value share one budget. */

#include "base/test.h"

#include "definition/expression/expression.h"

static const struct json *parsed(struct arena *a, const char *text)
{
    struct json *j = NULL;
    struct json_fault f = {0};

    CHECK(json_parse(a, slice_of(text), &j, &f) == ERR_OK, "%s: %s", text, f.what);
    return j;
}

static enum err evaluate(struct arena *a, const char *text, const char *input,
                         const struct json **ret, struct error *e)
{
    struct expression *x = NULL;
    size_t column = 0;

    CHECK(expression_compile(slice_of(text), a, &x, &column, e) == ERR_OK, "%s: column %zu: %s",
          text, column, e->text);
    return expression_eval(x, parsed(a, input), a, ret, e);
}

/* Thirty levels of arrays (objects), each holding the level below twice: 2^30 members if
 * expanded. */
#define TWICE_6  "[., .] | [., .] | [., .] | [., .] | [., .] | [., .] |"
#define TWICE_30 TWICE_6 TWICE_6 TWICE_6 TWICE_6 TWICE_6
#define TWICE_6_OBJECT \
    "{a: ., b: .} | {a: ., b: .} | {a: ., b: .} | {a: ., b: .} | {a: ., b: .} | {a: ., b: .} |"
#define TWICE_30_OBJECT TWICE_6_OBJECT TWICE_6_OBJECT TWICE_6_OBJECT TWICE_6_OBJECT TWICE_6_OBJECT

/* ---- one expression ---- */

static void nobody_takes_more_than_the_limits(void **state)
{
    static const struct {
        const char *text, *story; /* NULL: it is barely within the limits */
    } greedy[] = {
        {"map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)"
         "|"
         "map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|map(.,.)|length",
         "steps"},
        {"[.[]|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.|.,.]",
         "steps"},
        {"[(\"a,\" * 12000 | split(\",\"))[] | 1.5 * 1.1] | length", "steps"}, /* many digits */
        {"\"x\" * 1000000000", "bytes"},
        {"\"0123456789\" * 1000 | . * 1000 | . * 1000", "bytes"},
        {"[\"0123456789\" * 100000 | ., ., ., ., . | . + .] | length", "bytes"},
        {"[\"0123456789\" * 300000 | ., .] | join(\"\")", "bytes"},
        {"(\"x\" * 1000000000)?", "bytes"},
        {"[(\"x\" * 1000000000)?]", "bytes"},
        {"(\"x\" * 1000000000) // 1", "bytes"},
        {"first(\"x\" * 1000000000)", "bytes"},
        /* loops */
        {"[range(1000000000)]", "more than"},
        {"last(range(1000000000))", "more than"},
        {"[range(0; 1; 1e-300)]", "steps"},
        {"isempty(range(1e17; 1e18; 0.5) | empty)", "steps"},
        {"any(range(1000000000); . < 0)", "steps"},
        {"all(range(1000000000); . >= 0)", "steps"},
        {"first(range(1000000000) | select(. < 0))", "steps"},
        {"[limit(1000000000; range(1000000000))]", "more than"},
        {"isempty(range(1000000000) | empty)", "more than"},
        {"[range(1000) | range(1000)]", "more than"},
        {"[range(1000)] | map_values(first(range(1000; 0; -1) | select(. == 0)))", "steps"},
        {"[range(1000)] | map(select(any(range(1000); . < 0)))", "steps"},
        {"[range(1000)] | with_entries(select(any(range(1000); . < 0)))", "steps"},
        {"[range(1000)] | sort_by(range(1000))", "more than"},
        /* shared values that would be endless if they were expanded */
        {"[1] | " TWICE_30 " flatten", "steps"},
        {"[1] | " TWICE_30 " flatten(29)", "steps"},
        {"[] | " TWICE_30 " flatten | length", "steps"},
        {"[1] | " TWICE_30 " tojson", "steps"},
        {"[1] | " TWICE_30 " tostring", "steps"},
        {"[1] | " TWICE_30 " \"\\(.)\"", "steps"},
        {"[1] | " TWICE_30 " . == [.[0], .[0]]", "steps"},
        {"[1] | " TWICE_30 " sort", "steps"},
        {"[1] | " TWICE_30 " unique", "steps"},
        {"[1] | " TWICE_30 " group_by(.)", "steps"},
        {"[1] | " TWICE_30 " min", "steps"},
        {"[1] | " TWICE_30 " max_by(.)", "steps"},
        {"[1] | " TWICE_30 " contains(.)", "steps"},
        {"[1] | " TWICE_30 " inside(.)", "steps"},
        {"[1] | " TWICE_30 " indices(.)", "steps"},
        {"[1] | " TWICE_30 " . - .", "steps"},
        {"[1] | " TWICE_30 " error", "steps"},
        {"{a: 1} | " TWICE_30_OBJECT " . * . == .", "more than"},
        /* texts */
        {"\"ab\" * 200000 | split(\"\")", "bytes"},
        {"\"ab\" * 200000 | split(\"a\")", "bytes"},
        {"\"ab\" * 200000 | indices(\"b\")", "bytes"},
        {"\"a\" * 2000000 | indices(\"a\" * 1000) | length", NULL},
        {"[\"a\" * 1000000, \"b\"] | [., ., ., .] | flatten | join(\"\")", "bytes"},
        {"\"a\" * 1000000 | [., ., ., ., .] | add", "bytes"},
        {"\"a\" * 1000000 | \"\\(.)\\(.)\\(.)\\(.)\"", "bytes"},
        {"[range(9)] | map(\"a\" * 1000000 | ascii_upcase | length)", "bytes"},
        {"[range(9)] | map(\"a\" * 1000000 | ltrimstr(\"a\") | length)", "bytes"},
        {"[range(9)] | map(\"a\" * 1000000 | .[1:] | length)", "bytes"},
        {"[range(9)] | map(\"a\" * 1000000 | tojson | length)", "bytes"},
        {"[range(99)] | map(\"a\" * 100000 | tojson | fromjson | length)", "too long"},
        {"\"[\" + \"1,\" * 100000 + \"1]\" | fromjson", "bytes"},
        {"\"[\" + \"{},\" * 20000 + \"1]\" | fromjson", "bytes"},
        {"[range(200)] | map(\"1\" * 900 | tonumber) | length", NULL},
        {"\"[\" * 1000 | fromjson", "nested deeper"},
        {"\"1\" * 2000000 | tonumber", "cannot be parsed"},
        {"\"1\" * 2000000 | fromjson | . + 1", "steps"},
        /* many members */
        {"[range(90000)] | sort", "bytes"},
        {"[range(12000)] | map(. % 10) | sort | sort", "steps"},
        {"[range(2000) | {\"k\\(.)\": 1}] | add", "steps"},
        {"[range(2000) | {key: \"k\\(.)\", value: 1}] | from_entries", "steps"},
        {"[range(900) | {(\"k\" * 3000 + \"\\(.)\"): 1}] | add", "bytes"},
        {"[range(120) | {(\"k\" * 6000 + \"\\(. + 1000)\"): 1}] | add | length", NULL},
        {"[range(2000)] - [range(2000) | . + 5000]", "steps"},
        {"[range(2000)] | contains([range(2000) | . + 1])", "steps"},
        {"[range(2000)] | indices([range(1000) | 0])", NULL},
        {"[range(2000) | 0] | indices([range(1000) | 0])", "steps"},
        {"[range(2000)] | [.[range(2000)]] | length", "steps"},
        {"[range(5000)] | [.[range(5000):]] | length", "bytes"},
        {"[range(1000)] | [., ., ., ., ., ., ., ., ., .] | [.[] + .[]] | length", "bytes"},
        {"[range(2000)] | [limit(100; range(100)) | 1] | length", NULL},
        {"[range(5000)] | group_by(-.) | map(group_by(.)) | flatten | sort_by(-.) | unique_by(-.)",
         "steps"},
        {"[range(20000)] | to_entries", "bytes"},
        {"[range(3000)] | [., ., ., ., ., ., ., ., ., .] | map(reverse) | map(keys) | length",
         "bytes"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(greedy); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct json *j = NULL;
        struct error e = {0};
        enum err err = evaluate(&a, greedy[i].text, "[1,2,3]", &j, &e);
        CHECK((err == ERR_OK) == !greedy[i].story, "%s: %s", greedy[i].text, e.text);
        CHECK(err == ERR_OK || strstr(e.text, greedy[i].story), "%s: %s", greedy[i].text, e.text);
        CHECK(a.total < 4 * (size_t)EXPRESSION_BYTES_MAX, "%s took %zu", greedy[i].text, a.total);
    }
}

static void repeat(struct buf *b, const char *text, int count)
{
    while (count-- > 0)
        buf_str(b, text);
}

/* Nesting of any kind and depth is a mistake, never a stack overflow. */
static void no_expression_nests_too_deeply(void **state)
{
    static const struct {
        const char *before, *inside, *after;
    } shapes[] = {
        {"(", "1", ")"},
        {"[", "1", "]"},
        {"{a:", "1", "}"},
        {"-", "1", ""},
        {"1+", "1", ""},
        {"1|", "1", ""},
        {".a", "", ""},
        {"[.", "", "]"},
        {"\"\\(", "1", ")\""},
        {"map(", "1", ")"},
        {"if 1 then ", "1", " else 2 end"},
        {"1//", "1", ""},
        {"if 1 then 2 elif ", "1 then 1 else 1 end", ""},
        {".[", "0", "]"},
        {".a?", "", ""},
        {"not|", "1", ""},
        {"1,", "1", ""},
        {"{\"\\(", "1", ")\":1}"},
        {".[1:", "0", "]"},
        {"first(", "1", ")"},
        {"1 and ", "1", ""},
        {".[]", "", ""},
        {"limit(1;", "1", ")"},
        {"[range(", "1", ")]|length"},
        {"sort_by(", "1", ")?"},
        {"map_values(", "1", ")?"},
        {"any(.;", "1", ")"},
        {"isempty(", "1", ")"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        bool refused = false;
        for (int depth = 1; depth < 40000; depth = depth < 120 ? depth + 1 : depth * 7) {
            CLEANUP(arena_fini) struct arena a = {0};
            CLEANUP(buf_fini) struct buf b = {0};
            struct expression *x = NULL;
            const struct json *j = NULL;
            struct error e = {0};
            size_t column = 0;
            repeat(&b, shapes[i].before, depth);
            buf_str(&b, shapes[i].inside);
            repeat(&b, shapes[i].after, depth);
            refused = expression_compile(buf_view(&b), &a, &x, &column, &e) != ERR_OK;
            if (!refused && expression_eval(x, parsed(&a, "{\"a\":null}"), &a, &j, &e) == ERR_OK)
                CHECK(j->raw.ptr, "%s", shapes[i].before);
            bool is_flat =
                strcmp(shapes[i].before, "1,") == 0; /* a list of any length is one node */
            CHECK(refused || depth < 101 || is_flat, "%s: %d levels", shapes[i].before, depth);
        }
        CHECK(refused, "%s", shapes[i].before);
    }
}

static void a_result_never_nests_deeper_than_a_task_can_hold(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    const struct json *j = NULL;
    struct error e = {0};
    (void)state;
    repeat(&b, "[", EXPRESSION_DEPTH_MAX);
    repeat(&b, "]", EXPRESSION_DEPTH_MAX);
    CHECK(evaluate(&a, b.ptr, "null", &j, &e) == ERR_OK, "%s", e.text);
    CHECK(evaluate(&a, "[.]", b.ptr, &j, &e) == ERR_INVALID, "one more");
    CHECK(strstr(e.text, "nested too deeply"), "%s", e.text);
}

/* ---- many expressions in one value ---- */

/* Evaluates an array with that many copies of the same string. */
static enum err evaluate_many(struct arena *a, const char *text, int count, const char *input,
                              struct error *e)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct template *t = NULL;
    struct slice result = SLICE_NONE;
    size_t offset = 0;

    json_open(&b, '[');
    while (count-- > 0)
        json_string(&b, slice_of(text));
    json_close(&b, ']');
    struct slice json = arena_copy(a, buf_view(&b));
    CHECK(template_compile(parsed(a, json.ptr), a, &t, &offset, e) == ERR_OK, "%s", e->text);
    return template_eval(t, parsed(a, input), a, &result, e);
}

static void all_expressions_of_a_value_share_their_limits(void **state)
{
    static const struct {
        const char *text;
        int count;
        const char *story;
    } greedy[] = {
        {"${ [range(10000)] | length }", 1000, "together make more than"},
        {"${ \"x\" * 4000000 | length }", 1000, "together make more than"},
        {"a ${ \"x\" * 1000000 }", 1000, "longer than"},
        {"${ \"x\" * 1000000 }", 1000, "longer than"},
        {"${ [.] }", 1000, "longer than"},
        {"${ . }", 1000, "longer than"},
        {"a ${ . } b ${ . }", 1000, "longer than"},
        {"${ length }", 20, NULL},
        {"${ length }", 1000, "together take more than"},
        {"a ${ \"\\\"\" * 1900000 }", 1, "steps"}, /* each has to be escaped */
        {"a ${ [.[0:9] | split(\"\") | select(range(400) >= 0)] }", 20, "steps"},
    };
    CLEANUP(buf_fini) struct buf big = {0};
    (void)state;
    buf_byte(&big, '"');
    for (int i = 0; i < 100000; i++)
        buf_str(&big, "0123456789");
    buf_byte(&big, '"');
    for (size_t i = 0; i < COUNT_OF(greedy); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct error e = {0};
        enum err err = evaluate_many(&a, greedy[i].text, greedy[i].count, big.ptr, &e);
        CHECK((err == ERR_OK) == !greedy[i].story, "%s: %s", greedy[i].text, e.text);
        CHECK(err == ERR_OK || strstr(e.text, greedy[i].story), "%s: %s", greedy[i].text, e.text);
        CHECK(a.total < 6 * (size_t)EXPRESSION_BYTES_MAX, "%s took %zu", greedy[i].text, a.total);
    }
}

static void a_failure_in_a_value_says_where(void **state)
{
    static const struct {
        const char *value, *story;
    } at[] = {
        {"\"${ .a.b }\"", "${ .a.b }: column 4: cannot index number with \"b\""},
        {"{\"x\":[1,{\"y z\":\"n: ${ .a.b }\"}]}",
         ".x[1][\"y z\"]: ${ .a.b }: column 4: cannot index number with \"b\""},
        {"{\"x\":{\"_y1\":\"${ 1, 2 }\"}}", ".x._y1: ${ 1, 2 }: yields several values"},
        {"[\"${ 1 }\",\"${ 1 }${ .a | keys }\"]",
         "[1]: ${ .a | keys }: column 7: number (1) has no keys"},
        {"[\"${ 1 + (.b | keys) + 123456789 + 123456789 + 123456789 + 123456789 + 123456789 + "
         "12345 }\"]",
         "[0]: ${ 1 + (.b | keys) + 123456789 + 123456789 + 123456789 + 123456789 + "
         "123456789 + 1...}: "
         "column 12: null has no keys"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(at); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct template *t = NULL;
        struct slice result = SLICE_NONE;
        struct error e = {0};
        size_t offset = 0;
        CHECK(template_compile(parsed(&a, at[i].value), &a, &t, &offset, &e) == ERR_OK, "%s",
              e.text);
        CHECK(template_eval(t, parsed(&a, "{\"a\":1}"), &a, &result, &e) == ERR_INVALID, "%s",
              at[i].value);
        CHECK(strncmp(e.text, at[i].story, strlen(at[i].story)) == 0, "%s", e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_takes_more_than_the_limits),
        cmocka_unit_test(no_expression_nests_too_deeply),
        cmocka_unit_test(a_result_never_nests_deeper_than_a_task_can_hold),
        cmocka_unit_test(all_expressions_of_a_value_share_their_limits),
        cmocka_unit_test(a_failure_in_a_value_says_where),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
