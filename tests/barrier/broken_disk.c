/*
 * An LD_PRELOAD library for an unmodified process: every sync fails while the file named by $BROKEN
 * exists.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sync_by(long call, int fd)
{
    const char *broken = getenv("BROKEN");

    if (!broken || access(broken, F_OK) != 0)
        return (int)syscall(call, fd);
    errno = EIO;
    return -1;
}

int fsync(int fd)
{
    return sync_by(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return sync_by(SYS_fdatasync, fd);
}
