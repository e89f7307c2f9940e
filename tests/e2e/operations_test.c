/* Operations on many tasks: selected by filters, run dry, executed, stopped, and resumed after a
 * crash; each task is counted once. */

#include "kit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS(NULL));
    define(&node, "pay",
           "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"charge\", \"agent\": \"bank\", "
           "\"action\": \"charge\", \"undo\": {\"action\": \"refund\"}, "
           "\"retry\": {\"attempts\": 1}, \"complete_by\": \"10m\"}]");
    return 0;
}

/* ---- tasks in error ---- */

/* Answers `count` requests of the bank with that error. */
static void decline(int count, const char *code)
{
    CLEANUP(buf_fini) struct buf results = {0};

    for (int left = count; left > 0 || results.len > 0;) {
        REPLY r = {0};
        post(&node, &r, "/v1/agents/bank/work",
             "{\"instance\": \"i\", \"max\": %d, \"wait\": \"%s\", \"results\": [%s]}",
             left < 50 ? left : 50, left > 0 ? "10s" : "0s", results.ptr ? results.ptr : "");
        EXPECT(&r, 200);
        buf_clear(&results);
        const struct json *list = at(&r, "requests");
        for (const struct json *q = list->child; q; q = q->next, left--)
            buf_fmt(&results,
                    "%s{\"token\": \"%.*s\", \"error\": {\"code\": \"%s\", \"message\": \"no\", "
                    "\"retryable\": false}}",
                    results.len ? ", " : "", SLICE_ARG(json_get_text(q, "token")), code);
    }
}

/* Tasks PREFIX0, PREFIX1, ... in error with that code. */
static void fail_tasks(const char *prefix, int count, const char *code)
{
    char id[40];

    for (int i = 0; i < count; i++) {
        (void)snprintf(id, sizeof id, "%s%d", prefix, i);
        submit(&node, "pay", id);
    }
    decline(count, code);
    for (int i = 0; i < count; i++) {
        (void)snprintf(id, sizeof id, "%s%d", prefix, i);
        wait_for_state(&node, id, "error");
    }
}

/* ---- operations ---- */

/* Begins one; its id, to be freed. */
static char *begin(const char *fmt_rest)
{
    REPLY r = {0};

    post(&node, &r, "/v1/operations", "{\"reason\": \"the bank is back\", %s}", fmt_rest);
    EXPECT(&r, 202);
    EXPECT_TEXT(&r, "state", "running");
    return strdup(text_at(&r, "id"));
}

static void operation_of(struct reply *ret, const char *id)
{
    get(&node, ret, "/v1/operations/%s", id);
    EXPECT(ret, 200);
}

static void wait_until_done(const char *id, struct reply *ret)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        operation_of(ret, id);
        if (strcmp(text_at(ret, "state"), "done") == 0)
            return;
        CHECK(steady_ms() < until, "not done: %.*s", SLICE_ARG(ret->body));
        reply_fini(ret);
        sleep_ms(20);
    }
}

/* How often the operation did something, by the audit; and to how many tasks. */
static void count_audits(const char *id, int *ret_times, int *ret_tasks)
{
    char query[300];

    (void)snprintf(query, sizeof query,
                   "SELECT count(*) FROM audit WHERE reason LIKE 'operation %s: %%'", id);
    *ret_times = (int)sql_int(&node, query);
    (void)snprintf(query, sizeof query,
                   "SELECT count(DISTINCT task) FROM audit WHERE reason LIKE 'operation %s: %%'",
                   id);
    *ret_tasks = (int)sql_int(&node, query);
}

static void done_to(const char *id, int tasks)
{
    int times = 0;
    int different = 0;

    count_audits(id, &times, &different);
    CHECK(times == tasks && different == tasks, "%d times to %d tasks, not %d", times, different,
          tasks);
}

static void wait_for_waiting(int least)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (;;) {
        REPLY r = {0};
        /* No tasks are loaded for an agent that has been silent for long. */
        post(&node, &r, "/v1/agents/bank/work", "{\"instance\": \"i\", \"max\": 0}");
        EXPECT(&r, 200);
        get(&node, &r, "/metrics");
        const char *found = strstr(r.raw, "\nintact_waiting_steps ");
        CHECK(found, "it is among the metrics");
        if (strtol(strchr(found, ' '), NULL, 10) >= least)
            return;
        CHECK(steady_ms() < until, "not %d wait", least);
        sleep_ms(5);
    }
}

