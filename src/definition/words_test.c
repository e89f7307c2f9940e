/* Tests that the texts of definition/ for people stay sound: messages and mistakes are stored and
 * sent as JSON, so truncated ones must be valid UTF-8, and an odd character is quoted whole. */

#include "base/test.h"

#include "definition/definition.h"
#include "json/text.h"

static struct mistakes mistakes;

/* Failures are recorded with the task, which must remain readable. */
static void messages_are_truncated_between_characters(void **state)
{
    static const struct {
        const char *before, *after;
    } more[] = {
        {",\"input\":\"${ ", " | tonumber }\""}, /* each fails during evaluation */
        {",\"if\":\"", " | tonumber\""},
        {",\"if\":\"", " | error\""},
    };
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(more); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf text = {0};
        CLEANUP(buf_fini) struct buf b = {0};
        struct slice ret = SLICE_NONE;
        struct error e = {0};
        bool truth = false;
        for (int n = 0; n < 120; n++)
            buf_str(&text, "\xc3\xa4");
        buf_str(&b, "{\"intact\":1,\"workflow\":\"w\",\"steps\":[{\"name\":\"a\",\"agent\":\"a\","
                    "\"action\":\"x\",\"undo\":\"none\"");
        buf_fmt(&b, "%s%s\\\"%s\\\"%s", more[i / 2].before, i % 2 ? " " : "", text.ptr,
                more[i / 2].after);
        buf_str(&b, "}]}");
        struct definition *d = NULL;
        CHECK(definition_parse(buf_view(&b), DEFINITION_JSON, &d, &mistakes, NULL) == ERR_OK, "%s",
              b.ptr);
        struct scope s = {.definition = d, .input = SLICE("{}")};
        enum err err = i / 2 == 0 ? definition_step_input(&s, 0, &a, &ret, &e)
                                  : definition_condition(&s, 0, &a, &truth, &e);
        CHECK(err == ERR_INVALID, "%s", b.ptr);
        CHECK(text_utf8_end(slice_of(e.text)) == strlen(e.text), "%s", e.text);
        definition_free(d);
    }
}

static void mistakes_are_truncated_between_characters(void **state)
{
    static const struct {
        const char *before, *after;
    } texts[] = {{"{\"intact\":1,\"", "\":1}"}, {"{\"", "\":1,\"a\":1,\"a\":1}"}, {"\"", ""}};
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(texts); i++) {
        CLEANUP(buf_fini) struct buf name = {0};
        CLEANUP(buf_fini) struct buf b = {0};
        struct definition *d = NULL;
        for (int n = 0; n < 120; n++)
            buf_str(&name, "\xc3\xa4");
        buf_fmt(&b, "%s%s%s%s", texts[i / 2].before, i % 2 ? "x" : "", name.ptr,
                texts[i / 2].after);
        CHECK(definition_parse(buf_view(&b), DEFINITION_JSON, &d, &mistakes, NULL) != ERR_OK, "%s",
              b.ptr);
        for (size_t k = 0; k < mistakes.count; k++)
            CHECK(text_utf8_end(slice_of(mistakes.list[k].found)) == strlen(mistakes.list[k].found),
                  "%s", mistakes.list[k].found);
    }
}

static void an_odd_character_is_quoted_whole(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct expression *x = NULL;
    struct error e = {0};
    size_t column = 0;
    (void)state;
    CHECK(expression_compile(SLICE(".a + \xe2\x82\xac"), &a, &x, &column, &e) == ERR_INVALID,
          "a sign");
    CHECK(column == 6 && strstr(e.text, "\"\xe2\x82\xac\""), "%zu: %s", column, e.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_truncated_between_characters),
        cmocka_unit_test(mistakes_are_truncated_between_characters),
        cmocka_unit_test(an_odd_character_is_quoted_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
