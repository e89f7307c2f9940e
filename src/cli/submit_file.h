#ifndef CLI_SUBMIT_FILE_H
#define CLI_SUBMIT_FILE_H

#include "cli/verb.h"

/* Submits what the file that --file names holds: a task a line. */
int submit_file(const struct invocation *in);

#endif
