/* Tests of a client's blocking calls (client.c) against fake.c: their requests, error texts,
 * tokens, and waiting over a restart. start_test.c has calls that do not block, servers_test.c
 * clients of several servers. */

#include "base/test.h"

#include <intact/client.h>
#include <stdlib.h>

#include "libintact/fake.h"
#include "json/json.h"

static struct {
    struct fake fake;
    const char *line; /* the expected call */
    const char *body; /* the expected body; NULL: any */
    int status;
    const char *answer;
    unsigned calls, fail_calls; /* disconnect this many */
    char seen[200];
} s;

static int answer(struct fake *f, const char *line, struct slice body, struct buf *ret)
{
    (void)f;
    s.calls++;
    snprintf(s.seen, sizeof(s.seen), "%s|%.*s", line, SLICE_ARG(body));
    if (s.fail_calls > 0) {
        s.fail_calls--;
        return 0;
    }
    buf_str(ret, s.answer);
    return s.status;
}

static struct intact_client *begin(int status, const char *text)
{
    char url[40];

    memset(&s, 0, sizeof(s));
    s.fake.answer = answer;
    s.status = status;
    s.answer = text;
    fake_open(&s.fake);
    fake_url(&s.fake, url);
    return intact_client_new(url, "tok");
}

static void end(struct intact_client *c)
{
    intact_client_free(c);
    fake_close(&s.fake);
}

static void each_call_goes_where_it_should(void **state)
{
    struct intact_client *c = begin(201, "{\"id\":\"x\"}");

    (void)state;
    CHECK(intact_client_put_workflow(c, "or der", " {\"intact\":1}") == INTACT_OK, "put");
    CHECK(strcmp(s.seen, "PUT /v1/workflows/or%20der| {\"intact\":1}") == 0, "%s", s.seen);
    CHECK(intact_client_submit(c, "{\"a\":1}", 0) == INTACT_OK, "submit");
    CHECK(strcmp(s.seen, "POST /v1/tasks|{\"a\":1}") == 0, "%s", s.seen);
    CHECK(intact_client_submit(c, "{}", 1500) == INTACT_OK, "submit and wait");
    CHECK(strcmp(s.seen, "POST /v1/tasks?wait=1500ms|{}") == 0, "%s", s.seen);
    CHECK(intact_client_submit_many(c, "{}\n{}\n", 6) == INTACT_OK, "many");
    CHECK(strcmp(s.seen, "POST /v1/tasks|{}\n{}\n") == 0, "%s", s.seen);
    CHECK(intact_client_get(c, "a/b", 0) == INTACT_OK, "get");
    CHECK(strcmp(s.seen, "GET /v1/tasks/a%2Fb|") == 0, "%s", s.seen);
    CHECK(intact_attempt_complete(c, "o-1~0~f1~a/b", "[1]") == INTACT_OK, "complete");
    CHECK(strcmp(s.seen, "POST /v1/attempts/o-1~0~f1~a%2Fb|{\"output\":[1]}") == 0, "%s", s.seen);
    CHECK(intact_attempt_complete(c, "t", NULL) == INTACT_OK, "complete");
    CHECK(strcmp(s.seen, "POST /v1/attempts/t|{\"output\":null}") == 0, "%s", s.seen);
    CHECK(intact_attempt_fail(c, "t", "{\"code\":\"no\"}") == INTACT_OK, "fail");
    CHECK(strcmp(s.seen, "POST /v1/attempts/t|{\"error\":{\"code\":\"no\"}}") == 0, "%s", s.seen);
    CHECK(intact_client_list(c, "state=error") == INTACT_OK, "list");
    CHECK(strcmp(s.seen, "GET /v1/tasks?state=error|") == 0, "%s", s.seen);
    CHECK(intact_client_call(c, "DELETE", "/v1/tokens/1", NULL, NULL, 0) == INTACT_OK, "any");
    CHECK(strcmp(s.seen, "DELETE /v1/tokens/1|") == 0, "%s", s.seen);
    CHECK(strcmp(s.fake.authorization, "Bearer tok") == 0, "%s", s.fake.authorization);
    CHECK(strcmp(intact_client_body(c), "{\"id\":\"x\"}") == 0, "%s", intact_client_body(c));
    CHECK(intact_client_http_status(c) == 201, "%d", intact_client_http_status(c));
    CHECK(intact_client_error(c)[0] == 0, "%s", intact_client_error(c));
    CHECK(s.fake.connection_count == 1, "the connection is kept");
    end(c);
}

