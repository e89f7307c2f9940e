#ifndef CLI_VERBS_TOKEN_TEXT_H
#define CLI_VERBS_TOKEN_TEXT_H

#include "base/buf.h"
#include "cli/verb.h"

/* Posts to a place that answers with a token's text, and prints that text, or with --json the whole
 * answer. Returns how the program ends. */
int token_text_ask(struct invocation *in, const char *path, struct buf *body);

#endif
