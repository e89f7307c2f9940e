/* Items of which each is a child (for_each with task): a real server, killed around families, and
 * an agent that keeps a ledger of the children's steps. */

#include <stdlib.h>

#include "kit.h"

enum { PLACES = 20, KEYS_MAX = 400 };

static struct node node;

static const char *const flags[] = {"--scan-every", "100ms", "--drain", "200ms", NULL};

static const char ship[] = "\"output\": {\"parcel\": \"${ .steps.go.output }\"},"
                           "\"steps\": [{\"name\": \"go\", \"agent\": \"c\", \"action\": \"go\", "
                           "\"input\": \"${ .input }\","
                           " \"retry\": {\"attempts\": 1}, \"undo\": {\"action\": \"back\"}}]";
static const char held[] =
    "\"steps\": [{\"name\": \"go\", \"agent\": \"c\", \"action\": \"go\", \"input\": \"${ .input "
    "}\","
    " \"retry\": {\"attempts\": 1}, \"undo\": \"none\", \"on_failure\": \"hold\"}]";

#define PARCELS(workflow, more)                                                                   \
    "\"steps\": [{\"name\": \"parcel\", \"for_each\": \"${ .input.lines }\", \"max_items\": 100," \
    " \"concurrency\": 3, " more "\"task\": {\"workflow\": \"" workflow                           \
    "\", \"input\": {\"line\": \"${ .item }\", \"index\": \"${ .index }\"}}}"
#define TELL                                                                             \
    ", {\"name\": \"tell\", \"agent\": \"t\", \"action\": \"tell\", \"undo\": \"none\"," \
    " \"input\": {\"all\": \"${ .steps.parcel.output }\"}}]"

static int start(void **state)
{
    *state = node_open(&node, flags);
    (void)define(&node, "ship", ship);
    (void)define(&node, "held", held);
    (void)define(&node, "order", PARCELS("ship", "") TELL);
    (void)define(&node, "alone", PARCELS("ship", "") "]");
    (void)define(&node, "holds", PARCELS("held", "") "]");
    (void)define(&node, "waits", PARCELS("ship", "\"on_failure\": \"hold\", ") "]");
    return 0;
}

/* Lines 0 to count - 1, each its number. */
static void order_lines(const char *workflow, const char *id, int count)
{
    CLEANUP(buf_fini) struct buf lines = {0};
    REPLY r = {0};

    for (int i = 0; i < count; i++)
        buf_fmt(&lines, "%s%d", i ? "," : "", i);
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": {\"lines\": [%s]}}", workflow, id,
         lines.ptr);
    EXPECT(&r, 201);
}

/* The requests of children that took effect, by their keys. */
static struct {
    char keys[KEYS_MAX][80];
    bool undone[KEYS_MAX];
    int count;
} ledger;

static int ledger_find(const char *key, size_t len)
{
    for (int i = 0; i < ledger.count; i++)
        if (strlen(ledger.keys[i]) == len && strncmp(ledger.keys[i], key, len) == 0)
            return i;
    return -1;
}

static void note_key(const char *key, bool undo)
{
    size_t len = strlen(key) - (undo ? strlen("/undo") : 0);
    int at = ledger_find(key, len);

    if (undo) {
        CHECK(at >= 0, "%s: it took no effect", key);
        ledger.undone[at] = true;
        return;
    }
    if (at >= 0)
        return;
    CHECK(ledger.count < KEYS_MAX, "%d keys", ledger.count);
    (void)snprintf(ledger.keys[ledger.count++], sizeof ledger.keys[0], "%s", key);
}

static void answer_one(const struct reply *r, int i, int bad, struct buf *results)
{
    char path[60];

    (void)snprintf(path, sizeof path, "requests.%d.token", i);
    buf_fmt(results, "%s{\"token\": \"%s\",", results->len ? "," : "", text_at(r, path));
    (void)snprintf(path, sizeof path, "requests.%d.direction", i);
    bool undo = strcmp(text_at(r, path), "undo") == 0;
    (void)snprintf(path, sizeof path, "requests.%d.input.line", i);
    if (!undo && int_at(r, path) == bad) {
        buf_str(results, "\"error\": {\"code\": \"no-address\", \"message\": \"no\","
                         " \"retryable\": false, \"effect\": \"none\"}}");
        return;
    }
    (void)snprintf(path, sizeof path, "requests.%d.idempotency_key", i);
    if (strchr(text_at(r, path), '@')) /* of a child */
        note_key(text_at(r, path), undo);
    buf_fmt(results, "\"output\": \"%s\"}", text_at(r, path));
}

