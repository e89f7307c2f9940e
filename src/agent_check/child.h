#ifndef AGENT_CHECK_CHILD_H
#define AGENT_CHECK_CHILD_H

/*
 * The agent under test as a process, in a session of its own. It does not outlive us: the kernel
 * kills it when we die, and what it started is adopted by us and killed with it.
 */

#include <sys/types.h>

#include "base/err.h"

enum { CHILD_TAIL_MAX = 2048 };

struct child {
    pid_t pid;       /* 0: none was started, or it was reaped */
    int out;         /* the end of the pipe that we read; -1: none */
    int status;      /* as waitpid says, of one that has ended */
    bool has_ended;  /* by itself or by a signal, and was reaped */
    bool verbose;    /* what it writes goes to standard error as well */
    size_t written;  /* bytes that it wrote in all */
    size_t tail_len; /* its last words: */
    char tail[CHILD_TAIL_MAX];
};

/* Children that lose their parent become ours, so that they can be found. Once for a process. */
void child_adopt(void);

/* Starts it with these variables ("NAME=VALUE"; "NAME=" takes one away) besides our own. *c is
 * zeroed but for `verbose`. */
enum err child_start(struct child *c, char **command, char *const *variables,
                     struct error *e) MUST_USE;

void child_look(struct child *c);             /* reads what it wrote, notices that it has ended */
void child_signal(struct child *c, int what); /* to the process alone; harmless if it has ended */
void child_kill(struct child *c);             /* it and all that it started; they are reaped */

/* "it ended with status 1", "it was killed by signal 11" */
void child_tell_end(const struct child *c, char *to, size_t size);

#endif
