/* Tests with malicious or broken clients, which must not affect others: garbage, large bodies,
 * crowds that vanish, and slow senders and readers. door_test.c has the limits of the HTTP
 * entrance. */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/prng.h"
#include "kit.h"

enum { CROWD = 500 };

static struct node node;

static int start(void **state)
{
    struct rlimit files = {4096, 4096};

    (void)setrlimit(RLIMIT_NOFILE, &files); /* it may be enough as it is */
    /* what the sanitizer keeps of freed memory is not the server's */
    (void)setenv("ASAN_OPTIONS", "quarantine_size_mb=1:malloc_context_size=2", 1);
    *state = node_open(&node, FLAGS("--log", "warn", "--drain", "200ms", "--limit", "head-time=10m",
                                    "--limit", "body-time=10m"));
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    return 0;
}

/* Somebody else's whole task, from its submission to its end. */
static void others_are_served(void)
{
    static int count;
    char id[20];

    (void)snprintf(id, sizeof id, "other-%d", count++);
    submit(&node, "one", id);
    serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, id, "processed");
}

static void garbage_is_refused_and_hurts_nobody(void **state)
{
    static const char *const words[] = {
        "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        "POST /v1/tasks HTTP/1.1\r\n",
        "Host: 127.0.0.1\r\n",
        "Content-Length: 18446744073709551616\r\n",
        "Content-Length: -1\r\n",
        "Transfer-Encoding: chunked\r\n",
        "\r\n",
        "\r\n\r\n",
        "ffffffffffffffff\r\n",
        "0\r\n\r\n",
        "\x16\x03\x01\x02",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "Content-Type: application/json\r\n",
        "{\"workflow\":",
        "\xff\xfe",
        " ",
        "HTTP/1.1",
        "/v1/agents/a/work",
        "%00%",
        "Expect: 100-continue\r\n",
    };
    struct prng p = {7};
    (void)state;

    for (int i = 0; i < 500; i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        int fd = dial(&node);
        for (int n = (int)(prng_next(&p) % 12); n >= 0; n--) {
            if (prng_next(&p) % 4 == 0)
                for (int k = 0; k < 40; k++)
                    buf_byte(&b, (char)prng_next(&p));
            else
                buf_str(&b, words[prng_next(&p) % COUNT_OF(words)]);
        }
        say(fd, buf_view(&b));
        (void)close(fd);
    }
    others_are_served();
}

