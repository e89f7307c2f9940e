#ifndef DEFINITION_REGISTRY_H
#define DEFINITION_REGISTRY_H

/* All stored definitions, compiled, by name and version. On the loop's thread only; definitions
 * once added stay until the registry is freed, since tasks point to them. */

#include "base/map.h"
#include "definition/definition.h"

struct registry {
    struct map names;
};

void registry_fini(struct registry *r);

/* Takes the definition, whose workflow gets that version. Adding a version twice is harmless. */
void registry_add(struct registry *r, struct definition *d, int64_t version);

/* Version 0: the newest. NULL: there is none. */
const struct definition *registry_find(const struct registry *r, struct slice name,
                                       int64_t version);

#endif
