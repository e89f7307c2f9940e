/* Signals, with a real server that is killed around them: what was acknowledged is there, and
 * counts once. */

#include <stdlib.h>

#include "base/when.h"
#include "kit.h"

static struct node node;

enum { SENDERS = 64 };

static const char order[] =
    "\"on_signal\": {\"cancelled\": \"undo\"}, \"steps\": ["
    "{\"name\": \"reserve\", \"agent\": \"ag\", \"action\": \"reserve\","
    " \"undo\": {\"action\": \"release\"}},"
    "{\"name\": \"paid\", \"signal\": {\"name\": [\"payment\", \"refusal\"],"
    " \"match\": \".data.amount >= .input.total\"}},"
    "{\"name\": \"ship\", \"agent\": \"ag\", \"action\": \"ship\", \"undo\": \"none\"}]";
static const char plain[] = "\"steps\": [{\"name\": \"go\", \"signal\": {\"name\": \"go\"}}]";
static const char hurry[] =
    "\"steps\": [{\"name\": \"go\", \"signal\": {\"name\": \"go\"}, \"complete_by\": \"1s\","
    " \"on_failure\": \"hold\"}]";
static const char otherwise[] =
    "\"steps\": [{\"name\": \"go\", \"signal\": {\"name\": \"go\"}, \"complete_by\": \"1s\","
    " \"default\": {\"name\": \"nobody\"}}]";
static const char three[] = "\"steps\": [{\"name\": \"a\", \"signal\": {\"name\": \"go\"}},"
                            "{\"name\": \"b\", \"signal\": {\"name\": \"go\"}},"
                            "{\"name\": \"c\", \"signal\": {\"name\": \"stay\"}}]";

static void begin(void)
{
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
}

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    (void)define(&node, "order", order);
    (void)define(&node, "plain", plain);
    (void)define(&node, "hurry", hurry);
    (void)define(&node, "otherwise", otherwise);
    (void)define(&node, "three", three);
    return 0;
}

static void submit_with(const char *workflow, const char *id, const char *input)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": %s}", workflow,
         id, input);
    EXPECT(&r, 201);
}

static void type_of(struct buf *b, const char *key)
{
    buf_str(b, "application/json");
    if (key)
        buf_fmt(b, "\r\nIdempotency-Key: %s", key);
}

static void path_of(struct buf *b, const char *id, const char *name)
{
    buf_fmt(b, "/v1/tasks/%s/signals/%s", id, name);
}

/* `key` NULL: none. */
static void sends(struct reply *r, const char *id, const char *name, const char *key,
                  struct slice data)
{
    CLEANUP(buf_fini) struct buf path = {0};
    CLEANUP(buf_fini) struct buf type = {0};

    path_of(&path, id, name);
    type_of(&type, key);
    send_as(&node, r, "POST", path.ptr, type.ptr, data);
}

static void a_signal_outlives_its_server(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_with("order", "s-1", "{\"total\": 100}");
    sends(&r, "s-1", "payment", "p-1", SLICE("{\"amount\": 100}"));
    EXPECT(&r, 200);
    node_kill(&node); /* it was acknowledged */
    begin();
    get(&node, &r, "/v1/tasks/s-1/signals");
    EXPECT_TEXT(&r, "signals.0.id", "p-1");
    EXPECT_TEXT(&r, "signals.0.name", "payment");
    EXPECT_INT(&r, "signals.0.data.amount", 100);
    serve_step(&node, "ag", "i", "1");
    serve_step(&node, "ag", "i", "2");
    wait_for_state(&node, "s-1", "processed");
    task_of(&node, &r, "s-1");
    EXPECT_TEXT(&r, "steps.1.kind", "signal");
    EXPECT_TEXT(&r, "steps.1.output.name", "payment");
    EXPECT_INT(&r, "steps.1.output.data.amount", 100);
    get(&node, &r, "/v1/tasks/s-1/signals");
    CHECK(!at(&r, "signals.0"), "none is left: %.*s", SLICE_ARG(r.body));
    sends(&r, "s-1", "payment", "p-1", SLICE("{\"amount\": 100}"));
    EXPECT(&r, 200); /* after the end, too */
}

