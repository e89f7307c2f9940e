/* Turns bytes into requests: a strict scanner in front of llhttp. See request_reader.h. No sockets,
 * no clock. */
#include "http/request_reader.h"

#include <endian.h>

enum {
    CHUNK_SIZE_LEN = 18
}; /* sixteen digits and CRLF: the size of a chunk line without extensions */

enum scan { SCAN_MORE, SCAN_END, SCAN_BAD, SCAN_LONG /* the request line */ };

static struct http_reader *reader_of(llhttp_t *p)
{
    return p->data;
}

static bool refuse(struct http_reader *r, int status, const char *type, const char *reason)
{
    r->fault = (struct http_fault){status, type, reason};
    return false;
}

/* A span may come in several calls, but always contiguous in the one copy of the head. */
static void extend(struct slice *s, const char *at, size_t len)
{
    if (!s->ptr)
        s->ptr = at;
    ASSERT(s->ptr + s->len == at);
    s->len += len;
}

static int on_header_field(llhttp_t *p, const char *at, size_t len)
{
    struct http_reader *r = reader_of(p);

    if (r->part == HTTP_HEAD_PART)
        extend(&r->field.name, at, len);
    return 0;
}

static int on_header_value(llhttp_t *p, const char *at, size_t len)
{
    struct http_reader *r = reader_of(p);

    if (r->part == HTTP_HEAD_PART)
        extend(&r->field.value, at, len);
    return 0;
}

static int on_header_value_complete(llhttp_t *p)
{
    struct http_reader *r = reader_of(p);
    struct http_message *m = r->message;
    struct slice *value = &r->field.value;

    if (r->part != HTTP_HEAD_PART)
        return 0;
    if (!value->ptr)
        *value = SLICE("");
    while (value->len > 0 && strchr(" \t", value->ptr[value->len - 1]))
        value->len--;
    ASSERT(m->field_count < m->field_max);
    m->fields[m->field_count++] = r->field;
    r->field = (struct http_field){SLICE_NONE, SLICE_NONE};
    return 0;
}

static bool length_fits(struct http_reader *r, uint64_t len)
{
    if (len > r->body_max - r->body_len)
        return refuse(r, 413, "too-big", "the body is longer than this server takes");
    r->body_len += len;
    return true;
}

static int on_headers_complete(llhttp_t *p)
{
    struct http_reader *r = reader_of(p);
    struct http_message *m = r->message;
    struct http_framing framing;

    p->upgrade = 0; /* RFC 9110, 7.8: a server may ignore Upgrade, and this one does */
    m->keeps_alive = llhttp_should_keep_alive(p) == 1;
    if (!http_head_check(m, &framing, &r->fault))
        return -1;
    if (framing.has_length && !length_fits(r, p->content_length))
        return -1;
    r->left = framing.has_length ? p->content_length : 0;
    r->part = framing.is_chunked ? HTTP_CHUNK_LINE : HTTP_BODY;
    return 0;
}

static int on_chunk_header(llhttp_t *p)
{
    struct http_reader *r = reader_of(p);

    if (!length_fits(r, p->content_length))
        return -1;
    r->part = p->content_length > 0 ? HTTP_CHUNK : HTTP_TRAILERS;
    r->left = p->content_length + 2;
    return 0;
}

/* A body that comes in one piece is stored in the arena. Otherwise memory grows with the bytes
 * received, so announcing a large body costs nothing. */
static int on_body(llhttp_t *p, const char *at, size_t len)
{
    struct http_reader *r = reader_of(p);
    struct http_message *m = r->message;

    if (r->part == HTTP_BODY && len == r->body_len)
        m->request.body = arena_copy(&m->request.arena, (struct slice){at, len});
    else
        buf_add(&m->body, at, len);
    return 0;
}

