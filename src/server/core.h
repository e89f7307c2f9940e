#ifndef SERVER_CORE_H
#define SERVER_CORE_H

/* What all parts stand on: the store's threads, tokens, definitions, scheduler and supervisor. */

#include "node/part.h"
#include "server/run.h"

/* Reads what the node keeps in memory. The store is this thread's until core_start. */
enum err core_load(struct run *run, struct error *e) MUST_USE;
void core_unload(struct run *run); /* the loop has ended, or was never started */

/* 0, or why a thread cannot be started, as libuv's (negative) code; then nothing is started. */
int core_start(struct run *run);
void core_stop(struct run *run); /* the parts are closed */

/* Scheduler and supervisor take their turns as any part does. */
extern const struct part scheduling_part;

#endif
