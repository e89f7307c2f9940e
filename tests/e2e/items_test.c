/* Items of a list (for_each): a real server, killed while it works on them, and an agent that keeps
 * a ledger of what it took and put back. */

#include <sqlite3.h>
#include <stdlib.h>

#include "kit.h"

enum { LINES_MAX = 400, PLACES = 20 };

static struct node node;

#define LIST                                                                                   \
    "\"inputs\": {\"lines\": {\"type\": \"array\"}}, \"output\": \"${ .steps.pack.output }\"," \
    "\"steps\": [{\"name\": \"pack\", \"for_each\": \"${ .input.lines }\", \"max_items\": 10000,"
#define WHAT                                                                                      \
    "\"agent\": \"s\", \"action\": \"take\", \"input\": {\"line\": \"${ .item }\", \"index\": "   \
    "\"${ .index }\"}, \"retry\": {\"attempts\": 2, \"wait\": \"1ms\"},"                          \
    "\"undo\": {\"agent\": \"s\", \"action\": \"put-back\", \"input\": {\"taken\": \"${ .output " \
    "}\", \"line\": \"${ .item }\"}}}"
#define AFTER                                                                            \
    ", {\"name\": \"tell\", \"agent\": \"t\", \"action\": \"tell\", \"undo\": \"none\"," \
    " \"retry\": {\"attempts\": 1}, \"input\": {\"taken\": \"${ .steps.pack.output }\"}}]"

static const char order[] = LIST "\"concurrency\": 5," WHAT AFTER;
static const char holds[] = LIST "\"concurrency\": 3, \"on_failure\": \"hold\"," WHAT AFTER;
static const char goes_on[] = LIST "\"on_item_failure\": \"continue\"," WHAT AFTER;

static const char *const flags[] = {"--scan-every", "100ms", "--drain", "200ms", NULL};

static const char alone[] = LIST "\"concurrency\": 5," WHAT "]";

static int start(void **state)
{
    *state = node_open(&node, flags);
    (void)define(&node, "order", order);
    (void)define(&node, "holds", holds);
    (void)define(&node, "goes-on", goes_on);
    (void)define(&node, "alone", alone);
    (void)define(&node, "wide", LIST "\"concurrency\": 7," WHAT "]");
    return 0;
}

/* Lines 0 to count - 1, each its number; the one at `bad` cannot be taken. */
static void order_lines(const char *workflow, const char *id, int count, int bad)
{
    CLEANUP(buf_fini) struct buf lines = {0};
    REPLY r = {0};

    for (int i = 0; i < count; i++)
        buf_fmt(&lines, i == bad ? "%s\"bad\"" : "%s%d", i ? "," : "", i);
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": {\"lines\": [%s]}}", workflow, id,
         lines.ptr ? lines.ptr : "");
    EXPECT(&r, 201);
}

/* What the agent did for each line. */
struct ledger {
    int taken[LINES_MAX], back[LINES_MAX];
    int order[LINES_MAX], count; /* lines that were put back, in that order */
    char keys[LINES_MAX][80];
};

/* The ledger of the test at hand. */
static struct ledger *ledger_new(void)
{
    static struct ledger l;

    memset(&l, 0, sizeof l);
    return &l;
}

static void answer_one(struct ledger *l, const struct reply *r, int i, struct buf *results)
{
    char path[60];

    (void)snprintf(path, sizeof path, "requests.%d.token", i);
    buf_fmt(results, "%s{\"token\": \"%s\",", results->len ? "," : "", text_at(r, path));
    (void)snprintf(path, sizeof path, "requests.%d.direction", i);
    bool undo = strcmp(text_at(r, path), "undo") == 0;
    (void)snprintf(path, sizeof path, "requests.%d.input.line", i);
    if (strcmp(text_at(r, path), "bad") == 0) {
        buf_str(results, undo ? "\"output\": null}"
                              : "\"error\": {\"code\": \"out-of-stock\", \"message\": \"none is "
                                "left\", \"retryable\": false, \"effect\": \"none\"}}");
        return;
    }
    int line = (int)int_at(r, path);
    CHECK(line >= 0 && line < LINES_MAX, "line %d", line);
    (void)snprintf(path, sizeof path, "requests.%d.idempotency_key", i);
    bool packs = strstr(text_at(r, path), "/pack.") != NULL;
    if (packs && !undo && l->keys[line][0])
        CHECK(strcmp(l->keys[line], text_at(r, path)) == 0, "another key: %s", text_at(r, path));
    if (packs && !undo)
        (void)snprintf(l->keys[line], sizeof l->keys[line], "%s", text_at(r, path));
    if (undo && l->back[line] == 0)
        l->order[l->count++] = line;
    *(undo ? &l->back[line] : &l->taken[line]) = 1;
    buf_fmt(results, "\"output\": {\"id\": %d}}", line);
}

