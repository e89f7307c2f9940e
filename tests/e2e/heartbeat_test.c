/* Tests of heartbeats that a workflow does not require: they are shown while the attempt is open,
 * and have no other effect. long_test.c has required ones. */

#include <sqlite3.h>
#include <stdlib.h>

#include "sse.h"

static struct node node;

#define SERVER FLAGS("--log", "error", "--scan-every", "100ms", "--grace", "200ms")

static int start(void **state)
{
    *state = node_open(&node, SERVER);
    return 0;
}

static void define_one(const char *name, const char *rest)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b,
            "\"steps\": [{\"name\": \"s\", \"agent\": \"%s\", \"action\": \"x\", \"retry\": "
            "{\"attempts\": 1}, %s}]",
            name, rest);
    (void)define(&node, name, b.ptr);
}

/* A task of that workflow whose one step is at work; its token. */
static char *begin(const char *name, const char *id)
{
    REPLY r = {0};

    submit(&node, name, id);
    fetch(&node, &r, name, "i-1");
    return token_in(&r, 0);
}

static void beat(struct reply *ret, const char *agent, const char *instance, const char *token,
                 const char *rest)
{
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/heartbeats", agent);
    post(&node, ret, path, "{\"instance\": \"%s\", \"beats\": [{\"token\": \"%s\"%s}]}", instance,
         token, rest);
}

static void expect_status(const char *agent, const char *instance, const char *token,
                          const char *expected)
{
    REPLY r = {0};

    beat(&r, agent, instance, token, "");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "outcomes.0.status", expected);
    EXPECT_TEXT(&r, "outcomes.0.token", token);
    assert_true(time_at(&r, "now") > 0);
}

static int64_t metric(const char *line)
{
    REPLY r = {0};
    char text[100];

    get(&node, &r, "/metrics");
    (void)snprintf(text, sizeof text, "\n%s ", line);
    const char *found = strstr(r.body.ptr, text);
    CHECK(found, "no %s: %.*s", line, SLICE_ARG(r.body));
    return strtoll(found + strlen(text), NULL, 10);
}

static void what_an_attempt_says_is_shown_while_it_is_open(void **state)
{
    REPLY r = {0};
    SSE s = {0};
    SSE_EVENT e = {0};
    (void)state;

    define_one("shown", "\"undo\": \"none\"");
    char *token = begin("shown", "shown-1");
    task_of(&node, &r, "shown-1");
    EXPECT_RAW(&r, "steps.0.attempts.0.heartbeat_at", "null");
    EXPECT_RAW(&r, "steps.0.attempts.0.progress", "null");
    sse_open(&node, &s, "/v1/tasks/shown-1/events", NULL);
    CHECK(sse_next(&s, &e), "no event");
    beat(&r, "shown", "i-1", token,
         ", \"progress\": {\"part\": 3,\n \"of\": 9}, \"message\": \"a third\"");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    EXPECT_RAW(&r, "stop", "[]");
    task_of(&node, &r, "shown-1");
    assert_true(time_at(&r, "steps.0.attempts.0.heartbeat_at")
                >= time_at(&r, "steps.0.attempts.0.started_at"));
    EXPECT_INT(&r, "steps.0.attempts.0.progress.part", 3);
    EXPECT_TEXT(&r, "steps.0.attempts.0.message", "a third");
    get(&node, &r, "/v1/agents");
    assert_non_null(memmem(r.body.ptr, r.body.len, "\"heartbeat_at\":\"2", 17));
    CHECK(sse_next(&s, &e), "no event");
    assert_string_equal(e.name, "progress");
    assert_string_equal(e.id, "");
    EXPECT_TEXT(&e.data, "step", "s");
    EXPECT_TEXT(&e.data, "direction", "forward");
    EXPECT_INT(&e.data, "attempt", 1);
    EXPECT_INT(&e.data, "progress.of", 9);
    EXPECT_TEXT(&e.data, "message", "a third");

    /* The next one says all that there is to say. */
    expect_status("shown", "i-1", token, "accepted");
    task_of(&node, &r, "shown-1");
    EXPECT_RAW(&r, "steps.0.attempts.0.progress", "null");
    assert_true(time_at(&r, "steps.0.attempts.0.heartbeat_at") > 0);
    hand_in(&node, "shown", "i-1", token, "\"output\": 1", "accepted");
    task_of(&node, &r, "shown-1");
    assert_null(at(&r, "steps.0.attempts.0.heartbeat_at"));
    expect_status("shown", "i-1", token, "late");
    free(token);
}

