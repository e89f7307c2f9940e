#ifndef API_PAGES_H
#define API_PAGES_H

/* The pages of the console (console/console.h), unless the node was started without it. They need
 * no token, and are not part of the table of routes: see routes.c. */

#include "http/http.h"
#include "node/part.h"

struct server;

/* False: it is no request for a page or for a part of one, or one that must be refused. The caller
 * has made sure that its path is not of the API. */
bool pages_answer(struct server *sv, struct http_request *r);

bool pages_are_served(const struct server *sv);

extern const struct part pages_part;

#endif
