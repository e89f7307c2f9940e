/* Long steps: the permitted silence, resume details for the next attempt, and results sent by
 * another process with the token of the attempt. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

#define SERVER FLAGS("--log", "debug", "--scan-every", "100ms", "--grace", "200ms")

static int start(void **state)
{
    *state = node_open(&node, SERVER);
    return 0;
}

/* One step of its own agent, that is tried three times; `rest` being more of the step. */
static void define_one(const char *name, const char *rest)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b,
            "\"steps\": [{\"name\": \"s\", \"agent\": \"%s\", \"action\": \"x\", \"retry\": "
            "{\"attempts\": 3, \"wait\": \"1ms\", \"jitter\": false}, %s}]",
            name, rest);
    (void)define(&node, name, b.ptr);
}

/* The next request of that agent; its token. */
static char *next(struct reply *r, const char *agent)
{
    fetch(&node, r, agent, "i-1");
    return token_in(r, 0);
}

static void beat(struct reply *ret, const char *agent, const char *token, const char *rest)
{
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/heartbeats", agent);
    post(&node, ret, path, "{\"instance\": \"i-1\", \"beats\": [{\"token\": \"%s\"%s}]}", token,
         rest);
    EXPECT(ret, 200);
}

/* A call that hands in that result, whatever comes of it. */
static void hand(struct reply *ret, const char *agent, const char *token, const char *result)
{
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/work", agent);
    post(&node, ret, path,
         "{\"instance\": \"i-1\", \"max\": 0, \"results\": [{\"token\": \"%s\", %s}]}", token,
         result);
    EXPECT(ret, 200);
}

/* As whoever has nothing but the token of the attempt. */
static void end_by_token(struct reply *ret, const char *token, const char *body)
{
    const struct node stranger = as(&node, "");
    char path[300];

    (void)snprintf(path, sizeof path, "/v1/attempts/%s", token);
    post(&stranger, ret, path, "%s", body);
}

static void wait_for_outcome(const char *id, int attempt, const char *outcome)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};
    char path[60];

    (void)snprintf(path, sizeof path, "steps.0.attempts.%d.outcome", attempt);
    do {
        CHECK(steady_ms() < until, "not %s: %.*s", outcome, SLICE_ARG(r.body));
        task_of(&node, &r, id);
    } while (strcmp(text_at(&r, path), outcome) != 0);
}

/* ---- silence ---- */

/* A process that was killed gets its attempt back, and what its last beat said. */
static void what_is_sent_again_is_gone_on_with(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("regain", "\"undo\": \"none\", \"complete_by\": \"1h\"");
    submit(&node, "regain", "regain-1");
    char *token = next(&r, "regain");
    beat(&r, "regain", token, ", \"resume\": {\"page\": 9}");
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    post(&node, &r, "/v1/agents/regain/work",
         "{\"instance\": \"i-1\", \"max\": 1, \"wait\": \"3m\", \"holding\": []}");
    EXPECT_TEXT(&r, "requests.0.token", token);
    EXPECT_INT(&r, "requests.0.attempt", 1);
    EXPECT_RAW(&r, "requests.0.resume", "{\"page\": 9}");
    hand(&r, "regain", token, "\"output\": 1");
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    wait_for_state(&node, "regain-1", "processed");
    free(token);
}