/* One call of the agent: takes and puts back whatever is asked. False: nothing was. */
static bool serve_once(struct ledger *l, int places)
{
    CLEANUP(buf_fini) struct buf results = {0};
    REPLY r = {0};
    int count = 0;
    char path[40];

    post(&node, &r, "/v1/agents/s/work", "{\"instance\": \"i\", \"max\": %d, \"wait\": \"300ms\"}",
         places);
    if (r.status != 200)
        return false;
    for (;; count++) {
        (void)snprintf(path, sizeof path, "requests.%d", count);
        if (!at(&r, path))
            break;
        answer_one(l, &r, count, &results);
    }
    CHECK(count <= places, "%d requests", count);
    if (count == 0)
        return false;
    reply_fini(&r);
    post(&node, &r, "/v1/agents/s/work", "{\"instance\": \"i\", \"max\": 0, \"results\": [%s]}",
         results.ptr);
    return r.status == 200;
}

static bool is_state(const char *id, const char *state)
{
    REPLY r = {0};

    task_of(&node, &r, id);
    return strcmp(text_at(&r, "state"), state) == 0;
}

static void serve_until(struct ledger *l, const char *id, const char *state)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (!is_state(id, state)) {
        (void)serve_once(l, PLACES);
        CHECK(steady_ms() < until, "task %s does not become %s", id, state);
    }
}

static void all_items_are_done_and_the_next_step_sees_them(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    order_lines("order", "i-1", 25, -1);
    while (serve_once(l, PLACES))
        ;
    fetch(&node, &r, "t", "i");
    for (int i = 0; i < 25; i++) {
        char path[60];
        CHECK(l->taken[i] == 1, "line %d", i);
        (void)snprintf(path, sizeof path, "requests.0.input.taken.%d.id", i);
        assert_int_equal(int_at(&r, path), i);
    }
    assert_string_equal(l->keys[0], "i-1/pack.0");
    assert_string_equal(l->keys[24], "i-1/pack.24");
    char *token = token_in(&r, 0);
    hand_in(&node, "t", "i", token, "\"output\": null", "accepted");
    free(token);
    wait_for_state(&node, "i-1", "processed");
    task_of(&node, &r, "i-1");
    assert_int_equal(int_at(&r, "output.24.id"), 24);
    assert_int_equal(int_at(&r, "steps.0.items.count"), 25);
    assert_int_equal(int_at(&r, "steps.0.items.completed"), 25);
    EXPECT_TEXT(&r, "steps.0.kind", "for_each");
}

