#ifndef SIM_OVERRUNS_H
#define SIM_OVERRUNS_H

/*
 * Evaluations that never end: in some runs, those of some tasks. The node is then ended by its own
 * watch, which counts the task in the store first; that, too, may fail.
 */

#include "sim/node.h"

void overruns_begin(void);
/* What a node (arg) is told by its scheduler: it may be dead afterwards. */
void overruns_evaluates(void *arg, struct slice task, bool begins);
/* In some runs a turn evaluates one or two expressions and no more; 0: what it usually does. Drawn
 * from what is there, not from the run's chances. */
uint64_t overruns_turn_steps(const struct node *n);
void overruns_left_out(struct node *n); /* after a turn: counts those that were not enough */
/* What is counted goes with its task. */
void overruns_check_end(void);

#endif
