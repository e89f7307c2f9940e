/* Tests of submitting, reading and listing tasks over HTTP: the same content twice, ids, wrong
 * members, and waits. many_test.c has many submissions in one request. */

#include <stdlib.h>
#include <unistd.h>

#include "base/meets.h"
#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "warn"));
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"one\", \"action\": \"x\", \"undo\": "
                 "\"none\"}], \"output\": \"${ .steps.a.output }\"");
    (void)define(
        &node, "strict",
        "\"inputs\": {\"sku\": {\"type\": \"string\", \"required\": true}, \"n\": {\"type\": "
        "\"integer\", \"default\": 1}}, \"steps\": [{\"name\": \"a\", \"agent\": \"two\", "
        "\"action\": \"x\", \"undo\": \"none\"}]");
    return 0;
}

static void the_same_submission_twice_is_one_task(void **state)
{
    static const char *const same[] = {
        "{\"workflow\": \"one\", \"id\": \"same\", \"input\": {\"a\": 1, \"b\": \"\\u00e9\"}}",
        "{ \"id\":\"same\",\"input\":{\"b\":\"\xc3\xa9\", \"a\":1},\"workflow\":\"one\" }\n",
    };
    static const char *const other[] = {
        "{\"workflow\": \"one\", \"id\": \"same\", \"input\": {\"a\": 2, \"b\": \"\\u00e9\"}}",
        "{\"workflow\": \"one\", \"id\": \"same\"}",
        "{\"workflow\": \"strict\", \"id\": \"same\", \"input\": {\"sku\": \"a\"}}",
    };
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tasks", "%s", same[0]);
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "id", "same");
    EXPECT_TEXT(&r, "workflow", "one");
    EXPECT_INT(&r, "version", 1);
    assert_true(head_has(&r, "\r\nLocation: /v1/tasks/same\r\n"));
    for (int i = 0; i < 4; i++) {
        post(&node, &r, "/v1/tasks", "%s", same[i % 2]);
        EXPECT(&r, 200);
        EXPECT_TEXT(&r, "id", "same");
    }
    for (size_t i = 0; i < COUNT_OF(other); i++) {
        post(&node, &r, "/v1/tasks", "%s", other[i]);
        expect_problem(&r, 409, "task-exists");
    }
    task_of(&node, &r, "same");
    EXPECT_INT(&r, "input.a", 1);
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE id = 'same'"), 1);
}

/* The 64-bit hash of both is the same; what was accepted is done, and what is another is refused.
 */
static void content_that_was_made_to_meet_is_another(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"one\", \"id\": \"meets\", \"input\": {\"to\": \"" MEETS_ONE "\"}}");
    EXPECT(&r, 201);
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"one\", \"id\": \"meets\", \"input\": {\"to\": \"" MEETS_OTHER "\"}}");
    expect_problem(&r, 409, "task-exists");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"one\", \"id\": \"meets\", \"input\": {\"to\": \"" MEETS_ONE "\"}}");
    EXPECT(&r, 200);
    task_of(&node, &r, "meets");
    EXPECT_TEXT(&r, "input.to", MEETS_ONE);
}

static void a_newer_version_of_the_workflow_is_no_conflict(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "moves",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"m\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    submit(&node, "moves", "before");
    assert_int_equal(define(&node, "moves",
                            "\"steps\": [{\"name\": \"b\", \"agent\": \"m\", "
                            "\"action\": \"x\", \"undo\": \"none\"}]"),
                     2);
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"moves\", \"id\": \"before\"}");
    EXPECT(&r, 200);
    task_of(&node, &r, "before");
    EXPECT_INT(&r, "version", 1);
    EXPECT_TEXT(&r, "steps.0.name", "a");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"moves\", \"id\": \"old\", \"version\": 1}");
    EXPECT(&r, 201);
    EXPECT_INT(&r, "version", 1);
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"moves\", \"id\": \"new\"}");
    EXPECT_INT(&r, "version", 2);
}

static void ids_that_we_give_are_uuids_of_version_7(void **state)
{
    REPLY r = {0};
    REPLY again = {0};
    (void)state;

    post(&node, &r, "/v1/tasks", "{\"workflow\": \"one\"}");
    EXPECT(&r, 201);
    const char *id = text_at(&r, "id");
    assert_int_equal(strlen(id), 36);
    assert_int_equal(strspn(id, "0123456789abcdef-"), 36);
    assert_int_equal(id[14], '7');
    assert_non_null(strchr("89ab", id[19]));
    char hex[13] = {0};
    memcpy(hex, id, 8);
    memcpy(hex + 8, id + 9, 4);
    assert_true(llabs(strtoll(hex, NULL, 16) - now_ms()) < 60000);
    post(&node, &again, "/v1/tasks", "{\"workflow\": \"one\"}");
    EXPECT(&again, 201);
    assert_string_not_equal(id, text_at(&again, "id"));
}

