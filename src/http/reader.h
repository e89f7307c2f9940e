#ifndef HTTP_READER_H
#define HTTP_READER_H

/*
 * Turns bytes into requests. No sockets, no clock: what comes out depends on the bytes alone, not
 * on how they were cut into pieces.
 *
 * llhttp parses, but it never sees a byte that a scanner of ours has not passed: heads, lines of
 * chunk sizes and trailers are gathered until they are whole, every line must end in CRLF, and a
 * line that begins with white space, a lone CR or LF, or a control character ends the connection.
 * So llhttp is fed in pieces that end where the parts of the message end, fields come in one piece
 * each and are not copied, and limits hold before anything is parsed.
 */

#include <llhttp.h>

#include "http/head.h"

enum http_read {
    HTTP_READ_MORE,  /* the request goes on behind these bytes */
    HTTP_READ_HEAD,  /* its head is there, its body is not all there; only if stops_at_head */
    HTTP_READ_WHOLE, /* http_reader_take it */
    HTTP_READ_BAD    /* see `fault`; nothing that follows can be understood */
};

enum http_part { HTTP_HEAD_PART, HTTP_BODY, HTTP_CHUNK_LINE, HTTP_CHUNK, HTTP_TRAILERS };

struct http_reader {
    llhttp_t parser;
    const struct http_limits *limits;
    struct http_message *message; /* once its head is there */
    struct http_field field;      /* the one that llhttp is at */
    enum http_part part;
    size_t seen;       /* bytes of this part that were scanned */
    size_t line;       /* where in them the present line begins */
    unsigned lines;    /* that are not empty */
    size_t begin;      /* of the first of them */
    uint64_t left;     /* of the body or the chunk, with the CRLF behind a chunk */
    uint64_t body_len; /* announced so far */
    size_t body_max;   /* of this request */
    bool stops_at_head;
    size_t framing; /* bytes of chunk extensions and trailers */
    bool is_whole;
    struct http_fault fault;
};

void http_reader_init(struct http_reader *r, const struct http_limits *limits);
void http_reader_fini(struct http_reader *r);

/* Reads from `in` and says in *ret_used how much of it is done with. What is left must be presented
 * again, in front of what comes after it. Stops behind the first whole request. */
enum http_read http_reader_feed(struct http_reader *r, struct slice in, size_t *ret_used) MUST_USE;

struct http_message *http_reader_take(struct http_reader *r); /* after HTTP_READ_WHOLE */

/* After HTTP_READ_HEAD: takes the request without its body. Nothing can be read after it. */
struct http_message *http_reader_take_head(struct http_reader *r);

/* After HTTP_READ_HEAD: see http_limit_body. */
bool http_reader_limit(struct http_reader *r, size_t max, bool may_be_chunked) MUST_USE;

static inline bool http_reader_is_in_body(const struct http_reader *r)
{
    return r->part != HTTP_HEAD_PART;
}

/* True once for a request whose client waits for "100 Continue" and has sent nothing of the body.
 */
bool http_reader_wants_continue(struct http_reader *r);

#endif
