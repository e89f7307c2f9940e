#ifndef LIBINTACT_STOP_H
#define LIBINTACT_STOP_H

/*
 * Stops all agents of the process.
 *
 * Each agent watches a descriptor that then becomes readable. They cannot all share one: when a
 * program's epoll watches the agents' own descriptors, Linux allows at most 500 paths from one
 * descriptor to it (100 if another epoll watches that one), and refuses further ones with EINVAL.
 * So groups of agents share one each.
 */

#include <stdbool.h>

#include "base/base.h"

struct stop_seat {
    int group; /* shares a descriptor */
    int fd;    /* readable when all should stop; must not be read or closed */
};

/* An agent starts. False: descriptors are exhausted. */
bool stop_enter(struct stop_seat *ret) MUST_USE;
void stop_leave(const struct stop_seat *s); /* an agent that entered has ended */

bool stop_is_wanted(void);

#endif
