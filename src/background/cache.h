#ifndef BACKGROUND_CACHE_H
#define BACKGROUND_CACHE_H

/* The caches of what other nodes store, too: definitions and tokens. */

#include "catalog/catalog.h"

struct generations;
struct http_request;
struct server;
struct task_row;

/* The generations of the store as of now; reads again what has changed. arg is the server. */
void cache_check_generations(void *arg, const struct generations *g);

/* At the start: stores the inputs of definitions that were stored by a version that did not. */
void cache_describe(struct server *sv);

/* Compiles a definition that was read, on a thread (catalog_offload_fn); arg is the server. */
void cache_compile(void *arg, void (*run)(void *of), void (*done)(void *of), void *of);

/* Serves the request when all definitions that are stored by now are cached here; at once if the
 * store is this node's alone. */
void cache_serve(struct server *sv, struct http_request *r,
                 void (*serve)(struct server *sv, struct http_request *r));

/* Is the row of a definition that is not cached here, but may be stored? Then w->done is called
 * after the store was read. */
bool cache_must_wait(struct server *sv, const struct task_row *row, struct registry_wait *w);

#endif
