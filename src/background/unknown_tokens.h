#ifndef BACKGROUND_UNKNOWN_TOKENS_H
#define BACKGROUND_UNKNOWN_TOKENS_H

/* Requests whose token this node does not know: held until the store was asked, because another
 * node may have created it a moment ago. */

#include "http/http.h"
#include "node/part.h"

struct server;
struct unknown_tokens;

enum { UNKNOWN_TOKEN_BODY_MAX = 16 << 10 }; /* of a request whose token is not known yet */

bool unknown_tokens_may_hold(const struct server *sv); /* one more */
/* True: another node may know it; `again` will be called when that is known, or its client goes. */
bool unknown_tokens_hold(struct server *sv, struct http_request *r,
                         void (*again)(struct server *sv, struct http_request *r));

extern const struct part unknown_tokens_part;

#endif
