#ifndef HOSTILE_ODD_H
#define HOSTILE_ODD_H

/*
 * What the tests of hostile surroundings share: processes in odd surroundings, mounts of our own,
 * and waiting for what a server says. The program is the first argument of the test's command line;
 * an agent of the order example, if the test uses one, the second.
 */

#include "../e2e/kit.h"

void odd_program(int argc, char **argv); /* first of main */

/* Runs the program with these arguments, standard error appended to `log`. `before` (may be NULL)
 * is called in the new process, last before the program. */
pid_t odd_spawn(const char *const *args, const char *log, void (*before)(void));
pid_t odd_agent(const char *const *args, const char *log);
int odd_wait(pid_t pid, int ms); /* its wait status; -1: it runs still */
void odd_kill(pid_t pid);        /* and it is gone */

/* Runs the program to its end: its exit status, and what it wrote to standard error. */
int odd_run(const char *const *args, void (*before)(void), struct buf *ret_stderr);

/* A server on the port that `n` had before; returns when it answers. */
void odd_node(struct node *n, const char *const *flags, void (*before)(void));

/* It ends by itself, with status 1 and one line that has both of these. */
void expect_refusal(const char *const *args, void (*before)(void), const char *says,
                    const char *says_too);

unsigned logged(const struct node *n, const char *text); /* lines */
void wait_until_logged(const struct node *n, const char *text, unsigned count);
void wait_until_ready_is(const struct node *n, int status, struct reply *r);

/* A workflow of one step for agent "ag": complete-by 10 minutes, no retry, and then it is held. */
void define_one(const struct node *n);
void finish_one(const struct node *n, const char *id); /* and it is processed */

#endif
