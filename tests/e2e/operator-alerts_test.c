/*
 * Alerts reach operators: once, however many tasks fail; after a restart only new ones; until they
 * are acknowledged; and when they are resolved. Sinks are real commands.
 */

#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

static struct node node;
static struct node nodes[2];

#define STEPS                                                                            \
    "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"charge\", \"agent\": \"bank\", " \
    "\"action\": \"x\", \"undo\": \"none\"}]"

/* ---- sinks ---- */

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0, "%s", path);
}

/* A configuration of that file, whose commands write into the home of `n`: lines of JSON. */
static void configure(const struct node *n, const char *file, const char *more)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text,
            "intact_server: 1\n"
            "alerts:\n"
            "  group_wait: 1s\n"
            "  resolve_after: 1s\n"
            "  for: {breaker_open: 1s, overdue_no_agent: 1s}\n"
            "  sinks:\n"
            "    - command: [/bin/sh, -c, 'cat >> \"$0\"; echo >> \"$0\"', %s/told]\n%s",
            n->home, more);
    write_text(file, text.ptr);
}

/* All that was told so far. */
static void read_told(const struct node *n, struct buf *ret)
{
    char path[100];
    char chunk[4096];
    size_t got;

    (void)snprintf(path, sizeof path, "%s/told", n->home);
    FILE *f = fopen(path, "r");
    while (f && (got = fread(chunk, 1, sizeof chunk, f)) > 0)
        buf_add(ret, chunk, got);
    if (f)
        (void)fclose(f);
}

static size_t count_in(const struct buf *text, const char *what)
{
    size_t count = 0;

    for (const char *at = text->ptr; at && (at = strstr(at, what)); at += strlen(what))
        count++;
    return count;
}

/* How often that stands in what was told. */
static size_t told(const struct node *n, const char *what)
{
    CLEANUP(buf_fini) struct buf text = {0};

    read_told(n, &text);
    return count_in(&text, what);
}

static void wait_told(const struct node *n, const char *what, size_t times)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (told(n, what) < times) {
        CHECK(steady_ms() < until, "%s is not told %zu times", what, times);
        sleep_ms(50);
    }
}

/* That it was told is on record. */
static void wait_recorded(const struct node *n, const char *id)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char query[120];

    (void)snprintf(query, sizeof query,
                   "SELECT count(*) FROM alert WHERE id = '%s' AND doc LIKE '%%command /bin/sh%%'",
                   id);
    while (sql_int(n, query) < 1) {
        CHECK(steady_ms() < until, "it is not on record");
        sleep_ms(50);
    }
}

/* ---- tasks ---- */

static void fail_all(const struct node *n, int count, const char *code)
{
    for (int done = 0; done < count; done++) {
        CLEANUP(buf_fini) struct buf result = {0};
        REPLY r = {0};
        fetch(n, &r, "bank", "b-1");
        char *token = token_in(&r, 0);
        buf_fmt(&result,
                "\"error\": {\"code\": \"%s\", \"message\": \"no money\", \"retryable\": false, "
                "\"effect\": \"none\"}",
                code);
        hand_in(n, "bank", "b-1", token, result.ptr, "accepted");
        free(token);
    }
}

static void submit_many(const struct node *n, const char *prefix, int count)
{
    for (int i = 0; i < count; i++) {
        char id[40];
        (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
        submit(n, "order", id);
    }
}

static void retry(const struct node *n, const char *id)
{
    char path[100];
    REPLY r = {0};

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/retry", id);
    post(n, &r, path, "{\"reason\": \"mended\"}");
    EXPECT(&r, 200);
}

/* The alert's id, once it counts so many. */
static void wait_counted(const struct node *n, int count, char id[40])
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        REPLY r = {0};
        get(n, &r, "/v1/alerts?state=open");
        EXPECT(&r, 200);
        if (int_at(&r, "alerts.0.count") >= count) {
            EXPECT_INT(&r, "alerts.0.count", count);
            (void)snprintf(id, 40, "%s", text_at(&r, "alerts.0.id"));
            return;
        }
        CHECK(steady_ms() < until, "not counted: %.*s", SLICE_ARG(r.body));
        sleep_ms(100);
    }
}

