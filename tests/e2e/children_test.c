/* Children: tasks that a step of another task starts. A real server, killed around them; what a
 * family ends with is known of each of its tasks. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

/* A child has one step of agent "c", its parent one of agent "p" before and one after it. */
static const char ship[] =
    "\"inputs\": {\"line\": {\"type\": \"string\"}}, \"output\": {\"parcel\": \"${ "
    ".steps.go.output }\"},"
    "\"steps\": [{\"name\": \"go\", \"agent\": \"c\", \"action\": \"go\","
    " \"input\": {\"line\": \"${ .input.line }\"}, \"retry\": {\"attempts\": 1},"
    " \"undo\": {\"action\": \"back\", \"retry\": {\"attempts\": 1}}}]";
static const char held[] =
    "\"steps\": [{\"name\": \"go\", \"agent\": \"c\", \"action\": \"go\", \"undo\": \"none\","
    " \"retry\": {\"attempts\": 1}, \"on_failure\": \"hold\"}]";
static const char final[] =
    "\"steps\": [{\"name\": \"first\", \"agent\": \"c\", \"action\": \"first\", \"undo\": "
    "{\"action\": \"back\"}},"
    "{\"name\": \"turn\", \"agent\": \"c\", \"action\": \"turn\", \"pivot\": true},"
    "{\"name\": \"last\", \"agent\": \"c\", \"action\": \"last\", \"undo\": \"none\"}]";

#define BEFORE                                                           \
    "{\"name\": \"reserve\", \"agent\": \"p\", \"action\": \"reserve\"," \
    " \"retry\": {\"attempts\": 1}, \"undo\": {\"action\": \"release\"}}"
#define AFTER                                                                          \
    "{\"name\": \"tell\", \"agent\": \"p\", \"action\": \"tell\", \"undo\": \"none\"," \
    " \"retry\": {\"attempts\": 1}, \"input\": \"${ .steps.parcel.output }\"}"

static const char order[] =
    "\"steps\": [" BEFORE ", {\"name\": \"parcel\", \"task\": {\"workflow\": \"ship\","
    " \"input\": {\"line\": \"${ .input.line }\"}}}, " AFTER "]";
static const char holds[] =
    "\"steps\": [" BEFORE ", {\"name\": \"parcel\", \"task\": {\"workflow\": \"held\"}}, " AFTER
    "]";
static const char turns[] =
    "\"steps\": [{\"name\": \"parcel\", \"pivot\": true, \"task\": {\"workflow\": \"final\"}},"
    "{\"name\": \"beside\", \"after\": [], \"agent\": \"p\", \"action\": \"beside\","
    " \"retry\": {\"attempts\": 1}, \"undo\": {\"action\": \"aside\"}}]";
static const char other[] = "\"steps\": [{\"name\": \"parcel\", \"task\": {\"workflow\": \"ship\"},"
                            " \"undo\": {\"agent\": \"r\", \"action\": \"call-back\", \"retry\": "
                            "{\"attempts\": 2, \"wait\": "
                            "\"1ms\"}, \"input\": \"${ .steps.parcel.output }\"}}, " AFTER "]";
static const char deep[] = "\"steps\": [{\"name\": \"down\", \"task\": {\"workflow\": \"order\"}}]";

static void begin(void)
{
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
}

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    (void)define(&node, "ship", ship);
    (void)define(&node, "held", held);
    (void)define(&node, "final", final);
    (void)define(&node, "order", order);
    (void)define(&node, "holds", holds);
    (void)define(&node, "turns", turns);
    (void)define(&node, "deep", deep);
    (void)define(&node, "other", other);
    return 0;
}

static void order_of(const char *workflow, const char *id)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": {\"line\": \"book\"}}", workflow, id);
    EXPECT(&r, 201);
}

static void serve(const char *agent, const char *output)
{
    serve_step(&node, agent, "i", output);
}

static void fail_step(const char *agent, const char *code)
{
    CLEANUP(buf_fini) struct buf result = {0};
    REPLY r = {0};

    fetch(&node, &r, agent, "i");
    char *token = token_in(&r, 0);
    buf_fmt(&result,
            "\"error\": {\"code\": \"%s\", \"message\": \"no\", \"retryable\": false, \"effect\": "
            "\"none\"}",
            code);
    hand_in(&node, agent, "i", token, result.ptr, "accepted");
    free(token);
}

