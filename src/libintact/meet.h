#ifndef LIBINTACT_MEET_H
#define LIBINTACT_MEET_H

/*
 * An agent and the installations of its servers (installation.h). An agent of several servers first
 * hears from all of them, for a second at most, and calls for work then: servers of two
 * installations are a mistake in its settings, and it ends. One that turns out to be of another
 * installation later, or than the one that was stated, gets no calls but the question who it is.
 */

#include "libintact/peer.h"

void meet_begin(struct intact_agent *a, int64_t now);
void meet_tick(struct intact_agent *a, int64_t now);
int64_t meet_wake_at(const struct intact_agent *a);

/* A call to `p` has ended. False: the server belongs to another installation; that was logged. */
bool meet_answered(struct peer *p, const struct call *c, CURLcode code);

#endif
