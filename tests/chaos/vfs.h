#ifndef TESTS_CHAOS_VFS_H
#define TESTS_CHAOS_VFS_H

/*
 * A failing disk under SQLite: a VFS over SQLite's own one that becomes the default. It passes
 * everything through, and each call may fail by plan:
 *
 *     vfs_plan = (struct vfs_plan){.calls = VFS_ALL, .skip = n, .fire = 1};
 *
 * lets n calls pass and the next one fail; with `fire` UINT32_MAX all later calls fail until the
 * plan is reset. `seen` counts the calls under any plan.
 *
 * A failing call may have an effect like a real one: a write leaves a part of its sectors behind. A
 * call that releases something (close, unlock) is executed and only returns an error.
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
    VFS_TEAR,  /* writes: a part, then SIGKILL to this process; other calls: as VFS_IO */
    VFS_QUOTA, /* writes: a part, then SQLITE_IOERR_WRITE with EDQUOT, as SQLite reports an
                  exhausted quota; other calls: as VFS_IO */
};

struct vfs_plan {
    uint32_t calls; /* BIT() of those that may fail */
    enum vfs_how how;
    uint32_t skip, fire;
    uint32_t permille;    /* if not 0, instead of skip and fire: the chance of each call */
    uint32_t seen, fired; /* counted for the test */
};

extern struct vfs_plan vfs_plan;

/* Makes the VFS the default. `seed` chooses the parts of writes. Without `sync` nothing is synced:
 * enough for a test in which only the process dies. */
void vfs_register(uint64_t seed, bool sync);

const char *vfs_call_text(enum vfs_call call);

/* If set, called before each call: steers vfs_plan from outside. */
extern void (*vfs_steer)(void);

/* If set, called before and after (`done`) each write that does not fail. `path` is NULL for a
 * temporary file. Before it, the number of bytes that are to be written is returned. */
extern int (*vfs_writes)(const char *path, const void *from, int count, int64_t at, bool done);

#endif
