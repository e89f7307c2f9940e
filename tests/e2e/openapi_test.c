/*
 * The parts of docs/openapi.yaml that no other test provokes: each route called by a web page, with
 * a body of another type, while the store cannot write, for a task that cannot be read; and the
 * errors of the HTTP layer before any route. tests/openapi compares all answers with the document.
 */

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kit.h"

#define SIGNAL    "{\"workflow\": \"w\", \"tags\": {\"a\": \"b\"}, \"name\": \"x\"}"
#define OPERATOR  "{\"reason\": \"why\"}"
#define SUPPLIED  "{\"reason\": \"why\", \"step\": \"a\", \"output\": 1}"
#define RESOLVED  "{\"reason\": \"why\", \"step\": \"a\", \"effect\": \"none\"}"
#define OPERATION "{\"verb\": \"retry\", \"filter\": {\"all\": true}, \"reason\": \"why\"}"
#define SCHEDULE                                                      \
    "{\"intact\": 1, \"schedule\": \"rare\", \"workflow\": \"one\", " \
    "\"at\": [\"9998-01-01T00:00:00Z\"]}"
#define BACKFILL                                                                          \
    "{\"from\": \"2026-01-01T00:00:00Z\", \"to\": \"2026-01-02T00:00:00Z\", \"reason\": " \
    "\"why\"}"
#define REFUSED "{\"source\": \"amqp:q\", \"reason\": \"why\"}"

struct call {
    const char *method, *path, *body;
    bool writes; /* to the store, before it is answered */
};

static const struct call nowhere = {"GET", "/nowhere", NULL, false};

