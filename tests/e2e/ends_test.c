/*
 * Answers of ?wait=: the record of a task as it was stored with its end, whether it was written
 * from memory or read; who gets it, and clients that leave meanwhile. ends-nodes_test.c has ends at
 * other nodes, submit_test.c the rules of ?wait=.
 */

#include <stdlib.h>
#include <unistd.h>

#include "kit.h"

static struct node node, ann;

static void define_driven(void);

static int start(void **state)
{
    char token[64];

    *state = node_open(&node, FLAGS("--log", "warn", "--scan-every", "100ms"));
    make_token(&node, "ann", "\"approve\"], \"groups\": [\"finance\"", NULL, token);
    ann = as(&node, token);
    define_driven();
    return 0;
}

static void must_be_the_record(const char *id, const struct reply *got)
{
    REPLY r = {0};

    get(&node, &r, "/v1/tasks/%s", id);
    CHECK(slice_eq(r.body, got->body), "%s: the answer was\n%.*s\nand the record is\n%.*s", id,
          SLICE_ARG(got->body), SLICE_ARG(r.body));
}

static void wait_until_there(const char *id)
{
    REPLY r = {0};

    WAIT_FOR((reply_fini(&r), get(&node, &r, "/v1/tasks/%s", id), r.status == 200), "it is there");
}

/* ---- values, errors, sizes ---- */

static const struct shown {
    const char *id, *rest, *input;
    const char *result; /* of its step, as an agent sends it */
    const char *state;
} shown[] = {
    {"plain", "", "{\"a\": 1}", "\"output\": {\"b\": 2}", "processed"},
    {"spaced", "", "{ \"a\" :\n [1 , 2.50,\t\"\\u00e9\\/\"] }",
     "\"output\": { \"b\" : [ 1e2, \"\\u0041\" ,\n null ] }", "processed"},
    {"no-output", "", "null", "\"output\": null", "processed"},
    {"held", ", \"on_failure\": \"hold\"", "[]",
     "\"error\": {\"code\": \"no\", \"message\": \"it is\\nnot\", \"effect\": \"none\"}", "error"},
    {"undone", ", \"on_failure\": \"undo\"", "7",
     "\"error\": {\"code\": \"no\", \"effect\": \"none\"}", "compensated"},
};

static void define_shown(const struct shown *x)
{
    CLEANUP(buf_fini) struct buf rest = {0};

    buf_fmt(&rest,
            "\"steps\": [{\"name\": \"s\", \"agent\": \"%s\", \"action\": \"x\", \"undo\": "
            "\"none\", \"retry\": {\"attempts\": 1}%s}], \"output\": \"${ .steps.s.output }\"",
            x->id, x->rest);
    (void)define(&node, x->id, rest.ptr);
}

static void serve_shown(const struct shown *x)
{
    REPLY r = {0};

    fetch(&node, &r, x->id, "i");
    char *token = token_in(&r, 0);
    hand_in(&node, x->id, "i", token, x->result, "accepted");
    free(token);
}

static void an_end_is_answered_as_it_was_stored(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shown); i++) {
        const struct shown *x = &shown[i];
        CLEANUP(buf_fini) struct buf body = {0};
        char id[40];
        REPLY r = {0};
        define_shown(x);
        (void)snprintf(id, sizeof id, "shown-%s", x->id);
        buf_fmt(&body,
                "{\"workflow\": \"%s\", \"id\": \"%s\", \"tags\": {\"k\" : \"v\"}, \"input\": %s}",
                x->id, id, x->input);
        int posted = ask(&node, "POST", "/v1/tasks?wait=5m", "application/json", buf_view(&body));
        serve_shown(x);
        hear(posted, &r);
        EXPECT(&r, 201);
        EXPECT_TEXT(&r, "state", x->state);
        must_be_the_record(id, &r);
        reply_fini(&r); /* the same once more: there is nothing to wait for */
        send_as(&node, &r, "POST", "/v1/tasks?wait=5m", "application/json", buf_view(&body));
        EXPECT(&r, 200);
        must_be_the_record(id, &r);
    }
}

/* What an operator did to it is shown, too. */
static void an_end_shows_what_people_did(void **state)
{
    REPLY r = {0};
    REPLY got = {0};
    (void)state;

    for (int i = 0; i < 3; i++) {
        post(&node, &r, "/v1/tasks/shown-held/retry", "{\"reason\": \"try %d\"}", i);
        EXPECT(&r, 200);
        int waits = ask(&node, "GET", "/v1/tasks/shown-held?wait=5m", NULL, SLICE_NONE);
        let_read(&node);
        serve_shown(&shown[3]);
        reply_fini(&got);
        hear(waits, &got);
        EXPECT(&got, 200);
        EXPECT_TEXT(&got, "state", "error");
        CHECK(at(&got, "operations.0"), "%.*s", SLICE_ARG(got.body));
        must_be_the_record("shown-held", &got);
    }
}

