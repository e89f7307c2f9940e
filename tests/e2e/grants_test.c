/* Tests of tokens that are restricted to their own tasks and to some workflows: nothing that the
 * API answers may show whether other tasks exist. access_test.c has tokens in general. */

#include "kit.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "sse.h"

static struct node node;

#define STEPS                                                                                  \
    "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": "  \
    "\"x\", \"undo\": {\"action\": \"y\"}}, {\"name\": \"b\", \"agent\": \"ag\", \"action\": " \
    "\"x\", \"undo\": \"none\"}]"

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "debug"));
    define(&node, "held", STEPS);
    return 0;
}

static int start_without_workflows(void **state)
{
    node_init(&node);
    *state = &node;
    return 0;
}

/* ---- whose task it is ---- */

static struct node token_of(const char *name, const char *roles)
{
    char token[64];

    make_token(&node, name, roles, NULL, token);
    return as(&node, token);
}

static int submit_as(const struct node *n, const char *workflow, const char *id, const char *query)
{
    REPLY r = {0};
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/tasks%s", query);
    post(n, &r, path, "{\"workflow\": \"%s\", \"id\": \"%s\"}", workflow, id);
    if (r.status == 403)
        expect_problem(&r, 403, "forbidden");
    if (r.status == 409)
        expect_problem(&r, 409, "task-exists");
    return r.status;
}

static int cancel_as(const struct node *n, const char *id)
{
    REPLY r = {0};
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/cancel", id);
    post(n, &r, path, "{\"reason\": \"x\"}");
    return r.status;
}

/* All ways to look at one task, and to wait for it. None tells whether it is there. */
static void sees(const struct node *n, const char *id, bool may)
{
    static const char *const ways[] = {"", "?wait=1ms", "/why", "/events", "/signals"};
    REPLY there = {0};
    REPLY nowhere = {0};
    char path[60];

    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        (void)snprintf(path, sizeof path, "/v1/tasks/%s%s", id, ways[i]);
        send_as(n, &there, strcmp(ways[i], "/events") == 0 ? "HEAD" : "GET", path, NULL,
                SLICE_NONE);
        CHECK(there.status == (may ? 200 : 404), "%s: %d", path, there.status);
        if (!may && there.body.len > 0)
            expect_problem(&there, 404, "no-such-task");
    }
    (void)snprintf(path, sizeof path, "/v1/tasks/%s-nowhere", id);
    get(n, &nowhere, "%s", path);
    EXPECT(&nowhere, 404);
}

static void a_submitter_has_its_own_tasks_alone(void **state)
{
    const struct node shop = token_of("shop", "\"submit\"");
    const struct node other = token_of("other", "\"submit\"");
    const struct node mixed = token_of("mixed", "\"submit\", \"read\"");
    const struct node reader = token_of("reader", "\"submit\", \"read:he*\"");
    const struct node stranger = token_of("stranger", "\"submit\", \"read:shelf\"");
    REPLY r = {0};
    (void)state;

    CHECK(submit_as(&shop, "held", "s-1", "") == 201, "its own");
    CHECK(submit_as(&shop, "held", "s-2", "") == 201, "its own");
    sees(&shop, "s-1", true);
    sees(&other, "s-1", false);
    sees(&mixed, "s-1", true);
    get(&shop, &r, "/v1/tasks/s-1");
    EXPECT_TEXT(&r, "owner", "shop");
    CHECK(cancel_as(&other, "s-1") == 404, "another's");
    CHECK(cancel_as(&other, "nowhere") == 404, "as if it were not there");
    CHECK(cancel_as(&mixed, "s-1") == 403, "it may see it, and no more");
    CHECK(cancel_as(&reader, "s-1") == 403, "the same by the workflow's name");
    CHECK(cancel_as(&stranger, "s-1") == 404, "it reads another workflow");
    get(&shop, &r, "/v1/tasks/s-1");
    EXPECT_TEXT(&r, "state", "pending");
    CHECK(cancel_as(&shop, "s-1") == 200, "its own");
    CHECK(cancel_as(&node, "s-2") == 200, "the admin");
    get(&shop, &r, "/v1/tasks");
    expect_problem(&r, 403, "forbidden");
}

static int signal_as(const struct node *n, const char *id)
{
    REPLY r = {0};
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/signals/go", id);
    post(n, &r, path, "5");
    return r.status;
}

