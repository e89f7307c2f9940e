/* Tests of routes for workflows and of those that show the state of the server (health, nodes,
 * agents, metrics), and of paths, methods and hosts that are refused. access_routes_test.c has
 * roles. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "warn"));
    return 0;
}

#define STEP(name) \
    "{\"name\": \"" name "\", \"agent\": \"g\", \"action\": \"x\", \"undo\": \"none\"}"

static void a_definition_gets_a_version_when_its_content_is_new(void **state)
{
    static const char first[] = "{\"intact\": 1, \"workflow\": \"w\", \"steps\": [" STEP("a") "]}";
    static const char second[] = "{\"intact\": 1, \"workflow\": \"w\", \"steps\": [" STEP("b") "]}";
    static const struct {
        const char *text;
        int status;
        int64_t version;
    } puts[] = {
        {first, 201, 1}, {first, 200, 1}, {second, 201, 2}, {second, 200, 2}, {first, 201, 3}};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(puts); i++) {
        put(&node, &r, "/v1/workflows/w", "%s", puts[i].text);
        EXPECT(&r, puts[i].status);
        EXPECT_TEXT(&r, "name", "w");
        EXPECT_INT(&r, "version", puts[i].version);
    }
    get(&node, &r, "/v1/workflows/w");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "version", 3);
    EXPECT_INT(&r, "steps", 1);
    EXPECT_TEXT(&r, "definition.steps.0.name", "a");
    get(&node, &r, "/v1/workflows/w/versions/2");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "version", 2);
    EXPECT_TEXT(&r, "definition.steps.0.name", "b");
}

static void versions_and_names_that_do_not_exist_are_404(void **state)
{
    static const char *const paths[] = {
        "/v1/workflows/nobody",
        "/v1/workflows/w/versions/99",
        "/v1/workflows/w/versions/0",
        "/v1/workflows/w/versions/x",
        "/v1/workflows/w/versions/-1",
        "/v1/workflows/w/versions/1x",
        "/v1/workflows/w/versions/%201",
        "/v1/workflows/w/versions/+1",
        "/v1/workflows/w/versions/99999999999999999999",
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        get(&node, &r, "%s", paths[i]);
        CHECK(r.status == 404, "%s: %d", paths[i], r.status);
        expect_problem(&r, 404, "no-such-workflow");
    }
}

static void all_mistakes_of_a_definition_are_told_at_once(void **state)
{
    static const char body[] =
        "{\"intact\": 1, \"workflow\": \"bad\",\n \"stepps\": [],\n \"steps\": "
        "[{\"name\": \"a\", \"agent\": \"g\",\n   \"action\": 5}]}";
    static const char *const paths[] = {"/v1/workflows/bad", "/v1/validate"};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        send_as(&node, &r, i ? "POST" : "PUT", paths[i], "application/json", slice_of(body));
        expect_problem(&r, 422, "bad-definition");
        assert_true(at(&r, "errors")->count >= 3);
        EXPECT_INT(&r, "errors.0.line", 2);
        for (uint32_t k = 0; k < at(&r, "errors")->count; k++) {
            char path[40];
            (void)snprintf(path, sizeof path, "errors.%u.line", k);
            assert_true(int_at(&r, path) >= 1);
            (void)snprintf(path, sizeof path, "errors.%u.column", k);
            assert_true(int_at(&r, path) >= 1);
            (void)snprintf(path, sizeof path, "errors.%u.found", k);
            assert_true(*text_at(&r, path));
            (void)snprintf(path, sizeof path, "errors.%u.expected", k);
            assert_true(*text_at(&r, path));
        }
        send_as(&node, &r, i ? "POST" : "PUT", paths[i], "application/json",
                SLICE("{\"intact\": "));
        expect_problem(&r, 400, "bad-definition");
        EXPECT_INT(&r, "errors.0.line", 1);
        send_as(&node, &r, i ? "POST" : "PUT", paths[i], "text/plain", slice_of(body));
        expect_problem(&r, 415, "content-type");
    }
    get(&node, &r, "/v1/workflows/bad");
    EXPECT(&r, 404);
}

static void a_definition_is_stored_under_its_own_name_only(void **state)
{
    REPLY r = {0};
    (void)state;

    put(&node, &r, "/v1/workflows/other",
        "{\"intact\": 1, \"workflow\": \"this\", \"steps\": [" STEP("a") "]}");
    expect_problem(&r, 422, "other-name");
    get(&node, &r, "/v1/workflows/this");
    EXPECT(&r, 404);
    post(&node, &r, "/v1/validate",
         "{\"intact\": 1, \"workflow\": \"this\", \"steps\": [" STEP("a") "]}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "errors", "[]");
    get(&node, &r, "/v1/workflows/this");
    EXPECT(&r, 404); /* validating stores nothing */
}