static void no_more_are_at_work_than_may_be(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    order_lines("order", "i-2", 12, -1);
    post(&node, &r, "/v1/agents/s/work", "{\"instance\": \"j\", \"max\": 20, \"wait\": \"10s\"}");
    EXPECT(&r, 200);
    CHECK(at(&r, "requests.0"), "there is none");
    WAIT_FOR((task_of(&node, &r, "i-2"), int_at(&r, "steps.0.items.begun") == 5), "five");
    post(&node, &r, "/v1/tasks/i-2/cancel", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until(l, "i-2", "compensated");
}

static void one_that_fails_undoes_the_others(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    order_lines("order", "i-3", 20, 13);
    serve_until(l, "i-3", "compensated");
    for (int i = 0; i < 20; i++)
        CHECK(l->taken[i] == l->back[i], "line %d: taken %d, put back %d", i, l->taken[i],
              l->back[i]);
    CHECK(l->count >= 8, "%d were put back", l->count);
    task_of(&node, &r, "i-3");
    EXPECT_TEXT(&r, "error.code", "out-of-stock");
    EXPECT_TEXT(&r, "steps.0.state", "undone");
    assert_int_equal(int_at(&r, "steps.0.items.undone"), l->count);
    assert_int_equal(int_at(&r, "steps.0.items.to_undo"), 0);
}

static void with_continue_all_are_tried(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    order_lines("goes-on", "i-4", 20, 7);
    while (serve_once(l, PLACES))
        ;
    fetch(&node, &r, "t", "i");
    CHECK(raw_is(&r, "requests.0.input.taken.7", "null"), "an output of one that failed");
    assert_int_equal(int_at(&r, "requests.0.input.taken.19.id"), 19);
    char *token = token_in(&r, 0);
    hand_in(&node, "t", "i", token, "\"output\": null", "accepted");
    free(token);
    wait_for_state(&node, "i-4", "processed");
}

/* The item that ends last has no row yet when the output of its task is evaluated. */
static void the_output_has_the_item_that_ended_last(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    (void)define(&node, "last",
                 "\"inputs\": {\"lines\": {\"type\": \"array\"}}, \"output\": {\"taken\": \"${ "
                 ".steps.pack.output }\", \"errors\": \"${ .steps.pack.errors }\"}, \"steps\": "
                 "[{\"name\": \"pack\", \"for_each\": \"${ .input.lines }\", \"max_items\": 9, "
                 "\"concurrency\": 1, \"on_item_failure\": \"continue\", " WHAT "]");
    order_lines("last", "i-12", 5, -1);
    serve_until(l, "i-12", "processed");
    task_of(&node, &r, "i-12");
    for (int i = 0; i < 5; i++) {
        char path[40];
        (void)snprintf(path, sizeof path, "output.taken.%d.id", i);
        assert_int_equal(int_at(&r, path), i);
    }
    CHECK(raw_is(&r, "output.errors", "[]"), "none failed");
    l = ledger_new();
    order_lines("last", "i-13", 5, 4);
    serve_until(l, "i-13", "processed");
    task_of(&node, &r, "i-13");
    CHECK(raw_is(&r, "output.taken.4", "null"), "an output of one that failed");
    assert_int_equal(int_at(&r, "output.taken.3.id"), 3);
    assert_int_equal(int_at(&r, "output.errors.0.index"), 4);
    EXPECT_TEXT(&r, "output.errors.0.code", "out-of-stock");
}

/* Its row says that its effect is not known: that stays so, and it is put back. */
/* The first of three items is in doubt and at rest. Returns the token of its last attempt. */
static char *leave_in_doubt(const char *workflow, const char *id)
{
    REPLY r = {0};

    order_lines(workflow, id, 3, -1);
    fetch(&node, &r, "s", "i");
    fetch(&node, &r, "s", "i"); /* the other attempt */
    char *token = token_in(&r, 0);
    WAIT_FOR((task_of(&node, &r, id), int_at(&r, "steps.0.items.failed") == 1), "its end");
    return token;
}

static void a_late_result_of_an_item_at_rest_settles_its_doubt(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    (void)define(&node, "brief",
                 LIST "\"concurrency\": 1, \"on_item_failure\": \"continue\", "
                      "\"complete_by\": \"500ms\"," WHAT "]");
    char *token = leave_in_doubt("brief", "i-16");
    hand_in(&node, "s", "i", token, "\"output\": {\"id\": \"late\"}", "late");
    hand_in(&node, "s", "i", token, "\"output\": {\"id\": \"again\"}", "late");
    get(&node, &r, "/v1/tasks/i-16/items?step=pack&state=failed");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "items.0.name", "pack.0");
    CHECK(raw_is(&r, "items.0.in_doubt", "false"), "it is in doubt");
    node_kill(&node);
    node_start(&node, flags);
    hand_in(&node, "s", "i", token, "\"output\": {\"id\": \"again\"}", "late");
    free(token);
    post(&node, &r, "/v1/tasks/i-16/cancel", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    WAIT_FOR((post(&node, &r, "/v1/agents/s/work", "{\"instance\": \"i\", \"max\": 1}"),
              raw_is(&r, "requests.0.direction", "\"undo\"")
                  && raw_is(&r, "requests.0.input.line", "0")),
             "its undo");
    EXPECT_TEXT(&r, "requests.0.input.taken.id", "late");
    serve_until(l, "i-16", "compensated");
    assert_int_equal(l->back[0], 1);
}

static void expect_verb(const char *id, const char *verb, const char *body, int status)
{
    REPLY r = {0};
    char path[80];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/%s", id, verb);
    post(&node, &r, path, "{%s, \"reason\": \"test\"}", body);
    EXPECT(&r, status);
}

/* One fails while others have not begun: it is at rest, and can be repaired until its step ends. */
static void operators_reach_items_at_rest(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    (void)define(&node, "one-by-one",
                 LIST "\"concurrency\": 1, \"on_item_failure\": \"continue\"," WHAT "]");
    order_lines("one-by-one", "i-17", 3, 0);
    (void)serve_once(l, 1);
    WAIT_FOR((task_of(&node, &r, "i-17"), int_at(&r, "steps.0.items.failed") == 1), "its end");
    expect_verb("i-17", "retry", "\"step\": \"pack.0\"", 409);
    expect_verb("i-17", "skip", "\"step\": \"pack.2\"", 409);
    expect_verb("i-17", "skip", "\"step\": \"pack.3\"", 422);
    expect_verb("i-17", "resolve", "\"step\": \"pack.0\", \"effect\": \"none\"", 409);
    expect_verb("i-17", "supply", "\"step\": \"pack.0\", \"output\": {\"id\": 7}", 200);
    get(&node, &r, "/v1/tasks/i-17/items?step=pack&state=completed");
    EXPECT(&r, 200);
    assert_int_equal(int_at(&r, "items.0.output.id"), 7);
    serve_until(l, "i-17", "processed");
    assert_int_equal(int_at(&r, "items.0.output.id"), 7);
    task_of(&node, &r, "i-17");
    assert_int_equal(int_at(&r, "output.0.id"), 7);
    assert_int_equal(int_at(&r, "steps.0.items.failed"), 0);
    expect_verb("i-17", "skip", "\"step\": \"pack.0\"", 409);
    get(&node, &r, "/v1/audit?limit=1&task=i-17");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "entries.0.step", "pack.0");
}

