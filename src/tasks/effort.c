/*
 * Limits what one turn may spend on expressions, in evaluation steps. However much there is to
 * evaluate, the event loop serves everybody else in between: work that is left out is done in the
 * next turns, which are due at once. The limit counts steps, never time, so a replay leaves out the
 * same work.
 *
 * The first evaluation of a turn is always allowed, so a turn costs at most TURN_STEPS_MAX and one
 * evaluation.
 */
#include "scheduler/internal.h"

enum {
    TURN_STEPS_MAX = 50000,
    EVALUATION_STEPS = 10, /* the fixed cost of one evaluation */
};

void effort_begin(struct scheduler *s)
{
    s->effort.max = s->config.turn_steps ? s->config.turn_steps : TURN_STEPS_MAX;
    s->effort.first = EFFORT_ANY;
}

bool effort_may(struct scheduler *s, enum effort_kind kind)
{
    struct effort *f = &s->effort;
    bool may = f->spent < f->max && (f->first == EFFORT_ANY || f->first == kind);

    if (may)
        f->worked |= 1U << kind;
    else
        f->left_out |= 1U << kind;
    return may;
}

uint64_t *effort_of_one(struct scheduler *s)
{
    s->stats.evaluations++;
    s->effort.spent += EVALUATION_STEPS;
    return &s->effort.spent;
}

bool effort_left_out(const struct scheduler *s, enum effort_kind kind)
{
    return (s->effort.left_out & 1U << kind) != 0;
}

void effort_turn_over(struct scheduler *s)
{
    struct effort *f = &s->effort;
    unsigned starved = f->left_out & ~f->worked;
    unsigned last = f->first == EFFORT_ANY ? 0 : f->first;

    f->first = EFFORT_ANY;
    for (unsigned i = 1; i <= EFFORT_ANY && f->first == EFFORT_ANY; i++)
        if (starved & 1U << (last + i) % EFFORT_ANY)
            f->first = (enum effort_kind)((last + i) % EFFORT_ANY);
    s->stats.turn_steps = f->spent;
    s->stats.turns_left_out += f->left_out != 0;
    f->turn++;
    f->spent = 0;
    f->left_out = f->worked = 0;
}
