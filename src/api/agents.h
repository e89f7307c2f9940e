#ifndef API_AGENTS_H
#define API_AGENTS_H

/* What the answers about agents share. */

#include "dispatch/dispatch.h"
#include "http/http.h"

struct server;

/* The answer of one agent: its settings, and what lists show of it. `name` is copied. */
void agent_answer(struct server *sv, struct http_request *r, struct slice name);
/* Why the steps that wait for it do: a word of the API. NULL: nothing holds them, or there are
 * none. `stored`: some wait in the store. */
const char *agent_held_by(const struct agent *a, bool stored, int64_t now);

#endif
