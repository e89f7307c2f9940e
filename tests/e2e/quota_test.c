/* Tests of the quotas of one token on a node: calls, bytes, submissions, open calls and tasks,
 * and time of the loop; other tokens are not affected. kit.h has the server under test. */

#include "kit.h"

#include <stdlib.h>

static struct node node;

enum { BURST_MS = 10000 }; /* of node/quota.c */

#define STEPS \
    "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", \"undo\": \"none\"}]"

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--log", "debug"));
    define(&node, "order", STEPS);
    return 0;
}

static struct node limited(const char *name, const char *roles, const char *limits)
{
    struct node n;
    REPLY r = {0};

    post(&node, &r, "/v1/tokens", "{\"name\": \"%s\", \"roles\": [%s], \"limits\": %s}", name,
         roles, limits);
    EXPECT(&r, 201);
    n = as(&node, text_at(&r, "token"));
    return n;
}

static void is_refused(const struct reply *r, const char *what)
{
    expect_problem(r, 429, "over-quota");
    CHECK(head_has(r, "\r\nRetry-After: "), "%.*s", SLICE_ARG(r->head));
    CHECK(strstr(text_at(r, "detail"), what), "%s", text_at(r, "detail"));
}

/* So many calls in a row were let in, of at most 60. */
static int let_in(const struct node *n, struct reply *r)
{
    for (int i = 0; i < 60; i++) {
        get(n, r, "/v1/nodes");
        if (r->status != 200)
            return i;
    }
    return 60;
}

static void calls_are_bounded_for_one_token_alone(void **state)
{
    const struct node wild = limited("wild", "\"read\"", "{\"calls\": 1}");
    const struct node calm = limited("calm", "\"read\"", "null");
    REPLY r = {0};
    (void)state;

    int in = let_in(&wild, &r);
    CHECK(in >= 10 && in < 60, "%d were let in", in);
    is_refused(&r, "1 calls a second");
    CHECK(let_in(&calm, &r) == 60, "another token");
    get(&node, &r, "/v1/tokens");
    EXPECT_TEXT(&r, "tokens.2.name", "wild");
    EXPECT_RAW(&r, "tokens.2.limits.calls", "1");
    EXPECT_RAW(&r, "tokens.2.use.refused", "1");
    CHECK(time_at(&r, "tokens.2.last_used_at") > 0, "when");
    EXPECT_RAW(&r, "tokens.0.limits.calls", "null");
    int64_t until = steady_ms() + PATIENCE_MS;
    do {
        CHECK(steady_ms() < until, "it is never let in again");
        sleep_ms(100);
        get(&wild, &r, "/v1/nodes");
    } while (r.status != 200);
    send_as(&node, &r, "PUT", "/v1/tokens/wild", "application/json",
            SLICE("{\"limits\": {\"calls\": 1000}}"));
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "limits.calls", "1000");
    CHECK(let_in(&wild, &r) == 60, "at once");
}

/* The body comes later than a burst lasts, and another call meanwhile: neither is beyond a limit.
 */
