/* The ways in which signals come, besides one by one with a token: by a URL that a step hands on,
 * to many tasks, and with a submission. */

#include <stdlib.h>

#include "kit.h"

static struct node node;

static const char asks[] =
    "\"steps\": [{\"name\": \"ask\", \"agent\": \"ag\", \"action\": \"ask\", \"undo\": \"none\","
    " \"input\": {\"url\": \"${ .task.signals.payment }\"}},"
    "{\"name\": \"paid\", \"signal\": {\"name\": \"payment\"}},"
    "{\"name\": \"sent\", \"signal\": {\"name\": \"sent\"}}]";
static const char waits[] = "\"steps\": [{\"name\": \"go\", \"signal\": {\"name\": \"go\"}}]";

static const char three[] = "\"steps\": [{\"name\": \"a\", \"signal\": {\"name\": \"go\"}},"
                            "{\"name\": \"b\", \"signal\": {\"name\": \"go\"}}]";

static void begin(void)
{
    node_start(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
}

static int start(void **state)
{
    *state = node_open(&node, FLAGS("--scan-every", "100ms", "--drain", "200ms"));
    (void)define(&node, "asks", asks);
    (void)define(&node, "waits", waits);
    (void)define(&node, "other", waits);
    (void)define(&node, "three", three);
    return 0;
}

/* ---- by a URL ---- */

/* The path of the URL that the agent was given. To be freed. */
static char *path_given(const char *id)
{
    CLEANUP(buf_fini) struct buf base = {0};
    REPLY r = {0};

    submit(&node, "asks", id);
    fetch(&node, &r, "ag", "i");
    char *token = token_in(&r, 0);
    const char *url = text_at(&r, "requests.0.input.url");
    buf_fmt(&base, "http://127.0.0.1:%d", node.port);
    CHECK(strncmp(url, base.ptr, base.len) == 0, "it begins with this node: %s", url);
    char *path = strdup(url + base.len);
    CHECK(path, "memory");
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
    return path;
}

static void sends_to(struct reply *r, const char *path, const char *key, struct slice data)
{
    CLEANUP(buf_fini) struct buf type = {0};
    struct node nobody = as(&node, "");

    buf_str(&type, "application/json");
    if (key)
        buf_fmt(&type, "\r\nIdempotency-Key: %s", key);
    send_as(&nobody, r, "POST", path, type.ptr, data);
}

static void a_url_is_good_for_one_task_and_name(void **state)
{
    REPLY r = {0};
    (void)state;

    char *path = path_given("u-1");
    CHECK(strncmp(path, "/v1/signals/u-1~payment.", 24) == 0, "%s", path);
    sends_to(&r, path, "p-1", SLICE("{\"amount\": 5}"));
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "task", "u-1");
    EXPECT_TEXT(&r, "name", "payment");
    node_kill(&node); /* it was acknowledged */
    begin();
    sends_to(&r, path, "p-1", SLICE("{\"amount\": 5}"));
    EXPECT(&r, 200);
    task_of(&node, &r, "u-1");
    EXPECT_INT(&r, "steps.1.output.data.amount", 5);
    EXPECT_TEXT(&r, "steps.2.state", "waiting");
    get(&node, &r, "/v1/audit?task=u-1");
    EXPECT_TEXT(&r, "entries.0.actor", "signal-url");
    sends_to(&r, path, NULL, SLICE("1"));
    expect_problem(&r, 422, "no-such-signal");
    sends_to(&r, path, "p-1", SLICE("1"));
    expect_problem(&r, 409, "conflict");
    sends_to(&r, path, "a b", SLICE("1"));
    expect_problem(&r, 422, "bad-key");
    sends_to(&r, path, NULL, SLICE("{"));
    expect_problem(&r, 400, "not-json");
    send_as(&node, &r, "POST", path, "text/plain", SLICE("1"));
    expect_problem(&r, 415, "content-type");
    send_as(&node, &r, "POST", path, "application/json\r\nContent-Encoding: gzip", SLICE("1"));
    expect_problem(&r, 415, "content-encoding");
    free(path);
}