static void workflows_are_listed_with_their_newest_version(void **state)
{
    REPLY r = {0};
    bool seen = false;
    (void)state;

    get(&node, &r, "/v1/workflows");
    EXPECT(&r, 200);
    for (const struct json *w = at(&r, "workflows")->child; w; w = w->next)
        if (slice_is(json_get_text(w, "name"), "w")) {
            assert_int_equal(json_get_int(w, "version", 0), 3);
            assert_false(seen);
            seen = true;
        }
    assert_true(seen);
}

/* ---- what is going on ---- */

static void health_nodes_agents_and_metrics_answer(void **state)
{
    REPLY r = {0};
    (void)state;

    get(&node, &r, "/healthz");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "status", "ok");
    get(&node, &r, "/readyz");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "status", "ready");
    get(&node, &r, "/v1/nodes");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "nodes.0.boot", 1);
    EXPECT_TEXT(&r, "nodes.0.node", "n1");
    EXPECT_TEXT(&r, "self", "n1");
    char url[40];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", node.port);
    EXPECT_TEXT(&r, "nodes.0.url", url);
    EXPECT_TEXT(&r, "nodes.0.roles.0", "scheduler");
    EXPECT_TEXT(&r, "nodes.0.roles.1", "supervisor");
    EXPECT_RAW(&r, "nodes.0.alive", "true");
    EXPECT_RAW(&r, "nodes.0.leads", "true");
    EXPECT_RAW(&r, "nodes.0.draining", "false");
    EXPECT_RAW(&r, "nodes.0.lease_until", "null");
    CHECK(time_at(&r, "nodes.0.started_at") > 0, "%.*s", SLICE_ARG(r.body));
    CHECK(!at(&r, "nodes.1"), "%.*s", SLICE_ARG(r.body));
    post(&node, &r, "/v1/agents/seen/work", "{\"instance\": \"s1\", \"max\": 3, \"wait\": \"0s\"}");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/agents");
    EXPECT(&r, 200);
    bool seen = false;
    for (const struct json *a = at(&r, "agents")->child; a; a = a->next)
        if (slice_is(json_get_text(a, "agent"), "seen")) {
            seen = true;
            assert_true(json_get_bool(a, "connected", false));
            const struct json *in = json_get(a, "instances")->child;
            assert_true(slice_is(json_get_text(in, "instance"), "s1"));
            assert_int_equal(json_get_int(in, "places", 0), 3);
            assert_int_equal(json_get_int(in, "open_attempts", -1), 0);
        }
    assert_true(seen);
}

