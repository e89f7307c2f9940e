#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

/*
 * A node: the loop that drives scheduler and supervisor, the thread of the store, the HTTP API, and
 * what a node does besides. The choice of the store is the caller's.
 */

#include "base/err.h"
#include "node/config.h"

/* Raises the limit of file descriptors as far as the system allows. Before anything is opened. */
enum err server_take_files(struct error *e) MUST_USE;

/* Runs until SIGTERM or SIGINT. ERR_OK: drained and ended. ERR_CONFLICT: a process that was started
 * later is the node now. A second signal ends the process at once. */
enum err server_run(const struct server_config *c, struct error *e) MUST_USE;

#endif
