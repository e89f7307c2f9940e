/* Parses a stream of text/event-stream into events, however its bytes are cut (the event_parser
 * functions of live_stream.h). Pure; live_stream.c feeds it what libcurl receives. */

#include "cli/client/live_stream.h"

/* A longer line ends the event: our servers send none. */
enum { LINE_MAX_SIZE = 64 << 20 };

static void take_field(struct event_parser *p, struct slice name, struct slice value)
{
    if (slice_is(name, "event")) {
        buf_clear(&p->name);
        buf_slice(&p->name, value);
    } else if (slice_is(name, "data")) {
        if (p->has_data)
            buf_byte(&p->data, '\n');
        buf_slice(&p->data, value);
        p->has_data = true;
    } else if (slice_is(name, "id") && !memchr(value.ptr, 0, value.len)) {
        buf_clear(&p->id);
        buf_slice(&p->id, value);
    } else if (slice_is(name, "retry") && value.len > 0 && value.len < 10) {
        int64_t ms = 0;
        for (size_t i = 0; i < value.len && ms >= 0; i++)
            ms = value.ptr[i] >= '0' && value.ptr[i] <= '9' ? ms * 10 + (value.ptr[i] - '0') : -1;
        p->retry_ms = ms >= 0 ? ms : p->retry_ms;
    }
}

static struct slice view_or_none(const struct buf *b)
{
    return b->len ? buf_view(b) : SLICE_NONE;
}

static void forget(struct event_parser *p)
{
    buf_clear(&p->name);
    buf_clear(&p->data);
    p->has_data = false;
}

static void take_line(struct event_parser *p, void (*take)(void *arg, const struct event *e),
                      void *arg)
{
    struct slice line = buf_view(&p->line);

    if (line.len == 0) {
        struct event e = {view_or_none(&p->name), view_or_none(&p->id), buf_view(&p->data)};
        if (p->has_data)
            take(arg, &e);
        forget(p);
        return;
    }
    const char *colon = memchr(line.ptr, ':', line.len);
    size_t len = colon ? (size_t)(colon - line.ptr) : line.len;
    struct slice value = SLICE("");
    if (colon) {
        value = (struct slice){colon + 1, line.len - len - 1};
        if (value.len > 0 && value.ptr[0] == ' ')
            value = (struct slice){value.ptr + 1, value.len - 1};
    }
    take_field(p, (struct slice){line.ptr, len}, value); /* a comment has no name */
}

void event_parser_feed(struct event_parser *p, struct slice bytes,
                       void (*take)(void *arg, const struct event *e), void *arg)
{
    p->line.max = p->data.max = LINE_MAX_SIZE;
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.ptr[i];
        bool second = c == '\n' && p->after_cr; /* of a CR LF */
        p->after_cr = c == '\r';
        if (second)
            continue;
        if (c != '\n' && c != '\r') {
            buf_byte(&p->line, c);
            continue;
        }
        take_line(p, take, arg);
        buf_clear(&p->line);
    }
}

void event_parser_cut(struct event_parser *p)
{
    buf_clear(&p->line);
    forget(p);
    p->after_cr = false;
}

void event_parser_fini(struct event_parser *p)
{
    buf_fini(&p->line);
    buf_fini(&p->name);
    buf_fini(&p->data);
    buf_fini(&p->id);
}