static void an_invented_url_is_refused(void **state)
{
    static const char *const invented[] = {
        "/v1/signals/u-2~sent.AAAAAAAAAAAAAAAAAAAAAA",
        "/v1/signals/u-2~payment.AAAAAAAAAAAAAAAAAAAAAA",
        "/v1/signals/u-2",
    };
    CLEANUP(buf_fini) struct buf other = {0};
    CLEANUP(buf_fini) struct buf large = {0};
    REPLY r = {0};
    (void)state;

    char *path = path_given("u-2");
    for (size_t i = 0; i < COUNT_OF(invented); i++) {
        sends_to(&r, invented[i], NULL, SLICE("1"));
        expect_problem(&r, 404, "unknown-signal-url");
    }
    /* The MAC of another name, and of another task. */
    buf_fmt(&other, "/v1/signals/u-2~sent%s", strchr(path, '.'));
    sends_to(&r, other.ptr, NULL, SLICE("1"));
    expect_problem(&r, 404, "unknown-signal-url");
    buf_clear(&other);
    buf_fmt(&other, "/v1/signals/u-1~payment%s", strchr(path, '.'));
    sends_to(&r, other.ptr, NULL, SLICE("1"));
    expect_problem(&r, 404, "unknown-signal-url");
    for (int i = 0; i < 65537; i++)
        buf_byte(&large, '1');
    sends_to(&r, path, NULL, buf_view(&large));
    expect_problem(&r, 413, "too-big");
    sends_to(&r, path, NULL, SLICE("1"));
    EXPECT(&r, 200);
    free(path);
}

static void so_many_come_by_a_url(void **state)
{
    REPLY r = {0};
    (void)state;

    submit(&node, "asks", "u-4");
    fetch(&node, &r, "ag", "i");
    const char *path = strstr(text_at(&r, "requests.0.input.url"), "/v1/");
    char *token = token_in(&r, 0);
    for (int i = 0; i < 20; i++) {
        REPLY sent = {0};
        sends_to(&sent, path, NULL, SLICE("1"));
        EXPECT(&sent, 200);
    }
    REPLY refused = {0};
    sends_to(&refused, path, NULL, SLICE("1"));
    expect_problem(&refused, 429, "too-many-signals");
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
}

static void a_public_url_is_handed_on(void **state)
{
    REPLY r = {0};
    (void)state;

    node_kill(&node);
    node_start(&node, FLAGS("--drain", "200ms", "--public-url", "https://intact.example.org"));
    submit(&node, "asks", "u-3");
    fetch(&node, &r, "ag", "i");
    const char *url = text_at(&r, "requests.0.input.url");
    CHECK(strncmp(url, "https://intact.example.org/v1/signals/u-3~payment.", 50) == 0, "%s", url);
    const char *path = url + strlen("https://intact.example.org");
    CLEANUP(buf_fini) struct buf request = {0};
    REPLY heard = {0};
    buf_fmt(&request,
            "POST %s HTTP/1.1\r\nHost: intact.example.org\r\nContent-Type: application/json\r\n"
            "Content-Length: 1\r\nConnection: close\r\n\r\n7",
            path);
    int fd = dial(&node);
    say(fd, buf_view(&request));
    hear(fd, &heard);
    EXPECT(&heard, 200); /* the name is that of a proxy in front of it */
    node_kill(&node);
    begin();
}

/* ---- to many ---- */

static void submit_with_tag(const char *workflow, const char *id, const char *tag)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"%s\", \"id\": \"%s\", \"tags\": {\"shop\": \"%s\", \"a\": \"b\"}}",
         workflow, id, tag);
    EXPECT(&r, 201);
}