static void each_wrong_member_is_named_in_a_422(void **state)
{
    static const struct {
        const char *body, *type, *says;
    } cases[] = {
        {"[]", "not-an-object", "an array"},
        {"7", "not-an-object", "a number"},
        {"{}", "bad-workflow", "workflow"},
        {"{\"workflow\": 5}", "bad-workflow", "workflow"},
        {"{\"workflow\": \"nobody\"}", "no-such-workflow", "nobody"},
        {"{\"workflow\": \"\"}", "no-such-workflow", ""},
        {"{\"workflow\": \"one\", \"version\": 0}", "bad-workflow", "version"},
        {"{\"workflow\": \"one\", \"version\": \"1\"}", "bad-workflow", "version"},
        {"{\"workflow\": \"one\", \"version\": 1.5}", "bad-workflow", "version"},
        {"{\"workflow\": \"one\", \"version\": 99}", "no-such-workflow", "version"},
        {"{\"workflow\": \"one\", \"id\": \"\"}", "bad-id", "id"},
        {"{\"workflow\": \"one\", \"id\": null}", "bad-id", "id"},
        {"{\"workflow\": \"one\", \"id\": 5}", "bad-id", "id"},
        {"{\"workflow\": \"one\", \"id\": \".\"}", "bad-id", "id"},
        {"{\"workflow\": \"one\", \"id\": \"..\"}", "bad-id", "id"},
        {"{\"workflow\": \"one\", \"id\": \"a/b\"}", "bad-id", "id"},
        {"{\"workflow\": \"one\", \"id\": \"a b\"}", "bad-id", "id"},
        {"{\"workflow\": \"one\", \"id\": \"\xc3\xa9\"}", "bad-id", "id"},
        {"{\"workflow\": \"one\", \"priority\": 10}", "bad-priority", "priority"},
        {"{\"workflow\": \"one\", \"priority\": -1}", "bad-priority", "priority"},
        {"{\"workflow\": \"one\", \"priority\": 1.5}", "bad-priority", "priority"},
        {"{\"workflow\": \"one\", \"priority\": \"5\"}", "bad-priority", "priority"},
        {"{\"workflow\": \"one\", \"not_before\": \"soon\"}", "bad-not-before", "not_before"},
        {"{\"workflow\": \"one\", \"not_before\": 17}", "bad-not-before", "not_before"},
        {"{\"workflow\": \"one\", \"tags\": []}", "bad-tags", "tags"},
        {"{\"workflow\": \"one\", \"tags\": {\"a\": 1}}", "bad-tags", "a"},
        {"{\"workflow\": \"one\", \"tags\": {\"a b\": \"x\"}}", "bad-tags", "a b"},
        {"{\"workflow\": \"one\", \"tags\": {\"\xc3\xa9\": \"x\"}}", "bad-tags", "key"},
        {"{\"workflow\": \"one\", \"tags\": {\"\": \"x\"}}", "bad-tags", "key"},
        {"{\"workflow\": \"one\", \"reply_to\": 5}", "bad-reply-to", "reply_to"},
        {"{\"workflow\": \"one\", \"prioritty\": 5}", "unknown-member", "prioritty"},
        {"{\"workflow\": \"strict\"}", "bad-input", "input"},
        {"{\"workflow\": \"strict\", \"input\": {}}", "bad-input", "sku"},
        {"{\"workflow\": \"strict\", \"input\": {\"sku\": 5}}", "bad-input", "sku"},
        {"{\"workflow\": \"strict\", \"input\": {\"sku\": \"a\", \"n\": 1.5}}", "bad-input", "n"},
        {"{\"workflow\": \"strict\", \"input\": {\"sku\": \"a\", \"z\": 1}}", "bad-input", "z"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        post(&node, &r, "/v1/tasks", "%s", cases[i].body);
        CHECK(r.status == 422, "%s: %d %.*s", cases[i].body, r.status, SLICE_ARG(r.body));
        expect_problem(&r, 422, cases[i].type);
        CHECK(strstr(text_at(&r, "detail"), cases[i].says), "%s: %s", cases[i].body,
              text_at(&r, "detail"));
    }
    assert_int_equal(
        sql_int(&node, "SELECT count(*) FROM task WHERE workflow = 'strict' AND id <> 'same'"), 0);
}

static void ids_have_a_length(void **state)
{
    char id[130];
    REPLY r = {0};
    (void)state;

    memset(id, 'x', sizeof id);
    id[128] = 0;
    submit(&node, "one", id);
    task_of(&node, &r, id);
    id[128] = 'x';
    id[129] = 0;
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"%s\"}", id);
    expect_problem(&r, 422, "bad-id");
}

