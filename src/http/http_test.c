#include "base/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http/cases.h"
#include "http/http.h"
#include "http/transcript.h"

/* A server and its raw clients on one loop in one thread. Nothing here measures time: whatever is
 * waited for comes, or the test fails after a long time. */

enum { CLIENT_MAX = 1200, PATIENCE_MS = 20000 };

static struct {
    uv_loop_t loop;
    struct http_server *server;
    struct http_request *parked[CLIENT_MAX];
    unsigned parked_count;
    unsigned handled, sent, lost;
    bool closes_in_handler;
    bool is_closed;
    size_t big; /* bytes of the answer to /big */
} w;

static void echo(struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "%.*s %.*s?%.*s ", SLICE_ARG(r->method), SLICE_ARG(r->path), SLICE_ARG(r->query));
    buf_slice(&b, r->body);
    http_answer(r, 200, "text/plain", buf_view(&b), "X-Extra: 1\r\n");
}

static void handle(void *arg, struct http_request *r)
{
    ASSERT(arg == &w);
    w.handled++;
    r->user = &w;
    if (w.closes_in_handler) {
        http_close(w.server);
        w.is_closed = true;
        CHECK(!http_is_alive(r), "the server is closed");
    }
    if (slice_is(r->path, "/park")) {
        w.parked[w.parked_count++] = r;
    } else if (slice_is(r->path, "/problem")) {
        http_problem(r, 409, "state", "say \"%s\"\n\xff", "\xc3\xa4");
    } else if (slice_is(r->path, "/release")) {
        if (w.parked[0])
            http_answer(w.parked[0], 200, NULL, SLICE("go"), NULL);
        echo(r);
    } else if (slice_is(r->path, "/nothing")) {
        http_answer(r, 204, NULL, SLICE_NONE, NULL);
    } else if (slice_is(r->path, "/big")) {
        char *bytes = arena_bytes(&r->arena, w.big);
        memset(bytes, 'x', w.big);
        http_answer(r, 200, "text/plain", (struct slice){bytes, w.big}, NULL);
    } else {
        echo(r);
    }
}

static void done(void *arg, struct http_request *r, bool sent)
{
    ASSERT(arg == &w);
    ASSERT(r->user == &w);
    r->user = NULL;
    if (sent)
        w.sent++;
    else
        w.lost++;
    for (unsigned i = 0; i < w.parked_count; i++)
        if (w.parked[i] == r)
            w.parked[i] = NULL;
}

static void begin(const struct http_limits *limits)
{
    static const struct http_handler handler = {&w, handle, done};
    struct error e = {0};

    memset(&w, 0, sizeof w);
    CHECK(uv_loop_init(&w.loop) == 0, "a loop");
    enum err err = http_listen(&w.loop, "127.0.0.1:0", limits, &handler, &w.server, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(http_port(w.server) > 0, "a port");
}

static void end(void)
{
    if (!w.is_closed)
        http_close(w.server);
    while (uv_run(&w.loop, UV_RUN_DEFAULT) != 0)
        ;
    CHECK(uv_loop_close(&w.loop) == 0, "a handle was left behind");
    CHECK(w.handled == w.sent + w.lost, "%u handled, %u sent, %u lost", w.handled, w.sent, w.lost);
}

struct client {
    int fd;
    struct buf got;
    bool is_ended, is_reset;
};

static int client_socket(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

    CHECK(fd >= 0, "a socket");
    return fd;
}

static void client_connect(const struct client *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)http_port(w.server))};

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int err = connect(c->fd, (struct sockaddr *)&a, sizeof a);
    CHECK(err == 0 || errno == EINPROGRESS, "%s", strerror(errno));
}

static void client_open(struct client *c)
{
    *c = (struct client){.fd = client_socket()};
    client_connect(c);
}

static void client_close(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    buf_fini(&c->got);
}

static void client_reset(struct client *c)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    if (c->fd < 0)
        return;
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    client_close(c);
}

static void client_poll(struct client *c)
{
    char bytes[8192];
    ssize_t n = 1;

    if (!c || c->fd < 0)
        return;
    while (n > 0) {
        n = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (n > 0)
            buf_add(&c->got, bytes, (size_t)n);
    }
    if (n == 0)
        c->is_ended = true;
    else if (errno == ECONNRESET)
        c->is_ended = c->is_reset = true;
}

static void turn(void)
{
    uv_run(&w.loop, UV_RUN_NOWAIT);
}

/* Turns the loop until `cond`; `c` may be NULL. */
#define UNTIL(c, cond, ...)                        \
    do {                                           \
        for (int ms_ = 0; !(cond); ms_++) {        \
            CHECK(ms_ < PATIENCE_MS, __VA_ARGS__); \
            turn();                                \
            client_poll(c);                        \
            if (!(cond) && ms_ > 50)               \
                usleep(1000);                      \
        }                                          \
    } while (0)

