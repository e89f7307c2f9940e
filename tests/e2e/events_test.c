/* Tests of event streams as clients see them: a task's and those of all changes, broken and slow
 * connections, a thousand listeners, and the end of the server. sse.h is the client. */

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sse.h"

static struct node node;

#define SERVER \
    FLAGS("--log", "error", "--scan-every", "100ms", "--grace", "200ms", "--limit", "write-time=1h")

static int start(void **state)
{
    *state = node_open(&node, SERVER);
    return 0;
}

#define STEP(name, agent)                                                                  \
    "{\"name\": \"" name "\", \"agent\": \"" agent                                         \
    "\", \"action\": \"x\", \"undo\": \"none\", \"retry\": {\"attempts\": 200, \"wait\": " \
    "\"1ms\", \"max_wait\": \"1ms\", \"jitter\": false}}"

static uint64_t number(const char *id)
{
    char *end = NULL;
    uint64_t n = strtoull(id, &end, 10);

    CHECK(*id && !*end, "%s is no revision", id);
    return n;
}

/* Reads on until the task is in that state; ids go up on the way. */
static void until_state(struct sse *s, struct sse_event *e, const char *state)
{
    uint64_t last = *s->id ? number(s->id) : 0;

    for (;;) {
        CHECK(sse_next(s, e), "the stream ended before %s", state);
        if (strcmp(e->name, "progress") == 0)
            continue;
        assert_string_equal(e->name, "task");
        CHECK(number(e->id) > last, "%s after %" PRIu64, e->id, last);
        last = number(e->id);
        if (strcmp(text_at(&e->data, "state"), state) == 0)
            return;
    }
}

static int64_t listeners(const char *of)
{
    REPLY r = {0};
    char line[80];

    get(&node, &r, "/metrics");
    (void)snprintf(line, sizeof line, "\nintact_events_listeners{of=\"%s\"} ", of);
    const char *found = strstr(r.body.ptr, line);
    CHECK(found, "%.*s", SLICE_ARG(r.body));
    return strtoll(found + strlen(line), NULL, 10);
}

static void wait_for_listeners(const char *of, int64_t count)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (listeners(of) != count) {
        CHECK(steady_ms() < until, "%" PRId64 " listeners, not %" PRId64, listeners(of), count);
        sleep_ms(10);
    }
}

static void a_task_is_told_as_it_is_and_then_whatever_becomes_of_it(void **state)
{
    SSE s = {0};
    SSE_EVENT e = {0};
    REPLY r = {0};
    char last[64];
    (void)state;

    (void)define(&node, "told", "\"steps\": [" STEP("a", "told") "," STEP("b", "told") "]");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"told\", \"id\": \"told-1\", \"input\": {\"two\":\n \"lines\"}}");
    EXPECT(&r, 201);
    sse_open(&node, &s, "/v1/tasks/told-1/events", NULL);
    CHECK(sse_next(&s, &e), "no event");
    assert_int_equal(s.status, 200);
    assert_non_null(strstr(s.in.ptr, "\r\nContent-Type: text/event-stream\r\n"));
    assert_non_null(strstr(s.in.ptr, "\nretry: 1000\n"));
    assert_string_equal(e.name, "task");
    EXPECT_TEXT(&e.data, "id", "told-1");
    EXPECT_TEXT(&e.data, "input.two", "lines");
    EXPECT_TEXT(&e.data, "steps.1.state", "waiting");
    serve_step(&node, "told", "t1", "1");
    serve_step(&node, "told", "t1", "2");
    until_state(&s, &e, "processed");
    EXPECT_RAW(&e.data, "steps.1.output", "2");
    task_of(&node, &r, "told-1");
    assert_int_equal(e.data.body.len, r.body.len); /* the same record */
    (void)snprintf(last, sizeof last, "%s", e.id);
    CHECK(sse_next(&s, &e), "no end");
    assert_string_equal(e.name, "end");
    assert_string_equal(e.id, "");
    EXPECT_TEXT(&e.data, "state", "processed");
    CHECK(!sse_next(&s, &e), "%s after the end", e.name);

    sse_open(&node, &s, "/v1/tasks/told-1/events", last);
    sse_head(&s);
    assert_int_equal(s.status, 204);
    sse_open(&node, &s, "/v1/tasks/told-1/events", "1");
    until_state(&s, &e, "processed");
    CHECK(sse_next(&s, &e), "no end");
    assert_string_equal(e.name, "end");
    sse_open(&node, &s, "/v1/tasks/told-1/events", "not-ours");
    until_state(&s, &e, "processed");
    sse_fini(&s); /* not read to its end */
    wait_for_listeners("task", 0);
}