/* Asks for at most `max` requests until those with the keys have come, perhaps in several answers;
 * -> their tokens, which the caller frees. */
static void take(int max, const char *const *keys, char **ret_tokens, int count)
{
    REPLY r = {0};
    char path[60];
    int64_t until = steady_ms() + PATIENCE_MS;

    for (int found = 0; found < count;) {
        CHECK(steady_ms() < until, "%d of %d requests, with %s, did not come", found, count, *keys);
        post(&node, &r, "/v1/agents/s/work", "{\"instance\": \"i\", \"max\": %d, \"wait\": \"5s\"}",
             max);
        EXPECT(&r, 200);
        for (int i = 0; i < max * count; i++) {
            (void)snprintf(path, sizeof path, "requests.%d.idempotency_key", i / count);
            if (!at(&r, path) || strcmp(text_at(&r, path), keys[i % count]) != 0)
                continue;
            (void)snprintf(path, sizeof path, "requests.%d.token", i / count);
            ret_tokens[i % count] = strdup(text_at(&r, path));
            found++;
        }
    }
}

/* One call stops the task, brings a result again for an item at rest, whose row has to be read, and
 * asks for work, for which items of the task were waiting. */
static void a_task_that_stops_while_a_row_is_read_starts_nothing(void **state)
{
    REPLY r = {0};
    char *t[3];
    (void)state;

    (void)define(&node, "beside",
                 LIST "\"concurrency\": 2," WHAT
                      ", {\"name\": \"other\", \"after\": [], \"agent\": \"s\", \"action\": \"do\","
                      " \"undo\": \"none\", \"on_failure\": \"hold\", \"input\": null,"
                      " \"retry\": {\"attempts\": 1}}]");
    order_lines("beside", "i-18", 6, -1);
    take(3, (const char *[]){"i-18/other", "i-18/pack.0", "i-18/pack.1"}, t, 3);
    hand_in(&node, "s", "i", t[1], "\"output\": {\"id\": 0}", "accepted");
    hand_in(&node, "s", "i", t[2], "\"output\": {\"id\": 1}", "accepted");
    post(
        &node, &r, "/v1/agents/s/work",
        "{\"instance\": \"i\", \"max\": 5, \"results\": [{\"token\": \"%s\", \"error\": {\"code\": "
        "\"no\", \"message\": \"no\", \"retryable\": false, \"effect\": \"none\"}}, {\"token\": "
        "\"%s\", \"output\": {\"id\": 0}}]}",
        t[0], t[1]);
    EXPECT(&r, 200);
    CHECK(raw_is(&r, "requests", "[]"), "a task in error starts nothing");
    wait_for_state(&node, "i-18", "error");
    expect_verb("i-18", "skip", "\"step\": \"other\"", 200);
    serve_until(ledger_new(), "i-18", "processed");
    task_of(&node, &r, "i-18");
    assert_int_equal(int_at(&r, "steps.0.items.completed"), 6);
    for (int i = 0; i < 3; i++)
        free(t[i]);
}

