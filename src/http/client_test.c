/* Tests of the HTTP server with clients that vanish, are slow, send too much, or are too many,
 * over real sockets in one thread. test_kit.h has the server and its clients; http_test.c has
 * clients that behave. */

#include "http/test_kit.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "http/cases.h"
#include "http/connection.h"

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
            /* More than the read-ahead limit. */
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
        /* Both events are ready when the loop polls, in either order. */
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

static void limits_hold(void **state)
{
    static const struct http_limits limits = {.body_max = 10,
                                              .line_max = 100,
                                              .head_max = 200,
                                              .header_count_max = 4,
                                              .connection_max = 10,
                                              .memory_max = 1000000,
                                              .head_ms = 1000000,
                                              .body_ms = 1000000,
                                              .idle_ms = 1000000,
                                              .write_ms = 1000000};
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
        {"GET /", "x", 86, H "\r\n", 200}, /* 100 in its line */
        {"GET /", "x", 87, H "\r\n", 414},
        {"\r\n\r\nGET /", "x", 86, H "\r\n", 200},
        {"\r\n\r\nGET /", "x", 87, H "\r\n", 414},
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

static void bodies_beyond_the_memory_are_refused_and_small_requests_are_not(void **state)
{
    static const char head[] = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 60001\r\n\r\n";
    CLEANUP(buf_fini) struct buf most = {0};
    struct http_limits l = http_limits_default;
    struct client c[3];
    (void)state;
    l.memory_max = 140000;
    begin(&l);
    buf_str(&most, head);
    memset(buf_room(&most, 60000), 'x', 60000);
    most.len += 60000;
    for (int i = 0; i < 3; i++)
        client_open(&c[i]);
    client_send(&c[0], buf_view(&most));
    UNTIL(&c[0], http_held(w.server) >= 60000, "%zu held", http_held(w.server));
    client_send(&c[1], buf_view(&most));
    client_send(&c[1], buf_view(&most));
    EXPECT_END(&c[1]);
    CHECK(client_status(&c[1]) == 503, "%s", c[1].got.ptr);
    CHECK(client_has(&c[1], "Retry-After: 1\r\n"), "%s", c[1].got.ptr);
    CHECK(http_held(w.server) <= 140000, "%zu held", http_held(w.server));
    client_say(&c[2], "GET /small HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT(&c[2], "GET /small? ");
    client_say(&c[0], "x");
    EXPECT(&c[0], "200 OK");
    UNTIL(&c[0], c[0].got.len > 60000, "%zu bytes", c[0].got.len);
    client_send(&c[2], buf_view(&most));
    client_say(&c[2], "x");
    UNTIL(&c[2], c[2].got.len > 60000, "there is room again: %s", c[2].got.ptr);
    for (int i = 0; i < 3; i++)
        client_close(&c[i]);
    UNTIL(NULL, http_connection_count(w.server) == 0, "they have gone");
    CHECK(http_held(w.server) == 0, "%zu held", http_held(w.server));
    end();
}

static void who_does_not_take_its_answer_is_cut_off_when_memory_is_short(void **state)
{
    struct http_limits l = http_limits_default;
    struct client c[2];
    (void)state;
    l.memory_max = 30000000;
    begin(&l);
    w.big = 20000000;
    for (int i = 0; i < 2; i++) {
        client_open(&c[i]);
        client_say(&c[i], "GET /big HTTP/1.1\r\nHost: a\r\n\r\n");
        UNTIL(NULL, w.handled == (unsigned)i + 1, "handled");
        turn();
    }
    CHECK(w.lost == 1, "one of them: %u", w.lost);
    CHECK(http_held(w.server) <= 30000000, "%zu held", http_held(w.server));
    EXPECT_END(&c[1]);
    UNTIL(&c[0], c[0].got.len > w.big, "only %zu bytes came", c[0].got.len);
    for (int i = 0; i < 2; i++)
        client_close(&c[i]);
    end();
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

/* The server closes long before the two seconds for which it would discard. */
static void a_refused_client_cannot_send_without_end(void **state)
{
    enum { MUCH = 400000000, BOUND = 100000000 };
    static char piece[1 << 20];
    struct client c;
    size_t sent = 0;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000000\r\n\r\n");
    UNTIL(&c, client_has(&c, "413"), "it is refused");
    for (int ms = 0; sent < MUCH; ms++) {
        ssize_t n = send(c.fd, piece, sizeof piece, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN)
            break;
        sent += n > 0 ? (size_t)n : 0;
        CHECK(ms < PATIENCE_MS, "cannot send");
        turn();
        if (n < 0)
            test_pause();
    }
    CHECK(sent < BOUND, "%zu bytes were taken", sent);
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
    struct http_limits never = patience(1000000, 1000000, 1000000, 1000000);
    static const char *const begins[] = {
        "GET / HTTP/1.1\r\nA: ",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4000000\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: ",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(begins); i++) {
        struct client c;
        begin(&never);
        client_open(&c);
        client_say(&c, "GET /before HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT(&c, "200 OK");
        w.server->wait_ms[i == 0 ? HTTP_WAIT_HEAD : HTTP_WAIT_BODY] = 100; /* from now on */
        client_say(&c, begins[i]);
        for (int n = 0; !c.is_ended; n++) {
            CHECK(n < 10000, "case %zu: it drips on", i);
            client_say(&c, "x");
            client_poll(&c);
            test_pause();
        }
        CHECK(client_status(&c) == 408, "case %zu: %s", i, c.got.ptr);
        CHECK(w.handled == 1, "case %zu", i);
        client_close(&c);
        end();
    }
}

static uint64_t head_deadline(void)
{
    struct link *first = list_first(&w.server->waiting[HTTP_WAIT_HEAD]);

    return first ? CONTAINER_OF(first, struct http_connection, waiting)->deadline : 0;
}

static void every_request_has_its_own_deadline(void **state)
{
    struct client c;
    (void)state;
    begin(NULL);
    client_open(&c);
    client_say(&c, "GET / HTTP/1.1\r\nHo");
    UNTIL(&c, head_deadline() > 0, "half a head");
    uint64_t first = head_deadline();
    while (uv_now(&w.loop) + w.server->limits.head_ms == first) {
        test_pause();
        turn();
    }
    client_say(&c, "st: ");
    turn();
    CHECK(head_deadline() == first, "progress does not move it");
    client_say(&c, "a\r\n\r\nGET / HTTP/1.1\r\nHo");
    EXPECT(&c, "200 OK");
    CHECK(head_deadline() > first, "it is another request");
    client_close(&c);
    end();
}

static void idle_clients_are_closed_and_parked_ones_are_not(void **state)
{
    struct http_limits l = patience(2000, 2000, 2000, 2000);
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

/* Runs in a child process, because it uses up all descriptors. Its exit status identifies the
 * failure. */
static int descriptors_run_out(void)
{
    struct client c[8];
    int turns = 0;

    begin(NULL);
    for (int i = 0; i < 8; i++)
        c[i] = (struct client){.fd = client_socket(SOCK_NONBLOCK)};
    struct rlimit few = {(rlim_t)c[7].fd + 3, (rlim_t)c[7].fd + 3}; /* two more */
    if (setrlimit(RLIMIT_NOFILE, &few) != 0)
        return 2;
    for (int i = 0; i < 8; i++)
        CHECK(client_connect(&c[i]) == 0, "connected");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_goes_while_parked_is_noticed),
        cmocka_unit_test(much_is_read_ahead_and_served_later),
        cmocka_unit_test(a_client_may_go_after_any_byte),
        cmocka_unit_test(a_client_that_closes_its_side_gets_its_answers),
        cmocka_unit_test(a_client_that_goes_while_it_is_answered_is_noticed),
        cmocka_unit_test(a_client_may_go_in_the_moment_of_its_answer),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(bodies_beyond_the_memory_are_refused_and_small_requests_are_not),
        cmocka_unit_test(who_does_not_take_its_answer_is_cut_off_when_memory_is_short),
        cmocka_unit_test(a_refusal_survives_a_client_that_goes_on_sending),
        cmocka_unit_test(a_refused_client_cannot_send_without_end),
        cmocka_unit_test(slow_clients_are_cut_off_even_if_they_make_progress),
        cmocka_unit_test(every_request_has_its_own_deadline),
        cmocka_unit_test(idle_clients_are_closed_and_parked_ones_are_not),
        cmocka_unit_test(a_client_that_does_not_take_its_answer_is_cut_off),
        cmocka_unit_test(a_server_without_clients_sleeps),
        cmocka_unit_test(connections_beyond_the_limit_are_turned_away),
        cmocka_unit_test(a_server_without_descriptors_waits_for_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