static int items_as(const struct node *n, const char *id)
{
    REPLY r = {0};

    get(n, &r, "/v1/tasks/%s/items?step=a", id);
    return r.status;
}

/* Whoever may see the task is told that its step has no items, and that no step takes the signal.
 */
static void items_and_signals_of_others_are_not_there(void **state)
{
    const struct node shop = token_of("shop", "\"submit\"");
    const struct node other = token_of("other", "\"submit\"");
    const struct node mixed = token_of("mixed", "\"submit\", \"read\"");
    (void)state;

    CHECK(submit_as(&shop, "held", "g-1", "") == 201, "its own");
    CHECK(items_as(&shop, "g-1") == 422 && items_as(&mixed, "g-1") == 422, "it is seen");
    CHECK(items_as(&other, "g-1") == 404 && items_as(&other, "nowhere") == 404, "another's");
    CHECK(signal_as(&shop, "g-1") == 422, "its own");
    CHECK(signal_as(&mixed, "g-1") == 403, "it may see it, and no more");
    CHECK(signal_as(&other, "g-1") == 404 && signal_as(&other, "nowhere") == 404, "another's");
}

static void a_submission_is_repeated_by_its_own_token(void **state)
{
    const struct node shop = token_of("shop", "\"submit\"");
    const struct node other = token_of("other", "\"submit\"");
    REPLY r = {0};
    (void)state;

    CHECK(submit_as(&shop, "held", "r-1", "") == 201, "new");
    CHECK(submit_as(&shop, "held", "r-1", "") == 200, "again");
    CHECK(submit_as(&other, "held", "r-1", "") == 409, "another's");
    CHECK(submit_as(&other, "held", "r-1", "?wait=5s") == 409, "nor by waiting");
    CHECK(submit_as(&node, "held", "r-1", "") == 200, "the admin sees all");
    send_as(&other, &r, "POST", "/v1/tasks", "application/x-ndjson",
            SLICE("{\"workflow\": \"held\", \"id\": \"r-1\"}\n"
                  "{\"workflow\": \"held\", \"id\": \"r-2\"}\n"));
    EXPECT(&r, 200);
    CHECK(strstr(r.body.ptr, "409") && strstr(r.body.ptr, "201"), "%s", r.body.ptr);
    sees(&other, "r-2", true);
    sees(&shop, "r-2", false);
}

static void is_logged(const char *token, const char *path, const char *reason)
{
    char want[240];

    (void)snprintf(want, sizeof want,
                   "event=request_refused status=403 address=127.0.0.1 token=%s method=POST "
                   "path=%s reason=\"%s\"",
                   token, path, reason);
    CHECK(node_log_has(&node, want), "%s", want);
}

/* As is one that lacks a role. */
static void who_lacks_a_scope_is_logged(void **state)
{
    const struct node till = token_of("till", "\"submit:held\"");
    const struct node lines = token_of("lines", "\"submit:held\"");
    const struct node mixed = token_of("mixed", "\"submit\", \"read\"");
    REPLY r = {0};
    (void)state;

    CHECK(submit_as(&till, "held", "l-1", "") == 201, "its workflow");
    CHECK(node_log_count(&node, "event=request_refused") == 0, "nobody was refused");
    CHECK(submit_as(&till, "salaries", "l-2", "") == 403, "another one");
    is_logged("till", "/v1/tasks", "it may not submit to this workflow");
    send_as(&lines, &r, "POST", "/v1/tasks", "application/x-ndjson",
            SLICE("{\"workflow\": \"held\", \"id\": \"l-3\"}\n"
                  "{\"workflow\": \"salaries\", \"id\": \"l-4\"}\n"
                  "{\"workflow\": \"salaries\", \"id\": \"l-5\"}\n"));
    EXPECT(&r, 200);
    is_logged("lines", "/v1/tasks", "it may not submit to the workflow of some lines");
    CHECK(node_log_count(&node, "token=lines") == 1, "once");
    CHECK(cancel_as(&mixed, "l-1") == 403, "it only reads it");
    is_logged("mixed", "/v1/tasks/l-1/cancel", "it may not cancel tasks of others");
    for (int i = 0; i < 30; i++)
        CHECK(submit_as(&till, "salaries", "l-2", "") == 403, "again");
    CHECK(node_log_count(&node, "event=request_refused") == 10, "not each of many");
}

