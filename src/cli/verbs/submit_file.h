#ifndef CLI_VERBS_SUBMIT_FILE_H
#define CLI_VERBS_SUBMIT_FILE_H

#include "cli/verb.h"

/* Submits the file given by --file: a task per line. `head`: members for all tasks, if a workflow
 * is given and each line is an input; or NONE. */
int submit_file(const struct invocation *in, struct slice head);

#endif
