/* Writes the head of an HTTP response, and problem documents, as bytes into a buf (response.h).
 * Pure: connection.c sends them. Texts in problems may be any bytes; what is not UTF-8 is
 * replaced. net/received_answer.c is the client's side. */

#include "http/response.h"

static const struct {
    int status;
    const char *text;
} statuses[] = {
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

const char *http_status_text(int status)
{
    for (size_t i = 0; i < COUNT_OF(statuses); i++)
        if (statuses[i].status == status)
            return statuses[i].text;
    return "Status";
}

bool http_status_has_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

void http_answer_head(struct buf *b, const struct http_answer *a)
{
    ASSERT(a->status >= 200);
    ASSERT(a->status <= 599);
    ASSERT(a->is_stream || !a->is_chunked);
    buf_str(b, "HTTP/1.1 ");
    buf_i64(b, a->status);
    buf_byte(b, ' ');
    buf_str(b, http_status_text(a->status));
    if (http_status_has_body(a->status)) {
        if (a->content_type) {
            buf_str(b, "\r\nContent-Type: ");
            buf_str(b, a->content_type);
        }
        if (a->is_chunked)
            buf_str(b, "\r\nTransfer-Encoding: chunked");
        if (!a->is_stream) {
            buf_str(b, "\r\nContent-Length: ");
            buf_i64(b, (int64_t)a->body_len);
        }
    }
    if (a->closes)
        buf_str(b, "\r\nConnection: close");
    else if (a->says_1_0)
        buf_str(b, "\r\nConnection: keep-alive");
    buf_str(b, "\r\n");
    buf_slice(b, a->always);
    if (a->headers)
        buf_str(b, a->headers);
    else if (a->status == 429 || a->status == 503)
        buf_str(b, "Retry-After: 1\r\n"); /* unless the handler gave a better value */
    buf_str(b, "\r\n");
}

/* The length of the UTF-8 character at s.ptr (RFC 3629), 0 if there is none. */
static size_t utf8_len(struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.ptr;
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (len == 0 || len > s.len || p[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool is_overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool is_surrogate = p[0] == 0xed && p[1] >= 0xa0;
    bool is_beyond = p[0] == 0xf4 && p[1] >= 0x90;
    return is_overlong || is_surrogate || is_beyond ? 0 : len;
}

static void json_text(struct buf *b, struct slice s)
{
    buf_byte(b, '"');
    while (s.len > 0) {
        size_t len = utf8_len(s);
        unsigned char c = (unsigned char)s.ptr[0];
        if (len == 0)
            buf_str(b, "\xef\xbf\xbd"); /* U+FFFD */
        else if (c < ' ' || c == 0x7f)
            buf_fmt(b, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            buf_fmt(b, "\\%c", c);
        else
            buf_add(b, s.ptr, len);
        if (len == 0)
            len = 1;
        s = (struct slice){s.ptr + len, s.len - len};
    }
    buf_byte(b, '"');
}

void http_problem_write(struct buf *b, int status, const char *type, struct slice detail)
{
    buf_fmt(b,
            "{\"type\":\"urn:intact:problem:%s\",\"title\":\"%s\",\"status\":%d,\"detail\":", type,
            http_status_text(status), status);
    json_text(b, detail);
    buf_str(b, "}");
}
