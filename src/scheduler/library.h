#ifndef SCHEDULER_LIBRARY_H
#define SCHEDULER_LIBRARY_H

/*
 * Keeps a registry up to what the store has, where other nodes store definitions too: they are
 * read when somebody has to know (registry_read), or when the store's generation says that there
 * is something new. Read on the store's thread, compiled beside it and the loop (library_aside),
 * and entered on the loop's.
 *
 * Readings are shared: who asks while one is under way may be asking for what was stored after it
 * began, and waits for the next, with all others who do.
 */

#include "definition/registry.h"
#include "store/job.h"

struct library;

/* Registers itself as the registry's reader. Both, and the queue, outlive it. */
struct library *library_new(struct registry *r, struct store_queue *store);
/* Who compiles: calls `run(of)` on a thread, where it may take a second, and then `done(of)` on the
 * loop. Without it compiling is part of the reading, and holds up the store. */
typedef void library_aside_fn(void *arg, void (*run)(void *of), void (*done)(void *of), void *of);
void library_aside(struct library *l, library_aside_fn *aside, void *arg);
void library_free(struct library *l); /* it is not busy; whoever waits is forgotten */

/* The store has come to that generation: reads, unless all up to it is known. */
void library_heard(struct library *l, uint64_t generation);
bool library_is_busy(const struct library *l); /* it reads, or compiles */

/* All that is stored, at once, for a start: on the calling thread. Definitions that cannot be read
 * are logged and left out. *ret_generation: up to which that is all. */
enum err library_load(struct registry *r, struct store *s, uint64_t *ret_generation,
                      struct error *e) MUST_USE;
void library_knows(struct library *l, uint64_t generation); /* what library_load said */

#endif
