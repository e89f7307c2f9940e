/*
 * Changes through one node are visible on another one with the same database: definitions, tokens,
 * ends of tasks, changes of a task. Two nodes; clients and agents use either.
 */

#include <stdlib.h>

#include "postgres/cluster.h"
#include "sse.h"

static struct node nodes[2];
static const struct node *const a = &nodes[0], *const b = &nodes[1];

static int start(void **state)
{
    nodes_init(nodes, 2);
    nodes_start(nodes, 2, FLAGS("--log", "warn", "--scan-every", "100ms"));
    *state = nodes;
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        node_stop(&nodes[i]);
        node_fini(&nodes[i]);
    }
    return 0;
}

#define STEP(name, agent) \
    "{\"name\": \"" name "\", \"agent\": \"" agent "\", \"action\": \"x\", \"undo\": \"none\"}"

/* ---- definitions ---- */

/* Each of one step more than the last. */
static void define_version(const struct node *n, const char *name, int version)
{
    CLEANUP(buf_fini) struct buf steps = {0};

    for (int i = 0; i < version; i++)
        buf_fmt(&steps,
                "%s{\"name\": \"s%d\", \"agent\": \"known\", \"action\": \"x\", \"undo\": "
                "\"none\"}",
                i ? ", " : "", i);
    CLEANUP(buf_fini) struct buf rest = {0};
    buf_fmt(&rest, "\"steps\": [%s]", steps.ptr);
    CHECK(define(n, name, rest.ptr) == version, "version %d", version);
}

static void a_definition_stored_at_one_node_is_used_at_the_other_at_once(void **state)
{
    (void)state;
    for (int version = 1; version <= 20; version++) {
        const struct node *here = version % 2 ? a : b;
        const struct node *there = version % 2 ? b : a;
        REPLY r = {0};
        char path[60];

        define_version(here, "order", version);
        post(there, &r, "/v1/tasks",
             "{\"workflow\": \"order\", \"not_before\": "
             "\"2100-01-01T00:00:00.000Z\"}");
        EXPECT(&r, 201);
        EXPECT_INT(&r, "version", version);
        reply_fini(&r);
        (void)snprintf(path, sizeof path, "/v1/workflows/order/versions/%d", version);
        get(there, &r, "%s", path);
        EXPECT(&r, 200);
        EXPECT_INT(&r, "steps", version);
    }
}

static void many_lines_take_what_was_stored_before_them(void **state)
{
    REPLY r = {0};
    (void)state;

    define_version(a, "lines", 1);
    send_as(b, &r, "POST", "/v1/tasks", "application/x-ndjson",
            SLICE("{\"workflow\": \"lines\", \"id\": \"line-1\"}\n{\"workflow\": \"lines\", "
                  "\"version\": 1, \"id\": \"line-2\"}\n{\"workflow\": \"no-lines\"}\n"));
    EXPECT(&r, 200);
    CHECK(memmem(r.body.ptr, r.body.len, "\"line\":1,\"status\":201", 21), "%.*s",
          SLICE_ARG(r.body));
    CHECK(memmem(r.body.ptr, r.body.len, "\"line\":2,\"status\":201", 21), "%.*s",
          SLICE_ARG(r.body));
    CHECK(memmem(r.body.ptr, r.body.len, "\"line\":3,\"status\":422", 21), "%.*s",
          SLICE_ARG(r.body));
    serve_step(b, "known", "i", "1");
    serve_step(b, "known", "i", "1");
    wait_for_state(a, "line-1", "processed");
    wait_for_state(a, "line-2", "processed");
}

static int64_t compiled_aside(const struct node *n)
{
    static const char line[] = "\nintact_aside_total{of=\"definitions\"} ";
    REPLY r = {0};

    get(n, &r, "/metrics");
    const char *at = r.raw ? strstr(r.raw, line) : NULL;
    CHECK(at, "there is no such metric");
    return strtoll(at + strlen(line), NULL, 10);
}

