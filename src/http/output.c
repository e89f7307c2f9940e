/* What a connection sends: see output.h. Everything leaves through here, encrypted if there is
 * TLS. */
#include "http/output.h"

#include <stdlib.h>

#include "http/connection.h"

enum {
    SEALED_KEPT = 256 * 1024,
    JOINED_MAX = 16384, /* bytes of a record */
    PIECE = 16384,      /* of much, that is with libuv */
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

static size_t text_left(const struct http_output *o)
{
    return o->text ? o->text->bytes.len - o->text_at : 0;
}

static size_t kept_len(const struct http_output *o)
{
    return o->waiting.len - o->waiting_at + text_left(o) + o->behind.len;
}

/* The first of it that lies in one place, up to `max` bytes. */
static struct slice kept_first(const struct http_output *o, size_t max)
{
    struct slice s = {o->waiting.ptr + o->waiting_at, o->waiting.len - o->waiting_at};

    if (s.len == 0 && o->text)
        s = (struct slice){o->text->bytes.ptr + o->text_at, text_left(o)};
    return (struct slice){s.ptr, s.len < max ? s.len : max};
}

static void text_let_go(struct http_output *o)
{
    http_text_drop(o->text);
    o->text = NULL;
    o->text_at = 0;
    ASSERT(o->waiting.len == 0);
    o->waiting = o->behind;
    o->behind = (struct buf){0};
}

/* The kernel, or libuv, has so much of what was first. */
static void kept_taken(struct http_output *o, size_t len)
{
    if (o->waiting.len > 0) {
        o->waiting_at += len;
        if (o->waiting_at < o->waiting.len)
            return;
        buf_fini(&o->waiting);
        o->waiting_at = 0;
    } else {
        o->text_at += len;
    }
    if (o->text && text_left(o) == 0)
        text_let_go(o);
}

/* Keeps the parts but for their first `sent` bytes. What was lent is not copied. */
static void keep(struct http_output *o, const struct slice *parts, unsigned count, size_t sent)
{
    for (unsigned i = 0; i < count; i++) {
        size_t skip = sent < parts[i].len ? sent : parts[i].len;
        sent -= skip;
        if (skip == parts[i].len)
            continue;
        if (o->lent && !o->text && parts[i].ptr == o->lent->bytes.ptr) {
            o->text = http_text_hold(o->lent);
            o->text_at = skip;
            continue;
        }
        buf_add(o->text ? &o->behind : &o->waiting, parts[i].ptr + skip, parts[i].len - skip);
    }
}

/* ---- with libuv ---- */

/* Hands what waits to libuv; if that is much, a small piece of it: when that has gone, there is
 * room for more, and it is written by turns. */
static bool rest_send(struct http_connection *c)
{
    struct http_output *o = &c->output;
    struct http_rest *rest = calloc(1, sizeof *rest);

    ASSERT(rest);
    ASSERT(!o->rest);
    if (kept_len(o) <= HTTP_OUTPUT_SLICE && !o->text && o->waiting_at == 0) {
        rest->bytes = o->waiting;
        o->waiting = (struct buf){0};
    } else {
        struct slice first = kept_first(o, PIECE);
        ASSERT(first.ptr);
        buf_slice(&rest->bytes, first);
        kept_taken(o, first.len);
    }
    uv_buf_t whole = buf_of(buf_view(&rest->bytes));
    if (uv_write(&rest->req, stream_of(c), &whole, 1, on_written) != 0) {
        rest_free(rest);
        return false;
    }
    o->rest = rest;
    return true;
}

/* False: the connection is broken. */
static bool kept_send(struct http_connection *c)
{
    if (kept_len(&c->output) <= HTTP_OUTPUT_SLICE)
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

    while (left > 0 && kept_len(o) > 0) {
        struct slice first = kept_first(o, left);
        uv_buf_t b = buf_of(first);
        int n = uv_try_write(stream_of(c), &b, 1);
        if (n < 0 && n != UV_EAGAIN)
            return false;
        if (n > 0)
            kept_taken(o, (size_t)n);
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
    keep(o, parts, count, sent);
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

    return (c->output.rest ? with_libuv : 0) + kept_len(&c->output);
}

uint64_t http_output_taken(const struct http_connection *c)
{
    return c->output.accepted - http_output_backlog(c);
}

void http_output_fini(struct http_connection *c)
{
    ASSERT(!c->output.rest);
    buf_fini(&c->output.waiting);
    buf_fini(&c->output.behind);
    http_text_drop(c->output.text);
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
