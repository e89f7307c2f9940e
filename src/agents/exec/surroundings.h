#ifndef AGENTS_EXEC_SURROUNDINGS_H
#define AGENTS_EXEC_SURROUNDINGS_H

/* What a command finds when it starts: program, environment, standard input; and the secrets among
 * it, which must not be disclosed. */

#include "agents/exec/command.h"

/* Fills in program and envp of the order, and input and secrets of the command. False: `why`. */
bool surroundings_make(struct command *c, struct keeper_order *o, char *why, size_t why_size);

/* Text without the secrets, and else as it is. *ret is empty at first. */
void surroundings_hide(const struct command *c, struct slice text, struct buf *ret);

/* Text as it may be disclosed: without the secrets, control characters, and what is not UTF-8. */
void surroundings_clean(const struct command *c, struct slice text, struct buf *ret);

/* The same of the end of standard error. */
void surroundings_clean_tail(const struct command *c, struct buf *ret);

/* Sound JSON without the secrets in its strings. */
void surroundings_clean_json(const struct command *c, struct slice json, struct buf *ret);

#endif