static void a_silent_attempt_ends_long_before_its_complete_by(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("silent", "\"undo\": \"none\", \"complete_by\": \"1h\", \"heartbeat\": \"300ms\"");
    submit(&node, "silent", "silent-1");
    char *token = next(&r, "silent");
    EXPECT_INT(&r, "requests.0.heartbeat_ms", 300);
    CHECK(!at(&r, "requests.0.resume"), "%.*s", SLICE_ARG(r.body));
    beat(&r, "silent", token, ", \"resume\": {\"page\": 7}");
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    beat(&r, "silent", token, ", \"progress\": 1"); /* says nothing new of that */
    wait_for_outcome("silent-1", 0, "timed_out");
    beat(&r, "silent", token, "");
    /* A node of several that has released the task meanwhile cannot tell. */
    bool is_released =
        store_is_postgres() && strcmp(text_at(&r, "outcomes.0.status"), "unknown") == 0;
    if (!is_released)
        EXPECT_TEXT(&r, "outcomes.0.status", "late");
    task_of(&node, &r, "silent-1");
    EXPECT_TEXT(&r, "steps.0.attempts.0.error.code", "heartbeat");
    EXPECT_TEXT(&r, "steps.0.attempts.0.effect", "unknown");
    EXPECT_INT(&r, "steps.0.failure_count", 1);
    EXPECT_RAW(&r, "steps.0.resume", "{\"page\": 7}");
    int64_t began = time_at(&r, "steps.0.attempts.0.started_at");
    int64_t ended = time_at(&r, "steps.0.attempts.0.ended_at");
    assert_true(ended >= began + 300);
    assert_true(ended < time_at(&r, "steps.0.attempts.0.complete_by"));
    free(token);

    token = next(&r, "silent");
    EXPECT_INT(&r, "requests.0.attempt", 2);
    EXPECT_RAW(&r, "requests.0.resume", "{\"page\": 7}");
    hand(&r, "silent", token, "\"output\": 1");
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    task_of(&node, &r, "silent-1");
    EXPECT_TEXT(&r, "state", "processed");
    CHECK(!at(&r, "steps.0.resume"), "nothing follows: %.*s", SLICE_ARG(r.body));
    free(token);
}

/* Unless this test itself was held up for longer than an attempt may be silent. */
static bool outlives_three_silences(const char *id)
{
    int64_t first = steady_ms();
    int64_t last = first;
    int64_t longest = 0;
    bool open = true;
    REPLY r = {0};

    submit(&node, "beaten", id);
    char *token = next(&r, "beaten");
    while (open && steady_ms() < first + 3 * 1500) {
        sleep_ms(20);
        beat(&r, "beaten", token, "");
        open = strcmp(text_at(&r, "outcomes.0.status"), "accepted") == 0;
        longest = steady_ms() - last > longest ? steady_ms() - last : longest;
        last = steady_ms();
    }
    CHECK(open || longest >= 1400, "it ended, silent for %" PRId64 " ms", longest);
    if (open)
        hand_in(&node, "beaten", "i-1", token, "\"output\": 1", "accepted");
    free(token);
    return open;
}

static void heartbeats_keep_an_attempt_going(void **state)
{
    char id[20];
    int n = 0;
    (void)state;

    define_one("beaten", "\"undo\": \"none\", \"complete_by\": \"1h\", \"heartbeat\": \"1500ms\"");
    do
        (void)snprintf(id, sizeof id, "beaten-%d", n++);
    while (!outlives_three_silences(id));
}

static void an_undo_may_not_be_silent_either(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "undone",
                 "\"steps\": [{\"name\": \"s\", \"agent\": \"undone\", \"action\": \"x\", "
                 "\"undo\": {\"action\": \"back\", \"complete_by\": \"1h\", \"heartbeat\": "
                 "\"200ms\", \"retry\": {\"attempts\": 9, \"wait\": \"1ms\"}}}, {\"name\": \"t\", "
                 "\"agent\": \"undone\", \"action\": \"y\", \"undo\": \"none\"}]");
    submit(&node, "undone", "undone-1");
    char *token = next(&r, "undone");
    CHECK(!at(&r, "requests.0.heartbeat_ms"), "%.*s", SLICE_ARG(r.body));
    hand_in(&node, "undone", "i-1", token, "\"output\": 1", "accepted");
    free(token);
    token = next(&r, "undone");
    hand_in(&node, "undone", "i-1", token,
            "\"error\": {\"code\": \"no\", \"retryable\": false, \"resume\": [1]}", "accepted");
    free(token);
    token = next(&r, "undone");
    EXPECT_TEXT(&r, "requests.0.direction", "undo");
    EXPECT_INT(&r, "requests.0.heartbeat_ms", 200);
    CHECK(!at(&r, "requests.0.resume"), "it is of the other direction: %.*s", SLICE_ARG(r.body));
    wait_for_outcome("undone-1", 1, "timed_out");
    free(token);
    token = next(&r, "undone");
    EXPECT_TEXT(&r, "requests.0.direction", "undo");
    EXPECT_INT(&r, "requests.0.attempt", 2);
    end_by_token(&r, token, "{\"output\": null}");
    free(token);
    wait_for_state(&node, "undone-1", "compensated");
}

