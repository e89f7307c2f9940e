#ifndef HOSTILE_ODD_H
#define HOSTILE_ODD_H

/*
 * What the tests in hostile environments share: processes in unusual environments, mounts, and
 * waiting for log lines. The program is the first argument of the test's command line; the second
 * one, if used, is an agent of the order example.
 */

#include "../e2e/kit.h"

void odd_program(int argc, char **argv); /* first in main */

/* Runs the program with these arguments, standard error appended to `log`. `before` (may be NULL)
 * is called in the new process, just before exec. */
pid_t odd_spawn(const char *const *args, const char *log, void (*before)(void));
pid_t odd_agent(const char *const *args, const char *log);
int odd_wait(pid_t pid, int ms); /* returns the wait status; -1: still running */
void odd_kill(pid_t pid);        /* waits for its end */

/* Runs the program to its end; returns its exit status and standard error. */
int odd_run(const char *const *args, void (*before)(void), struct buf *ret_stderr);

/* Starts a server on the previous port of `n`; returns when it answers. */
void odd_node(struct node *n, const char *const *flags, void (*before)(void));

/* Checks that it ends by itself, with status 1 and one line that contains both texts. */
void expect_refusal(const char *const *args, void (*before)(void), const char *says,
                    const char *says_too);

unsigned logged(const struct node *n, const char *text); /* number of lines */
void wait_until_logged(const struct node *n, const char *text, unsigned count);
void wait_until_ready_is(const struct node *n, int status, struct reply *r);

/* A workflow of one step for agent "ag": complete-by 10 minutes, no retry, then held. */
void define_one(const struct node *n);
void finish_one(const struct node *n, const char *id); /* checks that it is processed */

#endif