static void verb(const char *id, const char *name, int status)
{
    CLEANUP(buf_fini) struct buf path = {0};
    REPLY r = {0};

    buf_fmt(&path, "/v1/tasks/%s/%s", id, name);
    post(&node, &r, path.ptr, "{\"reason\": \"test\"}");
    EXPECT(&r, status);
}

static void wait_for_task(const char *id)
{
    REPLY r = {0};

    WAIT_FOR((get(&node, &r, "/v1/tasks/%s", id), r.status == 200), id);
}

static void a_child_gets_its_input_and_gives_its_output(void **state)
{
    REPLY r = {0};
    (void)state;

    order_of("order", "c-1");
    serve("p", "1");
    fetch(&node, &r, "c", "i");
    EXPECT_TEXT(&r, "requests.0.input.line", "book");
    EXPECT_TEXT(&r, "requests.0.task", "c-1@parcel");
    char *token = token_in(&r, 0);
    task_of(&node, &r, "c-1");
    EXPECT_TEXT(&r, "steps.1.kind", "task");
    EXPECT_TEXT(&r, "steps.1.child.id", "c-1@parcel");
    EXPECT_TEXT(&r, "steps.1.child.state", "running");
    task_of(&node, &r, "c-1@parcel");
    EXPECT_TEXT(&r, "parent", "c-1");
    EXPECT_TEXT(&r, "root", "c-1");
    EXPECT_TEXT(&r, "parent_step", "parcel");
    hand_in(&node, "c", "i", token, "\"output\": \"p-7\"", "accepted");
    free(token);
    fetch(&node, &r, "p", "i");
    EXPECT_TEXT(&r, "requests.0.input.parcel", "p-7");
    token = token_in(&r, 0);
    hand_in(&node, "p", "i", token, "\"output\": null", "accepted");
    free(token);
    wait_for_state(&node, "c-1", "processed");
    wait_for_state(&node, "c-1@parcel", "processed");
}

static void a_child_that_fails_undoes_its_parent(void **state)
{
    REPLY r = {0};
    (void)state;

    order_of("order", "c-2");
    serve("p", "1");
    fail_step("c", "no-address");
    serve("p", "null"); /* the undo of reserve */
    wait_for_state(&node, "c-2", "compensated");
    wait_for_state(&node, "c-2@parcel", "compensated");
    task_of(&node, &r, "c-2");
    EXPECT_TEXT(&r, "error.code", "no-address");
    EXPECT_TEXT(&r, "steps.1.state", "failed");
    EXPECT_TEXT(&r, "steps.1.child.state", "compensated");
}

static void what_fails_after_it_undoes_the_child(void **state)
{
    REPLY r = {0};
    (void)state;

    order_of("order", "c-3");
    serve("p", "1");
    serve("c", "\"p-1\"");
    fail_step("p", "closed");
    fetch(&node, &r, "c", "i");
    EXPECT_TEXT(&r, "requests.0.action", "back");
    EXPECT_TEXT(&r, "requests.0.task", "c-3@parcel");
    char *token = token_in(&r, 0);
    task_of(&node, &r, "c-3");
    EXPECT_TEXT(&r, "steps.1.state", "undoing");
    EXPECT_TEXT(&r, "steps.0.state", "completed"); /* it is undone after the later step */
    hand_in(&node, "c", "i", token, "\"output\": null", "accepted");
    free(token);
    serve("p", "null");
    wait_for_state(&node, "c-3", "compensated");
    wait_for_state(&node, "c-3@parcel", "compensated");
}

