#ifndef CONFINE_CALLS_H
#define CONFINE_CALLS_H

/*
 * System calls that a process which only talks with others never needs: starting programs and
 * processes, looking into others, changing the machine or who it is, listening. They fail with
 * EPERM from then on, for this thread and those that it starts.
 */

#include "base/base.h"

/* False with errno: the kernel has no seccomp, or does not let us. */
bool calls_give_up(void) MUST_USE;

#endif
