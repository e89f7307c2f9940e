/* A turn's share of evaluations. Pure: counts steps, never time, so a replay leaves out the same
 * work. Used by: scheduler/decisions.c, start.c and change.c. */

#include "tasks/effort.h"

enum {
    TURN_STEPS_MAX = 50000,
    EVALUATION_STEPS = 10, /* the fixed cost of one evaluation */
};

void effort_init(struct effort *f, uint64_t max)
{
    *f = (struct effort){.max = max ? max : TURN_STEPS_MAX, .first = EFFORT_ANY};
}

bool effort_may(struct effort *f, enum effort_kind kind)
{
    bool may = f->spent < f->max && (f->first == EFFORT_ANY || f->first == kind);

    if (may)
        f->worked |= 1U << kind;
    else
        f->left_out |= 1U << kind;
    return may;
}

uint64_t *effort_begin(struct effort *f)
{
    f->evaluations++;
    f->spent += EVALUATION_STEPS;
    return &f->spent;
}

bool effort_left_out(const struct effort *f, enum effort_kind kind)
{
    return (f->left_out & 1U << kind) != 0;
}

void effort_end_turn(struct effort *f)
{
    unsigned starved = f->left_out & ~f->worked;
    unsigned last = f->first == EFFORT_ANY ? 0 : f->first;

    f->first = EFFORT_ANY;
    for (unsigned i = 1; i <= EFFORT_ANY && f->first == EFFORT_ANY; i++)
        if (starved & 1U << (last + i) % EFFORT_ANY)
            f->first = (enum effort_kind)((last + i) % EFFORT_ANY);
    f->last_turn = f->spent;
    f->turns_left_out += f->left_out != 0;
    f->turn++;
    f->spent = 0;
    f->left_out = f->worked = 0;
}
