#ifndef STORE_MEMORY_MEMORY_H
#define STORE_MEMORY_MEMORY_H

/* A state store in memory, for the simulation and for servers in virtual time: the same contract,
 * nothing durable, one thread at a time. It is kept honest by the contract suite that SQLite passes
 * too. */

#include <stdatomic.h>

#include "store/store.h"

struct store *memory_store_new(void);

/* The store of one node, whose time is `*clock` (ms UTC), which must outlive it. `installation` is
 * a UUID and `secret` 32 random bytes; both are copied. */
struct store *memory_store_of_node(const atomic_int_fast64_t *clock, const char *installation,
                                   const unsigned char secret[32]);

/* As if a node were started on it again: boot() counts up, nothing else changes. */
void memory_store_boot(struct store *s);

#endif
