#ifndef AGENTS_CHECK_CHILD_H
#define AGENTS_CHECK_CHILD_H

/*
 * The agent under test as a process, in a session of its own. It never outlives us: the kernel
 * kills it when we die, and its descendants are adopted by us and killed with it.
 */

#include <sys/types.h>

#include "base/err.h"

enum { CHILD_TAIL_MAX = 2048 };

struct child {
    pid_t pid;       /* 0: none was started, or it was reaped */
    int out;         /* our end of the pipe; -1: none */
    int status;      /* from waitpid, once it has ended */
    bool has_ended;  /* for any reason, and was reaped */
    bool verbose;    /* its output also goes to standard error */
    size_t written;  /* total bytes of its output */
    size_t tail_len; /* the end of its output: */
    char tail[CHILD_TAIL_MAX];
};

/* Makes orphaned descendants our children, so that they can be found. Once per process. */
void child_adopt(void);

/* Starts it with these variables ("NAME=VALUE"; "NAME=" removes one) added to our own. *c must be
 * zeroed except for `verbose`. */
enum err child_start(struct child *c, char **command, char *const *variables,
                     struct error *e) MUST_USE;

void child_look(struct child *c);             /* reads its output, and detects its end */
void child_signal(struct child *c, int what); /* to the process only; harmless if it has ended */
void child_kill(struct child *c);             /* with all descendants; they are reaped */

/* "it ended with status 1", "it was killed by signal 11" */
void child_describe_end(const struct child *c, char *to, size_t size);

#endif