/* From memory as long as it is small, then from the store; the answer tells no difference. */
static void a_large_record_is_answered_alike(void **state)
{
    static const int sizes[] = {2000, 3000, 31000, 34000, 300000};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        CLEANUP(buf_fini) struct buf body = {0};
        char id[40];
        REPLY r = {0};
        (void)snprintf(id, sizeof id, "large-%d", sizes[i]);
        buf_fmt(&body, "{\"workflow\": \"plain\", \"id\": \"%s\", \"input\": \"%0*d\"}", id,
                sizes[i], 7);
        int posted = ask(&node, "POST", "/v1/tasks?wait=5m", "application/json", buf_view(&body));
        serve_shown(&shown[0]);
        hear(posted, &r);
        EXPECT(&r, 201);
        EXPECT_TEXT(&r, "state", "processed");
        must_be_the_record(id, &r);
    }
}

/* ---- what else a record shows ---- */

#define AGENT(name)                                                                \
    "\"agent\": \"" name "\", \"action\": \"x\", \"undo\": \"none\", \"retry\": {" \
    "\"attempts\": 1}"

static void serve_once(const char *id, const char *agent)
{
    (void)id;
    serve_step(&node, agent, "i", "{\"n\": [1, 2.50]}");
}

static void operate(const char *id, const char *verb)
{
    CLEANUP(buf_fini) struct buf path = {0};
    REPLY r = {0};

    buf_fmt(&path, "/v1/tasks/%s/%s", id, verb);
    post(&node, &r, path.ptr, "{\"reason\": \"a \\\"test\\\" of %s\"}", verb);
    EXPECT(&r, 200);
}

static void cancel(const char *id, const char *agent)
{
    (void)agent;
    operate(id, "cancel");
}

static void pause_and_serve(const char *id, const char *agent)
{
    operate(id, "pause");
    operate(id, "resume");
    serve_once(id, agent);
}

/* With its last entry of the audit in the change that ends it. */
static void approve(const char *id, const char *agent)
{
    CLEANUP(buf_fini) struct buf path = {0};
    REPLY r = {0};

    (void)agent;
    buf_fmt(&path, "/v1/approvals/%s/s/approve", id);
    WAIT_FOR((reply_fini(&r), post(&ann, &r, path.ptr, "{\"comment\": \"fine\"}"), r.status == 200),
             "it may be approved");
}

/* One that a step takes, and one that is kept. */
static void signal_twice(const char *id, const char *agent)
{
    static const char *const names[] = {"stay", "go"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        CLEANUP(buf_fini) struct buf path = {0};
        REPLY r = {0};
        buf_fmt(&path, "/v1/tasks/%s/signals/%s", id, names[i]);
        post(&node, &r, path.ptr, "{ \"n\": 1.0 }");
        EXPECT(&r, 200);
    }
    serve_once(id, agent);
}

static void serve_three(const char *id, const char *agent)
{
    for (int i = 0; i < 3; i++)
        serve_once(id, agent);
}

static void heartbeat_and_serve(const char *id, const char *agent)
{
    CLEANUP(buf_fini) struct buf path = {0};
    REPLY r = {0};

    (void)id;
    fetch(&node, &r, agent, "i");
    char *token = token_in(&r, 0);
    buf_fmt(&path, "/v1/agents/%s/heartbeats", agent);
    post(&node, &r, path.ptr,
         "{\"instance\": \"i\", \"beats\": [{\"token\": \"%s\", \"progress\": 7}]}", token);
    EXPECT_TEXT(&r, "outcomes.0.status", "accepted");
    hand_in(&node, agent, "i", token, "\"output\": 1", "accepted");
    free(token);
}