static void client_send(struct client *c, struct slice s)
{
    for (int ms = 0; s.len > 0; ms++) {
        ssize_t n = send(c->fd, s.ptr, s.len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0)
            s = (struct slice){s.ptr + n, s.len - (size_t)n};
        else if (errno != EAGAIN && errno != EINPROGRESS && errno != ENOTCONN)
            return; /* the server has closed: what it said is what counts */
        CHECK(ms < PATIENCE_MS, "cannot send");
        turn();
        if (n < 0)
            usleep(1000);
    }
}

static void client_say(struct client *c, const char *text)
{
    client_send(c, slice_of(text));
}

static bool client_has(const struct client *c, const char *text)
{
    return c->got.len > 0 && memmem(c->got.ptr, c->got.len, text, strlen(text));
}

static unsigned client_count(const struct client *c, const char *text)
{
    unsigned count = 0;

    for (const char *at = c->got.ptr; at && (at = strstr(at, text)); at++)
        count++;
    return count;
}

/* The status of the last answer. */
static int client_status(const struct client *c)
{
    int status = 0;

    for (const char *at = c->got.ptr; at && (at = strstr(at, "HTTP/1.1 ")); at += 9)
        if (at[9] >= '0' && at[9] <= '9')
            status = (int)strtol(at + 9, NULL, 10);
    return status;
}

#define EXPECT(c, text) UNTIL(c, client_has(c, text), "%s came, not %s", (c)->got.ptr, text)
#define EXPECT_END(c)   UNTIL(c, (c)->is_ended, "the connection is open: %s", (c)->got.ptr)

/* --- reading --- */

static void every_case_ends_as_it_must(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(http_cases); i++) {
        const struct http_case *t = &http_cases[i];
        struct client c;
        begin(NULL);
        client_open(&c);
        client_send(&c, t->bytes);
        if (!t->closes)
            client_say(&c, "GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        UNTIL(&c, c.is_ended, "%s: the connection is open: %s", t->what, c.got.ptr);
        CHECK(!c.is_reset, "%s: reset", t->what);
        CHECK(client_status(&c) == t->status, "%s: %s", t->what, c.got.ptr);
        CHECK(client_has(&c, "GET /ping") == !t->closes, "%s: %s", t->what, c.got.ptr);
        CHECK(w.handled == t->handled + !t->closes, "%s: handled %u", t->what, w.handled);
        CHECK(client_has(&c, "Connection: close\r\n"), "%s", t->what);
        CHECK(client_has(&c, "/smuggled") == false, "%s", t->what);
        if (t->status >= 400)
            CHECK(client_has(&c, "\"type\":\"urn:intact:problem:"), "%s: %s", t->what, c.got.ptr);
        client_close(&c);
        end();
    }
}

static void the_way_bytes_are_cut_changes_nothing(void **state)
{
    static const struct http_limits tight = {.body_max = 100,
                                             .head_max = 120,
                                             .header_count_max = 3};
    const struct http_limits *limits[] = {&http_limits_default, &tight};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(http_cases) * 2; i++) {
        const struct http_case *t = &http_cases[i / 2];
        CLEANUP(buf_fini) struct buf whole = {0};
        transcript_write(&whole, limits[i % 2], t->bytes, t->bytes.len, 1);
        if (i % 2 == 0)
            CHECK((strstr(whole.ptr, "urn") != NULL) == false, "%s", t->what);
        for (size_t cut = 1; cut <= t->bytes.len; cut++) {
            CLEANUP(buf_fini) struct buf parts = {0};
            CLEANUP(buf_fini) struct buf bits = {0};
            transcript_write(&parts, limits[i % 2], t->bytes, cut, t->bytes.len);
            CHECK(slice_eq(buf_view(&parts), buf_view(&whole)), "%s, cut at %zu: %s", t->what, cut,
                  parts.ptr);
            transcript_write(&bits, limits[i % 2], t->bytes, cut, cut);
            CHECK(slice_eq(buf_view(&bits), buf_view(&whole)), "%s, in pieces of %zu: %s", t->what,
                  cut, bits.ptr);
        }
    }
}