static int begin_with(void **state, const char *more)
{
    char file[100];

    node_init(&node);
    (void)snprintf(file, sizeof file, "%s/config.yaml", node.home);
    configure(&node, file, more);
    node_start(&node, FLAGS("--config", file, "--drain", "1s"));
    (void)define(&node, "order", STEPS);
    *state = &node;
    return 0;
}

static int begin(void **state)
{
    return begin_with(state, "");
}

static void restart(void)
{
    char file[100];

    (void)snprintf(file, sizeof file, "%s/config.yaml", node.home);
    node_start(&node, FLAGS("--config", file, "--drain", "1s"));
}

static void many_failures_are_one_alert(void **state)
{
    enum { TASKS = 300 };
    REPLY r = {0};
    (void)state;

    submit_many(&node, "t", TASKS);
    fail_all(&node, TASKS, "declined");
    wait_told(&node, "\"notice\":\"opened\"", 1);
    submit_many(&node, "u", 1);
    fail_all(&node, 1, "declined");
    get(&node, &r, "/v1/alerts");
    EXPECT_TEXT(&r, "alerts.0.condition", "task_error");
    EXPECT_TEXT(&r, "alerts.0.labels.workflow", "order");
    EXPECT_TEXT(&r, "alerts.0.labels.step", "charge");
    EXPECT_TEXT(&r, "alerts.0.labels.code", "declined");
    EXPECT_TEXT(&r, "alerts.0.story", "no money");
    EXPECT_TEXT(&r, "sinks.0.sink", "log");
    CHECK(at(&r, "alerts.0.examples.4") && !at(&r, "alerts.0.examples.5"), "five examples");
    CHECK(!at(&r, "alerts.1"), "one alert: %.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/stats");
    EXPECT_INT(&r, "alerts_open", 1);
    get(&node, &r, "/metrics");
    static const char metric[] = "intact_alerts_open{condition=\"task_error\"} 1\n";
    CHECK(memmem(r.body.ptr, r.body.len, metric, sizeof metric - 1), "metrics");
    CHECK(told(&node, "\"alerts\":") == 1, "one delivery");
    CHECK(node_log_has(&node, "event=alert notice=opened"), "the log has it");
}

static void it_is_resolved_when_it_is_over(void **state)
{
    (void)state;
    submit_many(&node, "t", 2);
    fail_all(&node, 2, "declined");
    wait_told(&node, "\"notice\":\"opened\"", 1);
    retry(&node, "t-0");
    serve_step(&node, "bank", "b-1", "1");
    REPLY r = {0};
    post(&node, &r, "/v1/tasks/t-1/close", "{\"reason\": \"it was a test\"}");
    EXPECT(&r, 200);
    wait_told(&node, "\"notice\":\"resolved\"", 1);
    get(&node, &r, "/v1/alerts?state=resolved");
    EXPECT_TEXT(&r, "alerts.0.state", "resolved");
    CHECK(time_at(&r, "alerts.0.resolved_at") > 0, "when");
    REPLY late = {0};
    char path[100];
    (void)snprintf(path, sizeof path, "/v1/alerts/%s/acknowledge", text_at(&r, "alerts.0.id"));
    post(&node, &late, path, "{\"reason\": \"too late\"}");
    expect_problem(&late, 409, "alert-resolved");
    get(&node, &r, "/v1/alerts?state=open");
    CHECK(!at(&r, "alerts.0"), "none is open");
}

static void a_restart_repeats_nothing(void **state)
{
    char id[40];
    char again[40];
    (void)state;

    submit_many(&node, "t", 3);
    fail_all(&node, 3, "declined");
    wait_counted(&node, 3, id);
    wait_told(&node, "\"notice\":\"opened\"", 1);
    wait_recorded(&node, id);
    node_kill(&node);
    restart();
    submit_many(&node, "v", 1);
    fail_all(&node, 1, "other");
    wait_told(&node, "\"notice\":\"opened\"", 2);
    CHECK(told(&node, id) == 1, "it was told once");
    REPLY r = {0};
    get(&node, &r, "/v1/alerts");
    (void)snprintf(again, sizeof again, "%s", text_at(&r, "alerts.1.id"));
    CHECK(strcmp(again, id) == 0, "it is the same one");
}