/* Its agent has one place. What is retried is older, and there is much of it. */
static void new_work_does_not_wait_behind_all_of_it(void **state)
{
    enum { MANY = 120 };
    (void)state;
    char id[20] = "";
    int before = 0;

    fail_tasks("t", MANY, "declined");
    free(begin("\"verb\": \"retry\", \"filter\": {\"state\": \"error\"}"));
    wait_for_waiting(1);
    submit(&node, "pay", "new");
    for (;; before++) {
        REPLY r = {0};
        fetch(&node, &r, "bank", "i");
        (void)snprintf(id, sizeof id, "%s", text_at(&r, "requests.0.task"));
        char *token = token_in(&r, 0);
        hand_in(&node, "bank", "i", token, "\"output\": 1", "accepted");
        free(token);
        if (strcmp(id, "new") == 0)
            break;
        CHECK(before < MANY / 2, "%d were retried before it", before);
    }
}

static void what_matches_is_done_and_counted(void **state)
{
    (void)state;
    REPLY r = {0};
    REPLY done = {0};
    REPLY audit = {0};

    fail_tasks("a", 70, "declined");
    fail_tasks("b", 10, "late");
    post(&node, &r, "/v1/operations",
         "{\"verb\": \"retry\", \"filter\": {\"state\": \"error\", \"workflow\": \"pay\", "
         "\"error\": \"declined\"}, \"reason\": \"why\", \"dry_run\": true}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "matched", 70);
    EXPECT_RAW(&r, "complete", "true");
    EXPECT_INT(&r, "possible", 70);
    EXPECT_RAW(&r, "refused", "{}");
    CHECK(at(&r, "ids")->count == 20, "the first 20");
    EXPECT_TEXT(&r, "ids.0", "a69");
    char *id = begin("\"verb\": \"retry\", \"filter\": {\"error\": \"declined\"}");
    wait_until_done(id, &done);
    EXPECT_INT(&done, "matched", 70);
    EXPECT_INT(&done, "done", 70);
    EXPECT_RAW(&done, "refused", "{}");
    CHECK(time_at(&done, "ended_at") >= time_at(&done, "started_at"), "it has ended");
    done_to(id, 70);
    reply_fini(&r);
    get(&node, &r, "/v1/tasks?state=error&limit=500");
    CHECK(at(&r, "tasks")->count == 10, "the others are left alone: %u", at(&r, "tasks")->count);
    get(&node, &audit, "/v1/audit?task=a3");
    EXPECT_TEXT(&audit, "entries.0.verb", "retry");
    CHECK(strstr(text_at(&audit, "entries.0.reason"), id)
              && strstr(text_at(&audit, "entries.0.reason"), "the bank is back"),
          "%s", text_at(&audit, "entries.0.reason"));
    free(id);
}

static void what_is_refused_is_told_by_reason(void **state)
{
    (void)state;
    REPLY r = {0};
    REPLY dry = {0};
    const char *what = "\"verb\": \"skip\", \"filter\": {\"workflow\": \"pay\"}, "
                       "\"arguments\": {\"step\": \"ship\"}";

    fail_tasks("r", 5, "declined");
    post(&node, &dry, "/v1/operations", "{\"reason\": \"x\", \"dry_run\": true, %s}", what);
    EXPECT(&dry, 200);
    EXPECT_INT(&dry, "possible", 0);
    EXPECT_RAW(&dry, "refused", "{\"the task has no step \\\"ship\\\"\":5}");
    char *id = begin(what);
    wait_until_done(id, &r);
    EXPECT_INT(&r, "matched", 5);
    EXPECT_INT(&r, "done", 0);
    EXPECT_RAW(&r, "refused", "{\"the task has no step \\\"ship\\\"\":5}");
    done_to(id, 0);
    free(id);
}

static void lose(const char *agent, const char *effect)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};

    fetch(&node, &r, agent, "i");
    char *token = token_in(&r, 0);
    buf_fmt(&b, "\"error\": {\"code\": \"lost\", \"retryable\": false, \"effect\": \"%s\"}",
            effect);
    hand_in(&node, agent, "i", token, b.ptr, "accepted");
    free(token);
}

