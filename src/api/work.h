#ifndef API_WORK_H
#define API_WORK_H

/* What the calls of agents share: reading the result of an attempt. */

#include "dispatch/dispatch.h"
#include "json/json.h"

/* Reads all of a result but its token; in `a`. False: the result cannot be understood.
 * *ret_fault: what is wrong, also with a part that is left out of a good result; or NONE. */
bool result_read(struct arena *a, const struct json *j, struct work_result *r,
                 struct slice *ret_fault);

/* For struct outside: a work call is to be answered. arg is the server. */
bool work_answered(void *arg, struct work *w);

/* attempts.c: the head of POST /v1/attempts/{token}. False: answered. */
struct http_request;
struct server;
bool attempt_head(struct server *sv, struct http_request *r);

#endif
