/* One client's connection: reading requests, writing responses, deadlines, closing. The states and
 * rules are in connection.h; TLS is in secure.c. */
#include "http/connection.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/response.h"

enum {
    READ_AHEAD_MAX = 16 * 1024,
    FIRST_READ = 16 * 1024, /* of a request: many that begin at once take no turn of their own */
    HANDSHAKE_READ = 4 * 1024,
    SERVED_AT_ONCE = 64, /* requests of one connection: others wait meanwhile */
};

static uv_stream_t *stream_of(struct http_connection *c)
{
    return (uv_stream_t *)&c->tcp;
}

static uv_handle_t *handle_of(struct http_connection *c)
{
    return (uv_handle_t *)&c->tcp;
}

static int fd_of(const struct http_connection *c)
{
    uv_os_fd_t fd = -1;

    (void)uv_fileno((const uv_handle_t *)&c->tcp, &fd); /* fails only if closed: -1 then */
    return fd;
}

static size_t pending_len(const struct http_connection *c)
{
    return c->in.len - c->in_at;
}

/* --- waiting --- */

static void wait_for(struct http_connection *c, enum http_wait what)
{
    struct http_server *s = c->server;

    if (c->wait == what)
        return; /* deadlines are total: progress does not move them */
    link_remove(&c->waiting);
    c->wait = what;
    if (what == HTTP_WAIT_NOTHING)
        return;
    if (what == HTTP_WAIT_WRITE)
        c->taken = http_output_taken(c);
    c->deadline = uv_now(s->loop) + s->wait_ms[what];
    list_push(&s->waiting[what], &c->waiting);
    http_server_arm(s, c->deadline);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct http_connection *c = handle->data;
    size_t room = sizeof c->server->bytes;

    (void)suggested;
    if (c->phase != HTTP_READING && c->phase != HTTP_LINGERING) {
        ASSERT(pending_len(c) < READ_AHEAD_MAX);
        room = READ_AHEAD_MAX - pending_len(c);
    }
    if (c->phase == HTTP_READING && !http_reader_is_in_body(&c->reader))
        room = FIRST_READ;
    if (c->tls && c->phase == HTTP_READING && !http_connection_is_up(c))
        room = HANDSHAKE_READ;
    *ret = uv_buf_init(c->server->bytes, (unsigned)room);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf);

static void read_set(struct http_connection *c, bool is_reading)
{
    is_reading = is_reading && !c->is_ended && !link_is_in(&c->turn_to_read);
    if (c->is_reading == is_reading)
        return;
    c->is_reading = is_reading;
    if (!is_reading)
        (void)uv_read_stop(stream_of(c)); /* always succeeds */
    else if (uv_read_start(stream_of(c), on_alloc, on_read) != 0)
        http_connection_close(c);
}

/* Requests that were read wait for its turn. */
static bool waits_to_go_on(const struct http_connection *c)
{
    return link_is_in(&c->turn_to_read) && pending_len(c) > 0;
}

static bool is_idle(const struct http_connection *c)
{
    return c->phase == HTTP_READING && pending_len(c) == 0 && !http_reader_is_in_body(&c->reader)
           && http_connection_is_up(c);
}

/* The bytes of requests and responses, without the fixed costs of a connection. */
static size_t held_by(const struct http_connection *c)
{
    const struct http_message *m = c->message ? c->message : c->reader.message;
    size_t body = m ? m->request.body.len : 0;

    if (m && m->body.cap > body)
        body = m->body.cap;
    return c->in.cap + body + http_output_backlog(c);
}

static void hold(struct http_connection *c, size_t bytes)
{
    ASSERT(c->server->held >= c->held);
    c->server->held += bytes - c->held;
    c->held = bytes;
}

/* Whether the memory limit is reached and this connection contributes. Small requests go on. */
static bool is_too_much(const struct http_connection *c, size_t bytes)
{
    const struct http_server *s = c->server;

    return bytes > READ_AHEAD_MAX && s->held - c->held + bytes > s->limits.memory_max;
}

