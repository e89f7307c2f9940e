#ifndef SIMULATION_SEARCH_H
#define SIMULATION_SEARCH_H

/*
 * Which runs are played: every single fault and some pairs, then runs whose faults are drawn from a
 * seed (search_sample); or all sets of up to so many faults, in all orders in which they can
 * strike (search_all). Both are the same whenever they are repeated, by any number of threads.
 */

#include "simulation/crew.h"
#include "simulation/simulation.h"

struct search {
    struct simulation *simulation;
    struct crew *crew;
    uint64_t seed;
    uint64_t runs;  /* of search_sample; 0: as many as suit the workflow */
    unsigned depth; /* of search_all: faults of a run */
};

void search_sample(const struct search *s);

/* About how many runs search_all takes. */
uint64_t search_estimate(const struct search *s);
void search_all(const struct search *s);

#endif
