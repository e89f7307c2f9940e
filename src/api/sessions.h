#ifndef API_SESSIONS_H
#define API_SESSIONS_H

/* Signing in to the console; the rest of its handlers is in handlers.h. */

#include "http/http.h"

struct server;

/* Within route_head: POST /v1/session may come without a token, so its body is small. */
bool session_head(struct http_request *r);

#endif
