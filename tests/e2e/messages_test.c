/* Tests of messages: an application is notified of its tasks, whichever part fails meanwhile. The
 * receiver is a small HTTP server in this file. tests/webhook has hostile receivers. */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kit.h"

enum { HEARD_MAX = 400, REQUEST_MAX = 100000 };

/* The application: a receiver of its own, which answers with that status. */
static struct receiver {
    pthread_t thread;
    int fd, port;
    atomic_int status;
    atomic_bool ends;
    pthread_mutex_t lock;
    char *heard[HEARD_MAX]; /* bodies, in the order in which they were taken */
    int count, refused;
} receiver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct node node;
static char config[100];
static const char *program;

/* ---- the receiver ---- */

static const char *read_request(int fd, char *text)
{
    size_t len = 0;
    ssize_t n = 0;

    while (len < REQUEST_MAX && (n = read(fd, text + len, REQUEST_MAX - len)) > 0) {
        len += (size_t)n;
        text[len] = 0;
        const char *end = strstr(text, "\r\n\r\n");
        const char *length = strcasestr(text, "\r\ncontent-length:");
        if (end && length && len >= (size_t)(end + 4 - text) + strtoul(length + 17, NULL, 10))
            return end + 4;
    }
    return NULL;
}

static void serve_one(int fd)
{
    static char text[REQUEST_MAX + 1];
    char answer[100];
    int status = receiver.status;
    const char *body = read_request(fd, text);

    if (!body)
        return;
    (void)pthread_mutex_lock(&receiver.lock);
    if (status / 100 == 2 && receiver.count < HEARD_MAX)
        receiver.heard[receiver.count++] = strdup(body);
    receiver.refused += status / 100 != 2;
    (void)pthread_mutex_unlock(&receiver.lock);
    int n = snprintf(answer, sizeof answer,
                     "HTTP/1.1 %d X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status);
    (void)send(fd, answer, (size_t)n, MSG_NOSIGNAL); /* who asked may have been killed meanwhile */
}

static void *serve(void *arg)
{
    while (!receiver.ends) {
        int fd = accept4(receiver.fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            serve_one(fd);
        if (fd >= 0)
            (void)close(fd);
    }
    return arg;
}

static int begin(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    FILE *f;

    receiver.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(receiver.fd, (struct sockaddr *)&at, sizeof at) == 0, "bind");
    CHECK(listen(receiver.fd, 100) == 0, "listen");
    CHECK(getsockname(receiver.fd, (struct sockaddr *)&at, &size) == 0, "port");
    receiver.port = ntohs(at.sin_port);
    receiver.status = 204;
    CHECK(pthread_create(&receiver.thread, NULL, serve, NULL) == 0, "thread");
    node_init(&node);
    (void)snprintf(config, sizeof config, "%s/server.yaml", node.home);
    CHECK((f = fopen(config, "w")), "%s", config);
    fprintf(f,
            "intact_server: 1\nwebhooks:\n  - url: http://127.0.0.1:%d/\n    secret: {env: "
            "INTACT_TEST_HOOK}\n    private: [127.0.0.0/8]\nmessages: {source: /shop}\n",
            receiver.port);
    (void)fclose(f);
    CHECK(setenv("INTACT_TEST_HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1) == 0, "setenv");
    node_start(&node, FLAGS("--log", "info", "--config", config));
    define(&node, "short",
           "\"on_failure\": \"hold\", \"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": "
           "\"x\", \"undo\": {\"action\": \"y\"}}]");
    define(&node, "nap", "\"steps\": [{\"name\": \"nap\", \"wait\": \"1s\"}]");
    *state = &node;
    return 0;
}

static int end(void **state)
{
    receiver.ends = true;
    (void)shutdown(receiver.fd, SHUT_RDWR);
    (void)pthread_join(receiver.thread, NULL);
    (void)close(receiver.fd);
    for (int i = 0; i < receiver.count; i++)
        free(receiver.heard[i]);
    return node_end(state);
}

/* Whether it is the event ("processed", "progress/a") of that task. */
static bool is_of(const char *body, const char *task, const char *event)
{
    CLEANUP(buf_fini) struct buf text = {0};

    buf_fmt(&text, "\"id\":\"%s/", task);
    const char *at = strstr(body, text.ptr);
    if (!at)
        return false;
    at += text.len;
    at += strspn(at, "0123456789"); /* the revision: attempts and kills raise it */
    buf_clear(&text);
    buf_fmt(&text, "/%s\"", event);
    return strncmp(at, text.ptr, text.len) == 0;
}

/* How many different ones were heard; *ret_place: where one was first. */
static int times(const char *task, const char *event, int *ret_place)
{
    int n = 0;

    (void)pthread_mutex_lock(&receiver.lock);
    for (int i = receiver.count; i-- > 0;) {
        if (!is_of(receiver.heard[i], task, event))
            continue;
        n += *ret_place < 0 || strcmp(receiver.heard[i], receiver.heard[*ret_place]) != 0;
        *ret_place = i;
    }
    (void)pthread_mutex_unlock(&receiver.lock);
    return n;
}

/* Waits for these messages of that task, and looks that they came in this order. */
static void expect_order(const char *task, const char *const *names)
{
    int before = -1;

    for (; *names; names++) {
        int place = -1;
        for (int64_t until = steady_ms() + PATIENCE_MS; times(task, *names, &place) == 0;
             sleep_ms(10))
            CHECK(steady_ms() < until, "%s of %s was not heard", *names, task);
        CHECK(times(task, *names, &(int){-1}) == 1, "%s of %s is told in one way", *names, task);
        CHECK(place > before, "%s of %s comes after what was before it", *names, task);
        before = place;
    }
}

static void submit_told_of(const char *workflow, const char *id, const char *events)
{
    REPLY r = {0};

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"%s\", \"id\": \"%s\", \"input\": {\"n\": 1}, \"reply_to\": {\"to\": "
         "\"http://127.0.0.1:%d/%s\"%s}}",
         workflow, id, receiver.port, "told", events);
    EXPECT(&r, 201);
}

static void submit_told(const char *id, const char *events)
{
    submit_told_of("short", id, events);
}

static void wait_for_targets(int64_t waiting, int64_t dead)
{
    for (int64_t until = steady_ms() + PATIENCE_MS;; sleep_ms(20)) {
        REPLY r = {0};
        get(&node, &r, "/v1/targets");
        EXPECT(&r, 200);
        bool none = at(&r, "targets.0") == NULL;
        int64_t w = none ? 0 : int_at(&r, "targets.0.waiting");
        int64_t d = none ? 0 : int_at(&r, "targets.0.dead");
        if (w == waiting && d == dead)
            return;
        CHECK(steady_ms() < until, "%" PRId64 " wait, %" PRId64 " are dead", w, d);
    }
}

/* What was delivered is deleted a little later. */
static void wait_until_empty(void)
{
    for (int64_t until = steady_ms() + PATIENCE_MS;; sleep_ms(20)) {
        REPLY r = {0};
        get(&node, &r, "/v1/outbox");
        EXPECT(&r, 200);
        if (!at(&r, "messages.0"))
            return;
        CHECK(steady_ms() < until, "%s waits", text_at(&r, "messages.0.id"));
    }
}

/* ---- tests ---- */

static void a_task_is_told_of_from_its_beginning_to_its_end(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_told("t-1", "");
    serve_step(&node, "ag", "i", "{\"x\": 5}");
    wait_for_state(&node, "t-1", "processed");
    expect_order("t-1", (const char *[]){"received", "started", "processed", NULL});
    int place = -1;
    CHECK(times("t-1", "processed", &place) == 1
              && strstr(receiver.heard[place], "\"source\":\"/shop\""),
          "where it says that it comes from");
    wait_until_empty();
    get(&node, &r, "/v1/outbox?task=t-1");
    EXPECT(&r, 200);
    EXPECT_RAW(&r, "messages", "[]");
}

/* Whoever submits within a trace finds it again, at the agents and in what he is told. */
static void a_trace_goes_through_all_of_it(void **state)
{
    static const char parent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    static const char trace[] = "00-0af7651916cd43dd8448eb211c80319c-";
    CLEANUP(buf_fini) struct buf head = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    REPLY r = {0};
    (void)state;

    buf_fmt(&body,
            "{\"workflow\": \"short\", \"id\": \"trace-1\", \"reply_to\": {\"to\": "
            "\"http://127.0.0.1:%d/told\", \"events\": [\"processed\"]}}",
            receiver.port);
    buf_fmt(&head,
            "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Authorization: Bearer %s\r\nTraceparent: %s\r\nContent-Length: %zu\r\n\r\n%s",
            node.token, parent, body.len, body.ptr);
    int fd = dial(&node);
    say(fd, buf_view(&head));
    hear(fd, &r);
    EXPECT(&r, 201);
    /* the same again, in another span, in a trace of another, or in none */
    post(&node, &r, "/v1/tasks", "%s", body.ptr);
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks", "{\"traceparent\": \"%s\", %s", parent, body.ptr + 1);
    EXPECT(&r, 200);
    post(&node, &r, "/v1/tasks", "{\"traceparent\": 7, %s", body.ptr + 1);
    EXPECT(&r, 200);
    fetch(&node, &r, "ag", "i");
    const char *sent = text_at(&r, "requests.0.traceparent");
    CHECK(strlen(sent) == 55 && strncmp(sent, trace, strlen(trace)) == 0
              && strcmp(sent, parent) != 0 && strcmp(sent + 52, "-01") == 0,
          "%s", sent);
    char *token = token_in(&r, 0);
    hand_in(&node, "ag", "i", token, "\"output\": 1", "accepted");
    free(token);
    task_of(&node, &r, "trace-1");
    EXPECT_TEXT(&r, "traceparent", parent);
    expect_order("trace-1", (const char *[]){"processed", NULL});
    int place = -1;
    CHECK(times("trace-1", "processed", &place) == 1, "once");
    CLEANUP(buf_fini) struct buf member = {0};
    buf_fmt(&member, "\"traceparent\":\"%s\"", parent);
    CHECK(strstr(receiver.heard[place], member.ptr), "%s", receiver.heard[place]);
}

/* What is none is ignored; what a line says itself, or in its tags, comes before the request's. */
static void traces_are_found_where_they_are_said(void **state)
{
    static const char bad[] = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
    static const char one[] = "00-11111111111111111111111111111111-b7ad6b7169203331-01";
    static const char two[] = "00-22222222222222222222222222222222-b7ad6b7169203331-00";
    static const char all[] = "00-33333333333333333333333333333333-b7ad6b7169203331-01";
    CLEANUP(buf_fini) struct buf head = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    REPLY r = {0};
    (void)state;

    buf_fmt(&body,
            "{\"workflow\": \"short\", \"id\": \"l-1\", \"paused\": true, \"traceparent\": \"%s\", "
            "\"tags\": {\"traceparent\": \"%s\"}}\n"
            "{\"workflow\": \"short\", \"id\": \"l-2\", \"paused\": true, \"traceparent\": \"%s\", "
            "\"tags\": {\"traceparent\": \"%s\"}}\n"
            "{\"workflow\": \"short\", \"id\": \"l-3\", \"paused\": true, \"traceparent\": null}\n",
            one, two, bad, two);
    buf_fmt(&head,
            "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
            "Authorization: Bearer %s\r\ntraceparent: %s\r\nContent-Length: %zu\r\n\r\n%s",
            node.token, all, body.len, body.ptr);
    int fd = dial(&node);
    say(fd, buf_view(&head));
    hear(fd, &r);
    EXPECT(&r, 200);
    task_of(&node, &r, "l-1");
    EXPECT_TEXT(&r, "traceparent", one);
    task_of(&node, &r, "l-2");
    EXPECT_TEXT(&r, "traceparent", two);
    task_of(&node, &r, "l-3");
    EXPECT_TEXT(&r, "traceparent", all);
    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"short\", \"id\": \"l-4\", \"paused\": true, \"traceparent\": \"%s\"}",
         bad);
    EXPECT(&r, 201);
    task_of(&node, &r, "l-4");
    EXPECT_RAW(&r, "traceparent", "null");
}

/* W3C Trace Context: a request with two of them is treated as one without. */
static void two_trace_contexts_are_none(void **state)
{
    static const char one[] = "00-11111111111111111111111111111111-b7ad6b7169203331-01";
    static const char two[] = "00-22222222222222222222222222222222-b7ad6b7169203331-00";
    static const char said[] = "00-33333333333333333333333333333333-b7ad6b7169203331-00";
    CLEANUP(buf_fini) struct buf head = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    REPLY r = {0};
    (void)state;

    buf_fmt(&body,
            "{\"workflow\": \"short\", \"id\": \"double-1\", \"paused\": true}\n"
            "{\"workflow\": \"short\", \"id\": \"double-2\", \"paused\": true, "
            "\"traceparent\": \"%s\"}\n",
            said);
    buf_fmt(&head,
            "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
            "Authorization: Bearer %s\r\nTraceparent: %s\r\ntraceparent: %s\r\n"
            "Content-Length: %zu\r\n\r\n%s",
            node.token, one, two, body.len, body.ptr);
    int fd = dial(&node);
    say(fd, buf_view(&head));
    hear(fd, &r);
    EXPECT(&r, 200);
    task_of(&node, &r, "double-1");
    EXPECT_RAW(&r, "traceparent", "null");
    task_of(&node, &r, "double-2");
    EXPECT_TEXT(&r, "traceparent", said);
    fd = dial(&node);
    body.len = head.len = 0;
    buf_fmt(&body, "{\"workflow\": \"short\", \"id\": \"double-3\", \"paused\": true}");
    buf_fmt(&head,
            "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Authorization: Bearer %s\r\nTraceparent: %s\r\ntraceparent: %s\r\n"
            "Content-Length: %zu\r\n\r\n%s",
            node.token, one, one, body.len, body.ptr);
    say(fd, buf_view(&head));
    hear(fd, &r);
    EXPECT(&r, 201);
    task_of(&node, &r, "double-3");
    EXPECT_RAW(&r, "traceparent", "null");
}

static void what_was_asked_for_is_told(void **state)
{
    (void)state;

    submit_told("t-2", ", \"events\": [\"progress\", \"processed\"]");
    serve_step(&node, "ag", "i", "1");
    expect_order("t-2", (const char *[]){"progress/a", "processed", NULL});
    CHECK(times("t-2", "received", &(int){-1}) == 0, "nobody asked for it");
}

static void a_step_that_waits_is_told(void **state)
{
    int place = -1;
    (void)state;

    submit_told_of("nap", "t-nap", ", \"events\": [\"waiting\", \"processed\"]");
    expect_order("t-nap", (const char *[]){"waiting/nap", "processed", NULL});
    CHECK(times("t-nap", "waiting/nap", &place) == 1, "once");
    (void)pthread_mutex_lock(&receiver.lock);
    CHECK(strstr(receiver.heard[place], "\"kind\":\"wait\",\"until\":\"20"), "%s",
          receiver.heard[place]);
    (void)pthread_mutex_unlock(&receiver.lock);
}

static void fail_it(const char *task)
{
    REPLY w = {0};

    fetch(&node, &w, "ag", "i");
    char *token = token_in(&w, 0);
    hand_in(&node, "ag", "i", token,
            "\"error\": {\"code\": \"broken\", \"message\": \"no\", \"retryable\": false}",
            "accepted");
    free(token);
    wait_for_state(&node, task, "error");
}

static void by_hand(const char *task, const char *verb)
{
    REPLY r = {0};
    char path[100];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/%s", task, verb);
    post(&node, &r, path, "{\"reason\": \"the books are checked\"}");
    EXPECT(&r, 200);
}

static void what_people_do_is_told(void **state)
{
    (void)state;

    submit_told("h-1", ", \"events\": [\"paused\", \"resumed\", \"error\", \"closed\"]");
    by_hand("h-1", "pause");
    by_hand("h-1", "resume");
    fail_it("h-1");
    by_hand("h-1", "close");
    expect_order("h-1", (const char *[]){"paused", "resumed", "error", "closed", NULL});
    int place = -1;
    CHECK(times("h-1", "closed", &place) == 1
              && strstr(receiver.heard[place], "\"closed_reason\":\"the books are checked\""),
          "why it was closed");
    wait_until_empty();
}

static void an_end_in_error_needs_an_operator_and_goes_back(void **state)
{
    REPLY r = {0};
    (void)state;

    submit_told("t-3", "");
    fail_it("t-3");
    expect_order("t-3", (const char *[]){"received", "started", "error", "needs_operator", NULL});
    post(&node, &r, "/v1/tasks/t-3/undo", "{\"reason\": \"it is over\"}");
    EXPECT(&r, 200);
    expect_order("t-3", (const char *[]){"needs_operator", "compensating", NULL});
}

static void what_no_target_takes_is_refused(void **state)
{
    static const char *const bad[] = {
        "\"https://nobody.example/x\"",
        "\"\"",
        "7",
        "{\"to\": 7}",
        "{\"events\": \"all\"}",
        "{\"to\": \"http://127.0.0.1/\", \"events\": []}",
        "{\"to\": \"http://127.0.0.1/\", \"events\": [\"born\"]}",
        "{\"to\": \"http://127.0.0.1/\", \"event\": \"all\"}",
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        REPLY r = {0};
        post(&node, &r, "/v1/tasks", "{\"workflow\": \"short\", \"reply_to\": %s}", bad[i]);
        expect_problem(&r, 422, "bad-reply-to");
    }
}

/* What `intact why` says of a task, as people read it. */
static void verb_why(const char *task, struct buf *ret)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "INTACT_TOKEN=%s INTACT_SERVER=http://127.0.0.1:%d '%s' why %s 2>&1", node.token,
            node.port, program, task);
    FILE *f = popen(b.ptr, "r");
    CHECK(f, "%s", b.ptr);
    for (int c = 0; (c = fgetc(f)) != EOF;)
        buf_byte(ret, (char)c);
    CHECK(pclose(f) == 0, "%.*s", (int)ret->len, ret->ptr);
    buf_str(ret, "");
}

