#ifndef SIM_LONG_H
#define SIM_LONG_H

/*
 * Long steps: attempts with a limit on silence, and the heartbeats that they send or omit; and
 * attempts that go elsewhere, where somebody ends them by their token, or nobody does. Half of all
 * runs have none and are unaffected: this draws from its own random source.
 */

#include "sim/agents.h"

void long_begin(void);
void long_begin_scene(void);         /* all workers send heartbeats, and nothing is drawn */
void long_draw(struct flow_step *s); /* has it a limit on silence? */

/* An attempt begins. True: it goes elsewhere, and nothing else is done here. */
bool long_follow(struct gig *g);
/* It goes elsewhere: handed over after `takes`, ended `comes` later; 0: never. */
void long_goes_elsewhere(struct gig *g, int64_t takes, int64_t comes);

void long_answered(const struct node *n, struct ask *a); /* the answer for a holder of a token */

#endif