/* Every route, each as it is used. */
static const struct call calls[] = {
    {"GET", "/healthz", NULL, false},
    {"GET", "/readyz", NULL, false},
    {"GET", "/metrics", NULL, false},
    {"GET", "/v1/nodes", NULL, false},
    {"GET", "/v1/agents", NULL, false},
    {"GET", "/v1/agents/ag", NULL, false},
    {"PUT", "/v1/agents/ag", "{\"limits\": {\"concurrency\": 100}}", true},
    {"DELETE", "/v1/agents/ag", NULL, true},
    {"POST", "/v1/agents/ag/breaker", "{\"state\": \"closed\"}", true},
    {"GET", "/v1/stats", NULL, false},
    {"GET", "/v1/overview", NULL, false},
    {"GET", "/v1/clock", NULL, false},
    {"POST", "/v1/clock/advance", "{\"by\": \"1d\"}", false},
    {"GET", "/v1/tasks", NULL, false},
    {"GET", "/v1/tasks/held", NULL, false},
    {"GET", "/v1/tasks/held/events", NULL, false},
    {"GET", "/v1/tasks/held/why", NULL, false},
    {"GET", "/v1/events", NULL, false},
    {"GET", "/v1/workflows", NULL, false},
    {"GET", "/v1/workflows/one", NULL, false},
    {"GET", "/v1/workflows/one/versions/1", NULL, false},
    {"PUT", "/v1/workflows/new",
     "{\"intact\": 1, \"workflow\": \"new\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
     "\"action\": \"x\", \"undo\": \"none\"}]}",
     true},
    {"POST", "/v1/workflows",
     "{\"intact\": 1, \"workflow\": \"named\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
     "\"action\": \"x\", \"undo\": \"none\"}]}",
     true},
    {"POST", "/v1/validate",
     "{\"intact\": 1, \"workflow\": \"new\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
     "\"action\": \"x\", \"undo\": \"none\"}]}",
     false},
    {"POST", "/v1/tasks", "{\"workflow\": \"one\"}", true},
    {"POST", "/v1/tasks/held/retry", OPERATOR, true},
    {"POST", "/v1/tasks/held/skip", "{\"reason\": \"why\", \"step\": \"a\"}", true},
    {"POST", "/v1/tasks/held/undo", OPERATOR, true},
    {"POST", "/v1/tasks/active/cancel", OPERATOR, true},
    {"POST", "/v1/tasks/held/close", OPERATOR, true},
    {"POST", "/v1/tasks/held/reopen", OPERATOR, false},
    {"POST", "/v1/tasks/held/pause", OPERATOR, false},
    {"POST", "/v1/tasks/held/resume", OPERATOR, false},
    {"POST", "/v1/tasks/held/correct", "{\"reason\": \"why\", \"input\": 1}", true},
    {"POST", "/v1/tasks/held/supply", SUPPLIED, true},
    {"POST", "/v1/tasks/held/resolve", RESOLVED, true},
    {"GET", "/v1/tasks/held/items?step=a", NULL, false},
    {"GET", "/v1/tasks/held/signals", NULL, false},
    {"POST", "/v1/tasks/held/signals/paid", "1", false},
    {"POST", "/v1/tasks/held/signals/paid/drop", OPERATOR, false},
    {"GET", "/v1/locks", NULL, false},
    {"POST", "/v1/signals", SIGNAL, false},
    {"GET", "/v1/approvals", NULL, false},
    {"POST", "/v1/approvals/held/a/approve", "{}", false},
    {"POST", "/v1/approvals/held/a/reject", "{\"comment\": \"no\"}", false},
    {"POST", "/v1/approvals/held/a/link", "{}", false},
    {"GET", "/v1/alerts", NULL, false},
    {"POST", "/v1/alerts/none/acknowledge", OPERATOR, false},
    {"POST", "/v1/alerts/test", NULL, false},
    {"GET", "/v1/outbox", NULL, false},
    {"POST", "/v1/outbox/retry", "{\"all\": true, \"reason\": \"why\"}", false},
    {"POST", "/v1/outbox/drop", "{\"all\": true, \"reason\": \"why\"}", false},
    {"GET", "/v1/targets", NULL, false},
    {"GET", "/v1/submissions", NULL, false},
    {"POST", "/v1/submissions/retry", "{\"all\": true, \"reason\": \"why\"}", false},
    {"POST", "/v1/submissions/drop", "{\"all\": true, \"reason\": \"why\"}", false},
    {"POST", "/v1/submissions/refused", REFUSED, false},
    {"GET", "/v1/schedules", NULL, false},
    {"GET", "/v1/schedules/none", NULL, false},
    {"GET", "/v1/schedules/none/versions/1", NULL, false},
    {"GET", "/v1/schedules/none/next", NULL, false},
    {"PUT", "/v1/schedules/rare", SCHEDULE, true},
    {"DELETE", "/v1/schedules/rare", NULL, true},
    {"POST", "/v1/schedules/none/pause", OPERATOR, false},
    {"POST", "/v1/schedules/none/resume", OPERATOR, false},
    {"POST", "/v1/schedules/none/run", OPERATOR, false},
    {"POST", "/v1/schedules/none/backfill", BACKFILL, false},
    {"GET", "/v1/operations", NULL, false},
    {"POST", "/v1/operations", OPERATION, false},
    {"GET", "/v1/operations/none", NULL, false},
    {"POST", "/v1/operations/none/stop", OPERATOR, false},
    {"POST", "/v1/operations/none/continue", OPERATOR, false},
    {"POST", "/v1/backup", "{}", false}, /* the copy is written, not the store */
    {"POST", "/v1/retire", "{\"older_than\": \"1000d\"}", false}, /* there is nothing so old */
    {"GET", "/v1/audit", NULL, false},
    {"GET", "/v1/tokens", NULL, false},
    {"POST", "/v1/tokens", "{\"name\": \"ci\", \"roles\": [\"submit\"]}", true},
    {"POST", "/v1/tokens/doomed/rotate", "{\"keep\": \"0s\"}", true},
    {"PUT", "/v1/tokens/doomed", "{\"limits\": {\"calls\": 1000}}", true},
    {"DELETE", "/v1/tokens/doomed", NULL, true},
    {"POST", "/v1/agents/ag/heartbeats", "{\"instance\": \"i\", \"beats\": []}", false},
    {"POST", "/v1/attempts/nothing~0~f1~AAAAAAAAAAAAAAAAAAAAAA", "{\"output\": 1}", false},
    {"POST", "/v1/agents/ag/work", "{\"instance\": \"i\", \"max\": 1, \"wait\": \"0s\"}", true},
};

static struct node node;

static bool is(const struct call *c, const char *path)
{
    return strcmp(c->path, path) == 0;
}

static void call(struct reply *r, const struct call *c)
{
    send_as(&node, r, c->method, c->path, c->body ? "application/json" : NULL,
            c->body ? slice_of(c->body) : SLICE_NONE);
}

/* A task in error at its only step. */
static void hold(const char *id)
{
    REPLY r = {0};

    submit(&node, "one", id);
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token, "\"error\": {\"code\": \"c\", \"retryable\": false}",
            "accepted");
    free(token);
    wait_for_state(&node, id, "error");
}

static int start(void **state)
{
    char token[64];
    (void)state;
    (void)signal(SIGXFSZ, SIG_IGN); /* the server inherits it: writes beyond its limit fail */
    node_init(&node);
    node_start(&node, FLAGS("--scan-every", "100ms", "--grace", "200ms", "--drain", "500ms"));
    (void)define(&node, "one",
                 "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", "
                 "\"action\": \"x\", \"complete_by\": \"10m\", \"undo\": {\"action\": \"y\"}}]");
    hold("held");
    make_token(&node, "doomed", "\"read\"", NULL, token);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    node_fini(&node);
    return 0;
}

/* ---- who asks, and with what ---- */

