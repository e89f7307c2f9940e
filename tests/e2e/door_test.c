/* Tests of the HTTP entrance of a real server: host names, limits, ambiguous requests
 * (http/cases.h), slow clients and floods. http/client_test.c tests the HTTP layer alone. */

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/cases.h"
#include "kit.h"

static struct node node;

static void open_door(const char *const *flags)
{
    node_init(&node);
    node_start(&node, flags);
}

static void close_door(void)
{
    node_stop(&node);
    node_fini(&node);
}

static void served(void)
{
    REPLY r = {0};

    get(&node, &r, "/healthz");
    EXPECT(&r, 200);
}

/* ---- smuggling ---- */

static const char ping[] = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/* As many answers as requests, no more; then the connection ends, or serves the next one. */
static void every_case_ends_as_it_must(void **state)
{
    (void)state;
    open_door(FLAGS("--open", "--host", "a", "--log", "warn"));
    for (size_t i = 0; i < COUNT_OF(http_cases); i++) {
        const struct http_case *t = &http_cases[i];
        CLEANUP(buf_fini) struct buf got = {0};
        bool is_refused = t->status != 200;
        int fd = dial(&node);
        say(fd, t->bytes);
        if (!t->closes)
            say(fd, slice_of(ping));
        hear_all(fd, &got);
        for (unsigned n = 0; n < t->handled; n++) /* there is nothing there, for the most */
            CHECK(status_heard(&got, n) >= 401 || status_heard(&got, n) == 200, "%s: answer %u: %s",
                  t->what, n, got.ptr);
        int last = status_heard(&got, t->handled);
        CHECK(last
                  == (is_refused  ? t->status
                      : t->closes ? 0
                                  : 200),
              "%s: %d: %s", t->what, last, got.ptr);
        CHECK(status_heard(&got, t->handled + (is_refused || !t->closes)) == 0,
              "%s: one too many: %s", t->what, got.ptr);
    }
    served();
    close_door();
}

/* ---- names ---- */

static void answer_to(const char *host, const char *origin, struct reply *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    int fd = dial(&node);

    buf_fmt(&b, "GET /healthz HTTP/1.1\r\nConnection: close\r\nHost: %s\r\n", host);
    if (origin)
        buf_fmt(&b, "Origin: %s\r\n", origin);
    buf_str(&b, "\r\n");
    say(fd, buf_view(&b));
    hear(fd, r);
}

struct call {
    const char *host, *origin;
    int status;
};

static void expect_calls(const struct call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        REPLY r = {0};
        answer_to(calls[i].host, calls[i].origin, &r);
        CHECK(r.status == calls[i].status, "%s from %s: %d", calls[i].host,
              calls[i].origin ? calls[i].origin : "nowhere", r.status);
        if (r.status == 403)
            expect_problem(&r, 403, "foreign");
    }
}

static void only_its_names_are_answered(void **state)
{
    static const struct call calls[] = {
        {"127.0.0.1", NULL, 200},
        {"localhost:1", NULL, 200},
        {"[::1]:7420", NULL, 200},
        {"intact.example.org", NULL, 200},
        {"INTACT.example.org:8443", NULL, 200},
        {"two.example.org", NULL, 200},
        {"intact.example.org.evil.example", NULL, 403},
        {"evil.example", NULL, 403},
        {"127.0.0.1.evil.example", NULL, 403},
        {"10.0.0.1", NULL, 403},
        {"intact.example.org:8000", "http://intact.example.org:8000", 200},
        {"intact.example.org:80", "http://INTACT.example.org", 200},
        {"intact.example.org", "http://intact.example.org:80", 200},
        {"localhost:7420", "http://localhost:7420", 200},
        {"localhost:7420", "http://localhost:3000", 403},
        {"localhost:7420", "http://127.0.0.1:7420", 403},
        {"localhost:7420", "https://localhost:7420", 403},
        {"intact.example.org", "http://two.example.org", 403},
        {"intact.example.org", "http://evil.example", 403},
        {"intact.example.org", "null", 403},
        {"intact.example.org", "", 403},
        {"intact.example.org", "http://", 403},
    };
    (void)state;
    open_door(FLAGS("--host", "intact.example.org", "--host", "two.example.org"));
    expect_calls(calls, COUNT_OF(calls));
    close_door();
}

