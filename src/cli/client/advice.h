#ifndef CLI_CLIENT_ADVICE_H
#define CLI_CLIENT_ADVICE_H

#include <intact/client.h>

#include "cli/verb.h"

/* Appends "; do this" to the server's latest refusal of a client's call, or nothing. `in`: the
 * command line, or NULL. May call the server once more with the client, whose latest answer is then
 * that one. */
void advice_add(struct intact_client *c, const struct invocation *in, struct buf *b);

#endif