static void call_with(struct reply *r, const struct call *c, const char *fields)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const char *body = c->body ? c->body : "";
    int fd = dial(&node);

    buf_fmt(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s", c->method, c->path, fields);
    buf_slice(&b, authorization(&node));
    if (*body)
        buf_fmt(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    buf_fmt(&b, "\r\n%s", body);
    say(fd, buf_view(&b));
    hear(fd, r);
}

static void no_route_serves_web_pages(void **state)
{
    static const char page[] = "Origin: https://example.com\r\n";
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        call_with(&r, &calls[i], page);
        expect_problem(&r, 403, "foreign");
    }
    call_with(&r, &nowhere, page);
    expect_problem(&r, 403, "foreign");
}

/* All but those that need no token, or any. */
static bool needs_a_role(const struct call *c)
{
    return strncmp(c->path, "/v1/attempts/", 13) != 0 && !is(c, "/healthz") && !is(c, "/readyz")
           && !is(c, "/v1/nodes");
}

static void no_route_serves_strangers(void **state)
{
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "else", "\"agent:somebody-else\"", NULL, token);
    struct node stranger = as(&node, "");
    struct node other = as(&node, token);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        const struct call *c = &calls[i];
        const char *type = c->body ? "application/json" : NULL;
        struct slice body = c->body ? slice_of(c->body) : SLICE_NONE;
        if (!needs_a_role(c))
            continue;
        send_as(&stranger, &r, c->method, c->path, type, body);
        expect_problem(&r, 401, "unauthenticated");
        send_as(&other, &r, c->method, c->path, type, body);
        expect_problem(&r, 403, "forbidden");
    }
}

static void every_body_is_checked_before_anything_is_done(void **state)
{
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        const struct call *c = &calls[i];
        bool defines = is(c, "/v1/validate") || strncmp(c->path, "/v1/workflows", 13) == 0;
        bool schedules = strcmp(c->method, "PUT") == 0 && is(c, "/v1/schedules/rare");
        const char *mistakes = defines ? "bad-definition" : schedules ? "bad-schedule" : NULL;
        const char *not_for_it = is(c, "/v1/tasks/held/signals/paid") ? "no-such-signal"
                                 : mistakes                           ? mistakes
                                                                      : "not-an-object";
        if (!c->body)
            continue;
        send_as(&node, &r, c->method, c->path, "text/plain", slice_of(c->body));
        expect_problem(&r, 415, "content-type");
        call_with(&r, c, "Content-Encoding: gzip\r\n");
        expect_problem(&r, 415, "content-encoding");
        send_as(&node, &r, c->method, c->path, "application/json", SLICE("{\"a\": "));
        expect_problem(&r, 400, mistakes ? mistakes : "not-json");
        send_as(&node, &r, c->method, c->path, "application/json", SLICE("[]"));
        expect_problem(&r, 422, not_for_it);
    }
    post(&node, &r, "/v1/tasks/held/signals/paid/drop", "{\"reason\": \"r\", \"odd\": 1}");
    expect_problem(&r, 422, "unknown-member");
    get(&node, &r, "/v1/workflows/new");
    EXPECT(&r, 404);
    task_of(&node, &r, "held");
    EXPECT_TEXT(&r, "state", "error");
}

static void definitions_come_in_yaml_by_any_of_its_names(void **state)
{
    static const char *const names[] = {"application/yaml", "application/x-yaml", "text/yaml"};
    const struct slice yaml = SLICE("intact: 1\nworkflow: yaml\nsteps:\n  - {name: a, agent: ag, "
                                    "action: x, undo: none}\n");
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        send_as(&node, &r, "POST", "/v1/validate", names[i], yaml);
        EXPECT(&r, 200);
        send_as(&node, &r, "PUT", "/v1/workflows/yaml", names[i], yaml);
        EXPECT(&r, i == 0 ? 201 : 200);
        send_as(&node, &r, "POST", "/v1/workflows", names[i], yaml);
        EXPECT(&r, 200);
    }
    send_as(
        &node, &r, "POST", "/v1/workflows", "application/json",
        SLICE("{\"intact\": 1, \"workflow\": \"as-json\", \"steps\": [{\"name\": \"a\", \"agent\": "
              "\"ag\", \"action\": \"x\", \"undo\": \"none\"}]}"));
    EXPECT(&r, 201);
}

/* What cannot be read must not count as left out. */
static void parameters_hide_nothing(void **state)
{
    static const char *const paths[] = {
        "/v1/tasks?workflow=%00",
        "/v1/tasks?state=%00error",
        "/v1/tasks/held?wait=1s%00",
        "/v1/audit?task=held%00",
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        get(&node, &r, "%s", paths[i]);
        CHECK(r.status == 400, "%s: %d", paths[i], r.status);
        expect_problem(&r, 400, "malformed");
    }
}

