#ifndef SIM_BEATS_H
#define SIM_BEATS_H

/*
 * Heartbeats: workers tell of what they are at, and what they tell is lost, late, doubled, of
 * attempts that are over, under another's name, or forged. All of it is drawn from a source of its
 * own and traced beside the digest, so that a run with heartbeats and the same run without them
 * have to be one run: they change nothing.
 */

#include "sim/agents.h"

void beats_begin(bool on);
void beats_follow(struct gig *g); /* it was begun */

#endif
