/* Tests of http_stream.c over real sockets: responses that come in pieces, chunked, sized and cut,
 * with slow and vanishing clients. test_kit.h has the server and its clients. */

#include "http/test_kit.h"

#include <sys/socket.h>

#include "http/connection.h"

#define ASK(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static struct http_request *begin_stream(struct client *c, const char *request)
{
    unsigned before = w.parked_count;

    client_open(c);
    client_say(c, request);
    UNTIL(c, w.parked_count == before + 1, "the stream did not begin");
    return w.parked[before];
}

static void pieces_arrive_as_they_are_written(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    struct http_request *r = begin_stream(&c, ASK("/stream"));
    EXPECT(&c, "\r\n\r\n");
    CHECK(slice_is(buf_view(&c.got), "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                     "Transfer-Encoding: chunked\r\nX-Extra: 1\r\n\r\n"),
          "%s", c.got.ptr);
    buf_clear(&c.got);
    CHECK(http_stream_write(r, SLICE("hello")), "taken");
    EXPECT(&c, "5\r\nhello\r\n");
    CHECK(http_stream_write(r, SLICE("")), "nothing is no end");
    CHECK(http_stream_write(r, SLICE("0123456789abcdef")), "taken");
    EXPECT(&c, "5\r\nhello\r\n10\r\n0123456789abcdef\r\n");
    CHECK(http_stream_backlog(r) == 0, "%zu", http_stream_backlog(r));
    http_stream_end(r);
    CHECK(w.sent == 0, "done does not come from inside");
    http_stream_end(r);
    CHECK(!http_stream_write(r, SLICE("x")), "it has ended");
    EXPECT(&c, "0\r\n\r\n");
    UNTIL(&c, w.sent == 1, "done");
    buf_clear(&c.got);
    client_say(&c, ASK("/after"));
    EXPECT(&c, "GET /after? ");
    client_close(&c);
    end();
}

/* Texts are kept by those who were not sent all of them, and not copied. */
static void a_text_is_shared_by_those_who_wait_for_it(void **state)
{
    enum { SIZE = 1 << 20 };
    struct buf bytes = {0};
    struct client c[2];
    (void)state;
    begin(NULL);
    memset(buf_room(&bytes, SIZE), 'x', SIZE);
    bytes.len = SIZE;
    struct http_text *text = http_text_new(&bytes);
    for (size_t i = 0; i < COUNT_OF(c); i++) {
        struct http_request *r = begin_stream(&c[i], ASK("/stream"));
        CHECK(http_stream_write_text(r, text), "taken");
        CHECK(text->refs >= 2, "%u", text->refs);
        CHECK(http_stream_backlog(r) > http_limits_default.stream_backlog_max, "%zu",
              http_stream_backlog(r));
        CHECK(http_stream_write(r, SLICE("last")),
              "a last word goes behind what waits for its turn");
        CHECK(!http_stream_write_text(r, text), "more does not");
        http_stream_end(r);
    }
    for (size_t i = 0; i < COUNT_OF(c); i++) {
        UNTIL(&c[i], client_has(&c[i], "\r\n4\r\nlast\r\n0\r\n\r\n"), "the end");
        CHECK(c[i].got.len > SIZE, "%zu", c[i].got.len);
        client_close(&c[i]);
    }
    CHECK(text->refs == 1, "%u", text->refs);
    http_text_drop(text);
    end();
}

static void a_stream_may_begin_and_end_in_its_handler(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, ASK("/stream?short") ASK("/stream?short") ASK("/after"));
    EXPECT(&c, "GET /after? ");
    CHECK(client_count(&c, "\r\n\r\n3\r\nall\r\n0\r\n\r\n") == 2, "%s", c.got.ptr);
    CHECK(w.sent == 3, "%u", w.sent);
    client_close(&c);
    end();
}

static void what_comes_behind_a_stream_waits_for_its_end(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    struct http_request *r = begin_stream(&c, ASK("/stream") ASK("/after"));
    for (int i = 0; i < 10; i++)
        turn();
    CHECK(w.handled == 1, "%u", w.handled);
    CHECK(http_stream_write(r, SLICE("x")), "taken");
    http_stream_end(r);
    EXPECT(&c, "1\r\nx\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n");
    EXPECT(&c, "GET /after? ");
    client_close(&c);
    end();
}