/* One call of an agent: does, or undoes, whatever is asked, but for the line `bad`. */
static bool serve_once(const char *agent, int bad)
{
    CLEANUP(buf_fini) struct buf results = {0};
    REPLY r = {0};
    char path[60];
    char call[60];

    (void)snprintf(call, sizeof call, "/v1/agents/%s/work", agent);
    post(&node, &r, call, "{\"instance\": \"i\", \"max\": %d, \"wait\": \"200ms\"}", PLACES);
    for (int i = 0; r.status == 200; i++) {
        (void)snprintf(path, sizeof path, "requests.%d", i);
        if (!at(&r, path))
            break;
        answer_one(&r, i, bad, &results);
    }
    if (results.len == 0)
        return false;
    reply_fini(&r);
    post(&node, &r, call, "{\"instance\": \"i\", \"max\": 0, \"results\": [%s]}", results.ptr);
    return r.status == 200;
}

static bool is_state(const char *id, const char *state)
{
    REPLY r = {0};

    task_of(&node, &r, id);
    return strcmp(text_at(&r, "state"), state) == 0;
}

static void serve_until(const char *id, const char *state, int bad)
{
    int64_t until = steady_ms() + 60000;

    while (!is_state(id, state)) {
        (void)serve_once("c", bad);
        (void)serve_once("t", -1);
        CHECK(steady_ms() < until, "task %s does not become %s", id, state);
    }
}

static void expect_all_undone(int least)
{
    CHECK(ledger.count >= least, "%d took effect", ledger.count);
    for (int i = 0; i < ledger.count; i++)
        CHECK(ledger.undone[i], "%s was not undone", ledger.keys[i]);
}

static int begin(void **state)
{
    (void)state;
    memset(&ledger, 0, sizeof ledger);
    return 0;
}