/* Three wait; of the first it is known what went wrong. */
static void expect_why_of_waiting(const char *task)
{
    CLEANUP(buf_fini) struct buf out = {0};
    CLEANUP(buf_fini) struct buf id = {0};
    REPLY r = {0};

    get(&node, &r, "/v1/tasks/%s/why", task);
    EXPECT(&r, 200);
    CHECK(at(&r, "messages.2") && !at(&r, "messages.3"), "%.*s", SLICE_ARG(r.body));
    buf_fmt(&id, "%s/1/received", task);
    EXPECT_TEXT(&r, "messages.0.id", id.ptr);
    EXPECT_TEXT(&r, "messages.0.state", "waiting");
    CHECK(strstr(text_at(&r, "messages.0.error"), "503"), "%.*s", SLICE_ARG(r.body));
    CHECK(time_at(&r, "messages.0.retry_at") > 0, "%.*s", SLICE_ARG(r.body));
    EXPECT_RAW(&r, "more_messages", "false");
    EXPECT_RAW(&r, "alerts", "[]");
    verb_why(task, &out);
    CHECK(strstr(out.ptr, "\nStatus messages that were not delivered:\n"), "%s", out.ptr);
    CHECK(strstr(out.ptr, id.ptr) && strstr(out.ptr, ", next try "), "%s", out.ptr);
    CHECK(strstr(out.ptr, "    intact outbox retry --task t-4 --reason '...'\n"), "%s", out.ptr);
    CHECK(!strstr(out.ptr, "Alerts"), "%s", out.ptr);
}

