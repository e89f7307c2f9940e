/* Tests of the verbs of operators over HTTP, on one task: retry, skip, undo, correct, resolve,
 * pause and others. operations_test.c has operations on many tasks. */

#include <stdlib.h>
#include <unistd.h>

#include "kit.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    (void)define(&node, "held",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
                 "\"action\": \"x\", \"undo\": {\"action\": \"unx\"}}, {\"name\": \"b\", "
                 "\"agent\": \"ag\", \"action\": \"y\", \"input\": \"${ .steps.a.output }\", "
                 "\"undo\": {\"action\": \"uny\"}}], \"output\": \"${ .steps.b.output }\"");
    return 0;
}

static void fail_step(const char *code)
{
    REPLY r = {0};
    CLEANUP(buf_fini) struct buf b = {0};

    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    buf_fmt(&b, "\"error\": {\"code\": \"%s\", \"message\": \"why\", \"retryable\": false}", code);
    hand_in(&node, "ag", "i", token, b.ptr, "accepted");
    free(token);
}

static void operate(struct reply *ret, const char *id, const char *verb, const char *body)
{
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/%s", id, verb);
    post(&node, ret, path, "%s", body);
}

static void a_task_in_error_is_retried_where_it_stopped(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "retried");
    serve_step(&node, "ag", "i", "1");
    fail_step("broken");
    task_of(&node, &r, "retried");
    EXPECT_TEXT(&r, "state", "error");
    EXPECT_TEXT(&r, "error.code", "broken");
    EXPECT_TEXT(&r, "error.message", "why");
    assert_true(node_log_has(&node, "event=operator_needed task=retried"));
    operate(&r, "retried", "retry", "{\"reason\": \"mended\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "id", "retried");
    EXPECT_TEXT(&r, "direction", "forward");
    operate(&r, "retried", "retry", "{\"reason\": \"again\"}");
    expect_problem(&r, 409, "conflict");
    fetch(&node, &r, "ag", "i");
    EXPECT_TEXT(&r, "requests.0.step", "b");
    EXPECT_INT(&r, "requests.0.attempt", 2);
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token, "\"output\": 2", "accepted");
    free(token);
    task_of(&node, &r, "retried");
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_INT(&r, "output", 2);
    EXPECT_RAW(&r, "error", "null");
}

static void a_step_is_skipped_with_an_output_for_those_after_it(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "skipped");
    fail_step("broken");
    operate(&r, "skipped", "skip",
            "{\"step\": \"a\", \"output\": {\"by\": \"hand\"}, \"reason\": \"done\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "steps.0.state", "skipped");
    fetch(&node, &r, "ag", "i");
    EXPECT_TEXT(&r, "requests.0.step", "b");
    EXPECT_TEXT(&r, "requests.0.input.by", "hand");
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token, "\"output\": 3", "accepted");
    free(token);
    wait_for_state(&node, "skipped", "processed");
}

static void a_task_in_error_is_undone(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "undone");
    serve_step(&node, "ag", "i", "1");
    fail_step("broken");
    operate(&r, "undone", "undo", "{\"reason\": \"customer left\"}");
    assert_true(node_log_has(&node, "verb=undo task=undone step= reason=\"customer left\""));
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "direction", "undo");
    fetch(&node, &r, "ag", "i");
    EXPECT_TEXT(&r, "requests.0.action", "unx");
    char *token = token_in(&r, 0);
    operate(&r, "undone", "undo", "{\"reason\": \"twice\"}");
    EXPECT(&r, 200); /* it is being undone already */
    operate(&r, "undone", "retry", "{\"reason\": \"too early\"}");
    expect_problem(&r, 409, "conflict");
    hand_in(&node, "ag", "i", token, "\"output\": null", "accepted");
    free(token);
    task_of(&node, &r, "undone");
    EXPECT_TEXT(&r, "state", "compensated");
    EXPECT_TEXT(&r, "steps.0.state", "undone");
}

