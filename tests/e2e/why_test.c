/*
 * "Why is my task stuck?" on a real server with real agents: each kind of reason that can be
 * produced, that its forecast comes true, and that its commands work verbatim.
 */

#include <stdlib.h>

#include "base/when.h"
#include "kit.h"

static struct node node;
static const char *program;

/* The supervisor of this one looks so seldom that what is overdue stays so. */
static struct node blind;

static int start(void **state)
{
    (void)state;
    node_init(&node);
    node_start(&node, FLAGS("--scan-every", "100ms", "--grace", "1s", "--drain", "200ms"));
    node_init(&blind);
    node_start(&blind, FLAGS("--scan-every", "1h", "--drain", "200ms"));
    return 0;
}

static int stop(void **state)
{
    (void)state;
    node_stop(&node);
    node_fini(&node);
    node_stop(&blind);
    node_fini(&blind);
    return 0;
}

static void ask_why(const struct node *n, struct reply *ret, const char *id)
{
    get(n, ret, "/v1/tasks/%s/why", id);
    EXPECT(ret, 200);
    EXPECT_TEXT(ret, "task", id);
    assert_true(*text_at(ret, "summary"));
    assert_non_null(at(ret, "reasons.0"));
    assert_int_equal(time_at(ret, "since"), time_at(ret, "reasons.0.since"));
}

/* The number of the reason of that kind, or -1. */
static int find(const struct reply *r, const char *kind)
{
    char path[40];

    for (int i = 0;; i++) {
        (void)snprintf(path, sizeof path, "reasons.%d.kind", i);
        if (!at(r, path))
            return -1;
        if (strcmp(text_at(r, path), kind) == 0)
            return i;
    }
}

static const char *field(int reason, const char *name)
{
    static char path[60];

    (void)snprintf(path, sizeof path, "reasons.%d.%s", reason, name);
    return path;
}

/* Asks until it is so. */
static int wait_for(const struct node *n, struct reply *ret, const char *id, const char *kind)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        ask_why(n, ret, id);
        int i = find(ret, kind);
        if (i >= 0)
            return i;
        CHECK(steady_ms() < until, "%s is not %s: %.*s", id, kind, SLICE_ARG(ret->body));
        sleep_ms(10);
    }
}

#define EXPECT_FIRST(r, kind) \
    CHECK(find((r), (kind)) == 0, "expected %s: %.*s", (kind), SLICE_ARG((r)->body))
#define EXPECT_SAID(r, reason, name, words)                                                \
    CHECK(strstr(text_at((r), field((reason), (name))), (words)), "expected \"%s\": %.*s", \
          (words), SLICE_ARG((r)->body))

static void fail_step(const struct node *n, const char *agent, const char *error)
{
    REPLY r = {0};
    CLEANUP(buf_fini) struct buf b = {0};

    fetch(n, &r, agent, "i");
    char *token = token_in(&r, 0);
    buf_fmt(&b, "\"error\": {\"code\": \"broken\", \"message\": \"it is\", %s}", error);
    hand_in(n, agent, "i", token, b.ptr, "accepted");
    free(token);
}

#define FOR_GOOD  "\"retryable\": false"
#define ONCE_MORE "\"retryable\": true, \"effect\": \"none\""

/* Runs a line as it stands in an answer, with this program as `intact`. */
static void paste(const struct node *n, struct slice line)
{
    CLEANUP(buf_fini) struct buf b = {0};

    CHECK(line.len > 7 && memcmp(line.ptr, "intact ", 7) == 0, "no command: %.*s", SLICE_ARG(line));
    buf_fmt(&b, "INTACT_SERVER=http://127.0.0.1:%d INTACT_TOKEN=%s '%s' %.*s >'%s/out' 2>&1",
            n->port, n->token, program, (int)line.len - 7, line.ptr + 7, n->home);
    int status = system(b.ptr);
    CHECK(status == 0, "status %d of %s", status, b.ptr);
}