static void behind_a_proxy_both_schemes_may_be_ours(void **state)
{
    static const struct call calls[] = {
        {"intact.example.org", "https://intact.example.org", 200},
        {"intact.example.org", "http://intact.example.org", 200},
        {"intact.example.org", "https://intact.example.org:444", 403},
        {"intact.example.org", "ftp://intact.example.org", 403},
    };
    (void)state;
    open_door(FLAGS("--behind-proxy", "--host", "intact.example.org", "--listen", "0.0.0.0:0"));
    expect_calls(calls, COUNT_OF(calls));
    close_door();
}

/* ---- limits ---- */

static void expect_answer(struct slice bytes, int status, const char *type)
{
    REPLY r = {0};
    int fd = dial(&node);

    say(fd, bytes);
    hear(fd, &r);
    if (type)
        expect_problem(&r, status, type);
    else
        EXPECT(&r, status);
}

static void sizes_hold(void **state)
{
    static const struct {
        const char *begin, *repeated;
        unsigned times;
        const char *end;
        int status;
        const char *type;
    } cases[] = {
        {"GET /healthz?", "x", 400, " HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, NULL},
        {"GET /healthz?", "x", 512, " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414, "too-long"},
        {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", "A: b\r\n", 8, "\r\n", 200, NULL},
        {"GET /healthz HTTP/1.1\r\nHost: localhost\r\n", "A: b\r\n", 10, "\r\n", 431, "too-many"},
        {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: ", "x", 900, "\r\n\r\n", 200, NULL},
        {"GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: ", "x", 1024, "\r\n\r\n", 431, "too-long"},
    };
    CLEANUP(buf_fini) struct buf big = {0};
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--limit", "body=2KiB", "--limit", "json-depth=3", "--limit",
                    "request-line=512", "--limit", "head=1KiB", "--limit", "headers=10"));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        buf_str(&b, cases[i].begin);
        for (unsigned k = 0; k < cases[i].times; k++)
            buf_str(&b, cases[i].repeated);
        buf_str(&b, cases[i].end);
        expect_answer(buf_view(&b), cases[i].status, cases[i].type);
    }
    post(&node, &r, "/v1/tasks", "{\"workflow\": \"w\", \"input\": [[[]]]}");
    expect_problem(&r, 400, "not-json");
    CHECK(strstr(text_at(&r, "detail"), "deep"), "%.*s", SLICE_ARG(r.body));
    post(&node, &r, "/v1/agents/a/work", "{\"instance\": \"i\", \"results\": [[[]], [1]]}");
    EXPECT(&r, 200); /* an entry that is too deep fails alone */
    CHECK(strstr(text_at(&r, "outcomes.0.problem"), "nested deeper"), "%.*s", SLICE_ARG(r.body));
    CHECK(!strstr(text_at(&r, "outcomes.1.problem"), "nested deeper"), "%.*s", SLICE_ARG(r.body));
    buf_str(&big, "{\"instance\": \"i\", \"x\": \"");
    while (big.len < 2047)
        buf_byte(&big, 'x');
    buf_str(&big, "\"}");
    send_as(&node, &r, "POST", "/v1/agents/a/work", "application/json", buf_view(&big));
    expect_problem(&r, 413, "too-big");
    close_door();
}

/* One byte at a time, for as long as it is heard; again if we were so slow to begin that it was
 * taken for an idle connection. */
static void drip(const char *begin, struct reply *ret)
{
    int64_t until = steady_ms() + PATIENCE_MS;

    do {
        int fd = dial(&node);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        say(fd, slice_of(begin));
        while (poll(&p, 1, 20) == 0) {
            CHECK(steady_ms() < until, "it drips on");
            say(fd, SLICE("x"));
        }
        hear(fd, ret);
        CHECK(steady_ms() < until, "it is never told");
    } while (ret->status == 0);
}

static void times_hold(void **state)
{
    CLEANUP(buf_fini) struct buf got = {0};
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--open", "--limit", "head-time=300ms", "--limit", "body-time=300ms", "--limit",
                    "idle-time=300ms"));
    drip("GET /healthz HTTP/1.1\r\nHost: localhost\r\nA: ", &r);
    expect_problem(&r, 408, "timeout");
    drip("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n", &r);
    expect_problem(&r, 408, "timeout");
    drip("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfff\r\n",
         &r);
    expect_problem(&r, 408, "timeout");
    int64_t until = steady_ms() + PATIENCE_MS;
    do {
        int fd = dial(&node);
        buf_clear(&got);
        say(fd, SLICE("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        hear_all(fd, &got);
        CHECK(steady_ms() < until, "it is never served: %s", got.ptr);
    } while (status_heard(&got, 0) != 200); /* we may have been slow to ask */
    CHECK(status_heard(&got, 1) == 0, "closed without a word: %s", got.ptr);
    close_door();
}

enum { SLOW = 1000 };

/* All of them at once, and nobody else waits. */
static void a_thousand_slow_clients_disturb_nobody(void **state)
{
    static int fds[SLOW];
    unsigned cut = 0;
    (void)state;

    open_door(FLAGS("--open", "--limit", "head-time=3s", "--limit", "body-time=3s"));
    for (int i = 0; i < SLOW; i++) {
        fds[i] = dial(&node);
        say(fds[i], i % 2 ? SLICE("POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\n"
                                  "Content-Length: 1000\r\n\r\n")
                          : SLICE("GET /healthz HTTP/1.1\r\nA: "));
    }
    int64_t before = node_resident_kb(&node);
    int64_t until = steady_ms() + PATIENCE_MS;
    while (cut < SLOW) {
        CHECK(steady_ms() < until, "only %u of them were cut off", cut);
        for (int i = 0; i < SLOW; i++) {
            struct pollfd p = {.fd = fds[i], .events = POLLIN};
            if (fds[i] < 0)
                continue;
            say(fds[i], SLICE("x"));
            if (poll(&p, 1, 0) == 0)
                continue;
            REPLY r = {0};
            hear(fds[i], &r);
            CHECK(r.status == 408 || r.status == 0, "%d", r.status); /* 0: it was reset */
            fds[i] = -1;
            cut++;
        }
        served();
    }
    int64_t after = node_resident_kb(&node);
    CHECK(after < before + 16384, "%" PRId64 " kB, then %" PRId64 " kB", before, after);
    close_door();
}

static void who_waits_is_counted(void **state)
{
    REPLY r = {0};
    int waiting[3];
    (void)state;

    open_door(FLAGS("--limit", "waiting=3", "--drain", "100ms"));
    for (int i = 0; i < 3; i++)
        waiting[i] = ask(&node, "POST", "/v1/agents/a/work", "application/json",
                         SLICE("{\"instance\": \"i\", \"wait\": \"5m\"}"));
    wait_for_parked(&node, 3);
    post(&node, &r, "/v1/agents/a/work", "{\"instance\": \"late\", \"wait\": \"5m\"}");
    expect_problem(&r, 503, "busy");
    get(&node, &r, "/v1/tasks/none?wait=1m");
    expect_problem(&r, 503, "busy");
    /* What need not wait is served, and results are taken, without waiting. */
    get(&node, &r, "/v1/tasks/none");
    EXPECT(&r, 404);
    post(&node, &r, "/v1/agents/a/work", "{\"instance\": \"late\"}");
    EXPECT(&r, 200);
    post(&node, &r, "/v1/agents/a/work",
         "{\"instance\": \"late\", \"wait\": \"5m\", \"results\": [{\"token\": \"x\"}]}");
    EXPECT(&r, 200);
    CHECK(at(&r, "outcomes.0"), "%.*s", SLICE_ARG(r.body));
    (void)close(waiting[0]);
    int64_t until = steady_ms() + PATIENCE_MS;
    do {
        post(&node, &r, "/v1/agents/a/work", "{\"instance\": \"late\", \"wait\": \"1ms\"}");
        CHECK(steady_ms() < until, "its place is not free");
    } while (r.status == 503);
    EXPECT(&r, 200);
    (void)close(waiting[1]);
    (void)close(waiting[2]);
    close_door();
}

/* What a sanitizer keeps beside each byte of the server. */
#if defined(__SANITIZE_THREAD__)
enum { SHADOW = 4 };
#else
enum { SHADOW = 1 };
#endif

/* The tree of a body is some forty times as large as its text. */
static void who_waits_keeps_no_tree(void **state)
{
    enum { CALLS = 8, NUMBERS = 500000 };
    CLEANUP(buf_fini) struct buf body = {0};
    int waiting[CALLS];
    (void)state;

    open_door(FLAGS("--drain", "100ms"));
    buf_str(&body, "{\"instance\": \"i\", \"wait\": \"5m\", \"holding\": [[0");
    for (int i = 0; i < NUMBERS; i++)
        buf_str(&body, ",0");
    buf_str(&body, "]]}");
    int64_t before = node_resident_kb(&node);
    for (int i = 0; i < CALLS; i++)
        waiting[i] = ask(&node, "POST", "/v1/agents/a/work", "application/json", buf_view(&body));
    wait_for_parked(&node, 8);
    int64_t grown = node_resident_kb(&node) - before;
    CHECK(grown < SHADOW * 160 * 1024, "%" PRId64 " kB for %d calls of %zu bytes", grown, CALLS,
          body.len);
    for (int i = 0; i < CALLS; i++)
        (void)close(waiting[i]);
    close_door();
}

/* Goes on for ever, unless it is told to stop. */
static void pour(const char *begin, const char *drop, int status)
{
    CLEANUP(buf_fini) struct buf much = {0};
    int fd = dial(&node);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    REPLY r = {0};

    while (much.len < 16384)
        buf_str(&much, drop);
    say(fd, slice_of(begin));
    for (int i = 0; poll(&p, 1, 0) == 0; i++) {
        CHECK(i < 10000, "it takes without end: %s", begin);
        say(fd, buf_view(&much));
    }
    hear(fd, &r);
    CHECK(r.status == status, "%s: %d %.*s", begin, r.status, SLICE_ARG(r.body));
}

static void what_never_ends_is_refused(void **state)
{
#define POST_CHUNKS                                                                    \
    "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
    "Transfer-Encoding: chunked\r\n\r\n"
    (void)state;
    open_door(FLAGS("--open", "--limit", "body=64KiB"));
    int64_t before = node_resident_kb(&node);
    for (int i = 0; i < 20; i++) {
        pour("GET /", "x", 414);
        pour("", "\r\n", 414);
        pour("GET / HTTP/1.1\r\n", "A: b\r\n", 431);
        pour("GET / HTTP/1.1\r\nA: ", "x", 431);
        pour(POST_CHUNKS, "1\r\nx\r\n", 413);
        pour(POST_CHUNKS "1;", "x", 431);
        pour(POST_CHUNKS "0\r\n", "A: b\r\n", 431);
        pour(POST_CHUNKS "fff0\r\n", "\xff", 400);
        pour("POST /v1/tasks HTTP/1.1\r\nContent-Length: 9999999\r\nHost: localhost\r\n\r\n", "x",
             413);
    }
    int64_t after = node_resident_kb(&node);
    CHECK(after < before + 16384, "%" PRId64 " kB, then %" PRId64 " kB", before, after);
    served();
    close_door();
}

static void what_ends_early_is_no_request(void **state)
{
    static const char text[] =
        "POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 38\r\n\r\n{\"workflow\": \"one\", \"id\": \"half\"}    ";
    REPLY r = {0};
    (void)state;

    open_door(FLAGS("--open", "--log", "warn"));
    (void)define(&node, "one",
                 "\"steps\": [{\"name\": \"a\", \"agent\": \"ag\", \"action\": \"x\", "
                 "\"undo\": \"none\"}]");
    for (size_t len = 0; len < sizeof text - 2; len++) { /* the last one is missing */
        CLEANUP(buf_fini) struct buf got = {0};
        int fd = dial(&node);
        say(fd, (struct slice){text, len});
        (void)shutdown(fd, SHUT_WR);
        hear_all(fd, &got);
        CHECK(status_heard(&got, 0) == 0, "answered after %zu bytes: %s", len, got.ptr);
    }
    get(&node, &r, "/v1/tasks/half");
    EXPECT(&r, 404);
    close_door();
}

static void limits_that_are_none_are_refused(void **state)
{
    static const struct {
        const char *flag, *value, *expected;
    } cases[] = {
        {"--limit", "body", "expected NAME=VALUE"},
        {"--limit", "bodies=1", "expected one of body, "},
        {"--limit", "body=none", "expected a size from 1KiB to 64MiB"},
        {"--host", "a:80", "without a port"},
        {"--host", "", "without a port"},
        {"--host", "a/b", "without a port"},
        {"--tls-cert", "/nowhere", "--tls-key FILE beside it"},
        {"--tls-key", "/nowhere", "--tls-cert FILE beside it"},
        {"--listen", "0.0.0.0:7420", "--behind-proxy"},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf err = {0};
        int status = serve_briefly(FLAGS(cases[i].flag, cases[i].value), &err);
        CHECK(status == 2, "%s %s: %d: %s", cases[i].flag, cases[i].value, status, err.ptr);
        CHECK(strstr(err.ptr, cases[i].expected), "%s %s: %s", cases[i].flag, cases[i].value,
              err.ptr);
    }
}

/* ---- floods ---- */

enum { FLOOD = 300 };

static int64_t cpu_ticks(void)
{
    char path[64];
    long user = 0;
    long system = 0;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)node.pid);
    FILE *f = fopen(path, "r");
    int got =
        f ? fscanf(f, "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user, &system)
          : 0;
    if (f)
        (void)fclose(f);
    CHECK(got == 2, "%s", path);
    return user + system;
}

