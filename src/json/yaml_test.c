/* Tests of the YAML reader: the values of scalars, what is refused and at which position, and
 * positions inside strings of every style. definition/yaml_fuzz.c reads arbitrary text. */

#include "base/test.h"

#include <stdlib.h>

#include "json/json.h"
#include "json/yaml_read.h"

/* All faults of a text, "LINE:COLUMN found|expected
 * " each. */
struct told {
    struct slice text;
    struct buf faults;
};

static void tell(void *arg, size_t offset, const char *found, const char *expected)
{
    struct told *t = arg;
    uint32_t line = 0;
    uint32_t column = 0;

    CHECK(offset <= t->text.len, "%zu of %zu", offset, t->text.len);
    CHECK(*found && *expected, "a fault says all");
    json_position(t->text, offset, &line, &column);
    buf_fmt(&t->faults, "%u:%u %s|%s\n", line, column, found, expected);
}

static struct json *read_text(struct arena *a, struct slice text, struct told *t)
{
    struct json *j = NULL;
    struct yaml_watch w = {t, tell};

    *t = (struct told){.text = text};
    enum err err = yaml_read(a, text, JSON_DEPTH_OUTSIDE, &j, &w);
    CHECK((err == ERR_OK) == (j != NULL), "%.*s", SLICE_ARG(text));
    CHECK(j || t->faults.len > 0, "why not: %.*s", SLICE_ARG(text));
    return j;
}

static void expect_json(const char *yaml, const char *json)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct told t;
    const struct json *j = read_text(&a, slice_of(yaml), &t);

    CHECK(j, "%s: %s", yaml, t.faults.ptr);
    CHECK(t.faults.len == 0, "%s: %s", yaml, t.faults.ptr);
    CHECK(slice_is(j->raw, json), "%s gives %.*s", yaml, SLICE_ARG(j->raw));
    buf_fini(&t.faults);
}

