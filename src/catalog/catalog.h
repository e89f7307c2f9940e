#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

/*
 * Keeps a registry up to date with the store where other nodes store definitions, too. Definitions
 * are read when a caller needs to know (registry_read), or when the store's generation changes.
 * They are read on the store's thread, compiled on another one (catalog_offload), and added to the
 * registry on the event loop.
 *
 * Reads are shared. A caller that arrives during a read may need what was stored after the read
 * began, so it waits for the next read, with all others of its kind.
 */

#include "definition/registry.h"
#include "store/job.h"

struct catalog;

/* Registers itself as the registry's reader. Both, and the queue, outlive it. */
struct catalog *catalog_new(struct registry *r, struct store_queue *store);
/* The compiler: calls `run(of)` on a thread, where it may take a second, and then `done(of)` on the
 * event loop. Without it, compilation is part of the read and blocks the store. */
typedef void catalog_offload_fn(void *arg, void (*run)(void *of), void (*done)(void *of), void *of);
void catalog_offload(struct catalog *c, catalog_offload_fn *offload, void *arg);
void catalog_free(struct catalog *c); /* it is not busy; waiting callers are dropped */

/* The store has reached this generation: reads, unless everything up to it is known. */
void catalog_changed(struct catalog *c, uint64_t generation);
bool catalog_is_busy(const struct catalog *c); /* it reads or compiles */

/* Loads everything that is stored on the calling thread, for the start. Definitions that cannot be
 * read are logged and skipped. *ret_generation: the generation that was read. */
enum err catalog_load(struct registry *r, struct store *s, uint64_t *ret_generation,
                      struct error *e) MUST_USE;
void catalog_is_at(struct catalog *c, uint64_t generation); /* the generation from catalog_load */

#endif
