/* The HTTP server: listening, accepting, deadlines, shutdown, and the functions of http.h that
 * answer requests. Each connection is handled in connection.c. */
#include "http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/connection.h"
#include "http/response.h"

enum {
    ACCEPT_MAX = 64,       /* connections accepted in a row, so that others get their turn */
    ACCEPT_PAUSE_MS = 100, /* after a shortage of descriptors or memory */
    SWEEP_MS = 50,         /* deadlines may fire that much too late */
    LINGER_MS = 2000,
    BODY_MAX = 4194304, /* default */
    DISCARDED_BODIES = 4,
    PEEK_MS = 1000,
    READS_AT_ONCE = 4,  /* in one round of the loop, of those that have much: 64 KiB each, ... */
    WRITES_AT_ONCE = 4, /* ... and HTTP_OUTPUT_SLICE */
};

const struct http_limits http_limits_default = {
    .body_max = BODY_MAX,
    .line_max = 8192,
    .head_max = 16384,
    .header_count_max = 64,
    .connection_max = 16384,
    .memory_max = 536870912,
    .head_ms = 10000,
    .body_ms = 60000,
    .idle_ms = 75000,
    .write_ms = 60000,
    .stream_backlog_max = 262144,
};

/* --- deadlines --- */

static void on_timer(uv_timer_t *timer);

void http_server_arm(struct http_server *s, uint64_t at)
{
    uint64_t now = uv_now(s->loop);

    if (s->is_closing || (s->timer_at && s->timer_at <= at + SWEEP_MS))
        return;
    s->timer_at = at > now + SWEEP_MS ? at : now + SWEEP_MS;
    int err = uv_timer_start(&s->timer, on_timer, s->timer_at - now, 0);
    ASSERT(err == 0); /* fails only without a callback, or when closing */
}

/* Without connections no timer is needed: the process sleeps. */
void http_server_forget(struct http_server *s)
{
    ASSERT(s->count > 0);
    s->count--;
    if (s->count > 0 || s->accept_at || s->is_closing)
        return;
    (void)uv_timer_stop(&s->timer); /* always succeeds */
    s->timer_at = 0;
}

static struct http_connection *first_waiting(struct http_server *s, enum http_wait what)
{
    struct link *l = list_first(&s->waiting[what]);

    return l ? CONTAINER_OF(l, struct http_connection, waiting) : NULL;
}

static void accept_start(struct http_server *s);

static void on_timer(uv_timer_t *timer)
{
    struct http_server *s = timer->data;
    uint64_t now = uv_now(s->loop);

    s->timer_at = 0;
    if (s->accept_at && s->accept_at <= now)
        accept_start(s);
    for (unsigned i = 0; i < HTTP_WAIT_COUNT; i++) {
        struct http_connection *c = first_waiting(s, (enum http_wait)i);
        while (c && c->deadline <= now) {
            http_connection_expire(c);
            c = first_waiting(s, (enum http_wait)i);
        }
        if (c)
            http_server_arm(s, c->deadline);
    }
    if (s->accept_at)
        http_server_arm(s, s->accept_at);
}

/* --- answers from outside the handler --- */

static void on_answered(uv_idle_t *idle)
{
    struct http_server *s = idle->data;
    struct link *l;

    for (l = list_first(&s->answered); l; l = list_first(&s->answered))
        http_connection_resume(CONTAINER_OF(l, struct http_connection, answered));
    if (!s->is_closing)
        (void)uv_idle_stop(idle); /* always succeeds */
}

/* `done` must not be called from inside http_answer, and the loop is about to sleep. An idle handle
 * makes libuv iterate once more without a system call. */
void http_server_defer(struct http_server *s, struct http_connection *c)
{
    list_push(&s->answered, &c->answered);
    if (!s->is_closing)
        (void)uv_idle_start(&s->finisher, on_answered); /* fails only without a callback */
}

/* --- what is thrown away --- */

/* A bucket of tokens: so much at once, and as much in each second. A body that is refused because
 * it is too long counts, too: the bucket does not become small with the limit. */