/* An empty one would not be sent: each call would be another signal. */
static void a_key_that_is_none_is_refused(void **state)
{
    static const char *const bad[] = {"", "a b", "a\r\nX: y", "\xc3\xa4"};
    char longest[130];
    struct intact_client *c = begin(200, "{}");

    (void)state;
    memset(longest, 'k', sizeof(longest));
    longest[129] = 0;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(intact_client_signal(c, "t", "go", "1", bad[i]) == INTACT_REFUSED, "%s", bad[i]);
    CHECK(intact_client_signal(c, "t", "go", "1", longest) == INTACT_REFUSED, "too long");
    CHECK(s.calls == 0 && strstr(intact_client_error(c), "key"), "%s", intact_client_error(c));
    CHECK(intact_client_signal(c, "t", "go", "1", longest + 1) == INTACT_OK, "128 bytes");
    CHECK(intact_client_signal(c, "t/1", "go on", NULL, NULL) == INTACT_OK, "no key");
    CHECK(strcmp(s.seen, "POST /v1/tasks/t%2F1/signals/go%20on|null") == 0, "%s", s.seen);
    end(c);
}

static void a_person_decides_on_what_was_read(void **state)
{
    struct intact_client *c = begin(200, "{}");
    char url[40];
    char both[90];

    (void)state;
    CHECK(intact_client_approve(c, "t/1", "allow", 2, NULL) == INTACT_OK, "agrees");
    CHECK(strcmp(s.seen, "POST /v1/approvals/t%2F1/allow/approve|{\"asking\":2}") == 0, "%s",
          s.seen);
    CHECK(intact_client_reject(c, "t", "allow", 0, "a \"b\"") == INTACT_OK, "rejects");
    CHECK(strcmp(s.seen, "POST /v1/approvals/t/allow/reject|{\"comment\":\"a \\\"b\\\"\"}") == 0,
          "%s", s.seen);
    CHECK(intact_client_approvals(c, "task=t") == INTACT_OK, "what waits");
    CHECK(strncmp(s.seen, "GET /v1/approvals?task=t", 24) == 0, "%s", s.seen);
    intact_client_free(c);
    fake_url(&s.fake, url);
    (void)snprintf(both, sizeof both, "%s,%s", url, url);
    c = intact_client_new(both, "tok");
    CHECK(intact_client_approvals(c, NULL) == INTACT_OK, "it knows its servers");
    s.fail_calls = 1;
    CHECK(intact_client_approve(c, "t", "allow", 0, NULL) == INTACT_UNREACHABLE, "not repeated");
    s.fail_calls = 1;
    CHECK(intact_client_approve(c, "t", "allow", 1, NULL) == INTACT_OK, "repeated");
    end(c);
}

