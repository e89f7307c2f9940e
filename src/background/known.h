#ifndef BACKGROUND_KNOWN_H
#define BACKGROUND_KNOWN_H

/* What other nodes stored and this one keeps in memory: definitions and tokens. */

#include "scheduler/library.h"

struct generations;
struct http_request;
struct server;
struct task_row;

/* How often each was changed, as of now; reads again what has changed. arg is the server. */
void known_check_generations(void *arg, const struct generations *g);

/* At the start: stores the inputs of definitions that were stored by a version that did not. */
void known_describe(struct server *sv);

/* Compiles a definition that was read, on a thread (library_aside_fn); arg is the server. */
void known_compile(void *arg, void (*run)(void *of), void (*done)(void *of), void *of);

/* Serves the request when all definitions that are stored by now are known here; at once if the
 * store is this node's alone. */
void known_serve(struct server *sv, struct http_request *r,
                 void (*serve)(struct server *sv, struct http_request *r));

/* Is the row of a definition that is not known here, but may be stored? Then w->told is called when
 * that is known. */
bool known_must_wait(struct server *sv, const struct task_row *row, struct registry_wait *w);

#endif
