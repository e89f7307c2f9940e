#ifndef API_AGENTS_H
#define API_AGENTS_H

/* What the answers about agents share. */

#include "dispatch/dispatch.h"

void render_agent(struct buf *b, const struct agent *a, int64_t now); /* as lists show it */
/* Why the steps that wait for it do: a word of the API. NULL: nothing holds them, or there are
 * none. `stored`: some wait in the store. */
const char *agent_held_by(const struct agent *a, bool stored, int64_t now);

#endif
