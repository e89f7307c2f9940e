/* Tests of the JSON parser and writer: refusals with positions, repeated keys, canonical bytes,
 * limits. */
#include "base/test.h"

#include <stdlib.h>

#include "base/meets.h"
#include "base/prng.h"
#include "json/json.h"
#include "json/sorted.h"
#include "json/text.h"

/* clang-format off */
static const struct refusal {
    const char *text;
    uint32_t line, column;
    const char *what; /* a prefix */
} refusals[] = {
    {"",                    1, 1, "the text ends too early"},
    {" \n ",                2, 2, "the text ends too early"},
    {"{\"a\":[1,",          1, 9, "the text ends too early"},
    {"\"abc",               1, 5, "the text ends too early"},
    {"nul",                 1, 1, "invalid string"},
    {"nulx",                1, 1, "invalid string"},
    {"NaN",                 1, 1, "invalid char"},
    {"[-Infinity]",         1, 2, "malformed number"},
    {"01",                  1, 2, "trailing garbage"},
    {"[01]",                1, 3, "after array element"},
    {"-",                   1, 1, "malformed number"},
    {"1.",                  1, 1, "malformed number"},
    {"[1e]",                1, 2, "malformed number"},
    {"[+1]",                1, 2, "invalid char"},
    {"[.5]",                1, 2, "invalid char"},
    {"1 2",                 1, 3, "trailing garbage"},
    {"[1] x",               1, 5, "trailing garbage"},
    {"{}\n{}",              2, 1, "trailing garbage"},
    {"1,",                  1, 2, "trailing garbage"},
    {"true\"}",             1, 5, "trailing garbage"}, /* an unterminated string */
    {"/* x */ 1",           1, 1, "probable comment"},
    {"// x\n1",             1, 1, "probable comment"},
    {"# x",                 1, 1, "invalid char"},
    {"]",                   1, 1, "unallowed token"},
    {"[1,,2]",              1, 4, "unallowed token"},
    {"[1,]",                1, 4, "unallowed token"},
    {"[,1]",                1, 2, "unallowed token"},
    {"[1 \"a\"]",           1, 4, "after array element"},
    {"[1}",                 1, 3, "after array element"},
    {"[1:2]",               1, 3, "after array element"},
    {"{1:2}",               1, 2, "invalid object key"},
    {"{\"a\":1,}",          1, 8, "invalid object key"},
    {"{a:1}",               1, 2, "invalid char"},
    {"{'a':1}",             1, 2, "invalid char"},
    {"{\"a\" 1}",           1, 6, "object key and value"},
    {"{\"a\"::1}",          1, 6, "unallowed token"},
    {"{\"a\":1 \"b\":2}",   1, 8, "after key and value"},
    {"{\"a\":1]",           1, 7, "after key and value"},
    {"[\"a\",\n \"b\x01\"]", 2, 4, "invalid character inside string"},
    {"\"a\nb\"",            1, 3, "invalid character inside string"},
    {"\"a\tb\"",            1, 3, "invalid character inside string"},
    {"\"ab\\q\"",           1, 5, "inside a string"},
    {"\"\\u12g4\"",         1, 6, "invalid (non-hex)"},
    {"\"a\\ud800\"",        1, 3, "half of a surrogate pair"},
    {"\"\\ud800\\n\"",      1, 2, "half of a surrogate pair"},
    {"\"\\ud800\\ud800\"",  1, 2, "half of a surrogate pair"},
    {"\"\\uDC00\"",         1, 2, "half of a surrogate pair"},
    {"{\"\\ud800\":1}",     1, 3, "half of a surrogate pair"},
    {"\"x\\\\\\u0000\"",    1, 5, "\\u0000 is not allowed"},
    {"{\"\\u0000\":1}",     1, 3, "\\u0000 is not allowed"},
    {"\"a\xff\"",           1, 3, "bytes that are not UTF-8"},
    {"\"\x80\"",            1, 2, "bytes that are not UTF-8"},
    {"\"\xc3\"",            1, 2, "bytes that are not UTF-8"},
    {"\"\xc0\xaf\"",        1, 2, "bytes that are not UTF-8"},
    {"\"\xe0\x80\xaf\"",    1, 2, "bytes that are not UTF-8"},
    {"\"\xed\xa0\x80\"",    1, 2, "bytes that are not UTF-8"},
    {"\"\xf0\x80\x80\x80\"", 1, 2, "bytes that are not UTF-8"},
    {"\"\xf4\x90\x80\x80\"", 1, 2, "bytes that are not UTF-8"},
    {"\"\xf5\x80\x80\x80\"", 1, 2, "bytes that are not UTF-8"},
    {"{\"\xff\":1}",        1, 3, "bytes that are not UTF-8"},
    {"\xff",                1, 1, "invalid char"},
    {"\xef\xbb\xbf{}",      1, 1, "invalid char"},
    {"{\"a\":1,\n \"b\":2, \"a\":3}", 2, 9, "key \"a\" appears twice"},
    {"{\"a\":1,\"\\u0061\":2}", 1, 8, "key \"a\" appears twice"},
    {"[\f1]",                1, 2, "invalid char"},
    {"{\v}",                1, 2, "invalid char"},
    {"[{\"\":1,\"\":2}]",   1, 8, "key \"\" appears twice"},
};
/* clang-format on */

