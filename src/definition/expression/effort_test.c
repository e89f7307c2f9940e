/* Tests that no step of an evaluation costs more than its budget assumes: every function of
 * list.h and known expensive expressions, counted in basic blocks (effort.h) and not in time.
 * effort_fuzz.c searches for more. */

#include "base/test.h"

#include <stdio.h>

#include "definition/expression/effort.h"
#include "definition/function/list.h"

static const struct json *document;
static struct slice recorded; /* the same as text */
static struct arena document_arena;

/* Repeats `what` on `input` until the budget is spent. Each failure is caught. */
#define AGAIN(input, what)                                                                        \
    "[" input " | select(range(1000000000) >= 0) | (" what ")?, (" what ")?, (" what ")?, (" what \
    ")?, (" what ")?, (" what ")? | empty]"

/* The cost per step; a cost above the limit fails the test. */
static size_t rate_of(const char *text)
{
    struct effort f;

    CHECK(effort_take(text, document, &f), "%s: %s", text, f.e.text);
    size_t rate = effort_rate(&f);
    if (rate > MACHINE_WORK_MAX)
        print_message("%zu blocks for %zu paid are %zu for each: %s: %s\n", f.blocks, f.paid, rate,
                      text, f.e.text);
    return rate;
}

/* Regression: each of these blocked the event loop for seconds. */
static void what_once_stopped_the_loop_does_no_more(void **state)
{
    static const char *const slow[] = {
        "[(\"\\\"\" * 2000000) | select(range(400) >= 0) | .[]?] | length",
        "[(\"\\\"\" * 2000000) | select(range(400) >= 0) | floor?] | length",
        "[(\"\\\"\" * 900000) | select(range(400) >= 0) | tojson?] | length",
        "[(\"\\\"\" * 900000) | select(range(19000) >= 0) | .[]?] | length",
        "[(\"a\" * 1900000) | select(range(19000) >= 0) | ltrimstr(\"a\" * 1900000 + \"b\")]",
        "[.plain | select(range(19000) >= 0) | rtrimstr(\"b\")?] | length",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(slow); i++)
        CHECK(rate_of(slow[i]) <= MACHINE_WORK_MAX, "%s", slow[i]);
}

