#ifndef API_SIGNALS_H
#define API_SIGNALS_H

/* What signals to one task and to many have in common (tasks_signal.c). */

#include "tasks/ask.h"
#include "json/json.h"

struct http_request;
struct server;

/* The Idempotency-Key, or a new id if there is none. False: answered. */
bool signal_key_of(struct server *sv, struct http_request *r, struct arena *a, struct slice *ret);
/* What tells one signal from another of its key. `data` NULL: null. */
struct slice signal_content(struct server *sv, const struct json *data, struct arena *a);
/* The type of the problem, of an ask that ended ERR_CONFLICT or ERR_NOT_FOUND. */
const char *signal_refusal_type(const struct ask *a);

/* The head of POST /v1/signals/{token}. False: answered. */
bool signal_url_head(struct server *sv, struct http_request *r);

#endif