static void only_the_instance_at_work_is_heard(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("heard", "\"undo\": \"none\"");
    char *token = begin("heard", "heard-1");
    expect_status("heard", "i-2", token, "unknown");
    expect_status("other", "i-1", token, "unknown");
    char *forged = strdup(token);
    assert_non_null(forged);
    forged[strlen(forged) - 2] ^= 1;
    expect_status("heard", "i-1", forged, "unknown");
    expect_status("heard", "i-1", "", "unknown");
    expect_status("heard", "i-1", "heard-1~0~f1~", "unknown");
    task_of(&node, &r, "heard-1");
    EXPECT_RAW(&r, "steps.0.attempts.0.heartbeat_at", "null");
    get(&node, &r, "/v1/agents"); /* who only sends heartbeats makes nobody known */
    assert_null(memmem(r.body.ptr, r.body.len, "i-2", 3));
    assert_null(memmem(r.body.ptr, r.body.len, "\"other\"", 7));
    free(forged);
    free(token);
}

static void one_bad_beat_fails_only_itself(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    char long_text[2100];
    (void)state;

    define_one("bad", "\"undo\": \"none\"");
    char *token = begin("bad", "bad-1");
    memset(long_text, 'x', sizeof long_text);
    long_text[sizeof long_text - 1] = 0;
    buf_str(&b, "{\"instance\": \"i-1\", \"beats\": [7, {\"token\": 8}, {}, ");
    buf_fmt(&b, "{\"token\": \"%s\", \"progress\": \"%s\"}, ", token, long_text);
    buf_fmt(&b, "{\"token\": \"%s\", \"message\": \"%.257s\"}, ", token, long_text);
    buf_fmt(&b, "{\"token\": \"%s\", \"message\": 3}, ", token);
    buf_fmt(&b, "{\"token\": \"%s\", \"message\": \"%.256s\", \"progress\": \"%.2046s\"}]}", token,
            long_text, long_text);
    send_as(&node, &r, "POST", "/v1/agents/bad/heartbeats", "application/json", buf_view(&b));
    EXPECT(&r, 200);
    assert_int_equal(at(&r, "outcomes")->count, 7);
    for (int i = 0; i < 6; i++) {
        char path[40];
        (void)snprintf(path, sizeof path, "outcomes.%d.status", i);
        EXPECT_TEXT(&r, path, "unknown");
        (void)snprintf(path, sizeof path, "outcomes.%d.problem", i);
        CHECK(*text_at(&r, path), "%d: %.*s", i, SLICE_ARG(r.body));
    }
    EXPECT_TEXT(&r, "outcomes.6.status", "accepted");
    task_of(&node, &r, "bad-1");
    assert_int_equal(strlen(text_at(&r, "steps.0.attempts.0.message")), 256);
    assert_int_equal(strlen(text_at(&r, "steps.0.attempts.0.progress")), 2046);
    free(token);
}

static void a_bad_call_is_refused_as_a_whole(void **state)
{
    static const struct {
        const char *body;
        int status;
        const char *type;
    } cases[] = {
        {"{", 400, "not-json"},
        {"[]", 422, "not-an-object"},
        {"{\"instance\": \"i\"}", 422, "bad-heartbeats"},
        {"{\"instance\": \"i\", \"beats\": {}}", 422, "bad-heartbeats"},
        {"{\"beats\": []}", 422, "bad-heartbeats"},
        {"{\"instance\": \"a b\", \"beats\": []}", 422, "bad-heartbeats"},
        {"{\"instance\": \"i\", \"beats\": [], \"max\": 3}", 422, "unknown-member"},
        {"{\"instance\": \"i\", \"beats\": [{\"token\": \"t\", \"progess\": 3}]}", 422,
         "unknown-member"},
    };
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        post(&node, &r, "/v1/agents/a/heartbeats", "%s", cases[i].body);
        expect_problem(&r, cases[i].status, cases[i].type);
    }
    send_as(&node, &r, "POST", "/v1/agents/a/heartbeats", "text/plain", SLICE("{}"));
    expect_problem(&r, 415, "content-type");
    buf_str(&b, "{\"instance\": \"i\", \"beats\": [{}");
    for (int i = 0; i < 1023; i++)
        buf_str(&b, ",{}");
    post(&node, &r, "/v1/agents/a/heartbeats", "%s]}", b.ptr);
    EXPECT(&r, 200);
    post(&node, &r, "/v1/agents/a/heartbeats", "%s,{}]}", b.ptr);
    expect_problem(&r, 422, "bad-heartbeats");
}

/* Changes whenever another connection has written, and at nothing else. */
static int64_t data_version(sqlite3 *db)
{
    sqlite3_stmt *q = NULL;

    int rc = sqlite3_prepare_v2(db, "PRAGMA data_version", -1, &q, NULL);
    CHECK(rc == SQLITE_OK, "%s", sqlite3_errmsg(db));
    rc = sqlite3_step(q);
    CHECK(rc == SQLITE_ROW, "%s", sqlite3_errmsg(db));
    int64_t v = sqlite3_column_int64(q, 0);
    (void)sqlite3_finalize(q);
    return v;
}

