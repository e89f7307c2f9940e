/* Tests of the exchange with agents, field by field: requests, results, repetitions, stops and
 * parked calls, as docs/agents.md describes them. kit.h has the server under test. */

#include <stdlib.h>
#include <unistd.h>

#include "base/when.h"
#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "error", "--scan-every", "100ms", "--grace", "200ms",
                                    "--key-prefix", "shop:", "--drain", "200ms"));
    return 0;
}

/* One step of its own agent, `rest` being more of the step. */
static void define_one(const char *name, const char *rest)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b,
            "\"steps\": [{\"name\": \"s\", \"agent\": \"%s\", \"action\": \"do.it\", "
            "\"retry\": {\"attempts\": 3, \"wait\": \"1ms\", \"jitter\": false}, %s}]",
            name, rest);
    (void)define(&node, name, b.ptr);
}

static void a_request_has_all_its_fields(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("fields", "\"undo\": \"none\", \"complete_by\": \"20s\", \"input\": {\"n\": "
                         "\"${ .input.n }\", \"who\": \"${ .task.id }\"}");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"fields\", \"id\": \"f:1\", \"input\": {\"n\": 7}}");
    EXPECT(&r, 201);
    fetch(&node, &r, "fields", "i-1");
    assert_int_equal(at(&r, "requests")->count, 1);
    assert_true(strlen(text_at(&r, "requests.0.token")) > 20);
    EXPECT_TEXT(&r, "requests.0.task", "f:1");
    EXPECT_TEXT(&r, "requests.0.step", "s");
    EXPECT_TEXT(&r, "requests.0.action", "do.it");
    EXPECT_TEXT(&r, "requests.0.direction", "forward");
    EXPECT_INT(&r, "requests.0.attempt", 1);
    EXPECT_TEXT(&r, "requests.0.idempotency_key", "shop:f:1/s");
    EXPECT_INT(&r, "requests.0.input.n", 7);
    EXPECT_TEXT(&r, "requests.0.input.who", "f:1");
    int64_t left = int_at(&r, "requests.0.time_left_ms");
    assert_int_equal(time_at(&r, "requests.0.complete_by") - time_at(&r, "now"), left);
    assert_true(left > 0 && left <= 20000);
    const char *tp = text_at(&r, "requests.0.traceparent");
    assert_int_equal(strlen(tp), 55);
    assert_int_equal(strspn(tp, "0123456789abcdef-"), 55);
    assert_int_equal(strncmp(tp, "00-", 3), 0);
    assert_null(at(&r, "requests.0.forward"));
    assert_true(int_at(&r, "waited_ms") >= 0);
    EXPECT_RAW(&r, "outcomes", "[]");
    EXPECT_RAW(&r, "stop", "[]");

    char *token = token_in(&r, 0);
    task_of(&node, &r, "f:1");
    EXPECT_TEXT(&r, "state", "processing");
    EXPECT_TEXT(&r, "steps.0.state", "running");
    EXPECT_TEXT(&r, "steps.0.attempts.0.instance", "i-1");
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "open");
    CHECK(!memmem(r.body.ptr, r.body.len, token, strlen(token)), "the task shows its token");
    assert_true(*text_at(&r, "locked_by"));
    hand_in(&node, "fields", "i-1", token, "\"output\": {\"big\": 12345678901234567890}",
            "accepted");
    task_of(&node, &r, "f:1");
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_RAW(&r, "steps.0.output", "{\"big\": 12345678901234567890}");
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "completed");
    EXPECT_TEXT(&r, "steps.0.attempts.0.effect", "happened");
    EXPECT_RAW(&r, "locked_by", "null");
    assert_true(time_at(&r, "ended_at") >= time_at(&r, "started_at"));
    free(token);
}