/* The command of that verb among those of a reason. */
static struct slice command_of(const struct reply *r, int reason, const char *verb)
{
    const char *moves = text_at(r, field(reason, "moves"));
    char begin[40];

    (void)snprintf(begin, sizeof begin, "\nintact %s ", verb);
    const char *from = strstr(moves, begin);
    CHECK(from, "no %s in: %s", verb, moves);
    const char *end = strchr(from + 1, '\n');
    return (struct slice){from + 1, end ? (size_t)(end - from - 1) : strlen(from + 1)};
}

#define UNDONE "\"undo\": {\"action\": \"unx\"}"

/* ---- before a step is at work ---- */

static void nobody_is_there(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "absent",
                 "\"complete_by\": \"1h\", \"steps\": [{\"name\": \"a\", \"agent\": \"absnt\", "
                 "\"action\": \"x\", " UNDONE "}, {\"name\": \"b\", \"agent\": \"absent\", "
                 "\"action\": \"x\", " UNDONE "}]");
    submit(&node, "absent", "absent-1");
    ask_why(&node, &r, "absent-1");
    EXPECT_FIRST(&r, "no-agent");
    EXPECT_TEXT(&r, "state", "pending");
    EXPECT_TEXT(&r, "reasons.0.step", "a");
    EXPECT_TEXT(&r, "reasons.0.agent", "absnt");
    EXPECT_SAID(&r, 0, "text", "None has connected since this server started.");
    EXPECT_TEXT(&r, "reasons.1.kind", "after");
    EXPECT_TEXT(&r, "reasons.1.step", "b");
    EXPECT_TEXT(&r, "reasons.2.kind", "complete-by");
    int64_t since = time_at(&r, "reasons.0.since");
    int64_t until = time_at(&r, "reasons.2.until");
    task_of(&node, &r, "absent-1");
    assert_int_equal(since, time_at(&r, "submitted_at"));
    assert_int_equal(until, time_at(&r, "complete_by"));

    /* Somebody with nearly that name is there; and the command for that works. */
    post(&node, &r, "/v1/agents/absent/work",
         "{\"instance\": \"i\", \"max\": 1, \"wait\": \"1ms\"}");
    ask_why(&node, &r, "absent-1");
    EXPECT_SAID(&r, 0, "text", "Agent absent is connected");
    paste(&node, command_of(&r, 0, "cancel"));
    ask_why(&node, &r, "absent-1");
    EXPECT_FIRST(&r, "compensated");
}

static void it_begins_later(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "later",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"later\", "
                 "\"action\": \"x\", " UNDONE "}]");
    post(
        &node, &r, "/v1/tasks",
        "{\"workflow\": \"later\", \"id\": \"later-1\", \"not_before\": \"2199-01-01T00:00:00Z\"}");
    EXPECT(&r, 201);
    ask_why(&node, &r, "later-1");
    EXPECT_FIRST(&r, "not-before");
    int64_t at = 0;
    assert_true(time_parse(SLICE("2199-01-01T00:00:00Z"), &at));
    assert_int_equal(time_at(&r, "reasons.0.until"), at);
}

static void all_places_are_taken(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "busy",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"busy\", "
                 "\"action\": \"x\", " UNDONE "}]");
    for (int i = 0; i < 4; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "busy-%d", i);
        submit(&node, "busy", id);
    }
    fetch(&node, &r, "busy", "one");
    EXPECT_TEXT(&r, "requests.0.task", "busy-0");
    /* For 2 s without a call it counts as connected; then as gone. */
    int64_t until = steady_ms() + PATIENCE_MS;
    for (;;) {
        post(&node, &r, "/v1/agents/busy/work", "{\"instance\": \"two\", \"max\": 0}");
        ask_why(&node, &r, "busy-1");
        if (find(&r, "no-place") == 0)
            break;
        CHECK(steady_ms() < until, "%.*s", SLICE_ARG(r.body));
    }
    EXPECT_SAID(&r, 0, "text", "one (1)");
    do {
        post(&node, &r, "/v1/agents/busy/work", "{\"instance\": \"two\", \"max\": 0}");
        ask_why(&node, &r, "busy-3");
        CHECK(steady_ms() < until, "%.*s", SLICE_ARG(r.body));
    } while (find(&r, "queued") != 0);
    EXPECT_SAID(&r, 0, "text", " 2 other steps come before it in the queue of agent busy");
}

