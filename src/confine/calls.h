#ifndef CONFINE_CALLS_H
#define CONFINE_CALLS_H

/*
 * Restricts the system calls of a process that only communicates: starting programs and processes,
 * inspecting or signalling others, changing modes or lengths of files, changing the machine or the
 * identity, listening, and sockets other than TCP and UDP fail with EPERM from then on, for this
 * thread and those that it starts. Existing Unix sockets keep working.
 */

#include "base/base.h"

/* False, see errno: the kernel has no seccomp, or does not permit it. */
bool calls_give_up(void) MUST_USE;

/* For a program that may write some files, with a Landlock version below LANDLOCK_HAS_TRUNCATE:
 * files can only be truncated through descriptors that are open for writing. */
bool calls_give_up_truncating(void) MUST_USE;

#endif
