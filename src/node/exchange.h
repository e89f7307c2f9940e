#ifndef NODE_EXCHANGE_H
#define NODE_EXCHANGE_H

/*
 * A request that cannot be answered at once: its memory, and the tie to its client. An exchange
 * outlives its client: when the client has gone, `http` is NULL, and the answer is dropped.
 */

#include "http/http.h"

struct server;
struct store_job;

/* The first field of whatever hangs on http_request.user. */
struct exchange {
    struct server *server;
    struct http_request *http;        /* NULL: the client has gone */
    void (*gone)(struct exchange *x); /* may be NULL */
    struct store_job *reading;        /* for it alone: dropped when its client goes; or NULL */
};

void exchange_begin(struct exchange *x, struct server *sv, struct http_request *r);
void exchange_untie(struct exchange *x); /* before answering: `gone` will not be called */
void exchange_done(void *arg, struct http_request *r, bool sent); /* for the HTTP server */

#endif