static void a_branch_starts_while_the_agent_of_another_is_away(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "two",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"two-a\", \"action\": \"x\", "
                 "\"after\": [], " UNDONE "}, {\"name\": \"b\", \"agent\": \"two-b\", "
                 "\"action\": \"x\", \"after\": [], " UNDONE "}]");
    submit(&node, "two", "two-1");
    ask_why(&node, &r, "two-1");
    EXPECT_FIRST(&r, "no-agent");
    EXPECT_TEXT(&r, "reasons.1.kind", "no-agent");
    task_of(&node, &r, "two-1");
    EXPECT_TEXT(&r, "waiting_for", "two-a,two-b");
    serve_step(&node, "two-b", "i", "1");
    ask_why(&node, &r, "two-1");
    EXPECT_FIRST(&r, "no-agent");
    EXPECT_TEXT(&r, "reasons.0.agent", "two-a");
    serve_step(&node, "two-a", "i", "1");
    ask_why(&node, &r, "two-1");
    EXPECT_FIRST(&r, "processed");
}

/* ---- at work, and between tries ---- */

static void it_is_at_work(void **state)
{
    REPLY r = {0};
    CLEANUP(buf_fini) struct buf beat = {0};
    (void)state;

    (void)define(&node, "works",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"works\", \"action\": \"x\", "
                 "\"complete_by\": \"1s\", \"retry\": {\"attempts\": 2, \"wait\": \"1ms\"}, " UNDONE
                 "}]");
    submit(&node, "works", "works-1");
    fetch(&node, &r, "works", "w-1");
    char *token = token_in(&r, 0);
    buf_fmt(&beat,
            "{\"instance\": \"w-1\", \"beats\": [{\"token\": \"%s\", \"message\": \"half\", "
            "\"progress\": {\"n\": 1}}]}",
            token);
    post(&node, &r, "/v1/agents/works/heartbeats", "%s", beat.ptr);
    EXPECT(&r, 200);
    ask_why(&node, &r, "works-1");
    int i = find(&r, "running");
    if (i == 0) { /* on a machine that is not too slow */
        EXPECT_SAID(&r, 0, "text", "instance w-1 of agent works, attempt 1");
        EXPECT_SAID(&r, 0, "text", ": half, {\"n\": 1}");
        EXPECT_SAID(&r, 0, "moves", "the step is retried");
        int64_t until = time_at(&r, "reasons.0.until");
        int64_t since = time_at(&r, "reasons.0.since");
        task_of(&node, &r, "works-1");
        assert_int_equal(since, time_at(&r, "steps.0.attempts.0.started_at"));
        assert_int_equal(until, time_at(&r, "steps.0.attempts.0.complete_by"));
    }
    free(token);
    fetch(&node, &r, "works", "w-1"); /* it is tried again, as was said, and not before */
    EXPECT_INT(&r, "requests.0.attempt", 2);
    task_of(&node, &r, "works-1");
    assert_true(time_at(&r, "steps.0.attempts.0.ended_at")
                >= time_at(&r, "steps.0.attempts.0.complete_by"));
}

