/* Tests of the supervisor with a real server: attempts without a result, deadlines, sleeping
 * tasks, priorities and restarts; and that plain SQL shows what the API shows. */

#include <stdlib.h>

#include "base/when.h"
#include "kit.h"

static struct node node;
static const char *const *flags =
    FLAGS("--scan-every", "100ms", "--grace", "200ms", "--drain", "200ms");

static int start(void **state)
{
    *state = node_open(&node, flags);
    return 0;
}

static void who_never_answers_is_given_up_retried_and_undone(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(
        &node, "silent",
        "\"steps\": [{\"name\": \"ok\", \"agent\": \"si\", \"action\": \"x\", \"undo\": "
        "{\"action\": \"unx\"}}, {\"name\": \"never\", \"agent\": \"si\", \"action\": \"y\", "
        "\"complete_by\": \"150ms\", \"retry\": {\"attempts\": 2, \"wait\": \"1ms\"}, "
        "\"undo\": {\"action\": \"uny\"}}]");
    submit(&node, "silent", "silent-1");
    serve_step(&node, "si", "a", "1");
    int64_t attempt[2] = {0};
    for (int i = 0; i < 2; i++) { /* what is late for the store is not sent, and no failure */
        fetch(&node, &r, "si", "a");
        EXPECT_TEXT(&r, "requests.0.step", "never");
        attempt[i] = int_at(&r, "requests.0.attempt");
    }
    assert_true(attempt[1] > attempt[0]);
    static const char *const undone[] = {"uny", "unx"};
    for (size_t i = 0; i < COUNT_OF(undone); i++) {
        fetch(&node, &r, "si", "a");
        EXPECT_TEXT(&r, "requests.0.action", undone[i]);
        char *token = token_in(&r, 0);
        hand_in(&node, "si", "a", token, "\"output\": null", "accepted");
        free(token);
    }
    task_of(&node, &r, "silent-1");
    EXPECT_TEXT(&r, "state", "compensated");
    EXPECT_INT(&r, "failure_count", 2);
    for (int i = 0; i < 2; i++) { /* given up after its complete-by, by one of the next scans */
        char path[60];
        int n = (int)attempt[i] - 1;
        (void)snprintf(path, sizeof path, "steps.1.attempts.%d.outcome", n);
        EXPECT_TEXT(&r, path, "timed_out");
        (void)snprintf(path, sizeof path, "steps.1.attempts.%d.ended_at", n);
        int64_t ended = time_at(&r, path);
        (void)snprintf(path, sizeof path, "steps.1.attempts.%d.complete_by", n);
        assert_true(ended >= time_at(&r, path));
    }
}

static void a_task_past_its_complete_by_is_undone(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(
        &node, "hurry",
        "\"complete_by\": \"300ms\", \"steps\": [{\"name\": \"a\", \"agent\": \"hu\", "
        "\"action\": \"x\", \"retry\": {\"attempts\": 1}, \"undo\": {\"action\": \"unx\"}}]");
    submit(&node, "hurry", "hurry-1"); /* nobody takes it */
    wait_for_state(&node, "hurry-1", "compensated");
    task_of(&node, &r, "hurry-1");
    assert_true(time_at(&r, "ended_at") >= time_at(&r, "complete_by"));
    assert_int_equal(time_at(&r, "complete_by"), time_at(&r, "submitted_at") + 300);
    assert_true(*text_at(&r, "error.code"));

    int count = 2;
    char id[20];
    do { /* somebody takes it, and is silent; on a slow machine nobody may come in time */
        (void)snprintf(id, sizeof id, "hurry-%d", count++);
        int call = ask(&node, "POST", "/v1/agents/hu/work", "application/json",
                       SLICE("{\"instance\": \"a\", \"max\": 1, \"wait\": \"300ms\"}"));
        submit(&node, "hurry", id);
        hear(call, &r);
        EXPECT(&r, 200);
        if (!at(&r, "requests.0"))
            wait_for_state(&node, id, "compensated");
    } while (!at(&r, "requests.0"));
    assert_true(int_at(&r, "requests.0.time_left_ms") <= 300); /* not the 30 s of a step */
    fetch(&node, &r, "hu", "a");
    EXPECT_TEXT(&r, "requests.0.direction", "undo");
    char *token = token_in(&r, 0);
    hand_in(&node, "hu", "a", token, "\"output\": null", "accepted");
    free(token);
    wait_for_state(&node, id, "compensated");
}

