#ifndef SIM_BELL_H
#define SIM_BELL_H

/*
 * Whom the nodes tell of what needs a person: each has the real watch over its alerts; two desks
 * take what they are told, or fail to.
 */

#include "sim/node.h"

void bell_begin(void);
void bell_boot(struct node *n);
void bell_end(struct node *n);     /* it is down; no job of it is with the store */
int64_t bell_turn(struct node *n); /* by its clock: when it wants another one */
void bell_hint(struct node *n);
/* In the end, after a while without faults: what waits for a person was told to both, nothing else
 * is open. */
void check_bell(void);

#endif