/* Nothing is taken twice under two keys, and all that was taken is put back. */
static void a_server_that_is_killed_loses_no_item(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    order_lines("order", "i-5", LINES_MAX, LINES_MAX - 20);
    for (int round = 0; round < 12; round++) {
        for (int n = 0; n < 5; n++)
            (void)serve_once(l, PLACES);
        node_kill(&node);
        node_start(&node, flags);
    }
    serve_until(l, "i-5", "compensated");
    for (int i = 0; i < LINES_MAX; i++)
        CHECK(l->taken[i] == l->back[i], "line %d: taken %d, put back %d", i, l->taken[i],
              l->back[i]);
    task_of(&node, &r, "i-5");
    assert_int_equal(int_at(&r, "steps.0.items.to_undo"), 0);
}

static void operators_reach_single_items(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    order_lines("holds", "i-6", 10, 4);
    serve_until(l, "i-6", "error");
    task_of(&node, &r, "i-6");
    EXPECT_TEXT(&r, "error.code", "out-of-stock");
    post(&node, &r, "/v1/tasks/i-6/retry", "{\"step\": \"pack.4\", \"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until(l, "i-6", "error");
    post(&node, &r, "/v1/tasks/i-6/skip", "{\"step\": \"pack\", \"reason\": \"test\"}");
    expect_problem(&r, 409, "conflict");
    post(&node, &r, "/v1/tasks/i-6/supply",
         "{\"step\": \"pack.4\", \"output\": {\"id\": 44}, \"reason\": \"test\"}");
    EXPECT(&r, 200);
    while (serve_once(l, PLACES))
        ;
    fetch(&node, &r, "t", "i");
    assert_int_equal(int_at(&r, "requests.0.input.taken.4.id"), 44);
    assert_int_equal(int_at(&r, "requests.0.input.taken.9.id"), 9);
    char *token = token_in(&r, 0);
    hand_in(&node, "t", "i", token,
            "\"error\": {\"code\": \"no\", \"message\": \"no\", \"retryable\": false, \"effect\": "
            "\"none\"}",
            "accepted");
    free(token);
    serve_until(l, "i-6", "compensated");
}

static void items_are_read_in_pages(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    order_lines("order", "i-7", 30, -1);
    (void)serve_once(l, 5);
    (void)serve_once(l, 5);
    get(&node, &r, "/v1/tasks/i-7/items?step=pack&limit=20");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "items.0.name", "pack.0");
    EXPECT_TEXT(&r, "items.0.state", "completed");
    EXPECT_TEXT(&r, "items.19.name", "pack.19");
    EXPECT_TEXT(&r, "items.19.state", "waiting");
    EXPECT_TEXT(&r, "next", "20");
    get(&node, &r, "/v1/tasks/i-7/items?step=pack&limit=20&cursor=20");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "items.9.name", "pack.29");
    CHECK(raw_is(&r, "next", "null"), "there is more");
    get(&node, &r, "/v1/tasks/i-7/items?step=tell");
    expect_problem(&r, 422, "bad-step");
    get(&node, &r, "/v1/tasks/i-7/items");
    expect_problem(&r, 422, "no-step");
    get(&node, &r, "/v1/tasks/i-7/items?step=pack&state=odd");
    expect_problem(&r, 422, "bad-state");
    get(&node, &r, "/v1/tasks/i-7/items?step=pack&limit=501");
    expect_problem(&r, 422, "bad-limit");
    get(&node, &r, "/v1/tasks/i-7/items?step=pack&cursor=x");
    expect_problem(&r, 422, "bad-cursor");
    get(&node, &r, "/v1/tasks/i-7/items?step=pack&odd=1");
    expect_problem(&r, 422, "unknown-parameter");
    get(&node, &r, "/v1/tasks/i-7/items?step=pack&state=failed");
    EXPECT(&r, 200);
    CHECK(!at(&r, "items.0") && raw_is(&r, "next", "null"), "none failed");
    get(&node, &r, "/v1/tasks/i-7/items?step=pack&state=waiting&limit=25");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "items.0.state", "waiting");
    CHECK(!at(&r, "items.24"), "those that are completed are among them");
    EXPECT_TEXT(&r, "next", "25");
    post(&node, &r, "/v1/tasks/i-7/cancel", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    serve_until(l, "i-7", "compensated");
}