/* It died right after the commit: nobody was told by it. */
static void what_stopped_before_a_crash_is_told_after_it(void **state)
{
    (void)state;
    submit_many(&node, "t", 1);
    fail_all(&node, 1, "declined");
    node_kill(&node);
    restart();
    wait_told(&node, "\"notice\":\"opened\"", 1);
    CHECK(told(&node, "\"t-0\"") >= 1, "with the task");
}

static void who_knows_says_so(void **state)
{
    char id[40];
    char path[100];
    REPLY r = {0};
    (void)state;

    submit_many(&node, "t", 1);
    fail_all(&node, 1, "declined");
    wait_counted(&node, 1, id);
    submit_many(&node, "well", 1);
    get(&node, &r, "/v1/tasks/t-0/why");
    EXPECT_TEXT(&r, "alerts.0.id", id);
    EXPECT_TEXT(&r, "alerts.0.condition", "task_error");
    CHECK(!at(&r, "alerts.1"), "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/tasks/well-0/why");
    EXPECT_RAW(&r, "alerts", "[]");
    (void)snprintf(path, sizeof path, "/v1/alerts/%s/acknowledge", id);
    post(&node, &r, path, "{}");
    expect_problem(&r, 422, "no-reason");
    post(&node, &r, path, "{\"reason\": \"%01100d\"}", 1);
    expect_problem(&r, 422, "bad-reason");
    post(&node, &r, path, "{\"reason\": \"x\", \"odd\": 1}");
    expect_problem(&r, 422, "unknown-member");
    post(&node, &r, path, "[]");
    expect_problem(&r, 422, "not-an-object");
    post(&node, &r, path, "{\"reason\": \"they know\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "acknowledged");
    post(&node, &r, path, "{\"reason\": \"once more\"}");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/alerts?state=acknowledged&limit=1");
    EXPECT_TEXT(&r, "alerts.0.acknowledged_by", "admin");
    EXPECT_TEXT(&r, "alerts.0.acknowledged_why", "they know");
    get(&node, &r, "/v1/tasks/t-0/why");
    EXPECT_TEXT(&r, "alerts.0.state", "acknowledged");
    get(&node, &r, "/v1/audit");
    EXPECT_TEXT(&r, "entries.0.verb", "alert.acknowledge");
    EXPECT_TEXT(&r, "entries.0.reason", "they know");
    post(&node, &r, "/v1/alerts/a-0/acknowledge", "{\"reason\": \"x\"}");
    expect_problem(&r, 404, "no-alert");
    get(&node, &r, "/v1/alerts?state=odd");
    expect_problem(&r, 422, "bad-state");
    get(&node, &r, "/v1/alerts?limit=0");
    expect_problem(&r, 422, "bad-limit");
    get(&node, &r, "/v1/alerts?cursor=x");
    expect_problem(&r, 422, "bad-cursor");
}

static void an_open_breaker_and_an_absent_agent_are_told(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/agents/bank/breaker", "{\"state\": \"open\", \"reason\": \"by hand\"}");
    EXPECT(&r, 200);
    submit_many(&node, "t", 1);
    wait_told(&node, "\"condition\":\"breaker_open\"", 1);
    get(&node, &r, "/v1/tasks/t-0/why");
    EXPECT_TEXT(&r, "alerts.0.condition", "breaker_open");
    EXPECT_TEXT(&r, "alerts.0.labels.agent", "bank");
    post(&node, &r, "/v1/agents/bank/breaker", "{\"state\": \"closed\", \"reason\": \"by hand\"}");
    EXPECT(&r, 200);
    wait_told(&node, "\"notice\":\"resolved\"", 1);
    wait_told(&node, "\"condition\":\"overdue_no_agent\"", 1);
}

/* ---- what the store is found to have ---- */

static void write_sql(const struct node *n, const char *query)
{
    char path[120];
    sqlite3 *db = NULL;
    char *story = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", n->data);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, "%s", path);
    (void)sqlite3_busy_timeout(db, PATIENCE_MS);
    CHECK(sqlite3_exec(db, query, NULL, NULL, &story) == SQLITE_OK, "%s: %s", query, story);
    (void)sqlite3_close(db);
}

static void dead_messages_are_told(void **state)
{
    REPLY r = {0};
    (void)state;

    write_sql(&node, "INSERT INTO outbox_aside (seq, task, name, target, body, created_at, state, "
                     "tries, since, story) VALUES (1, 't', '1/error', 'https://gone.example/x', "
                     "'{}', 1, 'dead', 3, 1, 'it is \"gone\"')");
    wait_told(&node, "\"condition\":\"outbox_trouble\"", 1);
    get(&node, &r, "/v1/alerts?state=open");
    EXPECT_TEXT(&r, "alerts.0.labels.target", "https://gone.example/x");
    EXPECT_TEXT(&r, "alerts.0.story", "it is \"gone\"");
    EXPECT_INT(&r, "alerts.0.count", 1);
    post(&node, &r, "/v1/outbox/drop", "{\"all\": true, \"reason\": \"nobody is there\"}");
    EXPECT(&r, 200);
    wait_told(&node, "\"notice\":\"resolved\"", 1);
}

static void refused_submissions_are_told(void **state)
{
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 3; i++) {
        post(&node, &r, "/v1/submissions/refused",
             "{\"source\": \"amqp:orders\", \"reason\": \"no JSON \\u001b[31m\", \"id\": \"r-%d\", "
             "\"message\": \"?\"}",
             i);
        CHECK(r.status < 300, "%d %.*s", r.status, SLICE_ARG(r.body));
    }
    wait_told(&node, "\"condition\":\"submission_refused\"", 1);
    int64_t until = steady_ms() + PATIENCE_MS;
    do {
        get(&node, &r, "/v1/alerts?state=open");
        CHECK(steady_ms() < until, "not counted: %.*s", SLICE_ARG(r.body));
    } while (int_at(&r, "alerts.0.count") < 3);
    EXPECT_TEXT(&r, "alerts.0.labels.source", "amqp:orders");
    CHECK(memcmp(text_at(&r, "alerts.0.examples.0"), "r-", 2) == 0, "which");
    post(&node, &r, "/v1/submissions/drop", "{\"all\": true, \"reason\": \"known\"}");
    EXPECT(&r, 200);
    wait_told(&node, "\"notice\":\"resolved\"", 1);
}

