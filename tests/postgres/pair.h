#ifndef TESTS_POSTGRES_PAIR_H
#define TESTS_POSTGRES_PAIR_H

/*
 * Two PostgreSQL servers of the tests' own, "a" and "b", on ports of the loopback address and
 * sockets: a primary and its synchronous standby, by streaming replication. All that is known of
 * them lies in one folder, so that tests in C and scripts (the program intact-pair) do the same.
 * They run as an unprivileged user, who must be able to reach that folder.
 *
 * What fails here fails the test. A server is all of its processes: what is said to be killed or
 * stopped is all of them, as if a machine were.
 */

#include <stdbool.h>
#include <sys/types.h>

enum { PAIR_TEXT = 320 };

struct pair {
    char dir[96];
    int ports[2];
    int pool_ports[2]; /* of the poolers before them, if they are started */
    bool outlives;     /* what is started goes on after this process; else it dies with it */
};

/* Makes both in that folder, which is made should it be missing: "a" is the primary. Returns when
 * the standby is synchronous. */
void pair_make(struct pair *p, const char *dir);

/* Those that were made in that folder. False: there are none. */
bool pair_load(struct pair *p, const char *dir);

/* What a client connects with: to whichever of both is the primary; to that one alone. */
void pair_conninfo(const struct pair *p, char ret[PAIR_TEXT]);
void pair_conninfo_of(const struct pair *p, int which, char ret[PAIR_TEXT]);

/* The first value of what that server answers, in `ret`; false: it does not answer. */
bool pair_ask(const struct pair *p, int which, const char *sql, char ret[PAIR_TEXT]);
/* Must be done; the server has a minute and more for it. */
void pair_do(const struct pair *p, int which, const char *sql);

/* Starts it as what it was; returns when it answers. */
void pair_start(const struct pair *p, int which);
/* SIGKILL: returns when nothing of it is left. */
void pair_kill(const struct pair *p, int which);
/* SIGSTOP or SIGCONT. */
void pair_signal(const struct pair *p, int which, int signal);
/* Ends it as pg_ctl does ("fast", "immediate"); starts it again. */
void pair_stop(const struct pair *p, int which, const char *mode);
void pair_restart(const struct pair *p, int which, const char *mode);
/* The standby becomes the primary, which waits for no standby: it has none yet. */
void pair_promote(const struct pair *p, int which);
/* Kills it if it runs, throws away what it had, and makes it the synchronous standby of the other
 * one: so no old primary ever comes back as one. */
void pair_rejoin(const struct pair *p, int which);

/* A PgBouncer before each of both: "session" or "transaction" says how it pools. They know nothing
 * of who is the primary, stay as they are when the servers change, and what waits for a server
 * waits for ever. Returns when both listen. */
void pair_pool(const struct pair *p, const char *mode);
void pair_pool_end(const struct pair *p);
/* What a client connects with: to both, through the poolers. */
void pair_pool_conninfo(const struct pair *p, char ret[PAIR_TEXT]);

/* Another program, by its whole path, in their folder and as their user. What it says goes to the
 * file `log` there. `end` is the signal that it gets should this process end. */
pid_t pair_begin(const struct pair *p, const char *log, const char *path, const char *const *args,
                 int end);

/* Ends both, whatever state they are in, and removes the folder. */
void pair_end(const struct pair *p);

/* The last that both servers said, for a test that failed. */
void pair_tell(const struct pair *p);

#endif
