/* Tasks of many steps, most of which are stored in groups beside the document: every operation on
 * such a task finds each step unchanged, also after kills. */

#include <sqlite3.h>
#include <stdlib.h>

#include "kit.h"

enum { STEPS = 24 };

#define SERVER FLAGS("--scan-every", "100ms", "--grace", "500ms")
#define ONCE   "\"retry\": {\"attempts\": 1}, "

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, SERVER);
    define_long(&node, "back", STEPS, ONCE "\"undo\": {\"action\": \"unx\"}", "");
    define_long(&node, "held", STEPS, ONCE "\"undo\": \"none\"", "\"on_failure\": \"hold\", ");
    return 0;
}

static void kill_and_start(void)
{
    node_kill(&node);
    node_start(&node, SERVER);
}

/* What that step answers: long enough that a few of them are worth a group. */
static const char *output_of(int step)
{
    static char text[500];

    (void)snprintf(text, sizeof text, "\"%0400d\"", step);
    return text;
}

static void expect_output(const struct reply *r, int step)
{
    char path[40];

    (void)snprintf(path, sizeof path, "steps.%d.output", step);
    EXPECT_RAW(r, path, output_of(step));
}

static void expect_state(const struct reply *r, int step, const char *state)
{
    char path[40];

    (void)snprintf(path, sizeof path, "steps.%d.state", step);
    EXPECT_TEXT(r, path, state);
}

/* The next request, which must be of that step. */
static char *next(struct reply *r, int step, const char *direction)
{
    char name[12];

    (void)snprintf(name, sizeof name, "s%d", step);
    fetch(&node, r, "ag", "i");
    EXPECT_TEXT(r, "requests.0.step", name);
    EXPECT_TEXT(r, "requests.0.direction", direction);
    return token_in(r, 0);
}

static void serve(int step)
{
    CLEANUP(buf_fini) struct buf result = {0};
    REPLY r = {0};

    char *token = next(&r, step, "forward");
    buf_fmt(&result, "\"output\": %s", output_of(step));
    hand_in(&node, "ag", "i", token, result.ptr, "accepted");
    free(token);
}

static void refuse(int step)
{
    REPLY r = {0};

    char *token = next(&r, step, "forward");
    hand_in(&node, "ag", "i", token, "\"error\": {\"code\": \"no\", \"retryable\": false}",
            "accepted");
    free(token);
}

static void undo(int step)
{
    REPLY r = {0};

    char *token = next(&r, step, "undo");
    EXPECT_RAW(&r, "requests.0.forward.output", output_of(step));
    hand_in(&node, "ag", "i", token, "\"output\": null", "accepted");
    free(token);
}

static void operate(const char *id, const char *verb, const char *body)
{
    char path[100];
    REPLY r = {0};

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/%s", id, verb);
    post(&node, &r, path, "%s", body);
    EXPECT(&r, 200);
}

static void is_grouped(const char *id)
{
    char query[160];

    (void)snprintf(query, sizeof query,
                   "SELECT count(*) FROM task WHERE id = '%s' AND doc LIKE '{\"grouped\":true,%%'",
                   id);
    CHECK(sql_int(&node, query) == 1, "%s has groups", id);
}

static void a_task_goes_back_over_steps_that_rest(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "back", "back");
    for (int i = 0; i < STEPS - 2; i++)
        serve(i);
    is_grouped("back");
    kill_and_start();
    refuse(STEPS - 2);
    for (int i = STEPS - 3; i >= 0; i--) {
        if (i == STEPS / 2)
            kill_and_start();
        undo(i);
    }
    wait_for_state(&node, "back", "compensated");
    task_of(&node, &r, "back");
    for (int i = 0; i < STEPS - 2; i++) {
        expect_state(&r, i, "undone");
        expect_output(&r, i);
    }
    expect_state(&r, STEPS - 1, "waiting");
}

static void steps_that_rest_start_anew(void **state)
{
    enum { FROM = 5, LAST = STEPS - 4 };
    char path[60];
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "anew");
    for (int i = 0; i < LAST; i++)
        serve(i);
    refuse(LAST);
    wait_for_state(&node, "anew", "error");
    is_grouped("anew");
    kill_and_start();
    operate("anew", "retry", "{\"from\": \"s5\", \"reason\": \"r\"}");
    kill_and_start();
    for (int i = FROM; i < STEPS; i++) {
        serve(i);
        if (i == STEPS / 2)
            kill_and_start();
    }
    wait_for_state(&node, "anew", "processed");
    task_of(&node, &r, "anew");
    for (int i = 0; i < STEPS; i++) {
        expect_output(&r, i);
        (void)snprintf(path, sizeof path, "steps.%d.attempts.1.outcome", i);
        EXPECT_TEXT(&r, path, i >= FROM && i <= LAST ? "completed" : "");
    }
}

