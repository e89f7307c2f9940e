/* Writes the CloudEvent of a message from the parts that the outbox stores, and measures it
 * before (envelope.h). Pure. outbox/telling.c makes the parts, outbox/courier.c and the stores
 * complete the text. */

#include "store/codec/envelope.h"

#include "base/pen.h"
#include "base/when.h"
#include "json/json.h"

struct slice envelope_event(struct slice name)
{
    const char *slash = memchr(name.ptr, '/', name.len);

    if (slash)
        name = (struct slice){slash + 1, name.len - (size_t)(slash + 1 - name.ptr)};
    slash = memchr(name.ptr, '/', name.len);
    name.len = slash ? (size_t)(slash - name.ptr) : name.len;
    return name;
}

/* 20 digits: texts of one length are in the order of their numbers. */
static char *pen_sequence(char *at, uint64_t v)
{
    for (size_t i = 20; i-- > 0; v /= 10)
        at[i] = (char)('0' + v % 10);
    return at + 20;
}

/* Three of these are made for most tasks. Ids and names need no escape. */
void envelope_begin(struct buf *b, const struct message *m)
{
    struct slice event = envelope_event(m->name);
    char *at = pen_begin(b, 60 + m->task.len + m->name.len);

    at = PEN(at, "{\"specversion\":\"1.0\",\"id\":\"");
    at = pen_slice(at, m->task);
    at = PEN(at, "/");
    at = pen_slice(at, m->name);
    at = PEN(at, "\",\"source\":");
    pen_end(b, at);
    json_string(b, m->source);
    at = pen_begin(b, 60 + event.len + m->task.len);
    at = PEN(at, ",\"type\":\"intact.task.");
    at = pen_slice(at, event);
    at = PEN(at, "\",\"subject\":\"");
    at = pen_slice(at, m->task);
    at = PEN(at, "\",\"time\":\"");
    pen_end(b, at);
    time_write(b, m->created_at);
    at = pen_begin(b, 100);
    at = PEN(at, "\",\"datacontenttype\":\"application/json\",\"sequence\":\"");
    at = pen_sequence(at, m->sequence);
    at = PEN(at, "\"");
    pen_end(b, at);
    if (m->trace.ptr) { /* CloudEvents, Distributed Tracing Extension */
        json_member_text(b, "traceparent", m->trace);
    }
    buf_str(b, ",\"data\":");
}

void envelope_write(struct buf *b, const struct message *m)
{
    if (m->body.ptr) {
        buf_slice(b, m->body);
        return;
    }
    envelope_begin(b, m);
    buf_slice(b, m->data);
    buf_byte(b, '}');
}

size_t envelope_size(const struct message *m)
{
    enum { OF_ITSELF = 256, ESCAPED = 6 };

    if (m->body.ptr)
        return m->body.len;
    return OF_ITSELF + 2 * (m->task.len + m->name.len) + ESCAPED * (m->source.len + m->trace.len)
           + m->data.len;
}