static void what_is_wrong_is_said(void **state)
{
    REPLY r = {0};
    (void)state;

    get(&node, &r, "/v1/tasks/nobody/events");
    expect_problem(&r, 404, "no-such-task");
    get(&node, &r, "/v1/tasks/%%zz/events");
    EXPECT(&r, 400);
    get(&node, &r, "/v1/tasks/nobody/events?from=3");
    expect_problem(&r, 422, "unknown-parameter");
    get(&node, &r, "/v1/events?since=3");
    expect_problem(&r, 422, "unknown-parameter");
    get(&node, &r, "/v1/events?state=processed,gone");
    expect_problem(&r, 422, "bad-state");
    get(&node, &r, "/v1/events?per_second=0");
    expect_problem(&r, 422, "bad-limit");
    get(&node, &r, "/v1/events?per_second=1000001");
    expect_problem(&r, 422, "bad-limit");
    send_as(&node, &r, "POST", "/v1/events", "application/json", SLICE("{}"));
    expect_problem(&r, 405, "method");
    send_as(&node, &r, "HEAD", "/v1/events", NULL, SLICE_NONE);
    EXPECT(&r, 200);
    wait_for_listeners("all", 0);
}

static void what_a_head_says_a_get_would_say(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "headed", "\"steps\": [" STEP("a", "headed") "]");
    submit(&node, "headed", "headed-1");
    send_as(&node, &r, "HEAD", "/v1/tasks/nobody/events", NULL, SLICE_NONE);
    EXPECT(&r, 404);
    send_as(&node, &r, "HEAD", "/v1/tasks/headed-1/events", NULL, SLICE_NONE);
    EXPECT(&r, 200);
    wait_for_listeners("task", 0);
}

static void curl_follows_a_task_to_its_end(void **state)
{
    char command[300];
    static char text[20000];
    (void)state;

    (void)define(&node, "curled", "\"steps\": [" STEP("a", "curled") "]");
    submit(&node, "curled", "curled-1");
    (void)snprintf(command, sizeof command,
                   "curl -sSN --max-time 180 -H 'Authorization: Bearer %s' "
                   "http://127.0.0.1:%d/v1/tasks/curled-1/events",
                   node.token, node.port);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    wait_for_listeners("task", 1);
    serve_step(&node, "curled", "c1", "1");
    size_t len = fread(text, 1, sizeof text - 1, f);
    text[len] = 0;
    assert_int_equal(pclose(f), 0);
    assert_int_equal(strncmp(text, "retry: 1000\n\nevent: task\nid: ", 29), 0);
    assert_non_null(strstr(text, "\"state\":\"processed\""));
    assert_non_null(strstr(text, "\n\nevent: end\ndata: {"));
}