static void attempts_are_numbered_and_their_key_stays(void **state)
{
    static const char *const errors[] = {
        "\"error\": {\"code\": \"busy\", \"message\": \"later\"}",
        "\"error\": {\"code\": \"busy\", \"retryable\": true, \"effect\": \"none\"}, \"output\": 1",
    };
    REPLY r = {0};
    (void)state;

    define_one("tries", "\"undo\": \"none\"");
    submit(&node, "tries", "tries-1");
    for (int i = 0; i < 3; i++) {
        fetch(&node, &r, "tries", "t1");
        EXPECT_INT(&r, "requests.0.attempt", i + 1);
        EXPECT_TEXT(&r, "requests.0.idempotency_key", "shop:tries-1/s");
        char *token = token_in(&r, 0);
        hand_in(&node, "tries", "t1", token, i < 2 ? errors[i] : "\"output\": null", "accepted");
        free(token);
    }
    task_of(&node, &r, "tries-1");
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_INT(&r, "steps.0.failure_count", 2);
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "failed");
    EXPECT_TEXT(&r, "steps.0.attempts.0.effect", "unknown");
    EXPECT_TEXT(&r, "steps.0.attempts.0.error.code", "busy");
    EXPECT_TEXT(&r, "steps.0.attempts.0.error.message", "later");
    EXPECT_TEXT(&r, "steps.0.attempts.1.effect", "none");
    EXPECT_RAW(&r, "steps.0.attempts.1.error.code", "\"busy\"");
    EXPECT_RAW(&r, "steps.0.in_doubt", "false");
}

static void a_result_is_accepted_once_and_then_repeated(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("once", "\"undo\": \"none\"");
    submit(&node, "once", "once-1");
    fetch(&node, &r, "once", "o1");
    char *token = token_in(&r, 0);
    hand_in(&node, "once", "o1", token, "\"output\": 1", "accepted");
    hand_in(&node, "once", "o1", token, "\"output\": 1", "repeated");
    hand_in(&node, "once", "o2", token, "\"output\": 1", "repeated");
    task_of(&node, &r, "once-1");
    EXPECT_INT(&r, "steps.0.output", 1);
    free(token);
}

static void a_late_result_is_kept_and_changes_no_state(void **state)
{
    char path[60];
    REPLY r = {0};
    (void)state;

    (void)define(&node, "late",
                 "\"steps\": [{\"name\": \"s\", \"agent\": \"late\", \"action\": \"x\", \"undo\": "
                 "\"none\", \"complete_by\": \"100ms\", \"retry\": {\"attempts\": 1000, \"wait\": "
                 "\"1ms\", \"max_wait\": \"1ms\"}}]");
    submit(&node, "late", "late-1");
    fetch(&node, &r, "late", "l1");
    int n = (int)int_at(&r, "requests.0.attempt");
    char *first = token_in(&r, 0);
    fetch(&node, &r, "late", "l2"); /* the supervisor gave up the first */
    assert_true(int_at(&r, "requests.0.attempt") > n);
    char *second = token_in(&r, 0);
    assert_string_not_equal(first, second);
    hand_in(&node, "late", "l1", first, "\"output\": \"first\"", "late");
    hand_in(&node, "late", "l1", first, "\"output\": \"first\"", "late");
    task_of(&node, &r, "late-1"); /* the second may be past its time too, and nobody waits for it */
    EXPECT_RAW(&r, "ended_at", "null");
    EXPECT_RAW(&r, "steps.0.output", "null");
    (void)snprintf(path, sizeof path, "steps.0.attempts.%d.outcome", n - 1);
    EXPECT_TEXT(&r, path, "late");
    (void)snprintf(path, sizeof path, "steps.0.attempts.%d.output", n - 1);
    EXPECT_TEXT(&r, path, "first");
    free(first);
    free(second);
}

static void tokens_are_good_for_their_agent_and_as_they_are(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("mine", "\"undo\": \"none\"");
    submit(&node, "mine", "mine-1");
    fetch(&node, &r, "mine", "m1");
    char *token = token_in(&r, 0);
    size_t len = strlen(token);
    hand_in(&node, "theirs", "m1", token, "\"output\": 1", "unknown");
    for (size_t i = 0; i < len; i++) {
        char was = token[i];
        token[i] = was == 'A' ? 'B' : 'A';
        hand_in(&node, "mine", "m1", token, "\"output\": 1", "unknown");
        token[i] = was;
    }
    for (size_t i = 0; i < len; i++) {
        char was = token[i];
        token[i] = 0;
        hand_in(&node, "mine", "m1", token, "\"output\": 1", "unknown");
        token[i] = was;
    }
    task_of(&node, &r, "mine-1");
    EXPECT_TEXT(&r, "steps.0.state", "running");
    hand_in(&node, "mine", "m1", token, "\"output\": 1", "accepted");
    free(token);
}