static void connections_beyond_the_limit_are_told_so(void **state)
{
    static int fds[FLOOD];
    unsigned told = 0;
    (void)state;

    open_door(
        FLAGS("--limit", "connections=100", "--limit", "head-time=10m", "--limit", "idle-time=1h"));
    int old = dial(&node);
    say(old, SLICE("GET /healthz HTTP/1.1\r\nHost: localhost\r\n"));
    for (int i = 0; i < FLOOD; i++)
        fds[i] = dial(&node);
    int64_t until = steady_ms() + PATIENCE_MS;
    while (told < FLOOD - 99) {
        CHECK(steady_ms() < until, "only %u were told", told);
        for (int i = 0; i < FLOOD; i++) {
            struct pollfd p = {.fd = fds[i], .events = POLLIN};
            if (fds[i] < 0 || poll(&p, 1, 0) == 0)
                continue;
            REPLY r = {0};
            hear(fds[i], &r);
            expect_problem(&r, 503, "busy");
            fds[i] = -1;
            told++;
        }
        sleep_ms(5);
    }
    REPLY r = {0};
    say(old, SLICE("\r\n"));
    hear(old, &r); /* closes it: there is one place */
    EXPECT(&r, 200);
    do {
        get(&node, &r, "/healthz");
        CHECK(steady_ms() < until, "nobody is let in");
    } while (r.status != 200);
    for (int i = 0; i < FLOOD; i++)
        if (fds[i] >= 0)
            (void)close(fds[i]);
    close_door();
}