static const char in_a_row[] =
    LIST WHAT ", {\"name\": \"weigh\", \"for_each\": \"${ .steps.pack.output }\", \"max_items\": "
              "100, \"agent\": \"s\", \"action\": \"weigh\", \"undo\": \"none\", \"input\": "
              "{\"line\": \"${ .item.id }\", \"of\": \"${ .steps.pack.output | length }\"}}]";
static const char errors[] =
    LIST "\"on_item_failure\": {\"tolerate\": \"50%\"}," WHAT
         ", {\"name\": \"tell\", \"agent\": \"t\", \"action\": \"tell\", \"undo\": \"none\","
         " \"input\": {\"failed\": \"${ .steps.pack.failed }\", \"first\": \"${ "
         ".steps.pack.errors[0] }\"}}]";

/* The last item ends in the change that ends its task. */
static void the_output_has_the_last_item(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    order_lines("alone", "i-20", 7, -1);
    serve_until(l, "i-20", "processed");
    task_of(&node, &r, "i-20");
    for (int i = 0; i < 7; i++) {
        char path[40];
        (void)snprintf(path, sizeof path, "output.%d.id", i);
        assert_int_equal(int_at(&r, path), i);
    }
}

static void a_list_may_be_what_another_gave(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    (void)define(&node, "in-a-row", in_a_row);
    order_lines("in-a-row", "i-21", 6, -1);
    serve_until(l, "i-21", "processed");
    get(&node, &r, "/v1/tasks/i-21/items?step=weigh");
    EXPECT(&r, 200);
    assert_int_equal(int_at(&r, "items.5.input.of"), 6);
    assert_int_equal(int_at(&r, "items.5.input.line"), 5);
}

static void expressions_see_what_failed(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    (void)define(&node, "errors", errors);
    order_lines("errors", "i-22", 6, 4);
    while (serve_once(l, PLACES))
        ;
    fetch(&node, &r, "t", "i");
    assert_int_equal(int_at(&r, "requests.0.input.failed"), 1);
    assert_int_equal(int_at(&r, "requests.0.input.first.index"), 4);
    EXPECT_TEXT(&r, "requests.0.input.first.code", "out-of-stock");
    char *token = token_in(&r, 0);
    hand_in(&node, "t", "i", token, "\"output\": null", "accepted");
    free(token);
    wait_for_state(&node, "i-22", "processed");
}