/* Called after every change of the connection: only this function decides what it waits for. */
static void settle(struct http_connection *c)
{
    bool has_room = pending_len(c) < READ_AHEAD_MAX;

    /* TLS sometimes sends by itself: a client that does not read that is not read from. */
    if (c->handshake || (c->tls && http_output_backlog(c) >= READ_AHEAD_MAX))
        has_room = false;
    if (c->phase != HTTP_CLOSED)
        hold(c, held_by(c));
    switch (c->phase) {
    case HTTP_READING:
        if ((c->is_ended && !waits_to_go_on(c)) || (c->server->is_draining && is_idle(c))) {
            http_connection_close(c);
            return;
        }
        if (is_idle(c))
            wait_for(c, HTTP_WAIT_IDLE);
        else
            wait_for(c, http_reader_is_in_body(&c->reader) ? HTTP_WAIT_BODY : HTTP_WAIT_HEAD);
        read_set(c, !c->handshake && http_output_backlog(c) < READ_AHEAD_MAX);
        return;
    case HTTP_PARKED:
        if (c->is_ended) {
            http_connection_close(c);
            return;
        }
        wait_for(c, has_room ? HTTP_WAIT_NOTHING : HTTP_WAIT_PEEK);
        read_set(c, has_room);
        return;
    case HTTP_STREAMING:
        if (c->is_ended) {
            http_connection_close(c);
            return;
        }
        if (http_output_backlog(c) > 0)
            wait_for(c, HTTP_WAIT_WRITE);
        else
            wait_for(c, has_room ? HTTP_WAIT_NOTHING : HTTP_WAIT_PEEK);
        read_set(c, has_room);
        return;
    case HTTP_WRITING:
        wait_for(c, HTTP_WAIT_WRITE);
        read_set(c, has_room);
        return;
    case HTTP_ANSWERED:
        wait_for(c, HTTP_WAIT_NOTHING);
        read_set(c, has_room);
        return;
    case HTTP_LINGERING:
        if (c->is_ended) {
            http_connection_close(c);
            return;
        }
        wait_for(c, HTTP_WAIT_LINGER);
        read_set(c, true);
        return;
    case HTTP_CLOSED:
        return;
    }
    UNREACHABLE();
}

void http_connection_settle(struct http_connection *c)
{
    settle(c);
}

/* --- the end --- */

void http_connection_free(struct http_connection *c)
{
    struct http_server *s = c->server;

    ASSERT(!c->message);
    http_reader_fini(&c->reader);
    http_output_fini(c);
    tls_free(c->tls);
    buf_fini(&c->in);
    free(c);
    http_server_release(s);
}

static void on_closed(uv_handle_t *handle)
{
    struct http_connection *c = handle->data;

    c->is_let_go = true;
    if (http_secure_let_go(c))
        http_connection_free(c);
}

static void message_end(struct http_connection *c, bool is_sent)
{
    struct http_message *m = c->message;
    const struct http_handler *h = &c->server->handler;

    if (!m)
        return;
    c->message = NULL;
    c->server->request_count--;
    if (h->done)
        h->done(h->arg, &m->request, is_sent);
    http_message_free(m);
}

void http_connection_close(struct http_connection *c)
{
    bool is_sent = c->phase == HTTP_ANSWERED && c->is_sent;

    if (c->phase == HTTP_CLOSED)
        return;
    if (c->phase == HTTP_READING)
        (void)http_output_end(c); /* best effort */
    c->phase = HTTP_CLOSED;
    hold(c, 0);
    wait_for(c, HTTP_WAIT_NOTHING);
    link_remove(&c->answered);
    link_remove(&c->turn_to_read);
    link_remove(&c->turn_to_write);
    link_remove(&c->all);
    http_server_forget(c->server);
    uv_close(handle_of(c), on_closed);
    if (!c->is_in_handler) /* otherwise when the handler returns: it may be using the request */
        message_end(c, is_sent);
}

void http_connection_hang_up(struct http_connection *c)
{
    ASSERT(!c->message);
    if (c->is_ended || http_output_backlog(c) > 0 || shutdown(fd_of(c), SHUT_WR) != 0) {
        http_connection_close(c);
        return;
    }
    buf_fini(&c->in);
    c->in_at = 0;
    c->phase = HTTP_LINGERING;
    settle(c);
}