static void a_processed_family_is_undone_from_its_root(void **state)
{
    REPLY r = {0};
    (void)state;

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"deep\", \"id\": \"c-4\", \"input\": {\"line\": \"pen\"}}");
    EXPECT(&r, 201);
    serve("p", "1");
    serve("c", "\"p-2\"");
    serve("p", "null");
    wait_for_state(&node, "c-4", "processed");
    task_of(&node, &r, "c-4@down@parcel");
    EXPECT_TEXT(&r, "root", "c-4");
    verb("c-4@down", "undo", 409);
    verb("c-4", "undo", 200);
    serve("c", "null");
    serve("p", "null");
    wait_for_state(&node, "c-4", "compensated");
    wait_for_state(&node, "c-4@down", "compensated");
    wait_for_state(&node, "c-4@down@parcel", "compensated");
}

static void a_cancelled_parent_stops_its_child(void **state)
{
    REPLY r = {0};
    (void)state;

    order_of("order", "c-5");
    serve("p", "1");
    wait_for_task("c-5@parcel");
    verb("c-5", "cancel", 200);
    wait_for_state(&node, "c-5@parcel", "compensated");
    serve("p", "null");
    wait_for_state(&node, "c-5", "compensated");
    task_of(&node, &r, "c-5");
    EXPECT_TEXT(&r, "steps.1.child.asked", "stop");
    EXPECT_TEXT(&r, "steps.1.child.state", "compensated");
}

static void a_child_in_error_stops_its_parent_until_it_goes_on(void **state)
{
    REPLY r = {0};
    (void)state;

    order_of("holds", "c-6");
    serve("p", "1");
    fail_step("c", "broken");
    wait_for_state(&node, "c-6", "error");
    task_of(&node, &r, "c-6");
    EXPECT_TEXT(&r, "error.code", "child");
    EXPECT_TEXT(&r, "steps.1.child.state", "error");
    verb("c-6@parcel", "close", 409);
    verb("c-6@parcel", "retry", 200);
    wait_for_state(&node, "c-6", "pending");
    serve("c", "1");
    serve("p", "1");
    wait_for_state(&node, "c-6", "processed");
}

static void a_pivot_is_asked_before_its_parent_turns_back(void **state)
{
    REPLY r = {0};
    (void)state;

    order_of("turns", "c-7");
    serve("c", "1"); /* first */
    fail_step("p", "full");
    WAIT_FOR((task_of(&node, &r, "c-7@parcel"), strcmp(text_at(&r, "direction"), "undo") == 0),
             "the child turns back");
    serve("c", "null");
    wait_for_state(&node, "c-7", "compensated");

    order_of("turns", "c-8");
    serve("c", "1");
    serve("c", "1"); /* its pivot */
    fail_step("p", "full");
    WAIT_FOR((task_of(&node, &r, "c-8"),
              strcmp(text_at(&r, "steps.0.child.state"), "stands") == 0
                  || strcmp(text_at(&r, "steps.0.child.state"), "processed") == 0),
             "the child says that it stands");
    serve("c", "1");
    wait_for_state(&node, "c-8@parcel", "processed");
    wait_for_state(&node, "c-8", "error");
}

/* The child stays processed; attempts of the undo are those of any step, also over a restart. */
static void an_agent_may_undo_a_child_in_another_way(void **state)
{
    REPLY r = {0};
    (void)state;

    order_of("other", "c-60");
    serve("c", "\"p-60\"");
    fail_step("p", "closed");
    fetch(&node, &r, "r", "i");
    EXPECT_TEXT(&r, "requests.0.action", "call-back");
    EXPECT_TEXT(&r, "requests.0.input.parcel", "p-60");
    EXPECT_TEXT(&r, "requests.0.idempotency_key", "c-60/parcel/undo");
    node_kill(&node);
    begin();
    char *token = token_in(&r, 0);
    hand_in(&node, "r", "i", token,
            "\"error\": {\"code\": \"busy\", \"message\": \"no\", \"retryable\": true}",
            "accepted");
    free(token);
    serve("r", "null");
    wait_for_state(&node, "c-60", "compensated");
    task_of(&node, &r, "c-60@parcel");
    EXPECT_TEXT(&r, "state", "processed");
}

