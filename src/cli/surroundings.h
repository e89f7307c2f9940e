#ifndef CLI_SURROUNDINGS_H
#define CLI_SURROUNDINGS_H

/* What every verb needs from its process. */

/* Must be called first, before anything is opened. Opens missing standard descriptors to nowhere,
 * so that no file of ours gets their numbers and then their data. Makes a file-size limit (ulimit
 * -f) an ordinary error instead of a deadly signal. */
void surroundings_settle(void);

/* Must be called last. Returns the exit status, which is not 0 if standard output could not be
 * written, and reports that. */
int surroundings_leave(int status);

#endif
