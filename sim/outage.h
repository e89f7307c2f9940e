#ifndef SIM_OUTAGE_H
#define SIM_OUTAGE_H

/*
 * The services behind agents go away for a time: whatever is asked of them fails at once, or comes
 * to nothing. And what people do to the breakers that notice: they set them, and now and then open
 * one by hand, and close it again.
 */

#include "dispatch/settings.h"
#include "sim/flow.h"
#include "sim/node.h"

void outage_begin(void);
void outage_calm(void); /* all are there; what was opened by hand is closed */
bool outage_of(uint32_t service);

/* As an operator does it, at any node that is there; it may fail. */
void outage_by_hand(uint32_t service, bool open);
/* What is set of that service, or of one of its actions (step i forward: 1 + i; its undo: 1 +
 * FLOW_STEPS_MAX + i). 0: no limit. */
enum { LIMITS_MAX = 1 + 2 * FLOW_STEPS_MAX };
extern struct limit limits[SERVICES_MAX][LIMITS_MAX];
bool outage_limits(void); /* is there any? */

/* What everybody has set of that agent. */
void outage_settings(uint32_t service, struct slice text);
void outage_is_heard(struct node *n); /* what is set, by the one that has the store alone */

#endif