static void a_heartbeat_writes_nothing(void **state)
{
    char path[100];
    sqlite3 *db = NULL;
    REPLY r = {0};
    (void)state;

    define_one("quiet", "\"undo\": \"none\", \"complete_by\": \"10m\"");
    char *token = begin("quiet", "quiet-1");
    task_of(&node, &r, "quiet-1");
    int64_t complete_by = time_at(&r, "steps.0.complete_by");
    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL);
    CHECK(rc == SQLITE_OK, "%s", sqlite3_errmsg(db));
    int64_t changes = metric("intact_state_changes_total");
    int64_t commits = metric("intact_commit_duration_seconds_count");
    int64_t accepted = metric("intact_heartbeats_total{status=\"accepted\"}");
    int64_t version = data_version(db);
    for (int i = 0; i < 300; i++) {
        beat(&r, "quiet", "i-1", token, ", \"progress\": 7, \"message\": \"on\"");
        EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    }
    assert_int_equal(metric("intact_heartbeats_total{status=\"accepted\"}"), accepted + 300);
    assert_int_equal(metric("intact_state_changes_total"), changes);
    assert_int_equal(metric("intact_commit_duration_seconds_count"), commits);
    assert_int_equal(data_version(db), version);
    task_of(&node, &r, "quiet-1");
    assert_int_equal(time_at(&r, "steps.0.complete_by"), complete_by);
    /* Which would be seen: */
    hand_in(&node, "quiet", "i-1", token, "\"output\": 1", "accepted");
    assert_true(data_version(db) != version);
    assert_true(metric("intact_commit_duration_seconds_count") > commits);
    (void)sqlite3_close(db);
    free(token);
}

static void no_heartbeat_holds_off_the_complete_by(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};
    (void)state;

    define_one("timed", "\"undo\": \"none\", \"complete_by\": \"500ms\"");
    char *token = begin("timed", "timed-1");
    do {
        beat(&r, "timed", "i-1", token, "");
        CHECK(steady_ms() < until, "heartbeats hold it off: %.*s", SLICE_ARG(r.body));
    } while (strcmp(text_at(&r, "outcomes.0.status"), "late") != 0);
    task_of(&node, &r, "timed-1");
    assert_non_null(memmem(r.body.ptr, r.body.len, "\"timed_out\"", 11));
    free(token);
}

static void a_heartbeat_learns_what_to_stop(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("stopped", "\"undo\": {\"action\": \"back\"}");
    char *token = begin("stopped", "stopped-1");
    post(&node, &r, "/v1/tasks/stopped-1/undo", "{\"reason\": \"enough\"}");
    EXPECT(&r, 200);
    beat(&r, "stopped", "i-1", token, "");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "stop.0", token);
    beat(&r, "stopped", "i-2", token, "");
    EXPECT_RAW(&r, "stop", "[]");
    free(token);
}

static void after_a_crash_the_next_one_tells(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};
    (void)state;

    define_one("crash", "\"undo\": \"none\", \"complete_by\": \"10m\"");
    char *token = begin("crash", "crash-1");
    beat(&r, "crash", "i-1", token, ", \"progress\": 1");
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    node_kill(&node);
    node_start(&node, SERVER);
    task_of(&node, &r, "crash-1");
    EXPECT_RAW(&r, "steps.0.attempts.0.heartbeat_at", "null");
    do { /* unknown at first: it is not in work yet. Never late: it is open. */
        beat(&r, "crash", "i-1", token, ", \"progress\": 2");
        CHECK(strcmp(text_at(&r, "outcomes.0.status"), "late") != 0, "%.*s", SLICE_ARG(r.body));
        CHECK(steady_ms() < until, "%.*s", SLICE_ARG(r.body));
    } while (strcmp(text_at(&r, "outcomes.0.status"), "accepted") != 0);
    task_of(&node, &r, "crash-1");
    EXPECT_INT(&r, "steps.0.attempts.0.progress", 2);
    free(token);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_attempt_says_is_shown_while_it_is_open),
        cmocka_unit_test(only_the_instance_at_work_is_heard),
        cmocka_unit_test(one_bad_beat_fails_only_itself),
        cmocka_unit_test(a_bad_call_is_refused_as_a_whole),
        cmocka_unit_test(a_heartbeat_writes_nothing),
        cmocka_unit_test(no_heartbeat_holds_off_the_complete_by),
        cmocka_unit_test(a_heartbeat_learns_what_to_stop),
        cmocka_unit_test(after_a_crash_the_next_one_tells),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
