#ifndef TESTS_POSTGRES_SERVER_H
#define TESTS_POSTGRES_SERVER_H

/*
 * The processes of a PostgreSQL server of the tests: how its programs are found and started as a
 * user that PostgreSQL accepts, and how they are ended so that nothing stays.
 *
 * A server that is killed leaves its segments of shared memory to the machine, which has 4096 of
 * one kind and in a container 64 MB of the other. Hence SERVER_END ends it, and that is also what a
 * server is sent should its test die (PR_SET_PDEATHSIG).
 */

#include <signal.h>
#include <stdbool.h>
#include <stdnoreturn.h>
#include <sys/types.h>

enum { SERVER_END = SIGQUIT }; /* "immediate": without asking clients or writing what is dirty */

/* For its command line: what is left of a segment of this kind lies in its folder. */
#define SERVER_MEMORY "dynamic_shared_memory_type=mmap"

enum { SERVER_PATH = 128, SERVER_ARGS = 128 };

/* The path of a program of PostgreSQL's newest version here; a whole path is returned as it is.
 * Fails the test if there is none. */
void server_program(const char *name, char ret[SERVER_PATH]);

/* PostgreSQL does not run as root. Then this process becomes the user of the packages' own server,
 * or "nobody"; it exits if it cannot. */
void server_drop_root(void);
/* Gives a file or folder to that user. */
void server_own(const char *path);

/* Becomes that program, with its path for args[0]: PostgreSQL's programs look for each other beside
 * the path they were started by, and in PATH if that is a bare name. */
noreturn void server_exec(const char *path, const char *const *args);

/* Whether it has ended; a child of ours is waited for. */
bool server_is_gone(pid_t pid);
void server_signal_children(pid_t pid, int signal);
/* Ends it, stopped or not, and returns when it has; one that does not end is killed. */
void server_end(pid_t pid);

#endif
