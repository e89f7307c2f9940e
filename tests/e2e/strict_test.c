/* Tests that invalid requests get an exact error, on every route, and that valid ones are
 * accepted exactly as they are. node/strict.c and api/query.c have the checks. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

static int start(void **state)
{
    static char config[100];

    node_init(&node);
    (void)snprintf(config, sizeof config, "%s/server.yaml", node.home);
    FILE *f = fopen(config, "w");
    CHECK(f && setenv("INTACT_TEST_HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1) == 0, "set");
    fprintf(f, "intact_server: 1\nwebhooks: [{url: 'https://s.example/', secret: {env: "
               "INTACT_TEST_HOOK}}]\n");
    (void)fclose(f);
    node_start(&node, FLAGS("--config", config, "--log", "warn"));
    *state = &node;
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"one\", \"action\": \"x\", \"undo\": "
                 "\"none\"}]");
    return 0;
}

static void expect_detail(const struct reply *r, const char *says)
{
    CHECK(strstr(text_at(r, "detail"), says), "expected \"%s\": %s", says, text_at(r, "detail"));
}

/* ---- strangers ---- */

static void unknown_parameters_are_named_on_every_route(void **state)
{
    static const struct {
        const char *method, *path, *says;
    } cases[] = {
        {"GET", "/v1/tasks?stat=error", "\"stat\" here, did you mean \"state\"?"},
        {"GET", "/v1/tasks?tag=x",
         "ended_before, ids, id_prefix, paused, closed, children, parent, root, limit or cursor"},
        {"POST", "/v1/tasks/a/cancel?force=1", "\"force\" here, none is expected"},
        {"GET", "/v1/tasks/a?wiat=5s", "\"wiat\" here, did you mean \"wait\"?"},
        {"GET", "/v1/tasks/a?state=error", "\"state\" here, expected wait"},
        {"GET", "/v1/tasks/a?=", "\"\" here"},
        {"POST", "/v1/tasks?dry_run=true", "\"dry_run\" here, expected wait"},
        {"POST", "/v1/tasks/a/retry?force=1", "\"force\" here, none is expected"},
        {"GET", "/v1/workflows?limit=5", "\"limit\""},
        {"GET", "/v1/workflows/one?version=1", "\"version\""},
        {"PUT", "/v1/workflows/one?force", "\"force\""},
        {"POST", "/v1/validate?strict=1", "\"strict\""},
        {"POST", "/v1/agents/a/work?wait=5s", "\"wait\""},
        {"GET", "/v1/agents?x=1", "\"x\""},
        {"GET", "/v1/nodes?x=1", "\"x\""},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bool has_body = strcmp(cases[i].method, "GET") != 0;
        send_as(&node, &r, cases[i].method, cases[i].path, has_body ? "application/json" : NULL,
                SLICE("{}"));
        CHECK(r.status == 422, "%s: %d", cases[i].path, r.status);
        expect_problem(&r, 422, "unknown-parameter");
        expect_detail(&r, cases[i].says);
    }
    get(&node, &r, "/v1/tasks/nobody?"); /* a query without parameters */
    EXPECT(&r, 404);
    get(&node, &r, "/v1/tasks/nobody?&&wait=0s&");
    EXPECT(&r, 404);
}

static void parameters_stand_once(void **state)
{
    static const char *const bad[] = {"wait=0s&wait=1s", "wait=0s&wait=0s", "w%61it=0s&wait=0s"};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        get(&node, &r, "/v1/tasks/nobody?%s", bad[i]);
        CHECK(r.status == 422, "%s: %d", bad[i], r.status);
        expect_problem(&r, 422, "repeated-parameter");
        expect_detail(&r, "wait is given twice");
    }
    get(&node, &r, "/v1/tasks/nobody?w%%61it=0%%73");
    EXPECT(&r, 404);
}

