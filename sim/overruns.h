#ifndef SIM_OVERRUNS_H
#define SIM_OVERRUNS_H

/*
 * Evaluations that never end: in some runs, those of some tasks. The node is then ended by its own
 * watch, which counts the task in the store first; that, too, may fail.
 */

#include "sim/node.h"

void overruns_begin(void);
/* What a node is told by its scheduler: it may be dead afterwards. */
void overruns_evaluates(struct node *n, struct slice task, bool begins);
/* What is counted goes with its task. */
void overruns_check_end(void);

#endif