static void a_bad_text_is_refused_where_it_goes_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        const struct refusal *c = &refusals[i];
        CLEANUP(arena_fini) struct arena a = {0};
        struct json_fault f = {0};
        struct json *j = NULL;

        CHECK(json_parse(&a, slice_of(c->text), &j, &f) == ERR_PARSE, "%s", c->text);
        CHECK(!j, "%s", c->text);
        CHECK(f.line == c->line && f.column == c->column, "%s: %u:%u %s", c->text, f.line, f.column,
              f.what);
        CHECK(strncmp(f.what, c->what, strlen(c->what)) == 0, "%s: %s", c->text, f.what);
        CHECK(json_parse(&a, slice_of(c->text), &j, NULL) == ERR_PARSE, "without a fault");
    }
}

static struct json *parsed(struct arena *a, const char *text)
{
    struct json *j = NULL;
    struct json_fault f = {0};

    CHECK(json_parse(a, slice_of(text), &j, &f) == ERR_OK, "%s: %s", text, f.what);
    return j;
}

static void a_nul_byte_is_refused_wherever_it_stands(void **state)
{
    static const char text[] = " {\"a\" : [\"b\", 1] } ";
    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        char bad[sizeof text];
        struct json *j = NULL;
        memcpy(bad, text, sizeof text);
        bad[i] = 0;
        CHECK(json_parse(&a, (struct slice){bad, sizeof text - 1}, &j, NULL) == ERR_PARSE, "%zu",
              i);
    }
}

static void values_know_their_exact_text(void **state)
{
    static const struct {
        const char *path, *raw, *text;
    } cases[] = {
        {"n", "-1.50e+3", "-1.50e+3"},
        {"s", "\"x\\u00e9\\n\"", "x\xc3\xa9\n"},
        {"e", "\"\"", ""},
        {"a", "[ 1,{ } , [] ]", NULL},
        {"o", "{\"k\" :null}", NULL},
        {"t", "true", NULL},
        {"f", "false", NULL},
        {"z", "null", NULL},
        {"\xc3\xa9", "9", "9"},
        {"p", "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
    };
    CLEANUP(arena_fini) struct arena a = {0};
    const char *text =
        " {\"n\":-1.50e+3 ,\"s\" : \"x\\u00e9\\n\",\"e\":\"\", \"a\":[ 1,{ } , [] ] ,\r\n"
        "\"o\"\t:{\"k\" :null},\"t\":true,\"f\":false ,\"z\":null,\"\\u00e9\":9,"
        "\"p\":\"\\ud83d\\ude00\" } ";
    const struct json *j = parsed(&a, text);
    (void)state;
    CHECK(j->count == COUNT_OF(cases), "%u members", j->count);
    CHECK(j->raw.ptr == text + 1 && j->raw.len == strlen(text) - 2, "without white space around");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct json *m = json_get(j, cases[i].path);
        CHECK(m, "%s", cases[i].path);
        CHECK(slice_is(m->raw, cases[i].raw), "%s: %.*s", cases[i].path, SLICE_ARG(m->raw));
        CHECK(slice_eq(m->text, slice_of(cases[i].text)), "%s: %.*s", cases[i].path,
              SLICE_ARG(m->text));
        CHECK(m->type != JSON_STRING || m->text.ptr[m->text.len] == 0, "terminated");
        CHECK(text[m->key_at] == '"', "the key's place");
    }
    CHECK(json_get(j, "a")->count == 3, "an array's count");
}