static void a_waiting_task_is_told(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_with("order", "s-2", "{\"total\": 100}");
    serve_step(&node, "ag", "i", "1");
    WAIT_FOR((task_of(&node, &r, "s-2"), strcmp(text_at(&r, "waiting_for"), "@signal") == 0),
             "it waits");
    get(&node, &r, "/v1/tasks/s-2/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "signal");
    EXPECT_TEXT(&r, "reasons.0.text", "Step paid waits for the signal payment or refusal.");
    CHECK(strstr(text_at(&r, "reasons.0.moves"), "intact signal s-2 payment --data"), "%.*s",
          SLICE_ARG(r.body));
    sends(&r, "s-2", "payment", NULL, SLICE("{\"amount\": 99}"));
    EXPECT(&r, 200);
    CHECK(strlen(text_at(&r, "id")) == 36, "it got a key: %.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/tasks/s-2/why");
    EXPECT_TEXT(&r, "reasons.0.text",
                "Step paid waits for the signal payment or refusal; 1 signal arrived that does "
                "not match.");
    sends(&r, "s-2", "payment", NULL, SLICE("{\"amount\": 101}"));
    EXPECT(&r, 200);
    serve_step(&node, "ag", "i", "2");
    wait_for_state(&node, "s-2", "processed");
}

static void what_is_wrong_is_refused(void **state)
{
    CLEANUP(buf_fini) struct buf large = {0};
    REPLY r = {0};
    (void)state;

    submit_with("plain", "s-3", "{}");
    sends(&r, "s-3", "gone", NULL, SLICE("1"));
    expect_problem(&r, 422, "no-such-signal");
    sends(&r, "nobody", "go", NULL, SLICE("1"));
    expect_problem(&r, 404, "no-such-task");
    sends(&r, "s-3", "go", NULL, SLICE("{"));
    expect_problem(&r, 400, "not-json");
    sends(&r, "s-3", "go", "a b", SLICE("1"));
    expect_problem(&r, 422, "bad-key");
    buf_byte(&large, '"');
    for (int i = 0; i < 1000000; i++)
        buf_byte(&large, 'x');
    buf_byte(&large, '"');
    sends(&r, "s-3", "go", NULL, buf_view(&large));
    expect_problem(&r, 413, "too-big");
    large.ptr[65535] = '"'; /* the most */
    sends(&r, "s-3", "go", "k", (struct slice){large.ptr, 65536});
    EXPECT(&r, 200);
    wait_for_state(&node, "s-3", "processed");
    sends(&r, "s-3", "go", "k", SLICE("1"));
    expect_problem(&r, 409, "conflict");
    sends(&r, "s-3", "go", "k2", SLICE("1"));
    expect_problem(&r, 409, "conflict");
    CHECK(strstr(text_at(&r, "detail"), "processed"), "the state: %.*s", SLICE_ARG(r.body));
}

static void so_many_are_kept(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_with("three", "s-4", "{}");
    for (int i = 0; i < 20; i++) {
        sends(&r, "s-4", "stay", NULL, SLICE(""));
        EXPECT(&r, 200);
    }
    sends(&r, "s-4", "stay", "k", SLICE(""));
    expect_problem(&r, 429, "too-many-signals");
    post(&node, &r, "/v1/tasks/s-4/signals/stay/drop", "{\"id\": 5, \"reason\": \"a test\"}");
    expect_problem(&r, 422, "bad-id");
    post(&node, &r, "/v1/tasks/s-4/signals/stay/drop", "{\"id\": null, \"reason\": \"a test\"}");
    expect_problem(&r, 422, "bad-id");
    post(&node, &r, "/v1/tasks/s-4/signals/stay/drop", "{\"id\": \"\", \"reason\": \"a test\"}");
    expect_problem(&r, 422, "bad-id");
    post(&node, &r, "/v1/tasks/s-4/signals/stay/drop", "{\"reason\": \"%05000d\"}", 0);
    expect_problem(&r, 422, "bad-reason");
    post(&node, &r, "/v1/tasks/s-4/signals/stay/drop", "{\"id\": \"k-9\"}");
    expect_problem(&r, 422, "no-reason");
    post(&node, &r, "/v1/tasks/s-4/signals/stay/drop", "{\"reason\": \"a test\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks/s-4/signals/stay/drop", "{\"reason\": \"a test\"}");
    expect_problem(&r, 409, "conflict");
    sends(&r, "s-4", "stay", "k", SLICE(""));
    EXPECT(&r, 200);
    get(&node, &r, "/v1/audit?task=s-4");
    EXPECT_TEXT(&r, "entries.0.verb", "signal");
    EXPECT_TEXT(&r, "entries.0.detail.id", "k");
    EXPECT_TEXT(&r, "entries.1.verb", "signal.drop");
}

/* All at once: each counts once, and the steps take the first ones in order of arrival. */
static void many_senders_at_once(void **state)
{
    CLEANUP(buf_fini) struct buf path = {0};
    int fds[SENDERS];
    int taken = 0;
    (void)state;

    submit_with("three", "s-5", "{}");
    path_of(&path, "s-5", "go");
    for (int i = 0; i < SENDERS; i++) {
        CLEANUP(buf_fini) struct buf type = {0};
        char key[16];
        (void)snprintf(key, sizeof key, "k-%d", i % 4); /* each is sent by many */
        type_of(&type, key);
        fds[i] = ask(&node, "POST", path.ptr, type.ptr, SLICE("7"));
    }
    for (int i = 0; i < SENDERS; i++) {
        REPLY r = {0};
        hear(fds[i], &r);
        CHECK(r.status == 200 || r.status == 422, "%d: %.*s", r.status, SLICE_ARG(r.body));
        taken += r.status == 200;
    }
    CHECK(taken >= 2, "both steps have taken one");
    REPLY r = {0};
    task_of(&node, &r, "s-5");
    EXPECT_TEXT(&r, "steps.0.state", "completed");
    EXPECT_TEXT(&r, "steps.1.state", "completed");
    EXPECT_TEXT(&r, "steps.2.state", "waiting");
    CHECK(sql_int(&node, "SELECT count(*) FROM task_signal WHERE task = 's-5' AND state = 'taken'")
              == 2,
          "one each");
    CHECK(sql_int(&node, "SELECT count(*) - count(DISTINCT key) FROM task_signal WHERE task = "
                         "'s-5'")
              == 0,
          "a key is there once");
}

static void a_paused_task_keeps_signals(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_with("plain", "s-6", "{}");
    post(&node, &r, "/v1/tasks/s-6/pause", "{\"reason\": \"a test\"}");
    EXPECT(&r, 200);
    sends(&r, "s-6", "go", NULL, SLICE("1"));
    EXPECT(&r, 200);
    node_kill(&node);
    begin();
    task_of(&node, &r, "s-6");
    EXPECT_TEXT(&r, "steps.0.state", "waiting");
    post(&node, &r, "/v1/tasks/s-6/resume", "{\"reason\": \"a test\"}");
    EXPECT(&r, 200);
    wait_for_state(&node, "s-6", "processed");
}

static void a_time_passes(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_with("hurry", "s-7", "{}");
    submit_with("otherwise", "s-8", "{}");
    wait_for_state(&node, "s-7", "error");
    wait_for_state(&node, "s-8", "processed");
    task_of(&node, &r, "s-8");
    EXPECT_TEXT(&r, "steps.0.output.name", "nobody");
    task_of(&node, &r, "s-7");
    EXPECT_TEXT(&r, "error.code", "no_signal");
    sends(&r, "s-7", "go", NULL, SLICE("1")); /* it is kept in error */
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks/s-7/retry", "{\"reason\": \"it came\"}");
    EXPECT(&r, 200);
    wait_for_state(&node, "s-7", "processed");
}

static void a_signal_has_the_task_undone(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_with("order", "s-9", "{\"total\": 1}");
    serve_step(&node, "ag", "i", "1");
    sends(&r, "s-9", "cancelled", "c", SLICE("{\"by\": \"me\"}"));
    EXPECT(&r, 200);
    sends(&r, "s-9", "payment", NULL, SLICE("{\"amount\": 1}"));
    expect_problem(&r, 409, "conflict");
    serve_step(&node, "ag", "i", "null");
    wait_for_state(&node, "s-9", "compensated");
    task_of(&node, &r, "s-9");
    EXPECT_TEXT(&r, "error.code", "signal");
    EXPECT_TEXT(&r, "error.message", "cancelled");
}

/* Killed at any moment: sent until it is acknowledged, it counts once. */
static void a_server_is_killed_around_signals(void **state)
{
    (void)state;

    for (int i = 0; i < 6; i++) {
        CLEANUP(buf_fini) struct buf path = {0};
        char id[24];
        REPLY r = {0};
        (void)snprintf(id, sizeof id, "kill-%d", i);
        submit_with("three", id, "{}");
        path_of(&path, id, "go");
        int fd = ask(&node, "POST", path.ptr, "application/json\r\nIdempotency-Key: k", SLICE("1"));
        sleep_ms(i);
        node_kill(&node);
        hear(fd, &r);
        begin();
        sends(&r, id, "go", "k", SLICE("1"));
        EXPECT(&r, 200);
        task_of(&node, &r, id);
        EXPECT_TEXT(&r, "steps.0.state", "completed");
        EXPECT_TEXT(&r, "steps.1.state", "waiting");
    }
}

static void a_definition_is_checked(void **state)
{
    REPLY r = {0};
    (void)state;

    put(&node, &r, "/v1/workflows/bad",
        "{\"intact\": 1, \"workflow\": \"bad\", \"steps\": [{\"name\": \"a\", \"signal\": "
        "{\"name\":"
        " \"x\"}, \"agent\": \"x\"}]}");
    EXPECT(&r, 422);
    CHECK(memmem(r.body.ptr, r.body.len, "a step with signal has", 22), "%.*s", SLICE_ARG(r.body));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_outlives_its_server),
        cmocka_unit_test(a_waiting_task_is_told),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(so_many_are_kept),
        cmocka_unit_test(many_senders_at_once),
        cmocka_unit_test(a_paused_task_keeps_signals),
        cmocka_unit_test(a_time_passes),
        cmocka_unit_test(a_signal_has_the_task_undone),
        cmocka_unit_test(a_server_is_killed_around_signals),
        cmocka_unit_test(a_definition_is_checked),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
