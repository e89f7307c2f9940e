/* json_parse_members: the same members as in the whole tree, the same refusals, and little memory
 * whatever is in them. */
#include "base/test.h"

#include "json/json.h"

static void members_are_those_of_the_whole_tree(void **state)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "[1,[2],{\"a\":3}]",
        " 5 ",
        "\"a\\u0041\"",
        "{\"a\":1,\"b\":[1,{\"c\":[]}],\"c\\u0064\":{\"a\":{\"a\":\"x\"},\"b\":2},\"e\":\"\\n\","
        "\"f\":null}",
        "[{\"a\":1},{\"b\":2}]",
        "{\"a\" : { } , \"b\" : [ ] }",
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct json *whole = NULL;
        struct json *members = NULL;
        CHECK(json_parse(&a, slice_of(texts[i]), &whole, NULL) == ERR_OK, "%s", texts[i]);
        CHECK(json_parse_members(&a, slice_of(texts[i]), 8, &members, NULL) == ERR_OK, "%s",
              texts[i]);
        CHECK(members->type == whole->type && slice_eq(members->raw, whole->raw), "%s", texts[i]);
        const struct json *k = members->child;
        for (const struct json *j = whole->type == JSON_OBJECT ? whole->child : NULL; j;
             j = j->next, k = k->next) {
            CHECK(k && k->type == j->type && slice_eq(k->key, j->key), "%s", texts[i]);
            CHECK(slice_eq(k->raw, j->raw) && slice_eq(k->text, j->text) && !k->child, "%s",
                  texts[i]);
        }
        CHECK(!k, "%s", texts[i]);
    }
}

static void what_is_no_json_is_refused_at_any_depth(void **state)
{
    static const char *const texts[] = {
        "{\"a\":[1,}", "{\"a\":1,\"a\":2}",   "{\"a\":{\"b\":\"\\ud800\"}}",
        "[[[[[1]]]]]", "{\"a\":{\"b\":tru}}", "{\"a\":[\"\xff\"]}"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct json *j = NULL;
        struct json_fault fault;
        CHECK(json_parse_members(&a, slice_of(texts[i]), 4, &j, &fault) == ERR_PARSE, "%s",
              texts[i]);
    }
}

static void what_is_in_a_member_takes_no_memory(void **state)
{
    static const char *const begins[] = {"{\"a\":[", "["};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(begins); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf b = {0};
        struct json *j = NULL;
        buf_str(&b, begins[i]);
        for (int n = 0; n < 100000; n++)
            buf_str(&b, "{\"x\\n\":\"y\"},");
        buf_str(&b, i == 0 ? "0]}" : "0]");
        CHECK(json_parse_members(&a, buf_view(&b), 8, &j, NULL) == ERR_OK, "%zu", i);
        CHECK(a.total <= 70000, "%zu bytes", a.total);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_those_of_the_whole_tree),
        cmocka_unit_test(what_is_no_json_is_refused_at_any_depth),
        cmocka_unit_test(what_is_in_a_member_takes_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