static void http_1_0_gets_bytes_until_the_end(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    struct http_request *r =
        begin_stream(&c, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    CHECK(http_stream_write(r, SLICE("one")), "taken");
    CHECK(http_stream_write(r, SLICE("two")), "taken");
    http_stream_end(r);
    EXPECT_END(&c);
    CHECK(slice_is(buf_view(&c.got), "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                                     "Connection: close\r\nX-Extra: 1\r\n\r\nonetwo"),
          "%s", c.got.ptr);
    CHECK(w.sent == 1, "%u", w.sent);
    client_close(&c);
    end();
}

static void a_head_is_answered_at_once(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    struct http_request *r = begin_stream(&c, "HEAD /stream HTTP/1.1\r\nHost: a\r\n\r\n");
    (void)r; /* `done` may have been called already */
    UNTIL(&c, w.sent == 1, "done");
    client_say(&c, ASK("/after"));
    EXPECT(&c, "GET /after? ");
    CHECK(client_has(&c, "X-Extra: 1\r\n\r\nHTTP/1.1 200 OK"), "%s", c.got.ptr);
    client_close(&c);
    end();
}

/* Three kinds of disconnect: closing, closing one side, a reset. */
static void a_client_that_goes_is_noticed(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        struct client c;
        begin(NULL);
        struct http_request *r = begin_stream(&c, ASK("/stream"));
        CHECK(http_stream_write(r, SLICE("x")), "taken");
        EXPECT(&c, "1\r\nx\r\n");
        if (how == 0)
            client_close(&c);
        else if (how == 1)
            shutdown(c.fd, SHUT_WR);
        else
            client_reset(&c);
        UNTIL(NULL, w.lost == 1, "nobody noticed (%d)", how);
        CHECK(!w.parked[0], "done was called");
        CHECK(http_connection_count(w.server) == 0, "closed");
        client_close(&c);
        end();
    }
}

/* It has disconnected, but the loop has not checked yet. */
static void writing_to_a_client_that_has_gone_ends_the_stream(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    struct http_request *r = begin_stream(&c, ASK("/stream"));
    client_reset(&c);
    for (int i = 0; i < PATIENCE_MS && http_stream_write(r, SLICE("x")); i++)
        test_pause();
    CHECK(!http_stream_write(r, SLICE("x")), "it is broken");
    CHECK(http_stream_backlog(r) == 0, "nothing waits");
    http_stream_end(r);
    CHECK(w.lost == 0, "done does not come from inside");
    UNTIL(NULL, w.lost == 1, "nobody noticed");
    end();
}

static unsigned fill(struct http_request *r)
{
    char bytes[10000];
    unsigned count = 0;

    memset(bytes, 'x', sizeof bytes);
    while (http_stream_write(r, (struct slice){bytes, sizeof bytes})) {
        count++;
        CHECK(count < 100000, "there is no end to it");
    }
    return count;
}

static void a_slow_reader_gets_all_that_was_taken(void **state)
{
    struct http_limits l = http_limits_default;
    struct client c;
    (void)state;
    l.stream_backlog_max = 50000;
    begin(&l);
    struct http_request *r = begin_stream(&c, ASK("/stream"));
    unsigned count = fill(r);
    CHECK(http_stream_backlog(r) > 50000, "%zu", http_stream_backlog(r));
    CHECK(http_stream_backlog(r) < 50000 + 2 * 10010, "%zu", http_stream_backlog(r));
    CHECK(!http_stream_write(r, SLICE("not taken")), "it is full");
    UNTIL(&c, http_stream_backlog(r) == 0, "it reads");
    CHECK(http_stream_write(r, SLICE("the last")), "there is room again");
    http_stream_end(r);
    EXPECT(&c, "8\r\nthe last\r\n0\r\n\r\n");
    CHECK(client_count(&c, "\r\n2710\r\nx") == count, "%u", count);
    CHECK(!client_has(&c, "not taken"), "it was refused");
    UNTIL(&c, w.sent == 1, "done");
    client_close(&c);
    end();
}

static void the_end_of_a_stream_waits_for_its_reader(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    struct http_request *r = begin_stream(&c, ASK("/stream") ASK("/after"));
    (void)fill(r);
    http_stream_end(r);
    for (int i = 0; i < 10; i++)
        turn();
    CHECK(w.sent == 0, "it is not with the kernel");
    CHECK(w.handled == 1, "%u", w.handled);
    EXPECT(&c, "0\r\n\r\nHTTP/1.1 200 OK");
    EXPECT(&c, "GET /after? ");
    client_close(&c);
    end();
}

static void a_reader_that_stops_is_cut_off_and_a_quiet_stream_is_not(void **state)
{
    struct http_limits l = http_limits_default;
    struct client quiet;
    struct client c;
    (void)state;
    begin(&l);
    struct http_request *q = begin_stream(&quiet, ASK("/stream"));
    turn();
    for (int i = 0; i < HTTP_WAIT_COUNT; i++)
        CHECK(!list_first(&w.server->waiting[i]), "it has a deadline (%d)", i);
    struct http_request *r = begin_stream(&c, ASK("/stream"));
    w.server->wait_ms[HTTP_WAIT_WRITE] = w.server->wait_ms[HTTP_WAIT_IDLE] = 100; /* from now on */
    (void)fill(r);
    UNTIL(NULL, w.lost == 1, "still waiting");
    CHECK(w.parked[0] == q, "the quiet one is there");
    CHECK(http_stream_write(q, SLICE("at last")), "taken");
    EXPECT(&quiet, "at last");
    client_close(&quiet);
    client_close(&c);
    end();
}

static ssize_t read_some(const struct client *c)
{
    char bytes[8192];

    return recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
}

/* Its deadline passes many times over while it reads a little each time. */
static void a_reader_that_makes_progress_is_not_cut_off(void **state)
{
    struct http_limits l = http_limits_default;
    struct client c;
    (void)state;
    l.write_ms = 1000000;
    l.stream_backlog_max = 40000000;
    begin(&l);
    struct http_request *r = begin_stream(&c, ASK("/stream"));
    (void)fill(r);
    turn();
    struct link *first = list_first(&w.server->waiting[HTTP_WAIT_WRITE]);
    CHECK(first, "it waits");
    struct http_connection *conn = CONTAINER_OF(first, struct http_connection, waiting);
    for (int i = 0; i < 3; i++) {
        size_t before = http_stream_backlog(r);
        while (http_stream_backlog(r) == before) {
            (void)read_some(&c);
            turn();
        }
        CHECK(http_stream_backlog(r) > 0, "not all of it");
        http_connection_expire(conn);
        CHECK(w.lost == 0, "it was cut off");
        CHECK(conn->wait == HTTP_WAIT_WRITE, "it has a new deadline");
    }
    http_connection_expire(conn);
    CHECK(w.lost == 1, "without progress it is cut off");
    client_close(&c);
    end();
}

static void a_client_that_sends_on_is_not_read_for_ever(void **state)
{
    CLEANUP(buf_fini) struct buf much = {0};
    struct client c;
    (void)state;
    begin(NULL);
    struct http_request *r = begin_stream(&c, ASK("/stream"));
    for (int i = 0; i < 2000; i++)
        buf_str(&much, ASK("/more"));
    client_send(&c, buf_view(&much));
    for (int i = 0; i < 100; i++)
        turn();
    CHECK(http_stream_write(r, SLICE("x")), "taken");
    http_stream_end(r);
    UNTIL(&c, w.sent == 2001, "%u", w.sent);
    client_close(&c);

    w.parked_count = 0;
    (void)begin_stream(&c, ASK("/stream"));
    client_send(&c, buf_view(&much));
    client_close(&c);
    UNTIL(NULL, w.lost == 1, "nobody noticed that it went");
    end();
}

static void a_draining_server_says_so_at_the_end(void **state)
{
    struct client c[2];
    struct http_request *r[2];
    (void)state;
    begin(NULL);
    for (int i = 0; i < 2; i++)
        r[i] = begin_stream(&c[i], ASK("/stream"));
    http_drain(w.server);
    CHECK(http_stream_write(r[0], SLICE("go on")), "streams go on");
    http_stream_end(r[0]);
    EXPECT_END(&c[0]);
    CHECK(client_has(&c[0], "5\r\ngo on\r\n0\r\n\r\n"), "%s", c[0].got.ptr);
    http_close(w.server);
    w.is_closed = true;
    CHECK(w.lost == 1, "%u", w.lost);
    EXPECT_END(&c[1]);
    client_close(&c[0]);
    client_close(&c[1]);
    end();
}

/* ---- of known length ---- */

static struct http_request *begin_sized(struct client *c, const char *request, uint64_t size)
{
    unsigned before = w.parked_count;

    client_open(c);
    client_say(c, request);
    UNTIL(c, w.parked_count == before + 1, "it is not handled");
    http_stream_begin_sized(w.parked[before], 200, "application/x", NULL, size);
    return w.parked[before];
}

static void a_sized_stream_says_how_long_it_is(void **state)
{
    static const char *const requests[] = {ASK("/park"),
                                           "GET /park HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"};
    static const char *const kept[] = {"", "Connection: keep-alive\r\n"};
    CLEANUP(buf_fini) struct buf want = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(requests); i++) {
        struct client c;
        begin(NULL);
        struct http_request *r = begin_sized(&c, requests[i], 8);
        CHECK(http_stream_write(r, SLICE("hello")), "taken");
        CHECK(http_stream_write(r, SLICE("")), "nothing");
        CHECK(http_stream_write(r, SLICE(" me")), "taken");
        http_stream_end(r);
        EXPECT(&c, "hello me");
        UNTIL(&c, w.sent == 1, "done");
        buf_clear(&want);
        buf_fmt(&want,
                "HTTP/1.1 200 OK\r\nContent-Type: application/x\r\nContent-Length: 8\r\n%s\r\n"
                "hello me",
                kept[i]);
        CHECK(slice_eq(buf_view(&c.got), buf_view(&want)), "%s", c.got.ptr);
        client_say(&c, ASK("/after"));
        EXPECT(&c, "GET /after? ");
        client_close(&c);
        end();
    }
}