static void unknown_members_are_named_with_the_probable_one(void **state)
{
    static const struct {
        const char *path, *body, *says;
    } cases[] = {
        {"/v1/tasks", "{\"workflow\": \"one\", \"prioritty\": 5}", "did you mean \"priority\"?"},
        {"/v1/tasks", "{\"workflow\": \"one\", \"notbefore\": 5}", "did you mean \"not_before\"?"},
        {"/v1/tasks", "{\"workflow\": \"one\", \"delay\": 5}",
         "expected workflow, version, id, input, priority, not_before, reply_to, tags, paused, "
         "traceparent or signals"},
        {"/v1/tasks", "{\"workflow\": \"one\", \"\": 5}", "\"\" in a submission"},
        {"/v1/tasks", "{\"workflow\": \"one\", \"Priority\": 5}", "\"Priority\""},
        {"/v1/tasks/a/cancel", "{\"because\": \"x\"}", "\"because\" in an operation"},
        {"/v1/tasks/a/undo", "{\"raeson\": \"x\"}", "did you mean \"reason\"?"},
        {"/v1/tasks/a/skip", "{\"reason\": \"x\", \"why\": \"a\"}",
         "expected step, from, input, output or"},
        {"/v1/agents/a/work", "{\"instance\": \"i\", \"result\": []}", "did you mean \"results\"?"},
        {"/v1/agents/a/work", "{\"instance\": \"i\", \"heartbeat\": []}", "\"heartbeat\""},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        post(&node, &r, cases[i].path, "%s", cases[i].body);
        CHECK(r.status == 422, "%s: %d", cases[i].body, r.status);
        expect_problem(&r, 422, "unknown-member");
        expect_detail(&r, cases[i].says);
    }
}

/* ---- bodies ---- */

static void say_body(struct reply *ret, const char *headers, const char *body)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b,
            "POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
            "Authorization: Bearer %s\r\n%sContent-Length: %zu\r\n\r\n%s",
            node.token, headers, strlen(body), body);
    int fd = dial(&node);
    say(fd, buf_view(&b));
    hear(fd, ret);
}

static void content_types_are_read_to_their_end(void **state)
{
    static const struct {
        const char *headers;
        int status;
        const char *type;
    } cases[] = {
        {"Content-Type: application/json\r\n", 422, NULL},
        {"Content-Type: application/json;charset=UTF-8\r\n", 422, NULL},
        {"Content-Type: application/json ; charset=\"utf-8\" ;\r\n", 422, NULL},
        {"Content-Type: application/x-ndjson; charset=utf-8\r\n", 200, NULL},
        {"Content-Type: application/json\r\nAccept: text/html\r\n", 422, NULL},
        {"Content-Type: application/json\r\nContent-Encoding: identity\r\n", 422, NULL},
        {"Content-Type: application/json; charset=latin1\r\n", 415, "content-type"},
        {"Content-Type: application/json; charset=utf-16\r\n", 415, "content-type"},
        {"Content-Type: application/json; profile=x\r\n", 415, "content-type"},
        {"Content-Type: application/json, text/plain\r\n", 415, "content-type"},
        {"Content-Type: application/json text\r\n", 415, "content-type"},
        {"Content-Type: application/jsonp\r\n", 415, "content-type"},
        {"Content-Type: ;\r\n", 415, "content-type"},
        {"", 415, "content-type"},
        {"Content-Type: application/json\r\nContent-Encoding: gzip\r\n", 415, "content-encoding"},
        {"Content-Type: application/x-ndjson\r\nContent-Encoding: br\r\n", 415, "content-encoding"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        say_body(&r, cases[i].headers, "{}");
        CHECK(r.status == cases[i].status, "%s: %d %.*s", cases[i].headers, r.status,
              SLICE_ARG(r.body));
        if (cases[i].type)
            expect_problem(&r, cases[i].status, cases[i].type);
    }
    say_body(&r, "Content-Type: text/html\r\n", "{}");
    expect_detail(&r, "text/html, expected application/json");
}

static void what_is_no_json_is_told_with_line_and_column(void **state)
{
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"", "line 1, column 1: the text ends too early"},
        {"{\n  \"workflow\": \"one\",\n}", "line 3, column 1"},
        {"{\n  \"workflow\": \"one\",\n}", ", at }"},
        {"{\"a\": 1,\n \"a\": 2}", "line 2, column 2: key \"a\" appears twice"},
        {"{\"a\": tru}", "column 7"},
        {"{\"a\": 01}", "line 1, column 8"},
        {"{\"a\": .5}", "column 7"},
        {"{\"a\": NaN}", "column 7"},
        {"{'a': 1}", "column 2"},
        {"{\"a\": \"\xc3\"}", "column 8: bytes that are not UTF-8, at the byte 0xc3"},
        {"{\"a\": \"\xed\xa0\x80\"}", "bytes that are not UTF-8, at the byte 0xed"},
        {"{\"a\": \"\\u0000\"}", "column 8: \\u0000 is not allowed, at \\u0000"},
        {"{\"a\": \"\\udc00x\"}", "column 8: half of a surrogate pair, at \\udc00x"},
        {"{\"a\": \"\\ud800\\u0041\"}", "half of a surrogate pair"},
        {"{\"a\": \"x\ny\"}", "line 1, column 9"},
        {"{\"a\": 1} {", "column 10"},
        {"\xef\xbb\xbf{}", "column 1"},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "column 49: nested deeper than 48"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        post(&node, &r, "/v1/tasks", "%s", cases[i].body);
        CHECK(r.status == 400, "%s: %d", cases[i].body, r.status);
        expect_problem(&r, 400, "not-json");
        CHECK(strstr(text_at(&r, "detail"), cases[i].says), "%s: %s", cases[i].body,
              text_at(&r, "detail"));
        post(&node, &r, "/v1/tasks/a/undo", "%s", cases[i].body);
        expect_problem(&r, 400, "not-json");
        expect_detail(&r, cases[i].says);
    }
}

