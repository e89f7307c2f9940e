/* What tasks of one family tell each other survives writing and reading; what is damaged is not
 * understood. */

#include "base/test.h"
#include "store/codec/family.h"
#include "store/rows/notice.h"

struct room {
    struct arena a;
    struct buf text;
    struct family_word word;
};

static bool pass(struct room *r, struct slice kind, const struct family_word *w)
{
    buf_clear(&r->text);
    family_word_write(&r->text, kind, w);
    return family_word_read(kind, buf_view(&r->text), &r->a, &r->word);
}

static void end(struct room *r)
{
    buf_fini(&r->text);
    arena_fini(&r->a);
}

#define EXPECT_TEXT(s, text) \
    CHECK(slice_is((s), (text)), "\"%.*s\" is not \"%s\"", SLICE_ARG(s), (text))

static void a_child_tells_its_end(void **state)
{
    struct room r = {0};
    const struct family_word w = {.step = SLICE("a \"step\""),
                                  .number = 3,
                                  .state = CHILD_PROCESSED,
                                  .output = SLICE("{\"two\":\n\"lines\"}")};
    (void)state;

    CHECK(pass(&r, NOTICE_CHILD, &w), "%.*s", SLICE_ARG(buf_view(&r.text)));
    EXPECT_TEXT(r.word.step, "a \"step\"");
    EXPECT_TEXT(r.word.output, "{\"two\":\n\"lines\"}");
    CHECK(r.word.number == 3 && r.word.state == CHILD_PROCESSED, "%u", r.word.number);
    CHECK(!r.word.error.code.ptr, "it has no error");
    end(&r);
}

static void each_state_has_its_error(void **state)
{
    struct room r = {0};
    (void)state;

    for (int s = CHILD_RUNNING; s <= CHILD_COMPENSATED; s++) {
        const struct family_word w = {.step = SLICE("s"),
                                      .number = UINT32_MAX,
                                      .state = (enum child_state)s,
                                      .error = {SLICE("no\nway"), SLICE("\t\"")}};
        CHECK(pass(&r, NOTICE_CHILD, &w), "%.*s", SLICE_ARG(buf_view(&r.text)));
        CHECK(r.word.state == (enum child_state)s && r.word.number == UINT32_MAX, "%d", s);
        EXPECT_TEXT(r.word.error.code, "no\nway");
        EXPECT_TEXT(r.word.error.message, "\t\"");
        CHECK(!r.word.output.ptr, "it has no output");
    }
    end(&r);
}

static void a_parent_tells_what_it_wants(void **state)
{
    struct room r = {0};
    const struct family_word pause = {.pauses = true, .paused_at = INT64_C(1790000000123)};
    const struct family_word resume = {.pauses = true};
    (void)state;

    for (int wish = WISH_NONE; wish <= WISH_CLOSE; wish++) {
        const struct family_word w = {.wish = (enum child_wish)wish, .error.code = SLICE("undo")};
        CHECK(pass(&r, NOTICE_PARENT, &w), "%.*s", SLICE_ARG(buf_view(&r.text)));
        CHECK(r.word.wish == (enum child_wish)wish && !r.word.pauses, "%d", wish);
        EXPECT_TEXT(r.word.error.code, "undo");
    }
    CHECK(pass(&r, NOTICE_PARENT, &pause), "%.*s", SLICE_ARG(buf_view(&r.text)));
    CHECK(r.word.pauses && r.word.paused_at == pause.paused_at, "%" PRId64, r.word.paused_at);
    CHECK(pass(&r, NOTICE_PARENT, &resume), "%.*s", SLICE_ARG(buf_view(&r.text)));
    CHECK(r.word.pauses && r.word.paused_at == 0, "%" PRId64, r.word.paused_at);
    end(&r);
}

static void what_is_damaged_is_not_understood(void **state)
{
    static const char *const children[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"number\":1,\"state\":\"running\"}",
        "{\"step\":\"s\",\"state\":\"running\"}",
        "{\"step\":\"s\",\"number\":0,\"state\":\"running\"}",
        "{\"step\":\"s\",\"number\":4294967296,\"state\":\"running\"}",
        "{\"step\":\"s\",\"number\":1,\"state\":\"none\"}",
        "{\"step\":\"s\",\"number\":1,\"state\":\"sold\"}",
        "{\"step\":\"s\",\"number\":1}",
    };
    static const char *const parents[] = {"", "{}", "[1]", "{\"wish\":\"luck\"}", "{\"wish\":7}"};
    struct room r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(children); i++)
        CHECK(!family_word_read(NOTICE_CHILD, slice_of(children[i]), &r.a, &r.word), "%s",
              children[i]);
    for (size_t i = 0; i < COUNT_OF(parents); i++)
        CHECK(!family_word_read(NOTICE_PARENT, slice_of(parents[i]), &r.a, &r.word), "%s",
              parents[i]);
    end(&r);
}

static void a_child_knows_where_it_is_from(void **state)
{
    struct room r = {0};
    struct child_origin back;
    const struct child_origin o = {.parent = SLICE("o-1@a"),
                                   .root = SLICE("o-1"),
                                   .step = SLICE("b"),
                                   .number = 2,
                                   .complete_by = INT64_C(1790000000123),
                                   .family = SLICE("{\"c\":4}"),
                                   .trace = SLICE("00-ab-cd-01"),
                                   .owner = SLICE("shop")};
    const struct child_origin few = {.parent = SLICE("p"),
                                     .root = SLICE("p"),
                                     .step = SLICE("s"),
                                     .number = 1};
    (void)state;

    child_origin_write(&r.text, &o);
    CHECK(child_origin_read(buf_view(&r.text), &r.a, &back), "%.*s", SLICE_ARG(buf_view(&r.text)));
    EXPECT_TEXT(back.parent, "o-1@a");
    EXPECT_TEXT(back.root, "o-1");
    EXPECT_TEXT(back.step, "b");
    EXPECT_TEXT(back.family, "{\"c\":4}");
    EXPECT_TEXT(back.trace, "00-ab-cd-01");
    EXPECT_TEXT(back.owner, "shop");
    CHECK(back.number == 2 && back.complete_by == o.complete_by, "%u", back.number);
    buf_clear(&r.text);
    child_origin_write(&r.text, &few);
    CHECK(child_origin_read(buf_view(&r.text), &r.a, &back), "%.*s", SLICE_ARG(buf_view(&r.text)));
    CHECK(!back.family.ptr && !back.trace.ptr && !back.owner.ptr && back.complete_by == 0,
          "nothing is added");
    CHECK(!child_origin_read(SLICE("{\"parent\":\"p\"}"), &r.a, &back), "the rest is missing");
    CHECK(!child_origin_read(SLICE("x"), &r.a, &back), "it is no JSON");
    end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_tells_its_end),
        cmocka_unit_test(each_state_has_its_error),
        cmocka_unit_test(a_parent_tells_what_it_wants),
        cmocka_unit_test(what_is_damaged_is_not_understood),
        cmocka_unit_test(a_child_knows_where_it_is_from),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
