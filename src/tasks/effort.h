#ifndef TASKS_EFFORT_H
#define TASKS_EFFORT_H

/*
 * Limits what one turn may spend on expressions, in evaluation steps. However much there is to
 * evaluate, the event loop serves everybody else in between: work that is left out is done in the
 * next turns, which are due at once. The limit counts steps, never time, so a replay leaves out the
 * same work.
 *
 * The first evaluation of a turn is always allowed, so a turn costs at most its limit and one
 * evaluation. A kind that got nothing in one turn, because the others used it up, has the next turn
 * to itself.
 */

#include <stdbool.h>
#include <stdint.h>

enum effort_kind { EFFORT_CONDITIONS, EFFORT_INPUTS, EFFORT_OUTPUTS, EFFORT_ANY };

struct effort {
    uint64_t turn, spent, max; /* steps */
    unsigned worked, left_out; /* in this turn; bits by kind */
    enum effort_kind first;    /* the other kinds wait; ANY: none waits */
    uint64_t evaluations;      /* since the start */
    uint64_t last_turn;        /* steps that the last turn spent */
    uint64_t turns_left_out;   /* turns that left evaluations to the next one */
};

void effort_init(struct effort *f, uint64_t max);         /* 0: the default */
bool effort_may(struct effort *f, enum effort_kind kind); /* false: left for the next turn */
/* An evaluation begins. Returns the counter of its steps. */
uint64_t *effort_begin(struct effort *f);
bool effort_left_out(const struct effort *f, enum effort_kind kind);
void effort_end_turn(struct effort *f);

#endif