/* It is good JSON, and no document of a task. */
static void damage(const char *id)
{
    char path[120];
    char text[120];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    (void)snprintf(text, sizeof text,
                   "UPDATE task SET doc = json_set(doc, '$.steps', 5) WHERE id = '%s'", id);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK, "%s", path);
    (void)sqlite3_busy_timeout(db, PATIENCE_MS);
    CHECK(sqlite3_exec(db, text, NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    (void)sqlite3_close(db);
}

/* A task that cannot be shown is there for those alone who would be shown it. */
static void what_cannot_be_read_is_hidden_as_well(void **state)
{
    static const char *const ways[] = {"", "/why", "/events"};
    const struct node shop = token_of("shop", "\"submit\"");
    const struct node other = token_of("other", "\"submit\"");
    REPLY r = {0};
    (void)state;

    if (store_is_postgres())
        skip(); /* it damages the file of SQLite */
    CHECK(submit_as(&shop, "held", "broken", "") == 201, "new");
    damage("broken");
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        get(&shop, &r, "/v1/tasks/broken%s", ways[i]);
        expect_problem(&r, 500, "task-unreadable");
        get(&other, &r, "/v1/tasks/broken%s", ways[i]);
        expect_problem(&r, 404, "no-such-task");
    }
}

/* Owners outlive a start, and the change of a task. */
static void an_owner_is_stored(void **state)
{
    const struct node shop = token_of("shop", "\"submit\"");
    const struct node other = token_of("other", "\"submit\"");
    REPLY r = {0};
    (void)state;

    CHECK(submit_as(&shop, "held", "k-1", "") == 201, "new");
    fetch(&node, &r, "ag", "i");
    node_kill(&node);
    node_start(&node, FLAGS("--log", "debug"));
    struct node shop_again = as(&node, shop.token);
    struct node other_again = as(&node, other.token);
    sees(&shop_again, "k-1", true);
    sees(&other_again, "k-1", false);
    CHECK(cancel_as(&other_again, "k-1") == 404, "another's");
    send_as(&node, &r, "DELETE", "/v1/tokens/shop", NULL, SLICE_NONE);
    const struct node heir = token_of("shop", "\"submit\"");
    sees(&heir, "k-1", true); /* by its name */
}

static void a_task_of_nobody_takes_the_role_read(void **state)
{
    REPLY r = {0};
    (void)state;

    node_start(&node, FLAGS("--open"));
    define(&node, "held", STEPS);
    submit(&node, "held", "o-1");
    get(&node, &r, "/v1/tasks/o-1");
    EXPECT_RAW(&r, "owner", "null");
    node_stop(&node);
    node_start(&node, FLAGS("--log", "info"));
    const struct node shop = token_of("shop", "\"submit\"");
    const struct node reader = token_of("reader", "\"read:held\"");
    sees(&shop, "o-1", false);
    sees(&reader, "o-1", true);
    CHECK(cancel_as(&shop, "o-1") == 404, "nobody's");
    post(&shop, &r, "/v1/tasks", "{\"workflow\": \"held\", \"id\": \"o-1\", \"input\": 5}");
    expect_problem(&r, 409, "task-exists");
}

/* ---- some workflows ---- */

static size_t count_ids(const struct reply *r)
{
    size_t n = 0;

    for (const char *at = r->body.ptr; at && (at = strstr(at, "\"id\":")); at++)
        n++;
    return n;
}