/* The store of the other node has to do with it no longer than it takes to read it. */
static void what_others_store_is_compiled_beside_the_store(void **state)
{
    int64_t before = compiled_aside(&nodes[1]);
    (void)state;

    define_version(&nodes[0], "aside", 1);
    submit(&nodes[1], "aside", "aside-1");
    CHECK(compiled_aside(&nodes[1]) > before, "it was compiled by the thread of the store");
}

static void definitions_are_listed_alike_at_all_nodes(void **state)
{
    REPLY at_a = {0};
    REPLY at_b = {0};
    (void)state;

    define_version(b, "listed", 1);
    get(a, &at_a, "/v1/workflows");
    define_version(a, "listed", 1);
    get(b, &at_b, "/v1/workflows");
    EXPECT(&at_a, 200);
    EXPECT(&at_b, 200);
    CHECK(strstr(at_a.body.ptr, "\"listed\""), "%.*s", SLICE_ARG(at_a.body));
    CHECK(at(&at_a, "workflows")->count == at(&at_b, "workflows")->count, "as many");
}

/* The node that gets to work on it has never read its definition, nor been asked for it. */
static void a_task_of_a_definition_that_is_new_here_is_worked_on(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        char name[20];
        char agent[20];
        REPLY r = {0};

        (void)snprintf(name, sizeof name, "new-%d", i);
        (void)snprintf(agent, sizeof agent, "ag-%d", i);
        CLEANUP(buf_fini) struct buf rest = {0};
        buf_fmt(&rest,
                "\"steps\": [{\"name\": \"s\", \"agent\": \"%s\", \"action\": \"x\", \"undo\": "
                "\"none\", \"complete_by\": \"1h\"}]",
                agent);
        (void)define(a, name, rest.ptr);
        submit(a, name, name);
        if (i % 2) { /* its record may be asked for first, too */
            task_of(b, &r, name);
            EXPECT_TEXT(&r, "workflow", name);
        }
        serve_step(b, agent, "i", "1");
        wait_for_state(a, name, "processed");
    }
    CHECK(!node_log_has(b, "task_unreadable"), "it could not read one");
}

/* Whichever of them leads: it has to judge a task whose definition it has never read. */
static void what_is_overdue_of_a_definition_that_is_new_here_is_dealt_with(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        const struct node *here = i % 2 ? a : b;
        char name[20];

        (void)snprintf(name, sizeof name, "late-%d", i);
        (void)define(here, name,
                     "\"complete_by\": \"1ms\", \"steps\": [{\"name\": \"s\", \"agent\": "
                     "\"nobody\", \"action\": \"x\", \"undo\": \"none\", \"complete_by\": "
                     "\"1ms\", \"retry\": {\"attempts\": 1}}]");
        submit(here, name, name);
        wait_for_state(here, name, "compensated");
    }
    for (size_t i = 0; i < 2; i++)
        CHECK(!node_log_has(&nodes[i], "task_unreadable"), "node %zu could not read one", i);
}

/* ---- tokens ---- */

static int status_with(const struct node *n, const char *token)
{
    struct node bearer = as(n, token);
    REPLY r = {0};

    get(&bearer, &r, "/v1/workflows");
    return r.status;
}

static void delete_token(const struct node *n, const char *name)
{
    char path[60];
    REPLY r = {0};

    (void)snprintf(path, sizeof path, "/v1/tokens/%s", name);
    send_as(n, &r, "DELETE", path, NULL, SLICE(""));
    EXPECT(&r, 204);
}

static void a_token_made_at_one_node_is_good_at_the_other_at_once(void **state)
{
    char token[64];
    (void)state;

    for (int i = 0; i < 5; i++) {
        make_token(i % 2 ? a : b, "ann", "\"read\"", NULL, token);
        CHECK(status_with(i % 2 ? b : a, token) == 200, "the other node does not know it");
        delete_token(a, "ann");
        CHECK(status_with(a, token) == 401, "it was deleted here");
    }
}

