/* A server and its raw clients on one loop in one thread, for the tests of this folder
 * (test_kit.h). An expected event comes, or the test fails after a long timeout; nothing is
 * measured. */

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
    } else if (slice_is(r->path, "/break")) {
        http_break(r);
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

static bool head(void *arg, struct http_request *r)
{
    ASSERT(arg == &w);
    CHECK(r->body.len == 0 && !r->user, "it is not handled yet");
    bool is_held = slice_is(r->path, "/held");
    bool is_too_long = slice_is(r->path, "/ten") && !http_limit_body(r, 10, true);
    if (!is_held && !is_too_long && !slice_is(r->path, "/refused"))
        return true;
    w.handled++;
    r->user = &w;
    if (is_held)
        w.parked[w.parked_count++] = r;
    else
        http_problem(r, is_too_long ? 413 : 403, "no", "no");
    return false;
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

static void certificate(void *arg, const struct error *e)
{
    ASSERT(arg == &w);
    if (e) {
        w.certificates_refused++;
        w.refusal = *e;
    } else {
        w.certificates++;
    }
}

static void flushed(void *arg, struct http_request *r)
{
    (void)arg;
    (void)r;
    w.flushed++;
}

static void wrote(void *arg, struct http_request *r, uint64_t took_ns)
{
    (void)r;
    (void)took_ns;
    ASSERT(arg == &w);
    w.wrote++;
}

static void refused(void *arg, int status, const char *reason)
{
    ASSERT(arg == &w);
    ASSERT(*reason);
    w.refused++;
    w.refused_status = status;
}

void begin(const struct http_limits *limits)
{
    static const struct http_handler handler = {.arg = &w,
                                                .head = head,
                                                .handle = handle,
                                                .done = done,
                                                .certificate = certificate,
                                                .flushed = flushed,
                                                .wrote = wrote,
                                                .refused = refused};
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

static char folder[] = "/tmp/intact-tls.XXXXXX";
static char files[2][64];

void certificate_make(const char *cert, const char *key, const char *name)
{
    char command[400];

    (void)snprintf(command, sizeof command,
                   "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 "
                   "-keyout %s -out %s -subj /CN=%s 2>/dev/null",
                   key, cert, name);
    CHECK(system(command) == 0, "%s", command);
}

const char *certificate_file(void)
{
    return files[0];
}

const char *key_file(void)
{
    return files[1];
}

void certificate_forget(void)
{
    if (!*files[0])
        return;
    (void)unlink(files[0]);
    (void)unlink(files[1]);
    (void)rmdir(folder);
}

void begin_secure(const struct http_limits *limits)
{
    struct error e = {0};

    if (!*files[0]) {
        CHECK(mkdtemp(folder), "%s", strerror(errno));
        (void)snprintf(files[0], sizeof files[0], "%s/cert.pem", folder);
        (void)snprintf(files[1], sizeof files[1], "%s/key.pem", folder);
        certificate_make(files[0], files[1], "first");
    }
    begin(limits);
    w.is_secure = true;
    enum err err = http_secure(w.server, files[0], files[1], &e);
    CHECK(err == ERR_OK, "%s", e.text);
}

SSL *client_tls(int version)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());

    CHECK(ctx, "a context");
    SSL_CTX_set_security_level(ctx, 0); /* allows it to try insecure parameters */
    (void)SSL_CTX_set_mode(ctx,
                           SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (version) {
        (void)SSL_CTX_set_min_proto_version(ctx, version);
        (void)SSL_CTX_set_max_proto_version(ctx, version);
    }
    SSL *ssl = SSL_new(ctx);
    SSL_CTX_free(ctx);
    CHECK(ssl, "a client");
    return ssl;
}

void client_secure(struct client *c)
{
    if (!c->ssl)
        c->ssl = client_tls(0);
    SSL_set_connect_state(c->ssl);
    CHECK(SSL_set_fd(c->ssl, c->fd) == 1, "the socket");
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

void client_open_in_clear(struct client *c)
{
    *c = (struct client){.fd = client_socket(SOCK_NONBLOCK)};
    CHECK(client_connect(c) == 0, "connected");
}

void client_open(struct client *c)
{
    client_open_in_clear(c);
    if (w.is_secure)
        client_secure(c);
}

void client_close(struct client *c)
{
    SSL_free(c->ssl);
    c->ssl = NULL;
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

/* recv and send, or their TLS equivalents. */
static ssize_t client_io(struct client *c, char *in, size_t in_max, struct slice out)
{
    size_t n = 0;

    if (!c->ssl)
        return in ? recv(c->fd, in, in_max, MSG_DONTWAIT)
                  : send(c->fd, out.ptr, out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    errno = 0;
    int ok = in ? SSL_read_ex(c->ssl, in, in_max, &n) : SSL_write_ex(c->ssl, out.ptr, out.len, &n);
    if (ok)
        return (ssize_t)n;
    int why = SSL_get_error(c->ssl, ok);
    if (why == SSL_ERROR_ZERO_RETURN)
        return 0;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        errno = EAGAIN;
    else if (why == SSL_ERROR_SSL)
        errno = EPROTO; /* refused, or cut off without a message */
    else if (errno == 0)
        errno = ECONNRESET;
    return -1;
}

void client_poll(struct client *c)
{
    char bytes[8192];
    ssize_t n = 1;

    if (!c || c->fd < 0)
        return;
    while (n > 0) {
        n = client_io(c, bytes, sizeof bytes, SLICE_NONE);
        if (n > 0)
            buf_add(&c->got, bytes, (size_t)n);
    }
    if (n == 0)
        c->is_ended = true;
    else if (errno == ECONNRESET || errno == EPROTO || errno == EPIPE)
        c->is_ended = c->is_reset = true;
}

void turn(void)
{
    uv_run(&w.loop, UV_RUN_NOWAIT);
}

void client_send(struct client *c, struct slice s)
{
    for (int ms = 0; s.len > 0; ms++) {
        ssize_t n = client_io(c, NULL, 0, s);
        if (n > 0)
            s = (struct slice){s.ptr + n, s.len - (size_t)n};
        else if (errno != EAGAIN && errno != EINPROGRESS && errno != ENOTCONN)
            return; /* the server has closed: its response is what counts */
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
    (void)usleep(1000); /* it may be interrupted */
}