static void all_tasks_with_the_tags_get_it(void **state)
{
    char id[24];
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 300; i++) { /* more than a page, and than go at once */
        (void)snprintf(id, sizeof id, "m-%d", i);
        submit_with_tag("waits", id, "north");
    }
    send_as(&node, &r, "POST", "/v1/signals", "application/json\r\nIdempotency-Key: k-9",
            SLICE("{\"workflow\": \"waits\", \"tags\": {\"shop\": \"none\"}, \"name\": \"go\"}"));
    EXPECT_TEXT(&r, "id", "k-9");
    submit_with_tag("waits", "south", "south");
    submit_with_tag("other", "another", "north");
    submit_with_tag("waits", "ended", "north");
    post(&node, &r, "/v1/tasks/ended/signals/go", "1");
    EXPECT(&r, 200);
    for (int i = 0; i < 2; i++) { /* the second time nobody is left */
        post(&node, &r, "/v1/signals",
             "{\"workflow\": \"waits\", \"tags\": {\"shop\": \"north\"}, \"name\": \"go\", "
             "\"data\": {\"n\": 7}, \"id\": \"k\"}");
        EXPECT(&r, 200);
        EXPECT_INT(&r, "tasks", i == 0 ? 300 : 0);
        EXPECT_INT(&r, "sent", i == 0 ? 300 : 0);
        EXPECT_TEXT(&r, "id", "k");
        EXPECT_RAW(&r, "refused", "{}");
        EXPECT_RAW(&r, "next", "null");
    }
    for (int i = 0; i < 300; i++) {
        (void)snprintf(id, sizeof id, "m-%d", i);
        wait_for_state(&node, id, "processed");
    }
    task_of(&node, &r, "m-299");
    EXPECT_INT(&r, "steps.0.output.data.n", 7);
    task_of(&node, &r, "south");
    EXPECT_TEXT(&r, "state", "pending");
    task_of(&node, &r, "another");
    EXPECT_TEXT(&r, "state", "pending");
}

static void those_that_cannot_take_it_are_counted(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_with_tag("waits", "n-1", "west");
    submit_with_tag("waits", "n-2", "west");
    post(&node, &r, "/v1/tasks/n-1/pause", "{\"reason\": \"a test\"}");
    EXPECT(&r, 200);
    for (int i = 0; i < 20; i++) {
        post(&node, &r, "/v1/tasks/n-1/signals/go", "1");
        EXPECT(&r, 200);
    }
    post(&node, &r, "/v1/signals",
         "{\"workflow\": \"waits\", \"tags\": {\"shop\": \"west\"}, \"name\": \"no\"}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "tasks", 2);
    EXPECT_INT(&r, "sent", 0);
    EXPECT_INT(&r, "refused.no-such-signal", 2);
    post(&node, &r, "/v1/signals",
         "{\"workflow\": \"waits\", \"tags\": {\"shop\": \"west\"}, \"name\": \"go\"}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "sent", 1);
    EXPECT_INT(&r, "refused.too-many-signals", 1);
    CHECK(strlen(text_at(&r, "id")) == 36, "it got a key: %.*s", SLICE_ARG(r.body));
    wait_for_state(&node, "n-2", "processed");
}

static void wrong_requests_to_many_are_refused(void **state)
{
    static const struct {
        const char *body, *type;
    } cases[] = {
        {"{\"workflow\": \"waits\", \"tags\": {}, \"name\": \"go\"}", "bad-tags"},
        {"{\"workflow\": \"waits\", \"name\": \"go\"}", "bad-tags"},
        {"{\"workflow\": \"waits\", \"tags\": {\"a\": 1}, \"name\": \"go\"}", "bad-tags"},
        {"{\"workflow\": \"waits\", \"tags\": {\"a\": \"1\"}}", "bad-signal"},
        {"{\"tags\": {\"a\": \"1\"}, \"name\": \"go\"}", "bad-signal"},
        {"{\"workflow\": \"waits\", \"tags\": {\"a\": \"1\"}, \"name\": \"go\", \"id\": \"a b\"}",
         "bad-key"},
        {"{\"workflow\": \"waits\", \"tags\": {\"a\": \"1\"}, \"name\": \"go\", \"cursor\": 1}",
         "bad-cursor"},
        {"{\"workflow\": \"waits\", \"tag\": {\"a\": \"1\"}, \"name\": \"go\"}", "unknown-member"},
        {"[]", "not-an-object"},
    };
    CLEANUP(buf_fini) struct buf large = {0};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        post(&node, &r, "/v1/signals", "%s", cases[i].body);
        expect_problem(&r, 422, cases[i].type);
    }
    buf_str(&large,
            "{\"workflow\": \"w\", \"tags\": {\"a\": \"b\"}, \"name\": \"go\", \"data\": \"");
    for (int i = 0; i < 65536; i++)
        buf_byte(&large, 'x');
    buf_str(&large, "\"}");
    send_as(&node, &r, "POST", "/v1/signals", "application/json", buf_view(&large));
    expect_problem(&r, 413, "too-big");
}

static void a_scope_is_for_a_workflow_and_a_name(void **state)
{
    static const char body[] =
        "{\"workflow\": \"%s\", \"tags\": {\"shop\": \"nowhere\"}, \"name\": \"%s\"}";
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "caller", "\"signal:wait*/go\", \"signal:other/stop-*\"", NULL, token);
    struct node caller = as(&node, token);
    post(&caller, &r, "/v1/signals", body, "waits", "go");
    EXPECT(&r, 200);
    post(&caller, &r, "/v1/signals", body, "other", "stop-it");
    EXPECT(&r, 200);
    post(&caller, &r, "/v1/signals", body, "waits", "stop-it");
    expect_problem(&r, 403, "forbidden");
    post(&caller, &r, "/v1/signals", body, "other", "go");
    expect_problem(&r, 403, "forbidden");
    get(&caller, &r, "/v1/tasks");
    expect_problem(&r, 403, "forbidden");
    make_token(&node, "shop", "\"submit\"", NULL, token);
    struct node shop = as(&node, token);
    post(&shop, &r, "/v1/signals", body, "waits", "go");
    expect_problem(&r, 403, "forbidden");
    CHECK(strstr(text_at(&r, "detail"), "signal:WORKFLOW/NAME"), "%.*s", SLICE_ARG(r.body));
    post(&node, &r, "/v1/tokens", "{\"name\": \"bad\", \"roles\": [\"signal:waits\"]}");
    expect_problem(&r, 422, "bad-token");
}

