/* Duplicates and moves file descriptors so that gcc's thread sanitizer can follow their numbers;
 * fd.h says which calls it cannot follow. Used for files outside the event loop:
 * store/sqlite/guard.c and archive/writer.c. */

#include "base/fd.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

int fd_duplicate(int fd)
{
    int ret = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (ret < 0 || dup3(fd, ret, O_CLOEXEC) >= 0)
        return ret;
    (void)close(ret);
    return -1;
}

/* Calls the kernel directly: the sanitizer must not see the number that it does not know. */
void fd_move(int fd, int known)
{
    long rc = syscall(SYS_dup3, fd, known, O_CLOEXEC);

    ASSERT(rc == known); /* both are open */
    (void)syscall(SYS_close, fd);
}
