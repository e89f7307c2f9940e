/* Landlock through its system calls, because glibc has no wrappers (landlock.h). Rights that the
 * kernel does not know are left out by its version. Callers: agents/exec/bounds.c makes the
 * rules, keeper.c enters them. */

#include "confine/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Headers may be older than the kernel. */
#ifndef LANDLOCK_ACCESS_FS_REFER
    #define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
    #define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
    #define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif

enum {
    SCOPE_ABSTRACT_UNIX_SOCKET = 1 << 0,
    SCOPE_SIGNAL = 1 << 1,
    HAS_SCOPES = 6,
};

/* The kernel's struct as of version 6: older kernels accept the new fields if they are zero. */
struct ruleset {
    uint64_t fs, net, scoped;
};

static int version_max = INT32_MAX;

static const uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
static const uint64_t of_files = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE
                                 | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_TRUNCATE
                                 | LANDLOCK_ACCESS_FS_IOCTL_DEV;

int landlock_version(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    return version > 0 ? (int)min_i64(version, version_max) : 0;
}

void landlock_limit(int most)
{
    version_max = most;
}

/* What the kernel can restrict, by version. */
static uint64_t known_rights(int version)
{
    uint64_t all = LANDLOCK_ACCESS_FS_REFER - 1;

    if (version >= 2)
        all |= LANDLOCK_ACCESS_FS_REFER;
    if (version >= LANDLOCK_HAS_TRUNCATE)
        all |= LANDLOCK_ACCESS_FS_TRUNCATE;
    if (version >= 5)
        all |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
    return all;
}

int landlock_open(bool alone)
{
    int version = landlock_version();
    bool has_scopes = alone && version >= HAS_SCOPES;
    const struct ruleset all = {.fs = known_rights(version),
                                .scoped =
                                    has_scopes ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0};

    if (version == 0) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
}

static uint64_t rights_of(unsigned rights)
{
    uint64_t all = 0;

    if (rights & LANDLOCK_READ)
        all |= reading;
    if (rights & LANDLOCK_RUN)
        all |= LANDLOCK_ACCESS_FS_EXECUTE;
    if (rights & LANDLOCK_WRITE)
        all |= known_rights(landlock_version())
               & ~(reading | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_IOCTL_DEV);
    return all;
}

bool landlock_allow(int ruleset, const char *path, unsigned rights)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = rights_of(rights)};
    struct stat st;

    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0)
        return false;
    bool ok = fstat(rule.parent_fd, &st) == 0;
    if (ok && !S_ISDIR(st.st_mode))
        rule.allowed_access &= of_files; /* the kernel refuses the others for files */
    ok = ok && syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    int err = errno;
    (void)close(rule.parent_fd);
    errno = err;
    return ok;
}

bool landlock_enter(int ruleset)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
           && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
}
