#ifndef HTTP_OUTPUT_H
#define HTTP_OUTPUT_H

/*
 * What a connection sends. The kernel gets as much as it takes at once; the rest is kept, in order,
 * and passed on as the client reads. libuv has one piece at a time. Further bytes are gathered
 * behind it, so that many small pieces cost no more than their bytes. With TLS all of this concerns
 * encrypted bytes: what is kept can be sent as it is.
 */

#include <uv.h>

#include "base/buf.h"

struct http_connection;

struct http_output {
    struct http_rest *rest; /* passed to libuv; NULL: nothing is kept */
    struct buf waiting;     /* behind it */
    uint64_t accepted;      /* total bytes sent or kept */
};

enum { HTTP_OUTPUT_PARTS = 3 };

/* Sends the parts in sequence, copying what has to be kept. False: the connection is broken;
 * nothing may be sent any more. When nothing is kept any more, http_connection_flushed is called,
 * but never from inside this. */
bool http_output_send(struct http_connection *c, const struct slice *parts,
                      unsigned count) MUST_USE;

/* The same for bytes that TLS itself sends. */
bool http_output_send_raw(struct http_connection *c, struct slice bytes) MUST_USE;

/* Announces the end of the data, if there is TLS. */
bool http_output_end(struct http_connection *c);

size_t http_output_backlog(const struct http_connection *c); /* bytes kept, not passed to the
                                                              * kernel */
uint64_t http_output_taken(const struct http_connection *c); /* total bytes taken by the kernel */
void http_output_fini(struct http_connection *c);            /* after libuv has closed the handle */

#endif
