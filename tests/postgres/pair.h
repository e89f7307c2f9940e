#ifndef TESTS_POSTGRES_PAIR_H
#define TESTS_POSTGRES_PAIR_H

/*
 * Two PostgreSQL servers for the tests, "a" and "b", on loopback ports and sockets: a primary and
 * its synchronous standby, by streaming replication. All their data is in one folder, so that tests
 * in C and scripts (through the program intact-pair) can share them. They run as an unprivileged
 * user, who must be able to reach that folder.
 *
 * Each failure here fails the test. To kill or stop a server means all of its processes, as if a
 * machine failed.
 */

#include <stdbool.h>
#include <sys/types.h>

enum { PAIR_TEXT = 320 };

struct pair {
    char dir[96];
    int ports[2];
    int pool_ports[2]; /* of their poolers, if started */
    bool outlives;     /* started programs outlive this process; else they end with it */
};

/* Creates both in that folder, which is created if missing: "a" is the primary. Returns when the
 * standby is synchronous. */
void pair_make(struct pair *p, const char *dir);

/* Loads the pair of an existing folder. False: there is none. */
bool pair_load(struct pair *p, const char *dir);

/* The conninfo for clients: of whichever is the primary; of one server. */
void pair_conninfo(const struct pair *p, char ret[PAIR_TEXT]);
void pair_conninfo_of(const struct pair *p, int which, char ret[PAIR_TEXT]);

/* Returns the first value of the query's result in `ret`; false: the server does not answer. */
bool pair_ask(const struct pair *p, int which, const char *sql, char ret[PAIR_TEXT]);
/* Executes `sql`, retried for up to three minutes; fails the test if it never succeeds. */
void pair_do(const struct pair *p, int which, const char *sql);

/* Starts it in its previous role; returns when it answers. */
void pair_start(const struct pair *p, int which);
/* SIGKILL; returns when all of its processes have ended. */
void pair_kill(const struct pair *p, int which);
/* SIGSTOP or SIGCONT. */
void pair_signal(const struct pair *p, int which, int signal);
/* Stops it with pg_ctl's mode ("fast", "immediate"); the second one starts it again. */
void pair_stop(const struct pair *p, int which, const char *mode);
void pair_restart(const struct pair *p, int which, const char *mode);
/* Makes the standby the primary, which waits for no standby because it has none yet. */
void pair_promote(const struct pair *p, int which);
/* Kills the server if it runs, deletes its data, and makes it the synchronous standby of the other
 * one, so that an old primary never returns as one. */
void pair_rejoin(const struct pair *p, int which);

/* Starts a PgBouncer before each server, with pool mode "session" or "transaction". The poolers do
 * not know which server is the primary, remain when the servers change, and let clients wait for a
 * server without limit. Returns when both listen. */
void pair_pool(const struct pair *p, const char *mode);
void pair_pool_end(const struct pair *p);
/* The conninfo for clients: both servers, through the poolers. */
void pair_pool_conninfo(const struct pair *p, char ret[PAIR_TEXT]);

/* Runs another program, by its absolute path, in the pair's folder and as its user, with its output
 * in the file `log` there. The program receives the signal `end` when this process ends. */
pid_t pair_begin(const struct pair *p, const char *log, const char *path, const char *const *args,
                 int end);

/* Ends both, in any state, and removes the folder. */
void pair_end(const struct pair *p);

/* Prints the last log lines of both servers, for a failed test. */
void pair_tell(const struct pair *p);

#endif
