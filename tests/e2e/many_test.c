/* Tests of many tasks in one request, a submission on each line: answers in order, bad lines,
 * waits, and clients that leave or do not read. submit_test.c has single submissions. */

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kit.h"

#define NDJSON "application/x-ndjson"
#define STEP(agent)                                     \
    "\"steps\": [{\"name\": \"a\", \"agent\": \"" agent \
    "\", \"action\": \"x\", \"undo\": \"none\"}]"

static struct node node;

static int start(void **state)
{
    /* what the sanitizer keeps of freed memory is not the server's */
    (void)setenv("ASAN_OPTIONS", "quarantine_size_mb=1:malloc_context_size=2", 1);
    *state = node_open(&node, FLAGS("--log", "warn", "--drain", "20s"));
    (void)define(&node, "one", STEP("one"));
    (void)define(&node, "held", "\"on_failure\": \"hold\", " STEP("he"));
    (void)define(&node, "waits", STEP("w"));
    return 0;
}

static void send_lines(struct reply *r, const char *path, struct slice body)
{
    send_as(&node, r, "POST", path, NDJSON, body);
    EXPECT(r, 200);
}

/* Takes the next line off *rest. */
static bool next_answer(struct slice *rest, struct reply *ret)
{
    reply_fini(ret);
    if (rest->len == 0)
        return false;
    const char *nl = memchr(rest->ptr, '\n', rest->len);
    CHECK(nl, "the last line has no end: %.*s", SLICE_ARG(*rest));
    ret->body = (struct slice){rest->ptr, (size_t)(nl - rest->ptr)};
    CHECK(json_parse(&ret->arena, ret->body, &ret->json, NULL) == ERR_OK, "%.*s",
          SLICE_ARG(ret->body));
    rest->len -= (size_t)(nl + 1 - rest->ptr);
    rest->ptr = nl + 1;
    return true;
}

struct expected {
    int64_t line, status;
    const char *state; /* NULL: no member */
};

static void expect_lines(const struct reply *r, const struct expected *list, size_t count)
{
    struct slice rest = r->body;
    REPLY one = {0};

    for (size_t i = 0; i < count; i++) {
        CHECK(next_answer(&rest, &one), "only %zu lines", i);
        EXPECT_INT(&one, "line", list[i].line);
        EXPECT_INT(&one, "status", list[i].status);
        if (list[i].state)
            EXPECT_TEXT(&one, "state", list[i].state);
        else
            assert_null(at(&one, "state"));
    }
    assert_false(next_answer(&rest, &one));
}

/* ---- lines ---- */

static void a_broken_line_hurts_no_other(void **state)
{
    static const char body[] = " \t \n"
                               "{\"workflow\": \"one\", \"id\": \"b2\"}\r\n"
                               "{\"workflow\": \"one\",\n"
                               "\"id\": \"b4\"}\n"
                               "\xff\xfe\n"
                               "{\"workflow\": \"one\", \"id\": \"b6\", \"input\": \"\\u0000\"}\n"
                               "{\"workflow\": \"one\"} {\"workflow\": \"one\"}\n"
                               "\r\r\r\n"
                               "{\"workflow\": \"one\", \"id\": \"b9\", \"id\": \"b10\"}\n"
                               "{\"workflow\": \"one\", \"tasg\": {}}\n"
                               "null\n"
                               "{\"workflow\": \"one\", \"id\": \"b12\"}";
    static const struct expected expected[] = {
        {2, 201, NULL}, {3, 400, NULL}, {4, 400, NULL},  {5, 400, NULL},  {6, 400, NULL},
        {7, 400, NULL}, {9, 400, NULL}, {10, 422, NULL}, {11, 422, NULL}, {12, 201, NULL},
    };
    REPLY r = {0};
    REPLY one = {0};
    (void)state;

    send_lines(&r, "/v1/tasks", slice_of(body));
    expect_lines(&r, expected, COUNT_OF(expected));
    struct slice rest = r.body;
    while (next_answer(&rest, &one))
        if (int_at(&one, "status") == 400) { /* the place is said as the client counts */
            char line[40];
            (void)snprintf(line, sizeof line, "line %" PRId64 ", column ", int_at(&one, "line"));
            CHECK(strstr(text_at(&one, "problem.detail"), line), "%.*s", SLICE_ARG(one.body));
            EXPECT_RAW(&one, "id", "null");
        }
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'b%'"), 2);
}

