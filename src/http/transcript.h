#ifndef HTTP_TRANSCRIPT_H
#define HTTP_TRANSCRIPT_H

/*
 * For tests and the fuzzer: a record of everything that a reader makes of some bytes.
 * request_reader.h promises that it does not depend on how the bytes are split.
 */

#include "http/request_reader.h"

static inline void transcript_message(struct buf *out, struct http_message *m)
{
    struct http_request *r = &m->request;
    struct slice name;
    struct slice value;

    buf_fmt(out, "%.*s [%.*s]%s", SLICE_ARG(r->method), SLICE_ARG(r->path),
            m->keeps_alive ? "" : " last");
    for (unsigned i = 0; i < http_segment_count(r); i++) {
        struct slice segment = http_segment(r, i);
        buf_fmt(out, segment.ptr ? " <%.*s>" : " broken", SLICE_ARG(segment));
    }
    for (size_t at = 0; http_query_next(r, &at, &name, &value);)
        buf_fmt(out, " %.*s=%.*s", SLICE_ARG(name), SLICE_ARG(value));
    for (unsigned i = 0; i < m->field_count; i++)
        buf_fmt(out, "\n  %.*s: %.*s", SLICE_ARG(m->fields[i].name), SLICE_ARG(m->fields[i].value));
    buf_fmt(out, "\n  %zu bytes ", r->body.len);
    buf_slice(out, r->body);
    buf_byte(out, '\n');
}

/* Presents `bytes` in pieces of `first`, and then of `further` bytes. */
static inline void transcript_write(struct buf *out, const struct http_limits *limits,
                                    struct slice bytes, size_t first, size_t further)
{
    struct http_reader r;
    size_t at = 0;   /* consumed */
    size_t seen = 0; /* presented so far */
    size_t piece = first;

    http_reader_init(&r, limits);
    while (seen < bytes.len) {
        ASSERT(piece > 0);
        seen = piece < bytes.len - seen ? seen + piece : bytes.len;
        piece = further;
        enum http_read got = HTTP_READ_WHOLE;
        while (got == HTTP_READ_WHOLE && at < seen) {
            size_t used = 0;
            /* A copy, so that a sanitizer detects reads beyond what was presented. */
            CLEANUP(buf_fini) struct buf copy = {0};
            buf_add(&copy, bytes.ptr + at, seen - at);
            got = http_reader_feed(&r, buf_view(&copy), &used);
            ASSERT(used <= seen - at);
            at += used;
            if (got != HTTP_READ_WHOLE)
                break;
            struct http_message *m = http_reader_take(&r);
            transcript_message(out, m);
            http_message_free(m);
        }
        if (got == HTTP_READ_BAD) {
            buf_fmt(out, "%d %s %s\n", r.fault.status, r.fault.type, r.fault.reason);
            break;
        }
    }
    http_reader_fini(&r);
}

#endif