bool http_server_may_discard(struct http_server *s, size_t bytes)
{
    uint64_t body = s->limits.body_max > BODY_MAX ? s->limits.body_max : BODY_MAX;
    uint64_t most = body * DISCARDED_BODIES;
    uint64_t now = uv_now(s->loop);
    uint64_t after_ms = now - s->discarded_at < 1000 ? now - s->discarded_at : 1000;
    uint64_t back = most / 1000 * after_ms;

    s->discarded -= s->discarded < back ? s->discarded : back;
    s->discarded_at = now;
    if (s->discarded + bytes > most)
        return false;
    s->discarded += bytes;
    return true;
}

/* --- turns of those that have much --- */

static void on_turn(uv_idle_t *idle)
{
    struct http_server *s = idle->data;
    struct link *l = NULL;

    for (unsigned i = 0; i < READS_AT_ONCE && (l = list_first(&s->turns_to_read)); i++) {
        link_remove(l);
        http_connection_go_on(CONTAINER_OF(l, struct http_connection, turn_to_read));
    }
    for (unsigned i = 0; i < WRITES_AT_ONCE && (l = list_first(&s->turns_to_write)); i++) {
        link_remove(l);
        http_output_go_on(CONTAINER_OF(l, struct http_connection, turn_to_write));
    }
    if (!s->is_closing && list_empty(&s->turns_to_read) && list_empty(&s->turns_to_write))
        (void)uv_idle_stop(idle); /* always succeeds */
}

static void turn(struct http_server *s, struct link *list, struct link *l)
{
    if (!link_is_in(l))
        list_push(list, l);
    if (!s->is_closing)
        (void)uv_idle_start(&s->turner, on_turn); /* fails only without a callback */
}

void http_server_turn_to_read(struct http_server *s, struct http_connection *c)
{
    turn(s, &s->turns_to_read, &c->turn_to_read);
}

void http_server_turn_to_write(struct http_server *s, struct http_connection *c)
{
    turn(s, &s->turns_to_write, &c->turn_to_write);
}

/* --- accepting --- */

/* Sends the reason, if the kernel accepts it at once, and closes. */
static void turn_away(const struct http_server *s, int fd)
{
    CLEANUP(buf_fini) struct buf body = {0};
    CLEANUP(buf_fini) struct buf text = {0};

    http_problem_write(&body, 503, "busy", SLICE("too many connections"));
    http_answer_head(&text, &(struct http_answer){.status = 503,
                                                  .content_type = "application/problem+json",
                                                  .headers = "Retry-After: 1\r\n",
                                                  .always = s->always,
                                                  .body_len = body.len,
                                                  .closes = true});
    buf_slice(&text, buf_view(&body));
    (void)send(fd, text.ptr, text.len, MSG_DONTWAIT | MSG_NOSIGNAL); /* best effort */
    (void)close(fd);
}

static void tell_accepting(struct http_server *s, int reason)
{
    if (s->is_short == (reason != 0))
        return;
    s->is_short = reason != 0;
    if (s->handler.accepting)
        s->handler.accepting(s->handler.arg, reason);
}

static void accept_pause(struct http_server *s)
{
    (void)uv_poll_stop(&s->listener); /* always succeeds */
    s->accept_at = uv_now(s->loop) + ACCEPT_PAUSE_MS;
    http_server_arm(s, s->accept_at);
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    struct http_server *s = poll->data;

    (void)events;
    if (status < 0) {
        accept_pause(s);
        return;
    }
    for (unsigned i = 0; i < ACCEPT_MAX; i++) {
        int fd = accept4(s->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            tell_accepting(s, 0);
        if (fd >= 0 && s->count < s->limits.connection_max) {
            http_connection_open(s, fd, 0);
            continue;
        }
        if (fd >= 0) {
            turn_away(s, fd);
            continue;
        }
        if (errno == EAGAIN)
            return;
        /* The connection died while it waited: accept(2) lists the errors that belong to it. */
        if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO || errno == ENETDOWN
            || errno == EHOSTDOWN || errno == EHOSTUNREACH || errno == ENETUNREACH)
            continue;
        /* EMFILE, ENFILE, ENOBUFS, ENOMEM: the socket stays readable, so retrying at once would
         * spin. */
        tell_accepting(s, errno);
        accept_pause(s);
        return;
    }
}

