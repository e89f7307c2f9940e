#ifndef CLI_AGENT_SHOW_H
#define CLI_AGENT_SHOW_H

/* What the verbs on one agent have in common. */

#include "cli/client.h"

/* "/v1/agents/NAME" and `end`, by the verb's first word. False: it has been said that it is no
 * name. */
bool agent_path(const struct invocation *in, const char *end, struct buf *ret);

/* Asks, and shows the agent that is the answer. The exit status. */
int agent_ask(struct invocation *in, const char *method, const char *path, const struct buf *body);

#endif