static void scalars_stand_alone_and_end_with_the_text(void **state)
{
    static const char *const texts[] = {"0",    "-0",   "12",    "1.5",  "1e9",
                                        "null", "true", "false", "\"a\""};
    static const char *const around[] = {"", " ", "\n\t"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        for (size_t k = 0; k < COUNT_OF(around) * COUNT_OF(around); k++) {
            CLEANUP(arena_fini) struct arena a = {0};
            char text[64];
            (void)snprintf(text, sizeof text, "%s%s%s", around[k % 3], texts[i], around[k / 3]);
            const struct json *j = parsed(&a, text);
            CHECK(slice_is(j->raw, texts[i]), "'%s' gives '%.*s'", text, SLICE_ARG(j->raw));
        }
}

static void nesting_ends_at_its_limit(void **state)
{
    (void)state;
    for (int depth = 1; depth < 2000; depth = depth < 70 ? depth + 1 : depth * 2) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf b = {0};
        struct json *j = NULL;
        struct json_fault f = {0};
        for (int i = 0; i < depth; i++)
            buf_str(&b, i % 2 ? "{\"a\":" : "[");
        buf_str(&b, "1");
        for (int i = depth; i-- > 0;)
            buf_str(&b, i % 2 ? "}" : "]");
        bool ok = json_parse(&a, buf_view(&b), &j, &f) == ERR_OK;
        CHECK(ok == (depth <= JSON_DEPTH_MAX), "depth %d: %s", depth, f.what);
        for (int i = 0; ok && i <= depth; i++)
            CHECK(json_is_within(j, (uint32_t)i) == (i == depth), "depth %d in %d", depth, i);
    }
}

/* The result must not depend on the search method, and the time must not be quadratic. */
static void a_repeated_key_is_found_among_any_number(void **state)
{
    (void)state;
    for (int count = 2; count < 60000; count = count < 40 ? count + 1 : count * 3) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf b = {0};
        struct json *j = NULL;
        struct json_fault f = {0};
        size_t twice_at = 0;
        json_open(&b, '{');
        for (int i = 0; i < count; i++) {
            char key[16];
            if (i == count - 1)
                twice_at = b.len + 1;
            (void)snprintf(key, sizeof key, "k%d", i == count - 1 ? count / 2 - 1 : i);
            json_key(&b, key);
            json_number(&b, i);
        }
        json_close(&b, '}');
        CHECK(json_parse(&a, buf_view(&b), &j, &f) == ERR_PARSE, "%d members", count);
        CHECK(f.offset == twice_at, "%d members: %zu, not %zu", count, f.offset, twice_at);
        b.ptr[twice_at + 1] = 'x';
        CHECK(json_parse(&a, buf_view(&b), &j, &f) == ERR_OK, "%d members: %s", count, f.what);
    }
}

static void of_several_repeated_keys_the_first_is_told(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    static const char text[] = "{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,"
                               "\"i\":0,\"j\":0,\"k\":0,\"l\":0,\"m\":0,\"n\":0,\n"
                               "\"n\":1,\"a\":1,\"m\":1}";
    struct json *j = NULL;
    struct json_fault f = {0};
    (void)state;
    CHECK(json_parse(&a, SLICE("{\"a\":0,\"b\":0,\"b\":1,\"a\":1}"), &j, &f) == ERR_PARSE, "few");
    CHECK(f.column == 14, "column %u", f.column);
    CHECK(json_parse(&a, slice_of(text), &j, &f) == ERR_PARSE, "many");
    CHECK(f.line == 2 && f.column == 1, "%u:%u %s", f.line, f.column, f.what);
}

static void a_long_key_is_quoted_up_to_a_whole_character(void **state)
{
    (void)state;
    for (int shift = 0; shift < 2; shift++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf key = {0};
        CLEANUP(buf_fini) struct buf text = {0};
        struct json *j = NULL;
        struct json_fault f = {0};
        buf_str(&key, shift ? "x" : "");
        for (int i = 0; i < 60; i++)
            buf_str(&key, "\xc3\xa4");
        buf_fmt(&text, "{\"%s\":1,\"%s\":2}", key.ptr, key.ptr);
        CHECK(json_parse(&a, buf_view(&text), &j, &f) == ERR_PARSE, "twice");
        CHECK(text_utf8_end(slice_of(f.what)) == strlen(f.what), "%s", f.what);
        CHECK(strstr(f.what, "\xc3\xa4\" appears twice"), "%s", f.what);
    }
}