static void wrong_values_are_shown(void **state)
{
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"{}", "workflow is missing"},
        {"{\"workflow\": null}", "workflow is null"},
        {"{\"workflow\": [\"one\"]}", "workflow is an array"},
        {"{\"workflow\": \"one\", \"version\": 99}",
         "no version 99 of workflow \"one\", the newest is 1"},
        {"{\"workflow\": \"one\", \"version\": 1e0}", "version is 1e0, expected a whole number"},
        {"{\"workflow\": \"one\", \"version\": 9223372036854775808}",
         "version is 9223372036854775808"},
        {"{\"workflow\": \"one\", \"version\": null}", "version is null"},
        {"{\"workflow\": \"one\", \"priority\": 10}",
         "priority is 10, expected a whole number from 0 to 9"},
        {"{\"workflow\": \"one\", \"priority\": \"high\"}", "priority is \"high\""},
        {"{\"workflow\": \"one\", \"priority\": -0.0}", "priority is -0.0"},
        {"{\"workflow\": \"one\", \"not_before\": \"5m\"}",
         "not_before is \"5m\", expected a time such as"},
        {"{\"workflow\": \"one\", \"not_before\": \"2026-02-30T00:00:00Z\"}",
         "not_before is \"2026-02-30"},
        {"{\"workflow\": \"one\", \"not_before\": \"2026-01-31T10:00:00\"}", "not_before is"},
        {"{\"workflow\": \"one\", \"reply_to\": {}}", "reply_to.to is missing"},
        {"{\"workflow\": \"one\", \"reply_to\": \"\"}", "reply_to is empty"},
        {"{\"workflow\": \"one\", \"id\": \"a/b\"}", "id is \"a/b\", expected 1 to 128"},
    };
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        post(&node, &r, "/v1/tasks", "%s", cases[i].body);
        CHECK(r.status == 422, "%s: %d", cases[i].body, r.status);
        expect_detail(&r, cases[i].says);
    }
    for (int len = 2048; len <= 2049; len++) {
        buf_clear(&b);
        buf_fmt(&b, "{\"workflow\": \"one\", \"reply_to\": \"https://s.example/%0*d\"}", len - 18,
                0);
        post(&node, &r, "/v1/tasks", "%s", b.ptr);
        EXPECT(&r, len == 2048 ? 201 : 422);
    }
    expect_problem(&r, 422, "bad-reply-to");
    expect_detail(&r, "a longer string");
}

static void reasons_and_lists_have_a_length(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    for (int len = 4096; len <= 4097; len++) {
        buf_clear(&b);
        buf_fmt(&b, "{\"reason\": \"%0*d\"}", len, 0);
        post(&node, &r, "/v1/tasks/nobody/undo", "%s", b.ptr);
        EXPECT(&r, len == 4096 ? 404 : 422);
    }
    expect_problem(&r, 422, "bad-reason");
    expect_detail(&r, "4097 bytes, expected at most 4096");
    buf_clear(&b);
    buf_str(&b, "{\"instance\": \"i\", \"holding\": [");
    for (int i = 0; i < 1001; i++)
        buf_str(&b, i == 0 ? "\"\"" : ", \"\"");
    buf_str(&b, "]}");
    post(&node, &r, "/v1/agents/a/work", "%s", b.ptr);
    expect_problem(&r, 422, "bad-work");
    expect_detail(&r, "holding has 1001 entries, expected at most 1000");
    post(&node, &r, "/v1/agents/a/work", "{\"instance\": \"i\", \"results\": {}}");
    expect_detail(&r, "results is an object");
}

static void numbers_are_kept_as_they_came(void **state)
{
    static const char *const numbers[] = {
        "123456789012345678901234567890",
        "0.1000000000000000000000001",
        "1e400",
        "-0",
        "9007199254740993",
        "1.00",
        "-1E-400",
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "number-%zu", i);
        post(&node, &r, "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"%s\", \"input\": [%s]}", id,
             numbers[i]);
        EXPECT(&r, 201);
        task_of(&node, &r, id);
        EXPECT_RAW(&r, "input.0", numbers[i]);
    }
}

/* ---- the same content, or another ---- */