static void bodies_that_are_too_large_or_too_deep_are_refused(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    buf_str(&b, "{\"workflow\": \"one\", \"input\": ");
    for (int i = 0; i < 100000; i++)
        buf_byte(&b, '[');
    send_as(&node, &r, "POST", "/v1/tasks", "application/json", buf_view(&b));
    expect_problem(&r, 400, "not-json");
    CHECK(strstr(text_at(&r, "detail"), "deep"), "%.*s", SLICE_ARG(r.body));

    buf_clear(&b);
    buf_str(&b, "{\"workflow\": \"one\", \"id\": \"huge\", \"input\": \"");
    while (b.len < 5u << 20)
        buf_str(&b, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    buf_str(&b, "\"}");
    send_as(&node, &r, "POST", "/v1/tasks", "application/json", buf_view(&b));
    EXPECT(&r, 413);
    get(&node, &r, "/v1/tasks/huge");
    EXPECT(&r, 404);
    others_are_served();
}

static void what_fits_is_taken_whole(void **state)
{
    CLEANUP(buf_fini) struct buf b = {0};
    REPLY r = {0};
    (void)state;

    buf_str(&b, "{\"workflow\": \"one\", \"id\": \"large\", \"input\": \"");
    while (b.len < 4000000)
        buf_str(&b, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    buf_str(&b, "\"}");
    send_as(&node, &r, "POST", "/v1/tasks", "application/json", buf_view(&b));
    EXPECT(&r, 201);
    task_of(&node, &r, "large");
    assert_true(strlen(text_at(&r, "input")) > 3900000);
    serve_step(&node, "ag", "i", "1");
    wait_for_state(&node, "large", "processed");
}

static void park_crowd(int *fds, const char *agent)
{
    char path[60];

    (void)snprintf(path, sizeof path, "/v1/agents/%s/work", agent);
    for (int i = 0; i < CROWD; i++) {
        char body[80];
        (void)snprintf(body, sizeof body, "{\"instance\": \"i-%d\", \"wait\": \"5m\"}", i);
        fds[i] = ask(&node, "POST", path, "application/json", slice_of(body));
    }
}

static void a_crowd_that_vanishes_leaves_nothing_behind(void **state)
{
    static int fds[CROWD];
    int64_t settled = 0;
    (void)state;

    wait_for_parked(&node, 0);
    for (int round = 0; round < 6; round++) {
        park_crowd(fds, "crowd");
        wait_for_parked(&node, CROWD);
        others_are_served();
        for (int i = 0; i < CROWD; i++) {
            if (i % 2) { /* half of them without a word */
                const struct linger hard = {1, 0};
                (void)setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
            }
            (void)close(fds[i]);
        }
        wait_for_parked(&node, 0);
        if (round == 1)
            settled = node_resident_kb(&node);
    }
    int64_t last = node_resident_kb(&node);
    CHECK(last < settled + 8192, "%" PRId64 " kB, then %" PRId64 " kB", settled, last);
    others_are_served();
}

static void waiters_that_vanish_leave_nothing_behind(void **state)
{
    static int fds[CROWD];
    REPLY r = {0};
    int64_t settled = 0;
    (void)state;

    post(&node, &r, "/v1/tasks",
         "{\"workflow\": \"one\", \"id\": \"asleep\", \"not_before\": \"2199-01-01T00:00:00Z\"}");
    EXPECT(&r, 201);
    for (int round = 0; round < 6; round++) {
        for (int i = 0; i < CROWD; i++)
            fds[i] = ask(&node, "GET", "/v1/tasks/asleep?wait=5m", NULL, SLICE_NONE);
        others_are_served();
        for (int i = 0; i < CROWD; i++)
            (void)close(fds[i]);
        others_are_served();
        if (round == 1)
            settled = node_resident_kb(&node);
    }
    int64_t last = node_resident_kb(&node);
    CHECK(last < settled + 8192, "%" PRId64 " kB, then %" PRId64 " kB", settled, last);
}

static void slow_senders_hold_up_nobody(void **state)
{
    static int fds[CROWD];
    REPLY r = {0};
    (void)state;

    for (int i = 0; i < CROWD; i++) {
        fds[i] = dial(&node);
        say(fds[i], SLICE("POST /v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\n"));
        say(fds[i], authorization(&node));
        say(fds[i], SLICE("Content-Type: application/json\r\nContent-Length: 34\r\n\r\n"
                          "{\"workflow\""));
    }
    others_are_served();
    for (int i = 0; i < CROWD; i += 2)
        (void)close(fds[i]);
    others_are_served();
    for (int i = 1; i < CROWD; i += 2) {
        say(fds[i], SLICE(": \"one\", \"priority\": 0}"));
        hear(fds[i], &r);
        CHECK(r.status == 201, "%d: %.*s", r.status, SLICE_ARG(r.body));
    }
    int64_t left = CROWD / 2;
    for (; left > 0; left--)
        serve_step(&node, "ag", "i", "1");
}

static void a_reader_that_does_not_read_holds_up_nobody(void **state)
{
    int fds[20];
    int small = 2048;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(fds); i++) {
        fds[i] = dial(&node);
        (void)setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        for (int k = 0; k < 5; k++) { /* "large" is 4 MB */
            say(fds[i], SLICE("GET /v1/tasks/large HTTP/1.1\r\nHost: 127.0.0.1\r\n"));
            say(fds[i], authorization(&node));
            say(fds[i], SLICE("\r\n"));
        }
    }
    others_are_served();
    int64_t kb = node_resident_kb(&node);
    CHECK(kb < 1000000, "%" PRId64 " kB",
          kb); /* not 400 MB of answers and more under the sanitizer */
    for (size_t i = 0; i < COUNT_OF(fds); i++)
        (void)close(fds[i]);
    others_are_served();
}

static void requests_on_one_connection_are_answered_in_order(void **state)
{
    static const char get_one[] = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf got = {0};
    ssize_t len = 0;
    (void)state;

    for (int i = 0; i < 50; i++) {
        buf_str(&b, get_one);
        buf_fmt(&b, "GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n", authorization(&node).ptr);
    }
    buf_str(&b, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    int fd = dial(&node);
    say(fd, buf_view(&b));
    while ((len = recv(fd, buf_room(&got, 65536), 65536, 0)) > 0)
        got.len += (size_t)len;
    buf_str(&got, "");
    record_heard(fd, buf_view(&got));
    (void)close(fd);
    const char *p = got.ptr;
    for (int i = 0; i < 101; i++) {
        p = strstr(p, "HTTP/1.1 ");
        CHECK(p && atoi(p + 9) == (i % 2 ? 404 : 200), "answer %d: %.40s", i, p ? p : "none");
        p += 9;
    }
    assert_null(strstr(p, "HTTP/1.1 "));
}

int main(int argc, char **argv)
{
    kit_program(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_is_refused_and_hurts_nobody),
        cmocka_unit_test(bodies_that_are_too_large_or_too_deep_are_refused),
        cmocka_unit_test(what_fits_is_taken_whole),
        cmocka_unit_test(a_crowd_that_vanishes_leaves_nothing_behind),
        cmocka_unit_test(waiters_that_vanish_leave_nothing_behind),
        cmocka_unit_test(slow_senders_hold_up_nobody),
        cmocka_unit_test(a_reader_that_does_not_read_holds_up_nobody),
        cmocka_unit_test(requests_on_one_connection_are_answered_in_order),
    };
    return cmocka_run_group_tests(tests, start, node_end);
}
