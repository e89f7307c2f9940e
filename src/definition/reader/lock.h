#ifndef DEFINITION_READER_LOCK_H
#define DEFINITION_READER_LOCK_H

/* `lock` of a definition: how many tasks with the same key may be at work at once. */

#include "definition/reader/definition_reader.h"

/* Fills in the lock of the workflow and the template of its key. The name of the workflow is known.
 */
void read_lock(struct reader *r, const struct json *j, const struct path *path);

#endif