/* Each page of a thousand is answered with the cursor of the next. */
static void more_than_a_thousand_take_two_requests(void **state)
{
    CLEANUP(buf_fini) struct buf lines = {0};
    char cursor[32];
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 1010; i++)
        buf_fmt(&lines,
                "{\"workflow\": \"waits\", \"id\": \"k-%d\", \"tags\": {\"shop\": \"east\"}}\n", i);
    send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", buf_view(&lines));
    EXPECT(&r, 200);
    post(&node, &r, "/v1/signals",
         "{\"workflow\": \"waits\", \"tags\": {\"shop\": \"east\"}, \"name\": \"go\"}");
    EXPECT(&r, 200);
    EXPECT_INT(&r, "sent", 1000);
    (void)snprintf(cursor, sizeof cursor, "%s", text_at(&r, "next"));
    CHECK(cursor[0], "there are more");
    post(&node, &r, "/v1/signals",
         "{\"workflow\": \"waits\", \"tags\": {\"shop\": \"east\"}, \"name\": \"go\", "
         "\"cursor\": \"%s\"}",
         cursor);
    EXPECT(&r, 200);
    EXPECT_INT(&r, "sent", 10);
    EXPECT_RAW(&r, "next", "null");
}

/* ---- with a submission ---- */

static void submits(struct reply *r, int status, const char *id, const char *more)
{
    post(&node, r, "/v1/tasks", "{\"workflow\": \"three\", \"id\": \"%s\"%s}", id, more);
    EXPECT(r, status);
}

