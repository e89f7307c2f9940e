#ifndef BACKGROUND_OPERATIONS_H
#define BACKGROUND_OPERATIONS_H

/* Operations on many tasks, as this node executes them. */

#include "node/part.h"
#include "operations/runner.h"

struct server;
bool operations_answered(struct server *sv, struct ask *a); /* false: it is not theirs */
void operations_changed(struct server *sv);                 /* one was stored, or changed */
void operations_stats(const struct server *sv, struct runner_stats *ret);

extern const struct part operations_part;

#endif
