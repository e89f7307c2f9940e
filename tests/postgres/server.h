#ifndef TESTS_POSTGRES_SERVER_H
#define TESTS_POSTGRES_SERVER_H

/*
 * The processes of the tests' PostgreSQL servers: finds their programs, starts them as a user that
 * PostgreSQL accepts, and ends them without residue.
 *
 * A killed server leaves its segments of shared memory behind, of which a machine has 4096 of one
 * kind and, in a container, 64 MB of the other. Hence servers are ended with SERVER_END, which a
 * server also receives if its test dies (PR_SET_PDEATHSIG).
 */

#include <signal.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/types.h>

enum { SERVER_END = SIGQUIT }; /* "immediate": without waiting for clients or writing dirty pages */

/* For its command line: segments of this kind are files in its folder. */
#define SERVER_MEMORY "dynamic_shared_memory_type=mmap"

enum { SERVER_PATH = 128, SERVER_ARGS = 128 };

/* The path of a program of the newest PostgreSQL installed; an absolute path is returned unchanged.
 * Fails the test if there is none. */
void server_program(const char *name, char ret[SERVER_PATH]);

/* PostgreSQL does not run as root. If this process does, it becomes the user of the packages' own
 * server, or "nobody"; it exits if it cannot. */
void server_drop_root(void);
/* Gives a file or folder to that user. */
void server_own(const char *path);

/* Becomes that program, with its path as args[0]: PostgreSQL's programs search for each other next
 * to the path they were started by, and in PATH if that is a bare name. */
noreturn void server_exec(const char *path, const char *const *args);

/* Whether it has ended; a child of this process is waited for. */
bool server_is_gone(pid_t pid);
void server_signal_children(pid_t pid, int signal);
/* Ends it, stopped or not, and returns when it has ended; kills it if it does not end. */
void server_end(pid_t pid);

#endif