static void it_waits_for_its_next_try(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "tries",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"tries\", \"action\": \"x\", "
                 "\"retry\": {\"attempts\": 2, \"wait\": \"1h\", \"max_wait\": \"1h\", \"jitter\": "
                 "false, \"defer\": \"2h\", \"defers\": 1}, " UNDONE "}]");
    submit(&node, "tries", "tries-1");
    fail_step(&node, "tries", ONCE_MORE);
    ask_why(&node, &r, "tries-1");
    EXPECT_FIRST(&r, "between-tries");
    EXPECT_SAID(&r, 0, "text", "failed (broken: it is) and waits for its next attempt, 2 of 3.");
    CLEANUP(buf_fini) struct buf retry = {0};
    buf_slice(&retry, command_of(&r, 0, "retry"));
    int64_t until = time_at(&r, "reasons.0.until");
    int64_t since = time_at(&r, "reasons.0.since");
    task_of(&node, &r, "tries-1");
    assert_int_equal(until, time_at(&r, "steps.0.wait_until"));
    assert_int_equal(since, time_at(&r, "steps.0.attempts.0.ended_at"));
    paste(&node, buf_view(&retry)); /* instead of an hour */
    fail_step(&node, "tries", ONCE_MORE);
    ask_why(&node, &r, "tries-1");
    EXPECT_FIRST(&r, "deferred");
    EXPECT_SAID(&r, 0, "text", "3 of 3, after an extended wait.");
    paste(&node, command_of(&r, 0, "retry"));
    serve_step(&node, "tries", "i", "1");
    wait_for_state(&node, "tries-1", "processed");
}

/* ---- errors ---- */

static void a_step_failed(void **state)
{
    REPLY r = {0};
    (void)state;
    static const char *const verbs[] = {"retry", "skip", "undo"};

    (void)define(&node, "fails",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"fails\", \"action\": \"x\", " UNDONE
                 ", \"on_failure\": \"hold\"}]");
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        submit(&node, "fails", verbs[i]);
        fail_step(&node, "fails", FOR_GOOD);
        ask_why(&node, &r, verbs[i]);
        EXPECT_FIRST(&r, "failed");
        EXPECT_TEXT(&r, "state", "error");
        EXPECT_SAID(&r, 0, "text", "Step a failed for good after 1 attempt: broken: it is.");
        assert_null(at(&r, "reasons.1"));
        paste(&node, command_of(&r, 0, verbs[i]));
        if (strcmp(verbs[i], "retry") == 0)
            serve_step(&node, "fails", "i", "1");
        ask_why(&node, &r, verbs[i]);
        EXPECT_FIRST(&r, i == 2 ? "compensated" : "processed");
        assert_int_equal(time_at(&r, "reasons.0.until"), 0);
    }
}

static void a_branch_failed_and_another_is_at_work(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "holds",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"holds-a\", \"action\": \"x\", "
                 "\"after\": [], \"on_failure\": \"hold\", " UNDONE "}, {\"name\": \"b\", "
                 "\"agent\": \"holds-b\", \"action\": \"x\", \"after\": [], " UNDONE "}]");
    submit(&node, "holds", "holds-1");
    post(&node, &r, "/v1/agents/holds-a/work", "{\"instance\": \"i\", \"max\": 0}");
    fetch(&node, &r, "holds-a", "i");
    char *a = token_in(&r, 0);
    fetch(&node, &r, "holds-b", "i");
    char *b = token_in(&r, 0);
    hand_in(&node, "holds-a", "i", a, "\"error\": {\"code\": \"broken\", \"retryable\": false}",
            "accepted");
    ask_why(&node, &r, "holds-1");
    EXPECT_FIRST(&r, "holding");
    EXPECT_TEXT(&r, "reasons.0.step", "a");
    EXPECT_TEXT(&r, "reasons.1.kind", "running");
    EXPECT_TEXT(&r, "reasons.1.step", "b");
    hand_in(&node, "holds-b", "i", b, "\"output\": 1", "accepted");
    ask_why(&node, &r, "holds-1");
    EXPECT_FIRST(&r, "failed");
    free(a);
    free(b);
}

