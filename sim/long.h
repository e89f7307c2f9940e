#ifndef SIM_LONG_H
#define SIM_LONG_H

/*
 * Long steps: attempts that may not be silent, and the heartbeats that they send or do not send;
 * and attempts that go elsewhere, where somebody ends them by their token, or nobody does. Half of
 * all runs have none, and are what they would be without this file: it draws from a source of its
 * own.
 */

#include "sim/agents.h"

void long_begin(void);
void long_begin_scene(void);         /* all who work send heartbeats, and nothing is drawn */
void long_draw(struct flow_step *s); /* may it be silent? */

/* It was begun. True: it is for somebody elsewhere, and nothing else is to become of it here. */
bool long_follow(struct gig *g);
/* It will be: handed in after so long, and ended by somebody so much later; 0: never. */
void long_goes_elsewhere(struct gig *g, int64_t takes, int64_t comes);

void long_answered(const struct node *n, struct ask *a); /* of one who has a token */

#endif