static void wait_for_status(const struct node *n, const char *token, int status)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    while (status_with(n, token) != status) {
        CHECK(steady_ms() < until, "it is never answered %d", status);
        sleep_ms(20);
    }
}

static void a_token_deleted_at_one_node_is_refused_at_the_other(void **state)
{
    char token[64];
    SSE s = {0};
    SSE_EVENT e = {0};
    (void)state;

    make_token(a, "eve", "\"read\"", NULL, token);
    CHECK(status_with(b, token) == 200, "it is good");
    struct node eve = as(b, token);
    sse_open(&eve, &s, "/v1/events", NULL);
    sse_head(&s);
    assert_int_equal(s.status, 200);
    delete_token(a, "eve");
    wait_for_status(b, token, 401);
    CHECK(!sse_next(&s, &e), "its stream goes on");
}

/* A client without a token cannot have the database queried each time. */
static void tokens_that_nobody_knows_are_refused_without_end(void **state)
{
    char token[64] = "intact_0000000000000000000000000000000000000000000";
    (void)state;

    for (int i = 0; i < 20; i++) {
        token[10] = (char)('a' + i % 26);
        CHECK(status_with(b, token) == 401, "nobody knows it");
    }
}

/* ---- waiting ---- */

static int ask_to_wait(const struct node *n, const char *id)
{
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s?wait=5m", id);
    return ask(n, "GET", path, NULL, SLICE(""));
}

static void who_waits_at_one_node_hears_of_an_end_at_the_other(void **state)
{
    REPLY r = {0};
    REPLY got = {0};
    (void)state;

    (void)define(a, "waited", "\"steps\": [" STEP("s", "waited") "]");
    int posted = ask(b, "POST", "/v1/tasks?wait=5m", "application/json",
                     SLICE("{\"workflow\": \"waited\", \"id\": \"waited-1\"}"));
    fetch(a, &r, "waited", "i");
    int waits = ask_to_wait(b, "waited-1");
    let_read(b);
    char *token = token_in(&r, 0);
    hand_in(a, "waited", "i", token, "\"output\": 7", "accepted");
    free(token);
    hear(posted, &got);
    EXPECT(&got, 201);
    EXPECT_TEXT(&got, "state", "processed");
    EXPECT_INT(&got, "steps.0.output", 7);
    hear(waits, &got);
    EXPECT(&got, 200);
    EXPECT_TEXT(&got, "state", "processed");
}

static void lines_that_wait_at_one_node_hear_of_ends_at_the_other(void **state)
{
    REPLY got = {0};
    (void)state;

    (void)define(a, "waited-lines", "\"steps\": [" STEP("s", "lined") "]");
    int waits = ask(b, "POST", "/v1/tasks?wait=5m", "application/x-ndjson",
                    SLICE("{\"workflow\": \"waited-lines\"}\n{\"workflow\": \"waited-lines\"}\n"
                          "{\"workflow\": \"waited-lines\"}\n"));
    for (int i = 0; i < 3; i++)
        serve_step(a, "lined", "i", "1");
    hear(waits, &got);
    EXPECT(&got, 200);
    const char *from = got.body.ptr;
    for (int i = 0; i < 3; i++) {
        from = strstr(from, "\"state\":\"processed\"");
        CHECK(from, "line %d did not end: %.*s", i, SLICE_ARG(got.body));
        from++;
    }
}

/* What stops in error waits for a person: whoever waits for its end has to hear of it, as whatever
 * way it was asked, and whatever else the task comes to. */
static const struct ending {
    const char *id, *rest, *result, *state;
} endings[] = {
    {"stops", "\"on_failure\": \"hold\"", "\"error\": {\"code\": \"no\", \"effect\": \"none\"}",
     "error"},
    {"goes-back", "\"on_failure\": \"undo\"", "\"error\": {\"code\": \"no\", \"effect\": \"none\"}",
     "compensated"},
    {"ends", "\"on_failure\": \"undo\"", "\"output\": 1", "processed"},
};

