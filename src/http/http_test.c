/* Requests and responses over real sockets: the cases of cases.h, parking, refusals, and
 * shutdown. */
#include "http/test_kit.h"

#include <errno.h>
#include <sys/socket.h>

#include "http/cases.h"
#include "http/connection.h"

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

/* Input after the head of a refused request is discarded, whatever its size. */
static void a_body_that_is_not_wanted_is_never_kept(void **state)
{
    CLEANUP(buf_fini) struct buf piece = {0};
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, "POST /refused HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                   "Content-Length: 3000000\r\n\r\n");
    EXPECT(&c, "HTTP/1.1 403 ");
    CHECK(!client_has(&c, "100 Continue"), "%s", c.got.ptr);
    CHECK(client_has(&c, "Connection: close"), "%s", c.got.ptr);
    while (piece.len < 30000)
        buf_str(&piece, "POST /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    for (int i = 0; i < 50; i++) {
        client_send(&c, buf_view(&piece));
        turn();
        CHECK(http_held(w.server) == 0, "%zu bytes are kept", http_held(w.server));
    }
    CHECK(w.handled == 1, "%u requests", w.handled);
    client_close(&c);
    end();
}

static void a_body_that_is_not_wanted_waits_unread(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, "POST /held HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    UNTIL(&c, w.parked_count == 1, "held by its head");
    client_say(&c, "4\r\nbody\r\n0\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n");
    http_answer(w.parked[0], 200, "text/plain", SLICE("without"), NULL);
    EXPECT(&c, "without");
    client_close(&c);
    CHECK(w.handled == 1, "%u requests", w.handled);
    end();
}

