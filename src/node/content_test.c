/* Tests of content.c: which submissions are the same, hashes of earlier versions, and content
 * that was made so that the 64-bit hashes are equal. */

#include "base/test.h"

#include "base/meets.h"
#include "node/content.h"

static struct contents *contents;

static int set_up(void **state)
{
    (void)state;
    contents = contents_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    contents_free(contents);
    return 0;
}

static struct content content(struct arena *a, const char *text)
{
    struct json *j = NULL;

    enum err err = json_parse(a, slice_of(text), &j, NULL);
    CHECK(err == ERR_OK, "%s", text);
    return content_of(contents, j, a);
}

/* They are stored with tasks: what was once given is given for ever. The values come from another
 * program (Python's hashlib, and the bytes that json/same.c tells of). */
static void what_is_stored_stays_good(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf longer = {0};
    (void)state;

    struct content c = content(&a, "{\"workflow\":\"order\",\"id\":\"o-17\",\"input\":{\"sku\":"
                                   "\"widget\",\"quantity\":120,\"tags\":[null,true]}}");
    CHECK(slice_is(c.sha256, "Z7wcP73v6jbbJK--50sPW6OC4KJ97FxjYAyByW9XkPQ"), "%.*s",
          SLICE_ARG(c.sha256));
    CHECK(c.hash == UINT64_C(0x5a30674674811643), "%" PRIx64, c.hash);
    buf_str(&longer, "{\"input\":[");
    for (int i = 0; i < 40; i++) {
        buf_str(&longer, i ? ",\"" : "\"");
        for (int k = 0; k < 64; k++)
            buf_str(&longer, "0123456789abcdef");
        buf_byte(&longer, '"');
    }
    buf_str(&longer, "],\"workflow\":\"order\",\"id\":\"o-17\"}");
    c = content(&a, longer.ptr);
    CHECK(slice_is(c.sha256, "nWoMKPicpvTnF89T-j1wHSXKeDukoOROCBku2GTd-6w"), "%.*s",
          SLICE_ARG(c.sha256));
}

static void a_submission_within_another_trace_is_the_same(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    struct content x = content(&a, "{\"workflow\":\"w\",\"traceparent\":\"00-aa\",\"id\":\"i\"}");
    struct content y = content(&a, "{\"id\":\"i\",\"workflow\":\"w\"}");
    struct content z = content(&a, "{\"id\":\"i\",\"workflow\":\"x\"}");
    CHECK(slice_eq(x.sha256, y.sha256) && x.hash == y.hash, "the same");
    CHECK(!slice_eq(y.sha256, z.sha256) && y.hash != z.hash, "another");
    CHECK(x.sha256.len == CONTENT_SHA256_LEN, "%zu", x.sha256.len);
}

static void content_that_was_made_to_meet_is_told_apart(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    (void)state;

    struct content x = content(&a, "{\"workflow\":\"w\",\"input\":\"" MEETS_ONE "\"}");
    struct content y = content(&a, "{\"workflow\":\"w\",\"input\":\"" MEETS_OTHER "\"}");
    CHECK(x.hash == y.hash, "by the hash they are one");
    CHECK(!content_is_same(&x, &y), "they are two");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_stored_stays_good),
        cmocka_unit_test(a_submission_within_another_trace_is_the_same),
        cmocka_unit_test(content_that_was_made_to_meet_is_told_apart),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
