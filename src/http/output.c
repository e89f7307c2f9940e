/* What a connection sends: see output.h. Everything leaves through here, encrypted if there is
 * TLS. */
#include "http/output.h"

#include <stdlib.h>

#include "http/connection.h"

enum { SEALED_KEPT = 256 * 1024, JOINED_MAX = 16384 /* bytes of a record */ };

struct http_rest {
    uv_write_t req;
    struct buf bytes;
};

static uv_stream_t *stream_of(struct http_connection *c)
{
    return (uv_stream_t *)&c->tcp;
}

/* libuv has one type for reading and writing; it does not modify what it writes. */
static uv_buf_t buf_of(struct slice s)
{
    union {
        const char *ours;
        char *libuvs;
    } ptr = {.ours = s.ptr};

    return (uv_buf_t){.base = ptr.libuvs, .len = s.len};
}

static void rest_free(struct http_rest *rest)
{
    buf_fini(&rest->bytes);
    free(rest);
}

static void on_written(uv_write_t *req, int status);

/* Passes the waiting bytes to libuv. */
static bool rest_send(struct http_connection *c)
{
    struct http_output *o = &c->output;
    struct http_rest *rest = malloc(sizeof *rest);

    ASSERT(rest);
    ASSERT(!o->rest);
    rest->bytes = o->waiting;
    o->waiting = (struct buf){0};
    uv_buf_t whole = buf_of(buf_view(&rest->bytes));
    if (uv_write(&rest->req, stream_of(c), &whole, 1, on_written) != 0) {
        rest_free(rest);
        return false;
    }
    o->rest = rest;
    return true;
}

static void on_written(uv_write_t *req, int status)
{
    struct http_rest *rest = CONTAINER_OF(req, struct http_rest, req);
    struct http_connection *c = req->handle->data;
    bool ok = status == 0;

    ASSERT(c->output.rest == rest);
    rest_free(rest);
    c->output.rest = NULL;
    if (c->phase == HTTP_CLOSED)
        return;
    if (ok && c->output.waiting.len > 0) {
        ok = rest_send(c);
        if (ok)
            return;
    }
    http_connection_flushed(c, ok);
}

/* Keeps the parts without their first `sent` bytes. */
static void keep(struct http_output *o, const struct slice *parts, unsigned count, size_t sent)
{
    for (unsigned i = 0; i < count; i++) {
        size_t skip = sent < parts[i].len ? sent : parts[i].len;
        sent -= skip;
        buf_add(&o->waiting, parts[i].ptr + skip, parts[i].len - skip);
    }
}

static bool send_parts(struct http_connection *c, const struct slice *parts, unsigned count)
{
    struct http_output *o = &c->output;
    uv_buf_t bufs[HTTP_OUTPUT_PARTS];
    size_t len = 0;
    size_t sent = 0;

    ASSERT(count <= HTTP_OUTPUT_PARTS);
    for (unsigned i = 0; i < count; i++) {
        bufs[i] = buf_of(parts[i]);
        len += parts[i].len;
    }
    if (len == 0)
        return true;
    if (!o->rest) {
        int n = uv_try_write(stream_of(c), bufs, count);
        if (n < 0 && n != UV_EAGAIN)
            return false;
        sent = n > 0 ? (size_t)n : 0;
    }
    o->accepted += len;
    if (sent == len)
        return true;
    keep(o, parts, count, sent);
    return o->rest || rest_send(c);
}

bool http_output_send_raw(struct http_connection *c, struct slice bytes)
{
    return send_parts(c, &bytes, 1);
}

/* Releases the memory after a large response; most are small. */
static void sealed_clear(struct buf *b)
{
    if (b->cap > SEALED_KEPT)
        buf_fini(b);
    buf_clear(b);
}

/* Head and body of a small response, or the three parts of a chunk, share a record. */
static bool seal(struct http_connection *c, const struct slice *parts, unsigned count)
{
    struct buf *joined = &c->server->joined;
    struct buf *sealed = &c->server->sealed;
    size_t len = 0;

    sealed_clear(sealed);
    buf_clear(joined);
    for (unsigned i = 0; i < count; i++)
        len += parts[i].len;
    for (unsigned i = 0; i < count; i++) {
        if (len <= JOINED_MAX)
            buf_slice(joined, parts[i]);
        else if (!tls_send(c->tls, parts[i], sealed))
            return false;
    }
    return tls_send(c->tls, buf_view(joined), sealed);
}

bool http_output_send(struct http_connection *c, const struct slice *parts, unsigned count)
{
    if (!c->tls)
        return send_parts(c, parts, count);
    return seal(c, parts, count) && http_output_send_raw(c, buf_view(&c->server->sealed));
}

bool http_output_end(struct http_connection *c)
{
    struct buf *sealed = &c->server->sealed;

    if (!c->tls || c->handshake)
        return true;
    sealed_clear(sealed);
    tls_end(c->tls, sealed);
    return http_output_send_raw(c, buf_view(sealed));
}

size_t http_output_backlog(const struct http_connection *c)
{
    size_t with_libuv = uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp);

    return c->output.rest ? with_libuv + c->output.waiting.len : 0;
}

uint64_t http_output_taken(const struct http_connection *c)
{
    return c->output.accepted - http_output_backlog(c);
}

void http_output_fini(struct http_connection *c)
{
    ASSERT(!c->output.rest);
    buf_fini(&c->output.waiting);
}
