/* Implements own_mounts() of kit.h: a mount namespace of the test's own, with a user namespace if
 * the process is not root. disk_test.c and retention_test.c mount small disks in it. */

#include "kit.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

static void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    ssize_t written = write(fd, text, strlen(text));
    (void)written; /* if it does not work, the mount says so */
    (void)close(fd);
}

bool own_mounts(void)
{
    char map[40];
    unsigned uid = getuid();
    unsigned gid = getgid();

    if (unshare(CLONE_NEWNS) != 0) {
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            return false;
        write_text("/proc/self/setgroups", "deny");
        (void)snprintf(map, sizeof map, "0 %u 1", uid);
        write_text("/proc/self/uid_map", map);
        (void)snprintf(map, sizeof map, "0 %u 1", gid);
        write_text("/proc/self/gid_map", map);
    }
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}
