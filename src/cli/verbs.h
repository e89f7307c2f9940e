#ifndef CLI_VERBS_H
#define CLI_VERBS_H

/* The verbs, each defined in the file that carries it out. */

#include "cli/verb.h"

extern const struct verb verb_get;
extern const struct verb verb_watch;
extern const struct verb verb_top;

#endif