static void expect_why_of_dead(const char *task)
{
    CLEANUP(buf_fini) struct buf out = {0};
    REPLY r = {0};

    get(&node, &r, "/v1/tasks/%s/why", task);
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "messages.0.state", "dead");
    CHECK(strstr(text_at(&r, "messages.0.error"), "410"), "%.*s", SLICE_ARG(r.body));
    EXPECT_RAW(&r, "messages.0.retry_at", "null");
    CHECK(!at(&r, "messages.1"), "%.*s", SLICE_ARG(r.body));
    verb_why(task, &out);
    CHECK(strstr(out.ptr, "It is a dead letter"), "%s", out.ptr);
}

static void a_target_that_is_down_gets_all_of_it_later(void **state)
{
    REPLY r = {0};
    REPLY x = {0};
    (void)state;

    receiver.status = 503;
    submit_told("t-4", "");
    submit_told("t-5", "");
    serve_step(&node, "ag", "i", "1");
    serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, "t-4", "processed");
    wait_for_state(&node, "t-5", "processed");
    wait_for_targets(6, 0);
    expect_why_of_waiting("t-4");
    get(&node, &r, "/v1/outbox?limit=2");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "messages.0.state", "waiting");
    EXPECT_TEXT(&r, "messages.0.event.specversion", "1.0");
    CHECK(text_at(&r, "next")[0], "there are more");
    node_kill(&node);
    node_start(&node, FLAGS("--log", "info", "--config", config));
    receiver.status = 200;
    post(&node, &x, "/v1/outbox/retry", "{\"all\": true, \"reason\": \"it is back\"}");
    EXPECT(&x, 200);
    expect_order("t-4", (const char *[]){"received", "started", "processed", NULL});
    expect_order("t-5", (const char *[]){"received", "started", "processed", NULL});
    wait_for_targets(0, 0);
}