/* Once nothing can come of them any more. */
static void many_in_doubt_are_resolved(void **state)
{
    (void)state;
    const char *what = "\"verb\": \"resolve\", \"filter\": {\"workflow\": \"ships\"}, "
                       "\"arguments\": {\"step\": \"ship\", \"effect\": \"none\"}";
    int64_t until = steady_ms() + PATIENCE_MS;
    int64_t possible = 0;
    REPLY r = {0};

    define(&node, "ships",
           "\"steps\": [{\"name\": \"ship\", \"agent\": \"carrier\", \"action\": \"ship\", "
           "\"pivot\": true, \"on_failure\": \"hold\", \"complete_by\": \"2s\"}]");
    for (int i = 0; i < 3; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "q%d", i);
        submit(&node, "ships", id);
        lose("carrier", i < 2 ? "unknown" : "none");
        wait_for_state(&node, id, "error");
    }
    while (possible < 2) {
        REPLY dry = {0};
        post(&node, &dry, "/v1/operations", "{\"reason\": \"x\", \"dry_run\": true, %s}", what);
        EXPECT(&dry, 200);
        possible = json_get_int(dry.json, "possible", 0);
        CHECK(steady_ms() < until, "%.*s", SLICE_ARG(dry.body));
        sleep_ms(20);
    }
    char *operation = begin(what);
    wait_until_done(operation, &r);
    EXPECT_INT(&r, "done", 2);
    EXPECT_RAW(&r, "refused", "{\"the step is not in doubt\":1}");
    done_to(operation, 2);
    free(operation);
    REPLY dry = {0}; /* once more: what a dry run says is what is found */
    REPLY again = {0};
    post(&node, &dry, "/v1/operations", "{\"reason\": \"x\", \"dry_run\": true, %s}", what);
    EXPECT_RAW(&dry, "refused",
               "{\"the step is not in doubt\":1,\"the task is already in that state\":2}");
    operation = begin(what);
    wait_until_done(operation, &again);
    EXPECT_RAW(&again, "refused",
               "{\"the step is not in doubt\":1,\"the task is already in that state\":2}");
    free(operation);
}

/* Asks until nothing can come of it any more; it is never done, for it is not of the latest one. */
static void wait_until_over(const char *id)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/resolve", id);
    for (;;) {
        REPLY r = {0};
        post(&node, &r, path,
             "{\"step\": \"ship\", \"effect\": \"none\", \"attempt\": 9, \"reason\": \"x\"}");
        expect_problem(&r, 409, "conflict");
        if (strstr(text_at(&r, "detail"), "the latest attempt of step"))
            return;
        CHECK(steady_ms() < until, "%.*s", SLICE_ARG(r.body));
        sleep_ms(20);
    }
}

/* An operator who asked for many tasks has not inspected attempts that began since. */
static void what_began_since_is_not_resolved(void **state)
{
    (void)state;
    enum { TASKS = 8 };
    REPLY r = {0};
    REPLY done = {0};
    char path[100];

    define(&node, "late",
           "\"steps\": [{\"name\": \"ship\", \"agent\": \"carrier\", \"action\": \"ship\", "
           "\"pivot\": true, \"on_failure\": \"hold\", \"complete_by\": \"2s\"}]");
    for (int i = 0; i < TASKS; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "w%d", i);
        submit(&node, "late", id);
        lose("carrier", "unknown");
        wait_for_state(&node, id, "error");
    }
    wait_until_over("w7");
    char *id = begin("\"verb\": \"resolve\", \"filter\": {\"workflow\": \"late\"}, "
                     "\"arguments\": {\"step\": \"ship\", \"effect\": \"none\"}, "
                     "\"rate\": \"2/s\""); /* the newest first */
    (void)snprintf(path, sizeof path, "/v1/operations/%s/stop", id);
    post(&node, &r, path, "{\"reason\": \"not now\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks/w0/retry", "{\"reason\": \"once more\"}");
    EXPECT(&r, 200);
    lose("carrier", "unknown");
    wait_for_state(&node, "w0", "error");
    wait_until_over("w0");
    (void)snprintf(path, sizeof path, "/v1/operations/%s/continue", id);
    post(&node, &r, path, "{\"reason\": \"now\"}");
    EXPECT(&r, 200);
    wait_until_done(id, &done);
    EXPECT_INT(&done, "done", TASKS - 1);
    EXPECT_RAW(&done, "refused", "{\"an attempt of the step started after the operation\":1}");
    free(id);
}

