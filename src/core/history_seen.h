#ifndef CORE_HISTORY_SEEN_H
#define CORE_HISTORY_SEEN_H

/* The nodes that a search has visited, by their keys. */

#include "base/base.h"

struct seen {
    uint64_t *keys;
    size_t len, cap; /* cap: a power of two */
};

bool seen_add(struct seen *seen, uint64_t key); /* false: it was present */
void seen_fini(struct seen *seen);

#endif
