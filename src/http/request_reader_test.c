/* Tests of request_reader.c without sockets: the cases of cases.h, split into pieces in every way,
 * give the same requests and refusals; fields and parameters are found by their names. http_fuzz.c
 * does the same with any bytes. */

#include "base/test.h"

#include "http/cases.h"
#include "http/transcript.h"

static void the_way_bytes_are_cut_changes_nothing(void **state)
{
    static const struct http_limits tight = {.body_max = 100,
                                             .head_max = 120,
                                             .header_count_max = 3};
    const struct http_limits *limits[] = {&http_limits_default, &tight};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(http_cases) * 2; i++) {
        const struct http_case *t = &http_cases[i / 2];
        CLEANUP(buf_fini) struct buf whole = {0};
        transcript_write(&whole, limits[i % 2], t->bytes, t->bytes.len, 1);
        if (i % 2 == 0)
            CHECK((strstr(whole.ptr, "urn") != NULL) == false, "%s", t->what);
        for (size_t cut = 1; cut <= t->bytes.len; cut++) {
            CLEANUP(buf_fini) struct buf parts = {0};
            CLEANUP(buf_fini) struct buf bits = {0};
            transcript_write(&parts, limits[i % 2], t->bytes, cut, t->bytes.len);
            CHECK(slice_eq(buf_view(&parts), buf_view(&whole)), "%s, cut at %zu: %s", t->what, cut,
                  parts.ptr);
            transcript_write(&bits, limits[i % 2], t->bytes, cut, cut);
            CHECK(slice_eq(buf_view(&bits), buf_view(&whole)), "%s, in pieces of %zu: %s", t->what,
                  cut, bits.ptr);
        }
    }
}

static void a_request_is_taken_apart(void **state)
{
    static const struct {
        const char *target, *transcript;
    } cases[] = {
        {"/", "GET [/]\n"},
        {"/?", "GET [/]\n"},
        {"/v1/tasks", "GET [/v1/tasks] <v1> <tasks>\n"},
        {"/v1/tasks/", "GET [/v1/tasks/] <v1> <tasks> <>\n"},
        {"//a", "GET [//a] <> <a>\n"},
        {"/a%2Fb/%41+c", "GET [/a%2Fb/%41+c] <a/b> <A+c>\n"},
        {"/?a=b&c=d%26e&f&=g&&h=+%2b", "GET [/] a=b c=d&e f= =g h= +\n"},
        {"/?a=b=c&%61=d?/", "GET [/] a=b=c a=d?/\n"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf in = {0};
        CLEANUP(buf_fini) struct buf out = {0};
        buf_fmt(&in, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", cases[i].target);
        transcript_write(&out, &http_limits_default, buf_view(&in), in.len, 1);
        char *end_of_line = strchr(out.ptr, '\n');
        end_of_line[1] = 0;
        CHECK(strcmp(out.ptr, cases[i].transcript) == 0, "%s: %s", cases[i].target, out.ptr);
    }
}

static void fields_and_parameters_are_found_by_name(void **state)
{
    struct http_reader r;
    size_t used = 0;
    struct slice in = SLICE("GET /?wait=3%30s&tag.k=1 HTTP/1.1\r\nHost: a\r\nX-One:  1 \r\n"
                            "X-Two:\r\nx-one: 2\r\n\r\n");
    (void)state;
    http_reader_init(&r, &http_limits_default);
    CHECK(http_reader_feed(&r, in, &used) == HTTP_READ_WHOLE, "whole");
    CHECK(used == in.len, "%zu", used);
    struct http_message *m = http_reader_take(&r);
    CHECK(slice_is(http_header(&m->request, "x-ONE"), "1"), "the first one counts");
    CHECK(slice_is(http_header(&m->request, "X-Two"), ""), "it is empty");
    CHECK(!http_header(&m->request, "X").ptr, "there is none");
    CHECK(slice_is(http_query(&m->request, "wait"), "30s"), "decoded");
    CHECK(slice_is(http_query(&m->request, "tag.k"), "1"), "there");
    CHECK(!http_query(&m->request, "tag").ptr, "there is none");
    http_message_free(m);
    http_reader_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_way_bytes_are_cut_changes_nothing),
        cmocka_unit_test(a_request_is_taken_apart),
        cmocka_unit_test(fields_and_parameters_are_found_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