static void reasons_have_their_limit(void **state)
{
    static const char *const verbs[] = {"retry",   "skip",   "undo",  "cancel", "pause",  "resume",
                                        "correct", "supply", "close", "reopen", "resolve"};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        char path[60];
        (void)snprintf(path, sizeof path, "/v1/tasks/held/%s", verbs[i]);
        post(&node, &r, path, "{\"reason\": \"%05000d\"}", 0);
        expect_problem(&r, 422, "bad-reason");
    }
    post(&node, &r, "/v1/submissions/retry", "{\"all\": true, \"reason\": \"%05000d\"}", 0);
    expect_problem(&r, 422, "bad-reason");
    post(&node, &r, "/v1/submissions/drop", "{\"all\": true, \"reason\": \"%05000d\"}", 0);
    expect_problem(&r, 422, "bad-reason");
}

/* What every verb of a task refuses alike. */
static void verbs_take_what_is_theirs(void **state)
{
    static const struct {
        const char *verb, *step, *input, *output; /* what becomes of these */
        const char *good;
    } verbs[] = {
        {"retry", NULL, "no-input", "no-output", OPERATOR},
        {"skip", NULL, "no-input", NULL, "{\"reason\": \"r\", \"step\": \"a\"}"},
        {"undo", "no-single-step", "no-input", "no-output", OPERATOR},
        {"cancel", "no-single-step", "no-input", "no-output", OPERATOR},
        {"pause", "no-single-step", "no-input", "no-output", OPERATOR},
        {"resume", "no-single-step", "no-input", "no-output", OPERATOR},
        {"close", "no-single-step", "no-input", "no-output", OPERATOR},
        {"reopen", "no-single-step", "no-input", "no-output", OPERATOR},
        {"correct", NULL, NULL, "no-output", "{\"reason\": \"r\", \"input\": 1}"},
        {"supply", NULL, "no-input", NULL, "{\"reason\": \"r\", \"step\": \"a\", \"output\": 1}"},
        {"resolve", NULL, "no-input", NULL,
         "{\"reason\": \"r\", \"step\": \"a\", \"effect\": \"none\"}"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        bool a_step = strcmp(verbs[i].verb, "skip") == 0 || strcmp(verbs[i].verb, "supply") == 0
                      || strcmp(verbs[i].verb, "resolve") == 0;
        const char *step = a_step ? "\"step\": \"a\", " : "";
        const char *output = strcmp(verbs[i].verb, "supply") == 0 ? ", \"output\": 1" : "";
        char path[60];
        (void)snprintf(path, sizeof path, "/v1/tasks/held/%s", verbs[i].verb);
        post(&node, &r, path, "{\"reason\": \"r\", \"step\": 5}");
        expect_problem(&r, 422, "bad-step");
        post(&node, &r, path, "{\"reason\": \"r\", \"steps\": 5}");
        expect_problem(&r, 422, "unknown-member");
        if (verbs[i].step) {
            post(&node, &r, path, "{\"reason\": \"r\", \"step\": \"a\"}");
            expect_problem(&r, 422, verbs[i].step);
        }
        if (verbs[i].input) {
            post(&node, &r, path, "{\"reason\": \"r\", %s\"input\": 1%s}", step, output);
            expect_problem(&r, 422, verbs[i].input);
        }
        if (verbs[i].output) {
            post(&node, &r, path, "{\"reason\": \"r\", \"output\": 1}");
            expect_problem(&r, 422, verbs[i].output);
        }
        (void)snprintf(path, sizeof path, "/v1/tasks/nobody/%s", verbs[i].verb);
        send_as(&node, &r, "POST", path, "application/json", slice_of(verbs[i].good));
        expect_problem(&r, 404, "no-such-task");
    }
    post(&node, &r, "/v1/tasks/held/correct", "%s", OPERATOR);
    expect_problem(&r, 422, "no-input");
    post(&node, &r, "/v1/tasks/held/supply", "{\"reason\": \"r\", \"output\": 1}");
    expect_problem(&r, 422, "no-step");
    post(&node, &r, "/v1/tasks/held/supply", "{\"reason\": \"r\", \"step\": \"a\"}");
    expect_problem(&r, 422, "no-output");
    post(&node, &r, "/v1/tasks/held/resolve", "{\"reason\": \"r\", \"effect\": \"none\"}");
    expect_problem(&r, 422, "no-step");
    post(&node, &r, "/v1/tasks/held/resolve", "{\"reason\": \"r\", \"step\": \"a\"}");
    expect_problem(&r, 422, "bad-effect");
    post(&node, &r, "/v1/tasks/held/resolve",
         "{\"reason\": \"r\", \"step\": \"a\", \"effect\": \"happened\"}");
    expect_problem(&r, 422, "bad-effect");
    post(&node, &r, "/v1/tasks/held/resolve",
         "{\"reason\": \"r\", \"step\": \"a\", \"effect\": \"none\", \"output\": 1}");
    expect_problem(&r, 422, "no-output");
    post(&node, &r, "/v1/tasks/held/retry", "{\"reason\": \"r\", \"effect\": \"none\"}");
    expect_problem(&r, 422, "unknown-member");
    post(&node, &r, "/v1/tasks/held/retry", "{\"reason\": \"r\", \"attempt\": 1}");
    expect_problem(&r, 422, "unknown-member");
    static const char *const attempts[] = {"0", "\"2\"", "4294967296", "null", "1.5"};
    for (size_t i = 0; i < COUNT_OF(attempts); i++) {
        post(&node, &r, "/v1/tasks/held/resolve",
             "{\"reason\": \"r\", \"step\": \"a\", \"effect\": \"none\", \"attempt\": %s}",
             attempts[i]);
        expect_problem(&r, 422, "bad-attempt");
    }
    post(&node, &r, "/v1/tasks/held/resume", "%s", OPERATOR);
    expect_problem(&r, 409, "conflict");
    post(&node, &r, "/v1/tasks/held/close", "%s", OPERATOR);
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks/held/supply", "{\"reason\": \"r\", \"step\": \"a\", \"output\": 1}");
    expect_problem(&r, 409, "conflict");
    post(&node, &r, "/v1/tasks/held/reopen", "%s", OPERATOR);
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"one\", \"id\": \"asleep\", \"not_before\": "
         "\"2099-01-01T00:00:00Z\"}");
    EXPECT(&r, 201);
    post(&node, &r, "/v1/tasks/asleep/reopen", "%s", OPERATOR);
    expect_problem(&r, 409, "conflict");
}