static void undo_of_what_never_began_ends_at_once(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"held\", \"id\": \"early\", \"not_before\": \"2199-01-01T00:00:00Z\"}");
    EXPECT(&r, 201);
    operate(&r, "early", "undo", "{\"reason\": \"not wanted\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "compensated");
    static const char *const verbs[] = {"undo", "retry"};
    for (size_t i = 0; i < COUNT_OF(verbs); i++) { /* the end is the end */
        operate(&r, "early", verbs[i], "{\"reason\": \"x\"}");
        expect_problem(&r, 409, "conflict");
    }
    operate(&r, "early", "skip", "{\"step\": \"a\", \"reason\": \"x\"}");
    expect_problem(&r, 409, "conflict");
}

static void operations_that_are_wrong_are_refused(void **state)
{
    static const struct {
        const char *verb, *body;
        int status;
        const char *type;
    } cases[] = {
        {"retry", "{}", 422, "no-reason"},
        {"retry", "{\"reason\": 5}", 422, "no-reason"},
        {"retry", "{\"reason\": \"\"}", 422, "no-reason"},
        {"retry", "{\"reason\": \"x\", \"step\": 5}", 422, "bad-step"},
        {"undo", "{\"reason\": \"x\", \"step\": []}", 422, "bad-step"},
        {"skip", "{\"reason\": \"x\"}", 422, "no-step"},
        {"skip", "{\"reason\": \"x\", \"step\": null}", 422, "no-step"},
        {"retry", "{\"reason\": \"x\", \"stepp\": \"a\"}", 422, "unknown-member"},
        {"retry", "[]", 422, "not-an-object"},
        {"retry", "{", 400, "not-json"},
        {"retry", "{\"reason\": \"x\", \"step\": \"nosuch\"}", 422, "bad-step"},
        {"skip", "{\"reason\": \"x\", \"step\": \"nosuch\"}", 422, "bad-step"},
        {"retry", "{\"reason\": \"x\"}", 409, "conflict"},
    };
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"held\", \"id\": \"wrong\", \"not_before\": \"2199-01-01T00:00:00Z\"}");
    EXPECT(&r, 201);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        operate(&r, "wrong", cases[i].verb, cases[i].body);
        CHECK(r.status == cases[i].status, "%s %s: %d %.*s", cases[i].verb, cases[i].body, r.status,
              SLICE_ARG(r.body));
        expect_problem(&r, cases[i].status, cases[i].type);
    }
    operate(&r, "nobody", "retry", "{\"reason\": \"x\"}");
    expect_problem(&r, 404, "no-such-task");
    send_as(&node, &r, "POST", "/v1/tasks/wrong/retry", "text/plain", SLICE("{}"));
    expect_problem(&r, 415, "content-type");
    task_of(&node, &r, "wrong");
    EXPECT_TEXT(&r, "state", "pending");
}

/* ---- cancel: the submitter's hand ---- */

static void a_task_that_waits_is_cancelled(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "unwanted");
    operate(&r, "unwanted", "cancel", "{\"reason\": \"ordered twice\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "compensated");
    EXPECT_TEXT(&r, "error.code", "cancelled");
    EXPECT_TEXT(&r, "error.message", "ordered twice");
    EXPECT_RAW(&r, "steps.0.attempts", "[]");
    operate(&r, "unwanted", "cancel", "{\"reason\": \"to be sure\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "compensated");
    EXPECT_TEXT(&r, "error.message", "ordered twice");
}

static void a_task_that_runs_is_undone_by_a_cancel(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "half");
    serve_step(&node, "ag", "i", "1");
    fetch(&node, &r, "ag", "i");
    EXPECT_TEXT(&r, "requests.0.step", "b");
    char *token = token_in(&r, 0);
    operate(&r, "half", "cancel", "{\"reason\": \"never mind\"}");
    EXPECT(&r, 200);
    operate(&r, "half", "cancel", "{\"reason\": \"never mind\"}");
    EXPECT(&r, 200);
    hand_in(&node, "ag", "i", token, "\"error\": {\"retryable\": false}", "accepted");
    free(token);
    fetch(&node, &r, "ag", "i");
    EXPECT_TEXT(&r, "requests.0.step", "a");
    EXPECT_TEXT(&r, "requests.0.direction", "undo");
    token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token, "\"output\": null", "accepted");
    free(token);
    wait_for_state(&node, "half", "compensated");
}

static void expect_detail(const struct reply *r, const char *says)
{
    CHECK(strstr(text_at(r, "detail"), says), "expected \"%s\": %s", says, text_at(r, "detail"));
}

