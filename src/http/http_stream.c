/* Responses that come in pieces, chunked, sized or until the end of the connection (the
 * http_stream functions of http.h): what may be written now, and the backlog of a slow reader.
 * The connection's state is in connection.c. Runs on the event loop. */

#include "http/connection.h"
#include "http/response.h"

enum { LAST_WORD = 4096 };

static struct http_connection *streaming(const struct http_request *r)
{
    struct http_connection *c = http_message_of(r)->connection;

    return c->phase == HTTP_STREAMING && c->message == http_message_of(r) ? c : NULL;
}

static void begin(struct http_request *r, struct http_answer *a)
{
    struct http_message *m = http_message_of(r);
    struct http_connection *c = m->connection;

    ASSERT(!m->is_answered);
    m->is_answered = true;
    r->status = a->status;
    if (c->phase == HTTP_CLOSED)
        return;
    ASSERT(c->phase == HTTP_PARKED);
    ASSERT(c->message == m);
    struct http_server *s = c->server;
    m->is_chunked = a->is_stream && !http_message_is_1_0(m);
    c->closes = !m->keeps_alive || m->is_cut || s->is_draining || (a->is_stream && !m->is_chunked);
    bool has_body = http_status_has_body(a->status) && !slice_is(r->method, "HEAD");
    a->is_chunked = m->is_chunked;
    a->closes = c->closes;
    a->says_1_0 = http_message_is_1_0(m);
    a->always = s->always;
    buf_clear(&s->head);
    http_answer_head(&s->head, a);
    if (has_body)
        http_connection_stream(c, buf_view(&s->head));
    else
        http_connection_answer(c, buf_view(&s->head), SLICE(""));
}

void http_stream_begin(struct http_request *r, int status, const char *content_type,
                       const char *headers)
{
    begin(r, &(struct http_answer){.status = status,
                                   .content_type = content_type,
                                   .headers = headers,
                                   .is_stream = true});
}

void http_stream_begin_sized(struct http_request *r, int status, const char *content_type,
                             const char *headers, uint64_t size)
{
    struct http_message *m = http_message_of(r);

    m->is_sized = true;
    m->left = size;
    begin(r, &(struct http_answer){.status = status,
                                   .content_type = content_type,
                                   .headers = headers,
                                   .body_len = size});
}

/* What waits for the connection's turn says nothing of its reader: a last word may go behind it. */
static bool has_room(const struct http_connection *c, size_t len)
{
    return http_output_backlog(c) <= c->server->limits.stream_backlog_max
           || (link_is_in(&c->turn_to_write) && len <= LAST_WORD);
}

bool http_stream_write(struct http_request *r, struct slice bytes)
{
    struct http_connection *c = streaming(r);
    char size[24];

    if (!c || !has_room(c, bytes.len))
        return false;
    if (bytes.len == 0)
        return true; /* an empty chunk would end the stream */
    if (c->message->is_sized) {
        ASSERT(bytes.len <= c->message->left);
        c->message->left -= bytes.len;
    }
    if (!c->message->is_chunked)
        return http_connection_stream_on(c, &bytes, 1);
    int len = snprintf(size, sizeof size, "%zx\r\n", bytes.len);
    ASSERT(len > 0);
    const struct slice chunk[] = {{size, (size_t)len}, bytes, SLICE("\r\n")};
    return http_connection_stream_on(c, chunk, COUNT_OF(chunk));
}

bool http_stream_write_text(struct http_request *r, struct http_text *t)
{
    struct http_connection *c = http_message_of(r)->connection;

    c->output.lent = t;
    bool taken = http_stream_write(r, buf_view(&t->bytes));
    c->output.lent = NULL;
    return taken;
}

size_t http_stream_backlog(const struct http_request *r)
{
    const struct http_connection *c = streaming(r);

    return c ? http_output_backlog(c) : 0;
}

void http_stream_end(struct http_request *r)
{
    struct http_connection *c = streaming(r);

    if (!c)
        return;
    if (c->message->is_sized && c->message->left > 0) {
        http_connection_cut(c);
        return;
    }
    c->closes = c->closes || c->server->is_draining;
    http_connection_answer(c, c->message->is_chunked ? SLICE("0\r\n\r\n") : SLICE(""), SLICE(""));
}