/* The most expensive use of each function and operator. */
static const struct {
    const char *name, *text;
} dearest[] = {
    /* clang-format off */
    {"(failure)", ".plain | -."},
    {"(failure)", ".digits | keys"},
    {"(failure)", ".object | floor"},
    {"(path)", AGAIN(".quotes", ".a")},
    {"(path)", AGAIN(".quotes", ".[]")},
    {"(path)", AGAIN(".object", ".nothing")},
    {"(path)", AGAIN(".object", ".[\"name99999\"]")},
    {"(path)", AGAIN(".many", ".[19999]")},
    {"(path)", AGAIN(".many", ".[19990:]")},
    {"(path)", AGAIN(".accents", ".[400000:400001]")},
    {"(path)", AGAIN(".nulls", ".[[null,null,1]]")},
    {"(?)", AGAIN(".many", "(((((((((((((((.[])?)?)?)?)?)?)?)?)?)?)?)?)?)?)? | empty")},
    {"(//)", AGAIN(".many", "((((((((((.[] // 1) // 1) // 1) // 1) // 1) // 1) // 1) // 1) // 1) // 1)"
                   " | empty")},
    {"(string)", AGAIN("\"\"", "\"\\(.)\\(.)\\(.)\\(.)\\(.)\\(.)\\(.)\\(.)\\(.)\\(.)\\(.)\\(.)\\(.)\\(.)\\(range(9))\"")},
    {"(string)", AGAIN(".quotes", "\"\\(.)\"")},
    {"(string)", AGAIN(".many", "\"\\(.)\"")},
    {"(object)", AGAIN("1", "{a:1,b:1,c:1,d:1,e:1,f:1,a:1,b:1,c:1,d:1,e:1,f:1,a:1,b:1,c:range(9)}")},
    {"(object)", AGAIN(".quotes", "{(.,.,.): 1}")},
    {"(object)", AGAIN(".many", "{(.): 1}")},
    {"+", AGAIN(".plain", ". + .")},
    {"+", AGAIN(".quotes", ". + 1")},
    {"+", AGAIN(".lists", ". + .")},
    {"+", AGAIN(".object", ". + .")},
    {"+", AGAIN(".digits", ". + 1")},
    {"+", AGAIN(".decimal", ". + 0.1")},
    {"+", AGAIN(".far", ". + .")},
    {"+", AGAIN(".tiny", ". + .")},
    {"+", AGAIN(".long", ". + .")},
    {"-", AGAIN(".mixed", ". - [1]")},
    {"-", AGAIN(".many", ". - [3,4,5]")},
    {"-", AGAIN(".quotes", "-.")},
    {"*", AGAIN("\"a\"", ". * 4000000")},
    {"*", AGAIN(".object", ". * .")},
    {"*", AGAIN(".decimal", ". * .")},
    {"*", AGAIN(".far", ". * 3")},
    {"/", AGAIN(".plain", ". / \"b\"")},
    {"/", AGAIN(".plain", ". / \"baa\"")},
    {"/", AGAIN(".plain", ". / \"\"")},
    {"/", AGAIN(".decimal", "1 / 3")},
    {"%", AGAIN(".quotes", ". % 1")},
    {"==", AGAIN(".plain", ". == .")},
    {"==", AGAIN(".mixed", ". == .")},
    {"==", AGAIN(".object", ". == .")},
    {"==", AGAIN(".digits", ". == .")},
    {"==", AGAIN(".deep", ". == .")},
    {"<", AGAIN(".objects", ". < .")},
    {"add", AGAIN(".texts", "add")},
    {"add", AGAIN(".nulls", "add")},
    {"add", AGAIN(".mixed", "add")},
    {"add", AGAIN(".lists", "add")},
    {"add", AGAIN(".objects", "add")},
    {"add", AGAIN(".decimals", "add")},
    {"all", AGAIN(".many", "all")},
    {"all", AGAIN(".many", "all(.)")},
    {"all", AGAIN(".many", "all(.[]; .)")},
    {"any", AGAIN(".nulls", "any")},
    {"any", AGAIN(".nulls", "any(.)")},
    {"any", AGAIN(".nulls", "any(.[]; .)")},
    {"arrays", AGAIN(".many", ".[] | arrays")},
    {"ascii_downcase", AGAIN(".plain", "ascii_downcase")},
    {"ascii_upcase", AGAIN(".plain", "ascii_upcase")},
    {"booleans", AGAIN(".many", ".[] | booleans")},
    {"ceil", AGAIN(".quotes", "ceil")},
    {"ceil", AGAIN(".far", "ceil")},
    {"contains", AGAIN(".plain", "contains(\"baa\")")},
    {"contains", AGAIN(".plain", "contains(\"b\")")},
    {"contains", AGAIN(".plain", "contains(.)")},
    {"contains", AGAIN(".mixed", "contains([1])")},
    {"contains", AGAIN(".mixed", "contains([null,\"y\"])")},
    {"contains", AGAIN(".object", "contains({nothing: 1})")},
    {"contains", AGAIN(".quotes", "contains(1)")},
    {"empty", AGAIN("1", "empty")},
    {"endswith", AGAIN(".plain", "endswith(\"b\")")},
    {"endswith", AGAIN(".plain", "endswith(.)")},
    {"startswith", AGAIN(".plain", "startswith(.)")},
    {"index", AGAIN(".plain", "index(.)")},
    {"split", AGAIN(".plain", "split(.)")},
    {"error", AGAIN(".quotes", "error")},
    {"error", AGAIN(".many", "error(.)")},
    {"first", AGAIN(".many", "first")},
    {"first", AGAIN(".many", "first(.[])")},
    {"flatten", AGAIN(".lists", "flatten")},
    {"flatten", AGAIN(".deep", "flatten(39)")},
    {"floor", AGAIN(".quotes", "floor")},
    {"floor", AGAIN(".tiny", "floor")},
    {"from_entries", AGAIN(".entries", "from_entries")},
    {"from_entries", AGAIN("[.object]", "from_entries")},
    {"fromjson", AGAIN(".json", "fromjson")},
    {"fromjson", AGAIN("\"\"", "fromjson")},
    {"fromjson", AGAIN(".quotes", "fromjson")},
    {"fromjson", AGAIN("\"[1,2,3,4,5,6,7,8,9,0]\"", "fromjson")},
    {"fromjson", AGAIN("\"{\\\"aa\\\":1,\\\"ab\\\":1,\\\"ac\\\":1}\"", "fromjson")},
    {"group_by", AGAIN(".many", "group_by(.)")},
    {"group_by", AGAIN(".mixed", "group_by(.)")},
    {"has", AGAIN(".object", "has(\"name\")")},
    {"has", AGAIN(".object", "has(\"name99999\")")},
    {"in", AGAIN("\"name99999\"", "in({name00000: 1})")},
    {"index", AGAIN(".plain", "index(\"b\")")},
    {"indices", AGAIN(".plain", "indices(\"baa\")")},
    {"indices", AGAIN(".plain", "indices(\"a\")")},
    {"indices", AGAIN(".quotes", "indices(1)")},
    {"indices", AGAIN(".mixed", "indices(1)")},
    {"indices", AGAIN(".nulls", "indices([null, null, null, 1])")},
    {"inside", AGAIN("\"baa\"", "inside(\"a\" * 10000)")},
    {"isempty", AGAIN(".many", "isempty(.[] | empty)")},
    {"iterables", AGAIN(".many", ".[] | iterables")},
    {"join", AGAIN(".texts", "join(\",\")")},
    {"join", AGAIN(".nulls", "join(\"\")")},
    {"join", AGAIN(".many", "join(\"abcdefgh\")")},
    {"join", AGAIN("[range(2000) | \"\"]", "join(\"a\" * 10000)")},
    {"keys", AGAIN(".object", "keys")},
    {"keys", AGAIN(".many", "keys")},
    {"keys", AGAIN(".quotes", "keys")},
    {"keys_unsorted", AGAIN(".object", "keys_unsorted")},
    {"last", AGAIN(".many", "last")},
    {"last", AGAIN(".many", "last(.[])")},
    {"length", AGAIN(".plain", "length")},
    {"length", AGAIN(".accents", "length")},
    {"length", AGAIN(".far", "length")},
    {"limit", AGAIN(".many", "limit(99999;limit(99999;limit(99999;limit(99999;.[])))) | empty")},
    {"limit", AGAIN(".quotes", "limit(.; 1)")},
    {"ltrimstr", "[.plain | [., . + \"b\"] | select(range(1000000000) >= 0) | .[0] | ltrimstr(\"b\")]"},
    {"ltrimstr", AGAIN(".plain", "ltrimstr(\"a\")")},
    {"ltrimstr", AGAIN(".plain", "ltrimstr(.)")},
    {"map", AGAIN(".many", "map(empty)")},
    {"map_values", AGAIN(".many", "map_values(empty)")},
    {"map_values", AGAIN(".object", "map_values(.)")},
    {"max", AGAIN(".many", "max")},
    {"max", AGAIN(".mixed", "max")},
    {"max_by", AGAIN(".many", "max_by(.)")},
    {"min", AGAIN(".decimals", "min")},
    {"min_by", AGAIN(".objects", "min_by(.a)")},
    {"not", AGAIN("1", "not")},
    {"nulls", AGAIN(".many", ".[] | nulls")},
    {"numbers", AGAIN(".nulls", ".[] | numbers")},
    {"objects", AGAIN(".many", ".[] | objects")},
    {"range", AGAIN("1", "range(99999) | empty")},
    {"range", AGAIN("1", "range(0; 9; 0.1) | empty")},
    {"range", AGAIN("1", "range(0; 1; 1e-310) | empty")},
    {"range", AGAIN(".quotes", "range(.)")},
    {"reverse", AGAIN(".many", "reverse")},
    {"rindex", AGAIN(".many", "rindex(2)")},
    {"round", AGAIN(".decimal", "round")},
    {"rtrimstr", AGAIN(".plain", "rtrimstr(\"b\")")},
    {"rtrimstr", AGAIN(".plain", "rtrimstr(.)")},
    {"scalars", AGAIN(".lists", ".[] | scalars")},
    {"select", AGAIN(".many", ".[] | select(null)")},
    {"sort", AGAIN(".many", "sort")},
    {"sort", AGAIN(".mixed", "sort")},
    {"sort", AGAIN(".objects", "sort")},
    {"sort", AGAIN(".decimals", "sort")},
    {"sort_by", AGAIN(".many", "sort_by(-.)")},
    {"split", AGAIN(".plain", "split(\"a\")")},
    {"split", AGAIN(".plain", "split(\"baaa\")")},
    {"split", AGAIN(".quotes", "split(1)")},
    {"startswith", AGAIN(".quotes", "startswith(1)")},
    {"strings", AGAIN(".many", ".[] | strings")},
    {"to_entries", AGAIN(".object", "to_entries")},
    {"to_entries", AGAIN(".many", "to_entries")},
    {"tojson", AGAIN(".quotes", "tojson")},
    {"tojson", AGAIN(".plain", "tojson")},
    {"tojson", AGAIN(".controls", "tojson")},
    {"tojson", AGAIN(".many", "tojson")},
    {"tojson", AGAIN(".objects", "tojson")},
    {"tojson", AGAIN(".digits", "tojson")},
    {"tonumber", AGAIN(".plain", "tonumber")},
    {"tonumber", AGAIN("\"x\"", "tonumber")},
    {"tonumber", AGAIN("\"1\" * 1000", "tonumber")},
    {"tostring", AGAIN(".many", "tostring")},
    {"tostring", AGAIN(".digits", "tostring")},
    {"type", AGAIN("1", "type")},
    {"unique", AGAIN(".many", "unique")},
    {"unique_by", AGAIN(".many", "unique_by(.)")},
    {"values", AGAIN(".nulls", ".[] | values")},
    {"with_entries", AGAIN(".object", "with_entries(.)")},
    /* clang-format on */
};

