#ifndef TESTS_CHAOS_VFS_H
#define TESTS_CHAOS_VFS_H

/*
 * A disk that fails, under SQLite: a VFS of ours over SQLite's own one, of which it becomes the
 * default. Everything is passed through, and each call may fail by plan:
 *
 *     vfs_plan = (struct vfs_plan){.calls = VFS_ALL, .skip = n, .fire = 1};
 *
 * lets n calls pass and then one fail; `fire` UINT32_MAX is a disk that stays broken until the plan
 * is taken back. Calls are counted in `seen` whatever the plan says.
 *
 * A call that fails does what a real one may have done before: a write leaves a part of its sectors
 * behind. What releases something (close, unlock) is done, and only tells an error.
 *
 * Power cuts are in disk.h.
 */

#include "base/base.h"

enum vfs_call {
    VFS_OPEN,
    VFS_DELETE,
    VFS_ACCESS,
    VFS_READ,
    VFS_WRITE,
    VFS_TRUNCATE,
    VFS_SYNC,
    VFS_FILE_SIZE,
    VFS_LOCK,
    VFS_UNLOCK,
    VFS_CHECK_LOCK,
    VFS_SHM_MAP,
    VFS_SHM_LOCK,
    VFS_CALL_COUNT
};

#define VFS_ALL (BIT(VFS_CALL_COUNT) - 1)

enum vfs_how {
    VFS_IO,    /* SQLITE_IOERR_ of the call's own kind */
    VFS_FULL,  /* writes: a part, then SQLITE_FULL; other calls: as VFS_IO */
    VFS_SHORT, /* reads of WAL and journal: a part, then zeros and SQLITE_IOERR_SHORT_READ; other
                  calls: as VFS_IO */
    VFS_TEAR,  /* writes: a part, and the process is gone (SIGKILL); other calls: as VFS_IO */
    VFS_QUOTA, /* writes: a part, then SQLITE_IOERR_WRITE with EDQUOT, as SQLite tells of a quota
                  that is used up; other calls: as VFS_IO */
};

struct vfs_plan {
    uint32_t calls; /* BIT() of those that may fail */
    enum vfs_how how;
    uint32_t skip, fire;
    uint32_t permille;    /* if not 0, instead of skip and fire: the chance of each call */
    uint32_t seen, fired; /* counted for the test */
};

extern struct vfs_plan vfs_plan;

/* Makes it the default. `seed` chooses the parts of writes. Syncs are done if `sync`: a test in
 * which only the process dies can do without. */
void vfs_register(uint64_t seed, bool sync);

const char *vfs_call_text(enum vfs_call call);

/* Asked before each call, if set: steers vfs_plan from outside. */
extern void (*vfs_steer)(void);

#endif