static void a_request_is_taken_apart(void **state)
{
    static const struct {
        const char *target, *transcript;
    } cases[] = {
        {"/", "GET [/]\n"},
        {"/?", "GET [/]\n"},
        {"/v1/tasks", "GET [/v1/tasks] <v1> <tasks>\n"},
        {"/v1/tasks/", "GET [/v1/tasks/] <v1> <tasks> <>\n"},
        {"//a", "GET [//a] <> <a>\n"},
        {"/a%2Fb/%41+c", "GET [/a%2Fb/%41+c] <a/b> <A+c>\n"},
        {"/a%00b/c", "GET [/a%00b/c] broken <c>\n"},
        {"/?a=b&c=d%26e&f&=g&&h=+%2b", "GET [/] a=b c=d&e f= =g h= +\n"},
        {"/?a=b=c&%61=d?/", "GET [/] a=b=c a=d?/\n"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf in = {0};
        CLEANUP(buf_fini) struct buf out = {0};
        buf_fmt(&in, "GET %s HTTP/1.1\r\nHost: a\r\n\r\n", cases[i].target);
        transcript_write(&out, &http_limits_default, buf_view(&in), in.len, 1);
        char *end_of_line = strchr(out.ptr, '\n');
        end_of_line[1] = 0;
        CHECK(strcmp(out.ptr, cases[i].transcript) == 0, "%s: %s", cases[i].target, out.ptr);
    }
}

static void fields_and_parameters_are_found_by_name(void **state)
{
    struct http_reader r;
    size_t used = 0;
    struct slice in = SLICE("GET /?wait=3%30s&tag.k=1 HTTP/1.1\r\nHost: a\r\nX-One:  1 \r\n"
                            "X-Two:\r\nx-one: 2\r\n\r\n");
    (void)state;
    http_reader_init(&r, &http_limits_default);
    CHECK(http_reader_feed(&r, in, &used) == HTTP_READ_WHOLE, "whole");
    CHECK(used == in.len, "%zu", used);
    struct http_message *m = http_reader_take(&r);
    CHECK(slice_is(http_header(&m->request, "x-ONE"), "1"), "the first one counts");
    CHECK(slice_is(http_header(&m->request, "X-Two"), ""), "it is empty");
    CHECK(!http_header(&m->request, "X").ptr, "there is none");
    CHECK(slice_is(http_query(&m->request, "wait"), "30s"), "decoded");
    CHECK(slice_is(http_query(&m->request, "tag.k"), "1"), "there");
    CHECK(!http_query(&m->request, "tag").ptr, "there is none");
    http_message_free(m);
    http_reader_fini(&r);
}

static void chunks_are_read_however_they_are_cut(void **state)
{
    static const char text[] = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "5\r\nhello\r\n1;x=y\r\n \r\n005\r\nworld\r\n0\r\nT: u\r\n\r\n";
    size_t len = sizeof text - 1;
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    for (size_t cut = 1; cut < len; cut++) {
        buf_clear(&c.got);
        client_send(&c, (struct slice){text, cut});
        client_send(&c, (struct slice){text + cut, len - cut});
        EXPECT(&c, "POST /x? hello world");
    }
    buf_clear(&c.got);
    for (size_t i = 0; i < len; i++)
        client_send(&c, (struct slice){text + i, 1});
    EXPECT(&c, "POST /x? hello world");
    client_close(&c);
    end();
}

/* --- answering --- */

static void answers_come_in_the_order_of_the_requests(void **state)
{
    struct client c;
    char text[64];
    (void)state;
    begin(NULL);
    client_open(&c);
    CLEANUP(buf_fini) struct buf all = {0};
    for (int i = 0; i < 500; i++)
        buf_fmt(&all, "GET /%d HTTP/1.1\r\nHost: a\r\n\r\n", i);
    client_send(&c, buf_view(&all));
    EXPECT(&c, "GET /499? ");
    const char *at = c.got.ptr;
    for (int i = 0; i < 500; i++) {
        snprintf(text, sizeof text, "GET /%d? ", i);
        at = strstr(at, text);
        CHECK(at, "the answer to %d is missing or too early", i);
    }
    client_close(&c);
    end();
}

static void a_parked_request_holds_back_those_behind_it(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, "GET /park HTTP/1.1\r\nHost: a\r\n\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n");
    client_say(&c, "GET /park HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL(&c, w.parked_count == 1, "parked");
    for (int i = 0; i < 10; i++)
        turn();
    client_poll(&c);
    CHECK(w.handled == 1, "%u", w.handled);
    CHECK(c.got.len == 0, "%s", c.got.ptr);
    http_answer(w.parked[0], 200, "text/plain", SLICE("first"), NULL);
    CHECK(w.sent == 0, "done does not come from inside http_answer");
    EXPECT(&c, "GET /1? ");
    UNTIL(&c, w.parked_count == 2, "the second one");
    http_answer(w.parked[1], 200, "text/plain", SLICE("second"), NULL);
    EXPECT(&c, "GET /2? ");
    CHECK(w.sent == 4, "%u", w.sent);
    CHECK(strstr(c.got.ptr, "first") < strstr(c.got.ptr, "GET /1"), "%s", c.got.ptr);
    client_close(&c);
    end();
}

static void parked_requests_are_answered_in_any_order(void **state)
{
    static struct client c[CLIENT_MAX];
    unsigned count = 300;
    char text[64];
    (void)state;
    begin(NULL);
    for (unsigned i = 0; i < count; i++) {
        client_open(&c[i]);
        snprintf(text, sizeof text, "POST /park?%u HTTP/1.1\r\nHost: a\r\n\r\n", i);
        client_say(&c[i], text);
    }
    UNTIL(&c[0], w.parked_count == count, "%u parked", w.parked_count);
    CHECK(http_connection_count(w.server) == count, "%zu", http_connection_count(w.server));
    for (unsigned k = 0; k < count; k++) {
        struct http_request *r = w.parked[k * 7 % count];
        CHECK(http_is_alive(r), "alive");
        http_answer(r, 200, "text/plain", r->query, NULL);
    }
    for (unsigned i = 0; i < count; i++) {
        snprintf(text, sizeof text, "\r\n\r\n%u", i);
        EXPECT(&c[i], text);
        client_close(&c[i]);
    }
    UNTIL(NULL, http_connection_count(w.server) == 0, "they have gone");
    CHECK(w.sent == count, "%u", w.sent);
    end();
}

static void what_an_answer_looks_like(void **state)
{
    static const struct {
        const char *request, *answer;
    } cases[] = {
        {"GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
         "Content-Length: 9\r\nX-Extra: 1\r\n\r\nGET /a?b "},
        {"HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                                                "Content-Length: 9\r\nX-Extra: 1\r\n\r\n"},
        {"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
         "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n"
         "Connection: keep-alive\r\nX-Extra: 1\r\n\r\nGET /? "},
        {"GET /problem HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
         "HTTP/1.1 409 Conflict\r\nContent-Type: application/problem+json\r\n"
         "Content-Length: 98\r\nConnection: close\r\n\r\n"
         "{\"type\":\"urn:intact:problem:state\",\"title\":\"Conflict\",\"status\":409,"
         "\"detail\":\"say \\\"\xc3\xa4\\\"\\u000a\xef\xbf\xbd\"}"},
    };
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        buf_clear(&c.got);
        client_say(&c, cases[i].request);
        UNTIL(&c, c.got.len >= strlen(cases[i].answer), "%s came", c.got.ptr);
        CHECK(slice_is(buf_view(&c.got), cases[i].answer), "%s", c.got.ptr);
    }
    EXPECT_END(&c);
    client_close(&c);
    end();
}

static void a_client_that_asks_before_it_sends_is_told_to_go_on(void **state)
{
    static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
                               "Expect: 100-continue\r\n\r\n";
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, head);
    EXPECT(&c, "HTTP/1.1 100 Continue\r\n\r\n");
    CHECK(w.handled == 0, "the body is not there");
    client_say(&c, "hi");
    EXPECT(&c, "POST /? hi");
    CHECK(client_count(&c, "100 Continue") == 1, "%s", c.got.ptr);

    buf_clear(&c.got);
    CLEANUP(buf_fini) struct buf all = {0};
    buf_fmt(&all, "%sho", head);
    client_send(&c, buf_view(&all));
    EXPECT(&c, "POST /? ho");
    CHECK(!client_has(&c, "100 Continue"), "it did not wait: %s", c.got.ptr);

    buf_clear(&c.got);
    client_send(&c, (struct slice){all.ptr, all.len - 1});
    client_say(&c, "p");
    EXPECT(&c, "POST /? hp");
    CHECK(!client_has(&c, "100 Continue"), "it had begun: %s", c.got.ptr);

    buf_clear(&c.got);
    client_say(&c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n"
                   "Expect: 100-continue\r\n\r\n");
    EXPECT_END(&c);
    CHECK(client_status(&c) == 413, "%s", c.got.ptr);
    CHECK(!client_has(&c, "100 Continue"), "%s", c.got.ptr);
    client_close(&c);
    end();
}