static void what_is_over_or_needs_a_person_is_not_cancelled(void **state)
{
    REPLY r = {0};
    (void)state;

    operate(&r, "nobody-s", "cancel", "{\"reason\": \"x\"}");
    EXPECT(&r, 404);
    operate(&r, "unwanted", "cancel", "{}");
    expect_problem(&r, 422, "no-reason");
    operate(&r, "unwanted", "cancel", "{\"reason\": \"x\", \"step\": \"a\"}");
    expect_problem(&r, 422, "no-single-step");
    operate(&r, "unwanted", "cancel", "{\"reason\": \"x\", \"output\": 1}");
    expect_problem(&r, 422, "no-output");
    submit(&node, "held", "whole");
    serve_step(&node, "ag", "i", "1");
    serve_step(&node, "ag", "i", "2");
    wait_for_state(&node, "whole", "processed");
    operate(&r, "whole", "cancel", "{\"reason\": \"too late\"}");
    expect_problem(&r, 409, "conflict");
    expect_detail(&r, "task whole is processed: it is too late to cancel it, but an operator can");
    operate(&r, "unwanted", "undo", "{\"reason\": \"again\"}");
    expect_problem(&r, 409, "conflict");
    CHECK(strcmp(text_at(&r, "detail"), "not possible while task unwanted is compensated") == 0,
          "%s", text_at(&r, "detail"));
    submit(&node, "held", "stuck");
    fail_step("broken");
    wait_for_state(&node, "stuck", "error");
    operate(&r, "stuck", "cancel", "{\"reason\": \"not mine\"}");
    expect_problem(&r, 409, "conflict");
    task_of(&node, &r, "stuck");
    EXPECT_TEXT(&r, "state", "error");
    EXPECT_TEXT(&r, "error.code", "broken");
}

static void a_completed_pivot_refuses_a_cancel(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "final",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"pivot\": true}, {\"name\": \"b\", \"agent\": \"ag\", \"action\": \"y\", "
                 "\"undo\": \"none\"}]");
    submit(&node, "final", "gone");
    serve_step(&node, "ag", "i", "1");
    operate(&r, "gone", "cancel", "{\"reason\": \"too late\"}");
    expect_problem(&r, 409, "conflict");
    serve_step(&node, "ag", "i", "2");
    wait_for_state(&node, "gone", "processed");
    operate(&r, "gone", "cancel", "{\"reason\": \"too late\"}");
    expect_problem(&r, 409, "conflict");
    expect_detail(&r, "step \"a\" is a pivot that took effect");
}

/* ---- another input, an output by hand, from a step on ---- */

static char *fetched(struct reply *r, const char *step, const char *key)
{
    fetch(&node, r, "ag", "i");
    EXPECT_TEXT(r, "requests.0.step", step);
    EXPECT_TEXT(r, "requests.0.idempotency_key", key);
    return token_in(r, 0);
}

static void a_corrected_input_has_a_key_of_its_own(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "corrected");
    serve_step(&node, "ag", "i", "1");
    fail_step("bad-card");
    operate(&r, "corrected", "correct",
            "{\"step\": \"b\", \"input\": {\"card\": \"new\"}, \"reason\": \"replaced\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "error"); /* it says so, and nothing more */
    EXPECT_TEXT(&r, "steps.1.input.card", "new");
    EXPECT_INT(&r, "steps.1.key_generation", 2);
    EXPECT_TEXT(&r, "operations.0.verb", "correct");
    EXPECT_INT(&r, "operations.0.detail.before", 1);
    EXPECT_TEXT(&r, "operations.0.detail.after.card", "new");
    operate(&r, "corrected", "correct",
            "{\"step\": \"b\", \"input\": {\"card\": \"new\"}, \"reason\": \"once more\"}");
    EXPECT(&r, 200); /* it is so already */
    EXPECT_INT(&r, "steps.1.key_generation", 2);
    operate(&r, "corrected", "retry", "{\"reason\": \"go\"}");
    EXPECT(&r, 200);
    char *token = fetched(&r, "b", "corrected/b~2");
    EXPECT_TEXT(&r, "requests.0.input.card", "new");
    operate(&r, "corrected", "correct", "{\"step\": \"b\", \"input\": 1, \"reason\": \"late\"}");
    expect_problem(&r, 409, "conflict");
    expect_detail(&r, "step \"b\" is running");
    hand_in(&node, "ag", "i", token, "\"output\": 2", "accepted");
    free(token);
    wait_for_state(&node, "corrected", "processed");
    task_of(&node, &r, "corrected");
    EXPECT_INT(&r, "steps.1.attempts.1.key_generation", 2);
}

