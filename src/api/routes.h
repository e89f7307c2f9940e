#ifndef API_ROUTES_H
#define API_ROUTES_H

/* From a request to its handler: the table of routes, and who may use each of them. */

#include "http/http.h"

struct server;

/* For the HTTP server; arg is the node. */
void route(void *arg, struct http_request *r);
bool route_head(void *arg, struct http_request *r); /* false: refused, or held, without its body */
/* A request that was let in, and has waited. */
void route_held(struct server *sv, struct http_request *r);

void route_label(struct buf *b, unsigned route); /* method="GET",route="/v1/tasks" */

#endif