static void a_bad_result_fails_only_itself(void **state)
{
    static const char *const expected[] = {"unknown", "unknown",  "unknown",  "unknown", "unknown",
                                           "unknown", "accepted", "repeated", "accepted"};
    REPLY r = {0};
    (void)state;

    define_one("mixed", "\"undo\": \"none\"");
    submit(&node, "mixed", "mixed-1");
    submit(&node, "mixed", "mixed-2");
    fetch(&node, &r, "mixed", "x1");
    char *one = token_in(&r, 0);
    fetch(&node, &r, "mixed", "x1");
    char *two = token_in(&r, 0);
    post(&node, &r, "/v1/agents/mixed/work",
         "{\"instance\": \"x1\", \"max\": 0, \"results\": [5, null, {}, {\"token\": 7}, "
         "{\"token\": \"no\", \"output\": 1}, {\"token\": \"%s\", \"error\": \"declined\"}, "
         "{\"token\": \"%s\", \"output\": [1]}, {\"token\": \"%s\", \"output\": [1]}, "
         "{\"token\": \"%s\", \"error\": null}]}",
         one, one, one, two);
    EXPECT(&r, 200);
    assert_int_equal(at(&r, "outcomes")->count, COUNT_OF(expected));
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        char path[40];
        (void)snprintf(path, sizeof path, "outcomes.%zu.status", i);
        EXPECT_TEXT(&r, path, expected[i]);
    }
    EXPECT_RAW(&r, "outcomes.0.token", "null");
    EXPECT_TEXT(&r, "outcomes.4.token", "no");
    EXPECT_TEXT(&r, "outcomes.5.token", one);
    task_of(&node, &r, "mixed-1");
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_INT(&r, "failure_count", 0);
    EXPECT_RAW(&r, "steps.0.output", "[1]");
    free(one);
    free(two);
}

/* Lists in each other. */
static void nest(struct buf *b, int levels)
{
    for (int i = 0; i < levels; i++)
        buf_byte(b, '[');
    for (int i = 0; i < levels; i++)
        buf_byte(b, ']');
}

/* A service says how deep its answer is, and other results come in the same call: with little else,
 * and with so much that the body is parsed on a thread. */
static void a_result_that_is_nested_too_deeply_fails_only_itself(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("deep", "\"undo\": \"none\"");
    for (int is_large = 0; is_large < 2; is_large++) {
        CLEANUP(buf_fini) struct buf b = {0};
        const char *id = is_large ? "deep-2" : "deep-1";
        submit(&node, "deep", id);
        fetch(&node, &r, "deep", "i-1");
        char *token = token_in(&r, 0);
        buf_str(&b, "{\"instance\": \"i-1\", \"beats\": [");
        for (int levels = 46; levels >= 45; levels--) {
            buf_fmt(&b, "{\"token\": \"%s\", \"progress\": ", token);
            nest(&b, levels);
            buf_str(&b, levels > 45 ? "}, " : "}]}");
        }
        send_as(&node, &r, "POST", "/v1/agents/deep/heartbeats", "application/json", buf_view(&b));
        EXPECT(&r, 200);
        EXPECT_TEXT(&r, "outcomes.0.status", "unknown");
        CHECK(strstr(text_at(&r, "outcomes.0.problem"), "deep"), "%.*s", SLICE_ARG(r.body));
        EXPECT_TEXT(&r, "outcomes.1.status", "accepted");

        buf_clear(&b);
        buf_str(&b, "{\"instance\": \"i-1\", \"max\": 0, \"results\": [");
        for (int levels = 46; levels >= 45; levels--) {
            buf_fmt(&b, "{\"token\": \"%s\", \"output\": [\"%*s\", ", token, is_large ? 200000 : 1,
                    "x");
            nest(&b, levels - 1);
            buf_str(&b, levels > 45 ? "]}, " : "]}]}");
        }
        send_as(&node, &r, "POST", "/v1/agents/deep/work", "application/json", buf_view(&b));
        EXPECT(&r, 200);
        EXPECT_TEXT(&r, "outcomes.0.status", "unknown");
        CHECK(strstr(text_at(&r, "outcomes.0.problem"), "deep"), "%.*s", SLICE_ARG(r.body));
        EXPECT_TEXT(&r, "outcomes.1.status", "accepted");
        task_of(&node, &r, id);
        EXPECT_TEXT(&r, "state", "processed");
        free(token);
    }
}