static void every_code_point_is_told_from_what_is_none(void **state)
{
    (void)state;
    for (uint32_t c = 1; c < 0x110000; c++) {
        char p[4];
        size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
        static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
        uint32_t rest = c;
        for (size_t i = len; i-- > 1; rest >>= 6)
            p[i] = (char)(0x80 | (rest & 0x3f));
        p[0] = (char)(lead[len] | rest);
        bool ok = c < 0xd800 || c > 0xdfff;
        CHECK(text_utf8_end((struct slice){p, len}) == (ok ? len : 0), "U+%04x", c);
        CHECK(len == 1 || text_utf8_end((struct slice){p, len - 1}) == 0, "U+%04x cut", c);
    }
}

static void numbers_are_whole_only_if_they_fit(void **state)
{
    static const struct {
        const char *text;
        bool ok;
        int64_t v;
    } cases[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999999", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"\"1\"", false, 0},
        {"null", false, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        int64_t v = 0;
        CHECK(json_int(parsed(&a, cases[i].text), &v) == cases[i].ok, "%s", cases[i].text);
        CHECK(v == cases[i].v, "%s: %" PRId64, cases[i].text, v);
    }
    CHECK(!json_int(NULL, &(int64_t){0}), "no value");
}

static void members_are_read_by_name(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    const struct json *j = parsed(&a, "{\"s\":\"x\",\"n\":7,\"t\":true,\"f\":false,\"z\":null}");
    (void)state;
    CHECK(slice_is(json_get_text(j, "s"), "x"), "text");
    CHECK(!json_get_text(j, "n").ptr && !json_get_text(j, "no").ptr, "only strings are texts");
    CHECK(slice_is(json_get_raw(j, "n"), "7") && !json_get_raw(j, "no").ptr, "raw");
    CHECK(json_get_bool(j, "t", false) && !json_get_bool(j, "f", true), "booleans");
    CHECK(json_get_bool(j, "n", true) && !json_get_bool(j, "no", false), "what is none");
    CHECK(json_get_int(j, "n", 1) == 7 && json_get_int(j, "s", 1) == 1, "integers");
    CHECK(!json_get(NULL, "s") && !json_get(json_get(j, "s"), "s"), "no object");
}

static void gather(void *arg, struct slice piece)
{
    buf_slice(arg, piece);
}

/* Concatenates the pieces. */
static struct slice canonical(struct arena *a, const char *text)
{
    CLEANUP(buf_fini) struct buf piece = {0};
    CLEANUP(buf_fini) struct buf whole = {0};

    json_canonical(parsed(a, text), &piece, gather, &whole);
    return arena_copy(a, buf_view(&whole));
}

static bool same_canonical(struct arena *a, const char *x, const char *y)
{
    return slice_eq(canonical(a, x), canonical(a, y));
}