static void the_task_was_too_late(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(
        &node, "late",
        "\"complete_by\": \"100ms\", \"on_failure\": \"hold\", \"steps\": [{\"name\": "
        "\"a\", \"agent\": \"late\", \"action\": \"x\", \"retry\": {\"attempts\": 1}, " UNDONE
        "}]");
    submit(&node, "late", "late-1");
    wait_for_state(&node, "late-1", "error");
    ask_why(&node, &r, "late-1");
    EXPECT_FIRST(&r, "deadline");
    paste(&node, command_of(&r, 0, "retry"));
    ask_why(&node, &r, "late-1");
    EXPECT_FIRST(&r, "no-agent");
    EXPECT_TEXT(&r, "reasons.1.kind", "late");
    serve_step(&node, "late", "i", "1");
    wait_for_state(&node, "late-1", "processed");
}

/* ---- the way back ---- */

static void undo_goes_back_step_by_step(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)
        define(&node, "back",
               "\"steps\": [{\"name\": \"a\", \"agent\": \"back\", \"action\": \"x\", "
               "\"undo\": {\"action\": \"unx\", \"retry\": {\"attempts\": 1}}}, {\"name\": \"b\", "
               "\"agent\": \"back\", \"action\": \"x\", " UNDONE "}, {\"name\": \"c\", \"agent\": "
               "\"back\", \"action\": \"x\", " UNDONE "}]");
    submit(&node, "back", "back-1");
    serve_step(&node, "back", "i", "1");
    serve_step(&node, "back", "i", "1");
    fail_step(&node, "back", FOR_GOOD);
    fetch(&node, &r, "back", "i");
    char *token = token_in(&r, 0);
    ask_why(&node, &r, "back-1");
    EXPECT_FIRST(&r, "undo-running");
    EXPECT_TEXT(&r, "direction", "undo");
    EXPECT_TEXT(&r, "reasons.0.step", "b");
    EXPECT_TEXT(&r, "reasons.1.kind", "undo-after");
    EXPECT_TEXT(&r, "reasons.1.step", "a");
    EXPECT_SAID(&r, 1, "text", "the rest of step b");
    hand_in(&node, "back", "i", token, "\"output\": null", "accepted");
    free(token);
    fail_step(&node, "back", FOR_GOOD);
    ask_why(&node, &r, "back-1");
    EXPECT_FIRST(&r, "undo-failed");
    EXPECT_TEXT(&r, "state", "error");
    paste(&node, command_of(&r, 0, "skip"));
    ask_why(&node, &r, "back-1");
    EXPECT_FIRST(&r, "compensated");
}

static void what_may_be_at_work_is_not_undone_yet(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "doubt",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"doubt\", \"action\": \"x\", "
                 "\"complete_by\": \"2s\", " UNDONE "}]");
    submit(&node, "doubt", "doubt-1");
    fail_step(&node, "doubt", "\"retryable\": false, \"effect\": \"unknown\"");
    ask_why(&node, &r, "doubt-1");
    EXPECT_FIRST(&r, "in-doubt");
    int64_t until = time_at(&r, "reasons.0.until");
    task_of(&node, &r, "doubt-1");
    assert_int_equal(until, time_at(&r, "steps.0.attempts.0.complete_by") + 1000);
    serve_step(&node, "doubt", "i", "null");
    task_of(&node, &r, "doubt-1");
    EXPECT_TEXT(&r, "state", "compensated");
    assert_true(time_at(&r, "steps.0.attempts.1.started_at") >= until); /* as it said */
}

static void a_running_branch_is_told_to_stop(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "stops",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"stops\", \"action\": "
                 "\"x\", " UNDONE "}]");
    submit(&node, "stops", "stops-1");
    fetch(&node, &r, "stops", "i");
    char *token = token_in(&r, 0);
    post(&node, &r, "/v1/tasks/stops-1/undo", "{\"reason\": \"not wanted\"}");
    ask_why(&node, &r, "stops-1");
    EXPECT_FIRST(&r, "stopping");
    hand_in(&node, "stops", "i", token,
            "\"error\": {\"code\": \"stopped\", \"retryable\": false, \"effect\": \"none\"}",
            "accepted");
    free(token);
    ask_why(&node, &r, "stops-1");
    EXPECT_FIRST(&r, "compensated");
    EXPECT_SAID(&r, 0, "text", "undone_by_operator: not wanted");
}