static void a_step_that_rests_is_corrected_or_skipped(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "mended");
    for (int i = 0; i < 3; i++)
        serve(i);
    is_grouped("mended");
    kill_and_start();
    operate("mended", "skip", "{\"step\": \"s12\", \"reason\": \"r\"}");
    operate("mended", "correct", "{\"step\": \"s13\", \"input\": {\"n\": 1}, \"reason\": \"r\"}");
    operate("mended", "supply", "{\"step\": \"s14\", \"output\": 14, \"reason\": \"r\"}");
    kill_and_start();
    for (int i = 3; i < 12; i++)
        serve(i);
    char *token = next(&r, 13, "forward");
    EXPECT_RAW(&r, "requests.0.input", "{\"n\": 1}");
    hand_in(&node, "ag", "i", token, "\"output\": 13", "accepted");
    free(token);
    for (int i = 15; i < STEPS; i++)
        serve(i);
    wait_for_state(&node, "mended", "processed");
    task_of(&node, &r, "mended");
    expect_state(&r, 12, "skipped");
    expect_state(&r, 14, "completed");
    EXPECT_RAW(&r, "steps.14.output", "14");
}

static void execute(const char *text)
{
    char path[100];
    char *why = NULL;
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, "%s", path);
    CHECK(sqlite3_exec(db, text, NULL, NULL, &why) == SQLITE_OK, "%s", why);
    CHECK(sqlite3_close(db) == SQLITE_OK, "close");
}

static void a_damaged_group_is_told_of_and_holds_up_nobody_else(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "held", "damaged");
    for (int i = 0; i < 8; i++)
        serve(i);
    is_grouped("damaged");
    node_kill(&node);
    execute("UPDATE payload SET json = substr(json, 1, 99) WHERE key / 1048576 = "
            "(SELECT seq FROM task WHERE id = 'damaged')");
    node_start(&node, SERVER);
    get(&node, &r, "/v1/tasks/damaged");
    expect_problem(&r, 500, "task-unreadable");
    CHECK(memmem(r.body.ptr, r.body.len, "wrong: a group of steps", 23), "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/tasks/damaged/why");
    EXPECT(&r, 500);
    get(&node, &r, "/v1/tasks?workflow=held");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks/damaged/retry", "{\"reason\": \"r\"}");
    EXPECT(&r, 500);
    submit(&node, "held", "after");
    for (int i = 0; i < STEPS; i++)
        serve(i);
    wait_for_state(&node, "after", "processed");
    CHECK(node_log_has(&node, "event=task_unreadable task=damaged"), "it is logged");
}

static int64_t metric(const char *name)
{
    REPLY r = {0};

    get(&node, &r, "/metrics");
    const char *line = memmem(r.body.ptr, r.body.len, name, strlen(name));
    CHECK(line, "%s", name);
    return strtoll(line + strlen(name), NULL, 10);
}

static int lines_of(const char *text)
{
    FILE *f = fopen(node.log, "re");
    char line[2000];
    int count = 0;

    CHECK(f, "%s", node.log);
    while (fgets(line, sizeof line, f))
        count += strstr(line, text) != NULL;
    (void)fclose(f);
    return count;
}

/* A node that is not upgraded yet meets all that newer ones have written. */
static void many_of_a_newer_form_do_not_fill_the_log(void **state)
{
    enum { TASKS = 300 };
    static const char total[] = "\nintact_tasks_unreadable_total ";
    char id[20];
    REPLY r = {0};
    (void)state;

    (void)define(&node, "newer",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"new\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    for (int i = 0; i < TASKS; i++) {
        (void)snprintf(id, sizeof id, "newer-%d", i);
        submit(&node, "newer", id);
    }
    node_kill(&node);
    execute("UPDATE task SET doc = replace(doc, '\"waiting\"', '\"dreaming\"'), wake_at = 1 "
            "WHERE workflow = 'newer'");
    node_start(&node, SERVER);
    submit(&node, "newer", "older");
    fetch(&node, &r, "new", "i"); /* it goes on with what it can read */
    CHECK(strstr(text_at(&r, "requests.0.task"), "older"), "%.*s", SLICE_ARG(r.body));
    for (int64_t until = steady_ms() + PATIENCE_MS; metric(total) < 2 * TASKS; sleep_ms(20))
        CHECK(steady_ms() < until, "%" PRId64 " are counted", metric(total));
    CHECK(lines_of("event=task_unreadable") < TASKS / 2, "%d lines",
          lines_of("event=task_unreadable"));
    CHECK(lines_of("event=task_unreadable task=newer-") > 0, "some are named");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_goes_back_over_steps_that_rest),
        cmocka_unit_test(steps_that_rest_start_anew),
        cmocka_unit_test(a_step_that_rests_is_corrected_or_skipped),
    };
    const struct CMUnitTest of_sqlite[] = {
        cmocka_unit_test(a_damaged_group_is_told_of_and_holds_up_nobody_else),
        cmocka_unit_test(many_of_a_newer_form_do_not_fill_the_log),
    };
    int failed = cmocka_run_group_tests_name("groups", tests, start, node_end);

    if (!store_is_postgres())
        failed += cmocka_run_group_tests_name("groups-of-sqlite", of_sqlite, start, node_end);
    return failed;
}