static void equal_values_are_told_from_others(void **state)
{
    static const char *const same[][2] = {
        {"{\"a\":1,\"b\":[2,{\"c\":null}]}", " {\"b\" : [2 ,{ \"c\":null}],\n\"\\u0061\":1} "},
        {"\"\\u00e9/\\\"\"", "\"\xc3\xa9\\/\\\"\""},
        {"[1,10,100]", "[1.0,1e1,0.1E+3]"},
        {"0", "-0.000e7"},
        {"1200", "12e2"},
        {"0.0012", "12e-4"},
        {"1e99999999999999999999", "1e99999999999999999999"},
        {"-10050.00e-2", "-1.005E2"},
        {"[0.0, -0]", "[0, 0e5]"},
    };
    static const char *const unequal[][2] = {
        {"{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}"},
        {"{\"a\":{\"b\":1}}", "{\"b\":{\"a\":1}}"},
        {"[1,2]", "[2,1]"},
        {"[[1],2]", "[1,[2]]"},
        {"[]", "{}"},
        {"[]", "[null]"},
        {"1", "\"1\""},
        {"1", "-1"},
        {"1", "10"},
        {"101", "11"},
        {"9007199254740993", "9007199254740992"},
        {"0.1", "0.10000000000000001"},
        {"\"a\"", "\"b\""},
        {"null", "false"},
        {"true", "false"},
        {"{}", "{\"a\":null}"},
        {"[\"a\",\"b\"]", "[\"as\\u0001b\"]"},
        {"{\"a\":\"b\"}", "{\"a\":\"b\",\"c\":\"d\"}"},
        {"{\"ab\":1}", "{\"a\":1}"},
        {"{\"aaaaaaaa1\":1}", "{\"aaaaaaaa2\":1}"},
        {"1e5", "1e-5"},
        {"[12,3]", "[1,23]"},
    };
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(same); i++)
        CHECK(same_canonical(&a, same[i][0], same[i][1]), "%s %s", same[i][0], same[i][1]);
    for (size_t i = 0; i < COUNT_OF(unequal); i++)
        CHECK(!same_canonical(&a, unequal[i][0], unequal[i][1]), "%s %s", unequal[i][0],
              unequal[i][1]);
    for (size_t i = 0; i < COUNT_OF(same); i++)
        CHECK(json_hash(parsed(&a, same[i][0])) == json_hash(parsed(&a, same[i][1])), "%s %s",
              same[i][0], same[i][1]);
    for (size_t i = 0; i < COUNT_OF(unequal); i++)
        CHECK(json_hash(parsed(&a, unequal[i][0])) != json_hash(parsed(&a, unequal[i][1])), "%s %s",
              unequal[i][0], unequal[i][1]);
}

static void other_values_may_have_the_same_hash(void **state)
{
    static const char *const texts[] = {"{\"a\":\"" MEETS_ONE "\"}", "{\"a\":\"" MEETS_OTHER "\"}"};
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    CHECK(json_hash(parsed(&a, texts[0])) == json_hash(parsed(&a, texts[1])), "they meet");
    CHECK(!same_canonical(&a, texts[0], texts[1]), "they are told apart");
}

/* Digests of these bytes are stored, so they must never change. */
static void canonical_bytes_stay_what_they_are(void **state)
{
    static const char text[] =
        "{\"workflow\":\"w\",\"id\":\"\\u00e9\",\"\":[null,true,false,{}],\"n\":[0,-12.50,7e3],"
        "\"z\":0.001}";
    static const char want[] = "o\5"
                               "\0a\4ntfo\0"
                               "\2ids\2\xc3\xa9"
                               "\1na\3"
                               "0-\1\3"
                               "125+\6\1"
                               "7"
                               "\10workflows\1w"
                               "\1z+\5\1"
                               "1";
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    struct slice got = canonical(&a, text);
    CHECK(slice_eq(got, (struct slice){want, sizeof want - 1}), "%zu bytes", got.len);
}

/* Names of a few letters with long common prefixes, some of them prefixes of others. */
static void members_are_sorted_by_their_bytes(void **state)
{
    struct prng p = {.state = 7};
    (void)state;

    for (int count = 1; count < 5000; count = count * 3 + 1) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf b = {0};
        for (int i = 0; i < count; i++) {
            buf_str(&b, i ? ",\"" : "{\"");
            for (uint64_t k = prng_below(&p, 12) * 8; k > 0; k--)
                buf_str(&b, k < 14 && prng_chance(&p, 50) ? "b" : "a");
            for (int n = i; n > 0; n /= 3) /* makes each name unique */
                buf_str(&b, (const char *const[]){"c", "d", "\\u0001"}[n % 3]);
            buf_str(&b, "e\":0");
        }
        buf_byte(&b, '}');
        struct json *j = parsed(&a, b.ptr);
        struct json_named *list = json_sorted(j);
        for (uint32_t i = 1; i < j->count; i++)
            CHECK(slice_order(list[i - 1].member->key, list[i].member->key) < 0, "%u of %d", i,
                  count);
        free(list);
    }
}