static void accept_start(struct http_server *s)
{
    s->accept_at = 0;
    if (s->fd < 0)
        return;
    if (uv_poll_start(&s->listener, UV_READABLE, on_acceptable) != 0)
        accept_pause(s);
}

/* --- listening --- */

/* Splits "ADDR:PORT" or "[ADDR]:PORT". */
static bool address_split(const char *address, char *host, size_t host_size, const char **ret_port)
{
    const char *colon = strrchr(address, ':');
    size_t len = colon ? (size_t)(colon - address) : 0;

    if (len >= 2 && address[0] == '[' && address[len - 1] == ']') {
        address++;
        len -= 2;
    } else if (len > 0 && memchr(address, ':', len)) {
        return false; /* an IPv6 address without brackets */
    }
    if (len == 0 || len >= host_size || colon[1] == 0)
        return false;
    memcpy(host, address, len);
    host[len] = 0;
    *ret_port = colon + 1;
    return true;
}

/* Accepted sockets inherit these options at no cost. Keep-alive probes detect parked clients whose
 * machine disappeared silently. */
static bool options_set(int fd)
{
    int on = 1;
    int idle = 60;
    int interval = 15;
    int count = 4;

    return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0
           && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0
           && setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) == 0
           && setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle) == 0
           && setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval) == 0
           && setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count) == 0;
}

static int port_of(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;

    if (getsockname(fd, (struct sockaddr *)&a, &len) != 0)
        return -1;
    if (a.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&a)->sin6_port);
    return ntohs(((struct sockaddr_in *)&a)->sin_port); /* NOLINT: getsockname has set it */
}