static void some_workflows_are_all_there_is(void **state)
{
    const struct node to = token_of("to", "\"submit:shop-*\", \"submit:held\"");
    const struct node some = token_of("some", "\"read:shop-*\"");
    const struct node one = token_of("one", "\"read:shop-a\"");
    REPLY r = {0};
    (void)state;

    define(&node, "shop-a", STEPS);
    define(&node, "shop-b", STEPS);
    define(&node, "bank", STEPS);
    for (int i = 0; i < 3; i++) {
        char id[3][20];
        (void)snprintf(id[0], sizeof id[0], "a-%d", i);
        (void)snprintf(id[1], sizeof id[1], "b-%d", i);
        (void)snprintf(id[2], sizeof id[2], "k-%d", i);
        CHECK(submit_as(&to, "shop-a", id[0], "") == 201, "shop-a");
        CHECK(submit_as(&node, "shop-b", id[1], "") == 201, "shop-b");
        CHECK(submit_as(&node, "bank", id[2], "") == 201, "bank");
        CHECK(submit_as(&to, "bank", "no", "") == 403, "not to bank");
        CHECK(submit_as(&to, "nowhere", "no", "") == 403, "there or not");
    }
    sees(&some, "a-1", true);
    sees(&some, "b-1", true);
    sees(&some, "k-1", false);
    sees(&one, "b-1", false);
    sees(&to, "a-1", true);
    sees(&to, "b-1", false);
    static const struct {
        const char *path;
        size_t some, one;
    } lists[] = {
        {"/v1/tasks", 6, 3},
        {"/v1/tasks?limit=4", 4, 3},
        {"/v1/tasks?workflow=shop-b", 3, 0},
        {"/v1/tasks?workflow=bank", 0, 0},
        {"/v1/tasks?state=pending,processed", 6, 3},
        {"/v1/tasks?state=pending&workflow=shop-a", 3, 3},
        {"/v1/tasks?ids=a-1,b-1,k-1", 2, 1},
    };
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        get(&some, &r, "%s", lists[i].path);
        CHECK(count_ids(&r) == lists[i].some, "%s: %s", lists[i].path, r.body.ptr);
        get(&one, &r, "%s", lists[i].path);
        CHECK(count_ids(&r) == lists[i].one, "%s: %s", lists[i].path, r.body.ptr);
    }
    get(&some, &r, "/v1/workflows");
    CHECK(strstr(r.body.ptr, "shop-b") && !strstr(r.body.ptr, "bank"), "%s", r.body.ptr);
    get(&some, &r, "/v1/workflows/bank");
    expect_problem(&r, 404, "no-such-workflow");
    get(&to, &r, "/v1/workflows/shop-b/versions/1");
    EXPECT(&r, 200);
    get(&some, &r, "/v1/stats");
    expect_problem(&r, 403, "forbidden");
}

/* The next event is of that task, whatever happened to others before. */
static void next_is(struct sse *s, const char *id)
{
    SSE_EVENT e = {0};

    CHECK(sse_next(s, &e), "the stream has ended");
    EXPECT_TEXT(&e.data, "id", id);
}

static void a_stream_tells_of_readable_workflows_alone(void **state)
{
    static const char *const paths[] = {"/v1/events", "/v1/events?state=pending",
                                        "/v1/events?per_second=1000"};
    const struct node some = token_of("some", "\"read:shop-*\"");
    struct sse streams[COUNT_OF(paths)] = {{0}};
    (void)state;

    define(&node, "shop-a", STEPS);
    define(&node, "bank", STEPS);
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        sse_open(&some, &streams[i], paths[i], NULL);
        sse_head(&streams[i]);
        CHECK(streams[i].status == 200, "%s: %d", paths[i], streams[i].status);
    }
    CHECK(submit_as(&node, "bank", "k-1", "") == 201, "bank");
    CHECK(submit_as(&node, "shop-a", "a-1", "") == 201, "shop-a");
    CHECK(submit_as(&node, "bank", "k-2", "") == 201, "bank");
    CHECK(submit_as(&node, "shop-a", "a-2", "") == 201, "shop-a");
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        next_is(&streams[i], "a-1");
        next_is(&streams[i], "a-2");
        sse_fini(&streams[i]);
    }
}

static bool validated_has(const struct node *n, const char *definition, const char *text)
{
    REPLY r = {0};

    post(n, &r, "/v1/validate", "%s", definition);
    EXPECT(&r, 200);
    return memmem(r.body.ptr, r.body.len, text, strlen(text));
}

#define PIVOT                                                                         \
    "\"steps\": [{\"name\": \"p\", \"agent\": \"ag\", \"action\": \"x\", \"pivot\": " \
    "true}]"
#define CHILD(name) \
    "\"steps\": [{\"name\": \"c\", \"task\": {\"workflow\": \"" name "\"}, \"undo\": \"none\"}]"
#define MINE(steps)  "{\"intact\": 1, \"workflow\": \"shop-mine\", " steps "}"
#define OTHER(steps) "{\"intact\": 1, \"workflow\": \"bank-child\", " steps "}"

