#ifndef LIBINTACT_STOP_H
#define LIBINTACT_STOP_H

/*
 * What stops all agents of the process.
 *
 * Each agent watches a descriptor that becomes readable then. They cannot all watch the same one:
 * when the agents' own descriptors are watched by an epoll of the program, Linux lets no more than
 * 500 ways lead from one descriptor to it (100 if that epoll is watched by another one), and
 * answers EINVAL to whoever adds one more. So a few share one.
 */

#include <stdbool.h>

#include "base/base.h"

struct stop_seat {
    int group; /* of those that share a descriptor */
    int fd;    /* readable when all are to stop; not to be read or closed */
};

/* An agent starts. False: there are no more descriptors. */
bool stop_enter(struct stop_seat *ret) MUST_USE;
void stop_leave(const struct stop_seat *s); /* one that has entered is over */

bool stop_is_wanted(void);

#endif