/* The response was written, or never will be. */
static void finish(struct http_connection *c)
{
    bool is_sent = c->is_sent;

    ASSERT(c->phase == HTTP_ANSWERED);
    link_remove(&c->answered);
    message_end(c, is_sent);
    if (c->phase == HTTP_CLOSED)
        return; /* closed by `done` */
    if (!is_sent)
        http_connection_close(c);
    else if (c->closes)
        http_connection_hang_up(c);
    else
        c->phase = HTTP_READING;
}

/* --- writing --- */

/* The response was passed to the kernel in full, is kept in part, or cannot be sent. */
static void answered(struct http_connection *c, bool ok)
{
    bool is_kept = ok && http_output_backlog(c) > 0;

    if (is_kept && is_too_much(c, http_output_backlog(c)))
        ok = is_kept = false;       /* the client does not read, and memory is short */
    wait_for(c, HTTP_WAIT_NOTHING); /* a stream may still have waited for its last piece */
    c->is_sent = ok && !is_kept;
    c->phase = is_kept ? HTTP_WRITING : HTTP_ANSWERED;
    if (c->is_in_handler)
        return; /* serve() continues */
    if (c->phase == HTTP_ANSWERED)
        http_server_defer(c->server, c);
    settle(c);
}

void http_connection_answer(struct http_connection *c, struct slice head, struct slice body)
{
    const struct slice parts[] = {head, body};
    bool ok = http_output_send(c, parts, COUNT_OF(parts));

    if (ok && c->closes)
        ok = http_output_end(c);
    answered(c, ok);
}

bool http_connection_stream_on(struct http_connection *c, const struct slice *parts, unsigned count)
{
    ASSERT(c->phase == HTTP_STREAMING);
    if (!http_output_send(c, parts, count) || is_too_much(c, http_output_backlog(c))) {
        answered(c, false);
        return false;
    }
    if (!c->is_in_handler)
        settle(c);
    return true;
}

void http_connection_stream(struct http_connection *c, struct slice head)
{
    c->phase = HTTP_STREAMING;
    (void)http_connection_stream_on(c, &head, 1); /* a failure is detected later */
}

void http_connection_cut(struct http_connection *c)
{
    ASSERT(c->phase == HTTP_STREAMING);
    answered(c, false);
}

/* The reader has taken everything. */
static void stream_flushed(struct http_connection *c)
{
    const struct http_handler *h = &c->server->handler;

    if (c->phase == HTTP_STREAMING && c->message && h->flushed)
        h->flushed(h->arg, &c->message->request);
}

void http_connection_flushed(struct http_connection *c, bool ok)
{
    if (c->phase == HTTP_WRITING) {
        c->phase = HTTP_ANSWERED;
        c->is_sent = ok;
        http_connection_resume(c);
    } else if (ok) {
        settle(c);
        stream_flushed(c);
    } else {
        http_connection_close(c);
    }
}

void http_connection_refuse(struct http_connection *c, const struct http_fault *f)
{
    CLEANUP(buf_fini) struct buf body = {0};
    struct buf *head = &c->server->head;

    ASSERT(!c->message);
    if (!http_connection_is_up(c)) {
        http_connection_close(c); /* the client would not understand a response */
        return;
    }
    http_reader_fini(&c->reader);
    if (c->server->handler.refused)
        c->server->handler.refused(c->server->handler.arg, f->status, f->reason);
    http_problem_write(&body, f->status, f->type, slice_of(f->reason));
    buf_clear(head);
    http_answer_head(head, &(struct http_answer){.status = f->status,
                                                 .content_type = "application/problem+json",
                                                 .always = c->server->always,
                                                 .body_len = body.len,
                                                 .closes = true});
    c->closes = true;
    http_connection_answer(c, buf_view(head), buf_view(&body));
}

static void continue_send(struct http_connection *c)
{
    const struct slice text = SLICE("HTTP/1.1 100 Continue\r\n\r\n");

    if (!http_output_send(c, &text, 1))
        http_connection_close(c);
}

/* --- reading --- */