static int64_t metric_of(const char *name)
{
    REPLY r = {0};
    char line[80];
    int64_t sum = 0;
    bool any = false;

    get(&node, &r, "/metrics");
    EXPECT(&r, 200);
    assert_true(head_has(&r, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    (void)snprintf(line, sizeof line, "\nintact_%s", name);
    for (const char *p = r.body.ptr; (p = strstr(p, line));) { /* all samples, whatever labels */
        p += strlen(line);
        if (*p != ' ' && *p != '{')
            continue;
        p += strcspn(p, " \n");
        sum += strtoll(p, NULL, 10);
        any = true;
    }
    CHECK(any, "no metric %s: %.*s", name, SLICE_ARG(r.body));
    return sum;
}

static void metrics_count(void **state)
{
    int64_t submitted = metric_of("tasks_submitted_total");
    int64_t ended = metric_of("tasks_ended_total");
    (void)state;

    (void)define(&node, "counted", "\"steps\": [" STEP("a") "]");
    submit(&node, "counted", "counted-1");
    serve_step(&node, "g", "g1", "1");
    wait_for_state(&node, "counted-1", "processed");
    assert_int_equal(metric_of("tasks_submitted_total"), submitted + 1);
    assert_int_equal(metric_of("tasks_ended_total"), ended + 1);
    assert_int_equal(metric_of("open_attempts"), 0);
    assert_int_equal(metric_of("conflicts_total"), 0);
    assert_true(metric_of("http_requests_total") > 5);
}

/* The same again, another content under the same id, and what is no submission are no new tasks. */
static void only_new_tasks_count_as_submitted(void **state)
{
    static const char task[] = "{\"workflow\": \"counted-once\", \"id\": \"counted-2\"}";
    static const char other[] =
        "{\"workflow\": \"counted-once\", \"id\": \"counted-2\", \"input\": 1}";
    REPLY r = {0};
    (void)state;

    (void)define(&node, "counted-once", "\"steps\": [" STEP("a") "]");
    int64_t submitted = metric_of("tasks_submitted_total");
    int64_t existed = metric_of("tasks_existed_total");
    int64_t refused = metric_of("tasks_refused_total");
    post(&node, &r, "/v1/tasks", "%s", task);
    EXPECT(&r, 201);
    post(&node, &r, "/v1/tasks", "%s", task);
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks", "%s", other);
    EXPECT(&r, 409);
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"no-such\"}");
    EXPECT(&r, 422);
    assert_int_equal(metric_of("tasks_submitted_total"), submitted + 1);
    assert_int_equal(metric_of("tasks_existed_total"), existed + 1);
    assert_int_equal(metric_of("tasks_refused_total"), refused + 2);
    serve_step(&node, "g", "g1", "1");
    wait_for_state(&node, "counted-2", "processed");
    post(&node, &r, "/v1/tasks", "%s", task); /* by now it is not in memory */
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks", "%s", other);
    EXPECT(&r, 409);
    assert_int_equal(metric_of("tasks_submitted_total"), submitted + 1);
    assert_int_equal(metric_of("tasks_existed_total"), existed + 2);
    assert_int_equal(metric_of("tasks_refused_total"), refused + 3);
}

/* ---- routes ---- */

static void a_path_that_is_none_is_404_and_a_wrong_method_405(void **state)
{
    static const struct {
        const char *method, *path;
        int status;
        const char *allow;
    } cases[] = {
        {"GET", "/", 404, NULL},
        {"GET", "/v1", 404, NULL},
        {"GET", "/v1/tasks/", 404, NULL},
        {"GET", "/v1//tasks", 404, NULL},
        {"GET", "/v1/tasks/a/b", 404, NULL},
        {"GET", "/V1/tasks", 404, NULL},
        {"GET", "/healthz/x", 404, NULL},
        {"POST", "/v1/tasks/a/cancelled", 404, NULL},
        {"DELETE", "/v1/tasks", 405, "POST, GET, HEAD"},
        {"DELETE", "/v1/tasks/a", 405, "GET, HEAD"},
        {"GET", "/v1/tasks/a/retry", 405, "POST"},
        {"POST", "/healthz", 405, "GET, HEAD"},
        {"POST", "/v1/workflows/a", 405, "PUT, GET, HEAD"},
        {"GET", "/v1/agents/a/work", 405, "POST"},
        {"HEAD", "/v1/agents/a/work", 405, "POST"},
        {"OPTIONS", "/v1/validate", 405, "POST"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char allow[80];
        send_as(&node, &r, cases[i].method, cases[i].path, NULL, SLICE_NONE);
        CHECK(r.status == cases[i].status, "%s %s: %d", cases[i].method, cases[i].path, r.status);
        if (strcmp(cases[i].method, "HEAD") != 0)
            expect_problem(&r, cases[i].status, cases[i].allow ? "method" : "no-route");
        (void)snprintf(allow, sizeof allow, "\r\nAllow: %s\r\n", cases[i].allow);
        CHECK(!cases[i].allow || head_has(&r, allow), "%s: %.*s", cases[i].path, SLICE_ARG(r.head));
    }
}

static void head_is_get_without_a_body(void **state)
{
    static const char *const paths[] = {"/healthz", "/v1/workflows", "/v1/tasks", "/metrics"};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        send_as(&node, &r, "HEAD", paths[i], NULL, SLICE_NONE);
        EXPECT(&r, 200);
        assert_int_equal(r.body.len, 0);
    }
}

/* ---- who is let in ---- */

static int status_with(const char *headers)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    int fd = dial(&node);

    buf_fmt(&b, "GET /healthz HTTP/1.1\r\n%sConnection: close\r\n\r\n", headers);
    say(fd, buf_view(&b));
    hear(fd, &r);
    return r.status;
}

