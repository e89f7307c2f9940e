#include "http/test_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct world w;

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
    } else if (slice_is(r->path, "/stream")) {
        w.parked[w.parked_count++] = r;
        http_stream_begin(r, 200, "text/event-stream", "X-Extra: 1\r\n");
        if (slice_is(r->query, "short")) {
            CHECK(http_stream_write(r, SLICE("all")), "taken");
            http_stream_end(r);
            CHECK(!http_stream_write(r, SLICE("late")), "it has ended");
        }
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
    if (w.closes_in_done && !w.is_closed) {
        w.is_closed = true;
        http_close(w.server);
    }
}

void begin(const struct http_limits *limits)
{
    static const struct http_handler handler = {&w, handle, done};
    struct error e = {0};

    memset(&w, 0, sizeof w);
    CHECK(uv_loop_init(&w.loop) == 0, "a loop");
    enum err err = http_listen(&w.loop, "127.0.0.1:0", limits, &handler, &w.server, &e);
    CHECK(err == ERR_OK, "%s", e.text);
    CHECK(http_port(w.server) > 0, "a port");
}

void end(void)
{
    if (!w.is_closed)
        http_close(w.server);
    while (uv_run(&w.loop, UV_RUN_DEFAULT) != 0)
        ;
    CHECK(uv_loop_close(&w.loop) == 0, "a handle was left behind");
    CHECK(w.handled == w.sent + w.lost, "%u handled, %u sent, %u lost", w.handled, w.sent, w.lost);
}

int client_socket(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);

    CHECK(fd >= 0, "a socket");
    int on = 1;
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0, "no delay");
    return fd;
}

int client_connect(const struct client *c)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)http_port(w.server))};

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int err = connect(c->fd, (struct sockaddr *)&a, sizeof a);
    return err == 0 || errno == EINPROGRESS ? 0 : errno;
}

void client_open(struct client *c)
{
    *c = (struct client){.fd = client_socket(SOCK_NONBLOCK)};
    CHECK(client_connect(c) == 0, "connected");
}

void client_close(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    buf_fini(&c->got);
}

void client_reset(struct client *c)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    if (c->fd < 0)
        return;
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    client_close(c);
}

void client_poll(struct client *c)
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

void turn(void)
{
    uv_run(&w.loop, UV_RUN_NOWAIT);
}

void client_send(struct client *c, struct slice s)
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
            test_pause();
    }
}

void client_say(struct client *c, const char *text)
{
    client_send(c, slice_of(text));
}

bool client_has(const struct client *c, const char *text)
{
    return c->got.len > 0 && memmem(c->got.ptr, c->got.len, text, strlen(text));
}

unsigned client_count(const struct client *c, const char *text)
{
    unsigned count = 0;

    for (const char *at = c->got.ptr; at && (at = strstr(at, text)); at++)
        count++;
    return count;
}

int client_status(const struct client *c)
{
    int status = 0;

    for (const char *at = c->got.ptr; at && (at = strstr(at, "HTTP/1.1 ")); at += 9)
        if (at[9] >= '0' && at[9] <= '9')
            status = (int)strtol(at + 9, NULL, 10);
    return status;
}

void test_pause(void)
{
    (void)usleep(1000); /* it may be cut short */
}