static void a_body_of_nothing_is_answered_with_nothing(void **state)
{
    static char blank[4000000];
    static const char *const bodies[] = {"", "\n", "\r\n\r\n", "   "};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        send_lines(&r, "/v1/tasks?wait=1s", slice_of(bodies[i]));
        assert_int_equal(r.body.len, 0);
    }
    int64_t before = node_resident_kb(&node);
    memset(blank, '\n', sizeof blank);
    send_lines(&r, "/v1/tasks", (struct slice){blank, sizeof blank});
    assert_int_equal(r.body.len, 0);
    int64_t after = node_resident_kb(&node);
    CHECK(after < before + 65536, "%" PRId64 " kB, then %" PRId64 " kB", before, after);
}

static void thirty_thousand_lines_are_answered_in_their_order(void **state)
{
    enum { LINES = 30000 };
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    REPLY one = {0};
    char id[20];
    (void)state;

    for (int i = 0; i < LINES; i++)
        if (i % 3 == 2) /* one that stood before, far away */
            buf_fmt(&b, "{\"workflow\":\"one\",\"id\":\"o-%d\"}\n", i / 3);
        else if (i % 100 == 0)
            buf_str(&b, "broken\n");
        else
            buf_fmt(&b, "{\"workflow\":\"one\",\"id\":\"o-%d\"}\n", i);
    send_lines(&r, "/v1/tasks", buf_view(&b));
    struct slice rest = r.body;
    int64_t created = 0;
    for (int i = 0; i < LINES; i++) {
        assert_true(next_answer(&rest, &one));
        EXPECT_INT(&one, "line", i + 1);
        int64_t status = int_at(&one, "status");
        created += status == 201;
        if (i % 3 != 2 && i % 100 == 0) {
            EXPECT_INT(&one, "status", 400);
            continue;
        }
        CHECK(status == 201 || (status == 200 && i % 3 == 2), "%.*s", SLICE_ARG(one.body));
        (void)snprintf(id, sizeof id, "o-%d", i % 3 == 2 ? i / 3 : i);
        EXPECT_TEXT(&one, "id", id);
    }
    assert_false(next_answer(&rest, &one));
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'o-%'"), created);
}

static void so_many_lines_and_no_more(void **state)
{
    enum { LINES = 100000 };
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    REPLY one = {0};
    int lines = 0;
    (void)state;

    for (int i = 0; i < LINES; i++)
        buf_str(&b, "[]\n\n");
    send_lines(&r, "/v1/tasks", buf_view(&b));
    struct slice rest = r.body;
    for (; next_answer(&rest, &one); lines++)
        EXPECT_INT(&one, "line", 2 * lines + 1);
    assert_int_equal(lines, LINES);
    buf_str(&b, "[]");
    send_as(&node, &r, "POST", "/v1/tasks", NDJSON, buf_view(&b));
    expect_problem(&r, 413, "too-many-lines");
    assert_non_null(strstr(text_at(&r, "detail"), "more than 100000 lines"));
}

/* ---- clients ---- */

static void what_was_accepted_stays_when_the_client_leaves(void **state)
{
    enum { LINES = 20000 };
    CLEANUP(buf_fini) struct buf b = {0};
    char path[80];
    REPLY r = {0};
    (void)state;

    for (int round = 0; round < 3; round++) {
        buf_clear(&b);
        for (int i = 0; i < LINES; i++)
            buf_fmt(&b, "{\"workflow\":\"one\",\"id\":\"leave-%d-%d\"}\n", round, i);
        int fd = ask(&node, "POST", round == 2 ? "/v1/tasks?wait=5m" : "/v1/tasks", NDJSON,
                     buf_view(&b));
        if (round == 1) {
            const struct linger hard = {1, 0};
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        }
        (void)snprintf(path, sizeof path, "SELECT count(*) FROM task WHERE id LIKE 'leave-%d-%%'",
                       round);
        int64_t until = steady_ms() + PATIENCE_MS;
        while (sql_int(&node, path) == 0)
            CHECK(steady_ms() < until, "no line of round %d came", round);
        (void)close(fd);
        submit(&node, "one", round == 0 ? "next-0" : round == 1 ? "next-1" : "next-2");
    }
    /* Lines are taken in their order: what is there is a beginning of the body, without a hole. */
    assert_int_equal(
        sql_int(&node, "SELECT count(*) FROM (SELECT substr(id, 7, 1) AS round, count(*) AS n, "
                       "max(CAST(substr(id, 9) AS INTEGER)) AS last FROM task WHERE id LIKE "
                       "'leave-%' GROUP BY substr(id, 7, 1)) AS r WHERE n <> last + 1"),
        0);
    get(&node, &r, "/readyz");
    EXPECT(&r, 200);
}

static void who_does_not_read_the_answer_holds_up_nobody(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int fds[4];
    int small = 2048;
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 60000; i++)
        buf_str(&b, "[]\n");
    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = ask(&node, "POST", "/v1/tasks", NDJSON, buf_view(&b));
        (void)setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    }
    submit(&node, "one", "beside");
    task_of(&node, &r, "beside");
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        (void)close(fds[i]);
}