static void define_ending(const struct ending *x)
{
    CLEANUP(buf_fini) struct buf rest = {0};

    buf_fmt(&rest,
            "\"steps\": [{\"name\": \"s\", \"agent\": \"%s\", \"action\": \"x\", \"undo\": "
            "\"none\", \"complete_by\": \"1h\", \"retry\": {\"attempts\": 1}, %s}]",
            x->id, x->rest);
    (void)define(a, x->id, rest.ptr);
}

static void end_at(const struct node *n, const struct ending *x, const char *instance)
{
    REPLY r = {0};

    fetch(n, &r, x->id, instance);
    char *token = token_in(&r, 0);
    hand_in(n, x->id, instance, token, x->result, "accepted");
    free(token);
}

/* Asks b, and has it answered before a works on the task. */
static int begins_to_wait(const struct ending *x, const char *type)
{
    CLEANUP(buf_fini) struct buf line = {0};

    buf_fmt(&line, "{\"workflow\": \"%s\"}", x->id);
    return ask(b, "POST", "/v1/tasks?wait=5m", type, buf_view(&line));
}

static void whatever_becomes_of_a_task_at_one_node_who_waits_at_the_other_hears_of_it(void **state)
{
    static const char *const types[] = {"application/json", "application/x-ndjson"};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(endings); i++) {
        const struct ending *x = &endings[i];
        REPLY got = {0};
        define_ending(x);
        for (size_t k = 0; k < COUNT_OF(types); k++) {
            CLEANUP(buf_fini) struct buf want = {0};
            int waits = begins_to_wait(x, types[k]);
            end_at(a, x, "i");
            reply_fini(&got);
            hear(waits, &got);
            buf_fmt(&want, "\"state\":\"%s\"", x->state);
            CHECK(strstr(got.body.ptr, want.ptr), "%s: %.*s", x->id, SLICE_ARG(got.body));
        }
        submit(b, x->id, x->id);
        int waits = ask_to_wait(b, x->id);
        let_read(b);
        end_at(a, x, "i");
        reply_fini(&got);
        hear(waits, &got);
        EXPECT(&got, 200);
        EXPECT_TEXT(&got, "state", x->state);
    }
}

/* And again, after a person had it go on. */
static void who_waits_hears_of_each_error(void **state)
{
    struct ending x = endings[0];
    REPLY r = {0};
    (void)state;

    x.id = "stops-often";
    define_ending(&x);
    submit(a, x.id, "stops-again");
    for (int i = 0; i < 3; i++) {
        int waits = ask_to_wait(b, "stops-again");
        let_read(b);
        end_at(a, &x, "i");
        reply_fini(&r);
        hear(waits, &r);
        EXPECT(&r, 200);
        EXPECT_TEXT(&r, "state", "error");
        reply_fini(&r);
        post(a, &r, "/v1/tasks/stops-again/retry", "{\"reason\": \"again\"}");
        EXPECT(&r, 200);
    }
}

/* ---- events ---- */

/* Nobody has listened at the node since it began, so nothing of that was kept: whoever comes back
 * with an id of before is told that something is missing, and from there on misses nothing. */
