/* Partial reading of recorded values: results are the same as if everything was read, and only what
 * is needed is paid for. */
#include "base/test.h"

#include <stdlib.h>

#include "base/prng.h"
#include "definition/expression/recorded.h"
#include "definition/template/reference.h"

static const char recorded[] =
    "{ \"a\" : {\"b\":[1,{\"c\":\"x\\\"]}\"}],\"d\":null, \"e\\u0066\":{\"\\\\\":1.50}},\n"
    "\"t\":\"tx\\n\\u00e9\", \"u\":\"plain\",\"n\":-1.0e3,\"yes\":true , \"no\":false,\"nil\":null,"
    "\"list\":[[],{},\"\",[[0]]],\"\":{\"\":7},\"o\":{} }";

static const char *const looks[] = {
    ".input",
    ".input.a",
    ".input.a.b",
    ".input.a.b[1].c",
    ".input.a.d",
    ".input.a.ef",
    ".input.a[\"ef\"][\"\\\\\"]",
    ".input.a.b.c?",
    ".input.a.b.c",
    ".input.t",
    ".input.t | length",
    ".input.u + .input.t",
    ".input.u.x?",
    ".input.n",
    ".input.n + 1",
    ".input.yes",
    ".input.no",
    ".input.nil",
    ".input.nil.x.y",
    ".input.list",
    ".input.list | length",
    ".input.list[3][0][0]",
    ".input[\"\"][\"\"]",
    ".input.o",
    ".input.o.x",
    ".input.nothing",
    ".input.nothing.at.all",
    "[.input.o, .input.a.d, .input.u, .input.n]",
    "[.input.a.b, .input.a]",
    "[.input.a, .input.a.b]",
    ".input | keys",
    "first(.input.u, .input.t)",
    "any(.input.list[]; . == [])",
    "[range(.input.n; 0; 500)]",
    "if .input.yes then error(\"no: \\(.input.u)\") else empty end",
    "keys",
    ".steps",
    ".",
    "(.input | .a.b[0]) + .input.n",
    ".input.a.b.c.d.e.f.g.h.i.j.k?",
    ".input[.input.u]",
};

struct outcome {
    enum err err;
    struct arena arena;
    struct slice value;
    struct error e;
    uint32_t steps;
};

/* By a tree of the whole text, or of its needed parts. */
static void evaluate(const char *text, struct slice input, bool by_wants, struct outcome *ret)
{
    struct budget budget = {EXPRESSION_BYTES_MAX, EXPRESSION_STEPS_MAX, true};
    struct json root = {.type = JSON_OBJECT, .count = 1};
    struct wanted of_input = {0};
    struct references refs = {.of_input = &of_input};
    struct expression *x = NULL;
    const struct json *value = NULL;
    bool is_corrupt = false;
    size_t column = 0;

    *ret = (struct outcome){0};
    struct arena *a = &ret->arena;
    CHECK(expression_compile(slice_of(text), a, &x, &column, &ret->e) == ERR_OK, "%s: %s", text,
          ret->e.text);
    references_collect(x, false, a, &refs);
    const struct wanted all = {.whole = true};
    struct machine m = machine_begin(a, &budget);
    struct json *j = recorded_read(&m, input, by_wants ? &of_input : &all, &is_corrupt);
    machine_end(&m, &budget);
    ret->steps = EXPRESSION_STEPS_MAX - budget.steps;
    CHECK(j, "%s: %s", text, m.what);
    j->key = SLICE("input");
    root.child = j;
    ret->err = machine_run(x, &root, a, &budget, &value, &ret->e);
    if (ret->err == ERR_OK)
        ret->value = value->raw;
}

