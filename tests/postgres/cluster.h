#ifndef TESTS_POSTGRES_CLUSTER_H
#define TESTS_POSTGRES_CLUSTER_H

/*
 * A PostgreSQL server of the tests' own: made in a temporary folder, run as an unprivileged user
 * (PostgreSQL does not run as root), gone with the process that started it. It listens on a socket
 * in that folder alone.
 */

#include <sys/types.h>

/* Starts it at the first call; what a client connects with. Fails the test if it cannot. */
const char *cluster_conninfo(void);

/* Kills all of its processes with SIGKILL; starts it again. */
void cluster_kill(void);
void cluster_start(void);
/* With these besides, "ssl=on": up to 39 of them, then NULL. */
void cluster_start_with(const char *const *settings);

/* Its folder, where its sockets and its "data" are. */
const char *cluster_dir(void);

/* Another program, of PostgreSQL or by its whole path, as its user in its folder; it ends with us.
 */
pid_t cluster_run(const char *program, const char *const *args);

/* fork, for tests: the child ends with its parent, however that ends, and when a CHECK in it fails.
 */
pid_t cluster_fork(void);

#endif