static void a_stream_goes_on_where_it_broke_off_with_the_server(void **state)
{
    SSE s = {0};
    SSE all = {0};
    SSE_EVENT e = {0};
    char last[64], last_of_all[64];
    (void)state;

    (void)define(&node, "broken", "\"steps\": [" STEP("a", "broken") "," STEP("b", "broken") "]");
    sse_open(&node, &all, "/v1/events?workflow=broken", NULL);
    wait_for_listeners("all", 1);
    submit(&node, "broken", "broken-1");
    sse_open(&node, &s, "/v1/tasks/broken-1/events", NULL);
    CHECK(sse_next(&s, &e), "no event");
    CHECK(sse_next(&all, &e), "no event");
    EXPECT_TEXT(&e.data, "id", "broken-1");
    (void)snprintf(last_of_all, sizeof last_of_all, "%s", all.id);
    node_kill(&node);
    CHECK(!sse_next(&s, &e) || strcmp(e.name, "task") == 0, "%s", e.name);
    (void)snprintf(last, sizeof last, "%s", s.id);
    node_start(&node, SERVER);
    serve_step(&node, "broken", "b1", "1");

    sse_open(&node, &s, "/v1/tasks/broken-1/events", last);
    do
        CHECK(sse_next(&s, &e), "no event");
    while (strcmp(text_at(&e.data, "steps.0.state"), "completed") != 0);
    CHECK(number(e.id) > number(last), "%s after %s", e.id, last);
    serve_step(&node, "broken", "b1", "2");
    until_state(&s, &e, "processed");

    sse_open(&node, &all, "/v1/events?workflow=broken", last_of_all);
    CHECK(sse_next(&all, &e), "no event");
    assert_string_equal(e.name, "gap"); /* another boot: it has to list again */
    assert_true(*e.id);
}

static void all_changes_are_told_to_who_wants_them(void **state)
{
    SSE all = {0};
    SSE ended = {0};
    SSE other = {0};
    SSE_EVENT e = {0};
    char id[64];
    uint64_t revision = 0;
    (void)state;

    (void)define(&node, "every", "\"steps\": [" STEP("a", "every") "]");
    sse_open(&node, &all, "/v1/events?workflow=every", NULL);
    sse_open(&node, &ended, "/v1/events?state=processed,error&workflow=every", NULL);
    sse_open(&node, &other, "/v1/events?workflow=another", NULL);
    sse_head(&all);
    sse_head(&ended);
    sse_head(&other);
    submit(&node, "every", "every-1");
    CHECK(sse_next(&all, &e), "no event");
    (void)snprintf(id, sizeof id, "%s", e.id);
    EXPECT_TEXT(&e.data, "id", "every-1");
    EXPECT_TEXT(&e.data, "workflow", "every");
    EXPECT_INT(&e.data, "version", 1);
    EXPECT_TEXT(&e.data, "direction", "forward");
    EXPECT_INT(&e.data, "failure_count", 0);
    assert_true(time_at(&e.data, "at") > 0);
    serve_step(&node, "every", "e1", "1");
    CHECK(sse_next(&ended, &e), "no event");
    EXPECT_TEXT(&e.data, "state", "processed");
    CHECK(sse_waits(&other, 0), "it was not meant for it");

    /* Whoever comes back with an id is told all that came after it, once, in order. */
    sse_open(&node, &all, "/v1/events?workflow=every", id);
    do {
        CHECK(sse_next(&all, &e), "no event");
        assert_string_equal(e.name, "task");
        CHECK(int_at(&e.data, "revision") > (int64_t)revision, "%.*s", SLICE_ARG(e.data.body));
        revision = (uint64_t)int_at(&e.data, "revision");
    } while (strcmp(text_at(&e.data, "state"), "processed") != 0);

    static const char *const nobodys[] = {"x",   "",      "-",      "1-",
                                          "-1",  "1-2-3", "9999-1", "1-99999999999999999999999",
                                          "1 -2"};
    for (size_t i = 0; i < COUNT_OF(nobodys); i++) {
        sse_open(&node, &all, "/v1/events", nobodys[i]);
        CHECK(sse_next(&all, &e) && strcmp(e.name, "gap") == 0, "\"%s\": %s", nobodys[i], e.name);
    }
}