static void what_is_in_doubt_keeps_its_input(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "doubtful");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token,
            "\"error\": {\"code\": \"lost\", \"retryable\": false, \"effect\": \"unknown\"}",
            "accepted");
    free(token);
    wait_for_state(&node, "doubtful", "error");
    operate(&r, "doubtful", "correct", "{\"step\": \"a\", \"input\": 1, \"reason\": \"x\"}");
    expect_problem(&r, 409, "conflict");
    expect_detail(&r, "step \"a\" is in doubt");
    operate(&r, "doubtful", "retry", "{\"from\": \"a\", \"reason\": \"x\"}");
    expect_problem(&r, 409, "conflict");
    operate(&r, "doubtful", "supply",
            "{\"step\": \"a\", \"output\": {\"id\": 7}, \"reason\": \"found at the bank\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "steps.0.state", "completed");
    EXPECT_RAW(&r, "steps.0.supplied", "true");
    EXPECT_RAW(&r, "steps.0.in_doubt", "false");
    token = fetched(&r, "b", "doubtful/b");
    EXPECT_INT(&r, "requests.0.input.id", 7);
    hand_in(&node, "ag", "i", token, "\"error\": {\"code\": \"no\", \"retryable\": false}",
            "accepted");
    free(token);
    wait_for_state(&node, "doubtful", "error");
    operate(&r, "doubtful", "retry", "{\"from\": \"a\", \"reason\": \"x\"}");
    expect_problem(&r, 409, "conflict");
    expect_detail(&r, "effects can only be reverted by undo; these steps took effect: \"a\"");
    operate(&r, "doubtful", "undo", "{\"reason\": \"x\"}");
    EXPECT(&r, 200);
    fetch(&node, &r, "ag", "i"); /* after the margin: what it did is compensated */
    EXPECT_TEXT(&r, "requests.0.action", "unx");
    EXPECT_INT(&r, "requests.0.forward.output.id", 7);
    token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token, "\"output\": null", "accepted");
    free(token);
    wait_for_state(&node, "doubtful", "compensated");
}

static void lose_step(void)
{
    REPLY r = {0};

    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token,
            "\"error\": {\"code\": \"lost\", \"retryable\": false, \"effect\": \"unknown\"}",
            "accepted");
    free(token);
}

#define NOTHING_HAPPENED_BY(step, attempt)                                      \
    "{\"step\": \"" step "\", \"effect\": \"none\", \"attempt\": " attempt ", " \
    "\"reason\": \"no parcel has left\"}"
#define NOTHING_HAPPENED(step) \
    "{\"step\": \"" step "\", \"effect\": \"none\", \"reason\": \"no parcel has left\"}"

/* As soon as it may: nothing comes of the attempt any more once its complete-by and the margin are
 * over. An operator who inspected the first attempt alone says nothing of the second one. */
static void resolve(struct reply *r, const char *id)
{
    for (int i = 0; i < 600; i++) {
        operate(r, id, "resolve", NOTHING_HAPPENED_BY("b", "1"));
        expect_problem(r, 409, "conflict");
        if (!strstr(text_at(r, "detail"), "may still take effect until ")) {
            expect_detail(r, "the latest attempt of step \"b\" is number 2: inspect that attempt");
            operate(r, id, "resolve", NOTHING_HAPPENED_BY("b", "2"));
            EXPECT(r, 200);
            return;
        }
        (void)usleep(50000);
    }
    CHECK(false, "%s", text_at(r, "detail"));
}

