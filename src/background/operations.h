#ifndef BACKGROUND_OPERATIONS_H
#define BACKGROUND_OPERATIONS_H

/* Operations on many tasks, as this node executes them. */

#include "node/part.h"
#include "operations/runner.h"

struct operations;
struct server;
bool operations_answered(struct operations *o, struct ask *a); /* false: it is not theirs */
void operations_changed(struct operations *o);                 /* one was stored, or changed */
void operations_stats(const struct operations *o, struct runner_stats *ret);

extern const struct part operations_part;

#endif
