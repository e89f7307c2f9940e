#ifndef BENCH_FLOOR_LIFE_H
#define BENCH_FLOOR_LIFE_H

/*
 * The rows that a task writes in its life, as the server writes them: made by the core, the
 * definitions and the codec themselves, for a workflow whose agents do as they are asked (and where
 * the action is "refuse", do not). All tasks of a workflow write the same, but for id and times.
 *
 * How many events go into one change depends on the load: alone, a step's result and the start of
 * the next are one change; at saturation each is one of its own. So that is asked for.
 */

#include "definition/definition.h"
#include "store/store.h"

struct life {
    struct change *changes; /* but for id and revision; `claim_at` is none of them */
    size_t count;           /* with the claim */
    size_t claim_at;        /* which of them is a claim; 0: none */
    struct arena arena;
};

/* So many events are there to be written, submission included, claim not. */
size_t life_events(const struct definition *d, struct slice payload);

/* A life of so many changes, from 1 to life_events (and at least 2 if it is claimed), and a claim
 * between the first and the second. */
void life_make(struct life *l, const struct definition *d, struct slice payload, size_t changes,
               bool claimed);

void life_fini(struct life *l);

#endif