static void what_sleeps_wakes_at_its_time(void **state)
{
    CLEANUP(buf_fini) struct buf when = {0};
    REPLY r = {0};
    (void)state;

    (void)define(&node, "sleeps",
                 "\"complete_by\": \"10m\", \"steps\": [{\"name\": \"a\", "
                 "\"agent\": \"sl\", \"action\": \"x\", \"undo\": \"none\"}]");
    int64_t due = now_ms() + 1500;
    time_write(&when, due);
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"sleeps\", \"id\": \"sleeps-1\", \"not_before\": \"%s\"}", when.ptr);
    EXPECT(&r, 201);
    submit(&node, "sleeps", "sleeps-2"); /* awake; it goes first */
    task_of(&node, &r, "sleeps-1");
    if (now_ms() < due) { /* else it was asleep, but not for us */
        EXPECT_TEXT(&r, "state", "pending");
        EXPECT_TEXT(&r, "waiting_for", "time");
        assert_int_equal(time_at(&r, "complete_by"), due + 600000);
    }
    for (int i = 0; i < 2; i++) {
        fetch(&node, &r, "sl", "a");
        bool sleeper = strcmp(text_at(&r, "requests.0.task"), "sleeps-1") == 0;
        assert_true(!sleeper || time_at(&r, "now") >= due);
        CHECK(sleeper == (i == 1) || now_ms() >= due, "%.*s", SLICE_ARG(r.body));
    }
}

static void the_higher_priority_is_claimed_first(void **state)
{
    static const int priorities[] = {5, 0, 9, 3, 9, 7};
    static const int order[] = {2, 4, 5, 0, 3, 1};
    REPLY r = {0};
    (void)state;

    (void)define(&node, "first",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"fi\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    for (size_t i = 0; i < COUNT_OF(priorities); i++) {
        post(&node, &r, "/v1/tasks",
             "{\"workflow\": \"first\", \"id\": \"first-%zu\", \"priority\": %d}", i,
             priorities[i]);
        EXPECT(&r, 201);
        sleep_ms(2); /* so that age decides between equals */
    }
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        char id[20];
        fetch(&node, &r, "fi", "a");
        (void)snprintf(id, sizeof id, "first-%d", order[i]);
        EXPECT_TEXT(&r, "requests.0.task", id);
        char *token = token_in(&r, 0);
        hand_in(&node, "fi", "a", token, "\"output\": 1", "accepted");
        free(token);
    }
}

/* ---- restarts ---- */

static void results_are_taken_by_the_server_that_comes_after(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "again",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"re\", \"action\": "
                 "\"x\", \"undo\": \"none\"}, {\"name\": \"b\", \"agent\": \"re\", "
                 "\"action\": \"y\", \"undo\": \"none\"}]");
    submit(&node, "again", "again-1");
    submit(&node, "again", "again-2");
    fetch(&node, &r, "re", "i1");
    EXPECT_TEXT(&r, "requests.0.task", "again-1");
    char *kept = token_in(&r, 0);
    fetch(&node, &r, "re", "i1");
    EXPECT_TEXT(&r, "requests.0.task", "again-2");
    char *lost = token_in(&r, 0);
    node_kill(&node);
    node_start(&node, flags);

    /* the agent has the first and never saw the second: only that is sent again */
    do /* a call that came before the rows were read is answered, so that it comes again */
        post(&node, &r, "/v1/agents/re/work",
             "{\"instance\": \"i1\", \"max\": 1, \"wait\": \"10s\", \"holding\": [\"%s\"]}", kept);
    while (r.status == 200 && !at(&r, "requests.0"));
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "requests.0.token", lost);
    EXPECT_TEXT(&r, "requests.0.task", "again-2");
    EXPECT_INT(&r, "requests.0.attempt", 1);
    hand_in(&node, "re", "i1", kept, "\"output\": 1", "accepted");
    hand_in(&node, "re", "i1", kept, "\"output\": 1", "repeated");
    hand_in(&node, "re", "i1", lost, "\"output\": 1", "accepted");
    for (int i = 0; i < 2; i++)
        serve_step(&node, "re", "i1", "2");
    wait_for_state(&node, "again-1", "processed");
    wait_for_state(&node, "again-2", "processed");
    task_of(&node, &r, "again-2");
    EXPECT_INT(&r, "failure_count", 0);
    assert_int_equal(at(&r, "steps.0.attempts")->count, 1);
    get(&node, &r, "/v1/nodes");
    EXPECT_INT(&r, "nodes.0.boot", 2);
    free(kept);
    free(lost);
}