static void a_limit_holds(void **state)
{
    (void)state;
    REPLY r = {0};
    REPLY dry = {0};

    fail_tasks("l", 9, "declined");
    post(&node, &dry, "/v1/operations",
         "{\"reason\": \"x\", \"dry_run\": true, \"verb\": \"retry\", \"filter\": {\"all\": true}, "
         "\"limit\": 4}");
    EXPECT_INT(&dry, "matched", 4);
    EXPECT_RAW(&dry, "complete", "true");
    char *id = begin("\"verb\": \"retry\", \"filter\": {\"ids\": [\"l1\", \"l3\", \"l1\", "
                     "\"nobody\", \"l5\", \"l7\"]}, \"limit\": 3");
    wait_until_done(id, &r);
    EXPECT_INT(&r, "matched", 3);
    EXPECT_INT(&r, "done", 3);
    done_to(id, 3);
    wait_for_state(&node, "l1", "error");
    free(id);
}

static void it_stops_and_goes_on(void **state)
{
    (void)state;
    REPLY r = {0};
    REPLY stopped = {0};
    REPLY later = {0};
    REPLY done = {0};
    char path[100];

    fail_tasks("s", 30, "declined");
    char *id =
        begin("\"verb\": \"retry\", \"filter\": {\"state\": [\"error\"]}, \"rate\": \"2/s\"");
    (void)snprintf(path, sizeof path, "/v1/operations/%s/stop", id);
    post(&node, &r, path, "{\"reason\": \"not now\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "stopped");
    sleep_ms(1500);
    operation_of(&stopped, id);
    EXPECT_TEXT(&stopped, "state", "stopped");
    CHECK(int_at(&stopped, "done") < 30, "it was stopped in time");
    reply_fini(&r);
    (void)snprintf(path, sizeof path, "/v1/operations/%s/continue", id);
    post(&node, &r, path, "{\"reason\": \"now\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "running");
    wait_until_done(id, &done);
    EXPECT_INT(&done, "matched", 30);
    EXPECT_INT(&done, "done", 30);
    done_to(id, 30);
    post(&node, &later, path, "{\"reason\": \"again\"}");
    expect_problem(&later, 409, "conflict");
    free(id);
}

static void after_a_crash_each_task_is_counted_once(void **state)
{
    (void)state;
    REPLY done = {0};

    fail_tasks("k", 40, "declined");
    char *id = begin("\"verb\": \"retry\", \"filter\": {\"error\": \"declined\"}, "
                     "\"rate\": \"20/s\"");
    for (int i = 0; i < 3; i++) {
        sleep_ms(200 + 300 * i);
        node_kill(&node);
        node_start(&node, FLAGS(NULL));
    }
    wait_until_done(id, &done);
    EXPECT_INT(&done, "matched", 40);
    EXPECT_INT(&done, "done", 40);
    EXPECT_RAW(&done, "refused", "{}");
    EXPECT_INT(&done, "gone", 0);
    done_to(id, 40);
    free(id);
}

/* ---- signals ---- */

static void define_waiting(void)
{
    define(&node, "waits",
           "\"steps\": [{\"name\": \"one\", \"signal\": {\"name\": \"go\"}}, "
           "{\"name\": \"two\", \"signal\": {\"name\": \"go\"}}]");
    define(&node, "other", "\"steps\": [{\"name\": \"one\", \"signal\": {\"name\": \"else\"}}]");
}

static void submit_waiting(const char *workflow, const char *prefix, int count)
{
    char id[40];

    for (int i = 0; i < count; i++) {
        (void)snprintf(id, sizeof id, "%s%d", prefix, i);
        submit(&node, workflow, id);
    }
}

/* How many signals of that key there are, and of how many tasks. */
static void sent_to(const char *key, int tasks)
{
    char query[300];

    (void)snprintf(query, sizeof query, "SELECT count(*) FROM task_signal WHERE key = '%s'", key);
    int64_t count = sql_int(&node, query);
    (void)snprintf(query, sizeof query,
                   "SELECT count(DISTINCT task) FROM task_signal WHERE key = '%s'", key);
    int64_t different = sql_int(&node, query);
    CHECK(count == tasks && different == tasks, "%d signals to %d tasks, not %d", (int)count,
          (int)different, tasks);
}

/* A dry run uses the words of the operation. */
static void refused_as_they_should(const struct reply *r)
{
    const struct json *refused = at(r, "refused");

    CHECK(refused->count == 2 && json_get_int(refused, "no step waits for that signal", 0) == 2
              && json_get_int(refused, "not possible while the task is processed", 0) == 1,
          "%.*s", SLICE_ARG(r->body));
}

static void a_signal_is_sent_to_all_that_want_it(void **state)
{
    static const char what[] =
        "\"verb\": \"signal\", \"arguments\": {\"name\": \"go\", \"data\": {\"n\": %d}}, "
        "\"filter\": {\"state\": [\"pending\", \"processing\", \"processed\"]}";
    char asked[300];
    REPLY r = {0};
    (void)state;

    define_waiting();
    submit_waiting("other", "p", 3);
    post(&node, &r, "/v1/tasks/p2/signals/else", "1");
    EXPECT(&r, 200);
    wait_for_state(&node, "p2", "processed");
    submit_waiting("waits", "w", 5);
    (void)snprintf(asked, sizeof asked, what, 1);
    post(&node, &r, "/v1/operations", "{\"reason\": \"x\", \"dry_run\": true, %s}", asked);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "verb", "signal");
    EXPECT_INT(&r, "matched", 8);
    EXPECT_INT(&r, "possible", 5);
    refused_as_they_should(&r);
    get(&node, &r, "/v1/tasks/w0/signals");
    EXPECT_RAW(&r, "signals", "[]");
    for (int i = 1; i <= 2; i++) { /* each operation sends a signal of its own */
        REPLY done = {0};
        (void)snprintf(asked, sizeof asked, what, i);
        char *id = begin(asked);
        wait_until_done(id, &done);
        EXPECT_INT(&done, "matched", 8);
        EXPECT_INT(&done, "done", 5);
        refused_as_they_should(&done);
        EXPECT_INT(&done, "failed", 0);
        EXPECT_TEXT(&done, "arguments.name", "go");
        done_to(id, 5);
        sent_to(id, 5);
        free(id);
    }
    wait_for_state(&node, "w3", "processed");
    task_of(&node, &r, "w3");
    EXPECT_INT(&r, "steps.0.output.data.n", 1);
    EXPECT_INT(&r, "steps.1.output.data.n", 2);
}

static void after_a_crash_each_task_has_the_signal_once(void **state)
{
    REPLY done = {0};
    (void)state;

    define_waiting();
    submit_waiting("waits", "k", 40);
    char *id = begin("\"verb\": \"signal\", \"filter\": {\"workflow\": \"waits\"}, "
                     "\"arguments\": {\"name\": \"go\"}, \"rate\": \"20/s\"");
    for (int i = 0; i < 3; i++) {
        sleep_ms(200 + 300 * i);
        node_kill(&node);
        node_start(&node, FLAGS(NULL));
    }
    wait_until_done(id, &done);
    EXPECT_INT(&done, "matched", 40);
    EXPECT_INT(&done, "done", 40);
    EXPECT_RAW(&done, "refused", "{}");
    EXPECT_INT(&done, "gone", 0);
    done_to(id, 40);
    sent_to(id, 40);
    free(id);
}

static void what_is_asked_for_is_looked_at(void **state)
{
    (void)state;
    static const struct {
        const char *body, *says;
    } bad[] = {
        {"{\"verb\": \"retry\", \"reason\": \"x\"}", "a filter is required"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {}}", "all"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"all\": true, \"state\": "
         "\"error\"}}",
         "and other members"},
        {"{\"verb\": \"drop\", \"reason\": \"x\", \"filter\": {\"all\": true}}", "verb"},
        {"{\"verb\": \"retry\", \"filter\": {\"all\": true}}", "a reason is required"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"sate\": \"error\"}}", "sate"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"state\": \"broken\"}}", "state"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"ids\": []}}", "ids"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"version\": 0}}", "version"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"tag\": {\"a\": 1}}}", "tag"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"ended_after\": \"now\"}}",
         "ended_after"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"all\": true}, \"rate\": \"5\"}",
         "rate"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"all\": true}, \"limit\": 0}",
         "limit"},
        {"{\"verb\": \"retry\", \"reason\": \"x\", \"filter\": {\"all\": true}, \"dry_run\": 1}",
         "dry_run"},
        {"{\"verb\": \"skip\", \"reason\": \"x\", \"filter\": {\"all\": true}}", "step"},
        {"{\"verb\": \"undo\", \"reason\": \"x\", \"filter\": {\"all\": true}, "
         "\"arguments\": {\"step\": \"charge\"}}",
         "step"},
        {"{\"verb\": \"resolve\", \"reason\": \"x\", \"filter\": {\"all\": true}, "
         "\"arguments\": {\"step\": \"charge\"}}",
         "effect"},
        {"{\"verb\": \"resolve\", \"reason\": \"x\", \"filter\": {\"all\": true}, "
         "\"arguments\": {\"step\": \"charge\", \"effect\": \"happened\"}}",
         "supply"},
        {"{\"verb\": \"skip\", \"reason\": \"x\", \"filter\": {\"all\": true}, "
         "\"arguments\": {\"step\": \"charge\", \"effect\": \"none\"}}",
         "effect"},
        {"{\"verb\": \"signal\", \"reason\": \"x\", \"filter\": {\"all\": true}}", "name"},
        {"{\"verb\": \"signal\", \"reason\": \"x\", \"filter\": {\"all\": true}, "
         "\"arguments\": {\"name\": \"\"}}",
         "name of a signal"},
    };

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        REPLY r = {0};
        post(&node, &r, "/v1/operations", "%s", bad[i].body);
        expect_problem(&r, 422, "bad-operation");
        CHECK(strstr(text_at(&r, "detail"), bad[i].says), "%s: %.*s", bad[i].body,
              SLICE_ARG(r.body));
    }
    REPLY none = {0};
    get(&node, &none, "/v1/operations/nobody");
    expect_problem(&none, 404, "no-such-operation");
    REPLY list = {0};
    get(&node, &list, "/v1/operations?limit=1");
    EXPECT(&list, 200);
    EXPECT_RAW(&list, "operations", "[]");
}