static void a_restart_begins_the_silence_anew(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    REPLY r = {0};
    (void)state;

    define_one("again", "\"undo\": \"none\", \"complete_by\": \"1h\", \"heartbeat\": \"30s\"");
    submit(&node, "again", "again-1");
    char *token = next(&r, "again");
    node_kill(&node);
    node_start(&node, SERVER);
    do {
        beat(&r, "again", token, "");
        CHECK(strcmp(text_at(&r, "outcomes.0.status"), "late") != 0, "%.*s", SLICE_ARG(r.body));
        CHECK(steady_ms() < until, "%.*s", SLICE_ARG(r.body));
    } while (strcmp(text_at(&r, "outcomes.0.status"), "accepted") != 0);
    hand_in(&node, "again", "i-1", token, "\"output\": 1", "accepted");
    free(token);

    define_one("never", "\"undo\": \"none\", \"complete_by\": \"1h\", \"heartbeat\": \"500ms\"");
    submit(&node, "never", "never-1");
    token = next(&r, "never");
    node_kill(&node);
    node_start(&node, SERVER);
    wait_for_outcome("never-1", 0, "timed_out"); /* nobody comes back */
    task_of(&node, &r, "never-1");
    EXPECT_TEXT(&r, "steps.0.attempts.0.error.code", "heartbeat");
    free(token);
}

/* ---- what a result may tell besides ---- */

static void a_failure_leaves_details_for_the_next_try(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("left", "\"undo\": \"none\"");
    submit(&node, "left", "left-1");
    char *token = next(&r, "left");
    beat(&r, "left", token, ", \"resume\": \"of a beat\"");
    task_of(&node, &r, "left-1");
    EXPECT_TEXT(&r, "steps.0.resume", "of a beat"); /* as long as this node has the task */
    hand_in(&node, "left", "i-1", token,
            "\"tries\": 4, \"error\": {\"code\": \"e\", \"resume\": {\"of\": \"an error\"}}",
            "accepted");
    free(token);
    token = next(&r, "left");
    EXPECT_TEXT(&r, "requests.0.resume.of", "an error");
    hand_in(&node, "left", "i-1", token, "\"error\": {\"code\": \"e\", \"resume\": null}",
            "accepted");
    free(token);
    token = next(&r, "left");
    EXPECT_TEXT(&r, "requests.0.resume.of", "an error"); /* that one left nothing new */
    hand_in(&node, "left", "i-1", token, "\"tries\": 1000000, \"output\": 1", "accepted");
    free(token);
    task_of(&node, &r, "left-1");
    EXPECT_INT(&r, "steps.0.attempts.0.tries", 4);
    CHECK(!at(&r, "steps.0.attempts.1.tries"), "%.*s", SLICE_ARG(r.body));
    EXPECT_INT(&r, "steps.0.attempts.2.tries", 1000000);
}