static void what_fell_due_while_it_was_down_has_a_grace_time(void **state)
{
    char *token = NULL;
    REPLY r = {0};
    (void)state;

    for (int ms = 200; !token; ms *= 2) { /* so long that the kill comes before it is due */
        char query[100];
        char id[20];
        CLEANUP(buf_fini) struct buf b = {0};
        buf_fmt(&b,
                "\"steps\": [{\"name\": \"a\", \"agent\": \"gr\", \"action\": \"x\", "
                "\"complete_by\": \"%dms\", \"on_failure\": \"hold\", \"retry\": {\"attempts\": "
                "1}, \"undo\": \"none\"}]",
                ms);
        (void)define(&node, "grace", b.ptr);
        (void)snprintf(id, sizeof id, "grace-%d", ms);
        submit(&node, "grace", id);
        fetch(&node, &r, "gr", "i1");
        token = token_in(&r, 0);
        node_kill(&node);
        (void)snprintf(query, sizeof query,
                       "SELECT count(*) FROM task_attempt WHERE task = '%s' AND outcome = 'open'",
                       id);
        if (sql_int(&node, query) == 0) {
            free(token);
            token = NULL;
            node_start(&node, flags);
            continue;
        }
        sleep_ms(ms + 50);
        node_start(&node, FLAGS("--scan-every", "50ms", "--grace", "10m", "--drain", "200ms"));
        sleep_ms(300); /* several scans */
        hand_in(&node, "gr", "i1", token, "\"output\": 1", "accepted");
        task_of(&node, &r, id);
        EXPECT_TEXT(&r, "state", "processed");
        EXPECT_INT(&r, "failure_count", 0);
    }
    free(token);
    node_kill(&node);
    node_start(&node, flags);
}

static void what_waits_and_sleeps_outlives_a_restart(void **state)
{
    CLEANUP(buf_fini) struct buf when = {0};
    REPLY r = {0};
    (void)state;

    (void)define(&node, "outlive",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ou\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    time_write(&when, now_ms() + 500);
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"outlive\", \"id\": \"outlive-1\", \"not_before\": \"%s\"}", when.ptr);
    EXPECT(&r, 201);
    submit(&node, "outlive", "outlive-2");
    node_kill(&node);
    node_start(&node, flags);
    serve_step(&node, "ou", "i", "1");
    serve_step(&node, "ou", "i", "1");
    wait_for_state(&node, "outlive-1", "processed");
    wait_for_state(&node, "outlive-2", "processed");
}

static void a_parked_agent_of_before_the_restart_is_not_needed(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "other",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ot\", \"action\": "
                 "\"x\", \"complete_by\": \"300ms\", \"undo\": \"none\", \"retry\": "
                 "{\"attempts\": 1000, \"wait\": \"1ms\", \"max_wait\": \"1ms\"}}]");
    submit(&node, "other", "other-1");
    fetch(&node, &r, "ot", "gone-for-good");
    node_kill(&node);
    node_start(&node, flags);
    serve_in_time(&node, "ot", "another", "1"); /* once the first attempt is given up */
    wait_for_state(&node, "other-1", "processed");
    task_of(&node, &r, "other-1");
    EXPECT_TEXT(&r, "steps.0.attempts.0.instance", "gone-for-good");
    assert_non_null(memmem(r.body.ptr, r.body.len, "\"another\"", 9));
}

/* ---- plain SQL ---- */

static void expect_sql(const char *query, const char *expected)
{
    char *value = sql(&node, query);

    CHECK(strcmp(value, expected) == 0, "%s: \"%s\", expected \"%s\"", query, value, expected);
    free(value);
}

