#ifndef CLI_VERBS_AGENT_SHOW_H
#define CLI_VERBS_AGENT_SHOW_H

/* Shared by the verbs for one agent. */

#include "cli/client/client.h"

/* "/v1/agents/NAME" and `end`, from the verb's first word. False: not a name, which was
 * reported. */
bool agent_path(const struct invocation *in, const char *end, struct buf *ret);

/* Calls the server and shows the agent it returns. Returns the exit status. */
int agent_ask(struct invocation *in, const char *method, const char *path, const struct buf *body);

#endif