static void an_operation_that_failed_is_told(void **state)
{
    REPLY r = {0};
    (void)state;

    write_sql(&node,
              "INSERT INTO operation (seq, id, revision, open, state, verb, actor, reason, "
              "started_at, ended_at, doc) SELECT 1, 'o-1', 2, 0, 'done', 'retry', 'ann', 'x', "
              "t.ms, t.ms, '{\"filter\":{\"all\":true},\"arguments\":{},\"page\":[],\"matched\":3,"
              "\"failed\":2}' FROM (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000 AS ms) "
              "AS t");
    wait_told(&node, "\"condition\":\"operation_failed\"", 1);
    get(&node, &r, "/v1/alerts?state=open");
    EXPECT_TEXT(&r, "alerts.0.labels.operation", "o-1");
    EXPECT_INT(&r, "alerts.0.count", 2);
}

/* ---- sinks that misbehave ---- */

#define BAD_SINKS                                                 \
    "    - command: [/bin/sh, -c, 'sleep 1000 & sleep 1000']\n"   \
    "      timeout: 1s\n"                                         \
    "    - command: [/bin/sh, -c, 'echo no money >&2; exit 3']\n" \
    "    - command: [/nowhere/at-all]\n"                          \
    "    - alertmanager: http://127.0.0.1:9\n"                    \
    "    - command: [/bin/true]\n"                                \
    "      conditions: [store_trouble]\n"