static void a_body_may_be_bounded_by_its_head(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, "POST /ten HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                   "Content-Length: 10\r\n\r\n");
    EXPECT(&c, "100 Continue");
    client_say(&c, "0123456789");
    EXPECT(&c, "POST /ten? 0123456789");
    client_say(&c, "POST /ten HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client_say(&c, "a\r\n9876543210\r\n0\r\n\r\n");
    EXPECT(&c, "POST /ten? 9876543210");
    client_say(&c, "POST /ten HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    client_say(&c, "a\r\n9876543210\r\n1\r\n");
    EXPECT(&c, "HTTP/1.1 413 ");
    client_close(&c);
    client_open(&c);
    client_say(&c, "POST /ten HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n");
    EXPECT(&c, "HTTP/1.1 413 ");
    client_close(&c);
    end();
}

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
    static struct client c[PARKED_MAX];
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

/* What was read of the one body that is coming in. */
static size_t body_bytes(void)
{
    struct link *first = list_first(&w.server->connections);

    if (!first)
        return 0;
    const struct http_connection *c = CONTAINER_OF(first, struct http_connection, all);
    return c->reader.message ? c->reader.message->body.len : 0;
}

/* Each round takes a reading's worth of what is there: others do not wait for all of it. */
static void much_is_read_by_turns(void **state)
{
    enum { ALL = 3000000, ONE = 64 * 1024 };
    CLEANUP(buf_fini) struct buf piece = {0};
    struct client c;
    size_t before = 0;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3000000\r\n\r\n");
    while (http_connection_count(w.server) == 0)
        turn();
    turn();
    memset(buf_room(&piece, ONE), 'x', ONE);
    piece.len = ONE;
    for (int i = 0; i < 6; i++) /* the kernel keeps it */
        CHECK(send(c.fd, piece.ptr, piece.len, MSG_DONTWAIT) > 0, "%s", strerror(errno));
    for (int i = 0; i < 100 && before < 3 * ONE; i++) {
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        size_t now = body_bytes();
        CHECK(now - before <= ONE, "%zu bytes in one round", now - before);
        before = now;
    }
    CHECK(before >= 3 * ONE, "only %zu were read", before);
    client_close(&c);
    end();
}

/* However many requests come together, a round serves some of them; all are answered, also when the
 * client says that it sends no more. */
static void many_requests_are_served_by_turns(void **state)
{
    enum { ALL = 1000, ROUND = 320 }; /* of 64 at once, five times */
    CLEANUP(buf_fini) struct buf text = {0};
    struct client c;
    unsigned before = 0;
    (void)state;
    begin(NULL);
    client_open(&c);
    while (http_connection_count(w.server) == 0)
        turn();
    for (int i = 0; i < ALL; i++)
        buf_str(&text, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    CHECK(send(c.fd, text.ptr, text.len, MSG_DONTWAIT) == (ssize_t)text.len, "%s", strerror(errno));
    CHECK(shutdown(c.fd, SHUT_WR) == 0, "%s", strerror(errno));
    for (int i = 0; i < 100 && w.handled < ALL; i++) {
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
        CHECK(w.handled - before <= ROUND, "%u requests in one round", w.handled - before);
        before = w.handled;
    }
    EXPECT_END(&c);
    assert_int_equal(client_count(&c, "HTTP/1.1 200"), ALL);
    client_close(&c);
    end();
}

/* What one turn does not write is written in the next ones, whether or not the kernel had taken it:
 * so two that read much get it side by side. */
static void much_is_written_by_turns(void **state)
{
    enum { BIG = 2000000, SLICE_LEN = 128 << 10 };
    struct client c[2];
    (void)state;
    begin(NULL);
    w.big = BIG;
    for (size_t i = 0; i < COUNT_OF(c); i++)
        client_open(&c[i]);
    for (size_t i = 0; i < COUNT_OF(c); i++)
        client_say(&c[i], "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
    while (w.handled < COUNT_OF(c))
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    CHECK(http_held(w.server) >= BIG - 2 * SLICE_LEN, "%zu left at once", http_held(w.server));
    for (size_t i = 0; i < COUNT_OF(c); i++)
        UNTIL(&c[i], c[i].got.len > BIG, "only %zu bytes came", c[i].got.len);
    CHECK(http_held(w.server) == 0, "%zu", http_held(w.server));
    CHECK(w.wrote > 2, "whose time it was is told: %u", w.wrote);
    for (size_t i = 0; i < COUNT_OF(c); i++)
        client_close(&c[i]);
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
    c[3] = (struct client){.fd = client_socket(0)};
    CHECK(client_connect(&c[3]) == ECONNREFUSED, "it still listens");
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

/* From inside the handler, and later. */
static void a_connection_can_be_broken_instead_of_an_answer(void **state)
{
    struct client c[2];
    (void)state;
    begin(NULL);
    for (int i = 0; i < 2; i++)
        client_open(&c[i]);
    client_say(&c[0], "GET /break HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_END(&c[0]);
    CHECK(c[0].got.len == 0, "it got %s", c[0].got.ptr);
    client_say(&c[1], "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
    UNTIL(&c[1], w.handled == 2, "%u", w.handled);
    http_break(w.parked[0]);
    CHECK(w.lost == 2, "done was called for both: %u", w.lost);
    EXPECT_END(&c[1]);
    CHECK(c[1].got.len == 0, "it got %s", c[1].got.ptr);
    for (int i = 0; i < 2; i++)
        client_close(&c[i]);
    end();
}

static void what_is_refused_is_told(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, "nonsense\r\n\r\n");
    EXPECT_END(&c);
    CHECK(w.refused == 1 && w.refused_status == 400, "%u, %d", w.refused, w.refused_status);
    client_close(&c);
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

static void the_end_of_a_request_may_close_the_server(void **state)
{
    struct client c[3];
    (void)state;
    begin(NULL);
    for (unsigned i = 0; i < 3; i++) {
        client_open(&c[i]);
        client_say(&c[i], "GET /park HTTP/1.1\r\nHost: a\r\n\r\n");
        UNTIL(&c[i], w.parked_count == i + 1, "parked");
    }
    w.closes_in_done = true;
    for (unsigned i = 0; i < 3; i++)
        http_answer(w.parked[i], 200, NULL, SLICE("x"), NULL);
    for (unsigned i = 0; i < 3; i++) {
        EXPECT_END(&c[i]);
        CHECK(client_status(&c[i]) == 200, "%s", c[i].got.ptr);
        client_close(&c[i]);
    }
    CHECK(w.sent == 3, "%u", w.sent);
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
        {"192.0.2.1:7420", ERR_IO, "address not available"},
    };
    static const struct http_handler handler = {.arg = &w};
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
    CHECK(strstr(e.text, "address already in use"), "%s", e.text);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_ends_as_it_must),
        cmocka_unit_test(chunks_are_read_however_they_are_cut),
        cmocka_unit_test(a_body_that_is_not_wanted_is_never_kept),
        cmocka_unit_test(a_body_that_is_not_wanted_waits_unread),
        cmocka_unit_test(a_body_may_be_bounded_by_its_head),
        cmocka_unit_test(answers_come_in_the_order_of_the_requests),
        cmocka_unit_test(a_parked_request_holds_back_those_behind_it),
        cmocka_unit_test(parked_requests_are_answered_in_any_order),
        cmocka_unit_test(what_an_answer_looks_like),
        cmocka_unit_test(a_client_that_asks_before_it_sends_is_told_to_go_on),
        cmocka_unit_test(much_is_read_by_turns),
        cmocka_unit_test(many_requests_are_served_by_turns),
        cmocka_unit_test(much_is_written_by_turns),
        cmocka_unit_test(a_big_answer_arrives_whole),
        cmocka_unit_test(a_draining_server_answers_what_it_has_and_no_more),
        cmocka_unit_test(a_connection_can_be_broken_instead_of_an_answer),
        cmocka_unit_test(what_is_refused_is_told),
        cmocka_unit_test(closing_ends_every_request),
        cmocka_unit_test(a_handler_may_close_the_server),
        cmocka_unit_test(the_end_of_a_request_may_close_the_server),
        cmocka_unit_test(addresses_are_understood_or_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
