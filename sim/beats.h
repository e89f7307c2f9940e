#ifndef SIM_BEATS_H
#define SIM_BEATS_H

/*
 * Heartbeats: lost, late, duplicated, for ended attempts, under another instance's name, or forged.
 * They are drawn from their own random source and are not part of the digest, so a run with
 * heartbeats must equal the same run without: they change nothing.
 */

#include "sim/agents.h"

void beats_begin(bool on);
void beats_follow(struct gig *g); /* it has begun */

#endif