static void a_pause_passes_down(void **state)
{
    REPLY r = {0};
    (void)state;

    order_of("order", "c-9");
    serve("p", "1");
    wait_for_task("c-9@parcel");
    verb("c-9@parcel", "pause", 409);
    verb("c-9", "pause", 200);
    WAIT_FOR((task_of(&node, &r, "c-9@parcel"), time_at(&r, "paused_at") != 0), "it is paused");
    verb("c-9", "resume", 200);
    WAIT_FOR((task_of(&node, &r, "c-9@parcel"), time_at(&r, "paused_at") == 0), "it goes on");
    serve("c", "1");
    serve("p", "1");
    wait_for_state(&node, "c-9", "processed");
}

static void listings_show_roots(void **state)
{
    REPLY r = {0};
    (void)state;

    get(&node, &r, "/v1/tasks?workflow=ship");
    CHECK(!at(&r, "tasks.0"), "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/tasks?workflow=ship&children=true");
    EXPECT_TEXT(&r, "tasks.0.workflow", "ship");
    get(&node, &r, "/v1/tasks?root=c-4");
    EXPECT_TEXT(&r, "tasks.0.id", "c-4@down@parcel");
    EXPECT_TEXT(&r, "tasks.1.id", "c-4@down");
    CHECK(!at(&r, "tasks.2"), "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/tasks?parent=c-4");
    EXPECT_TEXT(&r, "tasks.0.id", "c-4@down");
    CHECK(!at(&r, "tasks.1"), "%.*s", SLICE_ARG(r.body));
    get(&node, &r, "/v1/tasks?state=processed&workflow=ship");
    CHECK(at(&r, "tasks.0"), "a state shows children, too: %.*s", SLICE_ARG(r.body));
}

static void bad_families_are_refused(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "orphan",
                 "\"steps\": [{\"name\": \"go\", \"task\": {\"workflow\": \"nowhere\"}}]");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"orphan\", \"id\": \"c-20\"}");
    EXPECT(&r, 422);
    CHECK(strstr(text_at(&r, "detail"), "nowhere"), "%.*s", SLICE_ARG(r.body));
    (void)define(&node, "ping",
                 "\"steps\": [{\"name\": \"go\", \"task\": {\"workflow\": \"pong\"}}]");
    (void)define(&node, "pong",
                 "\"steps\": [{\"name\": \"go\", \"task\": {\"workflow\": \"ping\"}}]");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"ping\", \"id\": \"c-21\"}");
    EXPECT(&r, 422);
    CHECK(strstr(text_at(&r, "detail"), "ping -> pong -> ping"), "%.*s", SLICE_ARG(r.body));
    put(&node, &r, "/v1/workflows/echo",
        "{\"intact\": 1, \"workflow\": \"echo\", \"steps\": [{\"name\": \"go\", \"task\": "
        "{\"workflow\": \"echo\"}}]}");
    expect_problem(&r, 422, "bad-definition"); /* when it is stored */
    CHECK(strstr(text_at(&r, "errors.0.expected"), "one that starts itself"), "%.*s",
          SLICE_ARG(r.body));
    send_as(&node, &r, "PUT", "/v1/schedules/rally", "application/yaml",
            SLICE("intact: 1\nschedule: rally\nworkflow: ping\ncron: \"0 0 1 1 *\"\n"));
    EXPECT(&r, 422);
    EXPECT_TEXT(&r, "type", "urn:intact:problem:bad-family");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"ship\", \"id\": \"c-22@parcel\"}");
    EXPECT(&r, 422);
    (void)define(&node, "careless",
                 "\"steps\": [{\"name\": \"go\", \"task\": {\"workflow\": \"ship\", \"input\": "
                 "{\"line\": 5}}}]");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"careless\", \"id\": \"c-23\"}");
    EXPECT(&r, 201);
    wait_for_state(&node, "c-23", "compensated");
    task_of(&node, &r, "c-23");
    CHECK(strstr(text_at(&r, "error.message"), "line"), "%.*s", SLICE_ARG(r.body));
}

/* Eight levels, and one more. The family is known when it is submitted, whatever is stored first.
 */