static void a_submission_carries_signals(void **state)
{
    static const char two[] = ", \"signals\": [{\"id\": \"k1\", \"name\": \"go\", \"data\": 1},"
                              "{\"id\": \"k2\", \"name\": \"no\"}]";
    static const char more[] =
        ", \"signals\": [{\"id\": \"k1\", \"name\": \"go\", \"data\": 1.0},"
        "{\"id\": \"k1\", \"name\": \"go\", \"data\": 2}, {\"id\": \"k3\", \"name\": \"go\"}]";
    REPLY r = {0};
    (void)state;

    submits(&r, 201, "c-1", two);
    EXPECT_TEXT(&r, "signals.0.id", "k1");
    EXPECT_TEXT(&r, "signals.0.status", "accepted");
    EXPECT_RAW(&r, "signals.0.problem", "null");
    EXPECT_TEXT(&r, "signals.1.status", "refused");
    EXPECT_TEXT(&r, "signals.1.problem", "urn:intact:problem:no-such-signal");
    node_kill(&node); /* it was acknowledged */
    begin();
    task_of(&node, &r, "c-1");
    EXPECT_TEXT(&r, "steps.0.state", "completed");
    EXPECT_INT(&r, "steps.0.output.data", 1);
    EXPECT_TEXT(&r, "steps.1.state", "waiting");
    submits(&r, 200, "c-1", more); /* the same submission */
    EXPECT_TEXT(&r, "signals.0.status", "repeated");
    EXPECT_TEXT(&r, "signals.1.status", "refused");
    EXPECT_TEXT(&r, "signals.1.problem", "urn:intact:problem:conflict");
    EXPECT_TEXT(&r, "signals.2.status", "accepted");
    wait_for_state(&node, "c-1", "processed");
    submits(&r, 200, "c-1", "");
    CHECK(!at(&r, "signals"), "it carries none: %.*s", SLICE_ARG(r.body));
    submits(&r, 200, "c-1", more);
    EXPECT_TEXT(&r, "signals.2.status", "repeated");
    submits(&r, 200, "c-1", ", \"signals\": [{\"id\": \"k4\", \"name\": \"go\"}]");
    EXPECT_TEXT(&r, "signals.0.problem", "urn:intact:problem:conflict"); /* it has ended */
    submits(&r, 409, "c-1", ", \"priority\": 9, \"signals\": [{\"id\": \"k5\", \"name\": \"go\"}]");
}

/* The record has kept signals of its own. */
static void who_waits_is_told_of_carried_signals(void **state)
{
    static const char body[] =
        "{\"workflow\": \"three\", \"id\": \"c-8\", \"signals\": ["
        "{\"id\": \"k1\", \"name\": \"go\"}, {\"id\": \"k2\", \"name\": \"no\"}]}";
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < 2; i++) {
        post(&node, &r, "/v1/tasks?wait=50ms", "%s", body);
        EXPECT(&r, i == 0 ? 201 : 200);
        EXPECT_TEXT(&r, "steps.0.state", "completed");
        EXPECT_TEXT(&r, "carried_signals.0.status", i == 0 ? "accepted" : "repeated");
        EXPECT_TEXT(&r, "carried_signals.1.id", "k2");
        EXPECT_TEXT(&r, "carried_signals.1.problem", "urn:intact:problem:no-such-signal");
    }
    post(&node, &r, "/v1/tasks?wait=1ms", "{\"workflow\": \"three\", \"id\": \"c-8\"}");
    EXPECT(&r, 200);
    CHECK(!at(&r, "carried_signals"), "it carries none: %.*s", SLICE_ARG(r.body));
}

static void so_many_of_a_name_are_carried(void **state)
{
    CLEANUP(buf_fini) struct buf more = {0};
    REPLY r = {0};
    (void)state;

    buf_str(&more, ", \"paused\": true, \"signals\": [");
    for (int i = 0; i < 21; i++)
        buf_fmt(&more, "%s{\"id\": \"k%d\", \"name\": \"go\"}", i ? "," : "", i);
    buf_str(&more, "]");
    submits(&r, 201, "c-2", more.ptr);
    EXPECT_TEXT(&r, "signals.19.status", "accepted");
    EXPECT_TEXT(&r, "signals.20.problem", "urn:intact:problem:too-many-signals");
}

static void lines_carry_signals(void **state)
{
    static const char lines[] =
        "{\"workflow\": \"three\", \"id\": \"c-3\", \"signals\": [{\"id\": \"a\", \"name\": "
        "\"go\"}]}\n"
        "{\"workflow\": \"three\", \"id\": \"c-4\"}\n"
        "{\"workflow\": \"three\", \"id\": \"c-5\", \"signals\": [{\"name\": \"go\"}]}\n";
    REPLY r = {0};
    (void)state;

    send_as(&node, &r, "POST", "/v1/tasks", "application/x-ndjson", slice_of(lines));
    EXPECT(&r, 200);
    static const char taken[] =
        ",\"signals\":[{\"id\":\"a\",\"name\":\"go\",\"status\":\"accepted\",\"problem\":null}]}";
    const char *line = memmem(r.body.ptr, r.body.len, "\"id\":\"c-3\",", 11);
    CHECK(line, "%.*s", SLICE_ARG(r.body));
    const char *end = memchr(line, '\n', (size_t)(r.body.ptr + r.body.len - line));
    CHECK(end && memmem(line, (size_t)(end - line), taken, sizeof taken - 1), "%.*s",
          SLICE_ARG(r.body));
    CHECK(memmem(r.body.ptr, r.body.len, "bad-signal", 10), "%.*s", SLICE_ARG(r.body));
}