/* A listening socket, or a negative errno. */
static int socket_listen(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (options_set(fd) && bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int reason = errno;
    (void)close(fd);
    return -reason;
}

static enum err socket_open(const char *address, int *ret_fd, struct error *e)
{
    struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *service = NULL;
    char host[256];

    if (!address_split(address, host, sizeof host, &service))
        return error_set(e, ERR_INVALID, "listen on %s: expected ADDR:PORT or [ADDR]:PORT",
                         address);
    int status = getaddrinfo(host, service, &hints, &found);
    if (status != 0)
        return error_set(e, ERR_INVALID, "listen on %s: %s", address, gai_strerror(status));
    int fd = socket_listen(found);
    freeaddrinfo(found);
    if (fd < 0)
        return error_set(e, ERR_IO, "listen on %s: %s%s", address, uv_strerror(fd),
                         fd == UV_EADDRINUSE ? "; is another server running there?" : "");
    *ret_fd = fd;
    return ERR_OK;
}

static struct http_server *server_new(uv_loop_t *loop, const struct http_limits *limits,
                                      const struct http_handler *handler)
{
    struct http_server *s = calloc(1, sizeof *s);

    ASSERT(s);
    s->loop = loop;
    s->limits = limits ? *limits : http_limits_default;
    s->handler = *handler;
    list_init(&s->connections);
    list_init(&s->answered);
    list_init(&s->turns_to_read);
    list_init(&s->turns_to_write);
    list_init(&s->handshakes);
    for (unsigned i = 0; i < HTTP_WAIT_COUNT; i++)
        list_init(&s->waiting[i]);
    s->wait_ms[HTTP_WAIT_IDLE] = s->limits.idle_ms;
    s->wait_ms[HTTP_WAIT_HEAD] = s->limits.head_ms;
    s->wait_ms[HTTP_WAIT_BODY] = s->limits.body_ms;
    s->wait_ms[HTTP_WAIT_WRITE] = s->limits.write_ms;
    s->wait_ms[HTTP_WAIT_LINGER] = LINGER_MS;
    s->wait_ms[HTTP_WAIT_PEEK] = PEEK_MS;
    return s;
}

enum err http_listen(uv_loop_t *loop, const char *address, const struct http_limits *limits,
                     const struct http_handler *handler, struct http_server **ret, struct error *e)
{
    int fd = -1;
    enum err err = socket_open(address, &fd, e);

    if (err != ERR_OK)
        return err;
    (void)signal(SIGPIPE, SIG_IGN); /* fails only for an invalid number */
    struct http_server *s = server_new(loop, limits, handler);
    int status = uv_poll_init(loop, &s->listener, fd);
    if (status != 0) {
        (void)close(fd);
        free(s);
        return error_set(e, ERR_IO, "listen on %s: %s", address, uv_strerror(status));
    }
    (void)uv_timer_init(loop, &s->timer); /* these two always succeed */
    (void)uv_idle_init(loop, &s->finisher);
    (void)uv_idle_init(loop, &s->turner);
    s->listener.data = s->timer.data = s->finisher.data = s->turner.data = s;
    s->handles = 4;
    s->fd = fd;
    s->port = port_of(fd);
    accept_start(s);
    *ret = s;
    return ERR_OK;
}

int http_port(const struct http_server *s)
{
    return s->port;
}

size_t http_connection_count(const struct http_server *s)
{
    return s->count;
}

size_t http_request_count(const struct http_server *s)
{
    return s->request_count;
}

size_t http_held(const struct http_server *s)
{
    return s->held;
}

void *http_handler_arg(const struct http_request *r)
{
    return http_message_of(r)->connection->server->handler.arg;
}

/* --- shutdown --- */

void http_server_release(struct http_server *s)
{
    ASSERT(s->handles > 0);
    s->handles--;
    if (s->handles == 0 && s->is_closing) {
        buf_fini(&s->head);
        buf_fini(&s->sealed);
        buf_fini(&s->joined);
        buf_fini(&s->plain);
        tls_keys_free(s->tls);
        free(s);
    }
}

static void on_released(uv_handle_t *handle)
{
    http_server_release(handle->data);
}

static void listener_close(struct http_server *s)
{
    if (s->fd < 0)
        return;
    uv_close((uv_handle_t *)&s->listener, on_released);
    (void)close(s->fd);
    s->fd = -1;
    s->accept_at = 0;
}

void http_drain(struct http_server *s)
{
    listener_close(s);
    s->is_draining = true;
    LIST_FOREACH (l, after, &s->connections)
        http_connection_drain(CONTAINER_OF(l, struct http_connection, all));
}

void http_close(struct http_server *s)
{
    ASSERT(!s->is_closing);
    s->is_closing = true;
    s->is_draining = true;
    listener_close(s);
    uv_close((uv_handle_t *)&s->timer, on_released);
    uv_close((uv_handle_t *)&s->finisher, on_released);
    uv_close((uv_handle_t *)&s->turner, on_released);
    for (struct link *l = list_first(&s->connections); l; l = list_first(&s->connections))
        http_connection_close(CONTAINER_OF(l, struct http_connection, all));
}

/* --- answering --- */

void http_say_always(struct http_server *s, struct slice lines)
{
    s->always = lines;
}

void http_answer(struct http_request *r, int status, const char *content_type, struct slice body,
                 const char *headers)
{
    struct http_message *m = http_message_of(r);
    struct http_connection *c = m->connection;

    ASSERT(!m->is_answered);
    m->is_answered = true;
    r->status = status;
    if (c->phase == HTTP_CLOSED)
        return;
    ASSERT(c->phase == HTTP_PARKED);
    ASSERT(c->message == m);
    struct http_server *s = c->server;
    c->closes = !m->keeps_alive || m->is_cut || s->is_draining;
    buf_clear(&s->head);
    http_answer_head(&s->head, &(struct http_answer){.status = status,
                                                     .content_type = content_type,
                                                     .headers = headers,
                                                     .always = s->always,
                                                     .body_len = body.len,
                                                     .closes = c->closes,
                                                     .says_1_0 = http_message_is_1_0(m)});
    if (!http_status_has_body(status) || slice_is(r->method, "HEAD"))
        body = SLICE("");
    http_connection_answer(c, buf_view(&s->head), body);
}

void http_answer_text(struct http_request *r, int status, const char *content_type,
                      struct http_text *body, const char *headers)
{
    struct http_connection *c = http_message_of(r)->connection;

    c->output.lent = body;
    http_answer(r, status, content_type, buf_view(&body->bytes), headers);
    c->output.lent = NULL;
}

PRINTF(5, 0)
static void answer_problem(struct http_request *r, int status, const char *type,
                           const char *headers, const char *fmt, va_list ap)
{
    CLEANUP(buf_fini) struct buf body = {0};
    char detail[1024];

    (void)vsnprintf(detail, sizeof detail, fmt, ap); /* longer texts are cut */
    http_problem_write(&body, status, type, slice_of(detail));
    http_answer(r, status, "application/problem+json", buf_view(&body), headers);
}

void http_problem(struct http_request *r, int status, const char *type, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    answer_problem(r, status, type, NULL, fmt, ap);
    va_end(ap);
}

void http_problem_with(struct http_request *r, int status, const char *type, const char *headers,
                       const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    answer_problem(r, status, type, headers, fmt, ap);
    va_end(ap);
}

bool http_peer_is_loopback(const struct http_request *r)
{
    const struct http_connection *c = http_message_of(r)->connection;
    struct sockaddr_storage from = {0};
    int len = sizeof from;

    if (c->phase == HTTP_CLOSED || uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&from, &len) != 0)
        return false;
    if (from.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&from;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&from;
    return from.ss_family == AF_INET6
           && (IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr)
               || (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr) && v6->sin6_addr.s6_addr[12] == 127));
}

