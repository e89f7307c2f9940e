/* Locks, with a real server that is killed again and again: never two tasks of one key at work at
 * once, and whoever waits gets its turn. */

#include <stdlib.h>

#include "base/when.h"
#include "kit.h"

static struct node node;

enum { KEYS = 5, TASKS = 60, KILLS = 6, PAUSE_MS = 400 };

static const char nap[] =
    "\"lock\": {\"key\": \"${ .input.k }\"}, \"steps\": [{\"name\": \"nap\", \"wait\": \"100ms\"}]";
static const char pair[] = "\"lock\": {\"key\": \"${ .input.k }\", \"max\": 2},"
                           " \"steps\": [{\"name\": \"nap\", \"wait\": \"100ms\"}]";
static const char order[] =
    "\"lock\": {\"key\": \"${ .input.k }\"}, \"on_failure\": \"hold\", \"steps\": ["
    "{\"name\": \"pay\", \"agent\": \"ag\", \"action\": \"pay\", \"undo\": {\"action\": "
    "\"back\"}}]";
static const char once[] =
    "\"lock\": {\"key\": \"${ .input.k }\", \"if_taken\": \"refuse\"}, \"steps\": ["
    "{\"name\": \"pay\", \"agent\": \"ag\", \"action\": \"pay\", \"undo\": {\"action\": "
    "\"back\"}}]";

static const char stuck[] =
    "\"lock\": {\"key\": \"${ .input.k }\"}, \"on_failure\": \"hold\", \"steps\": ["
    "{\"name\": \"nap\", \"wait\": {\"until\": \"${ .input.at }\"}}]";

static const char newest[] =
    "\"lock\": {\"key\": \"${ .input.k }\", \"if_taken\": \"replace\"}, \"steps\": ["
    "{\"name\": \"nap\", \"wait\": \"300ms\"}]";

static void begin(void)
{
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
}

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    (void)define(&node, "nap", nap);
    (void)define(&node, "pair", pair);
    (void)define(&node, "order", order);
    (void)define(&node, "once", once);
    (void)define(&node, "newest", newest);
    (void)define(&node, "stuck", stuck);
    return 0;
}

static void submit_key(const char *workflow, const char *id, const char *key)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks", "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": {\"k\": %s}}",
         workflow, id, key);
    EXPECT(&r, 201);
}

/* The greatest number of tasks of a workflow with one key that were between the beginning of their
 * step and their end at the same time. */
static int64_t most_at_once(const char *workflow)
{
    CLEANUP(buf_fini) struct buf query = {0};

    buf_fmt(&query,
            "SELECT max(n) FROM (SELECT count(*) AS n FROM task AS t, task_step AS s, task AS u, "
            "task_step AS v, task_view AS w WHERE t.workflow = '%s' AND u.workflow = t.workflow "
            "AND u.lock = t.lock AND s.task = t.id AND v.task = u.id AND w.id = u.id "
            "AND v.begun_at <= s.begun_at AND w.ended_at > s.begun_at GROUP BY t.id) AS x",
            workflow);
    return sql_int(&node, query.ptr);
}

static int64_t count_of_state(const char *workflow, const char *state)
{
    CLEANUP(buf_fini) struct buf query = {0};

    buf_fmt(&query, "SELECT count(*) FROM task WHERE workflow = '%s' AND state = '%s'", workflow,
            state);
    return sql_int(&node, query.ptr);
}

/* The server dies while some hold locks, some take them, and some give them back. */
static void nobody_works_beside_another(const char *workflow, int most)
{
    for (int i = 0; i < TASKS; i++) {
        char id[24];
        char key[8];
        (void)snprintf(id, sizeof id, "%s-%d", workflow, i);
        (void)snprintf(key, sizeof key, "%d", i % KEYS);
        submit_key(workflow, id, key);
    }
    for (int i = 0; i < KILLS; i++) {
        sleep_ms(PAUSE_MS);
        node_kill(&node);
        begin();
    }
    WAIT_FOR(count_of_state(workflow, "processed") == TASKS, "all had their turn");
    CHECK(most_at_once(workflow) <= most, "%" PRId64 " at once", most_at_once(workflow));
    CHECK(sql_int(&node, "SELECT count(*) FROM lock_holder") == 0, "nobody holds a lock");
    CHECK(sql_int(&node, "SELECT coalesce(sum(held), 0) FROM lock_key") == 0,
          "none counts as held");
}

static void one_of_a_key_is_at_work(void **state)
{
    (void)state;
    nobody_works_beside_another("nap", 1);
}

static void two_of_a_key_are_at_work(void **state)
{
    (void)state;
    nobody_works_beside_another("pair", 2);
}