/* What each database has its own words for. */
static void expect_either(const char *sqlite, const char *postgres, const char *from,
                          const char *expected)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "SELECT %s FROM %s", store_is_postgres() ? postgres : sqlite, from);
    expect_sql(b.ptr, expected);
}

#define UTC(column) "to_char(" column " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')"

static void views_show_what_the_api_shows_while_it_runs(void **state)
{
    static char big[6000];
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    memset(big, 'x', sizeof big - 1);
    (void)define(&node, "seen",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"se\", \"action\": \"x\", \"retry\": "
                 "{\"attempts\": 2, \"wait\": \"1ms\"}, \"undo\": \"none\"}], \"output\": \"${ "
                 ".steps.a.output.n }\"");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"seen\", \"id\": \"seen-1\", \"input\": {\"big\": \"%s\"}, \"tags\": "
         "{\"k\": \"v\"}}",
         big);
    EXPECT(&r, 201);
    fetch(&node, &r, "se", "i1");
    char *token = token_in(&r, 0);
    hand_in(&node, "se", "i1", token, "\"error\": {\"code\": \"c1\", \"message\": \"m1\"}",
            "accepted");
    free(token);
    fetch(&node, &r, "se", "i2");
    token = token_in(&r, 0);
    expect_sql("SELECT state || attempt FROM task_step WHERE task = 'seen-1'", "running2");
    expect_sql("SELECT outcome FROM task_attempt WHERE task = 'seen-1' AND attempt = 2", "open");
    buf_fmt(&b, "\"output\": {\"n\": 8, \"big\": \"%s\"}", big);
    hand_in(&node, "se", "i2", token, b.ptr, "accepted");
    free(token);

    task_of(&node, &r, "seen-1");
    expect_sql("SELECT state FROM task_view WHERE id = 'seen-1'", "processed");
    expect_either("ended_at", UTC("ended_at"), "task_view WHERE id = 'seen-1'",
                  text_at(&r, "ended_at"));
    expect_sql("SELECT output FROM task_view WHERE id = 'seen-1'", "8");
    expect_either("length(input ->> '$.big')", "length(input ->> 'big')",
                  "task_view WHERE id = 'seen-1'", "5999");
    expect_either("tags ->> '$.k'", "tags::json ->> 'k'", "task_view WHERE id = 'seen-1'", "v");
    expect_sql("SELECT failure_count FROM task_view WHERE id = 'seen-1'", "1");
    expect_sql("SELECT state FROM task_step WHERE task = 'seen-1' AND name = 'a'", "completed");
    expect_either("length(output ->> '$.big')", "length(output ->> 'big')",
                  "task_step WHERE task = 'seen-1'", "5999");
    expect_either("group_concat(outcome || ' ' || effect || ' ' || instance)",
                  "string_agg(outcome || ' ' || effect || ' ' || instance, ',' ORDER BY attempt)",
                  "task_attempt WHERE task = 'seen-1'", "failed unknown i1,completed happened i2");
    expect_sql("SELECT error_code || error_message FROM task_attempt WHERE task = 'seen-1' AND "
               "attempt = 1",
               "c1m1");
    expect_either("started_at", UTC("started_at"),
                  "task_attempt WHERE task = 'seen-1' AND attempt = 2",
                  text_at(&r, "steps.0.attempts.1.started_at"));
    expect_sql("SELECT value FROM tag JOIN task ON tag.task = task.seq WHERE id = 'seen-1' AND "
               "key = 'k'",
               "v");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_never_answers_is_given_up_retried_and_undone),
        cmocka_unit_test(a_task_past_its_complete_by_is_undone),
        cmocka_unit_test(what_sleeps_wakes_at_its_time),
        cmocka_unit_test(the_higher_priority_is_claimed_first),
        cmocka_unit_test(results_are_taken_by_the_server_that_comes_after),
        cmocka_unit_test(what_fell_due_while_it_was_down_has_a_grace_time),
        cmocka_unit_test(what_waits_and_sleeps_outlives_a_restart),
        cmocka_unit_test(a_parked_agent_of_before_the_restart_is_not_needed),
        cmocka_unit_test(views_show_what_the_api_shows_while_it_runs),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
