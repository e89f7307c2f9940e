#ifndef TESTS_POSTGRES_CLUSTER_H
#define TESTS_POSTGRES_CLUSTER_H

/*
 * A PostgreSQL server for the tests: created in a temporary folder, run as an unprivileged user
 * (PostgreSQL does not run as root), ended with the process that started it. It listens only on a
 * socket in that folder.
 */

#include <sys/types.h>

/* The conninfo for clients; the first call starts the server. Fails the test if that is
 * impossible. */
const char *cluster_conninfo(void);

/* Kills all processes of the server with SIGKILL; starts it again. */
void cluster_kill(void);
void cluster_start(void);
/* With additional settings such as "ssl=on": up to 39, then NULL. */
void cluster_start_with(const char *const *settings);

/* Its folder, with the sockets and "data". */
const char *cluster_dir(void);

/* Runs another program, of PostgreSQL or by its absolute path, as the server's user in its folder;
 * it ends with this process. */
pid_t cluster_run(const char *program, const char *const *args);

/* fork for tests: the child ends with its parent, however that ends, and when a CHECK in it
 * fails. */
pid_t cluster_fork(void);

#endif
