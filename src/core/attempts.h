#ifndef CORE_ATTEMPTS_H
#define CORE_ATTEMPTS_H

/* How many attempts a step keeps, and which ones it drops. Pure. */

#include "core/task.h"

/* With fewer, stored tasks could not be read; with more, older programs could not read newer ones.
 */
enum {
    ATTEMPTS_HEAD = 5,  /* of a step with many attempts the first ones are kept ... */
    ATTEMPTS_TAIL = 20, /* ... and the last ones; those between are merged */
    ATTEMPTS_KEPT = ATTEMPTS_HEAD + ATTEMPTS_TAIL,
};

/* Whether the step's attempt array has to grow before the next EVENT_START. */
bool step_needs_room(const struct step *s);

/* Merges one attempt in the middle into the sum of the dropped ones. */
void drop_attempt(struct step *s);

#endif