static void a_pivot_that_was_lost_and_refused_is_resolved(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "ships",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"undo\": {\"action\": \"unx\"}}, {\"name\": \"b\", \"agent\": \"ag\", "
                 "\"action\": \"y\", \"pivot\": true, \"complete_by\": \"2s\"}]");
    submit(&node, "ships", "lost");
    serve_step(&node, "ag", "i", "1");
    lose_step();
    wait_for_state(&node, "lost", "error");
    operate(&r, "lost", "retry", "{\"reason\": \"once more\"}");
    fail_step("no-such-address");
    wait_for_state(&node, "lost", "error");
    operate(&r, "lost", "undo", "{\"reason\": \"x\"}");
    expect_problem(&r, 409, "conflict");
    expect_detail(&r, "is a pivot that may have taken effect: find out");
    resolve(&r, "lost");
    EXPECT_TEXT(&r, "state", "error"); /* it says so, and nothing more */
    EXPECT_INT(&r, "steps.1.resolved", 2);
    EXPECT_RAW(&r, "steps.1.in_doubt", "false");
    EXPECT_TEXT(&r, "steps.1.attempts.0.effect", "unknown"); /* as it was known */
    EXPECT_TEXT(&r, "operations.1.verb", "resolve");
    EXPECT_TEXT(&r, "operations.1.step", "b");
    EXPECT_TEXT(&r, "operations.1.reason", "no parcel has left");
    EXPECT_TEXT(&r, "operations.1.detail.before", "unknown");
    EXPECT_TEXT(&r, "operations.1.detail.after", "none");
    EXPECT_INT(&r, "operations.1.detail.attempt", 2);
    operate(&r, "lost", "resolve", NOTHING_HAPPENED("b"));
    EXPECT(&r, 200); /* it is so already */
    node_kill(&node);
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    operate(&r, "lost", "undo", "{\"reason\": \"not to be had\"}");
    EXPECT(&r, 200);
    fetch(&node, &r, "ag", "i");
    EXPECT_TEXT(&r, "requests.0.action", "unx");
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token, "\"output\": null", "accepted");
    free(token);
    wait_for_state(&node, "lost", "compensated");
}

static void what_is_not_in_doubt_is_not_resolved(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "certain");
    operate(&r, "certain", "resolve", NOTHING_HAPPENED("a"));
    expect_problem(&r, 409, "conflict");
    expect_detail(&r, "step \"a\" is not in doubt: there is nothing to resolve");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    operate(&r, "certain", "resolve", NOTHING_HAPPENED("a"));
    expect_problem(&r, 409, "conflict");
    expect_detail(&r, "step \"a\" is running");
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
    operate(&r, "certain", "resolve", NOTHING_HAPPENED("a"));
    expect_problem(&r, 409, "conflict");
    operate(&r, "certain", "resolve", NOTHING_HAPPENED("none"));
    expect_problem(&r, 422, "bad-step");
    lose_step();
    wait_for_state(&node, "certain", "error");
    operate(&r, "certain", "resolve", NOTHING_HAPPENED("b"));
    expect_problem(&r, 409, "conflict"); /* it has 30 seconds */
    expect_detail(&r, "an attempt of step \"b\" may still take effect until ");
    operate(&r, "certain", "cancel", "{\"reason\": \"over\"}");
}