static void who_waits_says_for_whom(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_key("order", "l-1", "\"anna\"");
    submit_key("order", "l-2", "\"anna\"");
    get(&node, &r, "/v1/tasks/l-1");
    EXPECT_TEXT(&r, "waiting_for", "ag");
    EXPECT_TEXT(&r, "lock", "order/anna");
    CHECK(time_at(&r, "lock_since") != 0, "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/tasks/l-2");
    EXPECT_TEXT(&r, "waiting_for", "@lock/order/anna");
    get(&node, &r, "/v1/tasks/l-2/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "lock");
    EXPECT_TEXT(&r, "reasons.0.text", "The task waits for lock order/anna, which task l-1 holds.");
    CHECK(strstr(text_at(&r, "reasons.0.moves"), "intact why l-1"), "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/locks?lock=order/anna&limit=1");
    EXPECT_TEXT(&r, "locks.0.lock", "order/anna");
    EXPECT_TEXT(&r, "locks.0.task", "l-1");
    CHECK(int_at(&r, "locks.0.waiting") == 1 && !at(&r, "locks.1"), "%.*s", SLICE_ARG(r.body));
    serve_step(&node, "ag", "i", "{}");
    wait_for_state(&node, "l-1", "processed");
    serve_step(&node, "ag", "i", "{}");
    wait_for_state(&node, "l-2", "processed");
    get(&node, &r, "/v1/locks");
    CHECK(!at(&r, "locks.0"), "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/locks?limit=0");
    expect_problem(&r, 422, "bad-limit");
}

static void who_does_not_wait_is_refused(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_key("once", "o-1", "7");
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"once\", \"id\": \"o-2\", \"input\": {\"k\": \"7\"}}");
    expect_problem(&r, 409, "lock-taken");
    CHECK(strstr(text_at(&r, "detail"), "lock once/7 is held by task o-1"), "%.*s",
          SLICE_ARG(r.body));
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"once\", \"id\": \"o-1\", \"input\": {\"k\": 7}}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"once\", \"input\": {\"k\": {}}}");
    expect_problem(&r, 422, "bad-input");
    node_kill(&node);
    begin();
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"once\", \"input\": {\"k\": 7}}");
    expect_problem(&r, 409, "lock-taken");
    serve_step(&node, "ag", "i", "{}");
    wait_for_state(&node, "o-1", "processed");
    submit_key("once", "o-3", "7");
    post(&node, &r, "/v1/tasks/o-1/undo", "{\"reason\": \"x\"}");
    expect_problem(&r, 409, "lock-taken");
    serve_step(&node, "ag", "i", "{}");
    wait_for_state(&node, "o-3", "processed");
    post(&node, &r, "/v1/tasks/o-1/undo", "{\"reason\": \"x\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"once\", \"input\": {\"k\": 7}}");
    expect_problem(&r, 409, "lock-taken");
    serve_step(&node, "ag", "i", "{}");
    wait_for_state(&node, "o-1", "compensated");
}

static void who_is_opened_again_needs_it(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_key("stuck", "s-1", "1"); /* its moment is none */
    wait_for_state(&node, "s-1", "error");
    post(&node, &r, "/v1/tasks/s-1/close", "{\"reason\": \"x\"}");
    EXPECT(&r, 200);
    submit_key("stuck", "s-2", "1");
    wait_for_state(&node, "s-2", "error");
    post(&node, &r, "/v1/tasks/s-1/reopen", "{\"reason\": \"x\"}");
    expect_problem(&r, 409, "lock-taken");
    post(&node, &r, "/v1/tasks/s-2/close", "{\"reason\": \"x\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks/s-1/reopen", "{\"reason\": \"x\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks/s-1/close", "{\"reason\": \"x\"}");
    EXPECT(&r, 200);
}

/* The newest of the tasks that wait for a key stays, though the server dies meanwhile: the last one
 * of each key takes effect, and those that did not begin say why. */
static void the_newest_replaces_those_that_wait(void **state)
{
    (void)state;

    for (int i = 0; i < TASKS; i++) {
        char id[24];
        (void)snprintf(id, sizeof id, "newest-%d", i);
        submit_key("newest", id, i % 2 ? "1" : "0");
        if (i % 10 == 9) {
            node_kill(&node);
            begin();
        }
    }
    WAIT_FOR(count_of_state("newest", "processed") + count_of_state("newest", "compensated")
                 == TASKS,
             "all have ended");
    CHECK(most_at_once("newest") <= 1, "%" PRId64 " at once", most_at_once("newest"));
    wait_for_state(&node, "newest-58", "processed");
    wait_for_state(&node, "newest-59", "processed");
    CHECK(count_of_state("newest", "compensated") > 0, "some were replaced");
    CHECK(sql_int(&node, "SELECT count(*) FROM task_view WHERE workflow = 'newest' AND "
                         "(state = 'compensated') <> (coalesce(error_code, '') = 'replaced')")
              == 0,
          "and no others were undone");
    CHECK(sql_int(&node, "SELECT count(*) FROM task_view AS t JOIN task_step AS s ON s.task = t.id "
                         "WHERE t.state = 'compensated' AND s.begun_at IS NOT NULL AND t.workflow "
                         "= 'newest'")
              == 0,
          "they had not begun");
    if (!store_is_postgres()) /* a table of SQLite alone */
        WAIT_FOR(sql_int(&node, "SELECT count(*) FROM lock_replaces") == 0, "none is remembered");
    CHECK(sql_int(&node, "SELECT count(*) FROM lock_view") == 0, "nobody holds a lock");
}

static void a_definition_is_checked(void **state)
{
    REPLY r = {0};
    (void)state;

    put(&node, &r, "/v1/workflows/bad",
        "{\"intact\": 1, \"workflow\": \"bad\", \"lock\": {\"key\": \"k\", \"if_taken\":"
        " \"skip\"}, \"steps\": [{\"name\": \"a\", \"wait\": \"1s\"}]}");
    EXPECT(&r, 422);
    CHECK(memmem(r.body.ptr, r.body.len, "wait, refuse or replace", 23), "%.*s", SLICE_ARG(r.body));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_of_a_key_is_at_work),
        cmocka_unit_test(two_of_a_key_are_at_work),
        cmocka_unit_test(who_waits_says_for_whom),
        cmocka_unit_test(who_does_not_wait_is_refused),
        cmocka_unit_test(who_is_opened_again_needs_it),
        cmocka_unit_test(the_newest_replaces_those_that_wait),
        cmocka_unit_test(a_definition_is_checked),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
