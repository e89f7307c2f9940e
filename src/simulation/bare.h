#ifndef SIMULATION_BARE_H
#define SIMULATION_BARE_H

/*
 * A test file for a definition that has none: every action answers null, and the world counts the
 * effects of each step that has an undo. Each signal comes, and each vote is in favour, after an
 * hour.
 */

#include "definition/definition.h"

/* `file`: the definition's name, as `workflow` of the test file. `input`: JSON. */
void bare_write(struct buf *b, const struct definition *d, const char *file, struct slice input);

#endif
