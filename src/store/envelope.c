#include "store/envelope.h"

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

/* What stays the same is written as it is, and so are words that need no escape, as ids and names:
 * three of these are made for most tasks. */
static void put(struct buf *b, const char *before, struct slice plain)
{
    buf_str(b, before);
    buf_slice(b, plain);
}

/* 20 digits: texts of one length are in the order of their numbers. */
static void write_sequence(struct buf *b, uint64_t v)
{
    char digits[20];

    for (size_t i = sizeof digits; i-- > 0; v /= 10)
        digits[i] = (char)('0' + v % 10);
    buf_add(b, digits, sizeof digits);
}

void envelope_begin(struct buf *b, const struct message *m)
{
    put(b, "{\"specversion\":\"1.0\",\"id\":\"", m->task);
    put(b, "/", m->name);
    buf_str(b, "\",\"source\":");
    json_string(b, m->source);
    put(b, ",\"type\":\"intact.task.", envelope_event(m->name));
    put(b, "\",\"subject\":\"", m->task);
    buf_str(b, "\",\"time\":\"");
    time_write(b, m->created_at);
    buf_str(b, "\",\"datacontenttype\":\"application/json\",\"sequence\":\"");
    write_sequence(b, m->sequence);
    buf_str(b, "\",\"data\":");
}