/* Each is its own workflow, whose first agent has its name. */
static const struct driven {
    const char *name, *rest;
    void (*drive)(const char *id, const char *agent);
    const char *state;
    const char *shows; /* a value of the record that is not there by itself */
} driven[] = {
    {"cancelled", "\"steps\": [{\"name\": \"s\", " AGENT("cancelled") "}]", cancel, "compensated",
     "operations.0"},
    {"paused", "\"steps\": [{\"name\": \"s\", " AGENT("paused") "}]", pause_and_serve, "processed",
     "operations.1"},
    {"approved",
     "\"steps\": [{\"name\": \"s\", \"approve\": {\"by\": \"finance\", \"question\": \"Pay?\"}}]",
     approve, "processed", "steps.0.output"},
    {"signalled",
     "\"steps\": [{\"name\": \"s\", \"signal\": {\"name\": \"go\"}}, {\"name\": \"t\", " AGENT(
         "signalled") "}, {\"name\": \"u\", \"signal\": {\"name\": \"stay\"}, \"if\": \".input == "
                      "0\"}]",
     signal_twice, "processed", "signals.0"},
    {"kid", "\"steps\": [{\"name\": \"s\", " AGENT("kid") "}]", serve_once, "processed",
     "steps.0.output"},
    {"parent", "\"steps\": [{\"name\": \"s\", \"task\": {\"workflow\": \"kin\"}}]", serve_once,
     "processed", "steps.0.child"},
    {"listed",
     "\"steps\": [{\"name\": \"s\", \"for_each\": \"${ .input }\", \"max_items\": 9, " AGENT(
         "listed") "}], \"output\": \"${ .steps.s.output }\"",
     serve_three, "processed", "steps.0.items"},
    {"beating", "\"steps\": [{\"name\": \"s\", " AGENT("beating") "}]", heartbeat_and_serve,
     "processed", "steps.0.output"},
    {"locked",
     "\"lock\": {\"key\": \"${ .input | tostring }\"}, \"steps\": [{\"name\": \"s\", " AGENT(
         "locked") "}]",
     serve_once, "processed", "lock"},
};

static void define_driven(void)
{
    (void)define(&node, "kin", "\"steps\": [{\"name\": \"s\", " AGENT("parent") "}]");
    for (size_t i = 0; i < COUNT_OF(driven); i++)
        (void)define(&node, driven[i].name, driven[i].rest);
}

static void an_end_shows_all_that_the_record_does(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(driven); i++) {
        const struct driven *x = &driven[i];
        CLEANUP(buf_fini) struct buf body = {0};
        char path[60];
        char id[40];
        REPLY posted = {0};
        REPLY got = {0};
        int fds[2];
        (void)snprintf(id, sizeof id, "d-%s", x->name);
        (void)snprintf(path, sizeof path, "/v1/tasks/%s?wait=5m", id);
        buf_fmt(&body,
                "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": [1, 2, 3], \"priority\": 3,"
                " \"tags\": {\"k\": \"v\"}}",
                x->name, id);
        fds[0] = ask(&node, "POST", "/v1/tasks?wait=5m", "application/json", buf_view(&body));
        wait_until_there(id);
        fds[1] = ask(&node, "GET", path, NULL, SLICE_NONE);
        let_read(&node);
        x->drive(id, x->name);
        hear(fds[0], &posted);
        EXPECT(&posted, 201);
        reply_fini(&got);
        hear(fds[1], &got);
        EXPECT(&got, 200);
        EXPECT_TEXT(&got, "state", x->state);
        CHECK(at(&got, x->shows), "%s: no %s: %.*s", x->name, x->shows, SLICE_ARG(got.body));
        must_be_the_record(id, &got);
        must_be_the_record(id, &posted);
    }
}

/* ---- who gets it ---- */

static int wait_as(const struct node *n, const char *id)
{
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s?wait=5m", id);
    return ask(n, "GET", path, NULL, SLICE_NONE);
}

/* Each token that waits for one task gets the same as by reading it. One that may not see the task
 * is told at once, before it ends. */
static void an_end_is_told_to_those_who_may_see_it(void **state)
{
    static const struct reader {
        const char *name, *roles;
        bool may;
    } readers[] = {
        {"all", "\"read\"", true},
        {"kids", "\"read:kid\"", true},
        {"others", "\"read:parent\"", false},
        {"owner", "\"submit\"", true},
        {"submits", "\"submit\"", false},
        {"elsewhere", "\"submit\", \"read:par*\"", false},
    };
    struct node by[COUNT_OF(readers)];
    int fds[COUNT_OF(readers)];
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        char token[64];
        make_token(&node, readers[i].name, readers[i].roles, NULL, token);
        by[i] = as(&node, token);
    }
    post(&by[3], &r, "/v1/tasks", "{\"workflow\": \"kid\", \"id\": \"seen\"}");
    EXPECT(&r, 201);
    for (size_t i = 0; i < COUNT_OF(readers); i++)
        fds[i] = wait_as(&by[i], "seen");
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        if (readers[i].may)
            continue;
        reply_fini(&r);
        hear(fds[i], &r);
        expect_problem(&r, 404, "no-such-task");
    }
    let_read(&node);
    serve_once("seen", "kid");
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        if (!readers[i].may)
            continue;
        reply_fini(&r);
        hear(fds[i], &r);
        EXPECT(&r, 200);
        must_be_the_record("seen", &r);
    }
}

/* ---- clients that leave, and ends that come early ---- */

enum { CROWD = 24 };