static void a_call_waits_for_work_and_no_longer(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/agents/idle/work", "{\"instance\": \"d1\", \"wait\": \"150ms\"}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "requests", "[]");
    assert_true(int_at(&r, "waited_ms") >= 150);
    post(&node, &r, "/v1/agents/idle/work", "{\"instance\": \"d1\"}"); /* no wait */
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "requests", "[]");
    post(&node, &r, "/v1/agents/idle/work",
         "{\"instance\": \"d1\", \"max\": 0, \"wait\": \"60s\"}");
    EXPECT(&r, 200); /* there is nothing to wait for */

    define_one("idle", "\"undo\": \"none\"");
    int call = ask(&node, "POST", "/v1/agents/idle/work", "application/json",
                   SLICE("{\"instance\": \"d1\", \"max\": 16, \"wait\": \"60s\"}"));
    submit(&node, "idle", "idle-1");
    hear(call, &r); /* it does not wait to be filled */
    EXPECT(&r, 200);
    assert_int_equal(at(&r, "requests")->count, 1);
    char *token = token_in(&r, 0);
    hand_in(&node, "idle", "d1", token, "\"output\": 1", "accepted");
    free(token);
}

static void one_call_takes_as_many_as_it_has_room_for(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    size_t got = 0;
    (void)state;

    define_one("room", "\"undo\": \"none\"");
    for (int i = 0; i < 10; i++)
        buf_fmt(&b, "{\"workflow\": \"room\", \"id\": \"room-%d\"}\n", i);
    send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&b));
    EXPECT(&r, 200);
    buf_clear(&b);
    buf_str(&b, "{\"instance\": \"r1\", \"max\": 4, \"wait\": \"5s\", \"results\": []}");
    while (got < 10) {
        send_as(&node, &r, "POST", "/v1/agents/room/work", "application/json", buf_view(&b));
        EXPECT(&r, 200);
        uint32_t count = at(&r, "requests")->count;
        CHECK(count >= 1 && count <= 4, "%u", count);
        got += count;
        buf_clear(&b);
        buf_str(&b, "{\"instance\": \"r1\", \"max\": 4, \"wait\": \"5s\", \"results\": [");
        for (uint32_t i = 0; i < count; i++) {
            char *token = token_in(&r, (int)i);
            buf_fmt(&b, "%s{\"token\": \"%s\", \"output\": 1}", i ? "," : "", token);
            free(token);
        }
        buf_str(&b, "]}");
    }
    send_as(&node, &r, "POST", "/v1/agents/room/work", "application/json", buf_view(&b));
    EXPECT(&r, 200);
    assert_int_equal(
        sql_int(&node, "SELECT count(*) FROM task WHERE workflow = 'room' AND state = 'processed'"),
        10);
}

static void what_an_instance_was_given_and_does_not_hold_is_sent_again(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("holds", "\"undo\": \"none\", \"complete_by\": \"10m\"");
    submit(&node, "holds", "holds-1");
    fetch(&node, &r, "holds", "h1");
    char *token = token_in(&r, 0);

    /* who does not say what it holds, holds it; so does who says so; others have nothing to do with
     * it */
    post(&node, &r, "/v1/agents/holds/work", "{\"instance\": \"h1\", \"wait\": \"20ms\"}");
    EXPECT_RAW(&r, "requests", "[]");
    post(&node, &r, "/v1/agents/holds/work",
         "{\"instance\": \"h1\", \"wait\": \"20ms\", \"holding\": [\"%s\"]}", token);
    EXPECT_RAW(&r, "requests", "[]");
    post(&node, &r, "/v1/agents/holds/work",
         "{\"instance\": \"h2\", \"wait\": \"20ms\", \"holding\": []}");
    EXPECT_RAW(&r, "requests", "[]");
    for (int i = 0; i < 3; i++) { /* the answer was lost, three times */
        post(&node, &r, "/v1/agents/holds/work",
             "{\"instance\": \"h1\", \"wait\": \"20ms\", \"holding\": [\"garbage\", 5]}");
        EXPECT_TEXT(&r, "requests.0.token", token);
        EXPECT_INT(&r, "requests.0.attempt", 1);
    }
    post(&node, &r, "/v1/agents/holds/work",
         "{\"instance\": \"h1\", \"wait\": \"20ms\", \"holding\": [], \"results\": [{\"token\": "
         "\"%s\", \"output\": 1}]}",
         token);
    EXPECT_RAW(&r, "requests", "[]");
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    task_of(&node, &r, "holds-1");
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_INT(&r, "failure_count", 0);
    free(token);
}