static void who_comes_back_after_nobody_listened_is_told_of_a_gap(void **state)
{
    (void)state;

    (void)define(a, "unheard", "\"steps\": [" STEP("s", "nobody") "]");
    for (size_t i = 0; i < COUNT_OF(nodes); i++) {
        const struct node *n = &nodes[i];
        SSE s = {0};
        SSE_EVENT e = {0};
        char id[40], last[64];
        for (int k = 0; k < 3; k++) {
            (void)snprintf(id, sizeof id, "unheard-%s-%d", n->name, k);
            submit(n, "unheard", id);
        }
        for (int k = 0; k < 3; k++) { /* whichever of them was the last that it was told */
            (void)snprintf(last, sizeof last, "%s/1-%d", n->name, k);
            sse_open(n, &s, "/v1/events?workflow=unheard", last);
            CHECK(sse_next(&s, &e) && strcmp(e.name, "gap") == 0, "after %s: %s", last, e.name);
        }
        (void)snprintf(last, sizeof last, "%s", e.id);
        (void)snprintf(id, sizeof id, "heard-%s", n->name);
        submit(n, "unheard", id);
        CHECK(sse_next(&s, &e) && strcmp(e.name, "task") == 0, "after the gap: %s", e.name);
        EXPECT_TEXT(&e.data, "id", id);
        sse_open(n, &s, "/v1/events?workflow=unheard", last);
        CHECK(sse_next(&s, &e) && strcmp(e.name, "task") == 0, "after %s: %s", last, e.name);
        EXPECT_TEXT(&e.data, "id", id);
    }
}

/* The stream of one task goes on over an error: a person may have it go on. */
static void an_error_at_one_node_is_watched_at_the_other(void **state)
{
    struct ending x = endings[0];
    REPLY r = {0};
    SSE s = {0};
    SSE_EVENT e = {0};
    (void)state;

    x.id = "stops-watched"; /* nothing else waits for its agent */
    define_ending(&x);
    submit(a, x.id, "watched-error");
    sse_open(b, &s, "/v1/tasks/watched-error/events", NULL);
    end_at(a, &x, "i");
    do
        CHECK(sse_next(&s, &e), "the stream ended before the error was told");
    while (strcmp(text_at(&e.data, "state"), "error") != 0);
    post(a, &r, "/v1/tasks/watched-error/skip", "{\"step\": \"s\", \"reason\": \"without it\"}");
    EXPECT(&r, 200);
    while (strcmp(e.name, "end") != 0)
        CHECK(sse_next(&s, &e), "the stream ended without an end");
    EXPECT_TEXT(&e.data, "state", "processed");
}

static void one_task_is_watched_at_a_node_that_does_not_work_on_it(void **state)
{
    static const char *const agents[] = {"w1", "w2", "w3"};
    SSE s = {0};
    SSE_EVENT e = {0};
    (void)state;

    (void)define(a, "watched",
                 "\"steps\": [" STEP("s1", "w1") ", " STEP("s2", "w2") ", " STEP("s3", "w3") "]");
    submit(a, "watched", "watched-1");
    sse_open(b, &s, "/v1/tasks/watched-1/events", NULL);
    for (int step = 0; step < 3; step++) {
        serve_step(a, agents[step], "i", "1");
        char path[40];
        (void)snprintf(path, sizeof path, "steps.%d.state", step);
        do
            CHECK(sse_next(&s, &e), "the stream ended before step %d was told", step);
        while (strcmp(text_at(&e.data, path), "completed") != 0);
    }
    while (strcmp(e.name, "end") != 0)
        CHECK(sse_next(&s, &e), "the stream ended without an end");
    EXPECT_TEXT(&e.data, "state", "processed");
    CHECK(!sse_next(&s, &e), "and it has ended");
}

static void a_stream_of_all_tasks_says_whose_it_is(void **state)
{
    SSE at_a = {0};
    SSE at_b = {0};
    SSE back = {0};
    SSE_EVENT e = {0};
    (void)state;

    (void)define(a, "streamed", "\"steps\": [" STEP("s", "nobody") "]");
    sse_open(a, &at_a, "/v1/events?workflow=streamed", NULL);
    sse_open(b, &at_b, "/v1/events?workflow=streamed", NULL);
    sse_head(&at_a);
    sse_head(&at_b);
    submit(a, "streamed", "streamed-a");
    submit(b, "streamed", "streamed-b");
    CHECK(sse_next(&at_a, &e), "it goes on");
    EXPECT_TEXT(&e.data, "id", "streamed-a");
    EXPECT_TEXT(&e.data, "node", "a");
    CHECK(sse_next(&at_b, &e), "it goes on");
    EXPECT_TEXT(&e.data, "id", "streamed-b");
    EXPECT_TEXT(&e.data, "node", "b");
    sse_open(a, &back, "/v1/events", e.id); /* both are of their first boot */
    CHECK(sse_next(&back, &e), "it goes on");
    assert_string_equal(e.name, "gap");
}

