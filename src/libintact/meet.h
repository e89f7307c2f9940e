#ifndef LIBINTACT_MEET_H
#define LIBINTACT_MEET_H

/*
 * The installations of an agent's servers (installation.h). An agent of several servers waits for
 * the first answers of all of them, for a second at most, before it calls for work: if they belong
 * to two installations, its settings are wrong, and it ends. A server that later turns out to
 * belong to another installation only gets calls that ask who it is.
 */

#include "libintact/peer.h"

void meet_begin(struct intact_agent *a, int64_t now);
void meet_tick(struct intact_agent *a, int64_t now);
int64_t meet_wake_at(const struct intact_agent *a);

/* Handles the end of a call to `p`. False: the server belongs to another installation; it was
 * logged. */
bool meet_answered(struct peer *p, const struct call *c, CURLcode code);

#endif