/* A definition that is validated may name any workflow. */
static void validating_tells_nothing_of_other_workflows(void **state)
{
    static const char *const roles[] = {"\"submit:shop-*\"", "\"read:shop-*\""};
    (void)state;

    define(&node, "bank-child", STEPS);
    define(&node, "bank-pivot", PIVOT);
    define(&node, "bank-parent", CHILD("bank-child"));
    define(&node, "shop-pivot", PIVOT);
    for (size_t i = 0; i < COUNT_OF(roles); i++) {
        const struct node some = token_of(i ? "reads" : "submits", roles[i]);
        CHECK(validated_has(&some, MINE(CHILD("bank-child")), "\\\"bank-child\\\" that is stored"),
              "as if it were not there");
        CHECK(!validated_has(&some, MINE(CHILD("bank-pivot")), "has a pivot"), "nor what is in it");
        CHECK(!validated_has(&some, OTHER(PIVOT), "bank-parent"), "nor who starts it");
        CHECK(validated_has(&some, MINE(CHILD("shop-pivot")), "has a pivot"), "but of its own");
    }
    CHECK(validated_has(&node, OTHER(PIVOT), "bank-parent -> bank-child"), "the admin reads all");
    CHECK(!validated_has(&node, MINE(CHILD("bank-child")), "that is stored"), "it is");
}

/* Its first step fails for good, and it stops in error. */
static void fail_as(const struct node *n, const char *id, const char *message)
{
    char result[200];
    REPLY r = {0};

    CHECK(submit_as(n, "held", id, "") == 201, "%s is not taken", id);
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    (void)snprintf(result, sizeof result,
                   "\"error\": {\"code\": \"no\", \"message\": \"%s\", \"retryable\": false}",
                   message);
    hand_in(&node, "ag", "i", token, result, "accepted");
    free(token);
    wait_for_state(&node, id, "error");
}

static bool why_has(const struct node *n, const char *id, const char *text)
{
    REPLY r = {0};
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/why", id);
    get(n, &r, "%s", path);
    EXPECT(&r, 200);
    return memmem(r.body.ptr, r.body.len, text, strlen(text));
}

/* An alert stands for all tasks that failed alike, whoever submitted them. */
static void an_alert_tells_nothing_of_the_tasks_of_others(void **state)
{
    const struct node one = token_of("one", "\"submit\"");
    const struct node other = token_of("other", "\"submit\"");
    int64_t until = steady_ms() + PATIENCE_MS;
    (void)state;

    fail_as(&one, "ours", "no");
    fail_as(&other, "theirs", "the card of Mr. Smith");
    while (!why_has(&node, "ours", "\"examples\":[\"ours\",\"theirs\"]")
           || !why_has(&node, "ours", "Mr. Smith"))
        CHECK(steady_ms() < until, "the alert does not tell of both");
    CHECK(why_has(&one, "ours", "\"examples\":[\"ours\"]"), "its own task is named");
    CHECK(!why_has(&one, "ours", "Smith") && !why_has(&one, "ours", "theirs"), "of another task");
}

static void why_names_no_holder_of_another(void **state)
{
    const struct node shop = token_of("shop", "\"submit\"");
    const struct node other = token_of("other", "\"submit\"");
    (void)state;

    define(&node, "locked", "\"lock\": {\"key\": \"k\"}, " STEPS);
    CHECK(submit_as(&shop, "locked", "the-holder", "") == 201, "it gets the lock");
    CHECK(submit_as(&other, "locked", "waits", "") == 201, "it waits");
    WAIT_FOR(why_has(&node, "waits", "the-holder"), "the admin is told who holds it");
    CHECK(why_has(&other, "waits", "lock") && !why_has(&other, "waits", "the-holder"), "who");
}

#define ON(f)     cmocka_unit_test_setup_teardown(f, start, node_end)
#define BEFORE(f) cmocka_unit_test_setup_teardown(f, start_without_workflows, node_end)

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        ON(a_submitter_has_its_own_tasks_alone),
        ON(items_and_signals_of_others_are_not_there),
        ON(a_submission_is_repeated_by_its_own_token),
        ON(who_lacks_a_scope_is_logged),
        ON(what_cannot_be_read_is_hidden_as_well),
        ON(an_owner_is_stored),
        BEFORE(a_task_of_nobody_takes_the_role_read),
        ON(some_workflows_are_all_there_is),
        ON(a_stream_tells_of_readable_workflows_alone),
        ON(validating_tells_nothing_of_other_workflows),
        ON(an_alert_tells_nothing_of_the_tasks_of_others),
        ON(why_names_no_holder_of_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