/* ---- what is told of a task, and done to it ---- */

/* Whoever has it can be asked; who has not, does not claim to know. */
static void a_node_without_the_agent_names_the_others(void **state)
{
    char text[120];
    REPLY r = {0};
    (void)state;

    (void)define(a, "missed", "\"steps\": [" STEP("s", "missing") "]");
    submit(a, "missed", "missed-1");
    get(b, &r, "/v1/tasks/missed-1/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "no-agent");
    CHECK(strstr(text_at(&r, "reasons.0.text"), "to this node, b. None"), "%.*s",
          SLICE_ARG(r.body));
    (void)snprintf(text, sizeof text,
                   "Other nodes have no instance either: a (http://127.0.0.1:%d).", a->port);
    CHECK(strstr(text_at(&r, "reasons.0.text"), text), "%.*s", SLICE_ARG(r.body));
    free(sql(a, "UPDATE node SET agents = NULL WHERE name = 'a'")); /* an older one */
    get(b, &r, "/v1/tasks/missed-1/why");
    (void)snprintf(text, sizeof text, "do not publish their agents: a (http://127.0.0.1:%d).",
                   a->port);
    CHECK(strstr(text_at(&r, "reasons.0.text"), text), "%.*s", SLICE_ARG(r.body));
}

#define NEW_WORDS(name)                     \
    "{\"intact\": 1, \"workflow\": \"" name \
    "\", \"steps\": [" STEP("s", "t") "], " \
                                      "\"undo_until\": \"1h\"}"

/* Its row is what a program of the version before writes; a node that has gone does not count. */
static void new_words_wait_for_nodes_that_do_not_know_them(void **state)
{
    REPLY r = {0};
    (void)state;

    free(sql(a, "UPDATE node SET grammar = NULL WHERE name = 'b'"));
    put(a, &r, "/v1/workflows/newer", "%s", NEW_WORDS("newer"));
    expect_problem(&r, 409, "older-node");
    CHECK(memmem(r.body.ptr, r.body.len, "node b does not support (on_undo", 32), "%.*s",
          SLICE_ARG(r.body));
    post(a, &r, "/v1/workflows", "%s", NEW_WORDS("newer"));
    expect_problem(&r, 409, "older-node");
    get(a, &r, "/v1/workflows/newer");
    expect_problem(&r, 404, "no-such-workflow");
    (void)define(a, "older", "\"steps\": [" STEP("s", "t") "]");
    put(a, &r, "/v1/schedules/s",
        "{\"intact\": 1, \"schedule\": \"s\", \"workflow\": \"older\", \"every\": \"1d\"}");
    expect_problem(&r, 409, "older-node"); /* it would refuse the ids of its tasks */
    free(sql(a, "UPDATE node SET grammar = NULL, name = 'gone' WHERE name = 'b'"));
    post(a, &r, "/v1/workflows", "%s", NEW_WORDS("newer"));
    EXPECT(&r, 201);
    free(sql(a, "UPDATE node SET name = 'b' WHERE name = 'gone'"));
}

/* One that calls a single node, which has no place for now: nobody looks for it elsewhere. */
static void a_node_knows_the_agents_of_the_others(void **state)
{
    int64_t until = steady_ms() + PATIENCE_MS;
    char text[120];
    REPLY r = {0};
    (void)state;

    (void)define(a, "single", "\"steps\": [" STEP("s", "single") "]");
    submit(a, "single", "single-1");
    do {
        CHECK(steady_ms() < until, "%.*s", SLICE_ARG(r.body));
        post(a, &r, "/v1/agents/single/work", "{\"instance\": \"i\", \"max\": 0}");
        EXPECT(&r, 200);
        sleep_ms(100);
        get(b, &r, "/v1/tasks/single-1/why");
        EXPECT(&r, 200);
    } while (strcmp(text_at(&r, "reasons.0.kind"), "agent-elsewhere") != 0);
    (void)snprintf(text, sizeof text, "connected only to other nodes: a (http://127.0.0.1:%d).",
                   a->port);
    CHECK(strstr(text_at(&r, "reasons.0.text"), text), "%.*s", SLICE_ARG(r.body));
    (void)snprintf(text, sizeof text, "intact why --server http://127.0.0.1:%d single-1", a->port);
    CHECK(strstr(text_at(&r, "reasons.0.moves"), text), "%.*s", SLICE_ARG(r.body));
    get(a, &r, "/v1/tasks/single-1/why");
    EXPECT_TEXT(&r, "reasons.0.kind", "no-place");
}

static void tokens_are_listed_alike_at_all_nodes(void **state)
{
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(a, "seen", "\"read\"", NULL, token);
    get(b, &r, "/v1/tokens");
    EXPECT(&r, 200);
    CHECK(strstr(r.body.ptr, "\"seen\""), "%.*s", SLICE_ARG(r.body));
    delete_token(b, "seen");
    reply_fini(&r);
    get(a, &r, "/v1/tokens");
    CHECK(!strstr(r.body.ptr, "\"seen\""), "%.*s", SLICE_ARG(r.body));
}

static void a_task_at_work_at_one_node_is_seen_and_cancelled_at_the_other(void **state)
{
    REPLY r = {0};
    REPLY why = {0};
    char path[80];
    (void)state;

    (void)define(a, "cancelled", "\"steps\": [" STEP("s", "canc") "]");
    submit(b, "cancelled", "cancelled-1");
    fetch(a, &r, "canc", "i");
    char *token = token_in(&r, 0);
    task_of(b, &r, "cancelled-1");
    EXPECT_TEXT(&r, "steps.0.state", "running");
    EXPECT_TEXT(&r, "steps.0.attempts.0.instance", "i");
    get(b, &why, "/v1/tasks/cancelled-1/why");
    EXPECT(&why, 200);
    EXPECT_TEXT(&why, "reasons.0.kind", "other-node");
    (void)snprintf(path, sizeof path, "intact why --server http://127.0.0.1:%d cancelled-1",
                   a->port);
    CHECK(strstr(text_at(&why, "reasons.0.moves"), path), "%.*s", SLICE_ARG(why.body));
    EXPECT_TEXT(&why, "reasons.1.kind", "running");
    CHECK(!at(&why, "reasons.2"), "%.*s", SLICE_ARG(why.body));
    post(b, &why, "/v1/tasks/cancelled-1/cancel", "{\"reason\": \"no more\"}");
    CHECK(why.status == 200 || why.status == 202, "%d: %.*s", why.status, SLICE_ARG(why.body));
    (void)snprintf(path, sizeof path, "/v1/agents/canc/work");
    post(a, &why, path,
         "{\"instance\": \"i\", \"max\": 0, \"results\": [{\"token\": \"%s\", \"error\": "
         "{\"code\": \"stopped\", \"effect\": \"none\", \"retryable\": false}}]}",
         token);
    EXPECT(&why, 200);
    EXPECT_TEXT(&why, "outcomes.0.status", "accepted");
    free(token);
    wait_for_state(a, "cancelled-1", "compensated");
    wait_for_state(b, "cancelled-1", "compensated");
}

/* ---- the database is away ---- */

/* What is not known for certain is not said; and who waits waits on. */
static void while_the_database_is_away_nobody_is_told_anything_wrong(void **state)
{
    SSE s = {0};
    SSE_EVENT e = {0};
    REPLY r = {0};
    (void)state;

    (void)define(a, "away", "\"steps\": [" STEP("s", "away") "]");
    submit(a, "away", "away-1");
    int waits = ask_to_wait(b, "away-1");
    sse_open(b, &s, "/v1/tasks/away-1/events", NULL);
    CHECK(sse_next(&s, &e), "it is told as it is");
    let_read(b);
    cluster_kill();
    post(b, &r, "/v1/tasks", "{\"workflow\": \"away\"}");
    EXPECT(&r, 503);
    reply_fini(&r);
    send_as(b, &r, "POST", "/v1/tasks", "application/x-ndjson", SLICE("{\"workflow\": \"away\"}"));
    EXPECT(&r, 503);
    reply_fini(&r);
    static const char *const read[] = {"/v1/workflows", "/v1/workflows/away",
                                       "/v1/workflows/away/versions/1", "/v1/tokens",
                                       "/v1/tasks/away-1/why"};
    for (size_t i = 0; i < COUNT_OF(read); i++) {
        reply_fini(&r);
        get(b, &r, "%s", read[i]);
        EXPECT(&r, 503);
        CHECK(head_has(&r, "Retry-After"), "%s: %.*s", read[i], SLICE_ARG(r.head));
    }
    CHECK(status_with(b, "intact_0000000000000000000000000000000000000000000") == 503,
          "who would know that token?");
    cluster_start();
    wait_until_ready(a);
    wait_until_ready(b);
    serve_step(a, "away", "i", "1");
    reply_fini(&r);
    hear(waits, &r);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "state", "processed");
    while (strcmp(e.name, "end") != 0)
        CHECK(sse_next(&s, &e), "the stream ended without an end");
    EXPECT_TEXT(&e.data, "state", "processed");
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_comes_back_after_nobody_listened_is_told_of_a_gap), /* the first one */
        cmocka_unit_test(a_definition_stored_at_one_node_is_used_at_the_other_at_once),
        cmocka_unit_test(many_lines_take_what_was_stored_before_them),
        cmocka_unit_test(what_others_store_is_compiled_beside_the_store),
        cmocka_unit_test(definitions_are_listed_alike_at_all_nodes),
        cmocka_unit_test(a_task_of_a_definition_that_is_new_here_is_worked_on),
        cmocka_unit_test(what_is_overdue_of_a_definition_that_is_new_here_is_dealt_with),
        cmocka_unit_test(a_token_made_at_one_node_is_good_at_the_other_at_once),
        cmocka_unit_test(a_token_deleted_at_one_node_is_refused_at_the_other),
        cmocka_unit_test(tokens_that_nobody_knows_are_refused_without_end),
        cmocka_unit_test(who_waits_at_one_node_hears_of_an_end_at_the_other),
        cmocka_unit_test(lines_that_wait_at_one_node_hear_of_ends_at_the_other),
        cmocka_unit_test(whatever_becomes_of_a_task_at_one_node_who_waits_at_the_other_hears_of_it),
        cmocka_unit_test(who_waits_hears_of_each_error),
        cmocka_unit_test(an_error_at_one_node_is_watched_at_the_other),
        cmocka_unit_test(one_task_is_watched_at_a_node_that_does_not_work_on_it),
        cmocka_unit_test(a_stream_of_all_tasks_says_whose_it_is),
        cmocka_unit_test(a_node_without_the_agent_names_the_others),
        cmocka_unit_test(new_words_wait_for_nodes_that_do_not_know_them),
        cmocka_unit_test(a_node_knows_the_agents_of_the_others),
        cmocka_unit_test(tokens_are_listed_alike_at_all_nodes),
        cmocka_unit_test(a_task_at_work_at_one_node_is_seen_and_cancelled_at_the_other),
        cmocka_unit_test(while_the_database_is_away_nobody_is_told_anything_wrong),
    };
    return cmocka_run_group_tests(tests, start, end);
}
