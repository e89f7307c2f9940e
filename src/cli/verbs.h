#ifndef CLI_VERBS_H
#define CLI_VERBS_H

/* The verbs, each defined in the file that carries it out. */

#include "cli/verb.h"

extern const struct verb verb_backup, verb_get, verb_restore, verb_top, verb_watch, verb_why;

#endif