static void what_is_no_json_is_400_and_what_says_so_415(void **state)
{
    static const char *const broken[] = {"",
                                         "{",
                                         "{\"workflow\": \"one\",}",
                                         "{\"a\": 1, \"a\": 1}",
                                         "{\"workflow\": \"\xff\"}",
                                         "{\"workflow\": \"a\\u0000\"}",
                                         "{} {}",
                                         "nul",
                                         "{\"workflow\": \"\\ud800\"}"};
    static const char *const types[] = {"text/plain", "application/jsonx", "application/xml",
                                        "application/x-www-form-urlencoded", ""};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        post(&node, &r, "/v1/tasks", "%s", broken[i]);
        CHECK(r.status == 400, "%s: %d", broken[i], r.status);
        expect_problem(&r, 400, "not-json");
    }
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        send_as(&node, &r, "POST", "/v1/tasks", types[i], SLICE("{\"workflow\": \"one\"}"));
        CHECK(r.status == 415, "%s: %d", types[i], r.status);
        expect_problem(&r, 415, "content-type");
    }
    send_as(&node, &r, "POST", "/v1/tasks", NULL, SLICE_NONE);
    expect_problem(&r, 415, "content-type");
    send_as(&node, &r, "POST", "/v1/tasks", "Application/JSON; charset=utf-8",
            SLICE("{\"workflow\": \"one\", \"id\": \"typed\"}"));
    EXPECT(&r, 201);
}

/* ---- many at once ---- */

struct line {
    int64_t line, status;
    char id[40], type[60];
};

static size_t lines_of(const struct reply *r, struct line *list, size_t max)
{
    size_t count = 0;
    struct slice rest = r->body;

    EXPECT(r, 200);
    assert_true(head_has(r, "\r\nContent-Type: application/x-ndjson\r\n"));
    while (rest.len > 0) {
        const char *nl = memchr(rest.ptr, '\n', rest.len);
        CHECK(nl, "the last line has no end: %.*s", SLICE_ARG(rest));
        REPLY one = {.body = {rest.ptr, (size_t)(nl - rest.ptr)}};
        CHECK(json_parse(&one.arena, one.body, &one.json, NULL) == ERR_OK, "%.*s",
              SLICE_ARG(one.body));
        assert_true(count < max);
        list[count] = (struct line){int_at(&one, "line"), int_at(&one, "status"), "", ""};
        (void)snprintf(list[count].id, sizeof list->id, "%s", text_at(&one, "id"));
        (void)snprintf(list[count].type, sizeof list->type, "%s", text_at(&one, "problem.type"));
        if (*list[count].type)
            CHECK(int_at(&one, "problem.status") == list[count].status
                      && *text_at(&one, "problem.detail"),
                  "%.*s", SLICE_ARG(one.body));
        count++;
        rest = (struct slice){nl + 1, rest.len - (size_t)(nl + 1 - rest.ptr)};
    }
    return count;
}