/* Lists, and the verbs on what is in them. */
static void lists_and_their_verbs_say_what_they_take(void **state)
{
    static const struct {
        const char *path, *body; /* NULL: it is asked for */
        int status;
        const char *type;
    } cases[] = {
        {"/v1/locks?cursor=x", NULL, 422, "bad-cursor"},
        {"/v1/locks?limit=x", NULL, 422, "bad-limit"},
        {"/v1/approvals?cursor=x", NULL, 422, "bad-cursor"},
        {"/v1/approvals?limit=501", NULL, 422, "bad-limit"},
        {"/v1/approvals?all=1", NULL, 422, "bad-filter"},
        {"/v1/approvals?task=%20", NULL, 422, "bad-ids"},
        {"/v1/approvals?x=1", NULL, 422, "unknown-parameter"},
        {"/v1/alerts?cursor=x", NULL, 422, "bad-cursor"},
        {"/v1/outbox?cursor=x", NULL, 422, "bad-cursor"},
        {"/v1/outbox?limit=x", NULL, 422, "bad-limit"},
        {"/v1/outbox?state=x", NULL, 422, "bad-state"},
        {"/v1/outbox?target=x&task=y", NULL, 422, "bad-outbox"},
        {"/v1/operations?cursor=x", NULL, 422, "bad-cursor"},
        {"/v1/operations?limit=x", NULL, 422, "bad-limit"},
        {"/v1/submissions?cursor=x", NULL, 422, "bad-cursor"},
        {"/v1/submissions?limit=x", NULL, 422, "bad-limit"},
        {"/v1/tasks?paused=x", NULL, 422, "bad-filter"},
        {"/v1/tasks", "{\"workflow\": \"one\", \"paused\": 1}", 422, "bad-paused"},
        {"/v1/submissions/retry", "{\"reason\": \"r\"}", 422, "bad-submission"},
        {"/v1/submissions/retry", "{\"reason\": \"r\", \"x\": 1}", 422, "unknown-member"},
        {"/v1/submissions/retry", "{\"reason\": \"r\", \"seq\": 77}", 404, "no-such-submission"},
        {"/v1/submissions/drop", "{\"reason\": \"r\", \"x\": 1}", 422, "unknown-member"},
        {"/v1/outbox/retry", "{\"reason\": \"r\", \"x\": 1}", 422, "unknown-member"},
        {"/v1/outbox/drop", "{\"reason\": \"r\", \"x\": 1}", 422, "unknown-member"},
        {"/v1/operations", "{\"reason\": \"r\", \"x\": 1}", 422, "unknown-member"},
        {"/v1/operations/none/stop", "{\"reason\": \"r\", \"x\": 1}", 422, "unknown-member"},
        {"/v1/operations/none/continue", "{\"reason\": \"r\", \"x\": 1}", 422, "unknown-member"},
        {"/v1/operations/none/stop", OPERATOR, 404, "no-such-operation"},
        {"/v1/operations/none/continue", OPERATOR, 404, "no-such-operation"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (cases[i].body)
            send_as(&node, &r, "POST", cases[i].path, "application/json", slice_of(cases[i].body));
        else
            get(&node, &r, "%s", cases[i].path);
        expect_problem(&r, cases[i].status, cases[i].type);
    }
    get(&node, &r, "/v1/outbox?state=waiting&limit=5&target=none");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/outbox?task=none&cursor=1");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/locks?cursor=1&lock=w/%%FF");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/approvals?cursor=1&limit=10&all=true&task=held");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/alerts?cursor=1");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/operations?cursor=1");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/submissions?cursor=1");
    EXPECT(&r, 200);
    get(&node, &r, "/v1/outbox?x=1");
    expect_problem(&r, 422, "unknown-parameter");
    get(&node, &r, "/v1/tasks?ended_after=2026-01-01T00:00:00Z");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/outbox/retry", "{\"all\": true, \"reason\": \"r\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/operations",
         "{\"verb\": \"retry\", \"filter\": {\"workflow\": \"none\"}, \"reason\": \"r\"}");
    EXPECT(&r, 202);
    char path[100];
    (void)snprintf(path, sizeof path, "/v1/operations/%.60s", text_at(&r, "id"));
    do {
        get(&node, &r, "%s", path);
        EXPECT(&r, 200);
    } while (strcmp(text_at(&r, "state"), "done") != 0);
    (void)strcat(path, "/stop");
    post(&node, &r, path, "%s", OPERATOR);
    expect_problem(&r, 409, "conflict");
}

