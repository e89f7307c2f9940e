/*
 * Pages in HTML: the frame that all of them have, and the headers that keep them to themselves;
 * and reading what a form sends. See page.h.
 */

#include "api/page.h"

#include <openssl/evp.h>
#include <stdarg.h>

#include "base/when.h"
#include "json/text.h"

enum { SHA256_SIZE = 32, HEADERS_SIZE = 640 };

/* The part of a page between <style> and </style>, whose hash the headers name. */
static const char style[] =
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42rem;margin:2rem auto;padding:0 1rem;"
    "color:#1a1a1a;background:#fff}"
    "h1{font-size:1.4rem}"
    "blockquote{margin:1rem 0;padding:.75rem 1rem;border-left:4px solid #1f5fa8;"
    "background:#f0f4f9;font-size:1.15rem}"
    "blockquote,dd,td,.said{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.25rem 1rem}"
    "dt{color:#555}dd{margin:0}"
    "label{display:block}"
    "textarea{box-sizing:border-box;width:100%;font:inherit;padding:.5rem}"
    "button{font:inherit;padding:.6rem 1.4rem;margin:1rem 1rem 0 0;border:1px solid #1a1a1a;"
    "border-radius:4px;background:#fff;color:#1a1a1a;cursor:pointer}"
    "button[value=approve]{background:#17632f;border-color:#17632f;color:#fff}"
    "button[value=reject]{background:#fff;border-color:#a11a1a;color:#a11a1a}";

/* A page of the same origin may learn where its forms come from: a browser that told nobody would
 * not name the origin to this server either, and be taken for a foreign one. */
static const char *headers(void)
{
    static char text[HEADERS_SIZE];
    unsigned char sum[SHA256_SIZE];
    unsigned char hash[64];
    size_t len = 0;

    if (*text)
        return text;
    int ok = EVP_Q_digest(NULL, "SHA256", NULL, style, sizeof style - 1, sum, &len);
    ASSERT(ok == 1);
    ASSERT(len == SHA256_SIZE);
    (void)EVP_EncodeBlock(hash, sum, SHA256_SIZE);
    int n = snprintf(text, sizeof text,
                     "Cache-Control: no-store\r\n"
                     "Content-Security-Policy: default-src 'none'; style-src 'sha256-%s'; "
                     "form-action 'self'; frame-ancestors 'none'; base-uri 'none'\r\n"
                     "Cross-Origin-Opener-Policy: same-origin\r\n"
                     "Cross-Origin-Resource-Policy: same-origin\r\n"
                     "Referrer-Policy: same-origin\r\n"
                     "X-Frame-Options: DENY\r\n"
                     "X-Robots-Tag: noindex\r\n",
                     (const char *)hash);
    ASSERT(n > 0 && (size_t)n < sizeof text);
    return text;
}

/* ---- text ---- */

void page_text(struct buf *b, struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        switch (c) {
        case '&':
            buf_str(b, "&amp;");
            break;
        case '<':
            buf_str(b, "&lt;");
            break;
        case '>':
            buf_str(b, "&gt;");
            break;
        case '"':
            buf_str(b, "&quot;");
            break;
        case '\'':
            buf_str(b, "&#39;");
            break;
        default:
            if ((c < ' ' && c != '\n' && c != '\t') || c == 0x7f)
                buf_str(b, "\xef\xbf\xbd"); /* U+FFFD */
            else
                buf_byte(b, (char)c);
        }
    }
}

void page_time(struct buf *b, int64_t at)
{
    CLEANUP(buf_fini) struct buf text = {0};

    time_write(&text, at); /* 2026-01-31T10:00:00.000Z */
    buf_fmt(b, "%.10s %.5s UTC", text.ptr, text.ptr + 11);
}

static void page_begin(struct buf *b, const char *heading)
{
    buf_str(b, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
               "<title>");
    page_text(b, slice_of(heading));
    buf_str(b, "</title><style>");
    buf_str(b, style);
    buf_str(b, "</style></head><body><main><h1>");
    page_text(b, slice_of(heading));
    buf_str(b, "</h1>\n");
}

void page_answer(struct http_request *r, int status, const char *heading, struct slice body)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf lines = {0};

    page_begin(&b, heading);
    buf_slice(&b, body);
    buf_str(&b, "</main></body></html>\n");
    buf_str(&lines, headers());
    if (status == 503)
        buf_str(&lines, "Retry-After: 1\r\n");
    http_answer(r, status, "text/html; charset=utf-8", buf_view(&b), lines.ptr);
}

void page_say(struct http_request *r, int status, const char *heading, bool link, const char *fmt,
              ...)
{
    CLEANUP(buf_fini) struct buf b = {0};
    char text[600];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    buf_str(&b, "<p class=\"said\">");
    page_text(&b, slice_of(text));
    buf_str(&b, "</p>\n");
    if (link)
        buf_str(&b, "<p><a href=\"\">Back to the question</a></p>\n");
    page_answer(r, status, heading, buf_view(&b));
}

/* ---- forms ---- */

static int hex_of(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* One character of it; -1: it is badly encoded. */
static int decoded(struct slice s, size_t *at)
{
    char c = s.ptr[(*at)++];

    if (c == '+')
        return ' ';
    if (c != '%')
        return (unsigned char)c;
    int high = *at < s.len ? hex_of(s.ptr[*at]) : -1;
    int low = *at + 1 < s.len ? hex_of(s.ptr[*at + 1]) : -1;
    *at += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Browsers send line breaks as "\r\n". */
static bool form_decode(struct slice s, struct arena *a, struct slice *ret)
{
    char *text = arena_alloc(a, s.len + 1);
    size_t len = 0;
    bool after_cr = false;

    for (size_t i = 0; i < s.len;) {
        int c = decoded(s, &i);
        if (c < 0 || (c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 0x7f)
            return false;
        if (!(c == '\n' && after_cr))
            text[len++] = c == '\r' ? '\n' : (char)c;
        after_cr = c == '\r';
    }
    *ret = (struct slice){text, len};
    return text_utf8_end(*ret) == len;
}

/* Up to the first `c`, or all of it. */
static struct slice form_cut(struct slice *rest, char c)
{
    const char *end = rest->len > 0 ? memchr(rest->ptr, c, rest->len) : NULL;
    struct slice part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    size_t skip = part.len + (end != NULL);

    *rest = (struct slice){rest->ptr + skip, rest->len - skip};
    return part;
}

enum err form_next(struct slice *rest, struct arena *a, struct slice *ret_name,
                   struct slice *ret_value)
{
    if (rest->len == 0)
        return ERR_NOT_FOUND;
    struct slice value = form_cut(rest, '&');
    struct slice name = form_cut(&value, '=');
    return form_decode(name, a, ret_name) && form_decode(value, a, ret_value) ? ERR_OK : ERR_PARSE;
}
