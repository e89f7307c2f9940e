/* Connections that speak TLS: between the socket and those who read and answer. */

#include "http/connection.h"

enum { LOOK_MS = 2000 };

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

/* Nobody sends a request in clear to a port with TLS but by mistake: it is told, in clear. */
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
        http_connection_hang_up(c); /* it may have been told why */
    else
        http_connection_close(c);
}

void http_secure_receive(struct http_connection *c, struct slice wire)
{
    struct http_server *s = c->server;

    if (c->phase == HTTP_LINGERING || c->phase == HTTP_CLOSED)
        return;
    buf_clear(&s->plain);
    buf_clear(&s->sealed);
    enum tls_state state = tls_receive(c->tls, wire, &s->plain, &s->sealed);
    if (!http_output_send_raw(c, buf_view(&s->sealed))) {
        http_connection_close(c);
        return;
    }
    http_connection_receive(c, buf_view(&s->plain));
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