static void serve(struct http_connection *c, struct http_message *m)
{
    const struct http_handler *h = &c->server->handler;

    wait_for(c, HTTP_WAIT_NOTHING);
    c->message = m;
    c->server->request_count++;
    m->connection = c;
    c->phase = HTTP_PARKED;
    c->is_in_handler = true;
    h->handle(h->arg, &m->request);
    c->is_in_handler = false;
    if (c->phase == HTTP_CLOSED)
        message_end(c, false);
    else if (c->phase == HTTP_ANSWERED)
        finish(c);
}

/* Asks the handler whether it wants the body. False: the request was answered or parked without its
 * body. */
static bool head_passes(struct http_connection *c)
{
    const struct http_handler *h = &c->server->handler;
    struct http_message *m = c->reader.message;

    wait_for(c, HTTP_WAIT_NOTHING);
    c->message = m;
    c->server->request_count++;
    m->connection = c;
    m->is_cut = true;
    c->phase = HTTP_PARKED;
    c->is_in_handler = true;
    bool passes = h->head(h->arg, &m->request) && c->phase != HTTP_CLOSED;
    c->is_in_handler = false;
    if (passes) {
        ASSERT(!m->is_answered);
        m->is_cut = false;
        c->message = NULL;
        c->server->request_count--;
        c->phase = HTTP_READING;
        return true;
    }
    (void)http_reader_take_head(&c->reader); /* c->message has it */
    if (c->phase == HTTP_CLOSED)
        message_end(c, false);
    else if (c->phase == HTTP_ANSWERED)
        finish(c);
    return false;
}

/* Serves the contents of `in` as long as responses come at once; returns the rest. Of many requests
 * that came together some are served, and the rest when it is its turn again. */
static struct slice digest(struct http_connection *c, struct slice in)
{
    unsigned served = 0;

    while (c->phase == HTTP_READING && in.len > 0) {
        size_t used = 0;
        if (served == SERVED_AT_ONCE) {
            http_server_turn_to_read(c->server, c);
            return in;
        }
        enum http_read got = http_reader_feed(&c->reader, in, &used);
        in = (struct slice){in.ptr + used, in.len - used};
        switch (got) {
        case HTTP_READ_MORE:
            if (http_reader_wants_continue(&c->reader))
                continue_send(c);
            return in;
        case HTTP_READ_HEAD:
            if (head_passes(c) && in.len == 0 && http_reader_wants_continue(&c->reader))
                continue_send(c);
            break;
        case HTTP_READ_WHOLE:
            serve(c, http_reader_take(&c->reader));
            served++;
            break;
        case HTTP_READ_BAD:
            http_connection_refuse(c, &c->reader.fault);
            return SLICE("");
        }
    }
    return in;
}

static void keep(struct http_connection *c, struct slice in)
{
    if (c->in_at > 0) {
        memmove(c->in.ptr, c->in.ptr + c->in_at, pending_len(c));
        c->in.len -= c->in_at;
        c->in_at = 0;
    }
    buf_add(&c->in, in.ptr, in.len);
}

/* Continues with input that was read earlier. */
static void digest_kept(struct http_connection *c)
{
    if (c->phase != HTTP_READING || pending_len(c) == 0)
        return;
    struct slice rest = digest(c, (struct slice){c->in.ptr + c->in_at, pending_len(c)});
    if (c->phase == HTTP_LINGERING || c->phase == HTTP_CLOSED)
        return;
    c->in_at = c->in.len - rest.len;
    if (rest.len == 0) {
        buf_fini(&c->in); /* there are many parked and idle connections: they keep no buffer */
        c->in_at = 0;
    }
}

void http_connection_receive(struct http_connection *c, struct slice in)
{
    static const struct http_fault full = {503, "busy",
                                           "there is no room for more requests of this size"};

    if (c->phase == HTTP_LINGERING || c->phase == HTTP_CLOSED)
        return;
    if (c->phase == HTTP_READING && is_too_much(c, held_by(c) + in.len)) {
        http_connection_refuse(c, &full);
        return;
    }
    if (c->phase != HTTP_READING || waits_to_go_on(c)) {
        keep(c, in);
    } else if (pending_len(c) > 0) {
        keep(c, in);
        digest_kept(c);
    } else {
        struct slice rest = digest(c, in);
        if (rest.len > 0 && c->phase != HTTP_LINGERING && c->phase != HTTP_CLOSED)
            keep(c, rest);
    }
    settle(c);
}