/* Whatever the order, and however many pieces it takes. */
static void many_members_have_one_order(void **state)
{
    enum { MANY = 3000 };
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf up = {0};
    CLEANUP(buf_fini) struct buf down = {0};
    (void)state;

    for (int count = 2; count <= MANY; count = count < 40 ? count + 1 : count * 5) {
        buf_clear(&up);
        buf_clear(&down);
        for (int i = 0; i < count; i++) {
            buf_fmt(&up, "%s\"name of %d\":%d", i ? "," : "{", i, i);
            buf_fmt(&down, "%s\"name of %d\":%d", i ? "," : "{", count - 1 - i, count - 1 - i);
        }
        buf_byte(&up, '}');
        buf_byte(&down, '}');
        CHECK(same_canonical(&a, up.ptr, down.ptr), "%d members", count);
        down.ptr[down.len - 2] = '9'; /* of the first one, which is 0 */
        CHECK(!same_canonical(&a, up.ptr, down.ptr), "%d members, one of them another", count);
    }
}

static void a_writer_sets_its_commas_by_itself(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    (void)state;
    buf_str(&b, "data: ");
    json_open(&b, '{');
    json_key(&b, "s");
    json_string(&b, SLICE("a\"b\\c\n\t\r\b\f\x01\x1f\x7f/\xc3\xa9"));
    json_key(&b, "none");
    json_string(&b, SLICE_NONE);
    json_key_slice(&b, SLICE("k\"\n"));
    json_raw(&b, SLICE("[1, 2] \n"));
    json_key(&b, "raw");
    json_raw(&b, SLICE_NONE);
    json_key(&b, "list");
    json_open(&b, '[');
    json_number(&b, -5);
    json_bool(&b, true);
    json_bool(&b, false);
    json_null(&b);
    json_open(&b, '{');
    json_close(&b, '}');
    json_open(&b, '[');
    json_close(&b, ']');
    json_string(&b, SLICE(""));
    json_close(&b, ']');
    json_key(&b, "at");
    json_time(&b, INT64_C(1769853600000));
    json_key(&b, "never");
    json_time(&b, 0);
    json_close(&b, '}');
    buf_byte(&b, '\n');
    json_open(&b, '[');
    json_close(&b, ']');
    CHECK(
        slice_is(
            buf_view(&b),
            "data: {\"s\":\"a\\\"b\\\\c\\n\\t\\r\\b\\f\\u0001\\u001f\x7f/\xc3\xa9\",\"none\":null,"
            "\"k\\\"\\n\":[1, 2],\"raw\":null,"
            "\"list\":[-5,true,false,null,{},[],\"\"],\"at\":\"2026-01-31T10:00:00.000Z\","
            "\"never\":null}\n[]"),
        "%s", b.ptr);
}

static void members_are_written_with_their_names(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};

    (void)state;
    json_open(&b, '{');
    json_member_text(&b, "text", SLICE("a\"b"));
    json_member_text(&b, "none", SLICE_NONE);
    json_member_raw(&b, "raw", SLICE("[1]"));
    json_member_raw(&b, "no_raw", SLICE_NONE);
    json_member_number(&b, "number", -7);
    json_member_bool(&b, "bool", true);
    json_member_time(&b, "at", INT64_C(1769853600000));
    json_member_time(&b, "never", 0);
    json_member_text_if(&b, "some", SLICE("x"));
    json_member_text_if(&b, "missing", SLICE_NONE);
    json_member_raw_if(&b, "some_raw", SLICE("{}"));
    json_member_raw_if(&b, "missing_raw", SLICE_NONE);
    json_close(&b, '}');
    assert_string_equal(
        b.ptr, "{\"text\":\"a\\\"b\",\"none\":null,\"raw\":[1],\"no_raw\":null,\"number\":-7,"
               "\"bool\":true,\"at\":\"2026-01-31T10:00:00.000Z\",\"never\":null,"
               "\"some\":\"x\",\"some_raw\":{}}");
}

static void a_writer_that_overflows_says_so(void **state)
{
    CLEANUP(buf_fini) struct buf b = {.max = 10};
    (void)state;
    json_open(&b, '[');
    json_string(&b, SLICE("0123456789"));
    json_key(&b, "0123456789");
    CHECK(b.overflow && b.len <= 10, "%zu", b.len);
}

static void random_text(struct buf *b, struct prng *p)
{
    static const char *const bits[] = {"a",    "\"",       "\\",           "\n",
                                       "\x01", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                       "/",    "u0000",    "12345678",     " "};
    uint32_t count = prng_below(p, 6);

    while (count-- > 0)
        buf_str(b, bits[prng_below(p, COUNT_OF(bits))]);
}

