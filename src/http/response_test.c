/* Tests of response.c: problem documents are valid JSON whatever bytes their texts have; what is
 * not UTF-8 is replaced. */

#include "base/test.h"

#include "http/response.h"

static void problems_are_json_whatever_they_tell(void **state)
{
    static const struct {
        const char *detail, *json;
    } cases[] = {
        {"", ""},
        {"plain /:{}", "plain /:{}"},
        {"\"\\", "\\\"\\\\"},
        {"\x01\n\x7f", "\\u0001\\u000a\\u007f"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\x80", "\xef\xbf\xbd"},                 /* begins in the middle */
        {"\xc3", "\xef\xbf\xbd"},                 /* ends too early */
        {"\xc3x", "\xef\xbf\xbdx"},               /* is interrupted */
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"}, /* overlong */
        {"\xe0\x80\xaf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* half a pair */
        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* above
                                                                                   * U+10FFFF */
        {"\xff", "\xef\xbf\xbd"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        CLEANUP(buf_fini) struct buf expected = {0};
        http_problem_write(&b, 404, "lost", slice_of(cases[i].detail));
        buf_fmt(&expected,
                "{\"type\":\"urn:intact:problem:lost\",\"title\":\"Not Found\",\"status\":404,"
                "\"detail\":\"%s\"}",
                cases[i].json);
        CHECK(slice_eq(buf_view(&b), buf_view(&expected)), "case %zu: %s", i, b.ptr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(problems_are_json_whatever_they_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