void http_connection_ended(struct http_connection *c)
{
    c->is_ended = true;
    settle(c);
}

/* Much is on its way: what is thrown away, or a body that does not fit into one reading. */
static bool sends_much(const struct http_connection *c)
{
    const struct http_reader *r = &c->reader;
    const size_t one = sizeof c->server->bytes;

    return c->phase == HTTP_LINGERING
           || (c->phase == HTTP_READING && http_reader_is_in_body(r)
               && (r->left > one || (r->message && r->message->body.len > one)));
}

/* libuv would go on reading as long as something is there, up to 2 MiB: with many clients that send
 * much, all others would wait for that. */
static void yield_to_others(struct http_connection *c)
{
    if (!c->is_reading || !sends_much(c))
        return;
    http_server_turn_to_read(c->server, c);
    read_set(c, false);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct http_connection *c = stream->data;

    if (len > 0 && c->phase == HTTP_LINGERING) {
        if (!http_server_may_discard(c->server, (size_t)len))
            http_connection_close(c);
    } else if (len > 0 && c->tls) {
        http_secure_receive(c, (struct slice){buf->base, (size_t)len});
    } else if (len > 0) {
        http_connection_receive(c, (struct slice){buf->base, (size_t)len});
    } else if (len == UV_EOF) {
        c->is_reading = false; /* libuv has stopped */
        http_connection_ended(c);
    } else if (len < 0) {
        http_connection_close(c);
    }
    if (len > 0 && (size_t)len == buf->len)
        yield_to_others(c);
}

void http_connection_go_on(struct http_connection *c)
{
    digest_kept(c);
    settle(c);
}

void http_connection_resume(struct http_connection *c)
{
    finish(c);
    digest_kept(c);
    settle(c);
}

/* --- creation and deadlines --- */

void http_connection_open(struct http_server *s, int fd, unsigned adopted)
{
    struct http_connection *c = calloc(1, sizeof *c);

    ASSERT(c);
    int err = uv_tcp_init(s->loop, &c->tcp);
    ASSERT(err == 0); /* it does not allocate */
    c->tcp.data = c;
    c->server = s;
    c->wait = HTTP_WAIT_NOTHING;
    c->adopted = adopted;
    http_reader_init(&c->reader, &s->limits);
    c->reader.stops_at_head = s->handler.head != NULL;
    s->handles++;
    s->count++;
    list_push(&s->connections, &c->all);
    if (uv_tcp_open(&c->tcp, fd) != 0) {
        (void)close(fd); /* libuv did not take ownership */
        http_connection_close(c);
        return;
    }
    if (adopted == 0)
        http_secure_open(c);
    settle(c);
}

/* Whether the client closed a connection that is not being read. */
static bool is_hung_up(const struct http_connection *c)
{
    struct pollfd p = {.fd = fd_of(c), .events = POLLRDHUP};

    return poll(&p, 1, 0) > 0;
}

void http_connection_expire(struct http_connection *c)
{
    static const struct http_fault slow = {408, "timeout",
                                           "the request did not come in the time that it may take"};
    enum http_wait what = c->wait;

    wait_for(c, HTTP_WAIT_NOTHING);
    switch (what) {
    case HTTP_WAIT_HEAD:
    case HTTP_WAIT_BODY:
        http_connection_refuse(c, &slow);
        return;
    case HTTP_WAIT_PEEK:
        if (!is_hung_up(c)) {
            settle(c);
            return;
        }
        http_connection_close(c);
        return;
    case HTTP_WAIT_WRITE:
        if (c->phase == HTTP_STREAMING && http_output_taken(c) > c->taken) {
            settle(c); /* it is still reading */
            return;
        }
        http_connection_close(c);
        return;
    case HTTP_WAIT_IDLE:
    case HTTP_WAIT_LINGER:
        http_connection_close(c);
        return;
    case HTTP_WAIT_NOTHING:
        break;
    }
    UNREACHABLE();
}

void http_connection_drain(struct http_connection *c)
{
    settle(c);
}
