#ifndef SIM_BELL_H
#define SIM_BELL_H

/*
 * Alerts to people: each node has the real watch over its alerts; two sinks accept notices, or fail
 * to.
 */

#include "sim/node.h"

void bell_begin(void);
void bell_boot(struct node *n);
void bell_end(struct node *n);     /* it is down; no job of it is at the store */
int64_t bell_turn(struct node *n); /* by its clock: when it wants the next turn */
void bell_hint(struct node *n);
/* Final check, after a time without faults: everything that needs a person was sent to both sinks,
 * and nothing else is open. */
void check_bell(void);

#endif
