#ifndef CLI_SURROUNDINGS_H
#define CLI_SURROUNDINGS_H

/* What every verb wants of the process it runs in. */

/* First of all, before anything is opened: standard input, output and error are open, if only to
 * nowhere, so that no file of ours gets one of their numbers and then what was meant for them; and
 * a file that may not grow any more (ulimit -f) is an error like others, and not the end. */
void surroundings_settle(void);

/* Last of all: the exit status, which is not 0 if what was to be written to standard output could
 * not be. Says so. */
int surroundings_leave(int status);

#endif
