/* Tests of what sessions of the console may use of a server: streams of events, and the audit. Who
 * may sign in, and for how long: session_test.c. */

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "browser_kit.h"
#include "sse.h"

static struct node node;

static int start(void **state)
{
    *state = node_open(&node, FLAGS(NULL));
    return 0;
}

enum { STREAMS = 64 }; /* of one session: STREAMS_OF_SESSION of api/events.h */

static int stream_of(const struct browser *b)
{
    CLEANUP(buf_fini) struct buf out = {0};
    char got[] = "HTTP/1.1 200";
    int fd = dial(b->node);

    buf_fmt(&out, "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n", b->node->port,
            b->cookie);
    say(fd, buf_view(&out));
    ssize_t n = recv(fd, got, sizeof got - 1, MSG_WAITALL);
    CHECK(n == (ssize_t)sizeof got - 1, "no answer");
    if (strcmp(got, "HTTP/1.1 200") == 0)
        return fd;
    CHECK(strcmp(got, "HTTP/1.1 429") == 0, "%s", got);
    (void)close(fd);
    return -1;
}

/* What one session keeps open, others still find room for; also an admin's, which has no quotas. */
static void streams_of_a_session_are_bounded(void **state)
{
    struct browser b = browser_signed_in(&node, node.token);
    struct browser other = browser_signed_in(&node, node.token);
    int fds[STREAMS];
    SSE by_token = {0};
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < STREAMS; i++) {
        fds[i] = stream_of(&b);
        CHECK(fds[i] >= 0, "stream %d", i);
    }
    for (int i = 0; i < 1000; i++)
        CHECK(stream_of(&b) < 0, "one more");
    browser_send(&b, &r, "GET", "/v1/events", "", NULL);
    expect_problem(&r, 429, "over-quota");
    CHECK(head_has(&r, "Retry-After: "), "%.*s", SLICE_ARG(r.head));
    (void)define(&node, "some",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"x\", \"action\": "
                 "\"x\", \"undo\": \"none\"}]");
    submit(&node, "some", "t-streams");
    browser_send(&b, &r, "GET", "/v1/tasks/t-streams/events", "", NULL);
    expect_problem(&r, 429, "over-quota");
    CHECK(browser_status(&b, "GET", "/v1/tasks") == 200, "the session itself goes on");
    int fd = stream_of(&other);
    CHECK(fd >= 0, "another session");
    (void)close(fd);
    sse_open(&node, &by_token, "/v1/events", NULL);
    sse_head(&by_token);
    assert_int_equal(by_token.status, 200);
    (void)close(fds[0]);
    int64_t until = steady_ms() + PATIENCE_MS;
    while ((fds[0] = stream_of(&b)) < 0) {
        CHECK(steady_ms() < until, "a place that was given back is not there");
        sleep_ms(10);
    }
    for (int i = 0; i < STREAMS; i++)
        (void)close(fds[i]);
}

/* The audit has so many sign-ins a day, and all that people change. */
static void signing_in_fills_no_audit(void **state)
{
    enum { TOLD = 100 }; /* SIGN_INS_TOLD of api/sign_ins.h */
    char token[64];
    REPLY r = {0};
    (void)state;

    make_token(&node, "eager", "\"read\"", NULL, token);
    for (int i = 0; i < TOLD; i++) {
        struct browser b = browser_signed_in(&node, token);
        if (i % 3 == 0)
            CHECK(browser_status(&b, "DELETE", "/v1/session") == 204, "it signs out");
    }
    char *told = sql(&node, "SELECT count(*) FROM audit WHERE actor = 'eager'");
    CHECK(strcmp(told, "100") == 0, "%s", told);
    free(told);
    (void)browser_signed_in(&node, node.token);
    told = sql(&node, "SELECT actor || verb FROM audit ORDER BY seq DESC LIMIT 1");
    CHECK(strcmp(told, "adminsession.create") == 0, "another token: %s", told);
    free(told);
    struct browser admin = browser_signed_in(&node, node.token);
    browser_send(&admin, &r, "GET", "/v1/sessions", "", NULL);
    const char *id = NULL;
    for (unsigned i = 0; i < at(&r, "sessions")->count && !id; i++) {
        char member[40];
        (void)snprintf(member, sizeof member, "sessions.%u.token", i);
        if (strcmp(text_at(&r, member), "eager") != 0)
            continue;
        (void)snprintf(member, sizeof member, "sessions.%u.id", i);
        id = text_at(&r, member);
    }
    CHECK(id, "%.*s", SLICE_ARG(r.body));
    char path[100];
    (void)snprintf(path, sizeof path, "/v1/sessions/%s", id);
    CHECK(browser_status(&admin, "DELETE", path) == 204, "an admin ends it");
    told = sql(&node, "SELECT actor || verb FROM audit ORDER BY seq DESC LIMIT 1");
    CHECK(strcmp(told, "adminsession.delete") == 0, "%s", told);
    free(told);
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_of_a_session_are_bounded),
        cmocka_unit_test(signing_in_fills_no_audit),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
