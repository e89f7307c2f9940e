#ifndef AGENTS_EXEC_BOUNDS_H
#define AGENTS_EXEC_BOUNDS_H

/* `confine` of a command: the rules by which its process gives up all files but those that it
 * names, and what nearly every program needs. */

#include <stddef.h>

struct exec_command;

/* Each time a command starts, since paths come and go. A ruleset of confine/landlock.h, or -1:
 * `why` has the reason, and the command must not run. */
int bounds_open(const struct exec_command *what, const char *program, char *why, size_t why_size);

#endif