static void an_error_says_what_is_wrong_and_what_to_do(void **state)
{
    static const struct {
        int http;
        const char *answer;
        enum intact_status status;
        const char *says;
    } cases[] = {
        {409, "{\"title\":\"conflict\",\"detail\":\"task x exists with other content\"}",
         INTACT_REFUSED, "task x exists with other content"},
        {422,
         "{\"title\":\"invalid\",\"errors\":[{\"line\":3,\"column\":7,\"path\":\"steps[0]\","
         "\"found\":\"5 "
         "s\",\"expected\":\"a duration\"},{\"expected\":\"a name\"}]}",
         INTACT_REFUSED,
         "invalid\n  3:7: steps[0]: found 5 s, expected a duration\n  expected a name"},
        {401, "{\"title\":\"no token\"}", INTACT_REFUSED,
         "the server requires a token\nSet INTACT_TOKEN or use --token-file; `intact token create` "
         "creates a token."},
        {401, "{\"title\":\"Unauthorized\",\"detail\":\"the token has expired\"}", INTACT_REFUSED,
         "the server requires a token: the token has expired\nSet INTACT_TOKEN or use"},
        {403, "{\"title\":\"Forbidden\",\"detail\":\"it takes the role admin\"}", INTACT_REFUSED,
         "it takes the role admin"},
        {503, "<html>", INTACT_BUSY, "answered with status 503\nThe server is overloaded"},
        {500, "", INTACT_BUSY, "answered with status 500"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct intact_client *c = begin(cases[i].http, cases[i].answer);
        CHECK(intact_client_get(c, "x", 0) == cases[i].status, "case %zu", i);
        CHECK(strstr(intact_client_error(c), cases[i].says), "case %zu: %s", i,
              intact_client_error(c));
        end(c);
    }
}

static char *find_token(void *arg, const struct intact_client *c)
{
    const char **found = arg;
    const char *file = intact_client_header(c, "intact-token-FILE");

    CHECK(intact_client_http_status(c) == 401, "%d", intact_client_http_status(c));
    CHECK(file && strcmp(file, "/x/admin-token") == 0, "%s", file ? file : "no header");
    CHECK(!intact_client_header(c, "Intact-Nothing"), "no such header");
    s.status = 200;
    return *found ? strdup(*found) : NULL;
}

static void a_token_is_looked_for_once_when_it_is_wanted(void **state)
{
    const char *found = "found";
    char url[40];
    (void)state;

    for (int i = 0; i < 3; i++) { /* found, given, not found */
        intact_client_free(begin(401, "{\"title\":\"no\"}"));
        (void)snprintf(s.fake.header, sizeof s.fake.header,
                       "Intact-Token-File: /x/admin-token\r\n");
        fake_url(&s.fake, url);
        found = i == 2 ? NULL : "found";
        struct intact_client *c = intact_client_new(url, i == 1 ? "given" : NULL);
        intact_client_set_find_token(c, find_token, &found);
        enum intact_status status = intact_client_get(c, "x", 0);
        CHECK(status == (i == 0 ? INTACT_OK : INTACT_REFUSED), "%d: %s", i, intact_client_error(c));
        CHECK(s.calls == (i == 0 ? 2 : 1), "%u calls", s.calls);
        s.status = 401;
        CHECK(intact_client_get(c, "x", 0) == INTACT_REFUSED, "it is looked for once");
        CHECK(strcmp(s.fake.authorization, i == 0   ? "Bearer found"
                                           : i == 1 ? "Bearer given"
                                                    : "")
                  == 0,
              "%s", s.fake.authorization);
        end(c);
    }
}

static void a_server_that_is_not_there_is_named(void **state)
{
    struct intact_client *c = begin(200, "{}");

    (void)state;
    fake_close(&s.fake);
    CHECK(intact_client_get(c, "x", 0) == INTACT_UNREACHABLE, "status");
    CHECK(strstr(intact_client_error(c), intact_client_server(c)), "%s", intact_client_error(c));
    CHECK(strstr(intact_client_error(c), "INTACT_SERVER"), "%s", intact_client_error(c));
    CHECK(intact_client_http_status(c) == 0, "%d", intact_client_http_status(c));
    intact_client_free(c);
}

static void waiting_goes_on_through_a_restart(void **state)
{
    struct intact_client *c = begin(200, "{\"state\":\"compensated\"}");

    (void)state;
    s.fail_calls = 3;
    CHECK(intact_client_wait(c, "x", 60000) == INTACT_OK, "%s", intact_client_error(c));
    CHECK(s.calls > 3, "%u calls", s.calls);
    s.answer = "{\"state\":\"processing\"}";
    CHECK(intact_client_wait(c, "x", 0) == INTACT_TIMEOUT, "it has not ended");
    s.status = 404;
    s.answer = "{\"title\":\"not found\"}";
    CHECK(intact_client_wait(c, "x", 60000) == INTACT_REFUSED, "it does not exist");
    end(c);
}

/* The tombstone is reported, and nothing waits for a task that has ended. */
static void a_task_that_was_deleted_is_told_of_at_once(void **state)
{
    struct intact_client *c =
        begin(410,
              "{\"type\":\"urn:intact:problem:task-deleted\",\"title\":\"Gone\",\"status\":410,"
              "\"detail\":\"task x ended processed at 2026-01-31T10:00:00.000Z, and was "
              "deleted\"}");

    (void)state;
    CHECK(intact_client_get(c, "x", 0) == INTACT_REFUSED, "get");
    CHECK(intact_client_http_status(c) == 410, "%d", intact_client_http_status(c));
    CHECK(strstr(intact_client_error(c), "task x ended processed"), "%s", intact_client_error(c));
    CHECK(intact_client_wait(c, "x", 3600000) == INTACT_REFUSED, "wait");
    CHECK(s.calls == 2, "%u calls", s.calls);
    s.status = 200;
    s.answer = "{\"id\":\"x\",\"workflow\":\"w\",\"version\":1,\"deleted\":true,"
               "\"state\":\"processed\",\"ended_at\":\"2026-01-31T10:00:00.000Z\"}";
    CHECK(intact_client_submit(c, "{}", 1500) == INTACT_OK, "the same again");
    CHECK(strstr(intact_client_body(c), "\"deleted\":true"), "%s", intact_client_body(c));
    end(c);
}

int main(void)
{
    unsetenv("INTACT_TOKEN"); /* set by whoever runs the tests */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_goes_where_it_should),
        cmocka_unit_test(a_key_that_is_none_is_refused),
        cmocka_unit_test(a_person_decides_on_what_was_read),
        cmocka_unit_test(an_error_says_what_is_wrong_and_what_to_do),
        cmocka_unit_test(a_token_is_looked_for_once_when_it_is_wanted),
        cmocka_unit_test(a_server_that_is_not_there_is_named),
        cmocka_unit_test(waiting_goes_on_through_a_restart),
        cmocka_unit_test(a_task_that_was_deleted_is_told_of_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