static void random_value(struct buf *b, struct prng *p, int depth)
{
    CLEANUP(buf_fini) struct buf text = {0};
    uint32_t kind = prng_below(p, depth > 4 ? 5 : 7);
    uint32_t count = prng_below(p, 5);

    random_text(&text, p);
    switch (kind) {
    case 0:
        json_null(b);
        break;
    case 1:
        json_bool(b, prng_chance(p, 50));
        break;
    case 2:
        json_number(b, (int64_t)prng_next(p) >> prng_below(p, 64));
        break;
    case 3:
    case 4:
        json_string(b, buf_view(&text));
        break;
    case 5:
        json_open(b, '[');
        while (count-- > 0)
            random_value(b, p, depth + 1);
        json_close(b, ']');
        break;
    default:
        json_open(b, '{');
        while (count-- > 0) {
            buf_i64(&text, count); /* never the same twice */
            json_key_slice(b, buf_view(&text));
            random_value(b, p, depth + 1);
        }
        json_close(b, '}');
        break;
    }
}

/* Writes a tree from its decoded values. */
static void rewrite(struct buf *b, const struct json *j)
{
    switch (j->type) {
    case JSON_NULL:
        json_null(b);
        return;
    case JSON_FALSE:
    case JSON_TRUE:
        json_bool(b, j->type == JSON_TRUE);
        return;
    case JSON_NUMBER:
        json_raw(b, j->text);
        return;
    case JSON_STRING:
        json_string(b, j->text);
        return;
    case JSON_ARRAY:
        json_open(b, '[');
        for (const struct json *m = j->child; m; m = m->next)
            rewrite(b, m);
        json_close(b, ']');
        return;
    case JSON_OBJECT:
        json_open(b, '{');
        for (const struct json *m = j->child; m; m = m->next) {
            json_key_slice(b, m->key);
            rewrite(b, m);
        }
        json_close(b, '}');
        return;
    }
    UNREACHABLE();
}

static void what_is_written_reads_back_the_same(void **state)
{
    struct prng p = {11};
    (void)state;
    for (int i = 0; i < 3000; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf b = {0};
        CLEANUP(buf_fini) struct buf again = {0};
        random_value(&b, &p, 0);
        const struct json *j = parsed(&a, b.ptr);
        rewrite(&again, j);
        CHECK(slice_eq(buf_view(&b), buf_view(&again)), "%s became %s", b.ptr, again.ptr);
    }
}

/* If a text exceeds the buffer's maximum, the characters that fit are written, and nothing
 * after. */
