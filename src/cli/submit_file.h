#ifndef CLI_SUBMIT_FILE_H
#define CLI_SUBMIT_FILE_H

#include "cli/verb.h"

/* Submits what the file that --file names holds: a task a line. `head`: the members that the
 * command line gives to all of them, if their workflow was named and each line is an input; or
 * NONE. */
int submit_file(const struct invocation *in, struct slice head);

#endif