static void a_step_never_costs_more_than_it_may(void **state)
{
    size_t worst = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(dearest); i++) {
        size_t rate = rate_of(dearest[i].text);
        worst = rate > worst ? rate : worst;
    }
    CHECK(worst <= MACHINE_WORK_MAX, "the dearest step costs %zu blocks", worst);
}

/* Blocks do not tell how long memory is waited for: these were the slowest steps by the clock. */
static void what_waits_for_memory_costs_more(void **state)
{
    static const struct {
        const char *text;
        size_t least;
    } cases[] = {
        {"[.nulls | last]", 20000 * 2 / 8},
        {"[.plain | contains(.)]", 1000000 * 5 / 8 / 8},
        {"[.plain | split(.)]", 1000000 * 4 / 8 / 8},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct effort f;
        CHECK(effort_take(cases[i].text, document, &f) && f.err == ERR_OK, "%s", f.e.text);
        CHECK(f.paid >= cases[i].least, "%s: %zu paid", cases[i].text, f.paid);
    }
}

/* Reading the values that an expression refers to is charged as well. */
static void reading_costs_no_more_than_it_may(void **state)
{
    static const char *const looks[] = {
        ".input",
        ".input.nothing",
        ".input.quotes",
        ".input.plain.nothing",
        ".input.quotes == .input.slashes",
        ".input.controls",
        ".input.accents",
        ".input.many | length",
        ".input.lists",
        ".input.objects",
        ".input.object",
        ".input.object.nothing",
        ".input.digits",
        ".input.deep",
        ".input.brackets",
        ".input.brackets.nothing",
        ".input.spaces",
        ".input.spaces.nothing",
        ".input.empties",
        ".input.names",
        ".input.names.nothing",
        ".input.names.a00001.a",
        ".input.slashes",
        "[.input.a, .input.b, .input.c, .input.d, .input.e, .input.f, .input.g, .input.h]",
        "[.input.names.a, .input.names.b, .input.names.c, .input.names.d, .input.names.e, "
        ".input.names.f, .input.names.g, .input.names.h, .input.names.i, .input.names.a01999]",
        "[.input.object.name1, .input.object.name2, .input.object.name3, .input.object.name4, "
        ".input.object.name5, .input.object.name6, .input.object.name7, .input.object.name8]",
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(looks); i++) {
        struct effort f;
        CHECK(effort_take_recorded(looks[i], recorded, &f), "%s: %s", looks[i], f.e.text);
        CHECK(effort_rate(&f) <= MACHINE_WORK_MAX, "%zu blocks for %zu paid are %zu for each: %s",
              f.blocks, f.paid, effort_rate(&f), looks[i]);
    }
}

static void every_function_has_been_tried(void **state)
{
#define ANY(name, count, fn) name,
    static const char *const names[] = {FUNCTION_LIST(ANY, ANY, ANY)};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        bool is_there = false;
        for (size_t k = 0; k < COUNT_OF(dearest); k++)
            is_there |= strcmp(dearest[k].name, names[i]) == 0;
        CHECK(is_there, "%s is not in the table", names[i]);
    }
}

static int setup(void **state)
{
    (void)state;
    document = effort_document(&document_arena);
    recorded = effort_recorded(&document_arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_fini(&document_arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_once_stopped_the_loop_does_no_more),
        cmocka_unit_test(a_step_never_costs_more_than_it_may),
        cmocka_unit_test(what_waits_for_memory_costs_more),
        cmocka_unit_test(reading_costs_no_more_than_it_may),
        cmocka_unit_test(every_function_has_been_tried),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