static int on_message_complete(llhttp_t *p)
{
    struct http_reader *r = reader_of(p);
    struct http_message *m = r->message;

    if (!m->request.body.ptr)
        m->request.body = buf_view(&m->body);
    r->is_whole = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_chunk_header = on_chunk_header,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

/* Feeds one part, or a piece of it, to llhttp, which must consume all of it. */
static bool feed(struct http_reader *r, struct slice piece)
{
    llhttp_errno_t err = llhttp_execute(&r->parser, piece.ptr, piece.len);

    if (r->fault.status)
        return false;
    if (err == HPE_OK)
        return true;
    if (err == HPE_PAUSED && llhttp_get_error_pos(&r->parser) == piece.ptr + piece.len)
        return true;
    return refuse(r, 400, "malformed", llhttp_get_error_reason(&r->parser));
}

/* The bytes that are allowed in a line. */
static bool is_fit_for_line(char c)
{
    unsigned char u = (unsigned char)c;

    return (u >= ' ' && u != 0x7f) || u == '\t' || u == '\r';
}

/* The length of the run of bytes that are allowed in a line, without CR and tabs; or of a part of
 * it. Eight at a time: a head has few others. */
static size_t plain_run(const char *ptr, size_t len)
{
    const uint64_t each = UINT64_C(0x0101010101010101);

    for (size_t i = 0; i + 8 <= len; i += 8) {
        uint64_t eight;
        memcpy(&eight, ptr + i, sizeof eight);
        eight = le64toh(eight);
        uint64_t is_del = eight ^ (each * 0x7f); /* a byte that is 0 */
        uint64_t found = (((eight - each * ' ') & ~eight) | ((is_del - each) & ~is_del))
                         & (each * 0x80); /* its lowest bit is that of the first one */
        if (found)
            return i + (size_t)__builtin_ctzll(found) / 8;
    }
    return len & ~(size_t)7;
}

/* So many of what is left may stand in the line that has `len` bytes before the last one. */
static size_t run_max(size_t left, size_t line_max, size_t len)
{
    return left < line_max - len ? left : line_max - len;
}

/* Scans on from where it stopped to the end of a part: a chunk size line ends with its first line,
 * a head or trailers with an empty one (empty lines before a head are skipped, RFC 9112, 2.2).
 * Refused: a line that begins with white space, because it may or may not continue the previous
 * one, and one that begins with a colon, a field without a name. */
static enum scan scan(struct http_reader *r, struct slice in, size_t *ret_end)
{
    bool is_head = r->part == HTTP_HEAD_PART;
    size_t line_max = is_head && r->lines == 0 ? r->limits->line_max : SIZE_MAX;

    for (; r->seen < in.len; r->seen++) {
        size_t i = r->seen;
        char c = in.ptr[i];
        if (i - r->line > line_max && c != '\n') /* it is after CR */
            return SCAN_LONG;
        bool is_after_cr = i > r->line && in.ptr[i - 1] == '\r';
        if (is_after_cr != (c == '\n'))
            return SCAN_BAD; /* lone CR or LF */
        if (c != '\n') {
            if (!is_fit_for_line(c) || (i == r->line && strchr(" \t:", c)))
                return SCAN_BAD;
            if (c != '\r')
                r->seen +=
                    plain_run(in.ptr + i + 1, run_max(in.len - i - 1, line_max, i - r->line));
            continue;
        }
        bool is_empty = i == r->line + 1;
        if (!is_empty && r->lines++ == 0) {
            r->begin = r->line;
            line_max = SIZE_MAX;
        }
        r->line = i + 1;
        if (r->part == HTTP_CHUNK_LINE
            || (is_empty && (r->lines > 0 || r->part == HTTP_TRAILERS))) {
            *ret_end = i + 1;
            r->seen = r->line = 0;
            return SCAN_END;
        }
    }
    return SCAN_MORE;
}

/* Finds the end of a part of at most `max` bytes. */
static enum scan part_find(struct http_reader *r, struct slice in, size_t max, size_t *ret_end)
{
    struct slice window = {in.ptr, in.len < max ? in.len : max};
    enum scan found = scan(r, window, ret_end);

    if (found == SCAN_BAD)
        (void)refuse(r, 400, "malformed", "a line holds a character, or an end, that it may not");
    if (found == SCAN_BAD || found == SCAN_END || (found == SCAN_MORE && in.len < max))
        return found;
    if (r->part == HTTP_HEAD_PART && r->lines == 0)
        (void)refuse(r, 414, "too-long", "the request line is longer than this server takes");
    else
        (void)refuse(r, 431, "too-long", "the header fields are longer than this server takes");
    return SCAN_BAD;
}

static bool head_read(struct http_reader *r, struct slice head)
{
    struct slice text;
    unsigned field_count = r->lines - 1;

    ASSERT(!r->message);
    if (field_count > r->limits->header_count_max)
        return refuse(r, 431, "too-many", "more header fields than this server takes");
    head = (struct slice){head.ptr + r->begin, head.len - r->begin};
    r->message = http_message_new(field_count, head, &text);
    r->field = (struct http_field){SLICE_NONE, SLICE_NONE};
    r->body_len = 0;
    r->body_max = r->limits->body_max;
    r->framing = 0;

    const char *end = memchr(text.ptr, '\r', text.len);
    struct slice line = {text.ptr, (size_t)(end - text.ptr)};
    if (!http_head_line(r->message, line, &r->fault))
        return false;
    llhttp_init(&r->parser, HTTP_REQUEST, &settings);
    r->parser.data = r;
    if (!feed(r, text))
        return false;
    if (!http_reader_is_in_body(r))
        return refuse(r, 400, "malformed", "the head of the request is not whole");
    return true;
}

static bool chunk_line_read(struct http_reader *r, struct slice line)
{
    size_t digits = 0;

    while (http_hex_digit(line.ptr[digits]) >= 0) /* ends at the CR */
        digits++;
    if (digits == 0 || digits > 16 || !strchr(";\r", line.ptr[digits]))
        return refuse(r, 400, "malformed", "the size of a chunk is not valid");
    if (line.len > CHUNK_SIZE_LEN)
        r->framing += line.len - CHUNK_SIZE_LEN;
    /* RFC 9112, 7.1.1: unknown extensions are ignored. llhttp 8.1 refuses a second one, so none are
     * passed to it. */
    return feed(r, (struct slice){line.ptr, digits})
           && feed(r, (struct slice){line.ptr + line.len - 2, 2});
}

/* Each of these consumes what it can of its part, sets *used, and returns false on a fault. */
static bool part_read(struct http_reader *r, struct slice in, size_t *used)
{
    size_t room = r->limits->head_max;
    size_t end = 0;

    if (r->part == HTTP_CHUNK_LINE)
        room += CHUNK_SIZE_LEN;
    if (r->part != HTTP_HEAD_PART)
        room -= r->framing;
    enum scan found = part_find(r, in, room, &end);
    if (found != SCAN_END)
        return found == SCAN_MORE;

    struct slice piece = {in.ptr, end};
    *used = end;
    if (r->part == HTTP_HEAD_PART)
        return head_read(r, piece);
    return r->part == HTTP_CHUNK_LINE ? chunk_line_read(r, piece) : feed(r, piece);
}

static bool data_read(struct http_reader *r, struct slice in, size_t *used)
{
    struct slice piece = {in.ptr, in.len < r->left ? in.len : (size_t)r->left};

    *used = piece.len;
    r->left -= piece.len;
    r->message->expects_continue = false;
    if (!feed(r, piece))
        return false;
    if (r->left == 0 && r->part == HTTP_CHUNK)
        r->part = HTTP_CHUNK_LINE;
    return true;
}

static bool step(struct http_reader *r, struct slice in, size_t *used)
{
    switch (r->part) {
    case HTTP_HEAD_PART:
    case HTTP_CHUNK_LINE:
    case HTTP_TRAILERS:
        return part_read(r, in, used);
    case HTTP_BODY:
    case HTTP_CHUNK:
        return data_read(r, in, used);
    }
    UNREACHABLE();
}

static void part_reset(struct http_reader *r)
{
    r->part = HTTP_HEAD_PART;
    r->seen = r->line = r->begin = 0;
    r->lines = 0;
    r->is_whole = false;
}

void http_reader_init(struct http_reader *r, const struct http_limits *limits)
{
    *r = (struct http_reader){.limits = limits};
    part_reset(r);
}

void http_reader_fini(struct http_reader *r)
{
    http_message_free(r->message);
    r->message = NULL;
}

/* Whether the head is complete and the body is not, with `left` bytes available. */
static bool lacks_body(const struct http_reader *r, size_t left)
{
    return http_reader_is_in_body(r) && !r->is_whole && (r->part != HTTP_BODY || r->left > left);
}

enum http_read http_reader_feed(struct http_reader *r, struct slice in, size_t *ret_used)
{
    size_t all = 0;
    size_t used = 1;

    ASSERT(!r->fault.status);
    ASSERT(!r->is_whole);
    while (used > 0 && all < in.len && !r->is_whole) {
        used = 0;
        bool was_head = r->part == HTTP_HEAD_PART;
        bool ok = step(r, (struct slice){in.ptr + all, in.len - all}, &used);
        all += used;
        if (!ok) {
            *ret_used = all;
            return HTTP_READ_BAD;
        }
        if (r->stops_at_head && was_head && lacks_body(r, in.len - all)) {
            *ret_used = all;
            return HTTP_READ_HEAD;
        }
    }
    *ret_used = all;
    return r->is_whole ? HTTP_READ_WHOLE : HTTP_READ_MORE;
}

struct http_message *http_reader_take(struct http_reader *r)
{
    struct http_message *m = r->message;

    ASSERT(m);
    ASSERT(r->is_whole);
    r->message = NULL;
    part_reset(r);
    return m;
}

struct http_message *http_reader_take_head(struct http_reader *r)
{
    struct http_message *m = r->message;

    ASSERT(m);
    ASSERT(http_reader_is_in_body(r));
    r->message = NULL;
    return m;
}

bool http_reader_limit(struct http_reader *r, size_t max, bool may_be_chunked)
{
    ASSERT(http_reader_is_in_body(r));
    if (r->body_len > max || (r->part != HTTP_BODY && !may_be_chunked))
        return false;
    r->body_max = max < r->body_max ? max : r->body_max;
    return true;
}

size_t http_reader_expected(const struct http_reader *r)
{
    ASSERT(http_reader_is_in_body(r));
    return r->part == HTTP_BODY ? r->body_len : r->body_max;
}

bool http_reader_wants_continue(struct http_reader *r)
{
    if (!r->message || !r->message->expects_continue)
        return false;
    r->message->expects_continue = false;
    return true;
}
