#ifndef SIM_ILLNESS_H
#define SIM_ILLNESS_H

/*
 * Ill instances among healthy ones of their agent: they fail at everything, hang, or are as slow as
 * allowed. In some runs, instances fall ill and recover at random. This has its own random source,
 * so that other runs are unaffected.
 */

#include "sim/agents.h"

void illness_begin(void); /* after the agents */
void illness_calm(void);  /* all are healthy from now on */

/* Does the worker's illness decide the course of this request? */
bool illness_follow(struct gig *g);

#endif