static void what_is_gone_is_dead_and_may_be_revived_or_dropped(void **state)
{
    REPLY r = {0};
    REPLY x = {0};
    REPLY y = {0};
    (void)state;

    receiver.status = 410;
    submit_told("t-6", ", \"events\": [\"received\"]");
    submit_told("t-7", ", \"events\": [\"received\"]");
    wait_for_targets(0, 2);
    get(&node, &r, "/v1/outbox?state=dead");
    EXPECT(&r, 200);
    EXPECT_TEXT(&r, "messages.0.id", "t-6/1/received");
    EXPECT_TEXT(&r, "messages.0.state", "dead");
    expect_why_of_dead("t-6");
    post(&node, &x, "/v1/outbox/drop", "{\"task\": \"t-6\", \"reason\": \"nobody asks\"}");
    EXPECT(&x, 200);
    EXPECT_INT(&x, "messages", 1);
    receiver.status = 200;
    post(&node, &y, "/v1/outbox/retry",
         "{\"message\": \"t-7/1/received\", \"reason\": \"it is back\"}");
    EXPECT_INT(&y, "messages", 1);
    expect_order("t-7", (const char *[]){"received", NULL});
    CHECK(times("t-6", "received", &(int){-1}) == 0, "it was dropped");
    wait_for_targets(0, 0);
    serve_step(&node, "ag", "i", "1");
    serve_step(&node, "ag", "i", "1");
}