static void a_family_of_nine_levels_is_refused(void **state)
{
    REPLY r = {0};
    char name[20];
    char steps[100];
    (void)state;

    for (int i = 1; i <= 9; i++) {
        (void)snprintf(name, sizeof name, "level-%d", i);
        (void)snprintf(steps, sizeof steps,
                       "\"steps\": [{\"name\": \"go\", \"task\": {\"workflow\": \"level-%d\"}}]",
                       i + 1);
        (void)define(&node, name,
                     i < 9 ? steps : "\"steps\": [{\"name\": \"go\", \"wait\": \"1h\"}]");
    }
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"level-1\", \"id\": \"c-25\"}");
    expect_problem(&r, 422, "bad-family");
    CHECK(strstr(text_at(&r, "detail"), "at most 8 levels"), "%.*s", SLICE_ARG(r.body));
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"level-2\", \"id\": \"c-26\"}");
    EXPECT(&r, 201);
    wait_for_task("c-26@go@go@go@go@go@go@go");
    verb("c-26", "cancel", 200);
    wait_for_state(&node, "c-26", "compensated");
}

/* The versions of a family are fixed when its root is submitted. */
static void versions_that_are_stored_meanwhile_do_not_count(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "leaf", ship);
    (void)define(&node, "tree",
                 "\"steps\": [" BEFORE ", {\"name\": \"parcel\", \"task\": {\"workflow\": \"leaf\","
                 " \"input\": {\"line\": \"${ .input.line }\"}}}]");
    order_of("tree", "c-27");
    (void)define(&node, "leaf",
                 "\"steps\": [{\"name\": \"new\", \"agent\": \"c\", \"action\": \"new\", \"undo\": "
                 "\"none\"}]");
    serve("p", "1");
    wait_for_task("c-27@parcel");
    task_of(&node, &r, "c-27@parcel");
    assert_int_equal(int_at(&r, "version"), 1);
    fetch(&node, &r, "c", "i");
    EXPECT_TEXT(&r, "requests.0.step", "go");
    char *token = token_in(&r, 0);
    hand_in(&node, "c", "i", token, "\"output\": 1", "accepted");
    free(token);
    wait_for_state(&node, "c-27", "processed");
    order_of("tree", "c-28");
    serve("p", "1");
    fetch(&node, &r, "c", "i");
    EXPECT_TEXT(&r, "requests.0.step", "new");
    token = token_in(&r, 0);
    hand_in(&node, "c", "i", token, "\"output\": 1", "accepted");
    free(token);
    wait_for_state(&node, "c-28", "processed");
}

static void filters_are_checked(void **state)
{
    REPLY r = {0};
    (void)state;

    get(&node, &r, "/v1/tasks?children=perhaps");
    EXPECT(&r, 422);
    EXPECT_TEXT(&r, "type", "urn:intact:problem:bad-filter");
    get(&node, &r, "/v1/tasks?root=a%%20b");
    EXPECT(&r, 422);
    get(&node, &r, "/v1/tasks?parent=");
    EXPECT(&r, 422);
    get(&node, &r, "/v1/tasks?state=processed,compensated&children=false&workflow=ship");
    CHECK(!at(&r, "tasks.0"), "%.*s", SLICE_ARG(r.body));
}

static void chosen_are(const char *filter, int matched)
{
    REPLY r = {0};

    post(&node, &r, "/v1/operations",
         "{\"verb\": \"retry\", \"reason\": \"test\", \"dry_run\": true, \"filter\": {%s}}",
         filter);
    EXPECT(&r, 200);
    CHECK(int_at(&r, "matched") == matched, "%s: %.*s", filter, SLICE_ARG(r.body));
}

static void operations_choose_children(void **state)
{
#define ENDED "\"state\": [\"processed\", \"compensated\"]"
    (void)state;

    chosen_are("\"root\": \"c-4\", " ENDED, 2);
    chosen_are("\"parent\": \"c-4\", " ENDED, 1);
    chosen_are("\"root\": \"c-4\", \"children\": true, " ENDED, 2);
    chosen_are("\"workflow\": \"ship\", \"children\": false, " ENDED, 0);
    chosen_are("\"workflow\": \"ship\"", 0);
}

/* ---- alerts ---- */

