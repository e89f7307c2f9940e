#ifndef NODE_DOOR_H
#define NODE_DOOR_H

/* Which requests are let in by their path, query and headers (Host, Origin), and how many may wait.
 */

#include "http/http.h"

struct server;

/* The Host alone: for what may be opened from a page of any origin. */
bool door_host_is_foreign(const struct server *sv, const struct http_request *r);
bool door_is_foreign(const struct server *sv, const struct http_request *r); /* 403 */

/* Whether path or query have the text of a token. It is kept by browsers, and by proxies on the
 * way, so the request is refused (400) before anything is logged of it. The id of a task may look
 * like a token: only texts that this server knows are refused. */
bool door_has_token(const struct server *sv, struct http_request *r);

/* Ask this before a request is left to wait for more than the store; if not, refuse it (503). */
bool door_may_wait(const struct server *sv);
/* The same for a request that waits for work, of a token that leaves places to others. */
bool door_may_park(const struct server *sv, const struct http_request *r);
/* The same for a request that waits to see something, and not for work: these may take only a part
 * of all places, so that agents find one. It counts as such a reader until it is done. */
bool door_may_read(struct server *sv, struct http_request *r);
void door_left(struct server *sv, const struct http_request *r); /* it is done */
void door_refuse_to_wait(const struct server *sv, struct http_request *r);

#endif
