#ifndef HTTP_OUTPUT_H
#define HTTP_OUTPUT_H

/*
 * What a connection sends. The kernel gets it at once, as far as it takes it; the rest is kept, in
 * order, and handed over as the client reads. libuv has one piece at a time, what comes meanwhile
 * is gathered behind it, so that many small pieces cost no more than their bytes. If much is
 * kept, libuv has a small piece; when that has gone a slice is written in each turn of the
 * connection, so that who reads much keeps others waiting for a slice. With TLS a slice at
 * most is encrypted at a time; what follows is kept as it is until its turn.
 */

#include <uv.h>

#include "http/output_queue.h"

struct http_connection;

struct http_output {
    struct http_rest *rest;  /* with libuv; NULL: nothing is kept, or a turn will write it */
    struct http_queue kept;  /* behind it, as it will be sent */
    struct http_queue plain; /* behind that: not encrypted yet; without TLS always empty */
    bool is_ended;           /* the end of TLS follows the plain bytes */
    struct http_text *lent;  /* a part that is all of it need not be copied; during a call */
    uint64_t accepted;       /* bytes that were ever sent or kept */
};

enum {
    HTTP_OUTPUT_PARTS = 3,
    HTTP_OUTPUT_SLICE = 128 << 10 /* bytes that are encrypted and written in a turn */
};

/* Sends the parts in sequence, copying what has to be kept. False: the connection is broken;
 * nothing may be sent any more. When nothing is kept any more, http_connection_flushed is called,
 * but never from inside this. */
bool http_output_send(struct http_connection *c, const struct slice *parts,
                      unsigned count) MUST_USE;

/* The same for bytes that TLS itself sends. */
bool http_output_send_raw(struct http_connection *c, struct slice bytes) MUST_USE;

/* Announces the end of the data, if there is TLS, behind what is kept. */
bool http_output_end(struct http_connection *c);

size_t http_output_backlog(const struct http_connection *c); /* bytes kept: not with the kernel */
uint64_t http_output_taken(const struct http_connection *c); /* bytes that the kernel ever took */
void http_output_go_on(struct http_connection *c);           /* it is its turn to write */
void http_output_fini(struct http_connection *c);            /* after libuv has let go */

#endif