/* What is no use to anybody is left out, and said: the result itself counts. */
static void a_bad_detail_does_not_cost_the_result(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    static const char *const tries[] = {"0", "-1", "1000001", "2.5", "\"3\"", "[]", "1e99"};
    char id[20];
    char long_text[2050];
    REPLY r = {0};
    (void)state;

    define_one("detail", "\"undo\": \"none\"");
    for (size_t i = 0; i < COUNT_OF(tries); i++) {
        (void)snprintf(id, sizeof id, "detail-%zu", i);
        submit(&node, "detail", id);
        char *token = next(&r, "detail");
        buf_clear(&b);
        buf_fmt(&b, "\"output\": 1, \"tries\": %s", tries[i]);
        hand(&r, "detail", token, b.ptr);
        EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
        CHECK(strncmp(text_at(&r, "outcomes.0.problem"), "tries is ", 9) == 0, "%.*s",
              SLICE_ARG(r.body));
        task_of(&node, &r, id);
        EXPECT_TEXT(&r, "state", "processed");
        CHECK(!at(&r, "steps.0.attempts.0.tries"), "%.*s", SLICE_ARG(r.body));
        free(token);
    }
    memset(long_text, 'x', sizeof long_text);
    submit(&node, "detail", "detail-long");
    for (int len = 2046; len <= 2047; len++) { /* and two quotes */
        char *token = next(&r, "detail");
        buf_clear(&b);
        buf_fmt(&b, "\"error\": {\"code\": \"e\", \"resume\": \"%.*s\"}", len, long_text);
        hand(&r, "detail", token, b.ptr);
        EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
        CHECK((at(&r, "outcomes.0.problem") != NULL) == (len == 2047), "%.*s", SLICE_ARG(r.body));
        task_of(&node, &r, "detail-long");
        assert_int_equal(strlen(text_at(&r, "steps.0.resume")), 2046);
        free(token);
    }
    char *token = next(&r, "detail");
    buf_clear(&b);
    buf_fmt(&b, ", \"resume\": \"%.2047s\"", long_text);
    beat(&r, "detail", token, b.ptr);
    EXPECT_TEXT(&r, "outcomes.0.status", "unknown");
    EXPECT_TEXT(&r, "outcomes.0.problem", "resume is 2049 bytes, at most 2048");
    hand_in(&node, "detail", "i-1", token, "\"output\": 1", "accepted");
    free(token);
}

/* ---- elsewhere ---- */

static void what_is_elsewhere_is_ended_by_its_token(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("away", "\"undo\": \"none\", \"complete_by\": \"1h\", \"heartbeat\": \"300ms\"");
    submit(&node, "away", "away-1");
    char *token = next(&r, "away");
    hand_in(&node, "away", "i-1", token, "\"elsewhere\": true", "accepted");
    hand_in(&node, "away", "i-1", token, "\"elsewhere\": true", "repeated");
    task_of(&node, &r, "away-1");
    EXPECT_RAW(&r, "steps.0.attempts.0.elsewhere", "true");
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "open");

    /* It is lost to nobody: its instance does not hold it, and is not sent it again. */
    for (int i = 0; i < 2; i++) {
        post(&node, &r, "/v1/agents/away/work",
             "{\"instance\": \"i-1\", \"max\": 1, \"wait\": \"700ms\", \"holding\": []}");
        EXPECT(&r, 200);
        EXPECT_RAW(&r, "requests", "[]");
        if (i == 0) {
            node_kill(&node);
            node_start(&node, SERVER);
        }
    }
    task_of(&node, &r, "away-1"); /* silent for longer than it might */
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "open");
    EXPECT_RAW(&r, "steps.0.attempts.0.elsewhere", "true");
    get(&node, &r, "/v1/tasks/away-1/why");
    CHECK(memmem(r.body.ptr, r.body.len, "elsewhere", 9), "%.*s", SLICE_ARG(r.body));

    end_by_token(&r, token, "{\"output\": {\"approved\": true}, \"tries\": 2}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "status", "accepted");
    end_by_token(&r, token, "{\"output\": {\"approved\": true}}");
    EXPECT_TEXT(&r, "status", "repeated");
    hand_in(&node, "away", "i-1", token, "\"elsewhere\": true", "repeated");
    task_of(&node, &r, "away-1");
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_RAW(&r, "steps.0.output.approved", "true");
    EXPECT_INT(&r, "steps.0.attempts.0.tries", 2);
    CHECK(!node_log_has(&node, token), "the log has a token");
    free(token);
}

static int64_t tasks_in_memory(void)
{
    static const char line[] = "\nintact_tasks_in_memory ";
    REPLY r = {0};

    get(&node, &r, "/metrics");
    const char *found = strstr(r.body.ptr, line);
    CHECK(found, "%.*s", SLICE_ARG(r.body));
    return strtoll(found + strlen(line), NULL, 10);
}