/* Others may have taken what the server counted on. */
static void without_descriptors_it_waits_and_serves_who_is_there(void **state)
{
    static int fds[FLOOD];
    static const struct rlimit few = {60, 60};
    int old[5];
    (void)state;

    open_door(FLAGS("--log", "warn", "--limit", "head-time=10m"));
    for (int i = 0; i < 5; i++) {
        old[i] = dial(&node);
        say(old[i], SLICE("GET /healthz HTTP/1.1\r\nHost: localhost\r\n"));
    }
    served();
    CHECK(prlimit(node.pid, RLIMIT_NOFILE, &few, NULL) == 0, "%s", strerror(errno));
    for (int i = 0; i < FLOOD; i++)
        fds[i] = dial(&node); /* the kernel takes them */
    sleep_ms(300);
    int64_t ticks = cpu_ticks();
    sleep_ms(2000);
    ticks = cpu_ticks() - ticks;
    CHECK(ticks < 60, "it spins: %" PRId64 " ticks", ticks); /* of 200 */
    for (int i = 0; i < 5; i++) {
        REPLY r = {0};
        say(old[i], SLICE("\r\n"));
        hear(old[i], &r);
        EXPECT(&r, 200);
    }
    for (int i = 0; i < FLOOD; i++)
        (void)close(fds[i]);
    served();
    close_door();
}

