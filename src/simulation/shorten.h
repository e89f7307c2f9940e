#ifndef SIMULATION_SHORTEN_H
#define SIMULATION_SHORTEN_H

/* Makes stories shorter: leaves out one fault after the other, while what they tell stays the same.
 * Then each is told, with its times. */

#include "simulation/simulation.h"

void shorten_end(struct simulation *v, struct reached_end *e);
void shorten_finding(struct simulation *v, struct finding *f);
void shorten_longest(struct simulation *v);

/* Whether the first of the faults that struck stops the task in error by itself. */
bool shorten_is_first_enough(struct simulation *v, const struct run *r);

#endif
