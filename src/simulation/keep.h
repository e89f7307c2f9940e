#ifndef SIMULATION_KEEP_H
#define SIMULATION_KEEP_H

/* Turns a story into a test of a test file, which `intact test` plays with the same faults. */

#include "simulation/simulation.h"

/* What is to be kept. */
struct kept {
    const struct story *story;
    const struct run_end *end;
    bool world_before; /* the default rule is not kept: the test expects the world as it was */
    const char *what;  /* for its name */
    struct slice way;  /* of a new file: from its folder to that of the simulated one, "../a/" */
};

/* The text of a test file with that test added. `text`: what the file holds; NONE: there is no such
 * file, and *ret has all that the simulated one has beside its tests. ERR_INVALID: it cannot be
 * added, and *e says why. */
enum err keep_write(const struct simulation *v, const struct kept *k, struct slice text,
                    struct buf *ret, struct error *e) MUST_USE;

#endif