static void resets_in_the_middle_of_answers_leave_nothing_behind(void **state)
{
    static const struct linger hard = {1, 0};
    CLEANUP(buf_fini) struct buf b = {0};
    int64_t settled = 0;
    (void)state;

    open_door(FLAGS("--log", "warn"));
    for (int i = 0; i < 300; i++)
        buf_str(&b, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for (int round = 0; round < 400; round++) {
        char byte = 0;
        int fd = dial(&node);
        say(fd, buf_view(&b));
        if (round % 3 == 0)
            (void)shutdown(fd, SHUT_WR);
        if (round % 2)
            CHECK(recv(fd, &byte, 1, 0) == 1, "an answer");
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        (void)close(fd);
        if (round == 100)
            settled = node_resident_kb(&node);
    }
    served();
    int64_t last = node_resident_kb(&node);
    CHECK(last < settled + 16384, "%" PRId64 " kB, then %" PRId64 " kB", settled, last);
    close_door();
}

int main(int argc, char **argv)
{
    struct rlimit files = {4096, 20000};

    kit_program(argc, argv);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max < 4096 ? files.rlim_max : 4096;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    /* what the sanitizer keeps of freed memory is not the server's */
    (void)setenv("ASAN_OPTIONS", "quarantine_size_mb=1:malloc_context_size=2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_ends_as_it_must),
        cmocka_unit_test(only_its_names_are_answered),
        cmocka_unit_test(behind_a_proxy_both_schemes_may_be_ours),
        cmocka_unit_test(sizes_hold),
        cmocka_unit_test(times_hold),
        cmocka_unit_test(a_thousand_slow_clients_disturb_nobody),
        cmocka_unit_test(who_waits_is_counted),
        cmocka_unit_test(who_waits_keeps_no_tree),
        cmocka_unit_test(what_never_ends_is_refused),
        cmocka_unit_test(what_ends_early_is_no_request),
        cmocka_unit_test(limits_that_are_none_are_refused),
        cmocka_unit_test(connections_beyond_the_limit_are_told_so),
        cmocka_unit_test(without_descriptors_it_waits_and_serves_who_is_there),
        cmocka_unit_test(resets_in_the_middle_of_answers_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