static int begin_badly(void **state)
{
    return begin_with(state, BAD_SINKS);
}

static void sinks_that_fail_or_hang_hold_up_nobody(void **state)
{
    REPLY r = {0};
    (void)state;

    send_as(&node, &r, "POST", "/v1/alerts/test", NULL, SLICE_NONE);
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "sinks.0.took", "true"); /* the log */
    EXPECT_RAW(&r, "sinks.1.took", "true");
    EXPECT_TEXT(&r, "sinks.2.trouble", "it did not end in time and was killed");
    EXPECT_TEXT(&r, "sinks.3.trouble", "it ended with status 3: no money ");
    EXPECT_TEXT(&r, "sinks.4.trouble", "cannot run /nowhere/at-all: No such file or directory");
    EXPECT_RAW(&r, "sinks.5.took", "false");
    EXPECT_RAW(&r, "sinks.6.took", "true");
    submit_many(&node, "t", 1);
    fail_all(&node, 1, "declined");
    wait_told(&node, "\"condition\":\"task_error\"", 1);
    CHECK(told(&node, "\"condition\":\"task_error\"") == 1, "once");
    int64_t until = steady_ms() + PATIENCE_MS;
    for (;;) {
        get(&node, &r, "/v1/alerts");
        if (int_at(&r, "sinks.3.failed") >= 3)
            break;
        CHECK(steady_ms() < until, "it is not tried again: %.*s", SLICE_ARG(r.body));
        sleep_ms(100);
    }
    EXPECT_INT(&r, "sinks.6.delivered", 0);
    CHECK(node_log_has(&node, "event=alert_not_delivered"), "the log says so");
    node_stop(&node); /* while some are at work */
}

static void a_wrong_configuration_is_explained(void **state)
{
    char file[100];
    CLEANUP(buf_fini) struct buf said = {0};
    static const char *const wrong[][2] = {
        {"  sinks: [{webhook: 'https://example.org/x'}]\n", "must be listed in webhooks, too"},
        {"  sinks: [{webhook: nowhere}]\n", "a URL such as"},
        {"  sinks: [{command: [ls]}]\n", "the absolute path of a program"},
        {"  sinks: [{conditions: [task_error]}]\n", "one of webhook, alertmanager and command"},
        {"  sinks: [{command: [/bin/true], conditions: [odd]}]\n", "a condition"},
        {"  for: {odd: 1m}\n", "a condition"},
        {"  repeat: often\n", "a duration"},
    };
    (void)state;

    node_init(&node);
    (void)snprintf(file, sizeof file, "%s/config.yaml", node.home);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CLEANUP(buf_fini) struct buf text = {0};
        buf_fmt(&text, "intact_server: 1\nalerts:\n%s", wrong[i][0]);
        write_text(file, text.ptr);
        buf_clear(&said);
        int status =
            serve_briefly(FLAGS("--config", file, "--data", node.data, "--listen", "127.0.0.1:0"),
                          &said);
        CHECK(status != 0 && strstr(said.ptr, wrong[i][1]), "%s: %d %s", wrong[i][0], status,
              said.ptr);
    }
    node_fini(&node);
}

/* ---- two nodes ---- */

static void another_leader_repeats_nothing(void **state)
{
    char file[100];
    char id[40];
    (void)state;

    nodes_init(nodes, 2);
    (void)snprintf(file, sizeof file, "%s/config.yaml", nodes[0].home);
    configure(&nodes[0], file, ""); /* both tell into the same file */
    nodes_start(nodes, 2, FLAGS("--config", file, "--drain", "1s"));
    (void)define(&nodes[0], "order", STEPS);
    submit_many(&nodes[0], "t", 1);
    fail_all(&nodes[0], 1, "declined");
    wait_told(&nodes[0], "\"notice\":\"opened\"", 1);
    wait_counted(&nodes[1], 1, id);
    wait_recorded(&nodes[0], id);
    REPLY r = {0};
    get(&nodes[0], &r, "/v1/nodes");
    int leader = raw_is(&r, "nodes.0.leads", "true") ? 0 : 1;
    node_kill(&nodes[leader]);
    struct node *other = &nodes[1 - leader];
    submit_many(other, "u", 1);
    fail_all(other, 1, "other");
    wait_told(&nodes[0], "\"code\":\"other\"", 1);
    CHECK(told(&nodes[0], id) == 1, "it was told once");
    char path[100];
    (void)snprintf(path, sizeof path, "/v1/alerts/%s/acknowledge", id);
    post(other, &r, path, "{\"reason\": \"known\"}");
    EXPECT(&r, 200);
    node_stop(other);
    node_fini(&nodes[0]);
    node_fini(&nodes[1]);
}