static void all_of_a_submission_is_its_content(void **state)
{
    static const char whole[] = "{\"workflow\": \"one\", \"version\": 1, \"id\": \"content\", "
                                "\"input\": [1, {\"a\": null}], "
                                "\"priority\": 3, \"not_before\": \"2199-01-01T00:00:00Z\", "
                                "\"reply_to\": \"https://s.example/b\", \"tags\": "
                                "{\"k\": \"v\"}}";
    static const char *const same[] = {
        "{\"tags\": {\"k\": \"\\u0076\"}, \"reply_to\": \"https://s.example/b\", \"not_before\": "
        "\"2199-01-01T00:00:00Z\", \"priority\": 3, \"input\": [1.0, {\"a\":null}], \"id\": "
        "\"content\", \"version\": 1, \"workflow\": \"one\"}",
        "{\"workflow\": \"one\", \"version\": 1, \"id\": \"content\", \"input\": [10e-1, {\"a\": "
        "null}], \"priority\": 3, \"not_before\": \"2199-01-01T00:00:00Z\", \"reply_to\": "
        "\"https://s.example/b\", "
        "\"tags\": {\"k\": \"v\"}}",
    };
    static const char *const changed[][2] = {
        {"\"version\": 1, ", ""},
        {"[1, ", "[2, "},
        {"[1, ", "[\"1\", "},
        {"{\"a\": null}", "{}"},
        {"\"priority\": 3", "\"priority\": 4"},
        {"\"priority\": 3, ", ""},
        {"00:00:00Z", "00:00:01Z"},
        {"https://s.example/b", "https://s.example/c"},
        {"\"k\": \"v\"", "\"k\": \"w\""},
        {"\"k\": \"v\"", "\"k\": \"v\", \"l\": \"\""},
        {", \"tags\": {\"k\": \"v\"}", ""},
    };
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tasks", "%s", whole);
    EXPECT(&r, 201);
    for (size_t i = 0; i < COUNT_OF(same); i++) {
        post(&node, &r, "/v1/tasks", "%s", same[i]);
        EXPECT(&r, 200);
        EXPECT_TEXT(&r, "id", "content");
    }
    for (size_t i = 0; i < COUNT_OF(changed); i++) {
        const char *at = strstr(whole, changed[i][0]);
        assert_non_null(at);
        post(&node, &r, "/v1/tasks", "%.*s%s%s", (int)(at - whole), whole, changed[i][1],
             at + strlen(changed[i][0]));
        CHECK(r.status == 409, "%s: %d", changed[i][1], r.status);
        expect_problem(&r, 409, "task-exists");
        expect_detail(&r, "content");
    }
    task_of(&node, &r, "content");
    EXPECT_INT(&r, "priority", 3);
}

/* ---- methods ---- */

static void head_is_get_and_options_says_what_is_possible(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "headed");
    send_as(&node, &r, "HEAD", "/v1/tasks/headed", NULL, SLICE_NONE);
    EXPECT(&r, 200);
    assert_int_equal(r.body.len, 0);
    send_as(&node, &r, "HEAD", "/v1/tasks/headed?wait=1ms", NULL, SLICE_NONE);
    EXPECT(&r, 200);
    send_as(&node, &r, "HEAD", "/v1/tasks/nobody", NULL, SLICE_NONE);
    EXPECT(&r, 404);
    assert_int_equal(r.body.len, 0);
    send_as(&node, &r, "HEAD", "/v1/tasks/headed?x=1", NULL, SLICE_NONE);
    EXPECT(&r, 422);
    send_as(&node, &r, "OPTIONS", "/v1/tasks", NULL, SLICE_NONE);
    expect_problem(&r, 405, "method");
    assert_true(head_has(&r, "\r\nAllow: POST, GET, HEAD\r\n"));
    send_as(&node, &r, "HEAD", "/v1/tasks/headed/undo", NULL, SLICE_NONE);
    EXPECT(&r, 405);
    assert_true(head_has(&r, "\r\nAllow: POST\r\n"));
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_parameters_are_named_on_every_route),
        cmocka_unit_test(parameters_stand_once),
        cmocka_unit_test(unknown_members_are_named_with_the_probable_one),
        cmocka_unit_test(content_types_are_read_to_their_end),
        cmocka_unit_test(what_is_no_json_is_told_with_line_and_column),
        cmocka_unit_test(wrong_values_are_shown),
        cmocka_unit_test(reasons_and_lists_have_a_length),
        cmocka_unit_test(numbers_are_kept_as_they_came),
        cmocka_unit_test(all_of_a_submission_is_its_content),
        cmocka_unit_test(head_is_get_and_options_says_what_is_possible),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
