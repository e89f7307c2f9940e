#ifndef HTTP_REQUEST_READER_H
#define HTTP_REQUEST_READER_H

/*
 * Turns bytes into requests. No sockets, no clock: the result depends on the bytes alone, not on
 * how they were split.
 *
 * llhttp parses, but it only sees bytes that the scanner in request_reader.c has passed. Heads,
 * chunk size lines and trailers are gathered until they are complete; every line must end in CRLF;
 * a line that begins with white space, a lone CR or LF, or a control character ends the connection.
 * So llhttp is fed in pieces that end where the parts of the message end, each field comes in one
 * piece and is not copied, and limits hold before anything is parsed.
 */

#include <llhttp.h>

#include "http/head.h"

enum http_read {
    HTTP_READ_MORE,  /* the request continues after these bytes */
    HTTP_READ_HEAD,  /* the head is complete, the body is not; only if stops_at_head */
    HTTP_READ_WHOLE, /* http_reader_take it */
    HTTP_READ_BAD    /* see `fault`; what follows cannot be understood */
};

enum http_part { HTTP_HEAD_PART, HTTP_BODY, HTTP_CHUNK_LINE, HTTP_CHUNK, HTTP_TRAILERS };

struct http_reader {
    llhttp_t parser;
    const struct http_limits *limits;
    struct http_message *message; /* once its head is complete */
    struct http_field field;      /* the one that llhttp is parsing */
    enum http_part part;
    size_t seen;       /* bytes of this part that were scanned */
    size_t line;       /* start of the present line in them */
    unsigned lines;    /* non-empty ones */
    size_t begin;      /* start of the first of them */
    uint64_t left;     /* of the body or the chunk, with the CRLF after a chunk */
    uint64_t body_len; /* announced so far */
    size_t body_max;   /* of this request */
    bool stops_at_head;
    size_t framing; /* bytes of chunk extensions and trailers */
    bool is_whole;
    struct http_fault fault;
};

void http_reader_init(struct http_reader *r, const struct http_limits *limits);
void http_reader_fini(struct http_reader *r);

/* Consumes bytes of `in` and sets *ret_used to how many. The rest must be presented again, followed
 * by what comes next. Stops after the first complete request. */
enum http_read http_reader_feed(struct http_reader *r, struct slice in, size_t *ret_used) MUST_USE;

struct http_message *http_reader_take(struct http_reader *r); /* after HTTP_READ_WHOLE */

/* After HTTP_READ_HEAD: takes the request without its body. Nothing can be read afterwards. */
struct http_message *http_reader_take_head(struct http_reader *r);

/* After HTTP_READ_HEAD: see http_limit_body. */
bool http_reader_limit(struct http_reader *r, size_t max, bool may_be_chunked) MUST_USE;
size_t http_reader_expected(const struct http_reader *r); /* likewise: see http_body_expected */

static inline bool http_reader_is_in_body(const struct http_reader *r)
{
    return r->part != HTTP_HEAD_PART;
}

/* True once for a request whose client waits for "100 Continue" and has sent nothing of the
 * body. */
bool http_reader_wants_continue(struct http_reader *r);

#endif
