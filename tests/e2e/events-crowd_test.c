/* Tests of event streams whose tokens change, and of so many streams that one visit of the event
 * loop does not reach all of them. events_test.c has what a stream tells. */

#include <signal.h>
#include <stdlib.h>
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

static void who_may_no_longer_look_is_told_nothing_more(void **state)
{
    SSE task = {0};
    SSE all = {0};
    SSE admins = {0};
    SSE_EVENT e = {0};
    REPLY r = {0};
    char token[64];
    (void)state;

    (void)define(&node, "secret", "\"steps\": [" STEP("a", "secret") "]");
    submit(&node, "secret", "secret-1");
    make_token(&node, "spy", "\"read\"", NULL, token);
    const struct node spy = as(&node, token);
    sse_open(&spy, &task, "/v1/tasks/secret-1/events", NULL);
    sse_open(&spy, &all, "/v1/events", NULL);
    sse_open(&node, &admins, "/v1/events", NULL);
    CHECK(sse_next(&task, &e), "no event");
    sse_head(&all);
    sse_head(&admins);
    send_as(&node, &r, "DELETE", "/v1/tokens/spy", NULL, SLICE_NONE);
    EXPECT(&r, 204);
    CHECK(!sse_next(&all, &e), "it was told %s", e.name);
    while (sse_next(&task, &e)) /* from before */
        assert_string_equal(e.name, "task");
    submit(&node, "secret", "secret-2");
    CHECK(sse_next(&admins, &e), "others go on");
}

enum { CROWD = 300, CROWD_TASKS = 30 };

/* Not all of them are checked in one turn of the event loop, but each before it is written to. */
static void a_crowd_that_may_no_longer_look_is_told_nothing_more(void **state)
{
    static struct sse crowd[CROWD];
    SSE_EVENT e = {0};
    REPLY r = {0};
    char token[64];
    (void)state;

    make_token(&node, "spies", "\"read\"", NULL, token);
    const struct node spies = as(&node, token);
    for (int i = 0; i < CROWD; i++) {
        sse_open(&spies, &crowd[i], "/v1/events", NULL);
        sse_head(&crowd[i]);
    }
    send_as(&node, &r, "DELETE", "/v1/tokens/spies", NULL, SLICE_NONE);
    EXPECT(&r, 204);
    submit(&node, "secret", "secret-3");
    for (int i = 0; i < CROWD; i++) {
        CHECK(!sse_next(&crowd[i], &e), "%d was told %s", i, e.name);
        sse_fini(&crowd[i]);
    }
}

/* A heartbeat with that message, and no more. */
static void beat(const char *agent, const char *token, const char *message)
{
    REPLY r = {0};
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/heartbeats", agent);
    post(&node, &r, path,
         "{\"instance\": \"i-1\", \"beats\": [{\"token\": \"%s\", \"message\": \"%s\"}]}", token,
         message);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
}

/* The next event that is no state: it must be that heartbeat. */
static void expect_beat(struct sse *s, const char *message)
{
    SSE_EVENT e = {0};

    do
        CHECK(sse_next(s, &e), "it has ended");
    while (strcmp(e.name, "task") == 0);
    assert_string_equal(e.name, "progress");
    EXPECT_TEXT(&e.data, "message", message);
}

/* Whoever signs in or makes a token has all streams checked: they go on as before. */
static void who_was_checked_still_hears_heartbeats(void **state)
{
    SSE s = {0};
    SSE_EVENT e = {0};
    REPLY r = {0};
    char other[64];
    (void)state;

    (void)define(&node, "alive", "\"steps\": [" STEP("a", "alive") "]");
    submit(&node, "alive", "alive-1");
    fetch(&node, &r, "alive", "i-1");
    char *token = token_in(&r, 0);
    sse_open(&node, &s, "/v1/tasks/alive-1/events", NULL);
    CHECK(sse_next(&s, &e), "no event");
    beat("alive", token, "before");
    expect_beat(&s, "before");
    make_token(&node, "newcomer", "\"read\"", NULL, other);
    beat("alive", token, "after");
    hand_in(&node, "alive", "i-1", token, "\"output\": 1",
            "accepted"); /* it does not wait for ever */
    expect_beat(&s, "after");
    free(token);
}