static void nothing_is_lost_by_kills(void **state)
{
    enum { TASKS = 30 };
    (void)state;

    for (int i = 0; i < TASKS; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "k-%d", i);
        submit_told(id, ", \"events\": [\"received\", \"processed\"]");
        if (i % 10 == 5) {
            node_kill(&node);
            node_start(&node, FLAGS("--log", "info", "--config", config));
        }
    }
    for (int i = 0; i < TASKS; i++)
        serve_step(&node, "ag", "i", "1");
    node_kill(&node);
    node_start(&node, FLAGS("--log", "info", "--config", config));
    for (int i = 0; i < TASKS; i++) {
        char id[20];
        (void)snprintf(id, sizeof id, "k-%d", i);
        expect_order(id, (const char *[]){"received", "processed", NULL});
    }
    wait_for_targets(0, 0);
}

/* What was accepted once is accepted again, whatever the configuration says by then. */
static void a_task_is_known_though_its_target_is_not(void **state)
{
    char body[300];
    REPLY r = {0};
    REPLY s = {0};
    REPLY t = {0};
    (void)state;

    (void)snprintf(body, sizeof body,
                   "{\"workflow\": \"short\", \"id\": \"known\", \"reply_to\": "
                   "\"http://127.0.0.1:%d/x\"}",
                   receiver.port);
    post(&node, &r, "/v1/tasks", "%s", body);
    EXPECT(&r, 201);
    node_stop(&node);
    node_start(&node, FLAGS("--log", "info"));
    post(&node, &s, "/v1/tasks", "%s", body);
    EXPECT(&s, 200);
    post(&node, &t, "/v1/tasks",
         "{\"workflow\": \"short\", \"id\": \"known\", \"reply_to\": "
         "\"http://127.0.0.1:%d/y\"}",
         receiver.port);
    expect_problem(&t, 409, "task-exists");
    REPLY u = {0};
    post(&node, &u, "/v1/tasks",
         "{\"workflow\": \"short\", \"id\": \"unknown\", \"reply_to\": "
         "\"http://127.0.0.1:%d/x\"}",
         receiver.port);
    expect_problem(&u, 422, "bad-reply-to");
    REPLY v = {0};
    post(&node, &v, "/v1/tasks",
         "{\"workflow\": \"short\", \"reply_to\": \"http://127.0.0.1:%d/x\"}", receiver.port);
    expect_problem(&v, 422, "bad-reply-to");
    node_stop(&node);
    node_start(&node, FLAGS("--log", "info", "--config", config));
    expect_order("known", (const char *[]){"received", NULL});
    serve_step(&node, "ag", "i", "1");
    expect_order("known", (const char *[]){"received", "started", "processed", NULL});
}