static void submit_some(const char *prefix)
{
    for (int i = 0; i < CROWD; i++) {
        char id[40];
        (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
        submit(&node, "kid", id);
    }
}

/* Places for all of them. */
static void fetch_some(struct reply *r, char *ret_tokens[CROWD])
{
    for (int got = 0; got < CROWD;) {
        reply_fini(r);
        post(&node, r, "/v1/agents/kid/work",
             "{\"instance\": \"i\", \"max\": %d, \"wait\": \"2s\"}", CROWD);
        EXPECT(r, 200);
        for (int i = 0; at(r, "requests") && i < (int)at(r, "requests")->count; i++)
            ret_tokens[got++] = token_in(r, i);
    }
}

/* All at once, in one request. */
static int hand_in_all(char *tokens[CROWD])
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_str(&b, "{\"instance\": \"i\", \"max\": 0, \"results\": [");
    for (int i = 0; i < CROWD; i++) {
        buf_fmt(&b, "%s{\"token\": \"%s\", \"output\": %d}", i > 0 ? ", " : "", tokens[i], i);
        free(tokens[i]);
    }
    buf_str(&b, "]}");
    return ask(&node, "POST", "/v1/agents/kid/work", "application/json", buf_view(&b));
}

/* Half of the clients leave while the tasks end; the others are answered. */
static void clients_may_leave_while_their_tasks_end(void **state)
{
    (void)state;
    for (int round = 0; round < 6; round++) {
        char prefix[20];
        char *tokens[CROWD];
        int stay[CROWD];
        int leave[CROWD];
        REPLY r = {0};
        (void)snprintf(prefix, sizeof prefix, "left-%d", round);
        submit_some(prefix);
        fetch_some(&r, tokens);
        for (int i = 0; i < CROWD; i++) {
            char id[40];
            (void)snprintf(id, sizeof id, "%s-%d", prefix, i);
            leave[i] = wait_as(&node, id);
            stay[i] = wait_as(&node, id);
        }
        let_read(&node);
        int sent = hand_in_all(tokens);
        for (int i = 0; i < CROWD; i++)
            (void)close(leave[i]);
        for (int i = 0; i < CROWD; i++) {
            REPLY got = {0};
            hear(stay[i], &got);
            EXPECT_TEXT(&got, "state", "processed");
        }
        reply_fini(&r);
        hear(sent, &r);
        EXPECT(&r, 200);
    }
}

/* A submission that takes the loop a while to read. */
static int submit_slowly(const struct node *n, const char *id)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b,
            "{\"workflow\": \"kid\", \"id\": \"%s\", \"not_before\": "
            "\"2100-01-01T00:00:00Z\", \"input\": [0",
            id);
    while (b.len < 60000)
        buf_str(&b, ",{}");
    buf_str(&b, "]}");
    return ask(n, "POST", "/v1/tasks", "application/json", buf_view(&b));
}

/* What was read for a token that has used its share of the loop's time is handed on later; an end
 * that comes before that is not missed. */
static void an_end_between_a_read_and_its_answer_is_heard(void **state)
{
    char token[64];
    char *tokens[CROWD];
    int fds[CROWD][3];
    REPLY r = {0};
    (void)state;

    make_token(&node, "busy", "\"read\", \"submit\"", NULL, token);
    struct node busy = as(&node, token);
    submit_some("early");
    fetch_some(&r, tokens);
    for (int i = 0; i < CROWD; i++) {
        CLEANUP(buf_fini) struct buf result = {0};
        char id[40];
        (void)snprintf(id, sizeof id, "early-%d", i);
        buf_fmt(&result, "{\"instance\": \"i\", \"max\": 0, \"results\": [{\"token\": \"%s\"}]}",
                tokens[i]);
        fds[i][0] = wait_as(&busy, id);
        (void)snprintf(id, sizeof id, "slow-%d", i);
        fds[i][1] = submit_slowly(&busy, id);
        fds[i][2] =
            ask(&node, "POST", "/v1/agents/kid/work", "application/json", buf_view(&result));
        free(tokens[i]);
    }
    for (int i = 0; i < CROWD; i++)
        for (size_t k = 0; k < COUNT_OF(fds[i]); k++) {
            reply_fini(&r);
            hear(fds[i][k], &r);
            CHECK(r.status == (k == 1 ? 201 : 200), "%d: %.*s", r.status, SLICE_ARG(r.body));
            if (k == 0)
                EXPECT_TEXT(&r, "state", "processed");
        }
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_end_is_answered_as_it_was_stored),
        cmocka_unit_test(an_end_shows_what_people_did),
        cmocka_unit_test(a_large_record_is_answered_alike),
        cmocka_unit_test(an_end_shows_all_that_the_record_does),
        cmocka_unit_test(an_end_is_told_to_those_who_may_see_it),
        cmocka_unit_test(clients_may_leave_while_their_tasks_end),
        cmocka_unit_test(an_end_between_a_read_and_its_answer_is_heard),
    };
    return cmocka_run_group_tests_name("ends", tests, start, node_end);
}