/* In builds with sanitizers nothing is checked but by those who write (checks_wait). */
static void who_is_not_checked_yet_is_told_nothing_either(void **state)
{
    SSE all = {0};
    SSE task = {0};
    SSE beats = {0};
    SSE_EVENT e = {0};
    REPLY r = {0};
    char token[64];
    (void)state;

    node_stop(&node);
    CHECK(setenv("INTACT_FAULT_UNCHECKED", "1", 1) == 0, "setenv");
    node_start(&node, SERVER);
    (void)unsetenv("INTACT_FAULT_UNCHECKED");
    (void)define(&node, "hidden", "\"steps\": [" STEP("a", "hidden") "]");
    submit(&node, "hidden", "hidden-1");
    (void)define(&node, "quiet", "\"steps\": [" STEP("a", "quiet") "]");
    submit(&node, "quiet", "quiet-1");
    fetch(&node, &r, "quiet", "i-1");
    char *work = token_in(&r, 0);
    make_token(&node, "late", "\"read\"", NULL, token);
    const struct node late = as(&node, token);
    sse_open(&late, &all, "/v1/events", NULL);
    sse_head(&all);
    sse_open(&late, &task, "/v1/tasks/hidden-1/events", NULL);
    CHECK(sse_next(&task, &e), "no event");
    sse_open(&late, &beats, "/v1/tasks/quiet-1/events", NULL);
    CHECK(sse_next(&beats, &e), "no event");
    send_as(&node, &r, "DELETE", "/v1/tokens/late", NULL, SLICE_NONE);
    EXPECT(&r, 204);
    beat("quiet", work, "a secret");
    CHECK(!sse_next(&beats, &e), "of a heartbeat: %s", e.name);
    free(work);
    post(&node, &r, "/v1/tasks/hidden-1/cancel", "{\"reason\": \"a test\"}");
    EXPECT(&r, 200);
    CHECK(!sse_next(&all, &e), "of all tasks: %s", e.name);
    CHECK(!sse_next(&task, &e), "of its task: %s", e.name);
    node_stop(&node);
    node_start(&node, SERVER);
}

/* They are written to in rounds, and those of a token that has had its share later. */
static void a_crowd_is_told_everything_in_its_order(void **state)
{
    static struct sse crowd[CROWD];
    static const char one_role[] = "\"read\"";
    char token[2][64];
    char id[20];
    (void)state;

    (void)define(&node, "heard", "\"steps\": [" STEP("a", "heard") "]");
    make_token(&node, "crowd-a", one_role, NULL, token[0]);
    make_token(&node, "crowd-b", one_role, NULL, token[1]);
    for (int i = 0; i < CROWD; i++) {
        const struct node by = as(&node, token[i % 2]);
        sse_open(&by, &crowd[i], "/v1/events?workflow=heard&state=pending", NULL);
        sse_head(&crowd[i]);
    }
    for (int i = 0; i < CROWD_TASKS; i++) {
        (void)snprintf(id, sizeof id, "heard-%d", i);
        submit(&node, "heard", id);
    }
    for (int i = 0; i < CROWD; i++) {
        for (int k = 0; k < CROWD_TASKS; k++) {
            SSE_EVENT e = {0};
            (void)snprintf(id, sizeof id, "heard-%d", k);
            CHECK(sse_next(&crowd[i], &e), "stream %d has ended", i);
            EXPECT_TEXT(&e.data, "id", id);
        }
        sse_fini(&crowd[i]);
    }
}

/* So many streams that one visit does not reach all of them, however short the time is. */
static void start_in_small_visits(void)
{
    node_stop(&node);
    CHECK(setenv("INTACT_FAULT_VISITS", "20", 1) == 0, "setenv");
    node_start(&node, SERVER);
    (void)unsetenv("INTACT_FAULT_VISITS");
}

/* In builds with sanitizers the server counts how many streams it visits in one round of its loop,
 * and ends at once if these are more than the visits allow (visit_counts). */