static void nothing_that_happens_between_two_connections_is_lost(void **state)
{
    SSE all = {0};
    SSE_EVENT e = {0};
    char id[64];
    (void)state;

    (void)define(&node, "pause", "\"steps\": [" STEP("a", "pause") "]");
    sse_open(&node, &all, "/v1/events?workflow=pause", NULL);
    submit(&node, "pause", "pause-1");
    CHECK(sse_next(&all, &e), "no event");
    (void)snprintf(id, sizeof id, "%s", e.id);
    sse_fini(&all);
    wait_for_listeners("all", 0);
    submit(&node, "pause", "pause-2"); /* nobody listens */
    sse_open(&node, &all, "/v1/events?workflow=pause", id);
    do {
        CHECK(sse_next(&all, &e), "no event");
        assert_string_equal(e.name, "task");
    } while (strcmp(text_at(&e.data, "id"), "pause-2") != 0);
}

/* ---- slow readers ---- */

static void submit_many(const char *workflow, int from, int count)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};

    for (int i = from; i < from + count; i++)
        buf_fmt(&b, "{\"workflow\": \"%s\", \"id\": \"%s-%d\"}\n", workflow, workflow, i);
    send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&b));
    EXPECT(&r, 200);
}

/* The ring goes over it: it is told of a gap, and then of what is new. */
static void a_slow_reader_of_all_changes_is_told_of_a_gap(void **state)
{
    enum { MANY = 60000, AT_A_TIME = 6000 };
    SSE slow = {0};
    SSE quick = {0};
    SSE_EVENT e = {0};
    int told = 0;
    bool gap = false;
    (void)state;

    (void)define(&node, "flood", "\"steps\": [" STEP("a", "nobody") "]");
    sse_open_slow(&node, &slow, "/v1/events?workflow=flood");
    wait_for_listeners("all", 1);
    for (int i = 0; i < MANY; i += AT_A_TIME)
        submit_many("flood", i, AT_A_TIME);
    sse_open(&node, &quick, "/v1/events?workflow=flood", NULL);
    sse_head(&quick);
    submit(&node, "flood", "the-last");
    CHECK(sse_next(&quick, &e), "no event");
    EXPECT_TEXT(&e.data, "id", "the-last"); /* nobody waits for who is slow */
    do {
        CHECK(sse_next(&slow, &e), "it was cut off");
        told++;
        gap |= strcmp(e.name, "gap") == 0;
        if (gap && strcmp(e.name, "gap") == 0)
            submit_many("flood", MANY + told, 1); /* there is something after it */
    } while (!gap || strcmp(e.name, "task") != 0);
    CHECK(told < MANY, "%d events", told);
    REPLY r = {0};
    get(&node, &r, "/metrics");
    assert_null(strstr(r.body.ptr, "\nintact_events_gaps_total 0\n"));
}

static void fail_once(int i)
{
    REPLY r = {0};

    fetch(&node, &r, "large", "l1");
    char *token = token_in(&r, 0);
    hand_in(&node, "large", "l1", token,
            i % 2 ? "\"error\": {\"code\": \"a\"}" : "\"error\": {\"code\": \"b\"}", "accepted");
    free(token);
}

/* It gets so many events a second, and a gap in place of the others as soon as there is room. */
static void a_reader_for_people_gets_no_more_than_it_wants(void **state)
{
    enum { MANY = 3000, WANTED = 5 };
    SSE paced = {0};
    SSE errors = {0};
    SSE_EVENT e = {0};
    int told = 0;
    (void)state;

    (void)define(&node, "paced", "\"steps\": [" STEP("a", "nobody") "]");
    sse_open(&node, &paced, "/v1/events?workflow=paced&per_second=5", NULL);
    sse_open(&node, &errors, "/v1/events?state=error&per_second=5", NULL);
    wait_for_listeners("all", 2);
    submit_many("paced", 0, MANY);
    for (;;) {
        CHECK(sse_next(&paced, &e), "it was cut off");
        if (strcmp(e.name, "gap") == 0)
            break;
        told++;
    }
    CHECK(told >= WANTED && told < MANY / 2, "%d events before the gap", told);
    do { /* a gap is about what was before it: what comes later is told as ever */
        submit_many("paced", MANY + told++, 1);
        CHECK(sse_next(&paced, &e), "it was cut off");
    } while (strcmp(e.name, "task") != 0);
    CHECK(sse_waits(&errors, 0), "what is not for it does not count");
    sse_fini(&paced);
    sse_fini(&errors);
    wait_for_listeners("all", 0);
}

