#ifndef VIRTUAL_ENGINE_FAMILY_H
#define VIRTUAL_ENGINE_FAMILY_H

/* The part of an engine's node that starts children and passes on what tasks of one family tell
 * each other. */

#include "intake/family.h"
#include "virtual/engine.h"

struct engine_node;

struct intake *family_intake(struct engine_node *n);
struct notices *family_notices(struct engine_node *n);

#endif