static void wrong_signals_refuse_the_submission(void **state)
{
    static const struct {
        const char *signals, *type;
    } cases[] = {
        {"7", "bad-signal"},
        {"[7]", "bad-signal"},
        {"[{\"name\": \"go\"}]", "bad-signal"},
        {"[{\"id\": \"a b\", \"name\": \"go\"}]", "bad-signal"},
        {"[{\"id\": \"a\"}]", "bad-signal"},
        {"[{\"id\": \"a\", \"name\": \"go\", \"dat\": 1}]", "unknown-member"},
    };
    CLEANUP(buf_fini) struct buf large = {0};
    REPLY r = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        post(&node, &r, "/v1/tasks", "{\"workflow\": \"three\", \"id\": \"c-6\", \"signals\": %s}",
             cases[i].signals);
        expect_problem(&r, 422, cases[i].type);
    }
    for (int i = 0; i < 65536; i++)
        buf_byte(&large, '1');
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"three\", \"signals\": [{\"id\": \"a\", \"name\": \"go\", \"data\": "
         "\"%s\"}]}",
         large.ptr);
    expect_problem(&r, 422, "bad-signal");
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"three\", \"id\": \"c-6\", \"signals\": null}");
    EXPECT(&r, 201);
}

static struct node token_of(const char *name, const char *roles)
{
    char token[64];

    make_token(&node, name, roles, NULL, token);
    return as(&node, token);
}

/* A token that may read a task may repeat its submission, but sends no signals to it. */
static void signals_need_the_right_to_send_them(void **state)
{
    static const char body[] = "{\"workflow\": \"three\", \"id\": \"c-7\", \"signals\": "
                               "[{\"id\": \"%s\", \"name\": \"go\"}]}";
    REPLY r = {0};
    (void)state;

    struct node shop = token_of("shop-1", "\"submit\"");
    struct node reader = token_of("reader-1", "\"submit\", \"read\"");
    struct node some = token_of("some-1", "\"submit\", \"read:three\"");
    struct node mender = token_of("mender-1", "\"submit\", \"repair\"");
    post(&shop, &r, "/v1/tasks", "{\"workflow\": \"three\", \"id\": \"c-7\"}");
    EXPECT(&r, 201);
    post(&reader, &r, "/v1/tasks", body, "a");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "signals.0.status", "refused");
    EXPECT_TEXT(&r, "signals.0.problem", "urn:intact:problem:forbidden");
    post(&some, &r, "/v1/tasks", body, "b");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "signals.0.problem", "urn:intact:problem:forbidden");
    task_of(&node, &r, "c-7");
    EXPECT_TEXT(&r, "steps.0.state", "waiting");
    post(&shop, &r, "/v1/tasks", body, "c");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "signals.0.status", "accepted");
    post(&mender, &r, "/v1/tasks", body, "d");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "signals.0.status", "accepted");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_is_good_for_one_task_and_name),
        cmocka_unit_test(an_invented_url_is_refused),
        cmocka_unit_test(so_many_come_by_a_url),
        cmocka_unit_test(a_public_url_is_handed_on),
        cmocka_unit_test(all_tasks_with_the_tags_get_it),
        cmocka_unit_test(those_that_cannot_take_it_are_counted),
        cmocka_unit_test(wrong_requests_to_many_are_refused),
        cmocka_unit_test(a_scope_is_for_a_workflow_and_a_name),
        cmocka_unit_test(more_than_a_thousand_take_two_requests),
        cmocka_unit_test(a_submission_carries_signals),
        cmocka_unit_test(who_waits_is_told_of_carried_signals),
        cmocka_unit_test(so_many_of_a_name_are_carried),
        cmocka_unit_test(lines_carry_signals),
        cmocka_unit_test(wrong_signals_refuse_the_submission),
        cmocka_unit_test(signals_need_the_right_to_send_them),
    };
    kit_program(argc, argv);
    return cmocka_run_group_tests(tests, start, node_end);
}