/* There may be very many that somebody will come back to some day. */
static void what_is_elsewhere_takes_no_memory(void **state)
{
    enum { TASKS = 30 };
    int64_t until = steady_ms() + PATIENCE_MS;
    char *tokens[TASKS];
    char id[20];
    REPLY r = {0};
    (void)state;

    define_one("many", "\"undo\": \"none\", \"complete_by\": \"30d\"");
    for (int i = 0; i < TASKS; i++) {
        (void)snprintf(id, sizeof id, "many-%d", i);
        submit(&node, "many", id);
        tokens[i] = next(&r, "many");
        hand_in(&node, "many", "i-1", tokens[i], "\"elsewhere\": true", "accepted");
    }
    while (tasks_in_memory() >= TASKS)
        CHECK(steady_ms() < until, "%" PRId64 " tasks are in memory", tasks_in_memory());
    node_kill(&node);
    node_start(&node, SERVER);
    for (int i = 0; i < TASKS; i++) {
        end_by_token(&r, tokens[i], "{\"output\": 1}");
        EXPECT(&r, 200);
        EXPECT_TEXT(&r, "status", "accepted");
        (void)snprintf(id, sizeof id, "many-%d", i);
        wait_for_state(&node, id, "processed");
        free(tokens[i]);
    }
}

static void an_error_by_token_is_one_like_any_other(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("refused", "\"undo\": \"none\"");
    submit(&node, "refused", "refused-1");
    char *first = next(&r, "refused"); /* not elsewhere: any current attempt can be ended so */
    end_by_token(&r, first,
                 "{\"error\": {\"code\": \"busy\", \"message\": \"not today\", "
                 "\"effect\": \"none\", \"resume\": {\"by\": \"hand\"}}}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "status", "accepted");
    hand_in(&node, "refused", "i-1", first, "\"output\": 1", "repeated");
    char *second = next(&r, "refused");
    EXPECT_TEXT(&r, "requests.0.resume.by", "hand");
    end_by_token(&r, second,
                 "{\"error\": {\"code\": \"no\", \"retryable\": false}, \"output\": null}");
    EXPECT_TEXT(&r, "status", "accepted");
    task_of(&node, &r, "refused-1");
    EXPECT_TEXT(&r, "state", "compensated");
    EXPECT_TEXT(&r, "steps.0.attempts.0.error.message", "not today");
    EXPECT_TEXT(&r, "steps.0.attempts.0.effect", "none");
    free(first);
    free(second);
}

static void what_is_elsewhere_ends_at_its_complete_by(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("late", "\"undo\": \"none\", \"complete_by\": \"1s\"");
    submit(&node, "late", "late-1");
    char *token = next(&r, "late");
    hand(&r, "late", token, "\"elsewhere\": true");
    wait_for_outcome("late-1", 0, "timed_out");
    end_by_token(&r, token, "{\"output\": 5}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "status", "late");
    hand_in(&node, "late", "i-1", token, "\"elsewhere\": true", "late");
    task_of(&node, &r, "late-1");
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "late");
    EXPECT_RAW(&r, "steps.0.attempts.0.output", "5");
    free(token);
}

static void nobody_is_told_to_stop_what_is_elsewhere(void **state)
{
    REPLY r = {0};
    (void)state;

    define_one("back", "\"undo\": {\"action\": \"back\"}, \"complete_by\": \"1h\"");
    submit(&node, "back", "back-1");
    char *token = next(&r, "back");
    hand(&r, "back", token, "\"elsewhere\": true");
    post(&node, &r, "/v1/tasks/back-1/undo", "{\"reason\": \"enough\"}");
    EXPECT(&r, 200);
    hand(&r, "back", token, "\"elsewhere\": true");
    EXPECT_RAW(&r, "stop", "[]");
    beat(&r, "back", token, "");
    EXPECT_RAW(&r, "stop", "[]");
    task_of(&node, &r, "back-1");
    EXPECT_TEXT(&r, "state", "compensating"); /* it waits for it */
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "open");
    end_by_token(&r, token, "{\"output\": 1}");
    EXPECT_TEXT(&r, "status", "accepted");
    free(token);
    token = next(&r, "back");
    EXPECT_TEXT(&r, "requests.0.direction", "undo");
    end_by_token(&r, token, "{\"output\": null}");
    EXPECT_TEXT(&r, "status", "accepted");
    task_of(&node, &r, "back-1");
    EXPECT_TEXT(&r, "state", "compensated");
    free(token);
}