static void each_line_of_many_is_answered_for_itself(void **state)
{
    static const char body[] = "{\"workflow\": \"one\", \"id\": \"l1\"}\n"
                               "\n"
                               "{\"workflow\": \"one\", \"id\": \"l1\"}\r\n"
                               "\r\n"
                               "{\"workflow\": \"one\", \"id\": \"l1\", \"priority\": 9}\n"
                               "nonsense\n"
                               "{\"workflow\": \"nobody\", \"id\": \"l7\"}\n"
                               "[1]\n"
                               "{\"workflow\": \"one\"}\n"
                               "{\"workflow\": \"one\", \"id\": \"l10\"}";
    static const struct line expected[] = {
        {1, 201, "l1", ""},
        {3, 200, "l1", ""},
        {5, 409, "l1", "urn:intact:problem:task-exists"},
        {6, 400, "", "urn:intact:problem:not-json"},
        {7, 422, "l7", "urn:intact:problem:no-such-workflow"},
        {8, 422, "", "urn:intact:problem:not-an-object"},
        {9, 201, "?", ""},
        {10, 201, "l10", ""},
    };
    struct line list[20];
    REPLY r = {0};
    (void)state;

    send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", slice_of(body));
    assert_int_equal(lines_of(&r, list, COUNT_OF(list)), COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const struct line *e = &expected[i];
        CHECK(list[i].line == e->line, "line %zu is %" PRId64, i, list[i].line);
        CHECK(list[i].status == e->status, "line %" PRId64 ": %" PRId64, e->line, list[i].status);
        CHECK(*e->id == '?' ? strlen(list[i].id) == 36 : strcmp(e->id, list[i].id) == 0,
              "line %" PRId64 ": id %s", e->line, list[i].id);
        CHECK(strcmp(e->type, list[i].type) == 0, "line %" PRId64 ": %s", e->line, list[i].type);
    }
    send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", SLICE("\n\n"));
    assert_int_equal(lines_of(&r, list, COUNT_OF(list)), 0);
}

static void five_hundred_lines_are_five_hundred_tasks(void **state)
{
    static struct line list[600];
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 500; i++)
        buf_fmt(&b, "{\"workflow\": \"one\", \"id\": \"many-%d\", \"input\": \"%0*d\"}\n", i % 400,
                i % 400 == 7 ? 5000 : 1, 0);
    for (int round = 0; round < 2; round++) {
        send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&b));
        assert_int_equal(lines_of(&r, list, COUNT_OF(list)), 500);
        for (int i = 0; i < 500; i++) {
            char id[40];
            (void)snprintf(id, sizeof id, "many-%d", i % 400);
            assert_int_equal(list[i].line, i + 1);
            CHECK(list[i].status == (round == 0 && i < 400 ? 201 : 200), "%d: %" PRId64, i,
                  list[i].status);
            assert_string_equal(list[i].id, id);
        }
    }
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'many-%'"), 400);
    task_of(&node, &r, "many-7");
    assert_int_equal(strlen(text_at(&r, "input")), 5000);
}

/* ---- waiting ---- */

static void whoever_waits_is_answered_when_the_task_ends(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "waits",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"w\", \"action\": "
                 "\"x\", \"undo\": \"none\"}], \"output\": \"${ .steps.a.output }\"");
    int first = ask(&node, "POST", "/v1/tasks?wait=5m", "application/json",
                    SLICE("{\"workflow\": \"waits\", \"id\": \"waited\"}"));
    int64_t until = steady_ms() + PATIENCE_MS;
    while (sql_int(&node, "SELECT count(*) FROM task WHERE id = 'waited'") == 0) {
        assert_true(steady_ms() < until);
        sleep_ms(5);
    }
    int second = ask(&node, "GET", "/v1/tasks/waited?wait=5m", NULL, SLICE_NONE);
    int third = ask(&node, "POST", "/v1/tasks?wait=5m", "application/json",
                    SLICE("{\"workflow\": \"waits\", \"id\": \"waited\"}"));
    int leaver = ask(&node, "GET", "/v1/tasks/waited?wait=5m", NULL, SLICE_NONE);
    sleep_ms(100);
    (void)close(leaver);
    serve_step(&node, "w", "w1", "{\"answer\": 42}");
    hear(first, &r);
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_INT(&r, "output.answer", 42);
    hear(second, &r);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "processed");
    hear(third, &r);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "processed");
    get(&node, &r, "/v1/tasks/waited?wait=5m"); /* it has ended: no waiting */
    EXPECT_TEXT(&r, "state", "processed");
}

static void a_wait_ends_with_what_there_is(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tasks?wait=50ms", "{\"workflow\": \"one\", \"id\": \"sits\"}");
    EXPECT(&r, 201);
    EXPECT_TEXT(&r, "state", "pending");
    get(&node, &r, "/v1/tasks/sits?wait=50ms");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "pending");
    get(&node, &r, "/v1/tasks/sits?wait=0s");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/tasks/nobody?wait=5m");
    expect_problem(&r, 404, "no-such-task");
    static const char *const bad[] = {"wait=",    "wait=5",       "wait=soon",
                                      "wait=-1s", "wait=%31%32x", "wait=1e3s"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        get(&node, &r, "/v1/tasks/sits?%s", bad[i]);
        CHECK(r.status == 422, "%s: %d", bad[i], r.status);
        expect_problem(&r, 422, "bad-wait");
    }
    post(&node, &r, "/v1/tasks?wait=x", "{\"workflow\": \"one\", \"id\": \"never\"}");
    expect_problem(&r, 422, "bad-wait");
    get(&node, &r, "/v1/tasks/never");
    expect_problem(&r, 404, "no-such-task");
}

