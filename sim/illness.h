#ifndef SIM_ILLNESS_H
#define SIM_ILLNESS_H

/*
 * Instances that do badly beside others of their agent that do well: that fail at whatever they are
 * asked, hang over it, or are as slow as they may be. They fall ill and get well again by
 * themselves, in some of the runs. What is drawn for it is drawn apart, so that the other runs are
 * what they would be without.
 */

#include "sim/agents.h"

void illness_begin(void); /* after the agents */
void illness_calm(void);  /* all are well from now on */

/* Does it, because its worker is ill, what such a one does? */
bool illness_follow(struct gig *g);

#endif