static void a_slow_body_is_within_the_limits(void **state)
{
    const struct node shop = limited("shop", "\"submit\"", "{}");
    REPLY r = {0};
    (void)state;

    int fd = dial(&node);
    say(fd, SLICE("POST /v1/validate HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                  "Content-Type: application/json\r\nContent-Length: 2\r\nAuthorization: Bearer "));
    say(fd, slice_of(shop.token));
    say(fd, SLICE("\r\n\r\n{"));
    sleep_ms(BURST_MS + 1000);
    get(&shop, &r, "/v1/workflows");
    EXPECT(&r, 200);
    say(fd, SLICE("}"));
    hear(fd, &r);
    expect_problem(&r, 422, "bad-definition");
}

static void submissions_are_counted_by_the_line(void **state)
{
    const struct node shop = limited("shop", "\"submit\"", "{\"submissions\": 1}");
    char lines[40 * 64] = "";
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 30; i++)
        (void)snprintf(lines + strlen(lines), 64, "{\"workflow\": \"order\", \"id\": \"l-%d\"}\n",
                       i);
    send_as(&shop, &r, "POST", "/v1/tasks", "application/x-ndjson", slice_of(lines));
    EXPECT(&r, 200);
    CHECK(strstr(r.body.ptr, "\"l-29\""), "a batch is taken whole");
    post(&shop, &r, "/v1/tasks", "{\"workflow\": \"order\"}");
    is_refused(&r, "1 submissions a second");
    post(&shop, &r, "/v1/submissions/refused", "{\"source\": \"amqp:q\", \"reason\": \"no\"}");
    is_refused(&r, "1 submissions a second"); /* it would be stored, too */
    get(&shop, &r, "/v1/tasks/l-3");
    EXPECT(&r, 200);
}

static void bytes_are_bounded(void **state)
{
    const struct node shop = limited("shop", "\"submit\"", "{\"bytes\": 10}");
    char body[400];
    REPLY r = {0};
    (void)state;

    memset(body, ' ', sizeof body);
    send_as(&shop, &r, "POST", "/v1/validate", "application/json",
            (struct slice){body, sizeof body});
    EXPECT(&r, 400);
    send_as(&shop, &r, "POST", "/v1/validate", "application/json", SLICE("{}"));
    is_refused(&r, "10 bytes a second");
    get(&shop, &r, "/v1/workflows"); /* it brings none */
    EXPECT(&r, 200);

    /* One body keeps its token out for a minute at most, however small the limit is. */
    const struct node slow = limited("slow", "\"submit\"", "{\"bytes\": 1}");
    send_as(&slow, &r, "POST", "/v1/validate", "application/json",
            (struct slice){body, sizeof body});
    EXPECT(&r, 400);
    send_as(&slow, &r, "POST", "/v1/validate", "application/json", SLICE("{}"));
    is_refused(&r, "1 bytes a second");
    const char *after = memmem(r.head.ptr, r.head.len, "Retry-After: ", 13);
    CHECK(after && strtol(after + 13, NULL, 10) <= 60, "%.*s", SLICE_ARG(r.head));
}

static void open_calls_are_bounded(void **state)
{
    const struct slice call = SLICE("{\"instance\": \"i\", \"wait\": \"5m\"}");
    const struct node agent = limited("agent", "\"agent:ag\"", "{\"waiting\": 2}");
    REPLY r = {0};
    int parked[2];
    (void)state;

    for (int i = 0; i < 2; i++)
        parked[i] = ask(&agent, "POST", "/v1/agents/ag/work", "application/json", call);
    wait_for_parked(&node, 2);
    get(&agent, &r, "/v1/nodes");
    is_refused(&r, "2 open calls at a time");
    submit(&node, "order", "o-1");
    hear(parked[0], &r);
    EXPECT(&r, 200);
    int64_t until = steady_ms() + PATIENCE_MS;
    do {
        CHECK(steady_ms() < until, "it is never let in again");
        sleep_ms(50);
        get(&agent, &r, "/v1/nodes");
    } while (r.status != 200);
    node_stop(&node);
    hear(parked[1], &r);
}

/* A definition that is read on the loop. */
static void make_dear(struct buf *b)
{
    buf_str(b, "{\"intact\": 1, \"workflow\": \"dear\", \"steps\": [");
    for (int i = 0; i < 80; i++)
        buf_fmt(b, "%s{\"name\": \"s%d\", \"agent\": \"a\", \"action\": \"x\", \"undo\": \"none\"}",
                i ? "," : "", i);
    buf_str(b, "]}");
    CHECK(b->len < 8000, "%zu bytes", b->len);
}

static void time_of_the_loop_is_bounded_while_others_call(void **state)
{
    const struct node wild = limited("wild", "\"read\"", "{\"cpu\": 1}");
    const struct node calm = limited("calm", "\"read\"", "null");
    CLEANUP(buf_fini) struct buf dear = {0};
    REPLY r = {0};
    (void)state;

    make_dear(&dear);
    sleep_ms(1500); /* nobody else calls */
    for (int i = 0; i < 400; i++) {
        send_as(&wild, &r, "POST", "/v1/validate", "application/json", buf_view(&dear));
        EXPECT(&r, 200);
    }
    get(&calm, &r, "/v1/nodes");
    EXPECT(&r, 200);
    send_as(&wild, &r, "POST", "/v1/validate", "application/json", buf_view(&dear));
    is_refused(&r, "1 milliseconds a second of the node's loop");
    get(&calm, &r, "/v1/nodes");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/tokens");
    EXPECT_TEXT(&r, "tokens.2.name", "wild");
    EXPECT_RAW(&r, "tokens.2.limits.cpu", "1");
    EXPECT_RAW(&r, "tokens.1.limits.cpu", "800");
    CHECK(int_at(&r, "tokens.2.use.cpu") >= 10, "%.*s", SLICE_ARG(r.body));
    CHECK(int_at(&r, "tokens.2.recent.calls") > 0, "%.*s", SLICE_ARG(r.body));
    EXPECT_INT(&r, "tokens.2.recent.refused", 1);
}

static void readings_are_bounded(void **state)
{
    const struct node wild = limited("wild", "\"read\"", "{\"readings\": 1}");
    REPLY r = {0};
    int in = 0;
    (void)state;

    submit(&node, "order", "r-1");
    do {
        get(&wild, &r, in % 2 ? "/v1/tasks" : "/v1/tasks/r-1");
    } while (r.status == 200 && ++in < 60);
    CHECK(in >= 10 && in < 60, "%d were let in", in);
    is_refused(&r, "1 readings a second");
    get(&wild, &r, "/v1/nodes"); /* it reads nothing */
    EXPECT(&r, 200);
    get(&node, &r, "/v1/tasks/r-1");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/tokens");
    EXPECT_RAW(&r, "tokens.1.limits.readings", "1");
    EXPECT_INT(&r, "tokens.1.use.readings", in);
}

/* ---- open tasks ---- */

static int64_t open_tasks_of_second(const struct node *n)
{
    REPLY r = {0};

    get(n, &r, "/v1/tokens");
    return int_at(&r, "tokens.1.use.open_tasks");
}

static int try_order(const struct node *n, struct reply *r)
{
    post(n, r, "/v1/tasks", "{\"workflow\": \"order\"}");
    return r->status;
}

static void open_tasks_are_bounded(void **state)
{
    struct node shop = limited("shop", "\"submit\"", "{\"open_tasks\": 3}");
    REPLY r = {0};
    (void)state;

    WAIT_FOR(open_tasks_of_second(&node) == 0, "there are none");
    for (int i = 0; i < 12; i++) { /* one after the other */
        CHECK(try_order(&shop, &r) == 201, "number %d: %d", i, r.status);
        serve_step(&node, "ag", "i", "1");
    }
    /* A task that begins while tasks are counted counts twice, until the next count. */
    for (int i = 0; i < 3; i++)
        WAIT_FOR(try_order(&shop, &r) == 201, "there is room");
    CHECK(try_order(&shop, &r) == 429, "%d", r.status);
    is_refused(&r, "3 open tasks");
    CHECK(try_order(&node, &r) == 201, "another token: %d", r.status);
    get(&node, &r, "/v1/tokens");
    EXPECT_RAW(&r, "tokens.1.limits.open_tasks", "3");
    EXPECT_RAW(&r, "tokens.0.limits.open_tasks", "null");

    /* What ends makes room; the admin's is the last one. */
    serve_step(&node, "ag", "i", "1");
    WAIT_FOR(try_order(&shop, &r) == 201, "there is room");
    CHECK(try_order(&shop, &r) == 429, "%d", r.status);

    /* The next process counts what is stored. */
    node_kill(&node);
    node_start(&node, FLAGS("--log", "debug"));
    shop = as(&node, shop.token);
    WAIT_FOR(open_tasks_of_second(&node) == 3, "they are counted");
    CHECK(try_order(&shop, &r) == 429, "%d", r.status);
    CHECK(open_tasks_of_second(&node) == 3, "nothing was accepted");
    for (int i = 0; i < 4; i++)
        serve_step(&node, "ag", "i", "1");
    WAIT_FOR(open_tasks_of_second(&node) == 0, "all ended");
    CHECK(try_order(&shop, &r) == 201, "%d", r.status);
}

static void what_is_wrong_is_refused(void **state)
{
    static const char *const wrong[] = {"5",
                                        "{\"calls\": 0}",
                                        "{\"calls\": -1}",
                                        "{\"calls\": 1.5}",
                                        "{\"calls\": \"5\"}",
                                        "{\"loop\": 5}",
                                        "{\"calls\": 1000000000001}"};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        post(&node, &r, "/v1/tokens", "{\"name\": \"w\", \"roles\": [\"read\"], \"limits\": %s}",
             wrong[i]);
        expect_problem(&r, 422, "bad-token");
    }
    send_as(&node, &r, "PUT", "/v1/tokens/admin", "application/json",
            SLICE("{\"limits\": {\"calls\": 0}}"));
    expect_problem(&r, 422, "bad-token");
    send_as(&node, &r, "PUT", "/v1/tokens/nobody", "application/json", SLICE("{\"limits\": {}}"));
    expect_problem(&r, 404, "no-such-token");
    send_as(&node, &r, "PUT", "/v1/tokens/admin", "application/json", SLICE("{\"roles\": []}"));
    expect_problem(&r, 422, "unknown-member");
}

#define ON(f) cmocka_unit_test_setup_teardown(f, start, node_end)

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        ON(calls_are_bounded_for_one_token_alone),
        ON(a_slow_body_is_within_the_limits),
        ON(submissions_are_counted_by_the_line),
        ON(bytes_are_bounded),
        ON(open_calls_are_bounded),
        ON(time_of_the_loop_is_bounded_while_others_call),
        ON(readings_are_bounded),
        ON(open_tasks_are_bounded),
        ON(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