static void a_crowd_hears_heartbeats_and_the_end_in_small_visits(void **state)
{
    static struct sse crowd[CROWD * 2];
    CLEANUP(buf_fini) struct buf many = {0};
    SSE_EVENT e = {0};
    REPLY r = {0};
    (void)state;

    start_in_small_visits();
    (void)define(&node, "beats", "\"steps\": [" STEP("a", "beats") "]");
    submit(&node, "beats", "beats-1");
    fetch(&node, &r, "beats", "i-1");
    char *token = token_in(&r, 0);
    for (int i = 0; i < CROWD * 2; i++) {
        sse_open(&node, &crowd[i], i % 2 ? "/v1/events?workflow=beats" : "/v1/tasks/beats-1/events",
                 NULL);
        if (i % 2)
            sse_head(&crowd[i]);
        else
            CHECK(sse_next(&crowd[i], &e), "no event");
    }
    beat("beats", token, "half");
    for (int i = 0; i < CROWD * 2; i += 2)
        expect_beat(&crowd[i], "half");

    /* Many of them in one call have one visit; whoever did not hear the others hears the last. */
    buf_str(&many, "{\"instance\": \"i-1\", \"beats\": [");
    for (int i = 0; i < 100; i++)
        buf_fmt(&many, "{\"token\": \"%s\", \"message\": \"many\"}, ", token);
    buf_fmt(&many, "{\"token\": \"%s\", \"message\": \"last\"}]}", token);
    post(&node, &r, "/v1/agents/beats/heartbeats", "%s", many.ptr);
    EXPECT(&r, 200);
    for (int i = 0; i < CROWD * 2; i += 2)
        do
            CHECK(sse_next(&crowd[i], &e), "stream %d has ended", i);
        while (strcmp(e.name, "progress") != 0 || strcmp(text_at(&e.data, "message"), "last") != 0);
    free(token);
    node_stop(&node);
    for (int i = 0; i < CROWD * 2; i++) {
        while (sse_next(&crowd[i], &e))
            assert_string_equal(e.name, "task");
        sse_fini(&crowd[i]);
    }
    node_start(&node, SERVER);
}

/* A crowd that asks for what is not there, for states, for all changes, and whose tokens are
 * checked. */
static void a_crowd_is_answered_in_small_visits(void **state)
{
    static struct sse crowd[CROWD];
    static struct sse all[CROWD];
    static struct sse absent[CROWD];
    SSE_EVENT e = {0};
    char token[64];
    (void)state;

    start_in_small_visits();
    (void)define(&node, "visits", "\"steps\": [" STEP("a", "visits") "]");
    submit(&node, "visits", "visits-1");
    for (int i = 0; i < CROWD; i++)
        sse_open(&node, &crowd[i], "/v1/tasks/visits-1/events", NULL);
    for (int i = 0; i < CROWD; i++)
        CHECK(sse_next(&crowd[i], &e), "no event");
    for (int i = 0; i < CROWD; i++) {
        sse_open(&node, &all[i], "/v1/events?workflow=visits", NULL);
        sse_head(&all[i]);
    }
    make_token(&node, "visitor", "\"read\"", NULL, token); /* all are checked */
    serve_step(&node, "visits", "i-1", "1");
    for (int i = 0; i < CROWD; i++) {
        while (sse_next(&crowd[i], &e))
            ;
        assert_string_equal(e.name, "end");
        sse_fini(&crowd[i]);
        CHECK(sse_next(&all[i], &e), "no event of all");
        sse_fini(&all[i]);
    }
    for (int i = 0; i < CROWD; i++)
        sse_open(&node, &absent[i], "/v1/tasks/absent/events", NULL);
    for (int i = 0; i < CROWD; i++) {
        sse_head(&absent[i]);
        assert_int_equal(absent[i].status, 404);
        sse_fini(&absent[i]);
    }
    node_stop(&node);
    node_start(&node, SERVER);
}

/* All of them have to be told at one moment that the server is there. */
static void a_crowd_is_kept_alive_in_small_visits(void **state)
{
    static struct sse crowd[CROWD];
    (void)state;

    CHECK(setenv("INTACT_FAULT_PULSE_MS", "1000", 1) == 0, "setenv");
    start_in_small_visits();
    (void)unsetenv("INTACT_FAULT_PULSE_MS");
    for (int i = 0; i < CROWD; i++) {
        sse_open(&node, &crowd[i], "/v1/events", NULL);
        sse_head(&crowd[i]);
    }
    node_signal(&node, SIGSTOP);
    sleep_ms(1500);
    node_signal(&node, SIGCONT);
    for (int i = 0; i < CROWD; i++) {
        sse_comment(&crowd[i]);
        sse_fini(&crowd[i]);
    }
    node_stop(&node);
    node_start(&node, SERVER);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_may_no_longer_look_is_told_nothing_more),
        cmocka_unit_test(a_crowd_that_may_no_longer_look_is_told_nothing_more),
        cmocka_unit_test(who_was_checked_still_hears_heartbeats),
        cmocka_unit_test(who_is_not_checked_yet_is_told_nothing_either),
        cmocka_unit_test(a_crowd_is_told_everything_in_its_order),
        cmocka_unit_test(a_crowd_hears_heartbeats_and_the_end_in_small_visits),
        cmocka_unit_test(a_crowd_is_answered_in_small_visits),
        cmocka_unit_test(a_crowd_is_kept_alive_in_small_visits),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