static void a_call_that_is_given_up_takes_nothing_with_it(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("leaves", "\"undo\": \"none\", \"complete_by\": \"10m\"");
    for (int i = 0; i < 20; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "leaves-%d", i);
        int call = ask(&node, "POST", "/v1/agents/leaves/work", "application/json",
                       SLICE("{\"instance\": \"v1\", \"wait\": \"60s\"}"));
        if (i % 2)
            sleep_ms(10);
        (void)close(call);
        submit(&node, "leaves", id);
    }
    for (int i = 0; i < 20; i++) { /* what did leave for a closed connection is not held by v1 */
        post(&node, &r, "/v1/agents/leaves/work",
             "{\"instance\": \"v1\", \"max\": 1, \"wait\": \"2m\", \"holding\": []}");
        char *token = token_in(&r, 0);
        hand_in(&node, "leaves", "v1", token, "\"output\": 1", "accepted");
        free(token);
    }
    assert_int_equal(sql_int(&node, "SELECT sum(failure_count) FROM task WHERE workflow = 'leaves' "
                                    "AND state = 'processed'"),
                     0);
    assert_int_equal(sql_int(&node, "SELECT count(*) FROM task WHERE workflow = 'leaves' AND state "
                                    "= 'processed'"),
                     20);
}

static void define_two_sides(const char *name)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(
        &b,
        "\"steps\": [{\"name\": \"slow\", \"agent\": \"%s-slow\", \"action\": \"x\", "
        "\"after\": [], \"complete_by\": \"20s\", \"undo\": {\"action\": \"unx\"}}, {\"name\": "
        "\"bad\", \"agent\": \"%s-bad\", \"action\": \"y\", \"after\": [], \"undo\": \"none\"}]",
        name, name);
    (void)define(&node, name, b.ptr);
}

/* Parks a call of that instance of the agent "home"; let it be heard. */
static int park(const char *instance, int count)
{
    char body[200];

    (void)snprintf(body, sizeof body, "{\"instance\": \"%s\", \"max\": 4, \"wait\": \"5m\"}",
                   instance);
    int fd = ask(&node, "POST", "/v1/agents/home/work", "application/json", slice_of(body));
    wait_for_parked(&node, count);
    return fd;
}

/* An instance that has fewer places now than it said. */
static void a_parked_call_comes_home_when_another_is_made_instead(void **state)
{
    REPLY r = {0};
    (void)state;

    int one = park("h1", 1);
    int other = park("h2", 2);
    int two = park("h1", 3);
    post(&node, &r, "/v1/agents/home/work",
         "{\"instance\": \"h1\", \"max\": 0, \"instead\": true}");
    EXPECT(&r, 200);
    hear(one, &r);
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "requests", "[]");
    hear(two, &r);
    EXPECT(&r, 200);
    wait_for_parked(&node, 1);
    define(&node, "home",
           "\"steps\": [{\"name\": \"s\", \"agent\": \"home\", \"action\": \"x\", "
           "\"undo\": \"none\"}]");
    submit(&node, "home", "home-1");
    hear(other, &r); /* that of another instance has stayed */
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "requests.0.task", "home-1");
    char *token = token_in(&r, 0);
    hand_in(&node, "home", "h2", token, "\"output\": 1", "accepted");
    free(token);

    int third = park("h1", 1);
    int fourth = ask(&node, "POST", "/v1/agents/home/work", "application/json",
                     SLICE("{\"instance\": \"h1\", \"max\": 1, \"wait\": \"5m\", "
                           "\"instead\": true}"));
    hear(third, &r); /* and the one that was made instead is parked */
    EXPECT(&r, 200);
    submit(&node, "home", "home-2");
    hear(fourth, &r);
    EXPECT_TEXT(&r, "requests.0.task", "home-2");
    token = token_in(&r, 0);
    hand_in(&node, "home", "h1", token, "\"output\": 1", "accepted");
    free(token);
    wait_for_state(&node, "home-2", "processed");
}