static void what_is_not_looked_at_makes_no_difference(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(looks); i++) {
        struct outcome all;
        struct outcome some;
        evaluate(looks[i], slice_of(recorded), false, &all);
        evaluate(looks[i], slice_of(recorded), true, &some);
        CHECK(all.err == some.err, "%s: %s, %s", looks[i], all.e.text, some.e.text);
        if (all.err == ERR_OK)
            CHECK(slice_eq(all.value, some.value), "%s: %.*s, not %.*s", looks[i],
                  SLICE_ARG(some.value), SLICE_ARG(all.value));
        else
            CHECK(strcmp(all.e.text, some.e.text) == 0, "%s: %s, not %s", looks[i], some.e.text,
                  all.e.text);
        arena_fini(&all.arena);
        arena_fini(&some.arena);
    }
}

/* {"first":1,"large":[0,0,...],"last":2} */
static struct slice large(struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, "{\"first\":1,\"large\":[0");
    for (int i = 0; i < 100000; i++)
        buf_str(&b, ",0");
    buf_str(&b, "],\"last\":2}");
    return arena_copy(a, buf_view(&b));
}

static uint32_t price_of(const char *text, struct slice input)
{
    struct outcome o;

    evaluate(text, input, true, &o);
    arena_fini(&o.arena);
    return o.steps;
}

static void no_more_is_paid_for_than_is_looked_at(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct slice input = large(&a);
    (void)state;

    CHECK(price_of(".input.first", input) < 10, "it ends with what was found");
    CHECK(price_of(".input.last", input) < 2000, "what is passed over costs little");
    CHECK(price_of(".input.last", input) > 1000, "but it is paid for");
    CHECK(price_of(".input.large[0]", input) > 50000, "what is read is paid for");
    CHECK(price_of("first(.input.first)", input) < 10, "also in a call");
}

/* A damaged store: reads never go beyond the end of the text. */
static void a_damaged_text_is_noticed_or_as_good_as_whole(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct wanted w = {0};
    struct prng random = {7};
    (void)state;

    wanted_add(&w, &a, (const struct slice[]){SLICE("a"), SLICE("ef")}, 2, false);
    wanted_add(&w, &a, (const struct slice[]){SLICE("t")}, 1, false);
    wanted_add(&w, &a, (const struct slice[]){SLICE("o")}, 1, true);
    for (size_t i = 0; i < 20000; i++) {
        CLEANUP(arena_fini) struct arena mine = {0};
        struct budget budget = {EXPRESSION_BYTES_MAX, EXPRESSION_STEPS_MAX, true};
        size_t len = i < sizeof recorded ? i : sizeof recorded - 1;
        char *text = malloc(len + 1); /* exact size: the sanitizer finds reads beyond the end */
        bool is_corrupt = false;
        ASSERT(text);
        memcpy(text, recorded, len);
        if (i >= sizeof recorded)
            for (int k = 0; k < 3; k++)
                text[prng_below(&random, (uint32_t)len)] = "\"\\{}[],: x"[prng_below(&random, 10)];
        char *cut = realloc(text, len ? len : 1);
        struct machine m = machine_begin(&mine, &budget);
        const struct json *j = recorded_read(&m, (struct slice){cut, len}, &w, &is_corrupt);
        CHECK(j || is_corrupt, "it is one or the other");
        free(cut);
    }
}

static void depth_is_that_of_the_tree(void **state)
{
    static const struct {
        const char *text;
        uint32_t depth;
    } in[] = {{"1", 0},
              {"\"[[[\"", 0},
              {"null", 0},
              {"[]", 1},
              {" {\"a\":[{}],\"b\":{}}", 3},
              {"[[[[]]],[]]", 4},
              {"{\"\\\"]\":\"}\"}", 1}};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(in); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct budget budget = {EXPRESSION_BYTES_MAX, EXPRESSION_STEPS_MAX, true};
        struct machine m = machine_begin(&a, &budget);
        CHECK(recorded_depth(&m, slice_of(in[i].text)) == in[i].depth, "%s", in[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_looked_at_makes_no_difference),
        cmocka_unit_test(no_more_is_paid_for_than_is_looked_at),
        cmocka_unit_test(a_damaged_text_is_noticed_or_as_good_as_whole),
        cmocka_unit_test(depth_is_that_of_the_tree),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