static void operations_want_what_they_need(void **state)
{
    static const struct {
        const char *verb, *body, *type;
    } cases[] = {
        {"retry", "{\"reason\": \"r\", \"step\": 5}", "bad-step"},
        {"retry", "{\"reason\": \"r\", \"output\": 1}", "no-output"},
        {"retry", "{\"step\": \"a\"}", "no-reason"},
        {"retry", "{\"reason\": \"r\", \"steps\": 1}", "unknown-member"},
        {"skip", "{\"reason\": \"r\", \"step\": 5}", "bad-step"},
        {"skip", OPERATOR, "no-step"},
        {"skip", "{\"step\": \"a\"}", "no-reason"},
        {"skip", "{\"reason\": \"r\", \"steps\": 1}", "unknown-member"},
        {"undo", "{\"reason\": \"r\", \"step\": 5}", "bad-step"},
        {"undo", "{\"reason\": \"r\", \"step\": \"a\"}", "no-single-step"},
        {"undo", "{\"reason\": \"r\", \"output\": 1}", "no-output"},
        {"undo", "{}", "no-reason"},
        {"undo", "{\"reason\": \"r\", \"steps\": 1}", "unknown-member"},
        {"cancel", "{\"reason\": \"r\", \"step\": 5}", "bad-step"},
        {"cancel", "{\"reason\": \"r\", \"step\": \"a\"}", "no-single-step"},
        {"cancel", "{\"reason\": \"r\", \"output\": 1}", "no-output"},
        {"cancel", "{}", "no-reason"},
        {"cancel", "{\"reason\": \"r\", \"steps\": 1}", "unknown-member"},
    };
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char path[60];
        (void)snprintf(path, sizeof path, "/v1/tasks/held/%s", cases[i].verb);
        send_as(&node, &r, "POST", path, "application/json", slice_of(cases[i].body));
        expect_problem(&r, 422, cases[i].type);
        (void)snprintf(path, sizeof path, "/v1/tasks/nobody/%s", cases[i].verb);
        send_as(&node, &r, "POST", path, "application/json",
                SLICE("{\"reason\": \"r\", \"step\": \"a\"}"));
        if (strcmp(cases[i].verb, "undo") == 0 || strcmp(cases[i].verb, "cancel") == 0)
            send_as(&node, &r, "POST", path, "application/json", SLICE(OPERATOR));
        expect_problem(&r, 404, "no-such-task");
    }
}

/* ---- what is refused before any route ---- */

static void refused(const char *line, const char *fields, int status, const char *type)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    int fd = dial(&node);

    buf_fmt(&b, "%s\r\nHost: 127.0.0.1\r\n%s\r\n", line, fields);
    say(fd, buf_view(&b));
    hear(fd, &r);
    expect_problem(&r, status, type);
}

