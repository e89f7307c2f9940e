/* The process's descriptors and signals at the start, and its output at the end (surroundings.h):
 * open standard descriptors, whole lines on stderr, and an error if standard output could not be
 * written. main.c calls it. */

#include "cli/surroundings.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Larger than the longest help: a failure to write is then known at the end, with its reason. The C
 * library has forgotten the reason of an earlier one by then. */
static char output[64 << 10];

void surroundings_settle(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        /* the lowest free number is this one; without /dev, a descriptor that can be neither read
         * nor written */
        if (open("/dev/null", O_RDWR) < 0) /* NOLINT: stays open for good, over exec too */
            (void)!open("/", O_PATH);      /* NOLINT */
    }
    (void)signal(SIGXFSZ, SIG_IGN); /* only fails for an invalid signal */
    /* Messages are written as a whole, so that those of several processes do not mix in one log. */
    (void)setvbuf(stderr, NULL, _IOLBF, 0);
    if (!isatty(STDOUT_FILENO))
        (void)setvbuf(stdout, output, _IOFBF, sizeof output);
}

int surroundings_leave(int status)
{
    bool failed = ferror(stdout) != 0;

    errno = 0;
    failed = fflush(stdout) != 0 || failed;
    if (!failed)
        return status;
    fprintf(stderr, "intact: standard output cannot be written%s%s; the answer is not complete\n",
            errno ? ": " : "", errno ? strerror(errno) : "");
    return status ? status : 1;
}