static void listings_have_the_same_filters(void **state)
{
    (void)state;
    static const struct {
        const char *query;
        unsigned count;
    } wanted[] = {
        {"error=declined", 3},
        {"error=late", 2},
        {"step=charge", 5},
        {"agent=bank", 6},
        {"agent=nobody", 0},
        {"agent=bank&step=charge", 5},
        {"version=1", 6},
        {"version=2", 0},
        {"ids=d0,e1,nobody,d0", 2},
        {"ended_before=2001-01-01T00:00:00Z", 0},
        {"workflow=pay&error=late", 2},
        {"agent=bank&step=ship", 0},
    };

    fail_tasks("d", 3, "declined");
    fail_tasks("e", 2, "late");
    submit(&node, "pay", "w");
    wait_for_state(&node, "w", "pending"); /* nobody has a place for it */
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        REPLY r = {0};
        get(&node, &r, "/v1/tasks?%s", wanted[i].query);
        EXPECT(&r, 200);
        CHECK(at(&r, "tasks")->count == wanted[i].count, "%s: %.*s", wanted[i].query,
              SLICE_ARG(r.body));
    }
    REPLY bad = {0};
    get(&node, &bad, "/v1/tasks?version=x");
    expect_problem(&bad, 422, "bad-version");
    reply_fini(&bad);
    get(&node, &bad, "/v1/tasks?ids=a,,b");
    expect_problem(&bad, 422, "bad-ids");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(new_work_does_not_wait_behind_all_of_it, start, node_end),
        cmocka_unit_test_setup_teardown(what_matches_is_done_and_counted, start, node_end),
        cmocka_unit_test_setup_teardown(what_is_refused_is_told_by_reason, start, node_end),
        cmocka_unit_test_setup_teardown(many_in_doubt_are_resolved, start, node_end),
        cmocka_unit_test_setup_teardown(what_began_since_is_not_resolved, start, node_end),
        cmocka_unit_test_setup_teardown(a_limit_holds, start, node_end),
        cmocka_unit_test_setup_teardown(it_stops_and_goes_on, start, node_end),
        cmocka_unit_test_setup_teardown(after_a_crash_each_task_is_counted_once, start, node_end),
        cmocka_unit_test_setup_teardown(a_signal_is_sent_to_all_that_want_it, start, node_end),
        cmocka_unit_test_setup_teardown(after_a_crash_each_task_has_the_signal_once, start,
                                        node_end),
        cmocka_unit_test_setup_teardown(what_is_asked_for_is_looked_at, start, node_end),
        cmocka_unit_test_setup_teardown(listings_have_the_same_filters, start, node_end),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests_name("operations", tests, NULL, NULL);
}