/* He calls the one that does not lead, and is slow: he has a task in hand, and another one waits.
 * One whom nobody has ever seen is told of, by the same look. */
static void an_agent_of_another_node_is_not_absent(void **state)
{
    char file[100];
    REPLY r = {0};
    (void)state;

    nodes_init(nodes, 2);
    (void)snprintf(file, sizeof file, "%s/config.yaml", nodes[0].home);
    configure(&nodes[0], file, "");
    nodes_start(nodes, 2, FLAGS("--config", file, "--drain", "1s"));
    (void)define(&nodes[0], "order",
                 "\"steps\": [{\"name\": \"charge\", \"agent\": \"bank\", \"action\": \"x\", "
                 "\"undo\": \"none\", \"complete_by\": \"1h\"}]");
    (void)define(&nodes[0], "lost",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"nobody\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    get(&nodes[0], &r, "/v1/nodes");
    struct node *other = &nodes[raw_is(&r, "nodes.0.leads", "true") ? 1 : 0];
    submit(other, "order", "at-work");
    fetch(other, &r, "bank", "b-1");
    submit(other, "order", "waits");
    submit(other, "lost", "lost");
    wait_told(&nodes[0], "\"agent\":\"nobody\"", 1);
    CHECK(told(&nodes[0], "\"agent\":\"bank\"") == 0, "he is slow, and not absent");
    for (int i = 0; i < 2; i++) {
        node_stop(&nodes[i]);
        node_fini(&nodes[i]);
    }
}

#define ON(f) cmocka_unit_test_setup_teardown(f, begin, node_end)

/* Each in a process of its own, all at once: they wait. Returns how many failed. */
static int side_by_side(const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;

    for (size_t i = 0; i < count; i++) {
        const struct CMUnitTest one[] = {tests[i]};
        (void)fflush(NULL);
        pid_t pid = fork();
        CHECK(pid >= 0, "fork");
        if (pid == 0)
            exit(cmocka_run_group_tests_name(tests[i].name, one, NULL, NULL));
    }
    for (size_t i = 0; i < count; i++) {
        int status = 0;
        CHECK(wait(&status) > 0, "wait");
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return failed;
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    /* These wait for the next look at the store, which is seldom; the others do not. */
    const struct CMUnitTest looks[] = {
        ON(an_open_breaker_and_an_absent_agent_are_told),
        ON(dead_messages_are_told),
        ON(refused_submissions_are_told),
        ON(an_operation_that_failed_is_told),
    };
    const struct CMUnitTest rest[] = {
        ON(many_failures_are_one_alert),
        ON(it_is_resolved_when_it_is_over),
        ON(a_restart_repeats_nothing),
        ON(what_stopped_before_a_crash_is_told_after_it),
        ON(who_knows_says_so),
        cmocka_unit_test_setup_teardown(sinks_that_fail_or_hang_hold_up_nobody, begin_badly,
                                        node_end),
        cmocka_unit_test(a_wrong_configuration_is_explained),
        cmocka_unit_test(another_leader_repeats_nothing),
        cmocka_unit_test(an_agent_of_another_node_is_not_absent),
    };
    if (argc > 2 && strcmp(argv[2], "looks") == 0)
        return side_by_side(looks, COUNT_OF(looks));
    return cmocka_run_group_tests(rest, NULL, NULL);
}
