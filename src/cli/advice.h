#ifndef CLI_ADVICE_H
#define CLI_ADVICE_H

#include <intact/client.h>

#include "cli/verb.h"

/* What to do about the latest answer of a client, a refusal: appended as "; do this" to what the
 * server said, or nothing. `in`: the command line, NULL if there is none. May ask the server once
 * more, with the client: that answer is its latest one then. */
void advice_add(struct intact_client *c, const struct invocation *in, struct buf *b);

#endif
