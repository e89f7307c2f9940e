#ifndef TESTING_STEP_PATH_H
#define TESTING_STEP_PATH_H

/* Names of steps in tests: "charge"; "pack.3", an item of a step with for_each; "parcel/label", a
 * step of a child, and "parcel.0/label", that of the child of an item. */

#include "testing/suite.h"

/* The step of the root: up to the first dot or slash. */
struct slice step_path_first(struct slice name);

/* Whether the definitions of the suite have such a step. */
bool step_path_exists(const struct suite *s, struct slice name);

/* Whether nothing ever undoes what that step does: it has `undo: none`, or a step has that to whose
 * child it belongs. */
bool step_path_stays(const struct suite *s, struct slice name);

/* The name of a step of a task. `id` is that of the root, T, or of a child of it: T@parcel,
 * T@parcel.0:2, ... */
void step_path_write(struct buf *b, struct slice root, struct slice id, struct slice step);

#endif