static void each_item_is_a_child_and_is_undone_with_its_parent(void **state)
{
    REPLY r = {0};
    (void)state;

    order_lines("order", "f-1", 10);
    serve_until("f-1", "processed", -1);
    task_of(&node, &r, "f-1@parcel.7");
    EXPECT_TEXT(&r, "state", "processed");
    EXPECT_TEXT(&r, "parent", "f-1");
    EXPECT_TEXT(&r, "parent_step", "parcel.7");
    assert_int_equal(int_at(&r, "input.line"), 7);
    task_of(&node, &r, "f-1");
    EXPECT_TEXT(&r, "steps.1.input.all.7.parcel", "f-1@parcel.7/go");
    get(&node, &r, "/v1/tasks/f-1/items?step=parcel");
    EXPECT_TEXT(&r, "items.7.child.id", "f-1@parcel.7");
    post(&node, &r, "/v1/tasks/f-1/undo", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until("f-1", "compensated", -1);
    expect_all_undone(10);
    task_of(&node, &r, "f-1@parcel.0");
    EXPECT_TEXT(&r, "state", "compensated");
}

static void one_child_that_fails_undoes_the_others(void **state)
{
    REPLY r = {0};
    (void)state;

    order_lines("alone", "f-2", 10);
    serve_until("f-2", "compensated", 7);
    expect_all_undone(5);
    task_of(&node, &r, "f-2");
    EXPECT_TEXT(&r, "error.code", "no-address");
    assert_int_equal(int_at(&r, "steps.0.items.to_undo"), 0);
    task_of(&node, &r, "f-2@parcel.7");
    EXPECT_TEXT(&r, "state", "compensated");
}

static void a_cancelled_parent_stops_its_children(void **state)
{
    REPLY r = {0};
    (void)state;

    order_lines("alone", "f-3", 10);
    WAIT_FOR((get(&node, &r, "/v1/tasks/f-3@parcel.2"), r.status == 200), "three children");
    get(&node, &r, "/v1/tasks/f-3@parcel.3");
    EXPECT(&r, 404);
    post(&node, &r, "/v1/tasks/f-3/cancel", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until("f-3", "compensated", -1);
    task_of(&node, &r, "f-3@parcel.1");
    EXPECT_TEXT(&r, "state", "compensated");
    expect_all_undone(0);
}

/* The others go on meanwhile. */
static void a_child_in_error_keeps_its_place_until_it_is_repaired(void **state)
{
    REPLY r = {0};
    (void)state;

    order_lines("holds", "f-4", 8);
    serve_until("f-4", "error", 2);
    task_of(&node, &r, "f-4");
    EXPECT_TEXT(&r, "error.code", "child");
    assert_int_equal(int_at(&r, "steps.0.items.completed"), 7);
    EXPECT_TEXT(&r, "steps.0.items.at_work.0.child.state", "error");
    get(&node, &r, "/v1/tasks/f-4/why");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "reasons.0.kind", "child-stopped");
    EXPECT_TEXT(&r, "reasons.0.step", "parcel.2");
    EXPECT_TEXT(
        &r, "reasons.0.text",
        "The child of step parcel.2, task f-4@parcel.2, stopped in error (no-address: no).");
    CHECK(strstr(text_at(&r, "reasons.0.moves"), "intact why f-4@parcel.2")
              && strstr(text_at(&r, "reasons.0.moves"), "intact skip f-4 --step parcel.2"),
          "%s", text_at(&r, "reasons.0.moves"));
    post(&node, &r, "/v1/tasks/f-4@parcel.2/retry", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until("f-4", "processed", -1);
}

static void an_item_goes_on_without_its_child(void **state)
{
    REPLY r = {0};
    (void)state;

    order_lines("holds", "f-5", 5);
    serve_until("f-5", "error", 2);
    post(&node, &r, "/v1/tasks/f-5/skip", "{\"step\": \"parcel.2\", \"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until("f-5", "processed", -1);
    WAIT_FOR((task_of(&node, &r, "f-5@parcel.2"), time_at(&r, "closed_at") != 0), "it is closed");
    task_of(&node, &r, "f-5");
    assert_int_equal(int_at(&r, "steps.0.items.skipped"), 1);
}

/* Nobody needs the child any more: it is over, for operators as well. */
static void a_step_that_is_left_closes_the_child_that_stopped(void **state)
{
    REPLY r = {0};
    (void)state;

    order_lines("holds", "f-left", 1);
    serve_until("f-left", "error", 0);
    post(&node, &r, "/v1/tasks/f-left/skip", "{\"step\": \"parcel\", \"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until("f-left", "processed", -1);
    WAIT_FOR((task_of(&node, &r, "f-left@parcel.0"), time_at(&r, "closed_at") != 0),
             "it is closed");
}

static void an_item_that_is_retried_has_another_child(void **state)
{
    REPLY r = {0};
    (void)state;

    order_lines("waits", "f-6", 5);
    serve_until("f-6", "error", 3);
    post(&node, &r, "/v1/tasks/f-6/retry", "{\"step\": \"parcel.3\", \"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until("f-6", "processed", -1);
    task_of(&node, &r, "f-6@parcel.3");
    EXPECT_TEXT(&r, "state", "compensated");
    task_of(&node, &r, "f-6@parcel.3:2");
    EXPECT_TEXT(&r, "state", "processed");
}

static void a_pause_passes_down_to_the_children_of_items(void **state)
{
    REPLY r = {0};
    (void)state;

    order_lines("alone", "f-7", 6);
    WAIT_FOR((get(&node, &r, "/v1/tasks/f-7@parcel.2"), r.status == 200), "three children");
    post(&node, &r, "/v1/tasks/f-7/pause", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    WAIT_FOR((task_of(&node, &r, "f-7@parcel.1"), time_at(&r, "paused_at") != 0), "it is paused");
    post(&node, &r, "/v1/tasks/f-7/resume", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until("f-7", "processed", -1);
}

static void a_server_that_is_killed_loses_no_child(void **state)
{
    REPLY r = {0};
    (void)state;

    order_lines("alone", "f-8", 40);
    for (int round = 0; round < 10; round++) {
        for (int n = 0; n < 3; n++)
            (void)serve_once("c", 37);
        node_kill(&node);
        node_start(&node, flags);
    }
    serve_until("f-8", "compensated", 37);
    expect_all_undone(30);
    task_of(&node, &r, "f-8");
    assert_int_equal(int_at(&r, "steps.0.items.to_undo"), 0);
    get(&node, &r, "/v1/tasks?children=true&root=f-8&state=processed,processing,error&limit=100");
    CHECK(!at(&r, "tasks.0"), "a child was left: %s", text_at(&r, "tasks.0.id"));
}

/* Each list may start a child for each item. */
static void families_are_bounded_with_their_items(void **state)
{
    REPLY r = {0};
    (void)state;

    put(&node, &r, "/v1/workflows/large",
        "{\"intact\": 1, \"workflow\": \"large\", \"steps\": [{\"name\": \"a\", \"for_each\": "
        "\"${ .input }\", \"max_items\": 10000, \"task\": {\"workflow\": \"order\"}}]}");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"large\", \"id\": \"f-9\", \"input\": []}");
    expect_problem(&r, 422, "bad-family");
}

#define ONE(name) cmocka_unit_test_setup(name, begin)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        ONE(each_item_is_a_child_and_is_undone_with_its_parent),
        ONE(one_child_that_fails_undoes_the_others),
        ONE(a_cancelled_parent_stops_its_children),
        ONE(a_child_in_error_keeps_its_place_until_it_is_repaired),
        ONE(an_item_goes_on_without_its_child),
        ONE(a_step_that_is_left_closes_the_child_that_stopped),
        ONE(an_item_that_is_retried_has_another_child),
        ONE(a_pause_passes_down_to_the_children_of_items),
        ONE(a_server_that_is_killed_loses_no_child),
        ONE(families_are_bounded_with_their_items),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