static void only_hosts_on_loopback_and_no_web_pages_are_served(void **state)
{
    static const struct {
        const char *headers;
        int status;
    } cases[] = {
        {"Host: 127.0.0.1\r\n", 200},
        {"Host: 127.0.0.1:7420\r\n", 200},
        {"Host: 127.8.9.10:1\r\n", 200},
        {"Host: localhost\r\n", 200},
        {"Host: LocalHost:80\r\n", 200},
        {"Host: [::1]:7420\r\n", 200},
        {"Host: example.com\r\n", 403},
        {"Host: localhost.example.com\r\n", 403},
        {"Host: localhost.example.com:7420\r\n", 403},
        {"Host: 127.0.0.1.example.com\r\n", 403},
        {"Host: 127.0.0.1.5\r\n", 403},
        {"Host: 127.example:7420\r\n", 403},
        {"Host: [::1].example.com\r\n", 403},
        {"Host: 10.0.0.1\r\n", 403},
        {"Host: 0.0.0.0\r\n", 403},
        {"Host: \r\n", 400},
        {"Host: 127.0.0.1\r\nOrigin: https://example.com\r\n", 403},
        {"Host: 127.0.0.1\r\nOrigin: null\r\n", 403},
        {"Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n", 403},
        {"Host: 127.0.0.1\r\nSec-Fetch-Site: same-site\r\n", 403},
        {"Host: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n", 200},
        {"Host: 127.0.0.1\r\nSec-Fetch-Site: none\r\n", 200}, /* typed by a person */
        {"Host: 127.0.0.1\r\norigin: http://127.0.0.1:7420\r\n", 403},
        {"", 400},
        {"Host: 127.0.0.1\r\nHost: 127.0.0.1\r\n", 400},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int status = status_with(cases[i].headers);
        CHECK(status == cases[i].status, "%s: %d", cases[i].headers, status);
    }
}

static void a_foreign_page_changes_nothing(void **state)
{
    static const char body[] = "{\"workflow\": \"w\", \"id\": \"foreign\"}";
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    int fd = dial(&node);
    (void)state;

    buf_fmt(&b,
            "POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil\r\nContent-Type: "
            "application/json\r\nContent-Length: %zu\r\n\r\n%s",
            strlen(body), body);
    say(fd, buf_view(&b));
    hear(fd, &r);
    expect_problem(&r, 403, "foreign");
    get(&node, &r, "/v1/tasks/foreign");
    EXPECT(&r, 404);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_definition_gets_a_version_when_its_content_is_new),
        cmocka_unit_test(versions_and_names_that_do_not_exist_are_404),
        cmocka_unit_test(all_mistakes_of_a_definition_are_told_at_once),
        cmocka_unit_test(a_definition_is_stored_under_its_own_name_only),
        cmocka_unit_test(workflows_are_listed_with_their_newest_version),
        cmocka_unit_test(health_nodes_agents_and_metrics_answer),
        cmocka_unit_test(metrics_count),
        cmocka_unit_test(only_new_tasks_count_as_submitted),
        cmocka_unit_test(a_path_that_is_none_is_404_and_a_wrong_method_405),
        cmocka_unit_test(head_is_get_without_a_body),
        cmocka_unit_test(only_hosts_on_loopback_and_no_web_pages_are_served),
        cmocka_unit_test(a_foreign_page_changes_nothing),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
