#ifndef CORE_VOTES_H
#define CORE_VOTES_H

/* The votes of people on the present question of a step. */

#include "core/task.h"

/* Votes on a step's question. */
struct tally {
    uint16_t agreed;
    const struct vote *rejection; /* NULL: there is none */
};

struct tally step_votes(const struct task *t, int step);

/* What that person said to the step's question; NULL: nothing. */
const struct vote *task_find_vote(const struct task *t, int step, struct slice person);

/* Whether enough agreed, or one rejects it. */
bool step_is_voted(const struct workflow *w, const struct task *t, uint16_t step);

/* Whether a vote may still change something: the task is not over, closed, or to be undone (as
 * far as its pivots allow). One that is paused or stopped in error goes on asking. */
bool task_may_ask(const struct task *t);

/* Whether that step asks people, and they have not decided. */
bool step_is_asking(const struct workflow *w, const struct task *t, uint16_t step);

#endif
