#ifndef BENCH_FLOOR_LIFE_H
#define BENCH_FLOOR_LIFE_H

/*
 * The rows that a task writes in its life, as a server writes them: produced by the core, the
 * definitions and the codec, for a workflow whose agents succeed, except on the action "refuse".
 * All tasks of a workflow write the same rows apart from id and times.
 *
 * The number of events in one change depends on the load: for a task alone, a step's result and the
 * start of the next step share a change; at saturation each has its own. The caller chooses.
 */

#include "definition/definition.h"
#include "store/store.h"

struct life {
    struct change *changes; /* without id and revision; the one at `claim_at` is unused */
    size_t count;           /* with the claim */
    size_t claim_at;        /* index of the claim; 0: none */
    struct arena arena;
};

/* The number of events of a life, with the submission, without the claim. */
size_t life_events(const struct definition *d, struct slice payload);

/* A life of `changes` changes, from 1 to life_events (at least 2 if claimed); the claim comes
 * between the first and the second. */
void life_make(struct life *l, const struct definition *d, struct slice payload, size_t changes,
               bool claimed);

void life_fini(struct life *l);

#endif
