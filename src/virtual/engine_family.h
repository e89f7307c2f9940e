#ifndef VIRTUAL_ENGINE_FAMILY_H
#define VIRTUAL_ENGINE_FAMILY_H

/* The part of an engine that starts children and passes on what tasks of one family tell each
 * other. */

#include "intake/family.h"
#include "virtual/engine.h"

struct intake *family_intake(struct engine *g, struct store_queue *store,
                             struct registry *workflows);
struct notices *family_notices(struct engine *g, struct store_queue *store, struct slice me);

/* engine.c */
struct registry *engine_workflows(const struct engine *g);
void engine_ask_inside(struct engine *g, struct ask *a); /* one that ends with the node */
bool engine_is_dying(const struct engine *g);

#endif