static void a_running_step_of_a_task_that_turns_back_is_told_to_stop(void **state)
{
    REPLY r = {0};
    (void)state;

    define_two_sides("turn");
    submit(&node, "turn", "turn-1");
    fetch(&node, &r, "turn-slow", "s1");
    char *slow = token_in(&r, 0);
    int parked = ask(&node, "POST", "/v1/agents/turn-slow/work", "application/json",
                     SLICE("{\"instance\": \"s1\", \"max\": 1, \"wait\": \"60s\"}"));
    fetch(&node, &r, "turn-bad", "b1");
    char *bad = token_in(&r, 0);
    hand_in(&node, "turn-bad", "b1", bad,
            "\"error\": {\"code\": \"declined\", \"message\": \"no\", \"retryable\": false}",
            "accepted");
    hear(parked, &r);
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "requests", "[]");
    assert_int_equal(at(&r, "stop")->count, 1);
    EXPECT_TEXT(&r, "stop.0", slow);
    task_of(&node, &r, "turn-1");
    EXPECT_TEXT(&r, "state", "compensating");
    EXPECT_TEXT(&r, "direction", "undo");
    EXPECT_TEXT(&r, "error.code", "declined");

    /* it says that nothing happened: then there is nothing to undo */
    hand_in(&node, "turn-slow", "s1", slow,
            "\"error\": {\"code\": \"stopped\", \"retryable\": true, \"effect\": \"none\"}",
            "accepted");
    wait_for_state(&node, "turn-1", "compensated");
    free(slow);
    free(bad);
}

static void an_undo_request_says_what_is_to_be_undone(void **state)
{
    REPLY r = {0};
    (void)state;

    define_two_sides("undo");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"undo\", \"id\": \"undo-1\", \"input\": [1]}");
    EXPECT(&r, 201);
    serve_step(&node, "undo-slow", "s1", "{\"id\": 5}");
    fetch(&node, &r, "undo-bad", "b1");
    char *bad = token_in(&r, 0);
    hand_in(&node, "undo-bad", "b1", bad, "\"error\": {\"code\": \"x\", \"retryable\": false}",
            "accepted");
    free(bad);
    fetch(&node, &r, "undo-slow", "s1");
    EXPECT_TEXT(&r, "requests.0.direction", "undo");
    EXPECT_TEXT(&r, "requests.0.action", "unx");
    EXPECT_INT(&r, "requests.0.attempt", 1);
    EXPECT_TEXT(&r, "requests.0.idempotency_key", "shop:undo-1/slow/undo");
    EXPECT_RAW(&r, "requests.0.input", "{\"input\":[1],\"output\":{\"id\": 5}}");
    EXPECT_TEXT(&r, "requests.0.forward.idempotency_key", "shop:undo-1/slow");
    EXPECT_RAW(&r, "requests.0.forward.input", "[1]");
    EXPECT_RAW(&r, "requests.0.forward.output", "{\"id\": 5}");
    EXPECT_INT(&r, "requests.0.forward.attempts", 1);
    EXPECT_RAW(&r, "requests.0.forward.in_doubt", "false");
    char *token = token_in(&r, 0);
    hand_in(&node, "undo-slow", "s1", token, "\"output\": null", "accepted");
    free(token);
    task_of(&node, &r, "undo-1");
    EXPECT_TEXT(&r, "state", "compensated");
    EXPECT_TEXT(&r, "steps.0.state", "undone");
    EXPECT_TEXT(&r, "steps.1.state", "failed");
}

static void a_step_in_doubt_is_undone_without_an_output(void **state)
{
    int64_t last = 0;
    char path[60];
    REPLY r = {0};
    (void)state;

    define_one("doubt", "\"undo\": {\"action\": \"undo.it\"}, \"complete_by\": \"100ms\", "
                        "\"on_failure\": \"undo\"");
    submit(&node, "doubt", "doubt-1");
    for (int i = 0; i < 3; i++) {
        fetch(&node, &r, "doubt", "d1");
        EXPECT_TEXT(&r, "requests.0.direction", "forward");
        assert_true(int_at(&r, "requests.0.attempt") > last); /* some may not be sent */
        last = int_at(&r, "requests.0.attempt");
    }
    fetch(&node, &r, "doubt", "d1"); /* all three timed out */
    EXPECT_TEXT(&r, "requests.0.direction", "undo");
    EXPECT_RAW(&r, "requests.0.forward.output", "null");
    EXPECT_RAW(&r, "requests.0.forward.in_doubt", "true");
    assert_true(int_at(&r, "requests.0.forward.attempts") >= 3);
    char *token = token_in(&r, 0);
    hand_in(&node, "doubt", "d1", token, "\"output\": null", "accepted");
    free(token);
    task_of(&node, &r, "doubt-1");
    EXPECT_TEXT(&r, "state", "compensated");
    (void)snprintf(path, sizeof path, "steps.0.attempts.%d.outcome", (int)last - 1);
    EXPECT_TEXT(&r, path, "timed_out");
}