static void why_tells_of_items(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    order_lines("order", "i-23", 9, -1);
    WAIT_FOR((task_of(&node, &r, "i-23"),
              at(&r, "steps.0.items.at_work.0") != NULL || int_at(&r, "steps.0.items.count") == 9),
             "its list");
    get(&node, &r, "/v1/tasks/i-23/why");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/agents/s/work", "{\"instance\": \"w\", \"max\": 3, \"wait\": \"10s\"}");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/tasks/i-23/why");
    EXPECT(&r, 200);
    CHECK(strstr(text_at(&r, "summary"), "pack"), "it says: %s", text_at(&r, "summary"));
    post(&node, &r, "/v1/tasks/i-23/cancel", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/tasks/i-23/why");
    EXPECT(&r, 200);
    serve_until(l, "i-23", "compensated");
}

/* 17 of 1 MB. */
static void outputs_that_are_too_long_fail_the_step_that_reads_them(void **state)
{
    CLEANUP(buf_fini) struct buf large = {0};
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 1000000; i++)
        buf_byte(&large, 'x');
    order_lines("order", "i-24", 17, -1);
    for (int i = 0; i < 17; i++) {
        CLEANUP(buf_fini) struct buf result = {0};
        fetch(&node, &r, "s", "i");
        char *token = token_in(&r, 0);
        buf_fmt(&result, "\"output\": \"%s\"", large.ptr);
        hand_in(&node, "s", "i", token, result.ptr, "accepted");
        free(token);
        reply_fini(&r);
    }
    WAIT_FOR((post(&node, &r, "/v1/agents/t/work",
                   "{\"instance\": \"i\", \"max\": 1, \"wait\": \"100ms\"}"),
              task_of(&node, &r, "i-24"), strcmp(text_at(&r, "error.code"), "too_big") == 0),
             "it failed");
    EXPECT_TEXT(&r, "cause.step", "tell");
}

static void write_item(const char *task, const char *doc)
{
    char path[100];
    char change[400];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    (void)snprintf(change, sizeof change,
                   "UPDATE item SET doc = '%s' WHERE number = 5 AND task = (SELECT "
                   "seq FROM task WHERE id = '%s')",
                   doc, task);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, change, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
}

static char *read_item(const char *task)
{
    char query[200];

    (void)
        snprintf(query, sizeof query,
                 "SELECT doc FROM item WHERE number = 5 AND task = (SELECT seq FROM task WHERE id "
                 "= '%s')",
                 task);
    return sql(&node, query);
}

/* The last one of the list has to be undone first. Somebody damages its row, and repairs it. */
static void what_cannot_be_read_is_read_again(void **state)
{
    struct ledger *l = ledger_new();
    REPLY r = {0};
    (void)state;

    if (store_is_postgres())
        return;
    order_lines("alone", "i-25", 6, -1);
    serve_until(l, "i-25", "processed");
    char *doc = read_item("i-25");
    node_stop(&node);
    write_item("i-25", "{}");
    node_start(&node, flags);
    post(&node, &r, "/v1/tasks/i-25/undo", "{\"reason\": \"test\"}");
    EXPECT(&r, 200);
    WAIT_FOR(node_log_has(&node, "event=items_unreadable"), "it is logged");
    sleep_ms(1500);
    while (serve_once(l, PLACES)) /* of other tasks */
        ;
    task_of(&node, &r, "i-25");
    assert_int_equal(int_at(&r, "steps.0.items.undone"), 0);
    CHECK(node_log_count(&node, "event=items_unreadable") < 11, "it is logged too often");
    node_stop(&node);
    write_item("i-25", doc);
    free(doc);
    node_start(&node, flags);
    serve_until(l, "i-25", "compensated");
    for (int i = 0; i < 6; i++)
        assert_int_equal(l->back[i], 1);
}

/* A result without an outcome is sent again. Others in the same call have theirs. */
static void a_result_for_an_unreadable_item_is_not_lost(void **state)
{
    REPLY r = {0};
    char *t[2];
    char path[300];
    (void)state;

    if (store_is_postgres())
        return;
    order_lines("wide", "i-26", 7, -1);
    take(7, (const char *[]){"i-26/pack.5", "i-26/pack.6"}, t, 2);
    hand_in(&node, "s", "i", t[0], "\"output\": {\"id\": 5}", "accepted");
    char *doc = read_item("i-26");
    node_stop(&node);
    write_item("i-26", "{}");
    node_start(&node, flags);
    post(&node, &r, "/v1/agents/s/work",
         "{\"instance\": \"i\", \"max\": 0, \"results\": [{\"token\": \"%s\", \"output\": 5}, "
         "{\"token\": \"%s\", \"output\": 6}]}",
         t[0], t[1]);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "outcomes.0.token", t[1]);
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    CHECK(!at(&r, "outcomes.1"), "it has an outcome");
    (void)snprintf(path, sizeof path, "/v1/attempts/%s", t[0]);
    post(&node, &r, path, "{\"output\": 5}");
    expect_problem(&r, 503, "busy");
    post(&node, &r, "/v1/tasks/i-26/skip", "{\"step\": \"pack.5\", \"reason\": \"test\"}");
    expect_problem(&r, 500, "corrupt");
    node_stop(&node);
    write_item("i-26", doc);
    node_start(&node, flags);
    hand_in(&node, "s", "i", t[0], "\"output\": {\"id\": 5}", "repeated");
    post(&node, &r, "/v1/tasks/i-26/cancel", "{\"reason\": \"test\"}");
    serve_until(ledger_new(), "i-26", "compensated");
    free(t[0]);
    free(t[1]);
    free(doc);
}