static void a_sized_stream_that_ends_early_is_cut(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    struct http_request *r = begin_sized(&c, ASK("/park"), 8);
    CHECK(http_stream_write(r, SLICE("hello")), "taken");
    http_stream_end(r);
    EXPECT_END(&c);
    CHECK(client_has(&c, "\r\n\r\nhello") && w.sent == 0 && w.lost == 1, "%s", c.got.ptr);
    client_close(&c);
    end();
}

static void it_is_told_when_all_was_taken(void **state)
{
    static char bytes[24 << 20]; /* more than the kernel buffers for a loopback connection */
    struct client c;
    (void)state;
    begin(NULL);
    struct http_request *r = begin_sized(&c, ASK("/park"), 2 * sizeof bytes);
    CHECK(http_stream_write(r, (struct slice){bytes, sizeof bytes}), "taken");
    CHECK(http_stream_backlog(r) > 0 && w.flushed == 0, "something waits");
    UNTIL(&c, w.flushed == 1, "told");
    CHECK(http_stream_backlog(r) == 0, "nothing waits");
    CHECK(http_stream_write(r, (struct slice){bytes, sizeof bytes}), "taken");
    http_stream_end(r);
    UNTIL(&c, w.sent == 1, "done");
    CHECK(w.flushed == 1, "not of the end");
    client_close(&c);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_arrive_as_they_are_written),
        cmocka_unit_test(a_text_is_shared_by_those_who_wait_for_it),
        cmocka_unit_test(a_stream_may_begin_and_end_in_its_handler),
        cmocka_unit_test(what_comes_behind_a_stream_waits_for_its_end),
        cmocka_unit_test(http_1_0_gets_bytes_until_the_end),
        cmocka_unit_test(a_head_is_answered_at_once),
        cmocka_unit_test(a_client_that_goes_is_noticed),
        cmocka_unit_test(writing_to_a_client_that_has_gone_ends_the_stream),
        cmocka_unit_test(a_slow_reader_gets_all_that_was_taken),
        cmocka_unit_test(the_end_of_a_stream_waits_for_its_reader),
        cmocka_unit_test(a_reader_that_stops_is_cut_off_and_a_quiet_stream_is_not),
        cmocka_unit_test(a_reader_that_makes_progress_is_not_cut_off),
        cmocka_unit_test(a_client_that_sends_on_is_not_read_for_ever),
        cmocka_unit_test(a_draining_server_says_so_at_the_end),
        cmocka_unit_test(a_sized_stream_says_how_long_it_is),
        cmocka_unit_test(a_sized_stream_that_ends_early_is_cut),
        cmocka_unit_test(it_is_told_when_all_was_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
