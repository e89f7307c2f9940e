#ifndef SIMULATION_CLASSIFY_H
#define SIMULATION_CLASSIFY_H

/* What one run says about its workflow: the findings of simulation.h that it is an example of. */

#include "simulation/simulation.h"

enum { CLASSIFIED_MAX = 6 };

struct classified {
    enum finding_kind kind;
    const struct rule *rule;
    struct slice subject; /* in the run's arena, or longer */
    struct slice text;
};

/* Returns how many. */
size_t classify(const struct run *r, struct classified ret[CLASSIFIED_MAX]);

/* A pair of faults is only worth telling if the first one alone does not do it. */
bool classified_is_pair(const struct run *r, enum finding_kind k);

#endif