static void a_bounded_writer_writes_what_fits(void **state)
{
    static const struct {
        const char *text, *written;
        bool overflow;
    } in[] = {
        {"123456", "\"123456\"", false},      {"1234567", "\"1234567", true},
        {"123456789", "\"1234567", true},     {"1\"3", "\"1\\\"3\"", false},
        {"123\"5678", "\"123\\\"56", true},   {"123456\"8", "\"123456", true},
        {"123456\xc3\xa9", "\"123456", true}, {"", "\"\"", false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(in); i++) {
        CLEANUP(buf_fini) struct buf b = {.max = 8};
        json_string(&b, slice_of(in[i].text));
        CHECK(b.overflow == in[i].overflow, "%s", in[i].text);
        CHECK(slice_is(buf_view(&b), in[i].written), "%s: %s", in[i].text, b.ptr);
        json_open(&b, '{');
        CHECK(b.len <= 8, "%s: %s", in[i].text, b.ptr);
        CHECK(!in[i].overflow || slice_is(buf_view(&b), in[i].written), "nothing behind it");
    }
    CLEANUP(buf_fini) struct buf b = {.max = 4};
    json_raw(&b, SLICE("123456"));
    CHECK(b.overflow && slice_is(buf_view(&b), "1234"), "%s", b.ptr);
}

static void what_has_to_be_escaped_is_counted(void **state)
{
    struct prng p = {12};
    (void)state;
    for (int i = 0; i < 2000; i++) {
        CLEANUP(buf_fini) struct buf text = {0};
        size_t count = 0;
        for (uint64_t n = prng_below(&p, 70); n > 0; n--) {
            static const char some[] = "ab\"\\\n\t /\x7f\xc3";
            char c = some[prng_below(&p, sizeof some - 1)];
            count += c == '"' || c == '\\' || c == '\n' || c == '\t';
            buf_byte(&text, c);
        }
        CHECK(text_escapes(buf_view(&text)) == count, "%zu", count);
    }
}

/* Allocates the exact size, so that the sanitizer detects every read beyond it. */
static bool parses(const char *ptr, size_t len)
{
    CLEANUP(arena_fini) struct arena a = {0};
    char *copy = malloc(len ? len : 1);
    struct json *j = NULL;
    struct json_fault f = {0};

    assert_non_null(copy);
    memcpy(copy, ptr, len);
    bool ok = json_parse(&a, (struct slice){copy, len}, &j, &f) == ERR_OK;
    if (ok) {
        (void)json_hash(j);
        CHECK(j->raw.ptr >= copy && j->raw.ptr + j->raw.len <= copy + len, "raw lies inside");
    } else {
        CHECK(f.offset <= len && f.what[0] && f.line && f.column, "a fault has a place");
    }
    free(copy);
    return ok;
}

static void no_prefix_and_no_flipped_byte_breaks_the_parser(void **state)
{
    char text[] =
        "{\"id\":\"o-17\",\"n\":[1,-2.5e3,0],\"s\":\"\\ud83d\\ude00 \\u00e9\xc3\xa9\\n\",\n"
        " \"o\":{\"t\":true,\"f\":false,\"z\":null,\"\":{}}, \"a\":[[],[{}]]}";
    size_t len = sizeof text - 1;
    size_t met = 0;
    (void)state;
    assert_true(parses(text, len));
    for (size_t i = 0; i < len; i++)
        CHECK(!parses(text, i), "a prefix of %zu bytes", i);
    for (size_t i = 0; i < len; i++) {
        char was = text[i];
        for (int c = 0; c < 256; c++) {
            text[i] = (char)c;
            met += parses(text, len);
        }
        text[i] = was;
    }
    CHECK(met > len && met < len * 256, "%zu still parse", met);
}

/* The limit plus one chunk; not the full size of the tree. */
static void a_tree_may_be_bounded(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(arena_fini) struct arena all = {0};
    CLEANUP(buf_fini) struct buf b = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;
    (void)state;

    buf_byte(&b, '[');
    for (int i = 0; i < 100000; i++)
        buf_str(&b, "0,");
    buf_str(&b, "0]");
    CHECK(json_parse_bounded(&a, buf_view(&b), 8, 1 << 20, &j, &fault) == ERR_TOO_BIG, "%s",
          fault.what);
    CHECK(a.total <= (1 << 20) + 70000, "%zu bytes", a.total);
    CHECK(strstr(fault.what, "more values") && !j, "%s", fault.what);
    CHECK(json_parse_bounded(&all, buf_view(&b), 8, 16 << 20, &j, &fault) == ERR_OK, "%s",
          fault.what);
    CHECK(j->count == 100001, "%u", j->count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_text_is_refused_where_it_goes_wrong),
        cmocka_unit_test(a_nul_byte_is_refused_wherever_it_stands),
        cmocka_unit_test(values_know_their_exact_text),
        cmocka_unit_test(scalars_stand_alone_and_end_with_the_text),
        cmocka_unit_test(nesting_ends_at_its_limit),
        cmocka_unit_test(a_repeated_key_is_found_among_any_number),
        cmocka_unit_test(of_several_repeated_keys_the_first_is_told),
        cmocka_unit_test(a_long_key_is_quoted_up_to_a_whole_character),
        cmocka_unit_test(every_code_point_is_told_from_what_is_none),
        cmocka_unit_test(numbers_are_whole_only_if_they_fit),
        cmocka_unit_test(members_are_read_by_name),
        cmocka_unit_test(equal_values_are_told_from_others),
        cmocka_unit_test(other_values_may_have_the_same_hash),
        cmocka_unit_test(canonical_bytes_stay_what_they_are),
        cmocka_unit_test(members_are_sorted_by_their_bytes),
        cmocka_unit_test(many_members_have_one_order),
        cmocka_unit_test(a_tree_may_be_bounded),
        cmocka_unit_test(a_writer_sets_its_commas_by_itself),
        cmocka_unit_test(members_are_written_with_their_names),
        cmocka_unit_test(a_writer_that_overflows_says_so),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(a_bounded_writer_writes_what_fits),
        cmocka_unit_test(what_has_to_be_escaped_is_counted),
        cmocka_unit_test(no_prefix_and_no_flipped_byte_breaks_the_parser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