/* ---- waiting ---- */

static void waited_lines_say_the_state(void **state)
{
    static const char body[] = "{\"workflow\": \"waits\", \"id\": \"w-1\"}\n"
                               "{\"workflow\": \"held\", \"id\": \"w-2\"}\n"
                               "{\"workflow\": \"waits\", \"id\": \"w-1\"}\n"
                               "{\"workflow\": \"nobody\", \"id\": \"w-4\"}\n"
                               "{\"workflow\": \"waits\", \"id\": \"w-5\"}\n";
    static const struct expected ended[] = {
        {1, 201, "processed"}, {2, 201, "error"},     {3, 200, "processed"},
        {4, 422, NULL},        {5, 201, "processed"},
    };
    static const struct expected again[] = {
        {1, 200, "processed"}, {2, 200, "error"},     {3, 200, "processed"},
        {4, 422, NULL},        {5, 200, "processed"},
    };
    REPLY r = {0};
    REPLY w = {0};
    (void)state;

    int fd = ask(&node, "POST", "/v1/tasks?wait=5m", NDJSON, slice_of(body));
    serve_step(&node, "w", "w1", "1");
    serve_step(&node, "w", "w1", "1");
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 50), 0); /* one of them has not ended */
    fetch(&node, &w, "he", "h1");
    char *token = token_in(&w, 0);
    hand_in(&node, "he", "h1", token,
            "\"error\": {\"code\": \"no\", \"message\": \"no\", \"retryable\": false}", "accepted");
    free(token);
    hear(fd, &r);
    EXPECT(&r, 200);
    expect_lines(&r, ended, COUNT_OF(ended));
    send_lines(&r, "/v1/tasks?wait=5m", slice_of(body)); /* all have ended: no waiting */
    expect_lines(&r, again, COUNT_OF(again));
    get(&node, &r, "/v1/tasks/w-2?wait=5m"); /* nor does one in error come further by itself */
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "error");
}

static void a_wait_that_is_over_says_how_far_tasks_are(void **state)
{
    static const char body[] = "{\"workflow\": \"one\", \"id\": \"far-1\"}\n"
                               "{\"workflow\": \"waits\", \"id\": \"far-2\"}\n"
                               "{\"workflow\": \"one\", \"id\": \"far-3\", \"not_before\": "
                               "\"2199-01-01T00:00:00Z\"}\n";
    static const struct expected expected[] = {{1, 201, "pending"},
                                               {2, 201, "processed"},
                                               {3, 201, "pending"}};
    static const struct expected no_wait[] = {{1, 200, NULL}, {2, 200, NULL}, {3, 200, NULL}};
    REPLY r = {0};
    (void)state;

    int fd = ask(&node, "POST", "/v1/tasks?wait=700ms", NDJSON, slice_of(body));
    serve_step(&node, "w", "w1", "1");
    wait_for_state(&node, "far-2", "processed");
    hear(fd, &r);
    EXPECT(&r, 200);
    /* where the machine was slow the wait may have been over before */
    bool was_fast = memmem(r.body.ptr, r.body.len, "processed", 9) != NULL;
    if (was_fast)
        expect_lines(&r, expected, COUNT_OF(expected));
    send_lines(&r, "/v1/tasks?wait=1ms", slice_of(body));
    struct expected later[3];
    memcpy(later, expected, sizeof later);
    for (int i = 0; i < 3; i++)
        later[i].status = 200;
    expect_lines(&r, later, COUNT_OF(later));
    send_lines(&r, "/v1/tasks?wait=0s", slice_of(body));
    expect_lines(&r, no_wait, COUNT_OF(no_wait));
}

