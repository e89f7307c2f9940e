/*
 * Loaded into a process that knows nothing of it (LD_PRELOAD): what it has written cannot be
 * brought to the disk while the file that $BROKEN names is there.
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
