/* Connections with TLS: the layer between the socket and the code that reads and answers.
 * Handshakes run on threads of libuv's pool. */

#include "http/connection.h"

#include <stdlib.h>

#include "base/priority.h"

enum { LOOK_MS = 2000, HANDSHAKES_MAX = 2 /* at a time: others need the threads, too */ };

enum err http_secure(struct http_server *s, const char *cert_file, const char *key_file,
                     struct error *e)
{
    ASSERT(!s->tls);
    return tls_keys_new(cert_file, key_file, &s->tls, e);
}

bool http_is_secure(const struct http_server *s)
{
    return s->tls != NULL;
}

void http_secure_reload(struct http_server *s)
{
    struct error e = {0};

    if (!s->tls)
        return;
    enum err err = tls_keys_reload(s->tls, &e);
    if (s->handler.certificate)
        s->handler.certificate(s->handler.arg, err == ERR_OK ? NULL : &e);
}

static void look(struct http_server *s)
{
    uint64_t now = uv_now(s->loop);

    if (now < s->tls_look_at)
        return;
    s->tls_look_at = now + LOOK_MS;
    if (tls_keys_changed(s->tls))
        http_secure_reload(s);
}

void http_secure_open(struct http_connection *c)
{
    if (!c->server->tls)
        return;
    look(c->server);
    c->tls = tls_new(c->server->tls);
    if (!c->tls)
        http_connection_close(c);
}

/* A plain-text request to a TLS port is a mistake: the answer says so in plain text. */
static void refuse_in_clear(struct http_connection *c)
{
    static const struct http_fault f = {400, "tls", "this port speaks TLS: ask it with https://"};

    tls_free(c->tls);
    c->tls = NULL;
    http_connection_refuse(c, &f);
}

static void give_up(struct http_connection *c)
{
    if (c->phase == HTTP_READING)
        http_connection_hang_up(c); /* the client may have been sent a reason */
    else
        http_connection_close(c);
}

/* Handles the result of decrypting input, and sends what TLS replies. */
static void opened(struct http_connection *c, enum tls_state state, struct slice plain,
                   struct slice sealed)
{
    if (!http_output_send_raw(c, sealed)) {
        http_connection_close(c);
        return;
    }
    http_connection_receive(c, plain);
    if (c->phase == HTTP_CLOSED || c->phase == HTTP_LINGERING)
        return;
    switch (state) {
    case TLS_GOES_ON:
        return;
    case TLS_ENDED:
        http_connection_ended(c);
        return;
    case TLS_NOT_TLS:
        refuse_in_clear(c);
        return;
    case TLS_IS_BROKEN:
        give_up(c);
        return;
    }
    UNREACHABLE();
}

/* --- handshakes --- */

/* A signature takes a millisecond or more, and any client can request one. */
struct http_handshake {
    uv_work_t work;
    struct link link; /* in server.handshakes, until it runs */
    struct http_connection *connection;
    struct buf wire, plain, sealed;
    enum tls_state state;
};

static void handshake_free(struct http_handshake *h)
{
    h->connection->handshake = NULL;
    link_remove(&h->link);
    buf_fini(&h->wire);
    buf_fini(&h->plain);
    buf_fini(&h->sealed);
    free(h);
}

static void on_thread(uv_work_t *work)
{
    struct http_handshake *h = CONTAINER_OF(work, struct http_handshake, work);

    thread_is_beside();
    h->state = tls_receive(h->connection->tls, buf_view(&h->wire), &h->plain, &h->sealed);
}

static void begin_some(struct http_server *s);

static void thread_done(uv_work_t *work, int status)
{
    struct http_handshake *h = CONTAINER_OF(work, struct http_handshake, work);
    struct http_connection *c = h->connection;
    struct http_handshake done = *h;

    ASSERT(status == 0); /* it is never cancelled */
    c->handshake = NULL;
    free(h);
    c->server->handshakes_running--;
    begin_some(c->server);
    if (c->is_let_go)
        http_connection_free(c);
    else if (c->phase != HTTP_CLOSED)
        opened(c, done.state, buf_view(&done.plain), buf_view(&done.sealed));
    buf_fini(&done.wire);
    buf_fini(&done.plain);
    buf_fini(&done.sealed);
}

static void begin_some(struct http_server *s)
{
    for (struct link *l = NULL;
         s->handshakes_running < HANDSHAKES_MAX && (l = list_first(&s->handshakes));) {
        struct http_handshake *h = CONTAINER_OF(l, struct http_handshake, link);
        link_remove(l);
        s->handshakes_running++;
        int rc = uv_queue_work(s->loop, &h->work, on_thread, thread_done);
        ASSERT(rc == 0); /* fails only without a callback */
    }
}

static void handshake_begin(struct http_connection *c, struct slice wire)
{
    struct http_handshake *h = calloc(1, sizeof *h);

    ASSERT(h);
    ASSERT(!c->handshake); /* nothing is read meanwhile */
    h->connection = c;
    buf_slice(&h->wire, wire);
    c->handshake = h;
    list_push(&c->server->handshakes, &h->link);
    begin_some(c->server);
    http_connection_settle(c);
}

bool http_secure_let_go(struct http_connection *c)
{
    if (c->handshake && link_is_in(&c->handshake->link))
        handshake_free(c->handshake);
    return !c->handshake;
}

void http_secure_receive(struct http_connection *c, struct slice wire)
{
    struct http_server *s = c->server;

    if (c->phase == HTTP_LINGERING || c->phase == HTTP_CLOSED)
        return;
    if (!http_connection_is_up(c)) {
        handshake_begin(c, wire);
        return;
    }
    buf_clear(&s->plain);
    buf_clear(&s->sealed);
    enum tls_state state = tls_receive(c->tls, wire, &s->plain, &s->sealed);
    opened(c, state, buf_view(&s->plain), buf_view(&s->sealed));
}