/* Whoever comes back with the id of a quiet moment would never hear of what was left out before it.
 * Readers that begin at different parts of a second, since a gap is told at its end. */
static void no_id_is_ahead_of_what_was_told(void **state)
{
    enum { READERS = 5, APART_MS = 170, PAUSE_MS = 50 };
    struct sse readers[READERS] = {0};
    SSE_EVENT e = {0};
    char told[READERS][64] = {0};
    (void)state;

    (void)define(&node, "rush", "\"steps\": [" STEP("a", "nobody") "]");
    for (int i = 0; i < READERS; i++) {
        sse_open(&node, &readers[i], "/v1/events?per_second=1", NULL);
        sse_head(&readers[i]);
        sleep_ms(APART_MS);
    }
    for (int n = 0, quiet = 0; quiet < READERS; n++) {
        submit_many("rush", n, 1);
        sleep_ms(PAUSE_MS);
        for (int i = 0; i < READERS; i++) {
            if (sse_waits(&readers[i], 0))
                continue;
            CHECK(sse_next(&readers[i], &e), "reader %d was cut off", i);
            if (*told[i] && *readers[i].lone)
                assert_string_equal(readers[i].lone, told[i]);
            (void)snprintf(told[i], sizeof told[i], "%s", e.id);
        }
        quiet = 0;
        for (int i = 0; i < READERS; i++)
            quiet += readers[i].comments > 0;
    }
    for (int i = 0; i < READERS; i++)
        sse_fini(&readers[i]);
    wait_for_listeners("all", 0);
}

/* It finds the latest state; what came before it was told as one, or not at all. */
static void a_slow_reader_of_a_task_is_told_the_latest(void **state)
{
    enum { SIZE = 300000, FAILURES = 60 };
    CLEANUP(buf_fini) struct buf b = {0};
    SSE slow = {0};
    SSE_EVENT e = {0};
    REPLY r = {0};
    int told = 0;
    (void)state;

    (void)define(&node, "large", "\"steps\": [" STEP("a", "large") "]");
    put(&node, &r, "/v1/agents/large", "{\"breaker\": {\"enabled\": false}}");
    EXPECT(&r, 200); /* so many failures would open it */
    buf_str(&b, "{\"workflow\": \"large\", \"id\": \"large-1\", \"input\": \"");
    memset(buf_room(&b, SIZE), 'x', SIZE);
    b.len += SIZE;
    buf_str(&b, "\"}");
    send_as(&node, &r, "POST", "/v1/tasks", "application/json", buf_view(&b));
    EXPECT(&r, 201);
    sse_open_slow(&node, &slow, "/v1/tasks/large-1/events");
    wait_for_listeners("task", 1);
    for (int i = 0; i < FAILURES; i++)
        fail_once(i);
    serve_step(&node, "large", "l1", "\"done\"");
    wait_for_state(&node, "large-1", "processed");
    do {
        CHECK(sse_next(&slow, &e), "it was cut off after %d", told);
        told++;
    } while (strcmp(e.name, "end") != 0);
    CHECK(told < FAILURES, "%d events for %d failures", told, FAILURES);
    CHECK(number(slow.id) > 2 * FAILURES, "%s", slow.id);
}

/* ---- many, and those who go ---- */