static void who_waits_for_very_many_is_answered_once(void **state)
{
    enum { LINES = 1500 }; /* several pages of states */
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    REPLY w = {0};
    REPLY one = {0};
    (void)state;

    (void)define(&node, "crowd", STEP("cr"));
    for (int i = 0; i < LINES; i++)
        buf_fmt(&b, "{\"workflow\":\"crowd\",\"id\":\"crowd-%d\"}\n", i);
    int leaver = ask(&node, "POST", "/v1/tasks?wait=5m", NDJSON, buf_view(&b));
    int fd = ask(&node, "POST", "/v1/tasks?wait=5m", NDJSON, buf_view(&b));
    CLEANUP(buf_fini) struct buf call = {0};
    buf_str(&call, "{\"instance\": \"c1\", \"max\": 500, \"wait\": \"30s\"}");
    for (int done = 0; done < LINES;) {
        send_as(&node, &w, "POST", "/v1/agents/cr/work", "application/json", buf_view(&call));
        EXPECT(&w, 200);
        buf_clear(&call);
        const struct json *requests = at(&w, "requests");
        int got = (int)requests->count;
        done += got;
        buf_fmt(&call, "{\"instance\": \"c1\", \"max\": %d, \"wait\": \"30s\", \"results\": [",
                done < LINES ? 500 : 0);
        for (const struct json *q = requests->child; q; q = q->next)
            buf_fmt(&call, "%s{\"token\": %.*s, \"output\": 1}", q == requests->child ? "" : ", ",
                    SLICE_ARG(json_get(q, "token")->raw));
        buf_str(&call, "]}");
        if (done >= LINES / 2 && leaver >= 0) {
            (void)close(leaver);
            leaver = -1;
        }
    }
    send_as(&node, &w, "POST", "/v1/agents/cr/work", "application/json", buf_view(&call));
    EXPECT(&w, 200);
    hear(fd, &r);
    EXPECT(&r, 200);
    struct slice rest = r.body;
    for (int i = 0; i < LINES; i++) {
        assert_true(next_answer(&rest, &one));
        EXPECT_TEXT(&one, "state", "processed");
    }
    assert_false(next_answer(&rest, &one));
}

/* Each line that waits costs memory: beyond so many of all requests nobody waits. Which of these
 * are read first is open. */
static void lines_that_wait_are_bounded(void **state)
{
    enum { LINES = 100000, REQUESTS = 6 };
    CLEANUP(buf_fini) struct buf b = {0};
    struct pollfd fds[REQUESTS];
    REPLY r = {0};
    REPLY one = {0};
    (void)state;

    buf_str(&b, "{\"workflow\": \"one\", \"id\": \"bound-1\", \"not_before\": "
                "\"2199-01-01T00:00:00Z\"}");
    for (int i = 1; i < LINES; i++)
        buf_str(&b, "\n1");
    for (int i = 0; i < REQUESTS; i++)
        fds[i] =
            (struct pollfd){.fd = ask(&node, "POST", "/v1/tasks?wait=5m", NDJSON, buf_view(&b)),
                            .events = POLLIN};
    CHECK(poll(fds, REQUESTS, PATIENCE_MS) > 0, "all of them wait");
    for (int i = 0; i < REQUESTS; i++) {
        if (!fds[i].revents || one.status != 0) {
            (void)close(fds[i].fd);
            continue;
        }
        hear(fds[i].fd, &r);
        EXPECT(&r, 200);
        struct slice rest = r.body;
        assert_true(next_answer(&rest, &one));
        EXPECT_TEXT(&one, "state", "pending");
        one.status = 200;
    }
}

static void a_draining_server_answers_those_who_wait(void **state)
{
    static const struct expected expected[] = {{1, 201, "pending"}, {2, 201, "pending"}};
    REPLY r = {0};
    REPLY single = {0};
    (void)state;

    int fd = ask(&node, "POST", "/v1/tasks?wait=10000d", NDJSON,
                 SLICE("{\"workflow\": \"one\", \"id\": \"drain-1\"}\n"
                       "{\"workflow\": \"one\", \"id\": \"drain-2\"}\n"));
    int64_t until = steady_ms() + PATIENCE_MS;
    while (sql_int(&node, "SELECT count(*) FROM task WHERE id LIKE 'drain-%'") < 2)
        CHECK(steady_ms() < until, "the lines never came");
    int other = ask(&node, "GET", "/v1/tasks/drain-1?wait=10000d", NULL, SLICE_NONE);
    struct pollfd p = {.fd = other, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 50), 0);
    let_read(&node);
    node_signal(&node, SIGTERM);
    hear(fd, &r);
    EXPECT(&r, 200);
    expect_lines(&r, expected, COUNT_OF(expected));
    hear(other, &single);
    EXPECT(&single, 200);
    EXPECT_TEXT(&single, "state", "pending");
    assert_int_equal(node_wait(&node, PATIENCE_MS), 0);
    node_start(&node, FLAGS("--log", "warn"));
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broken_line_hurts_no_other),
        cmocka_unit_test(a_body_of_nothing_is_answered_with_nothing),
        cmocka_unit_test(waited_lines_say_the_state),
        cmocka_unit_test(a_wait_that_is_over_says_how_far_tasks_are),
        cmocka_unit_test(who_waits_for_very_many_is_answered_once),
        cmocka_unit_test(thirty_thousand_lines_are_answered_in_their_order),
        cmocka_unit_test(so_many_lines_and_no_more),
        cmocka_unit_test(what_was_accepted_stays_when_the_client_leaves),
        cmocka_unit_test(who_does_not_read_the_answer_holds_up_nobody),
        cmocka_unit_test(lines_that_wait_are_bounded),
        cmocka_unit_test(a_draining_server_answers_those_who_wait),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
