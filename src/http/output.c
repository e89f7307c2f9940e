/* What a connection sends: see output.h. Everything leaves through here, encrypted if there is
 * TLS. */
#include "http/output.h"

#include <stdlib.h>

#include "http/connection.h"

enum {
    PIECE = 16384, /* of much, that is with libuv */
};

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

/* ---- what is kept ---- */

/* All that is not with libuv or the kernel. */
static size_t kept_len(const struct http_output *o)
{
    return http_queue_len(&o->kept) + http_queue_len(&o->plain);
}

/* Encrypts the next plain bytes, a record at most. */
static bool seal_next(struct http_connection *c)
{
    struct http_output *o = &c->output;
    struct buf *wire = http_queue_end(&o->kept);
    struct slice first = http_queue_first(&o->plain, TLS_RECORD_MAX);
    size_t before = wire->len;

    if (!tls_send(c->tls, first, wire))
        return false;
    http_queue_taken(&o->plain, first.len);
    if (o->is_ended && http_queue_len(&o->plain) == 0)
        tls_end(c->tls, wire);
    o->accepted += wire->len - before - first.len;
    return true;
}

/* Encrypts plain bytes until there is a slice to send. */
static bool seal_slice(struct http_connection *c)
{
    const struct http_output *o = &c->output;

    while (http_queue_len(&o->plain) > 0 && http_queue_len(&o->kept) < HTTP_OUTPUT_SLICE) {
        if (!seal_next(c))
            return false;
    }
    return true;
}

/* ---- with libuv ---- */

/* Hands what waits to libuv; if that is much, a small piece of it: when that has gone, there is
 * room for more, and it is written by turns. */
static bool rest_send(struct http_connection *c)
{
    struct http_output *o = &c->output;
    struct http_queue *kept = &o->kept;
    struct http_rest *rest = calloc(1, sizeof *rest);

    ASSERT(rest);
    ASSERT(!o->rest);
    if (http_queue_len(kept) <= HTTP_OUTPUT_SLICE && !kept->text && kept->waiting_at == 0) {
        rest->bytes = kept->waiting;
        kept->waiting = (struct buf){0};
    } else {
        struct slice first = http_queue_first(kept, PIECE);
        ASSERT(first.ptr);
        buf_slice(&rest->bytes, first);
        http_queue_taken(kept, first.len);
    }
    uv_buf_t whole = buf_of(buf_view(&rest->bytes));
    if (uv_write(&rest->req, stream_of(c), &whole, 1, on_written) != 0) {
        rest_free(rest);
        return false;
    }
    o->rest = rest;
    return true;
}

/* What is much, or has to be encrypted, waits for a turn. False: the connection is broken. */
static bool kept_send(struct http_connection *c)
{
    struct http_output *o = &c->output;

    if (http_queue_len(&o->plain) == 0 && http_queue_len(&o->kept) <= HTTP_OUTPUT_SLICE)
        return rest_send(c);
    http_server_turn_to_write(c->server, c);
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
    if (ok && kept_len(&c->output) > 0) {
        ok = kept_send(c);
        if (ok)
            return;
    }
    http_connection_flushed(c, ok);
}

/* It is the connection's turn, and libuv has nothing of it. */
static bool write_slice(struct http_connection *c)
{
    struct http_output *o = &c->output;
    size_t left = HTTP_OUTPUT_SLICE;

    if (!seal_slice(c))
        return false;
    while (left > 0 && http_queue_len(&o->kept) > 0) {
        struct slice first = http_queue_first(&o->kept, left);
        uv_buf_t b = buf_of(first);
        int n = uv_try_write(stream_of(c), &b, 1);
        if (n < 0 && n != UV_EAGAIN)
            return false;
        if (n > 0)
            http_queue_taken(&o->kept, (size_t)n);
        if (n < 0 || (size_t)n < first.len)
            return rest_send(c);
        left -= first.len;
    }
    return kept_len(o) == 0 || kept_send(c);
}

void http_output_go_on(struct http_connection *c)
{
    const struct http_handler *h = &c->server->handler;
    uint64_t began_ns = uv_hrtime();

    ASSERT(!c->output.rest);
    bool ok = write_slice(c);
    if (h->wrote && c->message)
        h->wrote(h->arg, &c->message->request, uv_hrtime() - began_ns);
    if (!ok || (!c->output.rest && kept_len(&c->output) == 0))
        http_connection_flushed(c, ok);
}

/* ---- what is sent ---- */

/* As much of it as one turn has. */
static unsigned cut_to_slice(uv_buf_t *bufs, unsigned count)
{
    size_t left = HTTP_OUTPUT_SLICE;

    for (unsigned i = 0; i < count; i++) {
        if (bufs[i].len >= left) {
            bufs[i].len = left;
            return i + 1;
        }
        left -= bufs[i].len;
    }
    return count;
}