static void expect_bad_list(const char *id, const char *lines, const char *text)
{
    CLEANUP(buf_fini) struct buf body = {0};
    REPLY r = {0};

    buf_fmt(&body, "{\"workflow\": \"any\", \"id\": \"%s\", \"input\": {\"lines\": %s}}", id,
            lines);
    post(&node, &r, "/v1/tasks", "%s", body.ptr);
    EXPECT(&r, 201);
    wait_for_state(&node, id, "compensated");
    task_of(&node, &r, id);
    CHECK(strstr(text_at(&r, "error.message"), text), "it says: %s", text_at(&r, "error.message"));
}

static void a_bad_list_fails_the_step(void **state)
{
    CLEANUP(buf_fini) struct buf many = {0};
    CLEANUP(buf_fini) struct buf large = {0};
    REPLY r = {0};
    (void)state;

    (void)define(&node, "any",
                 "\"steps\": [{\"name\": \"pack\", \"for_each\": \"${ .input.lines }\", "
                 "\"max_items\": 10000," WHAT "]");
    expect_bad_list("i-8", "7", "list");
    expect_bad_list("i-9", "\"text\"", "list");
    buf_byte(&many, '[');
    for (int i = 0; i < 10001; i++)
        buf_str(&many, i ? ",1" : "1");
    buf_byte(&many, ']');
    expect_bad_list("i-10", many.ptr, "10001");
    buf_str(&large, "{\"workflow\": \"any\", \"id\": \"i-14\", \"input\": {\"lines\": [\"");
    while (large.len < 5 << 20)
        buf_byte(&large, 'x');
    buf_str(&large, "\"]}}");
    post(&node, &r, "/v1/tasks", "%s", large.ptr);
    EXPECT(&r, 413);
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"any\", \"id\": \"i-11\", \"input\": {\"lines\": []}}");
    EXPECT(&r, 201);
    wait_for_state(&node, "i-11", "processed");
    task_of(&node, &r, "i-11");
    CHECK(raw_is(&r, "steps.0.output", "[]"), "its output");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_items_are_done_and_the_next_step_sees_them),
        cmocka_unit_test(no_more_are_at_work_than_may_be),
        cmocka_unit_test(one_that_fails_undoes_the_others),
        cmocka_unit_test(with_continue_all_are_tried),
        cmocka_unit_test(the_output_has_the_item_that_ended_last),
        cmocka_unit_test(a_late_result_of_an_item_at_rest_settles_its_doubt),
        cmocka_unit_test(a_task_that_stops_while_a_row_is_read_starts_nothing),
        cmocka_unit_test(a_server_that_is_killed_loses_no_item),
        cmocka_unit_test(operators_reach_single_items),
        cmocka_unit_test(operators_reach_items_at_rest),
        cmocka_unit_test(items_are_read_in_pages),
        cmocka_unit_test(a_bad_list_fails_the_step),
        cmocka_unit_test(the_output_has_the_last_item),
        cmocka_unit_test(a_list_may_be_what_another_gave),
        cmocka_unit_test(expressions_see_what_failed),
        cmocka_unit_test(why_tells_of_items),
        cmocka_unit_test(outputs_that_are_too_long_fail_the_step_that_reads_them),
        cmocka_unit_test(what_cannot_be_read_is_read_again),
        cmocka_unit_test(a_result_for_an_unreadable_item_is_not_lost),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