/* ---- mistakes ---- */

static void a_result_that_says_two_things_is_none(void **state)
{
    static const char *const cases[][2] = {
        {"\"elsewhere\": true, \"output\": 1",
         "elsewhere: true means that the result comes later, but this has a result"},
        {"\"elsewhere\": true, \"error\": {\"code\": \"e\"}",
         "elsewhere: true means that the result comes later, but this has a result"},
        {"\"elsewhere\": 1", "elsewhere is a number, expected true"},
        {"\"elsewhere\": \"yes\", \"output\": 1", "elsewhere is a string, expected true"},
        {"\"error\": \"broken\"", "error is a string, expected an object"},
    };
    REPLY r = {0};
    (void)state;

    define_one("two", "\"undo\": \"none\"");
    submit(&node, "two", "two-1");
    char *token = next(&r, "two");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        hand(&r, "two", token, cases[i][0]);
        EXPECT_TEXT(&r, "outcomes.0.status", "unknown");
        EXPECT_TEXT(&r, "outcomes.0.problem", cases[i][1]);
    }
    hand_in(&node, "two", "i-1", token, "\"elsewhere\": false, \"output\": 1", "accepted");
    free(token);
}

static void only_the_token_itself_ends_an_attempt(void **state)
{
    static const char *const others[] = {"x",
                                         "token-1~0~f1~",
                                         "token-1",
                                         "%20",
                                         "nothing~0~f1~AAAAAAAAAAAAAAAAAAAAAA",
                                         "token-1~7~f1~AAAAAAAAAAAAAAAAAAAAAA",
                                         "token-1~0~f9~AAAAAAAAAAAAAAAAAAAAAA"};
    REPLY r = {0};
    (void)state;

    define_one("token", "\"undo\": \"none\"");
    submit(&node, "token", "token-1");
    char *token = next(&r, "token");
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        end_by_token(&r, others[i], "{\"output\": 1}");
        expect_problem(&r, 404, "unknown-attempt");
    }
    for (size_t i = 1; i <= 22; i++) { /* its last character has bits that do not count */
        char *forged = strdup(token);
        assert_non_null(forged);
        char *c = &forged[strlen(forged) - i];
        *c = *c == 'A' ? 'Q' : 'A';
        end_by_token(&r, forged, "{\"output\": 1}");
        expect_problem(&r, 404, "unknown-attempt");
        free(forged);
    }
    task_of(&node, &r, "token-1");
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "open");
    hand_in(&node, "token", "i-1", token, "\"output\": 1", "accepted");
    free(token);
}

/* As versions before tags wrote it: its MAC covers the agent's name. With SQLite: the secret is in
 * a file. */
static char *untagged(const char *fields, const char *agent)
{
    static const char program[] =
        "import sqlite3,hmac,base64,sys\n"
        "db = sqlite3.connect(f'file:{sys.argv[1]}/intact.db?mode=ro', uri=True)\n"
        "(key,) = db.execute(\"SELECT value FROM meta WHERE name = 'secret'\").fetchone()\n"
        "mac = hmac.digest(key, f'{sys.argv[2]}~{sys.argv[3]}'.encode(), 'sha256')[:16]\n"
        "text = base64.urlsafe_b64encode(mac).decode().rstrip('=')\n"
        "print(f'{sys.argv[2]}~{text}', end='')\n";
    CLEANUP(buf_fini) struct buf command = {0};
    char token[200] = "";

    buf_fmt(&command, "python3 - %s '%s' '%s' <<'EOF'\n%sEOF\n", node.data, fields, agent, program);
    FILE *p = popen(command.ptr, "r");
    assert_non_null(p);
    CHECK(fgets(token, sizeof token, p), "no token");
    CHECK(pclose(p) == 0, "python3");
    return strdup(token);
}