static bool send_parts(struct http_connection *c, const struct slice *parts, unsigned count)
{
    struct http_output *o = &c->output;
    uv_buf_t bufs[HTTP_OUTPUT_PARTS];
    size_t len = 0;
    size_t sent = 0;
    bool goes_on = o->rest || kept_len(o) > 0;

    ASSERT(count <= HTTP_OUTPUT_PARTS);
    for (unsigned i = 0; i < count; i++) {
        bufs[i] = buf_of(parts[i]);
        len += parts[i].len;
    }
    if (len == 0)
        return true;
    if (!goes_on) {
        int n = uv_try_write(stream_of(c), bufs, cut_to_slice(bufs, count));
        if (n < 0 && n != UV_EAGAIN)
            return false;
        sent = n > 0 ? (size_t)n : 0;
    }
    o->accepted += len;
    if (sent == len)
        return true;
    http_queue_add(&o->kept, parts, count, sent, o->lent);
    if (goes_on)
        return true;
    if (sent < HTTP_OUTPUT_SLICE)
        return rest_send(c);
    http_server_turn_to_write(c->server, c);
    return true;
}

bool http_output_send_raw(struct http_connection *c, struct slice bytes)
{
    return send_parts(c, &bytes, 1);
}

/* Encrypts a slice of the parts at most; `*ret_len` is how much of them. Head and body of a small
 * response, or the three parts of a chunk, share a record. */
static bool seal(struct http_connection *c, const struct slice *parts, unsigned count,
                 size_t *ret_len)
{
    struct buf *joined = &c->server->joined;
    struct buf *sealed = &c->server->sealed;
    size_t len = 0;
    size_t left = HTTP_OUTPUT_SLICE;

    buf_clear(sealed);
    buf_clear(joined);
    for (unsigned i = 0; i < count; i++)
        len += parts[i].len;
    for (unsigned i = 0; i < count; i++) {
        struct slice some = {parts[i].ptr, parts[i].len < left ? parts[i].len : left};
        left -= some.len;
        if (len <= TLS_RECORD_MAX)
            buf_slice(joined, some);
        else if (!tls_send(c->tls, some, sealed))
            return false;
    }
    *ret_len = HTTP_OUTPUT_SLICE - left;
    return tls_send(c->tls, buf_view(joined), sealed);
}

/* Keeps what follows the first `done` bytes of the parts. It is encrypted later. */
static void keep_plain(struct http_output *o, const struct slice *parts, unsigned count,
                       size_t done)
{
    size_t before = http_queue_len(&o->plain);

    http_queue_add(&o->plain, parts, count, done, o->lent);
    o->accepted += http_queue_len(&o->plain) - before;
}

bool http_output_send(struct http_connection *c, const struct slice *parts, unsigned count)
{
    struct http_output *o = &c->output;
    size_t done = 0;

    if (!c->tls)
        return send_parts(c, parts, count);
    if (http_queue_len(&o->plain) > 0) {
        keep_plain(o, parts, count, 0);
        return true;
    }
    if (!seal(c, parts, count, &done) || !http_output_send_raw(c, buf_view(&c->server->sealed)))
        return false;
    keep_plain(o, parts, count, done);
    if (http_queue_len(&o->plain) > 0 && !o->rest)
        http_server_turn_to_write(c->server, c);
    return true;
}

bool http_output_end(struct http_connection *c)
{
    struct buf *sealed = &c->server->sealed;

    if (!c->tls || c->handshake)
        return true;
    if (http_queue_len(&c->output.plain) > 0) {
        c->output.is_ended = true;
        return true;
    }
    buf_clear(sealed);
    tls_end(c->tls, sealed);
    return http_output_send_raw(c, buf_view(sealed));
}

size_t http_output_backlog(const struct http_connection *c)
{
    size_t with_libuv = uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp);

    return (c->output.rest ? with_libuv : 0) + kept_len(&c->output);
}

uint64_t http_output_taken(const struct http_connection *c)
{
    return c->output.accepted - http_output_backlog(c);
}

void http_output_fini(struct http_connection *c)
{
    ASSERT(!c->output.rest);
    http_queue_fini(&c->output.kept);
    http_queue_fini(&c->output.plain);
}

/* ---- texts that many may keep ---- */

struct http_text *http_text_new(struct buf *bytes)
{
    struct http_text *t = malloc(sizeof *t);

    ASSERT(t);
    *t = (struct http_text){.refs = 1, .bytes = *bytes};
    *bytes = (struct buf){0};
    return t;
}

struct http_text *http_text_hold(struct http_text *t)
{
    t->refs++;
    return t;
}

void http_text_drop(struct http_text *t)
{
    if (!t || --t->refs > 0)
        return;
    buf_fini(&t->bytes);
    free(t);
}