static void it_starts_anew_from_a_step_on(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "asked",
                 "\"on_failure\": \"hold\", \"inputs\": {\"sum\": {\"type\": \"integer\", "
                 "\"required\": true}}, \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
                 "\"action\": \"x\", \"undo\": \"none\"}, {\"name\": \"b\", \"agent\": \"ag\", "
                 "\"action\": \"y\", \"undo\": \"none\"}]");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"asked\", \"id\": \"anew\", \"input\": {\"sum\": 1}}");
    EXPECT(&r, 201);
    serve_step(&node, "ag", "i", "1");
    fail_step("too-little");
    wait_for_state(&node, "anew", "error");
    operate(&r, "anew", "correct", "{\"input\": {\"sum\": \"two\"}, \"reason\": \"x\"}");
    expect_problem(&r, 422, "bad-input");
    operate(&r, "anew", "correct", "{\"input\": {\"sum\": 2}, \"reason\": \"x\"}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "input.sum", 2);
    operate(&r, "anew", "retry", "{\"from\": \"a\", \"step\": \"a\", \"reason\": \"x\"}");
    expect_problem(&r, 422, "bad-step");
    operate(&r, "anew", "retry", "{\"from\": \"a\", \"reason\": \"the sum was wrong\"}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "operations.1.detail.from", "true");
    char *token = fetched(&r, "a", "anew/a~2");
    EXPECT_INT(&r, "requests.0.input.sum", 2);
    EXPECT_INT(&r, "requests.0.attempt", 2);
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
    token = fetched(&r, "b", "anew/b~2");
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
    wait_for_state(&node, "anew", "processed");
}

/* ---- the whole of it ---- */

static void a_paused_task_waits_until_it_is_resumed(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "paused");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    operate(&r, "paused", "pause", "{\"reason\": \"stock taking\"}");
    EXPECT(&r, 200);
    CHECK(text_at(&r, "paused_at"), "it says since when");
    operate(&r, "paused", "pause", "{\"reason\": \"twice\"}");
    EXPECT(&r, 200);
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted"); /* it may end */
    free(token);
    get(&node, &r, "/v1/tasks?paused=true");
    EXPECT_TEXT(&r, "tasks.0.id", "paused");
    get(&node, &r, "/v1/tasks/paused");
    EXPECT_TEXT(&r, "steps.0.state", "completed");
    EXPECT_TEXT(&r, "steps.1.state", "waiting");
    EXPECT_RAW(&r, "waiting_for", "null");
    get(&node, &r, "/v1/tasks/paused/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "paused");
    node_kill(&node); /* it stays so */
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    post(&node, &r, "/v1/agents/ag/work", "{\"instance\": \"i\", \"max\": 1, \"wait\": \"300ms\"}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "requests", "[]");
    operate(&r, "paused", "resume", "{\"reason\": \"done\"}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "paused_at", "null");
    serve_step(&node, "ag", "i", "2");
    wait_for_state(&node, "paused", "processed");
    operate(&r, "paused", "pause", "{\"reason\": \"late\"}");
    expect_problem(&r, 409, "conflict");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"held\", \"id\": \"later\", \"paused\": true}");
    EXPECT(&r, 201);
    operate(&r, "later", "undo", "{\"reason\": \"not wanted\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "compensated");
}

static void a_closed_task_is_left_alone(void **state)
{
    static const char *const verbs[] = {"retry", "undo"};
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "closed");
    operate(&r, "closed", "close", "{\"reason\": \"too early\"}");
    expect_problem(&r, 409, "conflict");
    fail_step("broken");
    wait_for_state(&node, "closed", "error");
    operate(&r, "closed", "close", "{\"reason\": \"settled\"}");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "error");
    EXPECT_TEXT(&r, "closed_reason", "settled");
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        operate(&r, "closed", verbs[i], "{\"reason\": \"x\"}");
        expect_problem(&r, 409, "conflict");
        expect_detail(&r, "was closed; reopen it first");
    }
    get(&node, &r, "/v1/tasks?state=error&closed=true");
    EXPECT_TEXT(&r, "tasks.0.id", "closed");
    get(&node, &r, "/v1/tasks/closed/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "closed");
    operate(&r, "closed", "reopen", "{\"reason\": \"it was not\"}");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "closed_at", "null");
    EXPECT_RAW(&r, "closed_reason", "null");
    operate(&r, "closed", "undo", "{\"reason\": \"x\"}");
    EXPECT(&r, 200);
    wait_for_state(&node, "closed", "compensated");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_in_error_is_retried_where_it_stopped),
        cmocka_unit_test(a_step_is_skipped_with_an_output_for_those_after_it),
        cmocka_unit_test(a_task_in_error_is_undone),
        cmocka_unit_test(undo_of_what_never_began_ends_at_once),
        cmocka_unit_test(operations_that_are_wrong_are_refused),
        cmocka_unit_test(a_task_that_waits_is_cancelled),
        cmocka_unit_test(a_task_that_runs_is_undone_by_a_cancel),
        cmocka_unit_test(what_is_over_or_needs_a_person_is_not_cancelled),
        cmocka_unit_test(a_completed_pivot_refuses_a_cancel),
        cmocka_unit_test(a_corrected_input_has_a_key_of_its_own),
        cmocka_unit_test(what_is_in_doubt_keeps_its_input),
        cmocka_unit_test(a_pivot_that_was_lost_and_refused_is_resolved),
        cmocka_unit_test(what_is_not_in_doubt_is_not_resolved),
        cmocka_unit_test(it_starts_anew_from_a_step_on),
        cmocka_unit_test(a_paused_task_waits_until_it_is_resumed),
        cmocka_unit_test(a_closed_task_is_left_alone),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