static void a_big_answer_arrives_whole(void **state)
{
    struct client c;
    size_t len = 0;
    (void)state;
    begin(NULL);
    w.big = 20000000;
    client_open(&c);
    client_say(&c, "GET /big HTTP/1.1\r\nHost: a\r\n\r\nGET /after HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 0; i < 20; i++)
        turn();
    CHECK(w.handled == 1, "the next one waits until it is written");
    CHECK(w.sent == 0, "it cannot be with the kernel as a whole");
    UNTIL(&c, c.got.len > w.big, "only %zu bytes came", c.got.len);
    EXPECT(&c, "GET /after? ");
    const char *body = strstr(c.got.ptr, "\r\n\r\n") + 4;
    while (body[len] == 'x')
        len++;
    CHECK(len == w.big, "%zu", len);
    CHECK(w.sent == 2, "%u", w.sent);
    client_close(&c);
    end();
}

/* --- clients that go --- */

static void a_client_that_goes_while_parked_is_noticed(void **state)
{
    struct client c;
    (void)state;
    for (int how = 0; how < 4; how++) {
        begin(NULL);
        client_open(&c);
        client_say(&c, "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
        UNTIL(&c, w.parked_count == 1, "parked");
        if (how == 0) {
            client_close(&c);
        } else if (how == 1) {
            client_reset(&c);
        } else if (how == 2) {
            client_say(&c, "GET /half HTTP/1.1\r\nHo");
            client_close(&c);
        } else {
            /* More than is read ahead. */
            CLEANUP(buf_fini) struct buf much = {0};
            for (int i = 0; i < 2000; i++)
                buf_str(&much, "GET /more HTTP/1.1\r\nHost: a\r\n\r\n");
            client_send(&c, buf_view(&much));
            for (int i = 0; i < 100; i++)
                turn();
            CHECK(w.lost == 0, "it is still there");
            client_close(&c);
        }
        UNTIL(NULL, w.lost == 1, "nobody noticed (%d)", how);
        CHECK(!w.parked[0], "done was called for it");
        CHECK(http_connection_count(w.server) == 0, "closed");
        CHECK(w.handled == 1, "%u", w.handled);
        end();
    }
}

static void much_is_read_ahead_and_served_later(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    CLEANUP(buf_fini) struct buf much = {0};
    buf_str(&much, "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 0; i < 3000; i++)
        buf_str(&much, "GET /more HTTP/1.1\r\nHost: a\r\n\r\n");
    client_send(&c, buf_view(&much));
    for (int i = 0; i < 100; i++)
        turn();
    CHECK(w.handled == 1, "%u", w.handled);
    http_answer(w.parked[0], 200, "text/plain", SLICE("go"), NULL);
    UNTIL(&c, w.sent == 3001, "%u", w.sent);
    client_close(&c);
    end();
}

static void a_client_may_go_after_any_byte(void **state)
{
    static const char text[] =
        "POST /park HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        "5\r\nhello\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n";
    (void)state;
    begin(NULL);
    for (size_t len = 0; len < sizeof text * 2; len++) {
        struct client c;
        client_open(&c);
        client_send(&c, (struct slice){text, len / 2});
        turn();
        if (len % 2)
            client_reset(&c);
        else
            client_close(&c);
        UNTIL(NULL, http_connection_count(w.server) == 0, "open after %zu", len / 2);
        w.parked_count = 0;
    }
    CHECK(w.lost > 10, "some were parked: %u", w.lost);
    end();
}

static void a_client_that_closes_its_side_gets_its_answers(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    w.big = 10000000;
    client_open(&c);
    client_say(&c, "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /big HTTP/1.1\r\nHost: a\r\n\r\n"
                   "GET /3 HTTP/1.1\r\nHost: a\r\n\r\n");
    shutdown(c.fd, SHUT_WR);
    EXPECT_END(&c);
    CHECK(client_has(&c, "GET /1? "), "the first");
    CHECK(client_has(&c, "GET /3? "), "the last");
    CHECK(w.sent == 3, "%u", w.sent);
    client_close(&c);
    end();
}

static void a_client_that_goes_while_it_is_answered_is_noticed(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    w.big = 20000000;
    client_open(&c);
    client_say(&c, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL(NULL, w.handled == 1, "handled");
    client_reset(&c);
    UNTIL(NULL, w.lost == 1, "nobody noticed");
    end();
}

static void a_client_may_go_in_the_moment_of_its_answer(void **state)
{
    (void)state;
    begin(NULL);
    for (int i = 0; i < 20; i++) {
        struct client parked;
        struct client other;
        client_open(&parked);
        client_open(&other);
        w.parked_count = 0;
        client_say(&parked, "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
        UNTIL(&parked, w.parked_count == 1, "parked");
        /* Both are ready when the loop looks, in this order and in the other. */
        static const char text[] = "GET /release HTTP/1.1\r\nHost: a\r\n\r\n";
        if (i % 2)
            client_reset(&parked);
        CHECK(send(other.fd, text, sizeof text - 1, MSG_NOSIGNAL) > 0, "sent");
        client_reset(&parked);
        EXPECT(&other, "200 OK");
        client_close(&other);
        UNTIL(NULL, http_connection_count(w.server) == 0, "they have gone");
    }
    CHECK(w.handled == 40, "%u", w.handled);
    end();
}

/* --- limits --- */

static void limits_hold(void **state)
{
    static const struct http_limits limits = {.body_max = 10,
                                              .head_max = 200,
                                              .header_count_max = 4,
                                              .connection_max = 10,
                                              .head_ms = 10000,
                                              .body_ms = 10000,
                                              .idle_ms = 10000,
                                              .write_ms = 10000};
    static const struct {
        const char *begin, *repeated;
        unsigned times;
        const char *end;
        int status;
    } cases[] = {
        {"POST /" H "Content-Length: 10\r\n\r\n", "x", 10, "", 200},
        {"POST /" H "Content-Length: 11\r\n\r\n", "x", 0, "", 413},
        {"POST /" H "Content-Length: 18446744073709551615\r\n\r\n", "x", 0, "", 413},
        {CHUNKED, "5\r\n01234\r\n", 2, "0\r\n\r\n", 200},
        {CHUNKED, "5\r\n01234\r\n", 2, "1\r\n", 413},
        {CHUNKED, "1\r\nx\r\n", 11, "", 413},
        {CHUNKED, "", 0, "ffffffffffffffff\r\n", 413},
        {CHUNKED, "", 0, "B\r\n", 413},
        {CHUNKED "1;", "x", 300, "", 431},
        {CHUNKED, "1;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\nx\r\n", 6, "", 431},
        {CHUNKED "0\r\n", "A: b\r\n", 30, "\r\n", 200},
        {CHUNKED "0\r\n", "A: b\r\n", 300, "", 431},
        {"GET /", "x", 300, "", 414},
        {"GET /" H, "A: b\r\n", 3, "\r\n", 200},
        {"GET /" H, "A: b\r\n", 4, "\r\n", 431},
        {"GET /" H, "A: b\r\n", 300, "", 431},
        {"GET /" H "A: ", "x", 168, "\r\n\r\n", 200}, /* 200 in all */
        {"GET /" H "A: ", "x", 169, "\r\n\r\n", 431},
        {"", "\r\n", 300, "", 414},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        CLEANUP(buf_fini) struct buf all = {0};
        struct client c;
        begin(&limits);
        client_open(&c);
        buf_str(&all, cases[i].begin);
        for (unsigned k = 0; k < cases[i].times; k++)
            buf_str(&all, cases[i].repeated);
        buf_str(&all, cases[i].end);
        client_send(&c, buf_view(&all));
        UNTIL(&c, client_status(&c) > 0, "case %zu: no answer", i);
        CHECK(client_status(&c) == cases[i].status, "case %zu: %s", i, c.got.ptr);
        if (cases[i].status != 200)
            EXPECT_END(&c);
        client_close(&c);
        end();
    }
}

static void a_refusal_survives_a_client_that_goes_on_sending(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50000000\r\n\r\n");
    CLEANUP(buf_fini) struct buf much = {0};
    memset(buf_room(&much, 3000000), 'x', 3000000);
    much.len = 3000000;
    client_send(&c, buf_view(&much));
    EXPECT_END(&c);
    CHECK(client_status(&c) == 413, "%s", c.got.ptr);
    CHECK(!c.is_reset, "a reset may destroy the answer");
    client_close(&c);
    UNTIL(NULL, http_connection_count(w.server) == 0, "it is let go");
    end();
}

static struct http_limits patience(uint64_t head, uint64_t body, uint64_t idle, uint64_t write)
{
    struct http_limits l = http_limits_default;

    l.head_ms = head;
    l.body_ms = body;
    l.idle_ms = idle;
    l.write_ms = write;
    return l;
}

static void slow_clients_are_cut_off_even_if_they_make_progress(void **state)
{
    struct http_limits head = patience(100, 1000000, 1000000, 1000000);
    struct http_limits body = patience(1000000, 100, 1000000, 1000000);
    static const char *const begins[] = {
        "GET / HTTP/1.1\r\nA: ",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(begins); i++) {
        struct client c;
        begin(i == 0 ? &head : &body);
        client_open(&c);
        client_say(&c, "GET /before HTTP/1.1\r\nHost: a\r\n\r\n");
        client_say(&c, begins[i]);
        for (int n = 0; !c.is_ended; n++) {
            CHECK(n < 10000, "case %zu: it drips on", i);
            client_say(&c, "x");
            client_poll(&c);
            usleep(1000);
        }
        CHECK(client_status(&c) == 408, "case %zu: %s", i, c.got.ptr);
        CHECK(w.handled == 1, "case %zu", i);
        client_close(&c);
        end();
    }
}

static void idle_clients_are_closed_and_parked_ones_are_not(void **state)
{
    struct http_limits l = patience(100, 100, 100, 100);
    struct client idle[3];
    struct client parked;
    (void)state;
    begin(&l);
    client_open(&parked);
    client_say(&parked, "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL(&parked, w.parked_count == 1, "parked");
    for (int i = 0; i < 3; i++)
        client_open(&idle[i]);
    client_say(&idle[1], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    client_say(&idle[2], "GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n");
    for (int i = 0; i < 3; i++)
        EXPECT_END(&idle[i]);
    CHECK(idle[0].got.len == 0, "closed without a word");
    CHECK(client_status(&idle[1]) == 200, "%s", idle[1].got.ptr);
    CHECK(!parked.is_ended && w.lost == 0, "it may stay parked");
    http_answer(w.parked[0], 200, "text/plain", SLICE("at last"), NULL);
    EXPECT(&parked, "at last");
    for (int i = 0; i < 3; i++)
        client_close(&idle[i]);
    client_close(&parked);
    end();
}

static void a_client_that_does_not_take_its_answer_is_cut_off(void **state)
{
    struct http_limits l = patience(1000000, 1000000, 1000000, 100);
    struct client c;
    (void)state;
    begin(&l);
    w.big = 30000000;
    client_open(&c);
    client_say(&c, "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL(NULL, w.lost == 1, "still waiting");
    CHECK(http_connection_count(w.server) == 0, "closed");
    client_close(&c);
    end();
}

static void a_server_without_clients_sleeps(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    turn();
    CHECK(uv_backend_timeout(&w.loop) == -1, "nobody ever came");
    client_open(&c);
    client_say(&c, "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL(&c, w.parked_count == 1, "parked");
    client_close(&c);
    UNTIL(NULL, w.lost == 1, "gone");
    turn();
    CHECK(uv_backend_timeout(&w.loop) == -1, "all have gone");
    end();
}

static void connections_beyond_the_limit_are_turned_away(void **state)
{
    struct http_limits l = http_limits_default;
    struct client c[4];
    (void)state;
    l.connection_max = 2;
    begin(&l);
    for (int i = 0; i < 3; i++) {
        client_open(&c[i]);
        turn();
    }
    EXPECT_END(&c[2]);
    CHECK(client_status(&c[2]) == 503, "%s", c[2].got.ptr);
    CHECK(http_connection_count(w.server) == 2, "%zu", http_connection_count(w.server));
    client_close(&c[0]);
    UNTIL(NULL, http_connection_count(w.server) == 1, "it has gone");
    client_open(&c[3]);
    client_say(&c[3], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT(&c[3], "200 OK");
    for (int i = 1; i < 4; i++)
        client_close(&c[i]);
    end();
}

/* In a child, as it takes all descriptors. Its exit status says what was wrong. */
static int descriptors_run_out(void)
{
    struct client c[8];
    int turns = 0;

    begin(NULL);
    for (int i = 0; i < 8; i++)
        c[i] = (struct client){.fd = client_socket()};
    struct rlimit few = {(rlim_t)c[7].fd + 3, (rlim_t)c[7].fd + 3}; /* two more */
    if (setrlimit(RLIMIT_NOFILE, &few) != 0)
        return 2;
    for (int i = 0; i < 8; i++)
        client_connect(&c[i]);
    for (uint64_t at = uv_now(&w.loop); uv_now(&w.loop) - at < 300; turns++)
        uv_run(&w.loop, UV_RUN_ONCE);
    if (turns > 50)
        return 3; /* it spins */
    if (http_connection_count(w.server) == 0 || http_connection_count(w.server) > 2)
        return 4; /* libuv may take one of the two for itself */
    for (int i = 0; i < 8; i++) {
        client_say(&c[i], "GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        EXPECT_END(&c[i]);
        if (!client_has(&c[i], "GET /last"))
            return 5;
        client_close(&c[i]);
    }
    end();
    return 0;
}

static void a_server_without_descriptors_waits_for_some(void **state)
{
    int status = -1;
    (void)state;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(descriptors_run_out());
    CHECK(pid > 0, "fork");
    CHECK(waitpid(pid, &status, 0) == pid, "waitpid");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

/* --- the end --- */

static void a_draining_server_answers_what_it_has_and_no_more(void **state)
{
    struct client c[4];
    (void)state;
    begin(NULL);
    for (int i = 0; i < 3; i++)
        client_open(&c[i]);
    client_say(&c[0], "GET /idle HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT(&c[0], "GET /idle");
    client_say(&c[1], "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL(&c[1], w.parked_count == 1, "parked");
    client_say(&c[2], "POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    turn();
    http_drain(w.server);
    EXPECT_END(&c[0]);
    c[3] = (struct client){.fd = client_socket()};
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)http_port(w.server))};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(connect(c[3].fd, (struct sockaddr *)&a, sizeof a) != 0, "it still listens");
    client_say(&c[2], "lf");
    EXPECT(&c[2], "POST /half? half");
    http_answer(w.parked[0], 200, "text/plain", SLICE("the last"), NULL);
    EXPECT(&c[1], "the last");
    for (int i = 1; i < 3; i++) {
        EXPECT_END(&c[i]);
        CHECK(client_has(&c[i], "Connection: close\r\n"), "%s", c[i].got.ptr);
    }
    for (int i = 0; i < 4; i++)
        client_close(&c[i]);
    UNTIL(NULL, http_connection_count(w.server) == 0, "they have gone");
    CHECK(uv_loop_alive(&w.loop) == 0, "nothing is left to do");
    end();
}

static void closing_ends_every_request(void **state)
{
    struct client c[5];
    (void)state;
    begin(NULL);
    w.big = 20000000;
    for (int i = 0; i < 5; i++)
        client_open(&c[i]);
    client_say(&c[0], "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    client_say(&c[1], "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    client_say(&c[2], "POST /half HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nha");
    client_say(&c[3], "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL(&c[0], w.handled == 3, "%u", w.handled);
    http_answer(w.parked[1] ? w.parked[1] : w.parked[0], 200, NULL, SLICE("x"), NULL);
    http_close(w.server);
    w.is_closed = true;
    CHECK(w.sent == 1, "what was with the kernel was sent: %u", w.sent);
    CHECK(w.lost == 2, "%u", w.lost);
    for (int i = 0; i < 5; i++) {
        EXPECT_END(&c[i]);
        client_close(&c[i]);
    }
    end();
}

static void a_handler_may_close_the_server(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    w.closes_in_handler = true;
    client_open(&c);
    client_say(&c, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_END(&c);
    CHECK(w.lost == 1, "%u", w.lost);
    CHECK(c.got.len == 0, "%s", c.got.ptr);
    client_close(&c);
    end();
}

static void addresses_are_understood_or_refused_with_a_reason(void **state)
{
    static const struct {
        const char *address;
        enum err err;
        const char *reason;
    } cases[] = {
        {"127.0.0.1:0", ERR_OK, ""},
        {"localhost:0", ERR_OK, ""},
        {"127.0.0.1", ERR_INVALID, "listen on 127.0.0.1: expected ADDR:PORT"},
        {":7420", ERR_INVALID, "expected"},
        {"127.0.0.1:", ERR_INVALID, "expected"},
        {"::1:7420", ERR_INVALID, "expected"},
        {"127.0.0.1:http", ERR_INVALID, "listen on 127.0.0.1:http: "},
        {"300.0.0.1:80", ERR_INVALID, "listen on 300.0.0.1:80: "},
        {"192.0.2.1:7420", ERR_IO, "Cannot assign requested address"},
    };
    static const struct http_handler handler = {&w, handle, done};
    char taken[32];
    struct error e = {0};
    (void)state;
    begin(NULL);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct http_server *s = NULL;
        enum err err = http_listen(&w.loop, cases[i].address, NULL, &handler, &s, &e);
        CHECK(err == cases[i].err, "%s: %s", cases[i].address, e.text);
        if (err == ERR_OK)
            http_close(s);
        else
            CHECK(strstr(e.text, cases[i].reason), "%s: %s", cases[i].address, e.text);
    }
    snprintf(taken, sizeof taken, "127.0.0.1:%d", http_port(w.server));
    struct http_server *s = NULL;
    CHECK(http_listen(&w.loop, taken, NULL, &handler, &s, &e) == ERR_IO, "taken");
    CHECK(strstr(e.text, "Address already in use"), "%s", e.text);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_ends_as_it_must),
        cmocka_unit_test(the_way_bytes_are_cut_changes_nothing),
        cmocka_unit_test(a_request_is_taken_apart),
        cmocka_unit_test(fields_and_parameters_are_found_by_name),
        cmocka_unit_test(chunks_are_read_however_they_are_cut),
        cmocka_unit_test(answers_come_in_the_order_of_the_requests),
        cmocka_unit_test(a_parked_request_holds_back_those_behind_it),
        cmocka_unit_test(parked_requests_are_answered_in_any_order),
        cmocka_unit_test(what_an_answer_looks_like),
        cmocka_unit_test(a_client_that_asks_before_it_sends_is_told_to_go_on),
        cmocka_unit_test(a_big_answer_arrives_whole),
        cmocka_unit_test(a_client_that_goes_while_parked_is_noticed),
        cmocka_unit_test(much_is_read_ahead_and_served_later),
        cmocka_unit_test(a_client_may_go_after_any_byte),
        cmocka_unit_test(a_client_that_closes_its_side_gets_its_answers),
        cmocka_unit_test(a_client_that_goes_while_it_is_answered_is_noticed),
        cmocka_unit_test(a_client_may_go_in_the_moment_of_its_answer),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(a_refusal_survives_a_client_that_goes_on_sending),
        cmocka_unit_test(slow_clients_are_cut_off_even_if_they_make_progress),
        cmocka_unit_test(idle_clients_are_closed_and_parked_ones_are_not),
        cmocka_unit_test(a_client_that_does_not_take_its_answer_is_cut_off),
        cmocka_unit_test(a_server_without_clients_sleeps),
        cmocka_unit_test(connections_beyond_the_limit_are_turned_away),
        cmocka_unit_test(a_server_without_descriptors_waits_for_some),
        cmocka_unit_test(a_draining_server_answers_what_it_has_and_no_more),
        cmocka_unit_test(closing_ends_every_request),
        cmocka_unit_test(a_handler_may_close_the_server),
        cmocka_unit_test(addresses_are_understood_or_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
