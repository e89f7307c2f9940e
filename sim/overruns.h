#ifndef SIM_OVERRUNS_H
#define SIM_OVERRUNS_H

/*
 * Evaluations that never end: in some runs, those of some tasks. The node is then ended by its own
 * watchdog, which first counts the task in the store; that may also fail.
 */

#include "sim/node.h"

void overruns_begin(void);
/* What the node learns of them: at its start; by a job at its store, which may fail; by a survey,
 * after which it reads them; with a task that it takes over. */
void overruns_boot(const struct node *n);
void overruns_read(const struct node *n, bool ok);
void overruns_surveyed(const struct node *n);
void overruns_taken_over(const struct node *n, struct slice task);
/* A scheduler's report to its node (arg), which may be dead afterwards. */
void overruns_evaluates(void *arg, struct slice task, bool begins);
/* In some runs a turn evaluates only one or two expressions; 0: the default. Derived from the seed,
 * not drawn from the run's source. */
uint64_t overruns_turn_steps(const struct node *n);
void overruns_left_out(struct node *n); /* after a turn: counts turns that left work */
/* A task's count is deleted with it. */
void overruns_check_end(void);

#endif