int http_local_port(const struct http_request *r)
{
    const struct http_connection *c = http_message_of(r)->connection;
    struct sockaddr_storage at = {0};
    int len = sizeof at;

    if (c->phase == HTTP_CLOSED || uv_tcp_getsockname(&c->tcp, (struct sockaddr *)&at, &len) != 0)
        return 0;
    if (at.ss_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)&at)->sin_port);
    return at.ss_family == AF_INET6 ? ntohs(((const struct sockaddr_in6 *)&at)->sin6_port) : 0;
}

struct http_peer http_peer_of(const struct http_request *r)
{
    const struct http_connection *c = http_message_of(r)->connection;
    struct sockaddr_storage from = {0};
    struct http_peer peer = {"unknown"};
    int len = sizeof from;

    if (c->phase != HTTP_CLOSED && uv_tcp_getpeername(&c->tcp, (struct sockaddr *)&from, &len) == 0)
        (void)uv_ip_name((const struct sockaddr *)&from, peer.text, sizeof peer.text);
    return peer;
}

bool http_limit_body(struct http_request *r, size_t max, bool may_be_chunked)
{
    struct http_message *m = http_message_of(r);

    ASSERT(m->is_cut); /* only called within `head` */
    return http_reader_limit(&m->connection->reader, max, may_be_chunked);
}

size_t http_body_expected(const struct http_request *r)
{
    const struct http_message *m = http_message_of(r);

    ASSERT(m->is_cut); /* only called within `head` */
    return http_reader_expected(&m->connection->reader);
}

bool http_is_without_body(const struct http_request *r)
{
    return http_message_of(r)->is_cut;
}

void http_adopt(struct http_server *s, int fd, unsigned whose)
{
    if (s->is_closing)
        (void)close(fd);
    else
        http_connection_open(s, fd, whose);
}

unsigned http_adopted(const struct http_request *r)
{
    return http_message_of(r)->connection->adopted;
}

void http_break(struct http_request *r)
{
    struct http_message *m = http_message_of(r);

    ASSERT(!m->is_answered);
    m->is_answered = true;
    http_connection_close(m->connection);
}

bool http_is_alive(const struct http_request *r)
{
    return http_message_of(r)->connection->phase != HTTP_CLOSED;
}
