/* Parses an HTTP response for those who call services: status and headers, Retry-After, and
 * quotes of the body for messages (received_answer.h). Pure: transfer.c receives the bytes.
 * agents/http/http_answer.c interprets them for a step; http/response.c is the other side, which
 * writes responses. */

#include "net/received_answer.h"

#include <curl/curl.h>

#include "base/when.h"
#include "json/text.h"

#define AFTER_MAX_MS MS_PER_D

bool header_value_is_sound(struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return false;
    }
    return value.len <= HEADER_VALUE_MAX;
}

/* ---- the head ---- */

static struct slice trimmed(struct slice s)
{
    while (s.len > 0 && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s = (struct slice){s.ptr + 1, s.len - 1};
    while (s.len > 0 && strchr(" \t\r\n", s.ptr[s.len - 1]))
        s.len--;
    return s;
}

static struct slice lowered(struct slice name, struct arena *a)
{
    char *text = arena_bytes(a, name.len + 1);

    if (name.len > 0)
        memcpy(text, name.ptr, name.len);
    for (size_t i = 0; i < name.len; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            text[i] = (char)(text[i] | 0x20);
    text[name.len] = 0;
    return (struct slice){text, name.len};
}

static struct slice joined(struct slice one, struct slice two, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_slice(&b, one);
    buf_str(&b, ", ");
    buf_slice(&b, two);
    return arena_copy(a, buf_view(&b));
}

static void add_header(struct http_answer *a, struct slice line, struct arena *arena)
{
    struct header **end = &a->headers;
    const char *colon = line.len ? memchr(line.ptr, ':', line.len) : NULL;

    if (!colon)
        return;
    struct slice name =
        lowered(trimmed((struct slice){line.ptr, (size_t)(colon - line.ptr)}), arena);
    struct slice value =
        trimmed((struct slice){colon + 1, line.len - (size_t)(colon - line.ptr) - 1});
    if (name.len == 0 || text_utf8_end(name) != name.len || text_utf8_end(value) != value.len
        || !header_value_is_sound(value))
        return; /* unusable */
    for (; *end; end = &(*end)->next)
        if (slice_eq((*end)->name, name)) {
            (*end)->value = joined((*end)->value, value, arena);
            return;
        }
    *end = arena_alloc(arena, sizeof **end);
    **end = (struct header){NULL, name, value};
}

void answer_read_head(struct http_answer *a, struct slice head, struct arena *arena)
{
    for (size_t from = 0; from < head.len;) {
        const char *end = memchr(head.ptr + from, '\n', head.len - from);
        size_t to = end ? (size_t)(end - head.ptr) : head.len;
        struct slice line = {head.ptr + from, to - from};
        if (line.len >= 5 && memcmp(line.ptr, "HTTP/", 5) == 0)
            a->headers = NULL;
        else
            add_header(a, line, arena);
        from = to + 1;
    }
}

struct slice answer_header(const struct http_answer *a, const char *name)
{
    for (const struct header *h = a->headers; h; h = h->next)
        if (slice_is(h->name, name))
            return h->value;
    return SLICE_NONE;
}

int64_t answer_retry_after(struct slice value, int64_t now)
{
    char text[64] = "";
    size_t digits = 0;
    int64_t seconds = 0;

    if (!value.ptr || value.len == 0 || value.len >= sizeof text)
        return -1;
    memcpy(text, value.ptr, value.len);
    while (digits < 12 && text[digits] >= '0' && text[digits] <= '9')
        seconds = seconds * 10 + (text[digits++] - '0');
    if (digits == value.len)
        return min_i64(seconds * 1000, AFTER_MAX_MS);
    if (digits > 0) /* "1.5", "10s": libcurl would read the day of a month */
        return -1;
    time_t at = curl_getdate(text, NULL);
    if (at < 0)
        return -1;
    if (at > INT64_MAX / 1000) /* the year 999999999 */
        return AFTER_MAX_MS;
    return min_i64(max_i64((int64_t)at * 1000 - now, 0), AFTER_MAX_MS);
}

void answer_quote(struct buf *b, struct slice text, size_t max)
{
    struct slice cut = trimmed(slice_cut(text, max));
    bool was_blank = false;

    for (size_t i = 0; i < cut.len;) {
        struct slice rest = {cut.ptr + i, cut.len - i};
        unsigned char c = (unsigned char)*rest.ptr;
        size_t good = c < 0x80 ? 1 : text_utf8_end(rest);
        if (c <= ' ' || c == 0x7f) {
            if (!was_blank)
                buf_byte(b, ' ');
            was_blank = true;
            i++;
            continue;
        }
        was_blank = false;
        if (good == 0) {
            buf_byte(b, '?');
            i++;
            continue;
        }
        size_t size = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
        buf_add(b, rest.ptr, size);
        i += size;
    }
    if (cut.len < text.len)
        buf_str(b, "...");
}