static void what_is_no_good_http_is_refused(void **state)
{
    CLEANUP(buf_fini) struct buf line = {0};
    CLEANUP(buf_fini) struct buf many = {0};
    CLEANUP(buf_fini) struct buf wide = {0};
    (void)state;

    buf_fmt(&line, "GET /%0*d HTTP/1.1", 20000, 0);
    refused(line.ptr, "", 414, "too-long");
    for (int i = 0; i < 200; i++)
        buf_fmt(&many, "X-%d: x\r\n", i);
    refused("GET /healthz HTTP/1.1", many.ptr, 431, "too-many");
    buf_fmt(&wide, "X: %0*d\r\n", 20000, 0);
    refused("GET /healthz HTTP/1.1", wide.ptr, 431, "too-long");
    refused("GET /healthz HTTP/1.1", "Expect: wonders\r\n", 417, "expectation");
    refused("POST /v1/tasks HTTP/1.1", "Transfer-Encoding: gzip\r\n", 501, "not-implemented");
    refused("GET /healthz HTTP/1.7", "", 505, "version");
    refused("GET /healthz HTTP/1.1", "X : x\r\n", 400, "malformed");
}

/* ---- a store in trouble ---- */

/* How far the server may write into files. */
static void limit_files(rlim_t size)
{
    const struct rlimit limit = {size, RLIM_INFINITY};

    CHECK(prlimit(node.pid, RLIMIT_FSIZE, &limit, NULL) == 0, "%s", strerror(errno));
}

/* Until the answer has that status: what is asked first may find the store still working. */
static void call_until(struct reply *r, const struct call *c, int status)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    for (call(r, c); r->status != status; call(r, c)) {
        CHECK(steady_ms() < until, "%s: %d: %.*s", c->path, r->status, SLICE_ARG(r->body));
        sleep_ms(20);
    }
}

static void what_cannot_be_written_is_not_promised(void **state)
{
    CLEANUP(buf_fini) struct buf result = {0};
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "active");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    char *url = signal_url(&node, "called");
    const struct call signal = {"POST", url, "1", true};
    buf_fmt(&result,
            "{\"instance\": \"i\", \"max\": 0, \"results\": [{\"token\": \"%s\", \"output\": 1}]}",
            token);
    limit_files(1);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct call c = calls[i];
        if (!c.writes)
            continue;
        if (is(&c, "/v1/agents/ag/work"))
            c.body = result.ptr;
        call_until(&r, &c, 503);
        expect_problem(&r, 503, "io");
    }
    const struct call why = {"GET", "/v1/tasks/active/why", NULL, false};
    const struct call stats = {"GET", "/v1/stats", NULL, false};
    const struct call retire = {"POST", "/v1/retire", "{\"older_than\": \"1000d\"}", false};
    call_until(&r, &why, 503); /* and in the end nothing can be read */
    call_until(&r, &stats, 503);
    call_until(&r, &retire, 503);
    call_until(&r, &signal, 503);
    free(url);
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        static const char *const later[] = {"/reopen",       "/pause",      "/resume",
                                            "/v1/outbox",    "/v1/targets", "/v1/submissions",
                                            "/items",        "/v1/alerts",  "/v1/operations",
                                            "/v1/schedules", "/signals",    "/v1/locks",
                                            "/v1/approvals"};
        bool wanted = false;
        for (size_t k = 0; k < COUNT_OF(later); k++)
            wanted |= strstr(calls[i].path, later[k]) != NULL;
        if (wanted && !is(&calls[i], "/v1/alerts/test") && !is(&calls[i], "/v1/alerts"))
            call_until(&r, &calls[i], 503);
    }
    limit_files(RLIM_INFINITY);
    wait_until_ready(&node);
    task_of(&node, &r, "held");
    EXPECT_TEXT(&r, "state", "error");
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    wait_for_state(&node, "active", "processed");
    free(token);
}

static sqlite3 *open_store(void)
{
    char path[100];
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", node.data);
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL);
    CHECK(rc == SQLITE_OK, "%s: %s", path, sqlite3_errmsg(db));
    (void)sqlite3_busy_timeout(db, PATIENCE_MS);
    return db;
}

static void execute(sqlite3 *db, const char *statement)
{
    CHECK(sqlite3_exec(db, statement, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", statement,
          sqlite3_errmsg(db));
}

static void a_store_that_somebody_else_writes_to_is_busy(void **state)
{
    const struct call c = {"POST", "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"later\"}", true};
    sqlite3 *db = open_store();
    REPLY r = {0};
    (void)state;

    submit(&node, "one", "waits");
    execute(db, "BEGIN IMMEDIATE");
    call_until(&r, &c, 503);
    expect_problem(&r, 503, "busy");
    get(&node, &r, "/v1/tasks/waits/why"); /* reading goes on, and says so */
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "reasons.0.kind", "store-trouble");
    assert_true(time_at(&r, "reasons.0.since") > 0);
    execute(db, "COMMIT");
    (void)sqlite3_close(db);
    wait_until_ready(&node);
    call(&r, &c);
    EXPECT(&r, 201);
    serve_step(&node, "ag", "i", "1");
    serve_step(&node, "ag", "i", "1");
}

