#ifndef CONFINE_CALLS_H
#define CONFINE_CALLS_H

/*
 * System calls that a process which only talks with others never needs: starting programs and
 * processes, looking into others or sending them signals, changing files' modes or length,
 * changing the machine or who it is, listening, and sockets but for TCP and UDP. They fail with
 * EPERM from then on, for this thread and those that it starts. Unix sockets that it has go on.
 */

#include "base/base.h"

/* False with errno: the kernel has no seccomp, or does not let us. */
bool calls_give_up(void) MUST_USE;

/* For a program that may write some files, beside Landlock of a version below
 * LANDLOCK_HAS_TRUNCATE: files become shorter only by descriptors that are open for writing. */
bool calls_give_up_truncating(void) MUST_USE;

#endif