static void a_pivot_decides(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "pivot",
                 "\"steps\": [{\"name\": \"p\", \"agent\": \"pivot\", \"action\": \"x\", "
                 "\"pivot\": true, \"retry\": {\"attempts\": 1}}]");
    submit(&node, "pivot", "pivot-1");
    fetch(&node, &r, "pivot", "i");
    char *token = token_in(&r, 0);
    post(&node, &r, "/v1/tasks/pivot-1/undo", "{\"reason\": \"not wanted\"}");
    ask_why(&node, &r, "pivot-1");
    EXPECT_FIRST(&r, "pivot-holds");
    EXPECT_TEXT(&r, "reasons.0.step", "p");
    EXPECT_TEXT(&r, "reasons.1.kind", "running");
    hand_in(&node, "pivot", "i", token,
            "\"error\": {\"code\": \"lost\", \"retryable\": false, \"effect\": \"unknown\"}",
            "accepted");
    free(token);
    ask_why(&node, &r, "pivot-1");
    EXPECT_FIRST(&r, "pivot-unclear");
    paste(&node, command_of(&r, 0, "retry"));
    fail_step(&node, "pivot", "\"retryable\": false, \"effect\": \"unknown\"");
    ask_why(&node, &r, "pivot-1");
    EXPECT_FIRST(&r, "pivot-unclear");
    CHECK(strstr(r.raw, "An attempt may still take effect: resolve is possible in "), "%.*s",
          SLICE_ARG(r.body));
    paste(&node, command_of(&r, 0, "supply"));
    ask_why(&node, &r, "pivot-1");
    EXPECT_FIRST(&r, "processed");
}

/* ---- the server's own business ---- */

static void what_is_overdue_waits_for_the_supervisor(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(
        &blind, "due",
        "\"steps\": [{\"name\": \"a\", \"agent\": \"due\", "
        "\"action\": \"x\", \"complete_by\": \"50ms\", \"retry\": {\"attempts\": 1}, " UNDONE "}]");
    submit(&blind, "due", "due-1");
    (void)
        define(&blind, "too-late",
               "\"complete_by\": \"300ms\", \"steps\": [{\"name\": \"a\", \"agent\": \"too-late\", "
               "\"action\": \"x\", " UNDONE "}]");
    submit(&blind, "too-late", "due-2");
    fetch(&blind, &r, "due", "i");
    int i = wait_for(&blind, &r, "due-1", "overdue");
    EXPECT_SAID(
        &r, i, "moves",
        "The supervisor checks every 1h 00m. It ends the attempt; then the task is undone.");
    int64_t since = time_at(&r, field(i, "since"));
    (void)wait_for(&blind, &r, "due-2", "deadline-due");
    EXPECT_FIRST(&r, "deadline-due");
    EXPECT_SAID(&r, 0, "moves", "then the task is undone");
    assert_int_equal(time_at(&r, "reasons.0.until"), 0);
    task_of(&blind, &r, "due-1");
    assert_int_equal(since, time_at(&r, "steps.0.attempts.0.complete_by"));
}

static void time_that_the_server_lost_is_given_back(void **state)
{
    REPLY r = {0};
    struct node n;
    (void)state;

    node_init(&n);
    node_start(&n, FLAGS("--grace", "1h", "--drain", "200ms"));
    (void)define(&n, "grace",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"grace\", \"action\": "
                 "\"x\", \"complete_by\": \"300ms\", " UNDONE "}]");
    submit(&n, "grace", "grace-1");
    fetch(&n, &r, "grace", "i");
    char *token = token_in(&r, 0);
    int64_t due = time_at(&r, "requests.0.complete_by");
    node_kill(&n);
    while (now_ms() <= due)
        sleep_ms(20);
    node_start(&n, FLAGS("--grace", "1h", "--drain", "200ms"));
    int i = wait_for(&n, &r, "grace-1", "grace");
    assert_true(time_at(&r, field(i, "until")) > due + 3500000);
    hand_in(&n, "grace", "i", token, "\"output\": 1", "accepted"); /* it is taken, as it says */
    free(token);
    ask_why(&n, &r, "grace-1");
    EXPECT_FIRST(&r, "processed");
    node_stop(&n);
    node_fini(&n);
}