static void a_token_of_an_earlier_version_ends_its_attempt(void **state)
{
    CLEANUP(buf_fini) struct buf large = {0};
    REPLY r = {0};
    (void)state;

    if (store_is_postgres())
        skip(); /* its secret is not in a file */
    define_one("old", "\"undo\": \"none\"");
    submit(&node, "old", "old-1");
    free(next(&r, "old"));
    char *token = untagged("old-1~0~f1", "old");
    char *others = untagged("old-1~0~f1", "two");
    end_by_token(&r, others, "{\"output\": 1}");
    expect_problem(&r, 404, "unknown-attempt");
    buf_str(&large, "{\"output\": \"");
    for (int i = 0; i < 17 << 10; i++)
        buf_byte(&large, 'x');
    buf_str(&large, "\"}");
    end_by_token(&r, token, large.ptr);
    expect_problem(&r, 413, "too-big");
    end_by_token(&r, token, "{\"output\": 1}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "status", "accepted");
    wait_for_state(&node, "old-1", "processed");
    free(token);
    free(others);
}

static void a_bad_body_ends_nothing(void **state)
{
    static const struct {
        const char *body;
        int status;
        const char *type;
    } cases[] = {
        {"{", 400, "not-json"},
        {"", 400, "not-json"},
        {"[]", 422, "not-an-object"},
        {"{}", 422, "bad-result"},
        {"{\"tries\": 3}", 422, "bad-result"},
        {"{\"output\": 1, \"error\": {\"code\": \"e\"}}", 422, "bad-result"},
        {"{\"error\": \"no\"}", 422, "bad-result"},
        {"{\"error\": null}", 422, "bad-result"},
        {"{\"error\": []}", 422, "bad-result"},
        {"{\"ouput\": 1}", 422, "unknown-member"},
        {"{\"output\": 1, \"elsewhere\": true}", 422, "unknown-member"},
        {"{\"output\": 1, \"token\": \"t\"}", 422, "unknown-member"},
    };
    const struct node stranger = as(&node, "");
    REPLY r = {0};
    char path[300];
    (void)state;

    define_one("body", "\"undo\": \"none\"");
    submit(&node, "body", "body-1");
    char *token = next(&r, "body");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        end_by_token(&r, token, cases[i].body);
        expect_problem(&r, cases[i].status, cases[i].type);
    }
    (void)snprintf(path, sizeof path, "/v1/attempts/%s", token);
    send_as(&stranger, &r, "POST", path, "text/plain", SLICE("{\"output\": 1}"));
    expect_problem(&r, 415, "content-type");
    get(&node, &r, "%s", path);
    expect_problem(&r, 405, "method");
    (void)snprintf(path, sizeof path, "/v1/attempts/%s?force=1", token);
    post(&stranger, &r, path, "{\"output\": 1}");
    expect_problem(&r, 422, "unknown-parameter");
    task_of(&node, &r, "body-1");
    EXPECT_TEXT(&r, "steps.0.attempts.0.outcome", "open");
    end_by_token(&r, token, "{\"output\": 1, \"tries\": 0}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "status", "accepted");
    CHECK(*text_at(&r, "problem"), "%.*s", SLICE_ARG(r.body));
    CHECK(!node_log_has(&node, token), "the log has a token");
    free(token);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_silent_attempt_ends_long_before_its_complete_by),
        cmocka_unit_test(what_is_sent_again_is_gone_on_with),
        cmocka_unit_test(heartbeats_keep_an_attempt_going),
        cmocka_unit_test(an_undo_may_not_be_silent_either),
        cmocka_unit_test(a_restart_begins_the_silence_anew),
        cmocka_unit_test(a_failure_leaves_details_for_the_next_try),
        cmocka_unit_test(a_bad_detail_does_not_cost_the_result),
        cmocka_unit_test(what_is_elsewhere_is_ended_by_its_token),
        cmocka_unit_test(what_is_elsewhere_takes_no_memory),
        cmocka_unit_test(an_error_by_token_is_one_like_any_other),
        cmocka_unit_test(what_is_elsewhere_ends_at_its_complete_by),
        cmocka_unit_test(nobody_is_told_to_stop_what_is_elsewhere),
        cmocka_unit_test(a_result_that_says_two_things_is_none),
        cmocka_unit_test(only_the_token_itself_ends_an_attempt),
        cmocka_unit_test(a_token_of_an_earlier_version_ends_its_attempt),
        cmocka_unit_test(a_bad_body_ends_nothing),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
