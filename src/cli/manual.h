#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

/* Manual pages and the page of the documentation, made of the descriptions of the verbs. */

#include "cli/verb.h"

/* A page in the language of man(7); NULL: that of the whole program. */
void manual_page(const struct verb *v, struct buf *b);
/* "intact-workflow-put", of at most 79 characters. */
void manual_name(const struct verb *v, char ret[80]);

void manual_markdown(struct buf *b); /* docs/command-line.md */

/* The script that makes a shell, "bash", "zsh" or "fish", complete. */
const char *completion_script(const char *shell);

#endif