/* ---- the route and the verb ---- */

static void there_is_no_such_task(void **state)
{
    REPLY r = {0};
    (void)state;

    get(&node, &r, "/v1/tasks/nobody/why");
    expect_problem(&r, 404, "no-such-task");
    get(&node, &r, "/v1/tasks/nobody/why?wait=1s");
    expect_problem(&r, 422, "unknown-parameter");
    post(&node, &r, "/v1/tasks/nobody/why", "{}");
    expect_problem(&r, 405, "method");
}

static int run_verb(const char *server, const char *arguments, struct buf *ret)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_clear(ret);
    buf_fmt(&b, "INTACT_TOKEN=%s INTACT_SERVER=%s '%s' why %s 2>&1", node.token, server, program,
            arguments);
    FILE *f = popen(b.ptr, "r");
    CHECK(f, "%s", b.ptr);
    for (int c = 0; (c = fgetc(f)) != EOF;)
        buf_byte(ret, (char)c);
    int status = pclose(f);
    buf_str(ret, "");
    return WEXITSTATUS(status);
}

static void the_verb_tells_it_to_people(void **state)
{
    CLEANUP(buf_fini) struct buf out = {0};
    char server[60];
    (void)state;

    (void)snprintf(server, sizeof server, "http://127.0.0.1:%d", node.port);
    (void)define(&node, "told",
                 "\"complete_by\": \"1h\", \"steps\": [{\"name\": \"a\", \"agent\": \"told\", "
                 "\"action\": \"x\", " UNDONE ", \"on_failure\": \"hold\"}]");
    submit(&node, "told", "told-1");
    fail_step(&node, "told", "\"retryable\": false");
    assert_int_equal(run_verb(server, "told-1", &out), 0);
    assert_non_null(strstr(out.ptr,
                           "Task told-1 has stopped in error. Step a failed for good after "
                           "1 attempt:\nbroken: it is.\n  since "));
    assert_non_null(strstr(out.ptr, "\n    intact skip told-1 --step a --reason '...'\n"));
    assert_int_equal(run_verb(server, "told-1 --json", &out), 0);
    assert_non_null(strstr(out.ptr, "\"kind\":\"failed\""));
    assert_int_equal(run_verb(server, "nobody", &out), 1);
    assert_non_null(strstr(out.ptr, "there is no task nobody"));
    assert_int_equal(run_verb(server, "", &out), 2);
    assert_int_equal(run_verb("http://127.0.0.1:1", "told-1", &out), 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_there),
        cmocka_unit_test(it_begins_later),
        cmocka_unit_test(all_places_are_taken),
        cmocka_unit_test(a_branch_starts_while_the_agent_of_another_is_away),
        cmocka_unit_test(it_is_at_work),
        cmocka_unit_test(it_waits_for_its_next_try),
        cmocka_unit_test(a_step_failed),
        cmocka_unit_test(a_branch_failed_and_another_is_at_work),
        cmocka_unit_test(the_task_was_too_late),
        cmocka_unit_test(undo_goes_back_step_by_step),
        cmocka_unit_test(what_may_be_at_work_is_not_undone_yet),
        cmocka_unit_test(a_running_branch_is_told_to_stop),
        cmocka_unit_test(a_pivot_decides),
        cmocka_unit_test(what_is_overdue_waits_for_the_supervisor),
        cmocka_unit_test(time_that_the_server_lost_is_given_back),
        cmocka_unit_test(there_is_no_such_task),
        cmocka_unit_test(the_verb_tells_it_to_people),
    };
    kit_program(argc, argv);
    program = argv[1];
    return cmocka_run_group_tests(tests, start, stop);
}
