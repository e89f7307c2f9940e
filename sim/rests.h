#ifndef SIM_RESTS_H
#define SIM_RESTS_H

/*
 * Runs in which much happens to items at rest: operators repair them, say without a look that one
 * took no effect, and ask nodes that are suspended; results come late; nodes lose their tasks
 * meanwhile. From a random source of its own: other runs stay as they are.
 */

#include "sim/agents.h"

bool flows_rest(void);
void rests_begin(void); /* after the tasks are known */

/* How long after its deadline the agent answers; 0: it does not. */
int64_t rests_are_late(const struct gig *g);

/* Does the operator who resolves that unit leave out the look at the service? A late result may
 * contradict that operator. */
bool rests_resolve_rashly(const struct subject *t, uint32_t unit);

/* From then on nobody is surprised that the item took effect. */
void rests_are_resolved_rashly(struct subject *t, uint32_t unit);

#endif