static void a_thousand_listeners_are_all_told(void **state)
{
    enum { MANY = 1000 };
    struct sse *s = calloc(MANY, sizeof *s);
    SSE_EVENT e = {0};
    (void)state;

    assert_non_null(s);
    (void)define(&node, "crowd", "\"steps\": [" STEP("a", "crowd") "]");
    submit(&node, "crowd", "crowd-1");
    for (int i = 0; i < MANY; i++)
        sse_open(&node, &s[i], i % 2 ? "/v1/events?workflow=crowd" : "/v1/tasks/crowd-1/events",
                 NULL);
    wait_for_listeners("all", MANY / 2);
    wait_for_listeners("task", MANY / 2);
    for (int i = 0; i < MANY; i++)
        sse_head(&s[i]);
    serve_step(&node, "crowd", "c1", "1");
    for (int i = 0; i < MANY; i++) {
        do
            CHECK(sse_next(&s[i], &e), "listener %d: the stream ended", i);
        while (strcmp(text_at(&e.data, "state"), "processed") != 0);
        if (i % 2 == 0) {
            CHECK(sse_next(&s[i], &e) && strcmp(e.name, "end") == 0, "listener %d: %s", i, e.name);
            CHECK(!sse_next(&s[i], &e), "listener %d: %s", i, e.name);
        }
    }
    for (int i = 0; i < MANY; i++)
        sse_fini(&s[i]); /* all at once */
    free(s);
    wait_for_listeners("all", 0);
    wait_for_listeners("task", 0);
}

static void who_goes_while_the_task_is_being_read_is_forgotten(void **state)
{
    (void)state;

    (void)define(&node, "gone", "\"steps\": [" STEP("a", "gone") "]");
    submit(&node, "gone", "gone-1");
    for (int i = 0; i < 200; i++) {
        SSE s = {0};
        sse_open(&node, &s, i % 3 ? "/v1/tasks/gone-1/events" : "/v1/tasks/nobody/events", NULL);
        if (i % 2)
            sse_head(&s);
    }
    wait_for_listeners("task", 0);
}

static void the_end_of_the_server_ends_the_streams(void **state)
{
    SSE task = {0};
    SSE all = {0};
    SSE_EVENT e = {0};
    (void)state;

    (void)define(&node, "over", "\"steps\": [" STEP("a", "over") "]");
    submit(&node, "over", "over-1");
    sse_open(&node, &task, "/v1/tasks/over-1/events", NULL);
    sse_open(&node, &all, "/v1/events", NULL);
    CHECK(sse_next(&task, &e), "no event");
    sse_head(&all);
    node_stop(&node);
    while (sse_next(&task, &e))
        assert_string_equal(e.name, "task");
    while (sse_next(&all, &e))
        assert_string_equal(e.name, "task");
    node_start(&node, SERVER);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_is_told_as_it_is_and_then_whatever_becomes_of_it),
        cmocka_unit_test(what_is_wrong_is_said),
        cmocka_unit_test(what_a_head_says_a_get_would_say),
        cmocka_unit_test(curl_follows_a_task_to_its_end),
        cmocka_unit_test(a_stream_goes_on_where_it_broke_off_with_the_server),
        cmocka_unit_test(all_changes_are_told_to_who_wants_them),
        cmocka_unit_test(nothing_that_happens_between_two_connections_is_lost),
        cmocka_unit_test(a_slow_reader_of_all_changes_is_told_of_a_gap),
        cmocka_unit_test(a_reader_for_people_gets_no_more_than_it_wants),
        cmocka_unit_test(no_id_is_ahead_of_what_was_told),
        cmocka_unit_test(a_slow_reader_of_a_task_is_told_the_latest),
        cmocka_unit_test(a_thousand_listeners_are_all_told),
        cmocka_unit_test(who_goes_while_the_task_is_being_read_is_forgotten),
        cmocka_unit_test(the_end_of_the_server_ends_the_streams),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
