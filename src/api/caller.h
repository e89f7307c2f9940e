#ifndef API_CALLER_H
#define API_CALLER_H

/* The sender of a request, and how a request without a valid token or the needed role is
 * refused. */

#include "http/http.h"
#include "node/access.h"

struct server;

/* NULL: no valid token, and *ret_why has the reason. Sets r->is_by_cookie: whether it is the token
 * of a session, which only the cookie names. */
const struct bearer *caller_of(struct server *sv, struct http_request *r, const char **ret_why);
/* The token of a request that has waited, if it is still good; until the next turn. NULL: the
 * request was answered that it is not. */
const struct bearer *caller_recheck(struct server *sv, struct http_request *r);

/* Does it come through TLS, as far as is known? */
bool caller_is_secure(const struct server *sv, const struct http_request *r);
/* The session of a request that has its cookie and no token. NULL: there is none, or it is unknown.
 * *ret_why: untouched if there is no cookie. */
const struct session_row *caller_session(struct server *sv, struct http_request *r,
                                         const char **ret_why);
/* Could another node know its token, or its session? */
bool caller_may_be_new(struct server *sv, struct http_request *r);

void answer_unauthenticated(struct server *sv, struct http_request *r, const char *why);
/* Logs that a request is answered 403. `token` is its name. */
void caller_log_forbidden(struct server *sv, const struct http_request *r, struct slice token,
                          const char *why);

/* From where a request comes, as the audit has it: the peer's address; behind a proxy, " for " and
 * the address that the proxy reports. Printable ASCII. */
#define ADDRESS_FOR " for "
enum { ADDRESS_SIZE = 256 };
void caller_address_write(const struct server *sv, const struct http_request *r,
                          char ret[ADDRESS_SIZE]);
struct slice caller_address(const struct server *sv, const struct http_request *r, struct arena *a);

#endif