/* ---- reading ---- */

static void a_task_shows_all_that_was_submitted(void **state)
{
    REPLY r = {0};
    int64_t before = now_ms();
    (void)state;

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"strict\", \"id\": \"full:1_2.3-4\", \"input\": {\"sku\": "
         "\"\\\"\\ud83d\\ude00\"}, "
         "\"priority\": 0, \"not_before\": \"2199-01-31T12:00:00+02:00\", \"tags\": {\"k\": \"v\", "
         "\"x.y-z_1\": \"\xc3\xa9\"}}");
    EXPECT(&r, 201);
    task_of(&node, &r, "full:1_2.3-4");
    EXPECT_TEXT(&r, "id", "full:1_2.3-4");
    EXPECT_TEXT(&r, "state", "pending");
    EXPECT_TEXT(&r, "direction", "forward");
    EXPECT_INT(&r, "priority", 0);
    EXPECT_INT(&r, "failure_count", 0);
    EXPECT_TEXT(&r, "not_before", "2199-01-31T10:00:00.000Z");
    EXPECT_TEXT(&r, "waiting_for", "time");
    EXPECT_TEXT(&r, "tags.k", "v");
    EXPECT_TEXT(&r, "input.sku", "\"\xf0\x9f\x98\x80");
    EXPECT_INT(&r, "input.n", 1);
    EXPECT_RAW(&r, "output", "null");
    EXPECT_RAW(&r, "error", "null");
    EXPECT_RAW(&r, "locked_by", "null");
    EXPECT_RAW(&r, "complete_by", "null");
    assert_true(time_at(&r, "submitted_at") >= before - 1000);
    assert_int_equal(time_at(&r, "started_at"), 0);
    assert_int_equal(time_at(&r, "ended_at"), 0);
    EXPECT_TEXT(&r, "steps.0.name", "a");
    EXPECT_TEXT(&r, "steps.0.state", "waiting");
    EXPECT_TEXT(&r, "steps.0.agent", "two");
    EXPECT_TEXT(&r, "steps.0.action", "x");
    EXPECT_RAW(&r, "steps.0.in_doubt", "false");
    EXPECT_RAW(&r, "steps.0.attempts", "[]");
    send_as(&node, &r, "GET", "/v1/tasks/full%3A1%5f2.3-4", NULL, SLICE_NONE);
    EXPECT(&r, 200);
}

static void what_is_not_there_is_404(void **state)
{
    static const char *const paths[] = {"/v1/tasks/nobody", "/v1/tasks/%20", "/v1/tasks/a%2fb",
                                        "/v1/tasks/same%2e.", "/v1/tasks/.."};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        get(&node, &r, "%s", paths[i]);
        CHECK(r.status == 404, "%s: %d", paths[i], r.status);
        expect_problem(&r, 404, "no-such-task");
    }
    get(&node, &r, "/v1/tasks/same%%00");
    CHECK(r.status == 404 || r.status == 400, "%d: %.*s", r.status, SLICE_ARG(r.body));
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_submission_twice_is_one_task),
        cmocka_unit_test(content_that_was_made_to_meet_is_another),
        cmocka_unit_test(a_newer_version_of_the_workflow_is_no_conflict),
        cmocka_unit_test(ids_that_we_give_are_uuids_of_version_7),
        cmocka_unit_test(each_wrong_member_is_named_in_a_422),
        cmocka_unit_test(ids_have_a_length),
        cmocka_unit_test(what_is_no_json_is_400_and_what_says_so_415),
        cmocka_unit_test(each_line_of_many_is_answered_for_itself),
        cmocka_unit_test(five_hundred_lines_are_five_hundred_tasks),
        cmocka_unit_test(whoever_waits_is_answered_when_the_task_ends),
        cmocka_unit_test(a_wait_ends_with_what_there_is),
        cmocka_unit_test(a_task_shows_all_that_was_submitted),
        cmocka_unit_test(what_is_not_there_is_404),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
