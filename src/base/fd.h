#ifndef BASE_FD_H
#define BASE_FD_H

/*
 * Descriptors whose numbers gcc's thread sanitizer knows. It follows neither openat and F_DUPFD nor
 * how libuv closes a connection: where such a number comes again on another thread it takes the two
 * for one, and tells of a race. What open() makes it follows. So whatever is made by such a call,
 * and used beside the loop, is given a number that open() made.
 */

#include "base/base.h"

/* Another one for the same file, closed by exec. -1: errno says why. */
int fd_duplicate(int fd);

/* From now on `known`, which was opened by open(), stands for what `fd` does; that number is free.
 */
void fd_move(int fd, int known);

#endif