static bool alert_is_told(struct reply *r, const char *workflow, const char *code)
{
    CLEANUP(buf_fini) struct buf group = {0};

    get(&node, r, "/v1/alerts?state=open");
    buf_fmt(&group, "\"workflow\":\"%s\"", workflow);
    const char *at = memmem(r->body.ptr, r->body.len, group.ptr, group.len);
    return at && (!*code || memmem(r->body.ptr, r->body.len, code, strlen(code)));
}

/* Tasks are looked at in the order in which they stopped. Of those that one look has found, each
 * alert is a transaction of its own, in any order. */
static void wait_until_all_were_looked_at(const char *id)
{
    REPLY r = {0};

    order_of("held", id);
    fail_step("c", id);
    WAIT_FOR(alert_is_told(&r, "held", id), id);
}

static void a_family_has_one_alert(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "far",
                 "\"steps\": [{\"name\": \"down\", \"task\": {\"workflow\": \"holds\"}}]");
    order_of("far", "c-50");
    serve("p", "1");
    fail_step("c", "broken");
    wait_for_state(&node, "c-50", "error");
    wait_until_all_were_looked_at("c-41");
    wait_until_all_were_looked_at("c-43"); /* in a later look, after the first was stored */
    CHECK(alert_is_told(&r, "held", "broken"), "the child has one: %.*s", SLICE_ARG(r.body));
    CHECK(!alert_is_told(&r, "holds", ""), "its parent has none: %.*s", SLICE_ARG(r.body));
    CHECK(!alert_is_told(&r, "far", ""), "nor has the root: %.*s", SLICE_ARG(r.body));
}

static void what_an_agent_calls_child_has_an_alert(void **state)
{
    REPLY r = {0};
    (void)state;

    (void)define(&node, "odd",
                 "\"steps\": [{\"name\": \"do\", \"agent\": \"p\", \"action\": \"do\", "
                 "\"undo\": \"none\", \"retry\": {\"attempts\": 1}, \"on_failure\": \"hold\"}]");
    order_of("odd", "c-42");
    fail_step("p", "child");
    WAIT_FOR(alert_is_told(&r, "odd", "child"), "it has an alert");
}

/* Killed before each answer of an agent: nothing is lost, and no child starts twice. */
static void a_family_outlives_its_server(void **state)
{
    REPLY r = {0};
    (void)state;

    order_of("order", "c-30");
    for (int i = 0; i < 3; i++) {
        node_kill(&node);
        begin();
        serve(i == 1 ? "c" : "p", "1");
    }
    node_kill(&node);
    begin();
    wait_for_state(&node, "c-30", "processed");
    verb("c-30", "undo", 200);
    for (int i = 0; i < 2; i++) {
        node_kill(&node);
        begin();
        serve(i == 0 ? "c" : "p", "null");
    }
    wait_for_state(&node, "c-30", "compensated");
    get(&node, &r, "/v1/tasks?root=c-30");
    CHECK(at(&r, "tasks.0") && !at(&r, "tasks.1"), "one child: %.*s", SLICE_ARG(r.body));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_gets_its_input_and_gives_its_output),
        cmocka_unit_test(a_child_that_fails_undoes_its_parent),
        cmocka_unit_test(what_fails_after_it_undoes_the_child),
        cmocka_unit_test(a_processed_family_is_undone_from_its_root),
        cmocka_unit_test(a_cancelled_parent_stops_its_child),
        cmocka_unit_test(a_child_in_error_stops_its_parent_until_it_goes_on),
        cmocka_unit_test(a_pivot_is_asked_before_its_parent_turns_back),
        cmocka_unit_test(an_agent_may_undo_a_child_in_another_way),
        cmocka_unit_test(a_pause_passes_down),
        cmocka_unit_test(listings_show_roots),
        cmocka_unit_test(bad_families_are_refused),
        cmocka_unit_test(a_family_of_nine_levels_is_refused),
        cmocka_unit_test(versions_that_are_stored_meanwhile_do_not_count),
        cmocka_unit_test(filters_are_checked),
        cmocka_unit_test(operations_choose_children),
        cmocka_unit_test(a_family_has_one_alert),
        cmocka_unit_test(what_an_agent_calls_child_has_an_alert),
        cmocka_unit_test(a_family_outlives_its_server),
    };

    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
