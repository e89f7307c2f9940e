#ifndef CLI_HELP_H
#define CLI_HELP_H

/* Help texts, from the description of a verb. */

#include <stdio.h>

#include "cli/verb.h"

void help_print(const struct verb *v, FILE *to);         /* of one verb */
void help_print_all(FILE *to);                           /* one line per verb */
const char *help_group(const struct verb *v);            /* that begins with it; NULL: none */
void help_print_noun(const char *noun, FILE *to);        /* one line per verb of a noun */
void help_synopsis(const struct verb *v, struct buf *b); /* "intact get TASK [FLAG...]" */
void help_flag_head(const struct flag *f, char ret[64]); /* "-f, --file FILE" */
void help_exits(const struct verb *v, struct buf *b);    /* what the exit status means */

#endif
