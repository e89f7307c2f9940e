#ifndef SIM_OUTAGE_H
#define SIM_OUTAGE_H

/*
 * Services behind agents become unavailable for a time: requests fail at once, or get no answer.
 * Operators set the breakers that detect this, and sometimes open and close one by hand.
 */

#include "dispatch/agent_settings.h"
#include "sim/flow.h"
#include "sim/node.h"

void outage_begin(void);
void outage_calm(void); /* all are available; breakers opened by hand are closed */
bool outage_of(uint32_t service);

/* As an operator does, at any running node; may fail. */
void outage_by_hand(uint32_t service, bool open);
/* The limits of the service, or of one of its actions (step i forward: 1 + i; its undo: 1 +
 * FLOW_STEPS_MAX + i). 0: no limit. */
enum { LIMITS_MAX = 1 + 2 * FLOW_STEPS_MAX };
extern struct limit limits[SERVICES_MAX][LIMITS_MAX];
bool outage_limits(void); /* is there any limit? */

/* Stores settings of that agent for all nodes. */
void outage_settings(uint32_t service, struct slice text);
void outage_is_heard(struct node *n); /* for a node with its own store */

#endif