static void plain_scalars_mean_what_the_core_schema_says(void **state)
{
    static const struct {
        const char *yaml, *json; /* "!": refused */
    } cases[] = {
        {"a", "\"a\""},
        {"no", "\"no\""},
        {"yes", "\"yes\""},
        {"on", "\"on\""},
        {"off", "\"off\""},
        {"Yes", "\"Yes\""},
        {"y", "\"y\""},
        {"~", "null"},
        {"null", "null"},
        {"Null", "null"},
        {"NULL", "null"},
        {"nULL", "\"nULL\""},
        {"true", "true"},
        {"True", "true"},
        {"TRUE", "true"},
        {"tRUE", "\"tRUE\""},
        {"false", "false"},
        {"FALSE", "false"},
        {"0", "0"},
        {"-0", "-0"},
        {"10", "10"},
        {"-17", "-17"},
        {"1.50", "1.50"},
        {"1e3", "1e3"},
        {"1.5E-07", "1.5E-07"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"-0.000000000000000000000000000001", "-0.000000000000000000000000000001"},
        {"007", "!"},
        {"-01.5", "!"},
        {"+1", "!"},
        {".5", "!"},
        {"5.", "!"},
        {"5.e3", "!"},
        {"0o17", "!"},
        {"0x1F", "!"},
        {".inf", "!"},
        {"-.INF", "!"},
        {".nan", "!"},
        {"-.nan", "\"-.nan\""},
        {"0o18", "\"0o18\""},
        {"0xG", "\"0xG\""},
        {"0x", "\"0x\""},
        {"1_000", "\"1_000\""},
        {"12:30", "\"12:30\""},
        {"2026-01-31", "\"2026-01-31\""},
        {"1e", "\"1e\""},
        {"1e+", "\"1e+\""},
        {"-", "[null]"},
        {"--", "\"--\""},
        {".", "\".\""},
        {"1.2.3", "\"1.2.3\""},
        {"30s", "\"30s\""},
        {"'10'", "\"10\""},
        {"\"null\"", "\"null\""},
        {"\"0x1F\"", "\"0x1F\""},
        {"| \n 10", "\"10\""},
        {"${ .input.a }", "\"${ .input.a }\""},
        {"---\n...\n", "null"},
        {"%YAML 1.2\n---\n1\n", "1"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct told t;
        if (cases[i].json[0] != '!') {
            expect_json(cases[i].yaml, cases[i].json);
            continue;
        }
        CHECK(!read_text(&a, slice_of(cases[i].yaml), &t), "%s is taken", cases[i].yaml);
        CHECK(strstr(t.faults.ptr, "|a number as JSON writes it"), "%s", t.faults.ptr);
        buf_fini(&t.faults);
    }
}

static void every_style_gives_the_same_trees(void **state)
{
    (void)state;
    expect_json("a: 1\nb: [x, {c: ~}]\n", "{\"a\":1,\"b\":[\"x\",{\"c\":null}]}");
    expect_json("# c\na:\n- x # c\n-\n  y: 1\n-\n", "{\"a\":[\"x\",{\"y\":1},null]}");
    expect_json("a: |\n  x\n   y\n\n  z\n", "{\"a\":\"x\\n y\\n\\nz\\n\"}");
    expect_json("a: |-\n  x\n  y\nb: 1", "{\"a\":\"x\\ny\",\"b\":1}");
    expect_json("a: |+\n  x\n\nb: 1", "{\"a\":\"x\\n\\n\",\"b\":1}");
    expect_json("a: >\n  x\n  y\n\n  z\n", "{\"a\":\"x y\\nz\\n\"}");
    expect_json("a: >2-\n    x\n", "{\"a\":\"  x\"}");
    expect_json("a: x\n  y\n\n  z", "{\"a\":\"x y\\nz\"}");
    expect_json("a: 'it''s\n  so'", "{\"a\":\"it's so\"}");
    expect_json("a: \"\\t\\\"\\\\\\x41\\u00e9\\U0001F600\\/\\\n   b\"",
                "{\"a\":\"\\t\\\"\\\\A\xc3\xa9\xf0\x9f\x98\x80/b\"}");
    expect_json("1: a\ntrue: b\nnull: c\n'': d\n",
                "{\"1\":\"a\",\"true\":\"b\",\"null\":\"c\",\"\":\"d\"}");
    expect_json("'<<': 1\n", "{\"<<\":1}");
    expect_json("? a\n: 1\n", "{\"a\":1}");
    expect_json("{a: 1, 'b': [], \"c\":2,}", "{\"a\":1,\"b\":[],\"c\":2}");
    expect_json("{\"a\": 1, \"b\": [true, null, -1.5e3, \"\\u00e9\"]}",
                "{\"a\":1,\"b\":[true,null,-1.5e3,\"\xc3\xa9\"]}");
    expect_json("a:\r\n  b: 1\r\n  c: |\r\n    x\r\n", "{\"a\":{\"b\":1,\"c\":\"x\\n\"}}");
    expect_json("a: 1\na: 2\n", "{\"a\":1,\"a\":2}"); /* the caller detects it */
    expect_json("\xc3\xa4: \xe2\x82\xac\n", "{\"\xc3\xa4\":\"\xe2\x82\xac\"}");
}

static void what_is_refused_is_told_with_its_place(void **state)
{
    static const struct {
        const char *yaml;
        bool has_tree;
        const char *told; /* a prefix */
    } cases[] = {
        {"", false, "1:1 nothing|"},
        {"# only a comment\n", false, "1:1 nothing|"},
        {"a: &x 1\n", true, "1:4 an anchor (&)|"},
        {"a: &x [1]\n", true, "1:4 an anchor (&)|"},
        {"&x a: 1\n", true, "1:1 an anchor (&)|"},
        {"a: !t 1\n", true, "1:4 a tag (!)|"},
        {"a: !!str 1\n", true, "1:4 a tag (!)|"},
        {"!!map {a: 1}\n", true, "1:1 a tag (!)|"},
        {"a: !x!y 1\n", false, "1:4 a tag (!)|"},
        {"a: 1\nb: *x\n", false, "2:4 an alias (*)|"},
        {"*x : 1\n", false, "1:1 an alias (*)|"},
        {"- *x\n- *y\n", false,
         "1:3 an alias (*)|the value written out: anchors and aliases are not supported\n2:3 an "
         "alias "
         "(*)|"},
        {"a:\n  <<: {b: 1}\n", false, "2:3 a merge key (<<)|"},
        {"? [a]\n: 1\n", false, "1:3 a list as a key|"},
        {"{{a: 1}: 2}\n", false, "1:2 a mapping as a key|"},
        {": 1\n", false, "1:1 \": 1\"|a key"},
        {"? \n: 1\n", false, "1:2 a value without a key|"},
        {"a: 1\n---\nb: 1\n", true, "2:1 a second document|"},
        {"%YAML 1.1\n---\na: 1\n", true, "1:1 another version of YAML|"},
        {"%YAML 2.0\n---\na: 1\n", false, "1:1 another version of YAML|"},
        {"%TAG ! tag:x,2000:\n---\na: 1\n", true, "1:1 a %TAG line|"},
        {"a: \"\\0\"\n", false, "1:4 a NUL character (\\0)|"},
        {"a: \"\\u0000\"\n", false, "1:4 a NUL character (\\0)|"},
        {"\"x\\x00\": 1\n", false, "1:1 a NUL character (\\0)|"},
        {"a: \xff\n", false, "1:4 bytes that are not UTF-8|"},
        {"a: \xed\xa0\x80\n", false, "1:4 bytes that are not UTF-8|"},
        {"\xff\xfe"
         "a",
         false, "1:1 bytes that are not UTF-8|"},
        {"a: \x01\n", false, "1:4 a control character|"},
        {"a: \x7f\n", false, "1:4 a control character|"},
        {"a: x\xc2\x85y\n", false, "1:5 a control character|"},
        {"a: 'x\xe2\x80\xa8y'\n", false, "1:6 a line separator of Unicode|"},
        {"a: x\xef\xbb\xbfy\n", false, "1:5 a byte order mark|"},
        {"a: \"\\ud83d\\ude00\"\n", false,
         "1:5 an escape that is no character|a character; beyond"},
        {"a: \"\\ud800\"\n", false, "1:5 an escape that is no character|"},
        {"a: \"\\q\"\n", false, "1:5 \"\\q\"\"|an escape that YAML knows"},
        {"a: \"\\xg1\"\n", false, "1:5 \"\\xg1\"\"|hexadecimal digits"},
        {"\ta: 1\n", false, "1:1 a tab|blanks"},
        {"a:\n\tb: 1\n", false, "2:1 a tab|blanks"},
        {"a: b: c\n", false, "1:5 \":\" in the middle of a value|"},
        {"a: 1\nb\n", false, "2:1 \"b\"|key: value"},
        {"a:\n  b: 1\n c: 2\n", false, "3:2 \"c: 2\"|a key, in the same column"},
        {"- a\nb: 1\n", false, "2:1 \"b: 1\"|\"- \", in the same column"},
        {"a: [1\nb: 2\n", false, "2:2 \": 2\"|"},
        {"a: [1, 2}\n", false, "1:9 \"}\"|\",\" or \"]\""},
        {"a: {x: 1]\n", false, "1:9 \"]\"|\",\" or \"}\""},
        {"a: [1\n", false, "2:1 the end of the text|\",\" or \"]\""},
        {"a: \"x\n", false, "1:4 a text in quotes that is never closed|the closing quote"},
        {"a: 'x\n---\n", false, "1:4 a text in quotes that is never closed|the closing quote"},
        {"a: 'x' y\n", false, "1:8 \"y\"|a key"},
        {"a: @x\n", false, "1:4 a text that begins with @|the text in quotes"},
        {"a: `x`\n", false, "1:4 a text that begins with `|the text in quotes"},
        {"a: %x\n", false, "1:4 a text that begins with %|the text in quotes"},
        {"%x\na: 1\n", false, "1:1 a line that begins with %|"},
        {"a: - b\n", false, "1:4 \"- \" where no list can begin|"},
        {"a: |x\n b\n", false, "1:5 \"x\"|the end of the line"},
        {"a: |0\n b\n", false, "1:5 0 as indentation|"},
        {"a: {b: ${ .x }}\n", false,
         "1:9 \"{ .x }}\"|\",\" or \"}\" (put quotes around \"${ ... }\" here)"},
        {"a: ${ {b: 1} }\n", false,
         "1:9 \":\" in the middle of a value|one key: value on a line; a text that holds \": \" in "
         "quotes (put quotes"},
        {"a: ]\n", false, "1:4 \"]\"|"},
        {"}\n", false, "1:1 \"}\"|"},
        {"a: &\n", false, "1:4 an anchor (&)|"},
        {"a: *\n", false, "1:4 an alias (*)|"},
        {"a: !<x\n", false, "1:4 a tag (!)|"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct told t;
        const struct json *j = read_text(&a, slice_of(cases[i].yaml), &t);
        CHECK((j != NULL) == cases[i].has_tree, "%s: %s", cases[i].yaml, t.faults.ptr);
        CHECK(t.faults.ptr && strncmp(t.faults.ptr, cases[i].told, strlen(cases[i].told)) == 0,
              "%s: %s", cases[i].yaml, t.faults.ptr);
        buf_fini(&t.faults);
    }
    CLEANUP(arena_fini) struct arena a = {0};
    struct told t;
    CHECK(!read_text(&a, (struct slice){"a: \0b", 5}, &t), "a NUL byte");
    CHECK(strcmp(t.faults.ptr, "1:4 a NUL character|text without it\n") == 0, "%s", t.faults.ptr);
    buf_fini(&t.faults);
}

static void nesting_has_its_limit(void **state)
{
    (void)state;
    for (int style = 0; style < 2; style++)
        for (int depth = JSON_DEPTH_OUTSIDE; depth <= JSON_DEPTH_OUTSIDE + 1; depth++) {
            CLEANUP(arena_fini) struct arena a = {0};
            CLEANUP(buf_fini) struct buf b = {0};
            struct told t;
            for (int i = 0; i < depth; i++)
                buf_str(&b, style ? "- " : "[");
            for (int i = 0; i < depth && !style; i++)
                buf_str(&b, "]");
            const struct json *j = read_text(&a, buf_view(&b), &t);
            CHECK((j != NULL) == (depth == JSON_DEPTH_OUTSIDE), "%d: %s", depth, b.ptr);
            CHECK(j || strstr(t.faults.ptr, "a value nested too deeply|at most 48 levels"), "%s",
                  t.faults.ptr);
            buf_fini(&t.faults);
        }
}

static void every_value_and_key_knows_its_place(void **state)
{
    static const char text[] = "# \xc3\xa4\n"
                               "a: \xe2\x82\xac   # euro\n"
                               "\"\xc3\xa4\" :  'x'\n"
                               "l:\n"
                               "- 1\n"
                               "-   {k: [v]}\n"
                               "n:\n"
                               "b: |\n"
                               "  text\n";
    CLEANUP(arena_fini) struct arena a = {0};
    struct told t;
    struct json *j = read_text(&a, slice_of(text), &t);
    const struct json *m = j->child;
    (void)state;

#define AT(node)     (text + (node)->at)
#define KEY_AT(node) (text + (node)->key_at)
    CHECK(strncmp(AT(j), "a: ", 3) == 0, "root at %u", j->at);
    CHECK(strncmp(AT(m), "\xe2\x82\xac ", 4) == 0 && strncmp(KEY_AT(m), "a:", 2) == 0, "a");
    m = m->next;
    CHECK(strncmp(AT(m), "'x'", 3) == 0 && strncmp(KEY_AT(m), "\"\xc3\xa4\"", 4) == 0, "ae");
    m = m->next;
    CHECK(strncmp(AT(m), "- 1", 3) == 0 && strncmp(KEY_AT(m), "l:", 2) == 0, "l");
    CHECK(strncmp(AT(m->child), "1\n", 2) == 0, "l[0]");
    CHECK(strncmp(AT(m->child->next), "{k: [v]}", 8) == 0, "l[1]");
    CHECK(strncmp(AT(m->child->next->child), "[v]", 3) == 0, "l[1].k");
    CHECK(strncmp(KEY_AT(m->child->next->child), "k: ", 3) == 0, "l[1].k");
    CHECK(strncmp(AT(m->child->next->child->child), "v]", 2) == 0, "l[1].k[0]");
    m = m->next;
    CHECK(text[m->at - 1] == ':', "nothing stands behind its key");
    m = m->next;
    CHECK(strncmp(AT(m), "|\n", 2) == 0, "b");
}

/* One value in every style: each of its non-blank characters is found at its position. */
static void a_place_in_a_string_is_found_in_every_style(void **state)
{
    static const char *const texts[] = {
        "a: .x + \"y\" and\n   foo\n\n   bar\nb: 1\n",
        "a: '.x ''y''\n   and\n\n\n   foo'\n",
        ("a: \".x \\\"\\\\\\x41\\u00e9\\U0001f600\\t \\\n    and \\/\\e\\_\\L\\\n    foo\\ \\n  "
         "bar\"\n"),
        "a: |\n    .x \xc3\xa4\n      and\n\n    foo\n",
        "a: |2 # comment\n    .x\n  and\n",
        "a: >-\n    .x\n    and\n\n      foo\n    bar\n",
        "a: >+\r\n    .x\r\n    and\r\n",
        "a: |\n    .x",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct told t;
        struct slice text = slice_of(texts[i]);
        struct json *j = read_text(&a, text, &t);
        CHECK(j, "%s: %s", texts[i], t.faults.ptr);
        const struct json *s = j->child;
        size_t last = 0;
        for (size_t k = 0; k < s->text.len; k++) {
            size_t at = yaml_string_offset(text, s, k);
            CHECK(at >= last && at < text.len, "%s: %zu at %zu", texts[i], k, at);
            last = at;
            if (strchr(" \n\t", s->text.ptr[k]) || (s->text.ptr[k] & 0x80) || s->text.ptr[k] == 27)
                continue;
            CHECK(text.ptr[at] == s->text.ptr[k] || text.ptr[at] == '\\',
                  "%s: %zu (%c) at %zu (%c)", texts[i], k, s->text.ptr[k], at, text.ptr[at]);
            if (text.ptr[at] == '\\')
                CHECK(strchr("\"\\A/", s->text.ptr[k]), "%s: %c", texts[i], s->text.ptr[k]);
        }
        CHECK(yaml_string_offset(text, s, s->text.len) >= last, "%s: its end", texts[i]);
    }
    CLEANUP(arena_fini) struct arena a = {0};
    struct told t;
    struct slice text = slice_of(texts[2]);
    const struct json *s = read_text(&a, text, &t)->child;
    CHECK(text.ptr[yaml_string_offset(text, s, (size_t)(strstr(s->text.ptr, "bar") - s->text.ptr))]
              == 'b',
          "behind all the escapes");
    CHECK(memcmp(text.ptr + yaml_string_offset(text, s, 6), "\\u00e9", 6) == 0, "%zu",
          yaml_string_offset(text, s, 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_scalars_mean_what_the_core_schema_says),
        cmocka_unit_test(every_style_gives_the_same_trees),
        cmocka_unit_test(what_is_refused_is_told_with_its_place),
        cmocka_unit_test(nesting_has_its_limit),
        cmocka_unit_test(every_value_and_key_knows_its_place),
        cmocka_unit_test(a_place_in_a_string_is_found_in_every_style),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
