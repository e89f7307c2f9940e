#ifndef STORE_MEMORY_MEMORY_H
#define STORE_MEMORY_MEMORY_H

/* A state store in memory, for the simulation: the same contract, nothing durable, no threads. It
 * is kept honest by the contract suite that SQLite passes too. */

#include "store/store.h"

struct store *memory_store_new(void);

/* As if a node were started on it again: boot() counts up, nothing else changes. */
void memory_store_boot(struct store *s);

#endif