static void an_agent_may_name_its_own_delay(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("delay", "\"undo\": \"none\"");
    submit(&node, "delay", "delay-1");
    fetch(&node, &r, "delay", "d1");
    char *token = token_in(&r, 0);
    int64_t before = now_ms();
    hand_in(&node, "delay", "d1", token, "\"error\": {\"code\": \"busy\", \"retry_after\": \"1h\"}",
            "accepted");
    task_of(&node, &r, "delay-1");
    assert_true(time_at(&r, "steps.0.wait_until") >= before + 3590000);
    free(token);
}

static void calls_that_are_wrong_are_422(void **state)
{
    static const char *const bodies[] = {
        "{}",
        "{\"instance\": 5}",
        "{\"instance\": \"\"}",
        "{\"instance\": \"a b\"}",
        "{\"instance\": \"a\", \"max\": -1}",
        "{\"instance\": \"a\", \"max\": 1001}",
        "{\"instance\": \"a\", \"max\": \"1\"}",
        "{\"instance\": \"a\", \"max\": 1.5}",
        "{\"instance\": \"a\", \"wait\": 5}",
        "{\"instance\": \"a\", \"wait\": \"5\"}",
        "{\"instance\": \"a\", \"results\": {}}",
        "{\"instance\": \"a\", \"holding\": \"x\"}",
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        post(&node, &r, "/v1/agents/wrong/work", "%s", bodies[i]);
        CHECK(r.status == 422, "%s: %d", bodies[i], r.status);
        expect_problem(&r, 422, "bad-work");
    }
    post(&node, &r, "/v1/agents/wrong", "{\"instance\": \"a\"}");
    expect_problem(&r, 405, "method");
    send_as(&node, &r, "POST", "/v1/agents/a%20b/work", "application/json",
            SLICE("{\"instance\": \"a\"}"));
    expect_problem(&r, 422, "bad-work");
    send_as(&node, &r, "POST", "/v1/agents/a%00b/work", "application/json",
            SLICE("{\"instance\": \"a\"}"));
    CHECK(r.status == 422 || r.status == 400, "%d: %.*s", r.status, SLICE_ARG(r.body));
    post(&node, &r, "/v1/agents/wrong/work", "{\"instance\": \"a\", \"instead\": 1}");
    expect_problem(&r, 422, "bad-work");
    post(&node, &r, "/v1/agents/wrong/work", "[]");
    expect_problem(&r, 422, "not-an-object");
    post(&node, &r, "/v1/agents/wrong/work", "x");
    expect_problem(&r, 400, "not-json");
    send_as(&node, &r, "POST", "/v1/agents/wrong/work", "text/plain", SLICE("{}"));
    expect_problem(&r, 415, "content-type");
    post(&node, &r, "/v1/agents/wrong/work",
         "{\"instance\": \"a\", \"wait\": null, \"results\": null, \"holding\": null}");
    EXPECT(&r, 200);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_has_all_its_fields),
        cmocka_unit_test(attempts_are_numbered_and_their_key_stays),
        cmocka_unit_test(a_result_is_accepted_once_and_then_repeated),
        cmocka_unit_test(a_late_result_is_kept_and_changes_no_state),
        cmocka_unit_test(tokens_are_good_for_their_agent_and_as_they_are),
        cmocka_unit_test(a_bad_result_fails_only_itself),
        cmocka_unit_test(a_result_that_is_nested_too_deeply_fails_only_itself),
        cmocka_unit_test(a_call_waits_for_work_and_no_longer),
        cmocka_unit_test(one_call_takes_as_many_as_it_has_room_for),
        cmocka_unit_test(what_an_instance_was_given_and_does_not_hold_is_sent_again),
        cmocka_unit_test(a_call_that_is_given_up_takes_nothing_with_it),
        cmocka_unit_test(a_parked_call_comes_home_when_another_is_made_instead),
        cmocka_unit_test(a_running_step_of_a_task_that_turns_back_is_told_to_stop),
        cmocka_unit_test(an_undo_request_says_what_is_to_be_undone),
        cmocka_unit_test(a_step_in_doubt_is_undone_without_an_output),
        cmocka_unit_test(an_agent_may_name_its_own_delay),
        cmocka_unit_test(calls_that_are_wrong_are_422),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