static void requests_that_make_no_sense_are_told_so(void **state)
{
    static const char *const bad[] = {
        "{\"reason\": \"x\"}",
        "{\"all\": true}",
        "{\"all\": true, \"task\": \"x\", \"reason\": \"x\"}",
        "{\"message\": \"x\", \"reason\": \"x\"}",
    };
    REPLY r = {0};
    REPLY s = {0};
    REPLY t = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        REPLY b = {0};
        post(&node, &b, i % 2 ? "/v1/outbox/drop" : "/v1/outbox/retry", "%s", bad[i]);
        expect_problem(&b, 422, "bad-outbox");
    }
    get(&node, &r, "/v1/outbox?state=alive");
    expect_problem(&r, 422, "bad-state");
    get(&node, &s, "/v1/outbox?task=x&target=y");
    expect_problem(&s, 422, "bad-outbox");
    get(&node, &t, "/v1/outbox?limit=0");
    expect_problem(&t, 422, "bad-limit");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_is_told_of_from_its_beginning_to_its_end),
        cmocka_unit_test(a_trace_goes_through_all_of_it),
        cmocka_unit_test(traces_are_found_where_they_are_said),
        cmocka_unit_test(two_trace_contexts_are_none),
        cmocka_unit_test(what_was_asked_for_is_told),
        cmocka_unit_test(a_step_that_waits_is_told),
        cmocka_unit_test(what_no_target_takes_is_refused),
        cmocka_unit_test(a_target_that_is_down_gets_all_of_it_later),
        cmocka_unit_test(what_is_gone_is_dead_and_may_be_revived_or_dropped),
        cmocka_unit_test(nothing_is_lost_by_kills),
        cmocka_unit_test(a_task_is_known_though_its_target_is_not),
        cmocka_unit_test(what_people_do_is_told),
        cmocka_unit_test(requests_that_make_no_sense_are_told_so),
        cmocka_unit_test(an_end_in_error_needs_an_operator_and_goes_back),
    };

    kit_program(argc, argv);
    program = argv[1];
    return cmocka_run_group_tests(tests, begin, end);
}