static void a_task_that_cannot_be_read_says_so(void **state)
{
    static const struct call broken[] = {
        {"POST", "/v1/tasks", "{\"workflow\": \"one\", \"id\": \"broken\"}", true},
        {"POST", "/v1/tasks/broken/retry", OPERATOR, true},
        {"POST", "/v1/tasks/broken/skip", "{\"reason\": \"why\", \"step\": \"a\"}", true},
        {"POST", "/v1/tasks/broken/undo", OPERATOR, true},
        {"POST", "/v1/tasks/broken/cancel", OPERATOR, true},
        {"POST", "/v1/tasks/broken/pause", OPERATOR, true},
        {"POST", "/v1/tasks/broken/resume", OPERATOR, true},
        {"POST", "/v1/tasks/broken/correct", "{\"reason\": \"why\", \"input\": 1}", true},
        {"POST", "/v1/tasks/broken/supply", SUPPLIED, true},
        {"POST", "/v1/tasks/broken/resolve", RESOLVED, true},
        {"POST", "/v1/tasks/broken/close", OPERATOR, true},
        {"POST", "/v1/tasks/broken/reopen", OPERATOR, true},
        {"POST", "/v1/tasks/broken/signals/paid", "1", true},
        {"POST", "/v1/tasks/broken/signals/paid/drop", OPERATOR, true},
        {"POST", "/v1/approvals/broken/a/approve", "{}", true},
        {"POST", "/v1/approvals/broken/a/reject", "{\"comment\": \"no\"}", true},
        {"POST", "/v1/attempts/broken~0~f1~AAAAAAAAAAAAAAAAAAAAAA", "{\"output\": 1}", true},
    };
    static const char *const reads[] = {"", "/events", "/why", "/signals", "-each/items?step=a"};
    REPLY r = {0};
    (void)state;

    hold("broken");
    (void)define(&node, "each",
                 "\"steps\": [{\"name\": \"a\", \"for_each\": [1], \"max_items\": 1, \"agent\": "
                 "\"nobody\", \"action\": \"x\", \"undo\": \"none\"}]");
    submit(&node, "each", "broken-each");
    char *url = signal_url(&node, "broken-2");
    const struct call signal = {"POST", url, "1", true};
    node_stop(&node);
    sqlite3 *db = open_store();
    execute(db, "UPDATE task SET doc = '{}' WHERE id LIKE 'broken%'");
    (void)sqlite3_close(db);
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "500ms"));
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        call(&r, &broken[i]);
        expect_problem(&r, 500, "corrupt");
    }
    call(&r, &signal);
    expect_problem(&r, 500, "corrupt");
    free(url);
    for (size_t i = 0; i < COUNT_OF(reads); i++) {
        get(&node, &r, "/v1/tasks/broken%s", reads[i]);
        expect_problem(&r, 500, "task-unreadable");
    }
    task_of(&node, &r, "held"); /* the others are served */
}

static void no_stream_begins_while_the_server_ends(void **state)
{
    REPLY r = {0};
    (void)state;

    node_stop(&node);
    node_start(&node, FLAGS("--drain", "10m"));
    submit(&node, "one", "last");
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    node_signal(&node, SIGTERM);
    do
        get(&node, &r, "/readyz");
    while (r.status == 200);
    get(&node, &r, "/v1/events");
    expect_problem(&r, 503, "draining");
    get(&node, &r, "/v1/tasks/last/events");
    expect_problem(&r, 503, "draining");
    get(&node, &r, "/v1/tasks/last/why");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "reasons.0.kind", "draining");
    EXPECT_TEXT(&r, "reasons.1.kind", "running");
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
    int status = node_wait(&node, PATIENCE_MS);
    CHECK(status == 0, "wait status %x", (unsigned)status);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_route_serves_web_pages),
        cmocka_unit_test(no_route_serves_strangers),
        cmocka_unit_test(every_body_is_checked_before_anything_is_done),
        cmocka_unit_test(definitions_come_in_yaml_by_any_of_its_names),
        cmocka_unit_test(parameters_hide_nothing),
        cmocka_unit_test(reasons_have_their_limit),
        cmocka_unit_test(verbs_take_what_is_theirs),
        cmocka_unit_test(lists_and_their_verbs_say_what_they_take),
        cmocka_unit_test(operations_want_what_they_need),
        cmocka_unit_test(what_is_no_good_http_is_refused),
        cmocka_unit_test(what_cannot_be_written_is_not_promised),
        cmocka_unit_test(a_store_that_somebody_else_writes_to_is_busy),
        cmocka_unit_test(a_task_that_cannot_be_read_says_so),
        cmocka_unit_test(no_stream_begins_while_the_server_ends),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
