#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

/* Manual pages and a page of the documentation, from the descriptions of the verbs. */

#include "cli/verb.h"

/* A page in man(7); NULL: the page of the whole program. */
void manual_page(const struct verb *v, struct buf *b);
/* "intact-workflow-put", at most 79 characters. */
void manual_name(const struct verb *v, char ret[80]);

void manual_markdown(struct buf *b); /* docs/command-line.md */

/* The completion script for a shell: "bash", "zsh" or "fish". */
const char *completion_script(const char *shell);

#endif
