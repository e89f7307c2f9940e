/* Nonblocking HTTP connections to the servers: one request at a time on each, plus the event
 * streams. ends.c interprets the answers. */

#include "flow/flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 16 << 10, STREAM_READ_SIZE = 256 << 10, SOCKET_BUFFER = 4 << 20 };

static void dial(struct flow *f, struct conn *c)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)f->o.servers[c->server].port)};
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
    int on = 1;
    int room = SOCKET_BUFFER;

    if (inet_pton(AF_INET, f->o.servers[c->server].host, &to.sin_addr) != 1)
        flow_fail("\"%s\" is no IPv4 address", f->o.servers[c->server].host);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->stream && c->fd >= 0) /* without effect after connect */
        (void)setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0)
        flow_fail("%s:%d does not take a connection: %s", f->o.servers[c->server].host,
                  f->o.servers[c->server].port, strerror(errno));
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (epoll_ctl(f->epoll, EPOLL_CTL_ADD, c->fd, &e) != 0)
        flow_fail("epoll: %s", strerror(errno));
}

/* After the connections for submissions comes one per server, for its events or its count. */
void net_open(struct flow *f)
{
    bool listens = f->o.ends == ENDS_EVENTS || f->o.ends == ENDS_COUNT;
    long extra = listens ? f->o.server_count : 0;

    f->conn_count = f->o.connections + extra;
    f->conns = calloc((size_t)f->conn_count, sizeof *f->conns);
    f->idle = calloc((size_t)f->conn_count, sizeof(struct conn *));
    if (!f->conns || !f->idle)
        flow_fail("no memory");
    for (long i = f->conn_count - 1; i >= 0; i--) {
        struct conn *c = &f->conns[i];
        c->server = (int)((i < f->o.connections ? i : i - f->o.connections) % f->o.server_count);
        c->stream = i >= f->o.connections && f->o.ends == ENDS_EVENTS;
        c->counts = i >= f->o.connections && f->o.ends == ENDS_COUNT;
        dial(f, c);
        if (i < f->o.connections)
            f->idle[f->idle_count++] = c;
    }
}

void net_close(struct flow *f)
{
    for (long i = 0; i < f->conn_count; i++) {
        (void)close(f->conns[i].fd);
        buf_fini(&f->conns[i].in);
        buf_fini(&f->conns[i].out);
    }
    free(f->conns);
    free((void *)f->idle);
}

static void await_room(struct flow *f, struct conn *c, bool room)
{
    struct epoll_event e = {.events = room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data.ptr = c};

    if (epoll_ctl(f->epoll, EPOLL_CTL_MOD, c->fd, &e) != 0)
        flow_fail("epoll: %s", strerror(errno));
}

static void put_out(struct flow *f, struct conn *c, bool waited)
{
    ssize_t n =
        send(c->fd, c->out.ptr + c->sent, c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        flow_fail("the server closed a connection: %s", strerror(errno));
    c->sent += n > 0 ? (size_t)n : 0;
    bool left = c->sent < c->out.len;
    if (left != waited)
        await_room(f, c, left);
}

/* A stream is requested with HTTP/1.0, so that it comes without chunks. */
void net_ask(struct flow *f, struct conn *c, const char *method, const char *path,
             const char *content_type, struct slice body)
{
    ASSERT(!c->busy);
    c->busy = true;
    buf_clear(&c->out);
    c->sent = 0;
    buf_fmt(&c->out, "%s %s HTTP/1.%d\r\nHost: %s:%d\r\n", method, path, c->stream ? 0 : 1,
            f->o.servers[c->server].host, f->o.servers[c->server].port);
    if (f->o.token)
        buf_fmt(&c->out, "Authorization: Bearer %s\r\n", f->o.token);
    if (content_type)
        buf_fmt(&c->out, "Content-Type: %s\r\nContent-Length: %zu\r\n", content_type, body.len);
    buf_str(&c->out, "\r\n");
    if (content_type)
        buf_slice(&c->out, body);
    put_out(f, c, false);
}

/* The length of the head with its empty line; 0: incomplete. */
static size_t head_length(const struct buf *in, int *ret_status, size_t *ret_body)
{
    static const char length[] = "\r\ncontent-length:";
    const char *end = in->len ? memmem(in->ptr, in->len, "\r\n\r\n", 4) : NULL;

    if (!end)
        return 0;
    size_t head = (size_t)(end - in->ptr) + 4;
    const char *at = strcasestr(in->ptr, length); /* the input ends with a NUL */
    *ret_body = at && at < end ? strtoul(at + sizeof length - 1, NULL, 10) : 0;
    *ret_status = in->len > 12 ? atoi(in->ptr + 9) : 0;
    return head;
}

static void take_answer(struct flow *f, struct conn *c)
{
    int status = 0;
    size_t body = 0;
    size_t head = head_length(&c->in, &status, &body);

    if (head == 0 || c->in.len < head + body)
        return;
    if (c->in.len > head + body || !c->busy)
        flow_fail("the server said more than it was asked");
    c->busy = false;
    f->answer_bytes += c->counts || c->looks ? 0 : (double)body;
    ends_answered(f, c, status, (struct slice){c->in.ptr + head, body});
    buf_clear(&c->in);
}

static void take_stream(struct flow *f, struct conn *c)
{
    int status = 0;
    size_t body = 0;

    if (!c->begun) {
        size_t head = head_length(&c->in, &status, &body);
        if (head == 0)
            return;
        if (status != 200)
            flow_fail("the stream of events was answered: %.*s", (int)c->in.len, c->in.ptr);
        c->begun = true;
        c->scanned = head;
        f->streams_begun++;
    }
    ends_heard(f, c);
}

/* The server closed a connection that had been idle for too long. */
static bool was_idle(const struct conn *c)
{
    return !c->busy && !c->stream && c->in.len == 0;
}

static void take_in(struct flow *f, struct conn *c)
{
    size_t size = c->stream ? STREAM_READ_SIZE : READ_SIZE;

    for (;;) {
        char *room = buf_room(&c->in, size);
        ssize_t n = recv(c->fd, room, size, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n == 0 && was_idle(c)) {
            (void)close(c->fd);
            dial(f, c);
            return;
        }
        if (n <= 0)
            flow_fail("the server closed a connection");
        c->in.len += (size_t)n;
        c->in.ptr[c->in.len] = 0;
        if (c->stream)
            take_stream(f, c);
        else
            take_answer(f, c);
        if ((size_t)n < size)
            return;
    }
}

void net_ready(struct flow *f, struct conn *c, uint32_t events)
{
    if (events & EPOLLOUT)
        put_out(f, c, true);
    if (events & ~(uint32_t)EPOLLOUT)
        take_in(f, c);
}
