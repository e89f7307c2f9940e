#ifndef BASE_FD_H
#define BASE_FD_H

/*
 * File descriptors for gcc's thread sanitizer. It does not follow openat, F_DUPFD, or how libuv
 * closes a connection: if another thread gets such a number later, it takes the two for one and
 * reports a race. It follows open(). So descriptors from such calls that are used outside the loop
 * get a number from open().
 */

#include "base/base.h"

/* A duplicate for the same file, close-on-exec. -1: see errno. */
int fd_duplicate(int fd);

/* From now on `known`, which open() returned, refers to the file of `fd`; the number of `fd` is
 * free. */
void fd_move(int fd, int known);

#endif
